//! Service levels of all pairs, as `saquery PR` prints the path records of a subnet manager.

use std::collections::BTreeMap;

use super::network::Network;
use super::syntax::syntax;
use crate::formats::{FormatError, lines};

const RECORD: &str = "PathRecord dump:";
/// Largest service level (four bits, IBA 7.6.5).
const LEVEL_MAX: u16 = 15;

/// For each node that sends and LID that receives the service levels that are used, a bit each.
#[derive(Clone, Debug, Default)]
pub(super) struct Levels {
    pairs: BTreeMap<(u32, u16), u16>,
}

/// What a record says so far, and where it begins.
#[derive(Default)]
struct Record {
    offset: usize,
    slid: Option<u16>,
    dlid: Option<u16>,
    level: Option<u16>,
}

impl Levels {
    /// Reads what `saquery PR` printed. LIDs that nobody has are left alone.
    pub fn read(network: &Network, text: &str) -> Result<Levels, FormatError> {
        let mut levels = Levels::default();
        let mut at: Option<Record> = None;
        for line in lines(text.trim_start_matches('\u{feff}')) {
            let body = line.text.trim();
            if body == RECORD {
                let next = Record {
                    offset: line.offset,
                    ..Record::default()
                };
                levels.finish(network, text, at.replace(next))?;
                continue;
            }
            if body.is_empty() {
                continue;
            }
            let fail = |reason: String| Err(syntax(text, line.offset, reason));
            let (Some(record), Some((name, value))) = (at.as_mut(), body.split_once("..")) else {
                return fail(format!(
                    "\"{body}\" is no line of path records, as saquery PR prints them: {RECORD}, then \
                     lines such as dlid....2"
                ));
            };
            let (field, most) = match name {
                "slid" => (&mut record.slid, u16::MAX),
                "dlid" => (&mut record.dlid, u16::MAX),
                "sl" => (&mut record.level, LEVEL_MAX),
                _ => continue,
            };
            let value = value.trim_start_matches('.');
            let number = match value.strip_prefix("0x") {
                Some(digits) => u16::from_str_radix(digits, 16).ok(),
                None => value.parse().ok(),
            };
            let Some(number) = number.filter(|number| *number <= most) else {
                return fail(format!("{name} \"{value}\" is outside 0 to {most}"));
            };
            *field = Some(number);
        }
        levels.finish(network, text, at)?;
        Ok(levels)
    }

    fn finish(
        &mut self,
        network: &Network,
        text: &str,
        record: Option<Record>,
    ) -> Result<(), FormatError> {
        let Some(record) = record else { return Ok(()) };
        let (Some(slid), Some(dlid), Some(level)) = (record.slid, record.dlid, record.level) else {
            let reason = "this path record has no slid, dlid or sl".to_owned();
            return Err(syntax(text, record.offset, reason));
        };
        if let Some(src) = network.addresses().and_then(|lids| lids.get(&slid)) {
            *self.pairs.entry((*src, dlid)).or_default() |= 1 << level;
        }
        Ok(())
    }

    /// The levels of a pair, a bit each; none if there is no record of it.
    pub fn of(&self, src: u32, dlid: u16) -> u16 {
        self.pairs.get(&(src, dlid)).copied().unwrap_or(0)
    }

    /// All levels that some pair uses, ascending.
    pub fn used(&self) -> Vec<u16> {
        let all = self.pairs.values().fold(0, |all, levels| all | levels);
        (0..=LEVEL_MAX)
            .filter(|level| all >> level & 1 == 1)
            .collect()
    }
}
