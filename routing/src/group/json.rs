//! Plans of groups as files.

use serde_json::{Map, Value, json};

use super::{
    Delivery, GroupPlan, GroupRequest, Metrics, Order, Routing, Scheme, SwitchMode, SwitchTree,
    TreeEnd,
};
use crate::structure::Discipline;
use crate::structure::postal::LAMBDA_DEFAULT;
use wormcast_wire::HostId;

impl GroupPlan {
    /// Writes `{"scheme":…,"source":…,"members":[…],"parameters":{…},"order":[…],
    /// "steps":…}` with `"edges"`, or for switches with what
    /// [`SwitchDelivery::write_into`](super::SwitchDelivery::write_into) adds; and
    /// `"metrics"` if they were measured.
    pub fn to_json(&self) -> String {
        let ids = |hosts: &[HostId]| hosts.iter().map(|host| host.0).collect::<Vec<_>>();
        let mut plan = json!({
            "scheme": self.request.scheme.name(),
            "source": self.request.source.0,
            "members": ids(&self.request.members),
            "parameters": GroupPlan::parameters_of(&self.request),
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
        if let Some(metrics) = &self.metrics {
            plan["metrics"] = metrics.to_value();
        }
        format!("{plan}\n")
    }

    /// The parameters of a request as its file has them.
    pub fn parameters_of(request: &GroupRequest) -> Map<String, Value> {
        let mut parameters = Map::new();
        let mut put = |name: &str, value: Value| parameters.insert(name.into(), value);
        put("packets", json!(request.packets));
        put("order", json!(request.order.map(Order::name)));
        if let Some(Order::Random { seed }) = request.order {
            put("seed", json!(seed));
        }
        if let Some(bytes) = request.bytes {
            put("bytes", json!(bytes));
            put("payload", json!(request.payload_bytes));
        }
        match request.scheme {
            Scheme::Repeat | Scheme::UTorus | Scheme::STorus | Scheme::MdTorus => {}
            Scheme::Switch(switch) => {
                put("guard", json!(switch.guard.name()));
                if switch.has_own_trees() {
                    put("least", json!(switch.least.name()));
                }
                if switch.mode == SwitchMode::Table {
                    put("group", json!(switch.group));
                }
            }
            Scheme::Circuit(variant) => {
                put("variant", json!(variant.name()));
            }
            Scheme::Tree { variant, fan_out } => {
                put("variant", json!(variant.name()));
                put("fan_out", json!(fan_out));
            }
            Scheme::KBinomial { k } => {
                put("k", json!(k));
            }
            Scheme::Postal { lambda } => {
                put("lambda", json!(lambda.unwrap_or(LAMBDA_DEFAULT)));
            }
            Scheme::MuTorus { r } => {
                put("r", json!(r));
            }
        }
        if !matches!(request.scheme, Scheme::Switch(_)) {
            put("discipline", json!(Discipline::name(request.discipline)));
            put("routing", json!(request.routing.map(Routing::name)));
        }
        parameters
    }
}

impl Metrics {
    /// An object of all fields and the shares made of them, durations in microseconds;
    /// `"latency"` is null where the models say nothing.
    pub fn to_value(&self) -> Value {
        let holding = |holding: &super::metrics::Holding| {
            json!({
                "steps": holding.steps,
                "held_steps_max": holding.held_max,
                "held_steps_mean": holding.held_mean,
                "packets_held_max": holding.packets_max,
            })
        };
        let latency = self.latency.map(|latency| {
            json!({
                "bytes": latency.bytes,
                "simplified_us": latency.simplified_ns / 1000.0,
                "full_us": latency.full_ns / 1000.0,
            })
        });
        json!({
            "busy_steps": self.busy_steps,
            "contended_steps": self.contended_steps,
            "contended_steps_two_lanes": self.contended_steps_two_lanes,
            "contention_share": self.contention_share(),
            "sends": self.sends,
            "contended_sends": self.contended_sends,
            "contended_sends_share": self.contended_sends_share(),
            "link_visits": self.link_visits,
            "links_used": self.links_used,
            "link_concentration": self.link_concentration(),
            "link_concurrency": self.link_concurrency,
            "startup_steps": self.startup_steps,
            "intermediate_hosts": self.intermediate_hosts,
            "fpfs": holding(&self.fpfs),
            "fcfs": holding(&self.fcfs),
            "latency": latency,
        })
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
