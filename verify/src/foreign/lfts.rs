//! Linear forwarding tables of InfiniBand switches, as `dump_lfts`, `dump_fts` and `ibroute`
//! print them, and as OpenSM dumps them (`opensm-lfts.dump`, `opensm.fdbs`).
//!
//! A table begins with a line that names its switch by node GUID. Each line after it has a
//! LID and the port towards it; what follows is for people.

use std::collections::{BTreeMap, BTreeSet};

use super::follow::{Ends, Forwarding, Out};
use super::levels::Levels;
use super::network::Network;
use super::syntax::syntax;
use crate::formats::{FormatError, lines};

/// Largest LID of one port (IBA 4.1.3).
const LID_MAX: u16 = 0xBFFF;
const PORT_MAX: u16 = 254;
/// In a table: no entry.
const NO_PORT: u16 = 255;
/// Lines above columns begin with one of these words and have no digits.
const HEADINGS: [&str; 3] = ["Lid", "Port", "LID"];

/// The tables of all switches.
pub(super) struct Tables<'n> {
    network: &'n Network,
    /// LIDs that belong to somebody, ascending, and to whom.
    lids: Vec<(u16, u32)>,
    /// For each switch the port towards each LID.
    ports: Vec<Option<Vec<u16>>>,
    strangers: BTreeSet<u16>,
    /// Service levels of all pairs, and those that are used.
    levels: Option<(Levels, Vec<u16>)>,
}

enum Line {
    Nothing,
    Switch(u64),
    Entry { lid: u16, port: u16 },
}

impl<'n> Tables<'n> {
    /// No tables yet. Refuses a network without addresses.
    pub fn new(network: &'n Network) -> Result<Tables<'n>, String> {
        let Some(addresses) = network.addresses() else {
            return Err(
                "this topology has no LIDs, so the LIDs in the tables cannot be told apart; \
                        give it as ibnetdiscover prints it"
                    .to_owned(),
            );
        };
        Ok(Tables {
            network,
            lids: addresses
                .iter()
                .map(|(lid, owner)| (*lid, *owner))
                .collect(),
            ports: vec![None; network.switches() as usize],
            strangers: BTreeSet::new(),
            levels: None,
        })
    }

    /// From now on each packet uses the virtual channel of its service level. Everybody who
    /// sends must have a record for every LID of others.
    pub fn set_levels(&mut self, levels: Levels, ends: Ends) -> Result<(), FormatError> {
        let sends = |node: u32| ends == Ends::All || !self.network.is_switch(node);
        let senders = (0..self.network.nodes().len() as u32).filter(|node| sends(*node));
        for src in senders {
            for &(lid, owner) in self
                .lids
                .iter()
                .filter(|(_, owner)| *owner != src && sends(*owner))
            {
                if levels.of(src, lid) == 0 {
                    let reason = format!(
                        "there is no path record from {} to LID {lid} ({})",
                        self.network.name_of(src),
                        self.network.name_of(owner)
                    );
                    return Err(FormatError::new("missing-record", reason));
                }
            }
        }
        let used = levels.used();
        self.levels = Some((levels, used));
        Ok(())
    }

    /// Adds the tables in a text.
    pub fn read(&mut self, text: &str) -> Result<(), FormatError> {
        let mut at: Option<u32> = None;
        let mut given: BTreeMap<u16, u16> = BTreeMap::new();
        let mut any = false;
        for line in lines(text.trim_start_matches('\u{feff}')) {
            let fail = |reason| Err(syntax(text, line.offset, reason));
            match read_line(text, line.offset, line.text)? {
                Line::Nothing => {}
                Line::Switch(guid) => {
                    self.finish(at, &mut given);
                    let Some(switch) = self.network.by_guid(guid) else {
                        return fail(format!(
                            "no switch of the topology has the GUID {guid:#018x}; there are {}",
                            self.network.some_names(true)
                        ));
                    };
                    if self.ports[switch as usize].is_some() {
                        let name = self.network.name_of(switch);
                        return fail(format!("the table of switch {name} is given twice"));
                    }
                    self.ports[switch as usize] = Some(Vec::new());
                    at = Some(switch);
                    any = true;
                }
                Line::Entry { .. } if at.is_none() => {
                    return fail(
                        "an entry comes before the first switch; a table begins with a line such as \
                         Unicast lids … of switch Lid 4 guid 0x0002c90300000001 ('S0'):"
                            .to_owned(),
                    );
                }
                Line::Entry { lid, port } => {
                    if given.insert(lid, port).is_some() {
                        return fail(format!("LID {lid} is given twice in one table"));
                    }
                }
            }
        }
        self.finish(at, &mut given);
        if any {
            Ok(())
        } else {
            Err(FormatError::new(
                "syntax",
                "there is no forwarding table in it; dump_lfts, ibroute and OpenSM's \
                 opensm-lfts.dump and opensm.fdbs have them, a tables file is JSON"
                    .to_owned(),
            ))
        }
    }

    fn finish(&mut self, at: Option<u32>, given: &mut BTreeMap<u16, u16>) {
        let Some(switch) = at else { return };
        let ports = self
            .lids
            .iter()
            .map(|(lid, _)| given.remove(lid).unwrap_or(NO_PORT));
        self.ports[switch as usize] = Some(ports.collect());
        let left = std::mem::take(given).into_iter();
        self.strangers.extend(
            left.filter(|(_, port)| *port != NO_PORT)
                .map(|(lid, _)| lid),
        );
    }
}

impl Forwarding for Tables<'_> {
    fn destinations(&self) -> u32 {
        self.lids.len() as u32
    }

    fn out(&self, switch: u32, destination: u32) -> Out<'_> {
        match &self.ports[switch as usize] {
            Some(ports) if ports[destination as usize] != NO_PORT => {
                Out::Ports(std::slice::from_ref(&ports[destination as usize]))
            }
            _ => Out::Nowhere,
        }
    }

    fn end(&self, destination: u32) -> Option<u32> {
        Some(self.lids[destination as usize].1)
    }

    fn name(&self, destination: u32) -> String {
        format!("LID {}", self.lids[destination as usize].0)
    }

    fn lanes(&self, src: u32, destination: u32) -> u16 {
        let Some((levels, used)) = &self.levels else {
            return 1;
        };
        let own = levels.of(src, self.lids[destination as usize].0);
        let lanes = used
            .iter()
            .zip(0..)
            .filter(|(level, _)| own >> **level & 1 == 1);
        lanes.fold(0, |lanes, (_, lane)| lanes | 1 << lane)
    }

    fn vcs(&self) -> Vec<String> {
        let used = self.levels.as_ref().map_or(&[][..], |(_, used)| used);
        used.iter().map(u16::to_string).collect()
    }

    fn has_own_port(&self) -> bool {
        true
    }

    fn has_table(&self, switch: u32) -> bool {
        self.ports[switch as usize].is_some()
    }

    fn strangers(&self) -> usize {
        self.strangers.len()
    }
}

fn read_line(text: &str, offset: usize, line: &str) -> Result<Line, FormatError> {
    let body = line.trim();
    let fail = |reason: String| {
        Err(syntax(
            text,
            offset + (line.len() - line.trim_start().len()),
            reason,
        ))
    };
    let first = body.split_whitespace().next().unwrap_or_default();
    if first.starts_with("0x") {
        return match read_entry(body) {
            Ok(entry) => Ok(entry),
            Err(reason) => fail(reason),
        };
    }
    if body.starts_with("Unicast lids") || body.contains("dump_ucast_routes: Switch ") {
        let mark = if body.starts_with("Unicast") {
            " guid "
        } else {
            ": Switch "
        };
        let guid = body
            .rsplit_once(mark)
            .and_then(|(_, rest)| rest.split_whitespace().next());
        let guid = guid.and_then(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
        return match guid {
            Some(guid) => Ok(Line::Switch(guid)),
            None => {
                fail("the line of a switch has no GUID, as in guid 0x0002c90300000001".to_owned())
            }
        };
    }
    if body.starts_with("Multicast mlids") {
        return fail(
            "this is a multicast table; unicast tables are what dump_lfts prints".to_owned(),
        );
    }
    let is_count = body.ends_with("lids dumped") && first.parse::<u32>().is_ok();
    // dump_lfts ends with a warning that dump_fts has taken its place.
    let is_warning = body.starts_with("*** WARNING ***");
    if is_warning || is_count || body.is_empty() || body.starts_with('#') || is_heading(body) {
        return Ok(Line::Nothing);
    }
    fail(format!(
        "\"{first}\" begins no line of a forwarding table; lines are Unicast lids … guid 0x…, and \
         a LID and a port, as in 0x0004 003"
    ))
}

fn is_heading(line: &str) -> bool {
    HEADINGS.iter().any(|word| line.starts_with(word))
        && !line.contains(|c: char| c.is_ascii_digit())
}

/// `0x0002 003 : (…)`, `0x0002 003 # …`, `0x0002 : 003  : 01   : yes` or `0x0002 : UNREACHABLE`.
fn read_entry(body: &str) -> Result<Line, String> {
    let mut words = body.split_whitespace().filter(|word| *word != ":");
    let lid = words.next().unwrap_or_default();
    let digits = lid.trim_start_matches("0x");
    let number = u32::from_str_radix(digits, 16)
        .map_err(|_| format!("\"{lid}\" is not a LID, as in 0x0004"))?;
    let port = words.next().unwrap_or_default();
    let port = match port {
        "UNREACHABLE" => NO_PORT,
        digits => digits
            .parse()
            .ok()
            .filter(|port| *port <= NO_PORT)
            .ok_or_else(|| {
                format!("\"{digits}\" is not a port; ports are 0 to {PORT_MAX}, and 255 for none")
            })?,
    };
    let lid = u16::try_from(number).ok().filter(|lid| *lid <= LID_MAX);
    match lid {
        Some(lid) if lid > 0 || port == NO_PORT => Ok(Line::Entry { lid, port }),
        _ => Err(format!(
            "LID {number:#06x} is outside 0x0001 to {LID_MAX:#06x}"
        )),
    }
}
