//! The lines of a net list.

use super::error::FormatError;
use super::place::{Line, lines};

/// Largest exponent of the number of addresses of a port (IBA 14.2.5.6, LMC has three bits).
const LMC_MAX: u8 = 7;
/// Addresses of one port each; those above are of multicast groups (IBA 4.1.3).
pub(super) const UNICAST_LIDS: std::ops::RangeInclusive<u16> = 1..=0xBFFF;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Switch,
    Adapter,
    /// Leads to other subnets; what is sent there ends at it.
    Router,
}

/// A line that says something about the net.
pub(super) enum Entry<'a> {
    Node {
        name: &'a str,
        kind: Kind,
        ports: u16,
        description: Option<&'a str>,
        lid: Option<Lid>,
        offset: usize,
    },
    /// A port of the last node.
    Port(PortLine<'a>),
    /// The beginning of a chassis (`ibnetdiscover -g`), whose nodes may come several times.
    Chassis,
}

pub(super) struct PortLine<'a> {
    pub port: u8,
    pub remote: &'a str,
    pub remote_port: u8,
    /// Of the port itself, which the lines of adapters tell.
    pub lid: Option<Lid>,
    pub offset: usize,
}

/// The addresses of a port: `1 << lmc` of them, from `first`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lid {
    pub first: u16,
    pub lmc: u8,
}

/// Words that begin the header of a node.
const HEADERS: [(&str, Kind); 5] = [
    ("Switch", Kind::Switch),
    ("Ca", Kind::Adapter),
    ("Hca", Kind::Adapter),
    ("Rt", Kind::Router),
    ("Router", Kind::Router),
];
/// Heading of the nodes that are in no chassis (`ibnetdiscover -g`).
const NO_CHASSIS: &str = "Non-Chassis Nodes";
/// Settings of a node that come before its header; its name says the same.
const SETTINGS: [&str; 6] = [
    "vendid",
    "devid",
    "sysimgguid",
    "switchguid",
    "caguid",
    "rtguid",
];

/// Whether a line can be in no other format than a net list.
pub(super) fn is_net_list_line(line: &str) -> bool {
    let is_header = HEADERS.iter().any(|(word, _)| {
        let rest = line.strip_prefix(word).unwrap_or_default();
        rest.starts_with([' ', '\t']) && rest.contains('"')
    });
    is_header || is_setting(line)
}

fn is_setting(line: &str) -> bool {
    SETTINGS.iter().any(|word| {
        line.strip_prefix(word)
            .is_some_and(|rest| rest.starts_with('='))
    })
}

/// `Chassis 1`, `Chassis 1 (guid 0x2c90200412345)`.
fn is_chassis(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let number = |word: Option<&str>| word.is_some_and(|word| word.parse::<u16>().is_ok());
    words.next() == Some("Chassis")
        && number(words.next())
        && matches!(words.next(), None | Some("(guid"))
}

pub(super) fn entries(text: &str) -> impl Iterator<Item = Result<Entry<'_>, FormatError>> {
    lines(text).filter_map(move |line| {
        let body = line.text.trim();
        let is_heading = body == NO_CHASSIS || body.starts_with("Hostname: ");
        if body.is_empty() || body.starts_with('#') || is_setting(body) || is_heading {
            return None;
        }
        if is_chassis(body) {
            return Some(Ok(Entry::Chassis));
        }
        Some(Cursor::new(text, line).entry())
    })
}

/// Reads a line from left to right.
struct Cursor<'a> {
    text: &'a str,
    line: Line<'a>,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn new(text: &'a str, line: Line<'a>) -> Cursor<'a> {
        let mut cursor = Cursor { text, line, at: 0 };
        cursor.skip_space();
        cursor
    }

    fn entry(mut self) -> Result<Entry<'a>, FormatError> {
        if self.rest().starts_with('[') {
            return self.port_line().map(Entry::Port);
        }
        let offset = self.offset();
        let word = self.take_while(|character| character.is_ascii_alphabetic());
        let header = HEADERS.iter().find(|(name, _)| *name == word);
        let kind = match header {
            Some((_, kind)) => *kind,
            None => {
                let reason = format!(
                    "\"{}\" begins no line of a net list; lines are Switch, Ca or Rt with ports and \
                     name, and [port] \"name\"[port]",
                    self.line.text.split_whitespace().next().unwrap_or_default()
                );
                return Err(FormatError::at(self.text, offset, "syntax", reason));
            }
        };
        self.skip_space();
        let ports = self.number("the number of ports", u16::MAX)?;
        self.skip_space();
        let name = self.quoted()?;
        self.skip_space();
        let comment = self.comment()?;
        Ok(Entry::Node {
            name,
            kind,
            ports,
            description: quoted_in(comment),
            lid: comment.rsplit('"').next().and_then(lid_in),
            offset,
        })
    }

    fn port_line(&mut self) -> Result<PortLine<'a>, FormatError> {
        let offset = self.offset();
        let port = self.bracketed_port()?;
        self.skip_notes()?;
        let remote = self.quoted()?;
        self.skip_space();
        let remote_port = self.bracketed_port()?;
        self.skip_notes()?;
        let comment = self.comment()?;
        Ok(PortLine {
            port,
            remote,
            remote_port,
            lid: comment.split('"').next().and_then(lid_in),
            offset,
        })
    }

    fn offset(&self) -> usize {
        self.line.offset + self.at
    }

    fn rest(&self) -> &'a str {
        &self.line.text[self.at..]
    }

    fn expected(&self, what: &str) -> FormatError {
        let found = match self.rest().split_whitespace().next() {
            Some(word) => format!("\"{word}\""),
            None => "the end of the line".to_owned(),
        };
        let reason = format!("{found} is not {what}");
        FormatError::at(self.text, self.offset(), "syntax", reason)
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest
            .find(|character| !wanted(character))
            .unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn skip_space(&mut self) {
        self.take_while(char::is_whitespace);
    }

    fn skip(&mut self, character: char, what: &str) -> Result<(), FormatError> {
        if !self.rest().starts_with(character) {
            return Err(self.expected(what));
        }
        self.at += character.len_utf8();
        Ok(())
    }

    fn number(&mut self, what: &str, most: u16) -> Result<u16, FormatError> {
        let start = self.at;
        let digits = self.take_while(|character| character.is_ascii_digit());
        if digits.is_empty() {
            return Err(self.expected(what));
        }
        let number = digits.parse().ok().filter(|number| *number <= most);
        number.ok_or_else(|| {
            let reason = format!("{digits} is outside 0 to {most}");
            FormatError::at(
                self.text,
                self.line.offset + start,
                "outside-bounds",
                reason,
            )
        })
    }

    fn bracketed_port(&mut self) -> Result<u8, FormatError> {
        self.skip('[', "a port in brackets")?;
        let port = self.number("a port", u16::from(u8::MAX))?;
        self.skip(']', "the end of a port, ]")?;
        Ok(port as u8)
    }

    fn quoted(&mut self) -> Result<&'a str, FormatError> {
        let start = self.at;
        self.skip('"', "a name in quotes")?;
        let name = self.take_while(|character| character != '"');
        if name.is_empty() || self.skip('"', "").is_err() {
            self.at = start;
            return Err(self.expected("a name in quotes"));
        }
        Ok(name)
    }

    /// What may stand around a name: a GUID in parentheses, an external port in brackets,
    /// settings such as `w=12`.
    fn skip_notes(&mut self) -> Result<(), FormatError> {
        loop {
            self.skip_space();
            match self.rest().chars().next() {
                Some('(') => {
                    self.take_while(|character| character != ')');
                    self.skip(')', "the end of a GUID, )")?;
                }
                Some('[') => {
                    self.take_while(|character| character != ']');
                    self.skip(']', "the end of a port, ]")?;
                }
                Some(character) if character.is_ascii_alphabetic() => {
                    let start = self.at;
                    let word = self.take_while(|character| !character.is_whitespace());
                    if !word.contains('=') {
                        self.at = start;
                        return Err(self.expected("a setting such as w=4"));
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    /// The comment, or nothing; anything else is refused.
    fn comment(&self) -> Result<&'a str, FormatError> {
        match self.rest().chars().next() {
            None => Ok(""),
            Some('#') => Ok(self.rest()),
            Some(_) => Err(self.expected("the end of the line or a comment")),
        }
    }
}

/// The first text in quotes.
fn quoted_in(comment: &str) -> Option<&str> {
    let (_, rest) = comment.split_once('"')?;
    let (quoted, _) = rest.split_once('"')?;
    (!quoted.trim().is_empty()).then_some(quoted)
}

/// `lid 10 lmc 0` among other words; nothing where the port has no address yet.
fn lid_in(words: &str) -> Option<Lid> {
    let value = |name: &str| {
        let mut words = words.split_whitespace();
        words.find(|word| *word == name)?;
        words.next()
    };
    let first = value("lid")?.parse().ok()?;
    let lmc = value("lmc")?.parse().ok().filter(|lmc| *lmc <= LMC_MAX)?;
    (UNICAST_LIDS.contains(&first)).then_some(Lid { first, lmc })
}
