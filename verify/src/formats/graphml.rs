//! GraphML (Brandes et al., GraphML Primer, graphml.graphdrawing.org): a graph of switches and
//! hosts; what its edges and arcs stand for says `graphml_arcs.rs`.
//!
//! Attributes (`<data>`, found by `attr.name`): of nodes `kind` (switch or host; switch if
//! not given), `ports` and `name` (or `label`, or the `y:NodeLabel` of yEd); of edges `source_port` and `target_port`
//! (or the XML attributes `sourceport`, `targetport`); of the graph `grid` and `kind` as in
//! edge lists. A host has one edge, to a switch. Ports that are not given are the lowest
//! free ones, hosts first. So a plain graph is one of switches alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::document::Document;
use super::draft::{Draft, DraftHost, DraftLink, DraftSwitch, Origin};
use super::edges::{format_grid, parse_grid};
use super::error::FormatError;
use super::numbering::number;
use wormcast_wire::{
    HOST_ID_MAX, HostId, PORT_ID_MAX, PortId, SWITCH_ID_MAX, SWITCH_PORTS_MAX, SwitchId,
};

use super::graphml_arcs::to_links;
use super::graphml_parse::{DRAWN_LABEL, Edge, Graph, Node, parse};

pub(super) fn read(text: &str) -> Result<Draft, FormatError> {
    let mut graph = parse(text)?;
    for (word, node) in &graph.nodes {
        let is_host = node.kind(text)?;
        if let Some(again) = node.again {
            let code = if is_host {
                "duplicate-host"
            } else {
                "duplicate-switch"
            };
            let reason = format!("node \"{word}\" is given twice");
            return Err(FormatError::at(text, again, code, reason));
        }
    }
    graph.check_edges(text)?;
    let left_out = to_links(&mut graph);
    let mut draft = Draft {
        kind: graph.data.get("kind").map(|(kind, _)| kind.clone()),
        ..Draft::default()
    };
    for (offset, reason) in left_out {
        draft.warn(text, offset, &reason);
    }
    if let Some((grid, offset)) = graph.data.get("grid") {
        let words: Vec<&str> = grid.split_whitespace().collect();
        draft.grid = Some(parse_grid(&words).ok_or_else(|| {
            let reason = format!("\"{grid}\" is not a grid such as 4x4 wraps");
            FormatError::at(text, *offset, "wrong-type", reason)
        })?);
    }
    let mut switches = BTreeMap::new();
    let mut hosts = BTreeMap::new();
    for (word, node) in &graph.nodes {
        let is_host = node.kind(text)?;
        if is_host {
            hosts.insert(word.as_str(), node)
        } else {
            switches.insert(word.as_str(), node)
        };
    }
    let edges_of = graph.edges_of();
    let words = Words {
        text,
        switch_ids: ids(&switches, SWITCH_ID_MAX)?,
        host_ids: ids(&hosts, HOST_ID_MAX)?,
    };
    for (word, node) in &switches {
        let id = words.switch(word);
        draft.switches.push(DraftSwitch {
            id,
            ports: words.bounded(node.data.get("ports"), 1, SWITCH_PORTS_MAX)?,
            origin: Origin::Byte(node.offset),
        });
        let name = node.name(word, "s", id.0);
        draft.names.switches.extend(name.map(|name| (id, name)));
    }
    for (word, node) in &hosts {
        let id = HostId(words.host_ids[word] as u16);
        let own = edges_of.get(word).map_or(&[][..], Vec::as_slice);
        let (switch, port) = words.host_place(&graph, own, word, node)?;
        draft.hosts.push(DraftHost {
            id,
            switch,
            port,
            transit: true,
            origin: Origin::Byte(node.offset),
        });
        let name = node.name(word, "h", id.0);
        draft.names.hosts.extend(name.map(|name| (id, name)));
    }
    draft.hosts.sort_by_key(|host| host.id);
    for edge in &graph.edges {
        let is_host = [&edge.source, &edge.target].map(|word| hosts.contains_key(word.as_str()));
        match is_host {
            [false, false] => draft.links.push(DraftLink {
                a: (words.switch(&edge.source), words.port(edge, true)?),
                b: (words.switch(&edge.target), words.port(edge, false)?),
                origin: Origin::Byte(edge.offset),
            }),
            [true, true] => {
                let reason = format!(
                    "hosts \"{}\" and \"{}\" are linked; hosts hang on switches",
                    edge.source, edge.target
                );
                return Err(FormatError::at(text, edge.offset, "unsupported", reason));
            }
            _ => {}
        }
    }
    Ok(draft)
}

fn ids<'w>(
    nodes: &BTreeMap<&'w str, &Node>,
    largest: u16,
) -> Result<BTreeMap<&'w str, usize>, FormatError> {
    if nodes.len() > usize::from(largest) + 1 {
        let reason = format!(
            "{} nodes of a kind are more than {}",
            nodes.len(),
            usize::from(largest) + 1
        );
        return Err(FormatError::new("outside-bounds", reason));
    }
    let words: Vec<&str> = nodes.keys().copied().collect();
    Ok(number(&words, largest))
}

/// Nodes by their words.
struct Words<'w> {
    text: &'w str,
    switch_ids: BTreeMap<&'w str, usize>,
    host_ids: BTreeMap<&'w str, usize>,
}

impl Words<'_> {
    fn switch(&self, word: &str) -> SwitchId {
        SwitchId(self.switch_ids[word] as u16)
    }

    /// Where a host hangs: the other end of its one edge.
    fn host_place(
        &self,
        graph: &Graph,
        own: &[usize],
        word: &str,
        node: &Node,
    ) -> Result<(SwitchId, Option<PortId>), FormatError> {
        let [edge] = own else {
            let reason = format!(
                "host \"{word}\" has {} edges; it needs 1, to a switch",
                own.len()
            );
            return Err(FormatError::at(
                self.text,
                node.offset,
                "host-links",
                reason,
            ));
        };
        let edge = &graph.edges[*edge];
        let at_source = edge.target == word;
        let other = if at_source {
            &edge.source
        } else {
            &edge.target
        };
        if !self.switch_ids.contains_key(other.as_str()) {
            let reason =
                format!("hosts \"{word}\" and \"{other}\" are linked; hosts hang on switches");
            return Err(FormatError::at(
                self.text,
                edge.offset,
                "unsupported",
                reason,
            ));
        }
        Ok((self.switch(other), self.port(edge, at_source)?))
    }

    fn port(&self, edge: &Edge, at_source: bool) -> Result<Option<PortId>, FormatError> {
        let field = if at_source {
            "source_port"
        } else {
            "target_port"
        };
        let port = self.bounded(edge.data.get(field), 0, u16::from(PORT_ID_MAX))?;
        Ok(port.and_then(|port| PortId::new(port as u8)))
    }

    fn bounded(
        &self,
        value: Option<&(String, usize)>,
        least: u16,
        most: u16,
    ) -> Result<Option<u16>, FormatError> {
        let Some((value, offset)) = value else {
            return Ok(None);
        };
        let value = value.trim();
        if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_digit()) {
            let reason = format!("\"{value}\" is not a number from {least} to {most}");
            return Err(FormatError::at(self.text, *offset, "wrong-type", reason));
        }
        match value
            .parse()
            .ok()
            .filter(|number| (least..=most).contains(number))
        {
            Some(number) => Ok(Some(number)),
            None => {
                let reason = format!("{value} is outside {least} to {most}");
                Err(FormatError::at(
                    self.text,
                    *offset,
                    "outside-bounds",
                    reason,
                ))
            }
        }
    }
}

impl Node {
    /// Whether it is a host.
    fn kind(&self, text: &str) -> Result<bool, FormatError> {
        match self
            .data
            .get("kind")
            .map(|(kind, offset)| (kind.trim(), *offset))
        {
            None | Some(("switch", _)) => Ok(false),
            Some(("host", _)) => Ok(true),
            Some((other, offset)) => {
                let reason = format!("\"{other}\" is no kind of node; kinds are switch, host");
                Err(FormatError::at(text, offset, "wrong-type", reason))
            }
        }
    }

    /// What it is called, if that says more than its id.
    fn name(&self, word: &str, prefix: &str, id: u16) -> Option<String> {
        let given = ["name", "label", DRAWN_LABEL].into_iter();
        let given = given.filter_map(|name| self.data.get(name));
        let given = given.into_iter().find(|(name, _)| !name.trim().is_empty());
        let plain = [id.to_string(), format!("{prefix}{id}")];
        match given {
            Some((name, _)) => Some(name.clone()),
            None => (!plain.iter().any(|plain| plain == word)).then(|| word.to_owned()),
        }
    }
}

const HEAD: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="kind" for="node" attr.name="kind" attr.type="string"><default>switch</default></key>
  <key id="ports" for="node" attr.name="ports" attr.type="int"/>
  <key id="name" for="node" attr.name="name" attr.type="string"/>
  <key id="source_port" for="edge" attr.name="source_port" attr.type="int"/>
  <key id="target_port" for="edge" attr.name="target_port" attr.type="int"/>
  <key id="grid" for="graph" attr.name="grid" attr.type="string"/>
  <key id="made" for="graph" attr.name="kind" attr.type="string"/>
  <graph id="topology" edgedefault="undirected">
"#;

pub(super) fn write(document: &Document) -> Result<String, FormatError> {
    let topology = &document.topology;
    let mut text = HEAD.to_owned();
    if let Some(kind) = &document.kind {
        let _ = writeln!(text, "    <data key=\"made\">{}</data>", escape(kind)?);
    }
    if let Some(grid) = topology.grid() {
        let _ = writeln!(text, "    <data key=\"grid\">{}</data>", format_grid(grid));
    }
    let name = |name: Option<&String>| match name {
        Some(name) => {
            Ok::<String, FormatError>(format!("<data key=\"name\">{}</data>", escape(name)?))
        }
        None => Ok(String::new()),
    };
    for switch in topology.switches() {
        let _ = writeln!(
            text,
            "    <node id=\"s{}\"><data key=\"kind\">switch</data><data key=\"ports\">{}</data>{}</node>",
            switch.id,
            switch.ports,
            name(document.names.switches.get(&switch.id))?
        );
    }
    for host in topology.hosts() {
        let _ = writeln!(
            text,
            "    <node id=\"h{}\"><data key=\"kind\">host</data>{}</node>",
            host.id,
            name(document.names.hosts.get(&host.id))?
        );
    }
    for host in topology.hosts() {
        let _ = writeln!(
            text,
            "    <edge source=\"s{}\" target=\"h{}\"><data key=\"source_port\">{}</data></edge>",
            host.switch, host.id, host.port
        );
    }
    for link in topology.links() {
        let _ = writeln!(
            text,
            "    <edge source=\"s{}\" target=\"s{}\"><data key=\"source_port\">{}</data>\
             <data key=\"target_port\">{}</data></edge>",
            link.a, link.b, link.a_port, link.b_port
        );
    }
    text.push_str("  </graph>\n</graphml>\n");
    Ok(text)
}

/// Text between tags; XML has no place for control characters.
fn escape(name: &str) -> Result<String, FormatError> {
    if name.contains(|character: char| {
        character.is_control() || "\u{fffe}\u{ffff}".contains(character)
    }) {
        let reason = format!("the name {name:?} has characters that XML cannot hold");
        return Err(FormatError::new("unsupported", reason));
    }
    Ok(quick_xml::escape::escape(name).into_owned())
}
