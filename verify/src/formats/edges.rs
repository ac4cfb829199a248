//! Edge lists: a link a line.
//!
//! ```text
//! # from here to the end of the line is a comment; blank lines count for nothing
//! switch NODE [PORTS] ["name"]     a switch; with no such line, switches are those of the links
//! host NODE NODE[:PORT] ["name"]   a host and where it hangs
//! NODE[:PORT] NODE[:PORT]          a link between two switches
//! grid 4x4 [wraps] [unidirectional]
//! kind "torus:4"                   what it was generated from
//! ```
//!
//! A NODE is a word without `:`, `,`, `#` and quotes. Words are apart by spaces or a comma.
//! A port that is not given is the lowest free one, hosts first; PORTS not given are as many
//! as the switch uses. In names in quotes, `\"` and `\\` stand for `"` and `\`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::document::Document;
use super::draft::{Draft, DraftHost, DraftLink, DraftSwitch, Origin};
use super::error::FormatError;
use super::numbering::number;
use super::place::{Line, lines};
use wormcast_routing::topology::Grid;
use wormcast_wire::{
    HOST_ID_MAX, HostId, PORT_ID_MAX, PortId, SWITCH_ID_MAX, SWITCH_PORTS_MAX, SwitchId,
};

struct Token {
    offset: usize,
    text: String,
    quoted: bool,
}

struct WordSwitch {
    ports: Option<u16>,
    name: Option<String>,
    offset: usize,
}

struct WordHost {
    switch: (String, Option<PortId>),
    name: Option<String>,
    offset: usize,
}

struct WordLink {
    ends: [(String, Option<PortId>); 2],
    offset: usize,
}

/// What an edge list says, nodes by their words.
struct EdgeList<'t> {
    text: &'t str,
    switches: BTreeMap<String, WordSwitch>,
    hosts: BTreeMap<String, WordHost>,
    links: Vec<WordLink>,
    draft: Draft,
}

pub(super) fn read(text: &str) -> Result<Draft, FormatError> {
    let mut list = EdgeList {
        text,
        switches: BTreeMap::new(),
        hosts: BTreeMap::new(),
        links: Vec::new(),
        draft: Draft::default(),
    };
    for line in lines(text) {
        let tokens = tokenize(text, line)?;
        let Some(first) = tokens.first() else {
            continue;
        };
        let rest = &tokens[1..];
        match first.text.as_str() {
            "switch" if !first.quoted => list.read_switch(first.offset, rest)?,
            "host" if !first.quoted => list.read_host(first.offset, rest)?,
            "grid" if !first.quoted => list.read_grid(first.offset, rest)?,
            "kind" if !first.quoted => match rest {
                [kind] => list.draft.kind = Some(kind.text.clone()),
                _ => return Err(list.wrong(first.offset, "kind \"torus:4\"")),
            },
            _ => list.read_link(&tokens)?,
        }
    }
    list.into_draft()
}

impl EdgeList<'_> {
    fn error(&self, offset: usize, code: &'static str, reason: String) -> FormatError {
        FormatError::at(self.text, offset, code, reason)
    }

    fn wrong(&self, offset: usize, form: &str) -> FormatError {
        let line = self.text[offset..].lines().next().unwrap_or_default();
        let shown: String = line.chars().take(40).collect();
        let reason = format!("\"{}\" is not of the form {form}", shown.trim_end());
        self.error(offset, "syntax", reason)
    }

    fn read_switch(&mut self, offset: usize, rest: &[Token]) -> Result<(), FormatError> {
        let (rest, name) = split_name(rest);
        let (node, ports) = match rest {
            [node] => (node, None),
            [node, ports] => (node, Some(self.bounded(ports, 1, SWITCH_PORTS_MAX)?)),
            _ => return Err(self.wrong(offset, "switch NODE [PORTS] [\"name\"]")),
        };
        let word = self.node(node)?;
        let switch = WordSwitch {
            ports,
            name,
            offset,
        };
        if self.switches.insert(word, switch).is_some() {
            let reason = format!("switch {} is given twice", node.text);
            return Err(self.error(node.offset, "duplicate-switch", reason));
        }
        Ok(())
    }

    fn read_host(&mut self, offset: usize, rest: &[Token]) -> Result<(), FormatError> {
        let (rest, name) = split_name(rest);
        let [node, switch] = rest else {
            return Err(self.wrong(offset, "host NODE NODE[:PORT] [\"name\"]"));
        };
        let word = self.node(node)?;
        let host = WordHost {
            switch: self.end(switch)?,
            name,
            offset,
        };
        if self.hosts.insert(word, host).is_some() {
            let reason = format!("host {} is given twice", node.text);
            return Err(self.error(node.offset, "duplicate-host", reason));
        }
        Ok(())
    }

    fn read_grid(&mut self, offset: usize, rest: &[Token]) -> Result<(), FormatError> {
        let form = "grid 4x4 [wraps] [unidirectional]";
        let words: Vec<&str> = rest.iter().map(|token| token.text.as_str()).collect();
        let grid = parse_grid(&words).ok_or_else(|| self.wrong(offset, form))?;
        self.draft.grid = Some(grid);
        Ok(())
    }

    fn read_link(&mut self, tokens: &[Token]) -> Result<(), FormatError> {
        let offset = tokens[0].offset;
        let [a, b] = tokens else {
            let form = "NODE[:PORT] NODE[:PORT], a line of an edge list";
            return Err(self.wrong(offset, form));
        };
        let ends = [self.end(a)?, self.end(b)?];
        self.links.push(WordLink { ends, offset });
        Ok(())
    }

    fn node(&self, token: &Token) -> Result<String, FormatError> {
        if token.quoted || token.text.contains(':') {
            let reason = format!(
                "\"{}\" is not a node; a node is a word without : and quotes",
                token.text
            );
            return Err(self.error(token.offset, "syntax", reason));
        }
        Ok(token.text.clone())
    }

    fn end(&self, token: &Token) -> Result<(String, Option<PortId>), FormatError> {
        let Some((node, port)) = token.text.split_once(':') else {
            return Ok((self.node(token)?, None));
        };
        if token.quoted || node.is_empty() {
            let reason = format!("\"{}\" is not of the form NODE[:PORT]", token.text);
            return Err(self.error(token.offset, "syntax", reason));
        }
        let port = Token {
            offset: token.offset + node.len() + 1,
            text: port.to_owned(),
            quoted: false,
        };
        let port = self.bounded(&port, 0, u16::from(PORT_ID_MAX))?;
        Ok((node.to_owned(), PortId::new(port as u8)))
    }

    fn bounded(&self, token: &Token, least: u16, most: u16) -> Result<u16, FormatError> {
        if token.text.is_empty() || !token.text.bytes().all(|byte| byte.is_ascii_digit()) {
            let reason = format!("\"{}\" is not a number from {least} to {most}", token.text);
            return Err(self.error(token.offset, "syntax", reason));
        }
        let number = token.text.parse().ok();
        number
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| {
                let reason = format!("{} is outside {least} to {most}", token.text);
                self.error(token.offset, "outside-bounds", reason)
            })
    }

    fn into_draft(mut self) -> Result<Draft, FormatError> {
        let declared = !self.switches.is_empty();
        let hosts = self
            .hosts
            .values()
            .map(|host| (&host.switch.0, host.offset));
        let links = self
            .links
            .iter()
            .flat_map(|link| link.ends.iter().map(|(word, _)| (word, link.offset)));
        let mut implied = BTreeMap::new();
        for (word, offset) in hosts.chain(links) {
            if declared && !self.switches.contains_key(word) {
                let some: Vec<&str> = self.switches.keys().map(String::as_str).take(8).collect();
                let reason = format!(
                    "there is no switch {word}; there are {}, …",
                    some.join(", ")
                );
                return Err(self.error(offset, "unknown-switch", reason));
            }
            implied.entry(word.clone()).or_insert(offset);
        }
        if !declared {
            self.switches
                .extend(implied.into_iter().map(|(word, offset)| {
                    let switch = WordSwitch {
                        ports: None,
                        name: None,
                        offset,
                    };
                    (word, switch)
                }));
        }
        for (count, most, code) in [
            (self.switches.len(), SWITCH_ID_MAX, "too-many-switches"),
            (self.hosts.len(), HOST_ID_MAX, "outside-bounds"),
        ] {
            if count > usize::from(most) + 1 {
                let reason = format!(
                    "{count} nodes of a kind are more than {}",
                    usize::from(most) + 1
                );
                return Err(FormatError::new(code, reason));
            }
        }
        Ok(self.number_nodes())
    }

    fn number_nodes(self) -> Draft {
        let mut draft = self.draft;
        let words: Vec<&str> = self.switches.keys().map(String::as_str).collect();
        let ids = number(&words, SWITCH_ID_MAX);
        let switch_id = |word: &str| SwitchId(ids[word] as u16);
        for (word, switch) in &self.switches {
            let id = switch_id(word);
            draft.switches.push(DraftSwitch {
                id,
                ports: switch.ports,
                origin: Origin::Byte(switch.offset),
            });
            let name = switch
                .name
                .as_ref()
                .or((*word != id.to_string()).then_some(word));
            draft
                .names
                .switches
                .extend(name.map(|name| (id, name.clone())));
        }
        let words: Vec<&str> = self.hosts.keys().map(String::as_str).collect();
        let host_ids = number(&words, HOST_ID_MAX);
        for (word, host) in &self.hosts {
            let id = HostId(host_ids[word.as_str()] as u16);
            draft.hosts.push(DraftHost {
                id,
                switch: switch_id(&host.switch.0),
                port: host.switch.1,
                transit: true,
                origin: Origin::Byte(host.offset),
            });
            let name = host
                .name
                .as_ref()
                .or((*word != id.to_string()).then_some(word));
            draft
                .names
                .hosts
                .extend(name.map(|name| (id, name.clone())));
        }
        draft.hosts.sort_by_key(|host| host.id);
        for link in self.links {
            let [a, b] = link.ends;
            draft.links.push(DraftLink {
                a: (switch_id(&a.0), a.1),
                b: (switch_id(&b.0), b.1),
                origin: Origin::Byte(link.offset),
            });
        }
        draft
    }
}

/// The last word, if it is a name in quotes.
fn split_name(tokens: &[Token]) -> (&[Token], Option<String>) {
    match tokens {
        [front @ .., name] if name.quoted => (front, Some(name.text.clone())),
        _ => (tokens, None),
    }
}

fn tokenize(text: &str, line: Line<'_>) -> Result<Vec<Token>, FormatError> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut characters = line.text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let offset = line.offset + at;
        match character {
            '#' => break,
            ',' => {}
            '"' => {
                let mut name = String::new();
                loop {
                    match characters.next() {
                        Some((_, '"')) => break,
                        Some((_, '\\')) => {
                            name.extend(characters.next().map(|(_, character)| character))
                        }
                        Some((_, character)) => name.push(character),
                        None => {
                            let reason = "the name in quotes has no end".to_owned();
                            return Err(FormatError::at(text, offset, "syntax", reason));
                        }
                    }
                }
                tokens.push(Token {
                    offset,
                    text: name,
                    quoted: true,
                });
            }
            space if space.is_whitespace() => {}
            _ => {
                let mut word = String::from(character);
                let ends =
                    |character: char| character.is_whitespace() || "#,\"".contains(character);
                while let Some((_, character)) =
                    characters.next_if(|(_, character)| !ends(*character))
                {
                    word.push(character);
                }
                tokens.push(Token {
                    offset,
                    text: word,
                    quoted: false,
                });
            }
        }
    }
    Ok(tokens)
}

/// `4x4 wraps unidirectional`, as words.
pub(super) fn parse_grid(words: &[&str]) -> Option<Grid> {
    let (radix, flags) = words.split_first()?;
    let radix: Option<Vec<u16>> = radix
        .split('x')
        .map(|radix| radix.parse().ok().filter(|radix| *radix > 0))
        .collect();
    let known = flags
        .iter()
        .all(|flag| ["wraps", "unidirectional"].contains(flag));
    known.then_some(())?;
    Some(Grid {
        radix: radix?,
        wraps: flags.contains(&"wraps"),
        unidirectional: flags.contains(&"unidirectional"),
    })
}

/// As [`parse_grid`] reads it.
pub(super) fn format_grid(grid: &Grid) -> String {
    let radix: Vec<String> = grid.radix.iter().map(ToString::to_string).collect();
    let mut text = radix.join("x");
    for (flag, set) in [
        ("wraps", grid.wraps),
        ("unidirectional", grid.unidirectional),
    ] {
        if set {
            text.push(' ');
            text.push_str(flag);
        }
    }
    text
}

pub(super) fn write(document: &Document) -> Result<String, FormatError> {
    let topology = &document.topology;
    let mut text = String::from(
        "# switch ID PORTS [\"name\"], host ID SWITCH:PORT [\"name\"], then a link a line\n",
    );
    if let Some(kind) = &document.kind {
        let _ = writeln!(text, "kind{}", quote(Some(kind))?);
    }
    if let Some(grid) = topology.grid() {
        let _ = writeln!(text, "grid {}", format_grid(grid));
    }
    for switch in topology.switches() {
        let name = quote(document.names.switches.get(&switch.id))?;
        let _ = writeln!(text, "switch {} {}{name}", switch.id, switch.ports);
    }
    for host in topology.hosts() {
        let name = quote(document.names.hosts.get(&host.id))?;
        let _ = writeln!(text, "host {} {}:{}{name}", host.id, host.switch, host.port);
    }
    for link in topology.links() {
        let _ = writeln!(
            text,
            "{}:{} {}:{}",
            link.a, link.a_port, link.b, link.b_port
        );
    }
    Ok(text)
}

fn quote(name: Option<&String>) -> Result<String, FormatError> {
    let Some(name) = name else {
        return Ok(String::new());
    };
    if name.contains(char::is_control) {
        let reason = format!("the name {name:?} does not fit on a line");
        return Err(FormatError::new("unsupported", reason));
    }
    Ok(format!(
        " \"{}\"",
        name.replace('\\', "\\\\").replace('"', "\\\"")
    ))
}
