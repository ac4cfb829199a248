//! The answer as a file.

use serde_json::{Value, json};

use super::{Channel, ChannelGraph, Model, Resource, Verdict, Worm};

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

impl Resource {
    /// The channel, `{"buffer":{"host":…,"class":…}}` (class 1, 2, or null for a pool), or
    /// `{"turn":{"switch":…}}`.
    pub fn to_value(self) -> Value {
        match self {
            Resource::Channel(channel) => channel.to_value(),
            Resource::Buffer { host, class } => {
                let class = class.map(|class| class.number());
                json!({"buffer": {"host": host.0, "class": class}})
            }
            Resource::Turn { switch } => json!({"turn": {"switch": switch.0}}),
        }
    }
}

impl Model {
    /// `{"branching":…,"buffers":…,"forwarding":…,"root":…}`; root null if each part of
    /// the fabric chooses its own.
    pub fn to_value(self) -> Value {
        json!({"branching": self.branching.name(), "buffers": self.buffers.name(),
               "forwarding": self.forwarding.name(), "root": self.root.map(|root| root.0)})
    }
}

impl Worm {
    /// `{"kind":"unicast","src":…,"dst":…}`, `{"kind":"tree","src":…,"hosts":[…]}` or
    /// `{"kind":"forwarded","src":…,"from":…,"to":…}`.
    pub fn to_value(&self) -> Value {
        match self {
            Worm::Unicast { src, dst } => json!({"kind": "unicast", "src": src.0, "dst": dst.0}),
            Worm::Tree { src, hosts } => {
                let hosts: Vec<u16> = hosts.iter().map(|host| host.0).collect();
                json!({"kind": "tree", "src": src.0, "hosts": hosts})
            }
            Worm::Forwarded { src, from, to } => {
                json!({"kind": "forwarded", "src": src.0, "from": from.0, "to": to.0})
            }
        }
    }
}

impl Verdict {
    /// Whether no deadlock was found.
    pub fn is_deadlock_free(&self) -> bool {
        matches!(self, Verdict::DeadlockFree { .. })
    }

    /// `{"deadlock_free":true,"model":{…},"order":[resource, …]}`, or
    /// `{"deadlock_free":false,"model":{…},"proven":…,
    /// "cycle":[{"channel":resource,"held_by":worm}, …]}` where each worm waits for the
    /// resource of the next entry, the last for the first.
    pub fn to_json(&self) -> String {
        format!("{}\n", self.to_value())
    }

    fn to_value(&self) -> Value {
        match self {
            Verdict::DeadlockFree { order, model } => {
                let order: Vec<Value> = order.iter().map(|taken| taken.to_value()).collect();
                json!({"deadlock_free": true, "model": model.to_value(), "order": order})
            }
            Verdict::Deadlock {
                cycle,
                proven,
                model,
            } => {
                let cycle: Vec<Value> = cycle
                    .iter()
                    .map(|wait| {
                        json!({"channel": wait.resource.to_value(), "held_by": wait.worm.to_value()})
                    })
                    .collect();
                json!({"deadlock_free": false, "model": model.to_value(), "proven": proven,
                       "cycle": cycle})
            }
        }
    }
}

impl ChannelGraph<'_> {
    /// The verify file: the verdict, with `"checked":{"routes":…,"multicasts":…}`, which says how much was looked at,
    /// and `"forwards"` where hosts pass messages on.
    pub fn to_json(&self) -> String {
        let mut value = self.check().to_value();
        value["checked"] = json!(self.added);
        format!("{value}\n")
    }
}
