//! Files of routes.

use serde_json::{Map, Value, json};

use super::alternatives::Answer;
use super::{Alternative, Route, RouteError, Routes, Share};
use wormcast_wire::{HOST_ID_MAX, HostId, SWITCH_ID_MAX, SwitchId};

impl Routes<'_> {
    /// Writes `{"algorithm":…,"root":…,"routes":[…]}`, one route a line, and in a split
    /// fabric `"unreachable"`, the pairs that have none. Where routes are drawn at random
    /// there is the `"seed"`; where a pair has several they follow each other, each with
    /// its `"share"`; where hosts may re-inject, each says whether it is `"minimal"`.
    pub fn to_json(&self) -> String {
        self.write(None, None)
    }

    /// As [`Routes::to_json`], but only the routes from a host, or to one, or both.
    ///
    /// # Errors
    /// [`RouteError::Topology`] if there is no such host; of one pair, as
    /// [`Routes::route`].
    pub fn to_json_between(
        &self,
        src: Option<HostId>,
        dst: Option<HostId>,
    ) -> Result<String, RouteError> {
        let index = |host: Option<HostId>| host.map(|id| self.topology.host_index(id)).transpose();
        let (from, to) = (index(src)?, index(dst)?);
        if let (Some(src), Some(dst)) = (src, dst) {
            self.route(src, dst)?;
        }
        Ok(self.write(from, to))
    }

    fn write(&self, from: Option<u32>, to: Option<u32>) -> String {
        let mut text = format!(
            "{{\"algorithm\":\"{}\",\"root\":{},",
            self.algorithm.name(),
            self.updown.root(self.topology)
        );
        if self.algorithm.has_alternatives() {
            text.push_str(&format!("\"seed\":{},", self.seed));
        }
        text.push_str("\n \"routes\":[");
        let mut apart: Vec<Value> = Vec::new();
        let mut separator = "\n  ";
        for Answer { pair, alternatives } in self.answers(from, to) {
            let Ok(alternatives) = alternatives else {
                apart.push(json!({"src": pair.src.0, "dst": pair.dst.0}));
                continue;
            };
            for alternative in &alternatives {
                text.push_str(separator);
                text.push_str(&self.row(alternative).to_string());
                separator = ",\n  ";
            }
        }
        text.push(']');
        if !apart.is_empty() {
            text.push_str(&format!(",\n \"unreachable\":{}", Value::Array(apart)));
        }
        text.push_str("}\n");
        text
    }

    /// An alternative as one entry of the file.
    pub fn row(&self, alternative: &Alternative) -> Value {
        let mut row = alternative.route.to_value();
        if alternative.share != Share::WHOLE {
            row["share"] = json!(alternative.share.fraction());
        }
        if self.algorithm.uses_in_transit_hosts() {
            row["minimal"] = json!(alternative.minimal);
        }
        row
    }
}

impl Route {
    /// The route as one entry of a file.
    pub fn to_value(&self) -> Value {
        let switches: Vec<u16> = self.switches.iter().map(|switch| switch.0).collect();
        let in_transit: Vec<u16> = self.in_transit.iter().map(|host| host.0).collect();
        json!({"src": self.src.0, "dst": self.dst.0, "switches": switches,
               "ports": self.ports, "in_transit": in_transit})
    }
}

/// Reads the routes of a file, as written by [`Routes::to_json`] or by others. Whether
/// they fit a topology is for the deadlock check to say.
///
/// # Errors
/// [`RouteError::File`], naming the place.
pub fn read_routes(text: &str) -> Result<Vec<Route>, RouteError> {
    let file = |at: &str, reason: String| RouteError::File {
        at: at.to_owned(),
        reason,
    };
    let value: Value =
        serde_json::from_str(text).map_err(|error| file("routes", error.to_string()))?;
    let Some(Value::Array(rows)) = value.get("routes") else {
        return Err(file(
            "routes",
            "field \"routes\" is missing or not a list".into(),
        ));
    };
    rows.iter()
        .enumerate()
        .map(|(index, row)| {
            let at = format!("routes[{index}]");
            let Value::Object(row) = row else {
                return Err(file(&at, format!("{row} is not an object")));
            };
            read_route(&at, row)
        })
        .collect()
}

fn read_route(at: &str, row: &Map<String, Value>) -> Result<Route, RouteError> {
    let switches = integers(at, row, "switches", SWITCH_ID_MAX)?;
    let ports = integers(at, row, "ports", u16::from(u8::MAX))?;
    let in_transit = match row.get("in_transit") {
        None => Vec::new(),
        Some(_) => integers(at, row, "in_transit", HOST_ID_MAX)?,
    };
    if switches.len() != ports.len() {
        let reason = format!(
            "{} switches and {} ports; there must be one switch for each port",
            switches.len(),
            ports.len()
        );
        return Err(RouteError::File {
            at: at.to_owned(),
            reason,
        });
    }
    Ok(Route {
        src: HostId(integer(&format!("{at}.src"), row.get("src"), HOST_ID_MAX)?),
        dst: HostId(integer(&format!("{at}.dst"), row.get("dst"), HOST_ID_MAX)?),
        switches: switches.into_iter().map(SwitchId).collect(),
        ports: ports.into_iter().map(|port| port as u8).collect(),
        in_transit: in_transit.into_iter().map(HostId).collect(),
    })
}

fn integers(
    at: &str,
    row: &Map<String, Value>,
    field: &str,
    most: u16,
) -> Result<Vec<u16>, RouteError> {
    let at = format!("{at}.{field}");
    let Some(Value::Array(list)) = row.get(field) else {
        return Err(RouteError::File {
            at,
            reason: "missing or not a list of integers".into(),
        });
    };
    list.iter()
        .enumerate()
        .map(|(index, value)| integer(&format!("{at}[{index}]"), Some(value), most))
        .collect()
}

fn integer(at: &str, value: Option<&Value>, most: u16) -> Result<u16, RouteError> {
    let found = value.and_then(Value::as_u64);
    match found {
        Some(found) if found <= u64::from(most) => Ok(found as u16),
        _ => {
            let found = value.map_or("nothing".to_owned(), ToString::to_string);
            let reason = format!("{found} is not an integer from 0 to {most}");
            Err(RouteError::File {
                at: at.to_owned(),
                reason,
            })
        }
    }
}
