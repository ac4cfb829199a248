//! Paths in a CSV file, of any router.
//!
//! The first row names the columns: `path`, and if wanted `src`, `dst` and `vc`, in any
//! order; others are left alone.

use std::collections::BTreeMap;

use super::ForeignError;
use super::graph::{Channel, Graph, Verdict};
use super::network::Network;
use super::packet::Packet;
use super::path_element::{Element, doubt, elements, known, parts};
use super::rows::{Field, Row, Rows};
use super::syntax::syntax;
use crate::formats::FormatError;

/// Virtual channel where none is given.
const VC_DEFAULT: &str = "0";

/// Looks for packets that can wait for each other on the paths of a CSV file. With a
/// network its nodes and links are the only ones there are; without, what the paths say.
///
/// # Errors
/// What cannot be read, or is not in the network.
pub fn verify_paths(text: &str, network: Option<&Network>) -> Result<Verdict, ForeignError> {
    let read = || {
        let text = text.trim_start_matches('\u{feff}');
        let mut paths = Paths::new(text, network);
        paths.read()?;
        Ok(paths.finish())
    };
    read().map_err(|error| ForeignError::of(0, error))
}

struct Columns {
    path: usize,
    src: Option<usize>,
    dst: Option<usize>,
    vc: Option<usize>,
    count: usize,
}

/// A channel by node, port, node and virtual channel; numbers of names.
type Key = (u32, Option<u32>, u32, u32);

struct Paths<'a> {
    text: &'a str,
    network: Option<&'a Network>,
    graph: Graph,
    numbers: BTreeMap<String, u32>,
    channels: BTreeMap<Key, u32>,
    /// Where a port of a node leads, and the line that says so.
    behind: BTreeMap<(u32, u32), (u32, usize)>,
    /// Whether ports are given between two nodes, and the line that says so.
    has_port: BTreeMap<(u32, u32), (bool, usize)>,
    /// Whether the file tells virtual channels apart.
    any_vc: bool,
    rows: usize,
    hops: usize,
    /// Where each name is used first: as a node, or as a port.
    used: BTreeMap<String, usize>,
}

impl<'a> Paths<'a> {
    fn new(text: &'a str, network: Option<&'a Network>) -> Paths<'a> {
        Paths {
            text,
            network,
            graph: Graph::default(),
            numbers: BTreeMap::new(),
            channels: BTreeMap::new(),
            behind: BTreeMap::new(),
            has_port: BTreeMap::new(),
            any_vc: false,
            rows: 0,
            hops: 0,
            used: BTreeMap::new(),
        }
    }

    fn read(&mut self) -> Result<(), FormatError> {
        let mut rows = Rows::new(self.text);
        let Some(head) = rows.next_row()? else {
            return Err(syntax(
                self.text,
                0,
                "the file is empty; its first row names the columns, as in src,dst,path".to_owned(),
            ));
        };
        let columns = self.columns(&head)?;
        while let Some(row) = rows.next_row()? {
            if row.fields.len() != columns.count {
                let reason = format!(
                    "this row has {} fields, the first row has {}; a field with a comma needs quotes",
                    row.fields.len(),
                    columns.count
                );
                return Err(syntax(self.text, row.fields[0].offset, reason));
            }
            self.add_row(&columns, &row)?;
            self.rows += 1;
        }
        match self.rows {
            0 => Err(syntax(
                self.text,
                self.text.len(),
                "no path follows the first row".to_owned(),
            )),
            _ => self.refuse_joined(),
        }
    }

    /// Refuses a name that is those of other nodes with a sign between them. Without a network nobody knows whether
    /// it is one node.
    fn refuse_joined(&self) -> Result<(), FormatError> {
        for (name, &offset) in &self.used {
            let Some(parts) = parts(name, |part| self.used.contains_key(part)) else {
                continue;
            };
            let reason = format!(
                "\"{name}\" may be one node, or {}, which are nodes elsewhere in this file; write spaces, -> or ; \
                 between nodes, or give --topology",
                parts.join(" and ")
            );
            return Err(syntax(self.text, offset, reason));
        }
        Ok(())
    }

    fn columns(&self, head: &Row<'_>) -> Result<Columns, FormatError> {
        let place = |name: &str| {
            let mut found = head
                .fields
                .iter()
                .enumerate()
                .filter(|(_, field)| field.text.trim().eq_ignore_ascii_case(name));
            let first = found.next().map(|(place, _)| place);
            match found.next() {
                Some((_, again)) => Err(syntax(
                    self.text,
                    again.offset,
                    format!("column {name} is there twice"),
                )),
                None => Ok(first),
            }
        };
        let names: Vec<&str> = head.fields.iter().map(|field| field.text.trim()).collect();
        let Some(path) = place("path")? else {
            let reason = format!(
                "there is no column path; the first row has {}, and names at least path, as in src,dst,path",
                names.join(", ")
            );
            return Err(syntax(self.text, head.fields[0].offset, reason));
        };
        Ok(Columns {
            path,
            src: place("src")?,
            dst: place("dst")?,
            vc: place("vc")?,
            count: head.fields.len(),
        })
    }

    fn add_row(&mut self, columns: &Columns, row: &Row<'_>) -> Result<(), FormatError> {
        let field = &row.fields[columns.path];
        let (text, network) = (self.text, self.network);
        // In a field in quotes the place is that of the field.
        let fail = |field: &Field<'_>, offset: usize, reason: String| {
            let is_quoted = text[field.offset..].starts_with('"');
            Err(syntax(
                text,
                field.offset + if is_quoted { 0 } else { offset },
                reason,
            ))
        };
        // A router without a route may write this; it must not pass for a link from src to dst.
        if field.text.trim().is_empty() {
            return fail(
                field,
                0,
                "the path is empty; one without a node between its ends names both".to_owned(),
            );
        }
        let mut path = match elements(&field.text, network) {
            Ok(path) => path,
            Err((offset, reason)) => return fail(field, offset, reason),
        };
        if network.is_none()
            && let Some((offset, reason)) = doubt(&path)
        {
            return fail(field, offset, reason);
        }
        let end = |column: Option<usize>| {
            let field = column.map(|column| &row.fields[column])?;
            let name = field.text.trim();
            (!name.is_empty()).then(|| known(name, network).unwrap_or(name))
        };
        let alone = |node| Element {
            node,
            port: None,
            vc: None,
            offset: 0,
        };
        if let Some(src) =
            end(columns.src).filter(|src| path.first().is_none_or(|first| first.node != *src))
        {
            path.insert(0, alone(src));
        }
        if let Some(dst) =
            end(columns.dst).filter(|dst| path.last().is_none_or(|last| last.node != *dst))
        {
            path.push(alone(dst));
        }
        if path.len() < 2 {
            return fail(field, 0, "a path has at least two nodes".to_owned());
        }
        let last = path[path.len() - 1];
        if last.port.is_some() || last.vc.is_some() {
            return fail(
                field,
                last.offset,
                format!(
                    "the path ends at {}, and so does not leave it by a port",
                    last.node
                ),
            );
        }
        let vc = columns.vc.map(|column| row.fields[column].text.trim());
        let vc = vc.filter(|vc| !vc.is_empty());
        let packet = || Packet {
            src: path[0].node.to_owned(),
            dst: Some(last.node.to_owned()),
            key: None,
            line: Some(row.line),
        };
        if network.is_none() {
            for element in &path {
                for name in [Some(element.node), element.port].into_iter().flatten() {
                    if !self.used.contains_key(name) {
                        self.used.insert(name.to_owned(), field.offset);
                    }
                }
            }
        }
        self.hops += path.len() - 1;
        let mut held = None;
        for pair in path.windows(2) {
            let channel = match self.channel(pair[0], pair[1], vc, row.line) {
                Ok(channel) => channel,
                Err(reason) => return fail(field, pair[0].offset, reason),
            };
            if let Some(held) = held {
                self.graph.add(held, channel, packet);
            }
            held = Some(channel);
        }
        Ok(())
    }

    /// The channel between two elements of a path.
    fn channel(
        &mut self,
        from: Element<'_>,
        to: Element<'_>,
        vc: Option<&str>,
        line: usize,
    ) -> Result<u32, String> {
        self.any_vc |= from.vc.is_some() || vc.is_some();
        let vc = from.vc.or(vc).unwrap_or(VC_DEFAULT);
        let (mut port, mut to_port) = (from.port.map(str::to_owned), None);
        if let Some(network) = self.network {
            let wire = find_wire(network, from, to)?;
            port = network.wires()[wire as usize]
                .from_port
                .map(|port| port.to_string());
            to_port = network.wires()[wire as usize]
                .to_port
                .map(|port| port.to_string());
        } else if from.node == to.node {
            return Err(format!(
                "the path goes from {0} to {0}; a colon stands before a port, so names with colons need \
                 --topology",
                from.node
            ));
        }
        let (a, b) = (self.number(from.node), self.number(to.node));
        let by = port.as_ref().map(|port| self.number(port));
        let key = (a, by, b, self.number(vc));
        if self.network.is_none() {
            self.agree(from, to, (a, by, b), line)?;
        }
        if let Some(&channel) = self.channels.get(&key) {
            return Ok(channel);
        }
        let channel = self.graph.add_channel(Channel {
            from: from.node.to_owned(),
            from_port: port,
            to: to.node.to_owned(),
            to_port,
            vc: Some(vc.to_owned()),
        });
        self.channels.insert(key, channel);
        Ok(channel)
    }

    /// Without a network a port leads to one node, and between two nodes either all paths
    /// say by which port, or none: two names of one channel would hide a cycle.
    fn agree(
        &mut self,
        from: Element<'_>,
        to: Element<'_>,
        (a, by, b): (u32, Option<u32>, u32),
        line: usize,
    ) -> Result<(), String> {
        if let (Some(port), Some(by)) = (from.port, by) {
            let (known, since) = *self.behind.entry((a, by)).or_insert((b, line));
            if known != b {
                let other = self.name_of(known);
                return Err(format!(
                    "port {port} of {} leads to {} here, and to {other} in line {since}",
                    from.node, to.node
                ));
            }
        }
        let (known, since) = *self.has_port.entry((a, b)).or_insert((by.is_some(), line));
        if known != by.is_some() {
            let (here, there) = if known {
                ("no port", "one")
            } else {
                ("a port", "none")
            };
            return Err(format!(
                "from {} to {} {here} is given here, and {there} in line {since}; give it in all paths, \
                 or in none",
                from.node, to.node
            ));
        }
        Ok(())
    }

    fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.numbers.len() as u32;
        self.numbers.insert(name.to_owned(), number);
        number
    }

    fn name_of(&self, number: u32) -> &str {
        let mut names = self.numbers.iter();
        names
            .find(|(_, known)| **known == number)
            .map_or("", |(name, _)| name)
    }

    fn finish(mut self) -> Verdict {
        if !self.any_vc {
            for channel in &mut self.graph.channels {
                channel.vc = None;
            }
        }
        let checked = vec![
            ("paths", self.rows),
            ("hops", self.hops),
            ("channels", self.graph.channels.len()),
        ];
        let warnings = self.network.map(|network| network.warnings.clone());
        Verdict {
            checked,
            warnings: warnings.unwrap_or_default(),
            ..self.graph.check()
        }
    }
}

/// The wire of a network between two elements of a path.
fn find_wire(network: &Network, from: Element<'_>, to: Element<'_>) -> Result<u32, String> {
    let node = |name: &str| {
        network.find(name).ok_or_else(|| {
            let (switches, hosts) = (network.some_names(true), network.some_names(false));
            format!("there is no \"{name}\" in the topology; its switches are {switches}, its hosts {hosts}")
        })
    };
    let (a, b) = (node(from.node)?, node(to.node)?);
    let leads_there = |wire: &u32| network.wires()[*wire as usize].to == b;
    let leaving = network.all_leaving(a).iter().copied();
    let between: Vec<u32> = leaving.filter(leads_there).collect();
    let number_of = |wire: u32| network.wires()[wire as usize].from_port;
    let ports = |wires: &[u32]| {
        let ports: Vec<String> = wires
            .iter()
            .filter_map(|wire| number_of(*wire))
            .map(|port| port.to_string())
            .collect();
        ports.join(", ")
    };
    match (between.as_slice(), from.port) {
        ([], _) => Err(format!("no link leads from {} to {}", from.node, to.node)),
        (wires, Some(port)) => {
            let is_it =
                |wire: &&u32| number_of(**wire).is_none_or(|number| number.to_string() == port);
            wires.iter().find(is_it).copied().ok_or_else(|| {
                format!(
                    "port {port} of {} does not lead to {}; port {} does",
                    from.node,
                    to.node,
                    ports(wires)
                )
            })
        }
        (&[wire], None) => Ok(wire),
        (wires, None) => Err(format!(
            "several links lead from {} to {}; say by which port, as in {}:{}: {}",
            from.node,
            to.node,
            from.node,
            number_of(wires[0]).unwrap_or_default(),
            ports(wires)
        )),
    }
}
