//! The answer as a file.

use serde_json::{Value, json};

use super::{Channel, Verdict, Worm};

impl Channel {
    /// `{"from":{…},"to":{…}}`; an end is a switch and its port, or a host.
    pub fn to_value(self) -> Value {
        match self {
            Channel::Injection { host, switch, port } => json!({
                "from": {"host": host.0}, "to": {"switch": switch.0, "port": port.get()}}),
            Channel::Link {
                from,
                from_port,
                to,
                to_port,
            } => json!({
                "from": {"switch": from.0, "port": from_port.get()},
                "to": {"switch": to.0, "port": to_port.get()}}),
            Channel::Ejection { switch, port, host } => json!({
                "from": {"switch": switch.0, "port": port.get()}, "to": {"host": host.0}}),
        }
    }
}

impl Worm {
    /// `{"kind":"unicast","src":…,"dst":…}` or `{"kind":"tree","src":…,"hosts":[…]}`.
    pub fn to_value(&self) -> Value {
        match self {
            Worm::Unicast { src, dst } => json!({"kind": "unicast", "src": src.0, "dst": dst.0}),
            Worm::Tree { src, hosts } => {
                let hosts: Vec<u16> = hosts.iter().map(|host| host.0).collect();
                json!({"kind": "tree", "src": src.0, "hosts": hosts})
            }
        }
    }
}

impl Verdict {
    /// Whether no deadlock was found.
    pub fn is_deadlock_free(&self) -> bool {
        matches!(self, Verdict::DeadlockFree { .. })
    }

    /// `{"deadlock_free":true,"order":[channel, …]}`, or
    /// `{"deadlock_free":false,"proven":…,"cycle":[{"channel":…,"held_by":worm}, …]}`
    /// where each worm waits for the channel of the next entry, the last for the first.
    pub fn to_json(&self) -> String {
        let value = match self {
            Verdict::DeadlockFree { order } => {
                let order: Vec<Value> = order.iter().map(|channel| channel.to_value()).collect();
                json!({"deadlock_free": true, "order": order})
            }
            Verdict::Deadlock { cycle, proven } => {
                let cycle: Vec<Value> = cycle
                    .iter()
                    .map(|wait| {
                        json!({"channel": wait.channel.to_value(), "held_by": wait.worm.to_value()})
                    })
                    .collect();
                json!({"deadlock_free": false, "proven": proven, "cycle": cycle})
            }
        };
        format!("{value}\n")
    }
}
