//! Figures of an agent, for the controller and for status.

use crate::transfers::TransfersUnderWay;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use wormcast_protocol::Behind;

/// Streams in one status at most, about 1 KB each; groups with more are left out.
const STREAMS_MAX: usize = 256;

/// Hosts in one status at most whose routes are named: those used most.
const ROUTES_MAX: usize = 256;

/// Members of a stream in one status at most that are named as behind: those most behind.
const BEHIND_MAX: usize = 16;

/// How many messages took each of the unicast routes to a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteUse {
    /// Where they lead.
    pub host: u16,
    /// In the order of the plan.
    pub messages: Vec<u64>,
}

/// One counter; group 0 and `grouped` false if it is not a group's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Figure {
    /// Name, e.g. `link.sent_frames`.
    pub name: String,
    /// The group, if it is a group's.
    pub group: Option<u16>,
    /// Origin of the stream, if it is a stream's.
    pub origin: Option<u16>,
    pub value: u64,
}

/// A host that this agent saw fail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailedMember {
    pub group: u16,
    pub origin: u16,
    pub host: u16,
    pub reason: String,
    /// True: the host is silent; false: its application gave up.
    pub host_dead: bool,
    /// When, µs of the time lived.
    pub at_us: u64,
}

/// Everything at one moment.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// This host, once known.
    pub host: Option<u16>,
    /// Epoch of the plan in force; 0: none.
    pub plan_epoch: u64,
    pub link_up: bool,
    pub mac: String,
    pub mtu_bytes: u32,
    /// Time since the start, µs.
    pub uptime_us: u64,
    pub figures: Vec<Figure>,
    /// Members that keep a stream back, by group and origin, and how many more do ([`Figures::push_behind`]).
    pub behind: BTreeMap<(u16, u16), (Vec<Behind>, usize)>,
    /// Groups, with members, senders, receivers.
    pub groups: Vec<Value>,
    /// Groups of the plan that are not among them, for want of room in the answer.
    pub groups_left_out: usize,
    /// Unicast routes that messages took, by host; at most 256 hosts.
    pub routes: Vec<RouteUse>,
    /// Hosts whose routes are used and not among them.
    pub routes_left_out: usize,
    /// Files under way; for the controller alone.
    pub transfers: TransfersUnderWay,
    /// The last failures seen.
    pub failed: Vec<FailedMember>,
}

impl Figures {
    /// Adds a counter that is no group's.
    pub fn push(&mut self, name: impl Into<String>, value: u64) {
        self.figures.push(Figure {
            name: name.into(),
            group: None,
            origin: None,
            value,
        });
    }

    /// Takes the routes used, as many as are named; those used most.
    pub fn set_routes<'r>(&mut self, taken: impl Iterator<Item = (u16, &'r [u64])>) {
        let used = |(host, messages): (u16, &[u64])| RouteUse {
            host,
            messages: messages.to_vec(),
        };
        let sum = |routes: &RouteUse| routes.messages.iter().sum::<u64>();
        let mut routes: Vec<RouteUse> = taken.map(used).filter(|one| sum(one) > 0).collect();
        self.routes_left_out = routes.len().saturating_sub(ROUTES_MAX);
        if self.routes_left_out > 0 {
            routes.sort_by_key(|one| std::cmp::Reverse(sum(one)));
            routes.truncate(ROUTES_MAX);
            routes.sort_by_key(|one| one.host);
        }
        self.routes = routes;
    }

    /// Adds a counter of a stream.
    pub fn push_stream(&mut self, name: &str, group: u16, origin: u16, value: u64) {
        let name = name.to_owned();
        self.figures.push(Figure {
            name,
            group: Some(group),
            origin: Some(origin),
            value,
        });
    }

    /// Takes who keeps a stream back, as many as are named, the one most behind first; the others are counted.
    pub fn push_behind(&mut self, group: u16, origin: u16, behind: impl Iterator<Item = Behind>) {
        let mut behind: Vec<Behind> = behind.collect();
        behind.sort_by_key(|one| std::cmp::Reverse(one.bytes));
        let left_out = behind.len().saturating_sub(BEHIND_MAX);
        behind.truncate(BEHIND_MAX);
        self.behind.insert((group, origin), (behind, left_out));
    }

    /// As the local API gives them (API.md §4, status).
    pub fn to_json(&self) -> Value {
        let mut counters = Map::new();
        for figure in self.figures.iter().filter(|figure| figure.group.is_none()) {
            counters.insert(figure.name.clone(), figure.value.into());
        }
        let (groups, left_out) = self.groups_json();
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
            "groups_left_out": left_out,
            "routes": self.routes.iter().map(|routes| {
                json!({ "host": routes.host, "messages": routes.messages })
            }).collect::<Vec<Value>>(),
            "routes_left_out": self.routes_left_out,
            "counters": counters,
            "failed_members": failed,
        })
    }

    /// The groups with their streams, as many as an answer holds, and how many are left out.
    fn groups_json(&self) -> (Vec<Value>, usize) {
        let mut streams: BTreeMap<(u16, u16), Map<String, Value>> = BTreeMap::new();
        for figure in &self.figures {
            let (Some(group), Some(origin)) = (figure.group, figure.origin) else {
                continue;
            };
            let stream = streams
                .entry((group, origin))
                .or_insert_with(|| Map::from_iter([("origin".to_owned(), origin.into())]));
            stream.insert(figure.name.clone(), figure.value.into());
        }
        for ((group, origin), (behind, left_out)) in &self.behind {
            let Some(stream) = streams.get_mut(&(*group, *origin)) else {
                continue;
            };
            let named = behind
                .iter()
                .map(|one| json!({"host": one.host.0, "below": one.below, "bytes": one.bytes}));
            stream.insert("behind".to_owned(), named.collect());
            stream.insert("behind_left_out".to_owned(), (*left_out).into());
        }
        let mut groups = Vec::new();
        let mut streams_left = STREAMS_MAX;
        for group in &self.groups {
            let number = group["group"].as_u64().unwrap_or_default() as u16;
            let own: Vec<Value> = streams
                .range((number, 0)..=(number, u16::MAX))
                .map(|(_, stream)| Value::Object(stream.clone()))
                .collect();
            let Some(left) = streams_left.checked_sub(own.len()) else {
                break;
            };
            streams_left = left;
            let mut group = group.clone();
            group["streams"] = own.into();
            groups.push(group);
        }
        let left_out = self.groups_left_out + self.groups.len() - groups.len();
        (groups, left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_most_behind_are_named_and_the_others_counted() {
        let mut figures = Figures {
            groups: vec![json!({"group": 3})],
            ..Figures::default()
        };
        figures.push_stream("acks_sent", 3, 1, 0);
        let behind = |host: u16| Behind {
            host: wormcast_wire::HostId(host),
            below: 2,
            bytes: u64::from(host),
        };
        figures.push_behind(3, 1, (10..30).map(behind));
        let stream = &figures.to_json()["groups"][0]["streams"][0];
        let hosts: Vec<u64> = stream["behind"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|one| one["host"].as_u64().expect("a number"))
            .collect();
        assert_eq!(hosts, (14..30).rev().collect::<Vec<u64>>());
        assert_eq!(
            stream["behind"][0],
            json!({"host": 29, "below": 2, "bytes": 29})
        );
        assert_eq!(stream["behind_left_out"], 4);
    }

    #[test]
    fn the_routes_used_most_are_named_and_the_others_counted() {
        let taken: Vec<[u64; 2]> = (0..300).map(|host| [0, host]).collect();
        let mut figures = Figures::default();
        figures.set_routes((0..).zip(taken.iter().map(|taken| &taken[..])));
        assert_eq!(figures.routes_left_out, 299 - ROUTES_MAX);
        let hosts: Vec<u16> = figures.routes.iter().map(|routes| routes.host).collect();
        assert_eq!(hosts, (44..300).collect::<Vec<u16>>());
        assert_eq!(
            figures.to_json()["routes"][0],
            json!({"host": 44, "messages": [0, 44]})
        );
    }
}
