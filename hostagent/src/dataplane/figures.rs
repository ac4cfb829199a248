//! Figures of the data plane, for the controller and for status.

use serde_json::{Map, Value, json};

/// One counter; group 0 and `grouped` false if it is not a group's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Figure {
    /// Name, e.g. `link.sent_frames`.
    pub name: String,
    /// The group, if it is a group's.
    pub group: Option<u16>,
    /// Origin of the stream, if it is a stream's.
    pub origin: Option<u16>,
    /// Value.
    pub value: u64,
}

/// A host that this agent saw fail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailedMember {
    /// Where.
    pub group: u16,
    /// In whose stream.
    pub origin: u16,
    /// Which.
    pub host: u16,
    /// Why.
    pub reason: String,
    /// True: the host is silent; false: its application gave up.
    pub host_dead: bool,
    /// When, µs of the data plane's clock.
    pub at_us: u64,
}

/// Everything at one moment.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// This host, once known.
    pub host: Option<u16>,
    /// Epoch of the plan in force; 0: none.
    pub plan_epoch: u64,
    /// The interface is up.
    pub link_up: bool,
    /// Its hardware address.
    pub mac: String,
    /// MTU in use.
    pub mtu_bytes: u32,
    /// Time since the start, µs.
    pub uptime_us: u64,
    /// Counters.
    pub figures: Vec<Figure>,
    /// Groups, with members, senders, receivers.
    pub groups: Vec<Value>,
    /// The last failures seen.
    pub failed: Vec<FailedMember>,
}

impl Figures {
    /// Adds a counter that is no group's.
    pub(super) fn push(&mut self, name: impl Into<String>, value: u64) {
        self.figures.push(Figure {
            name: name.into(),
            group: None,
            origin: None,
            value,
        });
    }

    /// Adds a counter of a stream.
    pub(super) fn push_stream(&mut self, name: &str, group: u16, origin: u16, value: u64) {
        let name = name.to_owned();
        self.figures.push(Figure {
            name,
            group: Some(group),
            origin: Some(origin),
            value,
        });
    }

    /// As the local API gives them (API.md §4, status).
    pub fn to_json(&self) -> Value {
        let mut counters = Map::new();
        for figure in self.figures.iter().filter(|figure| figure.group.is_none()) {
            counters.insert(figure.name.clone(), figure.value.into());
        }
        let groups: Vec<Value> = self
            .groups
            .iter()
            .map(|group| self.group_json(group))
            .collect();
        let failed: Vec<Value> = self
            .failed
            .iter()
            .map(|failed| {
                json!({
                    "group": failed.group,
                    "origin": failed.origin,
                    "host": failed.host,
                    "reason": failed.reason,
                    "host_dead": failed.host_dead,
                    "age_s": self.uptime_us.saturating_sub(failed.at_us) / 1_000_000,
                })
            })
            .collect();
        json!({
            "host": self.host,
            "plan_epoch": self.plan_epoch,
            "uptime_s": self.uptime_us / 1_000_000,
            "link": { "up": self.link_up, "mac": self.mac, "mtu_bytes": self.mtu_bytes },
            "groups": groups,
            "counters": counters,
            "failed_members": failed,
        })
    }

    fn group_json(&self, group: &Value) -> Value {
        let mut streams: Vec<(u16, Map<String, Value>)> = Vec::new();
        for figure in &self.figures {
            let (Some(of), Some(origin)) = (figure.group, figure.origin) else {
                continue;
            };
            if Some(u64::from(of)) != group["group"].as_u64() {
                continue;
            }
            if streams.last().is_none_or(|(last, _)| *last != origin) {
                streams.push((
                    origin,
                    Map::from_iter([("origin".to_owned(), origin.into())]),
                ));
            }
            if let Some((_, stream)) = streams.last_mut() {
                stream.insert(figure.name.clone(), figure.value.into());
            }
        }
        let mut group = group.clone();
        group["streams"] = streams
            .into_iter()
            .map(|(_, stream)| Value::Object(stream))
            .collect();
        group
    }
}
