//! The answer as a file.

use serde_json::{Map, Value, json};

use super::graph::{Channel, Held, Verdict};
use super::lost::{Lost, LostKind};
use super::packet::Packet;

impl LostKind {
    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            LostKind::NoEntry => "no-entry",
            LostKind::NoLink => "no-link",
            LostKind::KeptBySwitch => "kept-by-switch",
            LostKind::WrongHost => "wrong-host",
            LostKind::Loop => "loop",
        }
    }
}

impl Channel {
    /// `{"from":{"node":…,"port":…},"to":{…},"vc":…}`, without what is not known.
    fn to_value(&self) -> Value {
        let end = |node: &String, port: &Option<String>| match port {
            Some(port) => json!({"node": node, "port": port}),
            None => json!({"node": node}),
        };
        let mut value = json!({"from": end(&self.from, &self.from_port),
                               "to": end(&self.to, &self.to_port)});
        if let Some(vc) = &self.vc {
            value["vc"] = json!(vc);
        }
        value
    }
}

impl Packet {
    fn to_value(&self) -> Value {
        let mut value = json!({"kind": "packet", "src": self.src});
        if let Some(dst) = &self.dst {
            value["dst"] = json!(dst);
        }
        if let Some(key) = &self.key {
            value["to"] = json!(key);
        }
        if let Some(line) = self.line {
            value["line"] = json!(line);
        }
        value
    }
}

impl Lost {
    fn to_value(&self) -> Value {
        let mut value = json!({"kind": self.kind.name(), "switch": self.switch,
                               "packet": self.packet.to_value()});
        if let Some(port) = self.port {
            value["port"] = json!(port.to_string());
        }
        if !self.path.is_empty() {
            let path = self.path.iter();
            value["path"] = path
                .map(|(node, port)| json!({"node": node, "port": port.to_string()}))
                .collect();
        }
        value
    }
}

impl Verdict {
    /// Whether no packets can wait for each other.
    pub fn is_deadlock_free(&self) -> bool {
        self.cycle.is_empty()
    }

    /// The verify file: `{"deadlock_free":…,"checked":{…},"lost":[…],"lost_count":…}`, with
    /// `"order"`, or `"proven"` and `"cycle"`.
    pub fn to_json(&self) -> String {
        let checked = self
            .checked
            .iter()
            .map(|(name, count)| ((*name).to_owned(), json!(count)));
        let checked: Map<String, Value> = checked.collect();
        let lost: Vec<Value> = self.lost.iter().map(Lost::to_value).collect();
        let mut value = json!({"deadlock_free": self.is_deadlock_free(), "checked": checked,
                               "lost": lost, "lost_count": self.lost_count});
        if !self.warnings.is_empty() {
            value["warnings"] = json!(self.warnings);
        }
        if self.is_deadlock_free() {
            value["order"] = self.order.iter().map(Channel::to_value).collect();
        } else {
            let held = |held: &Held| json!({"channel": held.channel.to_value(), "held_by": held.packet.to_value()});
            value["proven"] = json!(true);
            value["cycle"] = self.cycle.iter().map(held).collect();
        }
        format!("{value}\n")
    }
}
