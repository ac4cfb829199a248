//! Messages that were timed, and what comes of them, as files.

use serde_json::{Value, json};

use super::{CostError, Fit, Timed};
use wormcast_routing::group::GroupRequest;

impl Timed {
    /// Reads `[{"request":…,"bytes":…,"ns":…,"error":…}]`: requests as
    /// [`GroupRequest::from_json`], times in ns, their standard errors as a share (default 0).
    ///
    /// # Errors
    /// What is no such list, and requests that are none.
    pub fn list_from_json(text: &str) -> Result<Vec<Timed>, CostError> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| wrong("timed", error.to_string()))?;
        let Value::Array(list) = value else {
            return Err(wrong("timed", format!("{value} is not a list")));
        };
        let read = |(place, one): (usize, &Value)| {
            let at = |name: &str| format!("timed[{place}].{name}");
            let number = |name: &str, default: Option<f64>| {
                let found = &one[name];
                let found = found.as_f64().or(default.filter(|_| found.is_null()));
                found.ok_or_else(|| wrong(&at(name), format!("{} is not a number", one[name])))
            };
            Ok(Timed {
                request: GroupRequest::from_json(&one["request"].to_string())?,
                bytes: one["bytes"]
                    .as_u64()
                    .ok_or_else(|| wrong(&at("bytes"), format!("{} is no size", one["bytes"])))?,
                ns: number("ns", None)?,
                error: number("error", Some(0.0))?,
            })
        };
        list.iter().enumerate().map(read).collect()
    }
}

impl Fit {
    /// `{"costs":…,"found":[{"names":[…],"before":…,"after":…,"error":…,"told":…}],
    /// "estimates":[{"before_ns":…,"after_ns":…}]}`.
    pub fn to_json(&self) -> String {
        let costs: Value = serde_json::from_str(&self.costs.to_json()).expect("costs write JSON");
        let found = self.found.iter().map(|found| {
            json!({
                "names": found.names,
                "before": found.before,
                "after": found.after,
                "error": found.error,
                "told": found.determined,
            })
        });
        let estimates = self.estimates.iter();
        let estimates =
            estimates.map(|(before, after)| json!({"before_ns": before, "after_ns": after}));
        let found: Vec<Value> = found.collect();
        let estimates: Vec<Value> = estimates.collect();
        json!({"costs": costs, "found": found, "estimates": estimates}).to_string()
    }
}

fn wrong(at: &str, reason: String) -> CostError {
    CostError::Value {
        at: at.to_owned(),
        reason,
    }
}
