//! Requests and plans of groups as files.

use serde_json::{Map, Value, json};

use super::{
    Delivery, GroupError, GroupPlan, GroupRequest, Order, Scheme, SwitchParameters, SwitchTree,
    TreeEnd,
};
use crate::ids::{HOST_ID_MAX, HostId};
use crate::structure::{CircuitVariant, StructureError, TreeVariant};

/// Number of the group of all hosts (WORM §8.1).
const GROUP_BROADCAST: u16 = 255;
/// Most packets a request may ask steps for.
const PACKETS_MAX: u32 = 1 << 20;
/// Parameters that are understood.
const PARAMETERS: &[&str] = &[
    "k", "packets", "fan_out", "variant", "order", "mode", "guard", "group",
];

impl GroupRequest {
    /// Reads `{"scheme":…,"source":…,"members":[…],"parameters":{…}}`. Parameters: `k`
    /// (k-binomial; absent or 0: the best for `packets`), `packets` (default 1),
    /// `fan_out` (tree), `variant` (circuit: omit-last, return, ordered; tree: unordered,
    /// ordered), `mode` (switch: tree, table, broadcast), `guard` (switch: A, B, C), `order`
    /// (id, cco, dimension). The source counts as a member even if it
    /// is not listed.
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
        Ok(GroupRequest {
            scheme: read_scheme(name, parameters)?,
            source,
            members,
            order: text_field(parameters, "order")?
                .map(Order::from_name)
                .transpose()?,
            packets: integer(parameters, "packets", 1, PACKETS_MAX)?.unwrap_or(1),
        })
    }
}

impl GroupPlan {
    /// Writes `{"scheme":…,"source":…,"members":[…],"parameters":{…},"order":[…],
    /// "steps":…}` with `"edges"`, or for switches with what
    /// [`SwitchDelivery::write_into`](super::SwitchDelivery::write_into) adds.
    pub fn to_json(&self) -> String {
        let mut parameters = Map::new();
        parameters.insert("packets".into(), json!(self.request.packets));
        parameters.insert("order".into(), json!(self.request.order.map(Order::name)));
        match self.request.scheme {
            Scheme::Repeat => {}
            Scheme::Switch(switch) => {
                parameters.insert("mode".into(), json!(switch.mode.name()));
                parameters.insert("guard".into(), json!(switch.guard.name()));
            }
            Scheme::Circuit(variant) => {
                parameters.insert("variant".into(), json!(circuit_variant_name(variant)));
            }
            Scheme::Tree { variant, fan_out } => {
                parameters.insert("variant".into(), json!(tree_variant_name(variant)));
                parameters.insert("fan_out".into(), json!(fan_out));
            }
            Scheme::KBinomial { k } => {
                parameters.insert("k".into(), json!(k));
            }
        }
        let ids = |hosts: &[HostId]| hosts.iter().map(|host| host.0).collect::<Vec<_>>();
        let mut plan = json!({
            "scheme": self.request.scheme.name(),
            "source": self.request.source.0,
            "members": ids(&self.request.members),
            "parameters": parameters,
            "order": ids(&self.ordered),
            "steps": self.steps,
        });
        match &self.delivery {
            Delivery::Hosts { edges } => {
                plan["edges"] = edges
                    .iter()
                    .map(|edge| {
                        json!({"from": edge.from.0, "to": edge.to.0, "step": edge.step,
                               "class": edge.class.number()})
                    })
                    .collect();
            }
            Delivery::Switches(delivery) => delivery.write_into(&mut plan),
        }
        format!("{plan}\n")
    }
}

impl SwitchTree {
    /// `{"switch":…,"branches":[{"port":…,"switch":…,"branches":[…]},{"port":…,"host":…}]}`.
    pub fn to_value(&self) -> Value {
        let branches: Vec<Value> = self
            .branches
            .iter()
            .map(|(port, end)| match end {
                TreeEnd::Host(host) => json!({"port": port.get(), "host": host.0}),
                TreeEnd::Switch(tree) => {
                    let mut branch = json!({"port": port.get()});
                    if let (Value::Object(branch), Value::Object(tree)) =
                        (&mut branch, tree.to_value())
                    {
                        branch.extend(tree);
                    }
                    branch
                }
            })
            .collect();
        json!({"switch": self.switch.0, "branches": branches})
    }
}

fn read_scheme(name: &str, parameters: &Map<String, Value>) -> Result<Scheme, GroupError> {
    let mut scheme = Scheme::from_name(name)?;
    let variant = text_field(parameters, "variant")?;
    match &mut scheme {
        Scheme::Repeat => {}
        Scheme::Switch(chosen) => {
            let mode = text_field(parameters, "mode")?;
            *chosen = SwitchParameters::from_names(mode, text_field(parameters, "guard")?)?;
            if let Some(group) = integer(parameters, "group", 0, u32::from(u16::MAX))? {
                if group == u32::from(GROUP_BROADCAST) {
                    let reason = "group 255 is broadcast; any other from 0 to 65535 will do";
                    return Err(refuse("parameters.group", reason.into()));
                }
                chosen.group = group as u16;
            }
        }
        Scheme::Circuit(chosen) => {
            if let Some(name) = variant {
                *chosen = named(name, &CIRCUIT_VARIANTS, &["omit-last", "return", "ordered"])?;
            }
        }
        Scheme::Tree {
            variant: chosen,
            fan_out,
        } => {
            if let Some(name) = variant {
                *chosen = named(name, &TREE_VARIANTS, &["unordered", "ordered"])?;
            }
            if let Some(most) = integer(parameters, "fan_out", 1, u32::from(HOST_ID_MAX))? {
                *fan_out = most;
            }
        }
        Scheme::KBinomial { k } => {
            *k = integer(parameters, "k", 0, u32::from(HOST_ID_MAX))?.filter(|k| *k > 0);
        }
    }
    Ok(scheme)
}

const CIRCUIT_VARIANTS: [(&str, CircuitVariant); 3] = [
    ("omit-last", CircuitVariant::OmitLast),
    ("return", CircuitVariant::Return),
    ("ordered", CircuitVariant::Ordered),
];
const TREE_VARIANTS: [(&str, TreeVariant); 2] = [
    ("unordered", TreeVariant::Unordered),
    ("ordered", TreeVariant::Ordered),
];

fn named<T: Copy>(
    name: &str,
    all: &[(&str, T)],
    choices: &'static [&'static str],
) -> Result<T, StructureError> {
    all.iter()
        .find(|(known, _)| *known == name)
        .map(|(_, chosen)| *chosen)
        .ok_or_else(|| StructureError::UnknownName {
            what: "variant",
            name: name.to_owned(),
            choices,
        })
}

fn circuit_variant_name(variant: CircuitVariant) -> &'static str {
    CIRCUIT_VARIANTS
        .iter()
        .find(|(_, known)| *known == variant)
        .map_or("", |(name, _)| name)
}

fn tree_variant_name(variant: TreeVariant) -> &'static str {
    TREE_VARIANTS
        .iter()
        .find(|(_, known)| *known == variant)
        .map_or("", |(name, _)| name)
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
    least: u32,
    most: u32,
) -> Result<Option<u32>, GroupError> {
    let value = match from.get(field) {
        None | Some(Value::Null) => return Ok(None),
        Some(value) => value,
    };
    match value.as_u64() {
        Some(found) if (u64::from(least)..=u64::from(most)).contains(&found) => {
            Ok(Some(found as u32))
        }
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
