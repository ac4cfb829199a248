//! Our own JSON, with names and kind.

use serde_json::{Map, Value};

use super::document::{Document, Names};
use super::draft::{Draft, DraftHost, DraftLink, DraftSwitch, Origin};
use super::error::FormatError;
use super::place::{Place, find_json};
use wormcast_routing::topology::TopologyError;
use wormcast_routing::topology::json::{parse, read_parts, wrong_type};

pub(super) fn read(text: &str) -> Result<Draft, FormatError> {
    let value = parse(text).map_err(|error| placed(error, text))?;
    let parts = read_parts(&value).map_err(|error| placed(error, text))?;
    let mut names = Names::default();
    for (row, switch) in parts.switches.iter().enumerate() {
        let name = read_name(&value, "switches", row).map_err(|error| placed(error, text))?;
        names.switches.extend(name.map(|name| (switch.id, name)));
    }
    for (row, host) in parts.hosts.iter().enumerate() {
        let name = read_name(&value, "hosts", row).map_err(|error| placed(error, text))?;
        names.hosts.extend(name.map(|name| (host.id, name)));
    }
    let top = value.as_object().cloned().unwrap_or_default();
    let origin = Origin::JsonRow;
    Ok(Draft {
        warnings: Vec::new(),
        switches: parts
            .switches
            .iter()
            .map(|switch| DraftSwitch {
                id: switch.id,
                ports: Some(switch.ports),
                origin,
            })
            .collect(),
        hosts: parts
            .hosts
            .iter()
            .map(|host| DraftHost {
                id: host.id,
                switch: host.switch,
                port: Some(host.port),
                transit: host.transit,
                origin,
            })
            .collect(),
        links: parts
            .links
            .iter()
            .map(|link| DraftLink {
                a: (link.a, Some(link.a_port)),
                b: (link.b, Some(link.b_port)),
                origin,
            })
            .collect(),
        grid: parts.grid,
        names,
        kind: read_string(&top, "kind", "").map_err(|error| placed(error, text))?,
    })
}

pub(super) fn write(document: &Document) -> String {
    let names = &document.names;
    document.topology.to_json_with(
        |id| names.switches.get(&id).map(String::as_str),
        |id| names.hosts.get(&id).map(String::as_str),
        document.kind.as_deref(),
    )
}

fn read_name(value: &Value, list: &str, row: usize) -> Result<Option<String>, TopologyError> {
    match value[list][row].as_object() {
        Some(fields) => read_string(fields, "name", &format!("{list}[{row}].")),
        None => Ok(None),
    }
}

/// A field that may be missing or null.
fn read_string(
    fields: &Map<String, Value>,
    field: &str,
    at: &str,
) -> Result<Option<String>, TopologyError> {
    match fields.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(name)) => Ok(Some(name.clone())),
        Some(other) => Err(wrong_type(&format!("{at}{field}"), other, "a string")),
    }
}

/// The error with the place of the value that it is about.
fn placed(error: TopologyError, text: &str) -> FormatError {
    let path = match &error {
        TopologyError::Malformed {
            line,
            column,
            reason,
        } => {
            return FormatError {
                place: Some(Place {
                    line: *line,
                    column: *column,
                }),
                ..FormatError::new(error.code(), format!("topology is not JSON: {reason}"))
            };
        }
        TopologyError::MissingField { at, .. } | TopologyError::WrongType { at, .. } => at,
        TopologyError::OutsideBounds { what, .. } => what,
        _ => return error.into(),
    };
    let offset = find_json(text, path).unwrap_or(0);
    FormatError::at(text, offset, error.code(), error.to_string())
}
