//! What `ibnetdiscover -p` prints: a line for each port of each node, the node it leads to behind it.
//!
//! ```text
//! CA     3  1 0x0000000000100005 4x SDR - SW     1  1 0x0000000000200001 ( 'H3' - 'S2' )
//! SW     1  5 0x0000000000200001 4x SDR                                    'S2'
//! ```
//!
//! The first number is a LID, the second the port. The GUID is that of the port, which all ports of a switch share;
//! of adapters only the ports are known. The LMC is not given.

use std::collections::BTreeMap;

use super::error::FormatError;
use super::infiniband_lines::{Entry, Kind, Lid, PortLine, UNICAST_LIDS};
use super::place::{Line, lines};
use wormcast_wire::SWITCH_PORTS_MAX;

/// One end of a line.
#[derive(Clone, Copy)]
struct End<'a> {
    kind: Kind,
    lid: u16,
    port: u8,
    guid: &'a str,
}

/// A port, where it leads if it is connected, and what its node is called.
struct Row<'a> {
    near: End<'a>,
    far: Option<End<'a>>,
    name: &'a str,
    offset: usize,
}

/// Whether it is such a report: the first line with content begins as one of a port.
pub(super) fn is_report(text: &str) -> bool {
    let mut rows = lines(text).filter(|line| !is_blank_or_comment(line.text));
    rows.next().is_some_and(|line| is_row(line.text))
}

/// Whether a line can be in no other format than such a report.
pub(super) fn is_row(line: &str) -> bool {
    end(&mut line.split_whitespace()).is_some()
}

fn is_blank_or_comment(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with('#')
}

/// The nodes and ports of a report, as a net list has them.
pub(super) fn entries(text: &str) -> Result<Vec<Entry<'_>>, FormatError> {
    let mut nodes: BTreeMap<&str, Vec<Row<'_>>> = BTreeMap::new();
    for line in lines(text).filter(|line| !is_blank_or_comment(line.text)) {
        let row = row(text, line)?;
        // A port of an adapter that leads nowhere is no host.
        if row.near.kind == Kind::Switch || row.far.is_some() {
            nodes.entry(row.near.guid).or_default().push(row);
        }
    }
    let mut entries = Vec::new();
    for (guid, rows) in nodes {
        let first = &rows[0];
        if let Some(other) = rows.iter().find(|row| row.near.kind != first.near.kind) {
            let reason = format!("{guid} is a node of another kind in another line");
            return Err(FormatError::at(text, other.offset, "syntax", reason));
        }
        let most = rows.iter().map(|row| u16::from(row.near.port)).max();
        let lid = |end: &End<'_>| {
            let first = end.lid;
            UNICAST_LIDS
                .contains(&first)
                .then_some(Lid { first, lmc: 0 })
        };
        entries.push(Entry::Node {
            name: guid,
            kind: first.near.kind,
            ports: most.unwrap_or(0),
            description: Some(first.name).filter(|name| !name.trim().is_empty()),
            lid: lid(&first.near),
            offset: first.offset,
        });
        for row in &rows {
            if let Some(far) = row.far {
                entries.push(Entry::Port(PortLine {
                    port: row.near.port,
                    remote: far.guid,
                    remote_port: far.port,
                    lid: lid(&row.near),
                    offset: row.offset,
                }));
            }
        }
    }
    Ok(entries)
}

fn row<'a>(text: &'a str, line: Line<'a>) -> Result<Row<'a>, FormatError> {
    let fail = |reason: String| Err(FormatError::at(text, line.offset, "syntax", reason));
    let form = "it is written SW 1 5 0x0000000000200001 4x SDR 'name', or with - CA 3 1 0x… ( 'name' - \
                'name' ) of a port that is connected";
    // Names may hold anything, so they are cut off first.
    let Some((front, names)) = line.text.split_once(" ( '") else {
        let Some((front, name)) = line.text.split_once('\'') else {
            return fail(format!("this line names no node; {form}"));
        };
        let mut words = front.split_whitespace();
        let near = end(&mut words);
        let (Some(near), Some(name), false) = (
            near,
            name.trim_end().strip_suffix('\''),
            words.any(|word| word == "-"),
        ) else {
            return fail(format!("this is no line of a report of ports; {form}"));
        };
        return Ok(Row {
            near,
            far: None,
            name,
            offset: line.offset,
        });
    };
    let mut words = front.split_whitespace();
    let near = end(&mut words);
    let far = words
        .find(|word| *word == "-")
        .and_then(|_| end(&mut words));
    let names = names.trim_end().strip_suffix("' )");
    let (Some(near), Some(far), Some(names), None) = (near, far, names, words.next()) else {
        return fail(format!("this is no line of a report of ports; {form}"));
    };
    let mut parts = names.split("' - '");
    let (Some(name), Some(_), None) = (parts.next(), parts.next(), parts.next()) else {
        return fail(format!("the names '{names}' cannot be told apart; {form}"));
    };
    if near.port == 0 || u16::from(near.port) > SWITCH_PORTS_MAX {
        return fail(format!(
            "port {} is outside 1 to {SWITCH_PORTS_MAX}",
            near.port
        ));
    }
    Ok(Row {
        near,
        far: Some(far),
        name,
        offset: line.offset,
    })
}

/// Kind, LID, port and GUID.
fn end<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<End<'a>> {
    let kind = match words.next()? {
        "SW" => Kind::Switch,
        "CA" => Kind::Adapter,
        "RT" => Kind::Router,
        _ => return None,
    };
    let (lid, port, guid) = (words.next()?, words.next()?, words.next()?);
    let digits = guid.strip_prefix("0x")?;
    let is_guid = digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    Some(End {
        kind,
        lid: lid.parse().ok()?,
        port: port.parse().ok()?,
        guid: is_guid.then_some(guid)?,
    })
}
