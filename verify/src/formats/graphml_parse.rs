//! The XML of GraphML.

use std::collections::BTreeMap;

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use super::error::FormatError;

/// Values of attributes by `attr.name`, and where they stand.
pub(super) type Data = BTreeMap<String, (String, usize)>;

#[derive(Default)]
pub(super) struct Node {
    pub data: Data,
    pub offset: usize,
    /// Where it is given once more.
    pub again: Option<usize>,
}

pub(super) struct Edge {
    pub source: String,
    pub target: String,
    /// Whether it is an arc of a directed graph.
    pub directed: bool,
    pub data: Data,
    pub offset: usize,
}

#[derive(Default)]
pub(super) struct Graph {
    pub nodes: BTreeMap<String, Node>,
    pub edges: Vec<Edge>,
    pub data: Data,
}

/// The attribute under which the label is kept that yEd draws a node with.
pub(super) const DRAWN_LABEL: &str = "y:NodeLabel";

/// What the data that follow belong to.
enum Owner {
    Nothing,
    Graph,
    Node(String),
    Edge,
}

struct Parser<'t> {
    text: &'t str,
    /// `attr.name` by the id of the key.
    keys: BTreeMap<String, String>,
    graph: Graph,
    graphs: usize,
    /// Whether edges are directed that do not say.
    directed: bool,
    owner: Owner,
    /// Name of the attribute being read, its text so far, where it started.
    value: Option<(String, String, usize)>,
    /// The same of the label of a drawing, which stands in an attribute.
    label: Option<(String, usize)>,
}

pub(super) fn parse(text: &str) -> Result<Graph, FormatError> {
    let mut reader = Reader::from_str(text);
    let mut parser = Parser {
        text,
        keys: BTreeMap::new(),
        graph: Graph::default(),
        graphs: 0,
        directed: false,
        owner: Owner::Nothing,
        value: None,
        label: None,
    };
    let mut depth = 0usize;
    loop {
        let offset = reader.buffer_position() as usize;
        let event = reader.read_event().map_err(|error| {
            let at = reader.error_position() as usize;
            FormatError::at(text, at, "syntax", format!("this is not XML: {error}"))
        })?;
        match event {
            Event::Start(tag) => {
                depth += 1;
                parser.open(&tag, offset)?;
            }
            Event::Empty(tag) => {
                parser.open(&tag, offset)?;
                parser.close(tag.local_name().as_ref());
            }
            Event::End(tag) => {
                depth = depth.saturating_sub(1);
                parser.close(tag.local_name().as_ref());
            }
            Event::Text(part) => parser.add_text(&part),
            Event::CData(part) => parser.add_text(&part),
            Event::GeneralRef(entity) => {
                let character = match entity.resolve_char_ref() {
                    Ok(Some(character)) => Some(character.to_string()),
                    Ok(None) => quick_xml::escape::resolve_xml_entity(&entity).map(str::to_owned),
                    Err(_) => None,
                };
                let Some(character) = character else {
                    let reason = format!("there is no entity &{};", &*entity);
                    return Err(FormatError::at(text, offset, "syntax", reason));
                };
                parser.add_text(&character);
            }
            Event::Eof => break,
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
    if depth > 0 || parser.graphs == 0 {
        let reason = match parser.graphs {
            0 => "there is no <graph> in it",
            _ => "it ends before all elements are closed",
        };
        return Err(FormatError::at(text, text.len(), "syntax", reason.into()));
    }
    Ok(parser.graph)
}

impl Parser<'_> {
    fn error(&self, offset: usize, code: &'static str, reason: String) -> FormatError {
        FormatError::at(self.text, offset, code, reason)
    }

    fn open(&mut self, tag: &BytesStart<'_>, offset: usize) -> Result<(), FormatError> {
        let mut attributes = BTreeMap::new();
        for attribute in tag.attributes() {
            let attribute = attribute.map_err(|error| {
                self.error(offset, "syntax", format!("this is not XML: {error}"))
            })?;
            let value = attribute
                .normalized_value(XmlVersion::Implicit1_0)
                .map_err(|error| {
                    self.error(offset, "syntax", format!("this is not XML: {error}"))
                })?;
            attributes.insert(attribute.key.as_ref().to_owned(), value.into_owned());
        }
        let needed = |name: &str| {
            attributes.get(name).cloned().ok_or_else(|| {
                let reason = format!("<{}> has no {name}", tag.name().as_ref());
                self.error(offset, "missing-field", reason)
            })
        };
        match tag.local_name().as_ref() {
            "key" => {
                let id = needed("id")?;
                let name = attributes.get("attr.name").unwrap_or(&id).clone();
                self.keys.insert(id, name);
            }
            "graph" => {
                self.graphs += 1;
                if self.graphs > 1 {
                    let reason = "there is a second graph; only one is supported";
                    return Err(self.error(offset, "unsupported", reason.into()));
                }
                self.directed = attributes
                    .get("edgedefault")
                    .is_some_and(|kind| kind == "directed");
                self.owner = Owner::Graph;
            }
            "node" => {
                let id = needed("id")?;
                match self.graph.nodes.get_mut(&id) {
                    Some(node) => node.again = Some(offset),
                    None => {
                        let node = Node {
                            offset,
                            ..Node::default()
                        };
                        self.graph.nodes.insert(id.clone(), node);
                    }
                }
                self.owner = Owner::Node(id);
            }
            "edge" => {
                let (source, target) = (needed("source")?, needed("target")?);
                let directed = match attributes.get("directed") {
                    Some(value) => value == "true",
                    None => self.directed,
                };
                let mut data = Data::new();
                for (attribute, field) in
                    [("sourceport", "source_port"), ("targetport", "target_port")]
                {
                    let port = attributes.get(attribute);
                    data.extend(port.map(|port| (field.to_owned(), (port.clone(), offset))));
                }
                self.graph.edges.push(Edge {
                    source,
                    target,
                    directed,
                    data,
                    offset,
                });
                self.owner = Owner::Edge;
            }
            "hyperedge" => {
                let reason = "hyperedges are not supported; a link has two ends";
                return Err(self.error(offset, "unsupported", reason.into()));
            }
            "data" => {
                let key = needed("key")?;
                let name = self.keys.get(&key).cloned().unwrap_or(key);
                self.value = Some((name, String::new(), offset));
            }
            "NodeLabel" => self.label = Some((String::new(), offset)),
            _ => {}
        }
        Ok(())
    }

    fn add_text(&mut self, part: &str) {
        if let Some((text, _)) = &mut self.label {
            text.push_str(part);
        }
        if let Some((_, text, _)) = &mut self.value {
            text.push_str(part);
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            "node" | "edge" => self.owner = Owner::Graph,
            "graph" => self.owner = Owner::Nothing,
            "NodeLabel" => {
                let (Some((text, offset)), Owner::Node(id)) = (self.label.take(), &self.owner)
                else {
                    return;
                };
                let words: Vec<&str> = text.split_whitespace().collect();
                if let (Some(node), false) = (self.graph.nodes.get_mut(id), words.is_empty()) {
                    let label = node.data.entry(DRAWN_LABEL.to_owned());
                    label.or_insert((words.join(" "), offset));
                }
            }
            "data" => {
                let Some((name, text, offset)) = self.value.take() else {
                    return;
                };
                let data = match &self.owner {
                    Owner::Nothing => return,
                    Owner::Graph => &mut self.graph.data,
                    Owner::Node(id) => match self.graph.nodes.get_mut(id) {
                        Some(node) => &mut node.data,
                        None => return,
                    },
                    Owner::Edge => match self.graph.edges.last_mut() {
                        Some(edge) => &mut edge.data,
                        None => return,
                    },
                };
                data.insert(name, (text, offset));
            }
            _ => {}
        }
    }
}

impl Graph {
    /// Indices of the edges of every node that has some.
    pub fn edges_of(&self) -> BTreeMap<&str, Vec<usize>> {
        let mut edges_of: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (number, edge) in self.edges.iter().enumerate() {
            for end in [&edge.source, &edge.target] {
                edges_of.entry(end).or_default().push(number);
            }
        }
        edges_of
    }

    /// Edges join nodes that there are; nodes may come after them.
    pub fn check_edges(&self, text: &str) -> Result<(), FormatError> {
        for edge in &self.edges {
            for end in [&edge.source, &edge.target] {
                if !self.nodes.contains_key(end) {
                    let some: Vec<&str> = self.nodes.keys().map(String::as_str).take(8).collect();
                    let reason = format!(
                        "there is no node \"{end}\"; there are {}, …",
                        some.join(", ")
                    );
                    return Err(FormatError::at(text, edge.offset, "unknown-switch", reason));
                }
            }
        }
        Ok(())
    }
}
