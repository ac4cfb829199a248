//! A plan as a file.

use serde_json::{Value, json};

use super::steps::{ChangeSteps, Step};
use wormcast_routing::routes::Unreachable;

impl ChangeSteps {
    /// Writes `{"steps":[…],"unreachable":[…],"summary":{…}}`; a step has `method`,
    /// `root`, `routes_changed`, `changed` (routes as in a file of routes), `drain` (pairs
    /// that stop), `waiting` (how many pairs have no route until a later step) and
    /// `deadlock_free_with_previous` with its certificate `order`, channels as in a verify
    /// file.
    pub fn to_json(&self) -> String {
        let changed: usize = self.steps.iter().map(|step| step.changed.len()).sum();
        let drained: usize = self.steps.iter().map(|step| step.drained.len()).sum();
        let value = json!({
            "steps": self.steps.iter().map(Step::to_value).collect::<Vec<_>>(),
            "unreachable": pairs(&self.unreachable),
            "summary": {
                "steps": self.steps.len(),
                "routes": self.routes,
                "routes_broken": self.broken,
                "routes_changed": changed,
                "drained": drained,
                "unreachable": self.unreachable.len(),
                "links_crossed": self.links_crossed,
            },
        });
        format!("{value}\n")
    }
}

impl Step {
    fn to_value(&self) -> Value {
        json!({
            "method": self.method.name(),
            "root": self.root.map(|root| root.0),
            "routes_changed": self.changed.len(),
            "waiting": self.waiting,
            "drain": pairs(&self.drained),
            "deadlock_free_with_previous": true,
            "order": self.order.iter().map(|channel| channel.to_value()).collect::<Vec<_>>(),
            "changed": self.changed.iter().map(|route| route.to_value()).collect::<Vec<_>>(),
        })
    }
}

fn pairs(pairs: &[Unreachable]) -> Vec<Value> {
    pairs
        .iter()
        .map(|pair| json!({"src": pair.src.0, "dst": pair.dst.0}))
        .collect()
}
