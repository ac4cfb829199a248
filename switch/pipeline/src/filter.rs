//! Which packets are traced.

use std::fmt;
use std::str::FromStr;

use super::config::limits;

/// Byte matches of one filter.
pub const MATCHES_MAX: usize = 8;

/// Bytes of one byte match.
pub const MATCH_BYTES_MAX: usize = 64;

/// Furthest byte a match may begin at: the longest packet.
const OFFSET_MAX: usize = limits::PACKET_BYTES_MAX - 1;

const GRAMMAR: &str = "all, or some of port=N, ethertype=N, match=OFFSET:HEX[/MASK], every=N, \
                       count=N, with commas between (like port=1,ethertype=0x0800,count=10)";

/// Bytes that a packet must have at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ByteMatch {
    offset: usize,
    value: Vec<u8>,
    mask: Vec<u8>,
}

/// What a packet must be like to be traced; the default chooses every packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    port: Option<u16>,
    ethertype: Option<u16>,
    matches: Vec<ByteMatch>,
    /// Of the packets that match: the first and every so manieth after it.
    every: Option<u64>,
    count: Option<u64>,
    messages_only: bool,
}

/// How a trace is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Lines for people, worded as BMv2's log.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(format!("`{text}` is not a format: text or json")),
        }
    }
}

impl Filter {
    /// Chooses every packet, for the sake of what the program says with `log_msg`: nothing
    /// is recorded of programs that never do.
    pub fn messages() -> Self {
        Self {
            messages_only: true,
            ..Self::default()
        }
    }

    /// Whether this is [`Filter::messages`].
    pub fn is_messages_only(&self) -> bool {
        self.messages_only
    }

    /// Adds a condition, named as in the text of a filter.
    ///
    /// # Errors
    /// Says what is wrong with name or value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "port" => self.port = Some(bounded(name, value, 0, 0xffff)? as u16),
            "ethertype" => self.ethertype = Some(bounded(name, value, 0, 0xffff)? as u16),
            "every" => self.every = Some(bounded(name, value, 1, u64::MAX)?),
            "count" => self.count = Some(bounded(name, value, 1, u64::MAX)?),
            "match" if self.matches.len() == MATCHES_MAX => {
                return Err(format!("a filter has at most {MATCHES_MAX} byte matches"));
            }
            "match" => self.matches.push(byte_match(value)?),
            _ => return Err(format!("`{name}` is no condition of a filter: {GRAMMAR}")),
        }
        Ok(())
    }

    /// Packets to trace; `None`: as long as somebody listens.
    pub fn count(&self) -> Option<u64> {
        self.count
    }

    /// Of how many packets that match one is traced.
    pub fn every(&self) -> u64 {
        self.every.unwrap_or(1)
    }

    /// Whether a packet fits, regardless of `every` and `count`.
    pub fn fits(&self, packet: &[u8], port: u16) -> bool {
        self.port.is_none_or(|wanted| wanted == port)
            && self
                .ethertype
                .is_none_or(|wanted| ethertype(packet) == Some(wanted))
            && self.matches.iter().all(|one| one.fits(packet))
    }
}

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut filter = Self::default();
        if text == "all" {
            return Ok(filter);
        }
        for condition in text.split(',') {
            let Some((name, value)) = condition.split_once('=') else {
                return Err(format!(
                    "`{condition}` is no condition of a filter: {GRAMMAR}"
                ));
            };
            filter.set(name, value)?;
        }
        Ok(filter)
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex =
            |bytes: &[u8]| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
        let mut conditions = Vec::new();
        conditions.extend(self.port.map(|port| format!("port={port}")));
        conditions.extend(self.ethertype.map(|kind| format!("ethertype={kind:#06x}")));
        for one in &self.matches {
            let (offset, value, mask) = (one.offset, hex(&one.value), hex(&one.mask));
            conditions.push(format!("match={offset}:{value}/{mask}"));
        }
        conditions.extend(self.every.map(|every| format!("every={every}")));
        conditions.extend(self.count.map(|count| format!("count={count}")));
        if conditions.is_empty() {
            return f.write_str("all");
        }
        f.write_str(&conditions.join(","))
    }
}

impl ByteMatch {
    fn fits(&self, packet: &[u8]) -> bool {
        let bytes = packet.get(self.offset..self.offset + self.value.len());
        bytes.is_some_and(|bytes| {
            let pairs = bytes.iter().zip(&self.value).zip(&self.mask);
            pairs
                .into_iter()
                .all(|((byte, value), mask)| byte & mask == value & mask)
        })
    }
}

/// The EtherType, behind up to two VLAN tags (IEEE 802.1Q, 9.6).
fn ethertype(packet: &[u8]) -> Option<u16> {
    let at = |offset: usize| {
        let bytes = packet.get(offset..offset + 2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    };
    let mut offset = 12;
    for _ in 0..2 {
        if !matches!(at(offset), Some(0x8100 | 0x88a8)) {
            break;
        }
        offset += 4;
    }
    at(offset)
}

fn bounded(name: &str, text: &str, low: u64, high: u64) -> Result<u64, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    number
        .filter(|number| (low..=high).contains(number))
        .ok_or_else(|| match high {
            u64::MAX => format!("{name}: `{text}` is not a number from {low} up"),
            _ => format!("{name}: `{text}` is not a number from {low} to {high}"),
        })
}

fn byte_match(text: &str) -> Result<ByteMatch, String> {
    let error = || {
        format!(
            "match: `{text}` is not OFFSET:HEX[/MASK] with an offset up to {OFFSET_MAX} and 1 to \
             {MATCH_BYTES_MAX} bytes (like 12:0800 or 14:40/f0)"
        )
    };
    let (offset, bytes) = text.split_once(':').ok_or_else(error)?;
    let offset = offset.parse().ok().filter(|offset| *offset <= OFFSET_MAX);
    let (value, mask) = match bytes.split_once('/') {
        Some((value, mask)) => (hex(value), hex(mask)),
        None => (hex(bytes), hex(bytes).map(|bytes| vec![0xff; bytes.len()])),
    };
    match (offset, value, mask) {
        (Some(offset), Some(value), Some(mask)) if value.len() == mask.len() => Ok(ByteMatch {
            offset,
            value,
            mask,
        }),
        _ => Err(error()),
    }
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let bytes = digits.len() / 2;
    if !digits.len().is_multiple_of(2) || !(1..=MATCH_BYTES_MAX).contains(&bytes) {
        return None;
    }
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let pairs = digits.chunks_exact(2);
    pairs
        .map(|pair| Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(text: &str) -> Filter {
        text.parse()
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn packets_are_chosen_by_all_conditions() {
        let mut packet = [0; 60];
        packet[12..20].copy_from_slice(&[0x81, 0, 0, 7, 0x08, 0, 0x45, 0]);
        for (text, fits) in [
            ("all", true),
            ("port=3", true),
            ("port=4", false),
            ("ethertype=0x0800", true),
            ("ethertype=2048,port=3", true),
            ("ethertype=0x8100", false),
            ("match=18:45", true),
            ("match=18:40/f0", true),
            ("match=18:54", false),
            ("match=18:45,match=12:8100", true),
            ("match=18:45,match=12:8101", false),
            ("match=59:00", true),
            ("match=59:0000", false),
        ] {
            assert_eq!(filter(text).fits(&packet, 3), fits, "{text}");
        }
        assert_eq!(ethertype(&packet[..17]), None);
    }

    #[test]
    fn text_and_back() {
        for text in [
            "all",
            "port=1,ethertype=0x0800,match=14:45/ff,every=3,count=9",
        ] {
            assert_eq!(filter(text).to_string(), text);
        }
        assert_eq!(
            (filter("count=2").count(), filter("all").every()),
            (Some(2), 1)
        );
    }

    #[test]
    fn what_is_no_filter() {
        for (text, expected) in [
            ("", "`` is no condition of a filter: all, or some of"),
            ("ports=1", "`ports` is no condition of a filter"),
            (
                "port=65536",
                "port: `65536` is not a number from 0 to 65535",
            ),
            ("every=0", "every: `0` is not a number from 1 up"),
            ("match=1", "match: `1` is not OFFSET:HEX[/MASK]"),
            ("match=70000:00", "an offset up to 65790"),
            ("match=1:0", "match: `1:0` is not"),
            ("match=1:+1", "match: `1:+1` is not"),
            ("match=1:00/0000", "match: `1:00/0000` is not"),
        ] {
            let error = text.parse::<Filter>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let many = ["match=0:00"; MATCHES_MAX + 1].join(",");
        let error = many.parse::<Filter>().unwrap_err();
        assert_eq!(error, "a filter has at most 8 byte matches");
    }
}
