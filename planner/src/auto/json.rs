//! Requests and plans of `auto` as files.

use serde_json::{Map, Value, json};

use super::{AutoPlan, AutoRequest, Estimated, plan_auto};
use crate::cost::{CostError, Costs};
use wormcast_routing::group::{GroupError, GroupPlan, GroupRequest, plan_group_on, with_paths};
use wormcast_routing::nested_json;
use wormcast_routing::topology::Topology;
use wormcast_wire::SwitchId;

/// The name that a request gives in place of a scheme.
pub const AUTO: &str = "auto";
/// Parameters that only such a request has.
const PARAMETERS: [&str; 4] = ["costs", "among", "total_order", "tables"];

/// Plans a request from a file: one for a scheme, or for `auto`. Gives the file of the
/// plan; with `measure`, what its sends cost the network too.
///
/// # Errors
/// As [`GroupRequest::from_json`], [`AutoRequest::from_json`], [`plan_group_on`] and
/// [`plan_auto`].
pub fn plan_file(
    topology: &Topology,
    root: Option<SwitchId>,
    request: &str,
    measure: bool,
) -> Result<String, CostError> {
    let is_auto = serde_json::from_str::<Value>(request)
        .is_ok_and(|value| value.get("scheme").and_then(Value::as_str) == Some(AUTO));
    if !is_auto {
        let request = GroupRequest::from_json(request)?;
        return Ok(plan_group_on(topology, root, &request, measure)?.to_json());
    }
    let request = AutoRequest::from_json(request)?;
    let mut auto = with_paths(topology, root, request.group.routing, |paths| {
        plan_auto(paths, &request)
    })?;
    if measure {
        let chosen = plan_group_on(topology, root, &auto.plan.request, true)?;
        auto.plan.metrics = chosen.metrics;
    }
    Ok(auto.to_json())
}

impl AutoRequest {
    /// Reads `{"scheme":"auto","source":…,"members":[…],"parameters":{…}}`. Parameters:
    /// `bytes` or `packets`, `payload` (default: that of the costs), `routing`, `costs`
    /// (as [`Costs::from_json`], or the name of a set), `among` (list of schemes, or
    /// their names with commas between), `total_order`, `tables` (whether switches may
    /// have entries for the group).
    ///
    /// # Errors
    /// As [`GroupRequest::from_json`] and [`Costs::from_json`].
    pub fn from_json(text: &str) -> Result<AutoRequest, CostError> {
        let mut value: Value =
            serde_json::from_str(text).map_err(|error| refuse("group", error.to_string()))?;
        let own = take_own(&mut value)?;
        let costs = match own.get("costs") {
            None | Some(Value::Null) => Costs::default(),
            Some(costs) => Costs::from_value(costs)?,
        };
        if let Some(Value::Object(parameters)) = value.get_mut("parameters") {
            let payload = parameters.entry("payload").or_insert(Value::Null);
            if payload.is_null() {
                *payload = json!(costs.packet_payload_bytes);
            }
        }
        value["scheme"] = json!("repeat");
        let mut request = AutoRequest::new(GroupRequest::from_json(&value.to_string())?, costs);
        request.group.order = None;
        request.among = match own.get("among") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::String(names)) => {
                let names = names.split(',').map(|name| name.trim().to_owned());
                names.filter(|name| !name.is_empty()).collect()
            }
            Some(Value::Array(names)) => names
                .iter()
                .map(|name| match name.as_str() {
                    Some(name) => Ok(name.to_owned()),
                    None => Err(refuse("parameters.among", format!("{name} is not a name"))),
                })
                .collect::<Result<_, _>>()?,
            Some(other) => {
                return Err(refuse("parameters.among", format!("{other} is not a list")));
            }
        };
        request.needs.total_order = flag(&own, "total_order")?;
        request.needs.tables = flag(&own, "tables")?;
        Ok(request)
    }
}

fn flag(from: &Map<String, Value>, name: &str) -> Result<bool, CostError> {
    match from.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(wanted)) => Ok(*wanted),
        Some(other) => Err(refuse(
            &format!("parameters.{name}"),
            format!("{other} is neither true nor false"),
        )),
    }
}

/// Takes out of a request what other schemes do not know.
fn take_own(value: &mut Value) -> Result<Map<String, Value>, CostError> {
    let Value::Object(top) = value else {
        return Err(refuse("group", "not an object".into()));
    };
    let parameters = top.entry("parameters").or_insert(Value::Null);
    if parameters.is_null() {
        *parameters = json!({});
    }
    let mut own = Map::new();
    if let Value::Object(parameters) = parameters {
        for name in PARAMETERS {
            if let Some(value) = parameters.shift_remove(name) {
                own.insert(name.to_owned(), value);
            }
        }
    }
    Ok(own)
}

impl AutoPlan {
    /// The file of the chosen plan ([`GroupPlan::to_json`]) with `"auto":{"chosen":…,
    /// "bytes":…,"packets":…,"estimates":[{"scheme":…,"parameters":…,"microseconds":…,
    /// "estimate_microseconds":…,"replayed":…}]}`, estimates in ascending order of time:
    /// `microseconds` is what the choice went by, from a replay where there was one.
    pub fn to_json(&self) -> String {
        let mut plan =
            nested_json::parse(&self.plan.to_json()).expect("a plan is JSON, two levels a switch");
        let us = |ns: f64| json!(ns.round() / 1e3);
        let chosen = &self.estimates[self.chosen];
        let mut ranked: Vec<(usize, &Estimated)> = self.estimates.iter().enumerate().collect();
        // The chosen one first; those replayed before those that were too far off.
        ranked.sort_by(|(a, x), (b, y)| {
            let rank =
                |place: usize, one: &Estimated| (place != self.chosen, one.refined_ns.is_none());
            rank(*a, x)
                .cmp(&rank(*b, y))
                .then(x.ns().total_cmp(&y.ns()))
        });
        let estimates: Vec<Value> = ranked
            .iter()
            .map(|(_, one)| {
                json!({
                    "scheme": one.scheme.name(),
                    "parameters": self.parameters_of(one),
                    "microseconds": us(one.ns()),
                    "estimate_microseconds": us(one.estimate_ns),
                    "replayed": one.refined_ns.is_some(),
                })
            })
            .collect();
        plan["auto"] = json!({
            "chosen": {
                "scheme": chosen.scheme.name(),
                "parameters": self.parameters_of(chosen),
            },
            "bytes": self.message.bytes,
            "packets": self.message.packets,
            "estimates": estimates,
        });
        format!("{plan}\n")
    }

    /// What tells this candidate from others of its scheme.
    fn parameters_of(&self, one: &Estimated) -> Map<String, Value> {
        let mut parameters = GroupPlan::parameters_of(&GroupRequest {
            scheme: one.scheme,
            order: one.order,
            bytes: None,
            ..self.plan.request.clone()
        });
        for shared in ["packets", "discipline", "routing"] {
            parameters.shift_remove(shared);
        }
        parameters
    }
}

fn refuse(at: &str, reason: String) -> CostError {
    GroupError::Request {
        at: at.to_owned(),
        reason,
    }
    .into()
}
