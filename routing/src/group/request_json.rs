//! Requests for groups as files.

use serde_json::{Map, Value};

use super::{
    GroupError, GroupRequest, Guard, Least, Order, PAYLOAD_BYTES_DEFAULT, Routing,
    SHARED_TREES_MAX, Scheme,
};
use crate::routes::Algorithm;
use crate::structure::postal::LAMBDA_MAX;
use crate::structure::{CircuitVariant, Discipline, StructureError, TreeVariant};
use crate::topology::Link;
use wormcast_wire::{GroupId, HOST_ID_MAX, HostId, PortId, SwitchId};

/// Most packets a request may ask steps for.
const PACKETS_MAX: u32 = 1 << 20;
/// Most bytes a packet may carry: more than any frame.
const PAYLOAD_BYTES_MAX: u64 = 65_535;
const PARAMETERS: &[&str] = &[
    "k",
    "packets",
    "bytes",
    "payload",
    "fan_out",
    "variant",
    "lambda",
    "r",
    "guard",
    "least",
    "trees",
    "group",
    "order",
    "seed",
    "discipline",
    "routing",
];

impl GroupRequest {
    /// Reads `{"scheme":…,"source":…,"members":[…],"parameters":{…}}`. Parameters: `k`
    /// (k-binomial; absent or 0: the best for `packets`), `packets` (default 1),
    /// `bytes` of a message in place of `packets`, at `payload` bytes a packet,
    /// `fan_out` (tree), `variant` (circuit: omit-last, return, ordered; tree: unordered,
    /// ordered), `lambda` (postal), `r` (mu-torus), `guard` (switch, table,
    /// broadcast: A, B, C), `least` (guard C: links, depth), `trees`
    /// (switch under guard C: how many its messages spread over; a plan is of one message), `group` (table: its
    /// number), `order` (id, cco, dimension, hamiltonian,
    /// random from `seed`), `discipline` (fpfs, fcfs), `routing` (an algorithm for
    /// routes, or dimension-order). The source counts as a member even if it is not
    /// listed. `shared_trees` beside them (switch under guard C): trees that are chosen already, each a
    /// list of links as the topology file has them.
    ///
    /// # Errors
    /// [`GroupError::Request`] and unknown names.
    pub fn from_json(text: &str) -> Result<GroupRequest, GroupError> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| refuse("group", error.to_string()))?;
        let Value::Object(top) = &value else {
            return Err(refuse("group", "not an object".into()));
        };
        let name = text_field(top, "scheme")?.ok_or_else(|| missing("scheme"))?;
        let source = host(
            "source",
            top.get("source").ok_or_else(|| missing("source"))?,
        )?;
        let Some(Value::Array(list)) = top.get("members") else {
            return Err(refuse("members", "missing or not a list of hosts".into()));
        };
        let mut members = list
            .iter()
            .enumerate()
            .map(|(index, member)| host(&format!("members[{index}]"), member))
            .collect::<Result<Vec<_>, _>>()?;
        if !members.contains(&source) {
            members.push(source);
        }
        let none = Map::new();
        let parameters = match top.get("parameters") {
            None | Some(Value::Null) => &none,
            Some(Value::Object(parameters)) => parameters,
            Some(other) => return Err(refuse("parameters", format!("{other} is not an object"))),
        };
        if let Some(name) = parameters
            .keys()
            .find(|name| !PARAMETERS.contains(&name.as_str()))
        {
            let error = StructureError::UnknownName {
                what: "parameter",
                name: name.clone(),
                choices: PARAMETERS,
            };
            return Err(error.into());
        }
        let (packets, bytes, payload_bytes) = read_message(parameters)?;
        Ok(GroupRequest {
            scheme: read_scheme(name, parameters)?,
            source,
            members,
            order: read_order(parameters)?,
            packets,
            bytes,
            payload_bytes,
            discipline: text_field(parameters, "discipline")?
                .map(Discipline::from_name)
                .transpose()?
                .unwrap_or_default(),
            routing: text_field(parameters, "routing")?
                .map(|name| Routing::from_name(name).map_err(|_| unknown_routing(name)))
                .transpose()?,
            shared: read_shared(top)?,
        })
    }
}

/// `shared_trees`: a list of trees, each a list of links as the topology file has them.
fn read_shared(top: &Map<String, Value>) -> Result<Vec<Vec<Link>>, GroupError> {
    let Some(given) = top.get("shared_trees").filter(|value| !value.is_null()) else {
        return Ok(Vec::new());
    };
    let bad = || {
        refuse(
            "shared_trees",
            format!(
                "not a list of up to {SHARED_TREES_MAX} trees, each a list of links \
                 {{\"a\":…,\"a_port\":…,\"b\":…,\"b_port\":…}}"
            ),
        )
    };
    let trees = given.as_array().ok_or_else(bad)?;
    if trees.len() > SHARED_TREES_MAX as usize {
        return Err(bad());
    }
    let number = |link: &Value, name: &str| link.get(name).and_then(Value::as_u64);
    let end = |link: &Value, switch: &str, port: &str| {
        let id = u16::try_from(number(link, switch)?).ok()?;
        let port = u8::try_from(number(link, port)?).ok()?;
        Some((SwitchId(id), PortId::new(port)?))
    };
    let link = |value: &Value| {
        let ((a, a_port), (b, b_port)) = (end(value, "a", "a_port")?, end(value, "b", "b_port")?);
        Some(Link {
            a,
            a_port,
            b,
            b_port,
        })
    };
    let tree = |tree: &Value| {
        tree.as_array()?
            .iter()
            .map(link)
            .collect::<Option<Vec<_>>>()
    };
    trees
        .iter()
        .map(tree)
        .collect::<Option<Vec<_>>>()
        .ok_or_else(bad)
}

/// Packets, bytes and payload of a message: packets are given, or are the bytes divided
/// by the payload.
fn read_message(parameters: &Map<String, Value>) -> Result<(u32, Option<u64>, u32), GroupError> {
    let packets = integer(parameters, "packets", 1, PACKETS_MAX.into())?;
    let payload = integer(parameters, "payload", 1, PAYLOAD_BYTES_MAX)?;
    let payload = payload.unwrap_or_else(|| PAYLOAD_BYTES_DEFAULT.into());
    let most = u64::from(PACKETS_MAX) * payload;
    let bytes = integer(parameters, "bytes", 0, most)?;
    let needed = bytes.map(|bytes| bytes.div_ceil(payload).max(1));
    match (packets, needed) {
        (Some(packets), Some(needed)) if packets != needed => Err(refuse(
            "parameters.packets",
            format!(
                "{packets}, but a message of {} bytes has {needed} at {payload} bytes a packet; \
                 give one of the two",
                bytes.unwrap_or_default()
            ),
        )),
        _ => Ok((
            needed.or(packets).unwrap_or(1) as u32,
            bytes,
            payload as u32,
        )),
    }
}

fn read_order(parameters: &Map<String, Value>) -> Result<Option<Order>, GroupError> {
    let mut order = text_field(parameters, "order")?
        .map(Order::from_name)
        .transpose()?;
    let seed = integer(parameters, "seed", 0, u64::MAX)?;
    if let (Some(Order::Random { seed: chosen }), Some(seed)) = (&mut order, seed) {
        *chosen = seed;
    }
    Ok(order)
}

fn unknown_routing(name: &str) -> GroupError {
    let names = Algorithm::ALL.iter().map(|algorithm| algorithm.name());
    let choices: Vec<&str> = names.chain([Routing::DIMENSION_ORDER]).collect();
    refuse(
        "parameters.routing",
        format!(
            "there is no routing \"{name}\"; choices are {}",
            choices.join(", ")
        ),
    )
}

fn read_scheme(name: &str, parameters: &Map<String, Value>) -> Result<Scheme, GroupError> {
    let mut scheme = Scheme::from_name(name)?;
    let variant = text_field(parameters, "variant")?;
    match &mut scheme {
        Scheme::Repeat | Scheme::UTorus | Scheme::STorus | Scheme::MdTorus => {}
        Scheme::Switch(chosen) => {
            if let Some(name) = text_field(parameters, "guard")? {
                chosen.guard = Guard::from_name(name)?;
            }
            if let Some(name) = text_field(parameters, "least")? {
                chosen.least = Least::from_name(name)?;
            }
            if let Some(trees) = integer(parameters, "trees", 1, SHARED_TREES_MAX.into())? {
                chosen.trees = trees as u32;
            }
            if let Some(group) = integer(parameters, "group", 0, u16::MAX.into())? {
                if group == u64::from(GroupId::BROADCAST.0) {
                    let reason = "group 255 is broadcast; any other from 0 to 65535 will do";
                    return Err(refuse("parameters.group", reason.into()));
                }
                chosen.group = group as u16;
            }
        }
        Scheme::Circuit(chosen) => {
            if let Some(name) = variant {
                *chosen = CircuitVariant::from_name(name)?;
            }
        }
        Scheme::Tree {
            variant: chosen,
            fan_out,
        } => {
            if let Some(name) = variant {
                *chosen = TreeVariant::from_name(name)?;
            }
            if let Some(most) = integer(parameters, "fan_out", 1, HOST_ID_MAX.into())? {
                *fan_out = most as u32;
            }
        }
        Scheme::KBinomial { k } => {
            let most = integer(parameters, "k", 0, HOST_ID_MAX.into())?;
            *k = most.filter(|k| *k > 0).map(|k| k as u32);
        }
        Scheme::Postal { lambda: chosen } => {
            if let Some(lambda) = integer(parameters, "lambda", 1, LAMBDA_MAX.into())? {
                *chosen = Some(lambda as u32);
            }
        }
        Scheme::MuTorus { r } => {
            *r = integer(parameters, "r", 1, HOST_ID_MAX.into())?.map(|length| length as u32);
        }
    }
    Ok(scheme)
}

fn refuse(at: &str, reason: String) -> GroupError {
    GroupError::Request {
        at: at.to_owned(),
        reason,
    }
}

fn missing(field: &str) -> GroupError {
    refuse("group", format!("field \"{field}\" is missing"))
}

fn text_field<'v>(
    from: &'v Map<String, Value>,
    field: &str,
) -> Result<Option<&'v str>, GroupError> {
    match from.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(refuse(field, format!("{other} is not a name"))),
    }
}

fn integer(
    from: &Map<String, Value>,
    field: &str,
    least: u64,
    most: u64,
) -> Result<Option<u64>, GroupError> {
    let value = match from.get(field) {
        None | Some(Value::Null) => return Ok(None),
        Some(value) => value,
    };
    match value.as_u64() {
        Some(found) if (least..=most).contains(&found) => Ok(Some(found)),
        _ => Err(refuse(
            &format!("parameters.{field}"),
            format!("{value} is not an integer from {least} to {most}"),
        )),
    }
}

fn host(at: &str, value: &Value) -> Result<HostId, GroupError> {
    match value.as_u64() {
        Some(id) if id <= u64::from(HOST_ID_MAX) => Ok(HostId(id as u16)),
        _ => Err(refuse(
            at,
            format!("{value} is not a host id from 0 to {HOST_ID_MAX}"),
        )),
    }
}
