//! Topology files: `{"switches":[…],"hosts":[…],"links":[…]}`. Fields that are not
//! known are ignored, so that files may carry more; names are read by the formats of wormcast-verify.

use serde_json::{Map, Value, json};

use super::{Grid, Host, Link, Parts, Switch, Topology, TopologyError};
use wormcast_wire::{
    HOST_ID_MAX, HostId, PORT_ID_MAX, PortId, SWITCH_ID_MAX, SWITCH_PORTS_MAX, SwitchId,
};

impl Topology {
    /// Reads a connected topology.
    ///
    /// # Errors
    /// Whatever is wrong first: see [`TopologyError`].
    pub fn from_json(text: &str) -> Result<Topology, TopologyError> {
        Topology::new(read_parts(&parse(text)?)?)
    }

    /// As [`Topology::from_json`], but the fabric may be split.
    ///
    /// # Errors
    /// Whatever is wrong first, [`TopologyError::NotConnected`] excepted.
    pub fn from_json_split(text: &str) -> Result<Topology, TopologyError> {
        Topology::new_split(read_parts(&parse(text)?)?)
    }

    /// Writes the file, one switch, host or link a line.
    pub fn to_json(&self) -> String {
        self.to_json_with(|_| None, |_| None, None)
    }

    pub fn to_json_with<'n>(
        &self,
        switch_name: impl Fn(SwitchId) -> Option<&'n str>,
        host_name: impl Fn(HostId) -> Option<&'n str>,
        kind: Option<&str>,
    ) -> String {
        let named = |mut row: Value, name: Option<&str>| {
            if let Some(name) = name {
                row["name"] = json!(name);
            }
            row
        };
        let switches = self.switches().iter().map(|switch| {
            let row = json!({"id": switch.id.0, "ports": switch.ports});
            named(row, switch_name(switch.id))
        });
        let hosts = self.hosts().iter().map(|host| {
            let mut row =
                json!({"id": host.id.0, "switch": host.switch.0, "port": host.port.get()});
            if !host.transit {
                row["transit"] = json!(false);
            }
            named(row, host_name(host.id))
        });
        let links = self.links().iter().map(|link| {
            json!({"a": link.a.0, "a_port": link.a_port.get(),
                   "b": link.b.0, "b_port": link.b_port.get()})
        });
        let mut text = format!(
            "{{\"switches\":[{}],\n \"hosts\":[{}],\n \"links\":[{}]",
            lines(switches),
            lines(hosts),
            lines(links)
        );
        if let Some(grid) = self.grid() {
            let grid = json!({"radix": grid.radix, "wraps": grid.wraps,
                              "unidirectional": grid.unidirectional});
            text.push_str(&format!(",\n \"grid\":{grid}"));
        }
        if let Some(kind) = kind {
            text.push_str(&format!(",\n \"kind\":{}", json!(kind)));
        }
        text.push_str("}\n");
        text
    }
}

fn lines(rows: impl Iterator<Item = Value>) -> String {
    rows.map(|row| format!("\n  {row}"))
        .collect::<Vec<_>>()
        .join(",")
}

/// The JSON of a topology file.
///
/// # Errors
/// [`TopologyError::Malformed`], with line and column.
pub fn parse(text: &str) -> Result<Value, TopologyError> {
    serde_json::from_str(text).map_err(|error| TopologyError::Malformed {
        line: error.line(),
        column: error.column(),
        reason: strip_position(&error.to_string()),
    })
}

/// The parts that the JSON of a topology file has.
///
/// # Errors
/// A field that is missing, of another type, or out of bounds.
pub fn read_parts(value: &Value) -> Result<Parts, TopologyError> {
    let Value::Object(top) = value else {
        return Err(wrong_type("topology", value, "an object"));
    };
    let mut parts = Parts::default();
    for (at, row) in rows(top, "switches")? {
        parts.switches.push(Switch {
            id: SwitchId(number(&at, row, "id", 0, SWITCH_ID_MAX)?),
            ports: number(&at, row, "ports", 1, SWITCH_PORTS_MAX)?,
        });
    }
    for (at, row) in rows(top, "hosts")? {
        parts.hosts.push(Host {
            id: HostId(number(&at, row, "id", 0, HOST_ID_MAX)?),
            switch: SwitchId(number(&at, row, "switch", 0, SWITCH_ID_MAX)?),
            port: port(&at, row, "port")?,
            transit: flag(&at, row, "transit", true)?,
        });
    }
    for (at, row) in rows(top, "links")? {
        parts.links.push(Link {
            a: SwitchId(number(&at, row, "a", 0, SWITCH_ID_MAX)?),
            a_port: port(&at, row, "a_port")?,
            b: SwitchId(number(&at, row, "b", 0, SWITCH_ID_MAX)?),
            b_port: port(&at, row, "b_port")?,
        });
    }
    parts.grid = read_grid(top)?;
    Ok(parts)
}

fn read_grid(top: &Map<String, Value>) -> Result<Option<Grid>, TopologyError> {
    let grid = match top.get("grid") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Object(grid)) => grid,
        Some(other) => return Err(wrong_type("grid", other, "an object")),
    };
    let flag = |field: &'static str| match grid.get(field) {
        Some(Value::Bool(flag)) => Ok(*flag),
        None => Ok(false),
        Some(other) => Err(wrong_type(&format!("grid.{field}"), other, "true or false")),
    };
    let radix = match grid.get("radix") {
        None => {
            return Err(TopologyError::MissingField {
                at: "grid".into(),
                field: "radix",
            });
        }
        Some(Value::Array(radix)) => radix,
        Some(other) => return Err(wrong_type("grid.radix", other, "a list of integers")),
    };
    let radix = radix
        .iter()
        .enumerate()
        .map(|(index, value)| bounded(&format!("grid.radix[{index}]"), value, 1, SWITCH_ID_MAX))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Some(Grid {
        radix,
        wraps: flag("wraps")?,
        unidirectional: flag("unidirectional")?,
    }))
}

type Row<'a> = (String, &'a Map<String, Value>);

fn rows<'a>(
    top: &'a Map<String, Value>,
    field: &'static str,
) -> Result<Vec<Row<'a>>, TopologyError> {
    let list = match top.get(field) {
        None => {
            return Err(TopologyError::MissingField {
                at: "topology".into(),
                field,
            });
        }
        Some(Value::Array(list)) => list,
        Some(other) => return Err(wrong_type(field, other, "a list")),
    };
    list.iter()
        .enumerate()
        .map(|(index, value)| match value {
            Value::Object(row) => Ok((format!("{field}[{index}]"), row)),
            other => Err(wrong_type(&format!("{field}[{index}]"), other, "an object")),
        })
        .collect()
}

fn number(
    at: &str,
    row: &Map<String, Value>,
    field: &'static str,
    least: u16,
    most: u16,
) -> Result<u16, TopologyError> {
    match row.get(field) {
        None => Err(TopologyError::MissingField {
            at: at.to_owned(),
            field,
        }),
        Some(value) => bounded(&format!("{at}.{field}"), value, least, most),
    }
}

fn bounded(at: &str, value: &Value, least: u16, most: u16) -> Result<u16, TopologyError> {
    let Value::Number(found) = value else {
        return Err(wrong_type(at, value, "an integer"));
    };
    let integer = found
        .as_i64()
        .map(i128::from)
        .or_else(|| found.as_u64().map(i128::from));
    let Some(integer) = integer else {
        return Err(wrong_type(at, value, "an integer"));
    };
    match u16::try_from(integer) {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(TopologyError::outside(at, integer, least, most)),
    }
}

fn flag(
    at: &str,
    row: &Map<String, Value>,
    field: &'static str,
    otherwise: bool,
) -> Result<bool, TopologyError> {
    match row.get(field) {
        None => Ok(otherwise),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(other) => Err(wrong_type(&format!("{at}.{field}"), other, "true or false")),
    }
}

fn port(at: &str, row: &Map<String, Value>, field: &'static str) -> Result<PortId, TopologyError> {
    let port = number(at, row, field, 0, u16::from(PORT_ID_MAX))?;
    Ok(PortId::new(port as u8).expect("bounded above"))
}

/// That the value at a place of a file is not what is expected there.
pub fn wrong_type(at: &str, value: &Value, expected: &'static str) -> TopologyError {
    let found = match value {
        Value::Null => "null".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        plain => plain.to_string(),
    };
    TopologyError::WrongType {
        at: at.to_owned(),
        found,
        expected,
    }
}

/// serde_json appends the position, which the error carries on its own.
fn strip_position(message: &str) -> String {
    message
        .rsplit_once(" at line ")
        .map_or(message, |(reason, _)| reason)
        .to_owned()
}
