//! Planned groups as the check takes them: files of plans, read and added.

use serde_json::{Map, Value};

use super::{ChannelGraph, DeadlockError, Forward, TableEntry, Worm};
use wormcast_routing::nested_json;
use wormcast_routing::routes::Route;
use wormcast_wire::{
    BufferClass, HOST_ID_MAX, HostId, PORT_ID_MAX, PortId, SWITCH_ID_MAX, SwitchId,
};

/// Messages of one source to a group, as planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedGroup {
    /// Where it was read, as in `groups[2]`.
    at: String,
    source: HostId,
    delivery: Delivery,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Delivery {
    Hosts(Vec<Edge>),
    /// TREE routes.
    Trees(Vec<Vec<u8>>),
    /// Tables of switches; the host that sends, and the unicast route to it if that is
    /// another than the source.
    Table(Vec<TableEntry>, Option<(HostId, Vec<u8>)>),
    /// Ports to the root.
    Broadcast(Vec<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Edge {
    step: u64,
    from: HostId,
    to: HostId,
    class: BufferClass,
}

/// Reads one plan of a group, a list of them, or `{"groups":[plan, …]}`. Of a plan are
/// read `source` and the first there is of `edges` (`from`, `to`, `class`, and `step` if
/// they are not in the order of the sends), `entries` (`switch`, `ports`; with `relay`,
/// its `host` and `route`), `to_root` (hex) and `routes` (`route`, hex).
///
/// # Errors
/// [`DeadlockError::Group`], naming the place.
pub fn read_groups(text: &str) -> Result<Vec<PlannedGroup>, DeadlockError> {
    let value = nested_json::parse(text).map_err(|reason| refuse("groups", &reason))?;
    let plans = match (&value, value.get("groups")) {
        (Value::Array(plans), _) | (_, Some(Value::Array(plans))) => plans,
        (_, Some(other)) => return Err(refuse("groups", &format!("{other} is not a list"))),
        (_, None) => return Ok(vec![read_group("group", &value)?]),
    };
    let read = |(number, plan)| read_group(&format!("groups[{number}]"), plan);
    plans.iter().enumerate().map(read).collect()
}

fn read_group(at: &str, plan: &Value) -> Result<PlannedGroup, DeadlockError> {
    let Value::Object(fields) = plan else {
        return Err(refuse(at, &format!("{plan} is not a plan of a group")));
    };
    let given = |name: &str| fields.get(name).is_some_and(|value| !value.is_null());
    let delivery = if given("edges") {
        let edges = rows(at, fields, "edges")?.map(|(at, edge)| read_edge(&at, edge));
        let mut edges = edges.collect::<Result<Vec<_>, _>>()?;
        edges.sort_by_key(|edge| edge.step);
        Delivery::Hosts(edges)
    } else if given("entries") {
        let entries = rows(at, fields, "entries")?.map(|(at, entry)| read_entry(&at, entry));
        let entries = entries.collect::<Result<_, _>>()?;
        let relay = if given("relay") {
            let (at, relay) = (format!("{at}.relay"), &fields["relay"]);
            Some((host(&at, relay, "host")?, hex(&at, relay, "route")?))
        } else {
            None
        };
        Delivery::Table(entries, relay)
    } else if given("to_root") {
        Delivery::Broadcast(hex(at, plan, "to_root")?)
    } else if given("routes") {
        let routes = rows(at, fields, "routes")?.map(|(at, part)| hex(&at, part, "route"));
        Delivery::Trees(routes.collect::<Result<_, _>>()?)
    } else {
        let reason = "has no edges, entries, to_root or routes; a plan has one of them";
        return Err(refuse(at, reason));
    };
    Ok(PlannedGroup {
        at: at.to_owned(),
        source: host(at, plan, "source")?,
        delivery,
    })
}

impl ChannelGraph<'_> {
    /// Adds the messages of a group. `routes` gives the routes from one host to another,
    /// several if messages take turns on them, none if there is no way.
    ///
    /// # Errors
    /// [`DeadlockError::Group`], naming what the topology or the routes do not have.
    pub fn add_group(
        &mut self,
        group: &PlannedGroup,
        routes: &dyn Fn(HostId, HostId) -> Vec<Route>,
    ) -> Result<(), DeadlockError> {
        let source = group.source;
        let wrong = |error: DeadlockError| refuse(&group.at, &error.to_string());
        self.topology
            .host_index(source)
            .map_err(|error| wrong(error.into()))?;
        match &group.delivery {
            Delivery::Hosts(edges) => {
                let mut sends = Vec::with_capacity(edges.len());
                for edge in edges {
                    for host in [edge.from, edge.to] {
                        let found = self.topology.host_index(host);
                        found.map_err(|error| wrong(error.into()))?;
                    }
                    let (from, to, class) = (edge.from, edge.to, edge.class);
                    let routes = routes(from, to);
                    if routes.is_empty() {
                        let reason = format!("there is no route from host {from} to host {to}");
                        return Err(refuse(&group.at, &reason));
                    }
                    sends.extend(routes.into_iter().map(|route| Forward { route, class }));
                }
                self.add_forwards(source, &sends).map_err(wrong)
            }
            Delivery::Trees(routes) => routes
                .iter()
                .try_for_each(|route| self.add_tree(source, route).map_err(wrong)),
            Delivery::Table(entries, None) => self.add_table(source, entries).map_err(wrong),
            Delivery::Table(entries, Some((relay, ports))) => self
                .add_relayed(source, *relay, ports, entries)
                .map_err(wrong),
            Delivery::Broadcast(to_root) => {
                self.add_broadcast(source, Some(to_root)).map_err(wrong)
            }
        }
    }

    /// The source sends to the relay, which sends to the group, one message after the
    /// other, so that nobody waits for a turn in the network. The relay holds the message in
    /// class 2, as the first host of an ordered structure does.
    fn add_relayed(
        &mut self,
        source: HostId,
        relay: HostId,
        ports: &[u8],
        entries: &[TableEntry],
    ) -> Result<(), DeadlockError> {
        let route = self.follow(source, relay, ports)?;
        let class = BufferClass::Two;
        self.add_forwards(source, &[Forward { route, class }])?;
        let host = self.topology.host_index(relay)?;
        if let Some(held) = self.buffer(host, class) {
            let (src, from, to) = (source, relay, relay);
            let worm = Worm::Forwarded { src, from, to };
            self.add_dependency(held, self.numbers.injection(host), &worm);
        }
        self.add_table_from(relay, entries, false)
    }

    /// The route of these ports, as far as they lead.
    fn follow(&self, src: HostId, dst: HostId, ports: &[u8]) -> Result<Route, DeadlockError> {
        let mut switches = Vec::with_capacity(ports.len());
        let mut at = Some(self.topology.host(src)?.switch);
        for &byte in ports {
            let Some(switch) = at else { break };
            switches.push(switch);
            let port = PortId::new(byte).ok_or(DeadlockError::NoPort { switch, byte })?;
            at = match self.numbers.leave(switch, port)?.1 {
                wormcast_routing::topology::Attachment::Switch(next, _) => Some(next),
                wormcast_routing::topology::Attachment::Host(_) => None,
            };
        }
        Ok(Route {
            src,
            dst,
            switches,
            ports: ports.to_vec(),
            in_transit: Vec::new(),
        })
    }
}

fn read_edge(at: &str, edge: &Value) -> Result<Edge, DeadlockError> {
    let class = match integer(at, edge, "class", 1, 2)? {
        1 => BufferClass::One,
        _ => BufferClass::Two,
    };
    let step = match edge.get("step") {
        None => 0,
        Some(_) => integer(at, edge, "step", 0, u64::MAX)?,
    };
    Ok(Edge {
        step,
        from: host(at, edge, "from")?,
        to: host(at, edge, "to")?,
        class,
    })
}

fn read_entry(at: &str, entry: &Value) -> Result<TableEntry, DeadlockError> {
    let switch = integer(at, entry, "switch", 0, SWITCH_ID_MAX.into())?;
    let Some(Value::Array(list)) = entry.get("ports") else {
        return Err(refuse(
            &format!("{at}.ports"),
            "missing or not a list of ports",
        ));
    };
    let port = |value: &Value| {
        let number = value.as_u64().and_then(|port| u8::try_from(port).ok());
        let reason = format!("{value} is not a port from 0 to {PORT_ID_MAX}");
        let port = number.and_then(PortId::new);
        port.ok_or_else(|| refuse(&format!("{at}.ports"), &reason))
    };
    Ok(TableEntry {
        switch: SwitchId(switch as u16),
        ports: list.iter().map(port).collect::<Result<_, _>>()?,
    })
}

/// Entries of a list of objects, and where they are.
fn rows<'v>(
    at: &str,
    plan: &'v Map<String, Value>,
    field: &str,
) -> Result<impl Iterator<Item = (String, &'v Value)>, DeadlockError> {
    let at = format!("{at}.{field}");
    match plan.get(field) {
        Some(Value::Array(rows)) => Ok(rows
            .iter()
            .enumerate()
            .map(move |(number, row)| (format!("{at}[{number}]"), row))),
        _ => Err(refuse(&at, "not a list")),
    }
}

fn host(at: &str, from: &Value, field: &str) -> Result<HostId, DeadlockError> {
    let host = integer(at, from, field, 0, HOST_ID_MAX.into())?;
    Ok(HostId(host as u16))
}

fn integer(
    at: &str,
    from: &Value,
    field: &str,
    least: u64,
    most: u64,
) -> Result<u64, DeadlockError> {
    let value = from.get(field);
    match value.and_then(Value::as_u64) {
        Some(found) if (least..=most).contains(&found) => Ok(found),
        _ => {
            let found = value.map_or("nothing".to_owned(), ToString::to_string);
            let reason = format!("{found} is not an integer from {least} to {most}");
            Err(refuse(&format!("{at}.{field}"), &reason))
        }
    }
}

fn hex(at: &str, from: &Value, field: &str) -> Result<Vec<u8>, DeadlockError> {
    let at = format!("{at}.{field}");
    let text = from.get(field).and_then(Value::as_str);
    let text = text.ok_or_else(|| refuse(&at, "missing or not hexadecimal text"))?;
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|digit| digit.to_digit(16).map(|digit| digit as u8))
        .collect();
    match digits {
        Some(digits) if digits.len() % 2 == 0 => Ok(digits
            .chunks(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect()),
        _ => Err(refuse(
            &at,
            &format!("\"{text}\" is not an even number of hexadecimal digits"),
        )),
    }
}

fn refuse(at: &str, reason: &str) -> DeadlockError {
    DeadlockError::Group {
        at: at.to_owned(),
        reason: reason.to_owned(),
    }
}
