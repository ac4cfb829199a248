//! Tables files: for each switch the ports for each destination, a value or a prefix.
//!
//! All addresses that no prefix of any switch tells apart are one destination. Of several
//! entries that hold a destination the longest prefix counts.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Number;

use super::follow::{Forwarding, Out};
use super::network::{Network, PORTS};
use crate::formats::{FormatError, lines};

/// Longest keys (an IPv6 address).
const BITS_MAX: u32 = 128;
/// Most destinations times switches; what is kept takes four bytes each.
const CELLS_MAX: usize = 1 << 28;
const NO_ENTRY: u32 = u32::MAX;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    tables: Vec<TableRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TableRow {
    name: String,
    bits: u32,
    #[serde(default)]
    never_back: bool,
    switches: Vec<SwitchRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SwitchRow {
    switch: Name,
    entries: Vec<EntryRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryRow {
    key: String,
    ports: Vec<u16>,
}

/// A name, or an id.
#[derive(Deserialize)]
#[serde(untagged)]
enum Name {
    Text(String),
    Id(Number),
}

/// Values of a key that one entry is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Prefix {
    first: u128,
    last: u128,
}

/// One table of all switches.
pub(super) struct Table {
    name: String,
    bits: u32,
    never_back: bool,
    /// The first and the last value of each destination.
    atoms: Vec<Prefix>,
    /// For each switch that has the table the entry for each destination.
    choices: BTreeMap<u32, Vec<u32>>,
    /// Ports of the entries of all switches.
    ports: Vec<Vec<u16>>,
}

/// Reads a tables file.
pub(super) fn read(network: &Network, text: &str) -> Result<Vec<Table>, FormatError> {
    let file: File = serde_json::from_str(text.trim_start_matches('\u{feff}'))
        .map_err(|error| wrong_json(text, &error))?;
    let refuse = |reason| FormatError::new("refused", reason);
    let tables = file.tables.iter().zip(0..);
    tables
        .map(|(row, number)| {
            read_table(network, row).map_err(|reason| refuse(format!("tables[{number}]{reason}")))
        })
        .collect()
}

/// The place is serde's; its text has it once more at the end.
fn wrong_json(text: &str, error: &serde_json::Error) -> FormatError {
    let reason = error.to_string();
    let reason = reason
        .split(" at line ")
        .next()
        .unwrap_or_default()
        .to_owned();
    let line = lines(text).nth(error.line().saturating_sub(1));
    let offset = line.map_or(text.len(), |line| {
        line.offset + error.column().saturating_sub(1)
    });
    let code = if error.is_data() {
        "wrong-type"
    } else {
        "syntax"
    };
    FormatError::at(text, offset, code, reason)
}

fn read_table(network: &Network, row: &TableRow) -> Result<Table, String> {
    if !(1..=BITS_MAX).contains(&row.bits) {
        return Err(format!(".bits: {} is outside 1 to {BITS_MAX}", row.bits));
    }
    let mut table = Table {
        name: row.name.clone(),
        bits: row.bits,
        never_back: row.never_back,
        atoms: Vec::new(),
        choices: BTreeMap::new(),
        ports: Vec::new(),
    };
    let mut entries: BTreeMap<u32, BTreeMap<Prefix, u32>> = BTreeMap::new();
    for (at, switch) in row.switches.iter().enumerate() {
        let name = match &switch.switch {
            Name::Text(name) => name.clone(),
            Name::Id(id) => format!("s{id}"),
        };
        let found = network.find(&name).filter(|node| network.is_switch(*node));
        let Some(node) = found else {
            let some = network.some_names(true);
            return Err(format!(
                ".switches[{at}]: there is no switch \"{name}\"; there are {some}"
            ));
        };
        if entries.contains_key(&node) {
            return Err(format!(".switches[{at}]: switch {name} is given twice"));
        }
        let own = entries.entry(node).or_default();
        for (place, entry) in switch.entries.iter().enumerate() {
            let fail = |reason| Err(format!(".switches[{at}].entries[{place}]{reason}"));
            let prefix = match read_key(&entry.key, row.bits) {
                Ok(prefix) => prefix,
                Err(reason) => return fail(format!(".key: {reason}")),
            };
            if let Some(port) = entry.ports.iter().find(|port| usize::from(**port) >= PORTS) {
                return fail(format!(".ports: {port} is outside 0 to {}", PORTS - 1));
            }
            if own.insert(prefix, table.ports.len() as u32).is_some() {
                return fail(format!(": key {} is given twice", entry.key));
            }
            table.ports.push(entry.ports.clone());
        }
    }
    table.atoms = atoms(entries.values().flat_map(BTreeMap::keys));
    if table.atoms.len().saturating_mul(entries.len()) > CELLS_MAX {
        return Err(format!(
            ": {} destinations in {} switches are more than {CELLS_MAX} together",
            table.atoms.len(),
            entries.len()
        ));
    }
    for (node, own) in entries {
        let choices = table.choose(&own);
        table.choices.insert(node, choices);
    }
    Ok(table)
}

/// `0x0a000100/24`, `10.0.1.0/24`, or a number; without a length all bits count.
fn read_key(key: &str, bits: u32) -> Result<Prefix, String> {
    let (value, length) = match key.split_once('/') {
        Some((value, length)) => (value, Some(length)),
        None => (key, None),
    };
    let number = match value.strip_prefix("0x") {
        Some(digits) if !digits.starts_with('+') => u128::from_str_radix(digits, 16).ok(),
        _ if value.contains('.') => dotted(value),
        _ => value
            .bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| value.parse().ok())
            .flatten(),
    };
    let Some(number) = number else {
        return Err(format!(
            "\"{key}\" is not a key; keys are 0x0a000100/24, 10.0.1.0/24 or a number"
        ));
    };
    let length = match length.map(str::parse::<u32>) {
        None => bits,
        Some(Ok(length)) if length <= bits => length,
        Some(_) => return Err(format!("\"{key}\" has a length outside 0 to {bits}")),
    };
    let all = u128::MAX >> (BITS_MAX - bits);
    if number > all {
        return Err(format!("\"{key}\" has more than {bits} bits"));
    }
    let free = match bits - length {
        BITS_MAX => u128::MAX,
        free => (1u128 << free) - 1,
    };
    if number & free != 0 {
        return Err(format!("\"{key}\" has bits behind its length {length}"));
    }
    Ok(Prefix {
        first: number,
        last: number | free,
    })
}

fn dotted(value: &str) -> Option<u128> {
    let mut parts = value.split('.').map(|part| part.parse::<u8>().ok());
    let mut number = 0u128;
    for _ in 0..4 {
        number = number << 8 | u128::from(parts.next()??);
    }
    parts.next().is_none().then_some(number)
}

/// The values that some prefix holds, cut wherever one begins or ends.
fn atoms<'p>(prefixes: impl Iterator<Item = &'p Prefix>) -> Vec<Prefix> {
    // Where a prefix begins or another has just ended, and how many begin there less those
    // that end before.
    let mut cuts: BTreeMap<u128, i64> = BTreeMap::new();
    let mut to_the_end = 0;
    for prefix in prefixes {
        *cuts.entry(prefix.first).or_default() += 1;
        match prefix.last.checked_add(1) {
            Some(after) => *cuts.entry(after).or_default() -= 1,
            None => to_the_end += 1,
        }
    }
    let mut atoms = Vec::new();
    let (mut open, mut first) = (0, 0);
    for (at, change) in cuts {
        if open > 0 {
            atoms.push(Prefix {
                first,
                last: at - 1,
            });
        }
        (open, first) = (open + change, at);
    }
    if to_the_end > 0 {
        atoms.push(Prefix {
            first,
            last: u128::MAX,
        });
    }
    atoms
}

impl Table {
    /// The entry of one switch for each destination: prefixes lie in each other or apart,
    /// so that the last one that began is the longest.
    fn choose(&self, own: &BTreeMap<Prefix, u32>) -> Vec<u32> {
        let mut rows: Vec<(&Prefix, u32)> =
            own.iter().map(|(prefix, entry)| (prefix, *entry)).collect();
        rows.sort_by_key(|(prefix, _)| (prefix.first, std::cmp::Reverse(prefix.last)));
        let mut rows = rows.into_iter().peekable();
        let mut open: Vec<(u128, u32)> = Vec::new();
        let choice = |atom: &Prefix| {
            while let Some((prefix, entry)) = rows.next_if(|(prefix, _)| prefix.first <= atom.first)
            {
                while open.last().is_some_and(|(last, _)| *last < prefix.first) {
                    open.pop();
                }
                open.push((prefix.last, entry));
            }
            while open.last().is_some_and(|(last, _)| *last < atom.first) {
                open.pop();
            }
            open.last().map_or(NO_ENTRY, |(_, entry)| *entry)
        };
        self.atoms.iter().map(choice).collect()
    }

    fn value(&self, value: u128) -> String {
        match self.bits {
            32 => {
                let bytes = (value as u32).to_be_bytes();
                bytes.map(|byte| byte.to_string()).join(".")
            }
            bits => format!("{value:#0width$x}", width = 2 + bits.div_ceil(4) as usize),
        }
    }
}

impl Forwarding for Table {
    fn destinations(&self) -> u32 {
        self.atoms.len() as u32
    }

    fn out(&self, switch: u32, destination: u32) -> Out<'_> {
        let entry = self
            .choices
            .get(&switch)
            .map_or(NO_ENTRY, |choices| choices[destination as usize]);
        match self.ports.get(entry as usize).map(Vec::as_slice) {
            None => Out::Nowhere,
            Some([]) => Out::Dropped,
            Some(ports) => Out::Ports(ports),
        }
    }

    fn end(&self, _: u32) -> Option<u32> {
        None
    }

    fn name(&self, destination: u32) -> String {
        let Prefix { first, last } = self.atoms[destination as usize];
        let name = &self.name;
        let size = (last - first).wrapping_add(1);
        if first == last {
            return format!("{name} {}", self.value(first));
        }
        let is_prefix = (size == 0 || size.is_power_of_two()) && first & (last - first) == 0;
        if is_prefix {
            let free = (last - first).count_ones();
            format!("{name} {}/{}", self.value(first), self.bits - free)
        } else {
            format!("{name} {} to {}", self.value(first), self.value(last))
        }
    }

    fn never_back(&self) -> bool {
        self.never_back
    }

    fn has_table(&self, switch: u32) -> bool {
        self.choices.contains_key(&switch)
    }
}

#[cfg(test)]
mod tests {
    use super::{NO_ENTRY, Prefix, Table, atoms, read_key};
    use std::collections::BTreeMap;

    /// Every set of prefixes of three bits: each value is in one destination at most, and the
    /// entry is the longest prefix that holds it.
    #[test]
    fn the_longest_prefix_counts() {
        let all: Vec<Prefix> = (0..=3u32)
            .flat_map(|length| {
                (0..1u128 << length)
                    .map(move |high| high << (3 - length))
                    .map(move |value| read_key(&format!("{value}/{length}"), 3).unwrap())
            })
            .collect();
        assert_eq!(all.len(), 15);
        for chosen in 0u32..1 << 15 {
            let own: BTreeMap<Prefix, u32> = all
                .iter()
                .zip(0..)
                .filter(|(_, bit)| chosen >> bit & 1 == 1)
                .map(|(p, bit)| (*p, bit))
                .collect();
            let table = Table {
                name: String::new(),
                bits: 3,
                never_back: false,
                atoms: atoms(own.keys()),
                choices: BTreeMap::new(),
                ports: Vec::new(),
            };
            let choices = table.choose(&own);
            for value in 0..8u128 {
                let holds = |prefix: &&Prefix| (prefix.first..=prefix.last).contains(&value);
                let longest = own
                    .keys()
                    .filter(holds)
                    .min_by_key(|prefix| prefix.last - prefix.first);
                let place = table.atoms.iter().position(|atom| holds(&atom));
                let entry = place.map_or(NO_ENTRY, |place| choices[place]);
                assert_eq!(
                    entry,
                    longest.map_or(NO_ENTRY, |prefix| own[prefix]),
                    "{chosen:015b} {value}"
                );
            }
        }
    }
}
