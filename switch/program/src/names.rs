//! Names that only people need: for traces and messages.

use std::collections::BTreeMap;

use super::error::ProgramError;
use super::json::Node;

/// A node of a control.
#[derive(Clone, Debug, Default)]
pub struct NodeName {
    pub name: String,
    /// What the source says there, for a condition.
    pub source: Option<String>,
}

/// Names by index, or by value for errors.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub states: Vec<String>,
    pub ingress: Vec<NodeName>,
    pub egress: Vec<NodeName>,
    pub errors: BTreeMap<u64, String>,
    pub verified: Vec<String>,
    pub updated: Vec<String>,
}

/// Reads the names of a program that has been read already; what has none stays empty.
pub(super) fn read(root: &Node<'_>) -> Result<Names, ProgramError> {
    let mut names = Names::default();
    for parser in root.list("parsers")? {
        if parser.member("name")?.string()? == "parser" {
            for state in parser.list("parse_states")? {
                names
                    .states
                    .push(state.member("name")?.string()?.to_owned());
            }
        }
    }
    for pipeline in root.list("pipelines")? {
        match pipeline.member("name")?.string()? {
            "ingress" => names.ingress = node_names(&pipeline)?,
            "egress" => names.egress = node_names(&pipeline)?,
            _ => {}
        }
    }
    for error in root.list("errors")? {
        let [name, value] = error.tuple()?;
        let value = value.integer()? as u64;
        names.errors.insert(value, name.string()?.to_owned());
    }
    for checksum in root.list("checksums")? {
        let name = match checksum.optional("name")? {
            Some(name) => name.string()?.to_owned(),
            None => String::new(),
        };
        if checksum.flag("verify", true)? {
            names.verified.push(name.clone());
        }
        if checksum.flag("update", true)? {
            names.updated.push(name);
        }
    }
    Ok(names)
}

/// In the order of the nodes of a control: tables, conditions, direct calls.
fn node_names(pipeline: &Node<'_>) -> Result<Vec<NodeName>, ProgramError> {
    let mut names = Vec::new();
    for kind in ["tables", "conditionals", "action_calls"] {
        for node in pipeline.list(kind)? {
            let source = match node.optional("source_info")? {
                Some(info) => info.optional("source_fragment")?,
                None => None,
            };
            names.push(NodeName {
                name: node.member("name")?.string()?.to_owned(),
                source: match source {
                    Some(source) => Some(source.string()?.to_owned()),
                    None => None,
                },
            });
        }
    }
    Ok(names)
}
