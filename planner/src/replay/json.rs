//! What a replay found as a file.

use serde_json::{Value, json};

use super::found::Replay;
use crate::cost::Channel;

impl Replay {
    /// Writes `{"completion_us":…,"start_up_us":…,"members":[{"host":…,"us":…}],
    /// "channels":[{"switch":…,"port":…,"busy_us":…,"backlog_bytes_max":…}],
    /// "packets_replayed":…}`; a channel out of a host has `"host"` in place of switch and
    /// port.
    pub fn to_json(&self) -> String {
        let us = |ns: f64| json!(ns / 1e3);
        let members = self.members.iter();
        let members = members.map(|(host, at)| json!({"host": host.0, "us": us(*at)}));
        let channels = self.channels.iter().map(|used| {
            let mut channel = match used.channel {
                Channel::Port(switch, port) => json!({"switch": switch.0, "port": port.get()}),
                Channel::Host(host) => json!({"host": host.0}),
            };
            channel["busy_us"] = us(used.busy_ns);
            channel["backlog_bytes_max"] = json!(used.backlog_bytes_max);
            channel
        });
        let replay = json!({
            "completion_us": us(self.completion_ns),
            "start_up_us": us(self.start_up_ns),
            "members": members.collect::<Value>(),
            "channels": channels.collect::<Value>(),
            "packets_replayed": self.packets_replayed,
        });
        format!("{replay}\n")
    }
}
