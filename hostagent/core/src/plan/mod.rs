//! The controller's plan: checked once on arrival, then trusted.

mod change;
#[cfg(test)]
pub(crate) mod examples;
pub(crate) mod fields;
mod group;
mod left_out;
mod structure;
mod structures;
mod trees;

pub use fields::{MEMBERS_MAX, PlanRejected};
pub use group::{AUTO, GROUP_NAME_BYTES_MAX, PlannedGroup};
pub use left_out::LeftOut;
pub use structure::PlannedStructure;
pub use trees::TreePaths;

use crate::pacing::RATE_BYTES_MAX;
use crate::wormhole::trains::TRAIN_FRAMES_MAX;
use fields::{REASON_CHARS_MAX, parse_host, rejected};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use wormcast_agent_proto as proto;
use wormcast_protocol::{Alternative, Alternatives};
use wormcast_wire::{
    ALTERNATIVES_MAX, GroupId, HostId, PORT_ID_MAX, ROUTE_LENGTH_MAX, SHARES_WHOLE,
    SWITCHES_CROSSED_MAX,
};

/// Groups of one plan at most: as many as a switch has room for (GROUPS_SIZE).
pub const GROUPS_MAX: usize = 16_384;

const RECIRCULATE_PORT: u8 = 254;

/// A plan that can be applied.
#[derive(Clone, Debug)]
pub struct AgentPlan {
    /// The controller's number for it.
    pub epoch: u64,
    pub host: HostId,
    /// Unicast routes by destination.
    pub routes: BTreeMap<HostId, Arc<Alternatives>>,
    /// Routes along the multicast spanning tree by destination.
    pub tree_routes: Arc<BTreeMap<HostId, Vec<u8>>>,
    /// Port bytes to its root, from where switches copy to all hosts.
    pub root_route: Option<Vec<u8>>,
    /// Groups this host is a member of.
    pub groups: BTreeMap<GroupId, Arc<PlannedGroup>>,
    /// Frames of a train of any kind at most; 1: there are none.
    pub train_frames: u16,
    /// Frames of a UNICAST train at most, no fewer than that; 1: there are none.
    pub unicast_train_frames: u16,
    /// Bytes of a TREE route at most.
    pub tree_route_max: u8,
    /// Bytes a second that this host may send of its own; none: any.
    pub rate_bytes: Option<u64>,
    /// Groups that cannot be applied, in the order of the plan. The rest of it can.
    pub refused: Vec<RefusedGroup>,
}

/// A group of the plan that this agent does not take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusedGroup {
    /// Its number as the plan has it.
    pub group: u32,
    pub reason: String,
}

impl RefusedGroup {
    /// With the reason cut to what a report may have.
    pub fn new(group: u32, reason: &str) -> Self {
        let reason = reason.chars().take(REASON_CHARS_MAX).collect();
        Self { group, reason }
    }
}

impl AgentPlan {
    /// Checks a plan whole. Groups that cannot be applied are named in `refused`.
    ///
    /// # Errors
    /// The first thing that is wrong apart from groups, with its value, the bound and the choices.
    pub fn parse(message: &proto::Plan) -> Result<Self, PlanRejected> {
        let host = parse_host("host_id", message.host_id)?;
        let routes = parse_unicast(message, host)?;
        let tree_routes = parse_tree_routes(&message.tree_routes, host)?;
        let root_route = match &message.root_route {
            Some(ports) => Some(parse_root_route(ports)?),
            None => None,
        };
        let train_frames = parse_train_frames(message.train_frames)?;
        let unicast_train_frames = parse_train_frames(message.unicast_train_frames)?;
        let tree_route_max = parse_tree_route_max(message.tree_route_max)?;
        let rate_bytes = parse_rate(message.rate_bytes)?;
        let mut groups = BTreeMap::new();
        let mut names = BTreeSet::new();
        let mut refused = Vec::new();
        for group in &message.groups {
            let taken = PlannedGroup::parse(group, host).and_then(|parsed| {
                if groups.len() >= GROUPS_MAX {
                    let count = message.groups.len();
                    rejected(format!("the plan has {count} groups; at most {GROUPS_MAX}"))
                } else if groups.contains_key(&parsed.id) {
                    rejected(format!("group {} is in the plan twice", parsed.id))
                } else if !group.name.is_empty() && !names.insert(group.name.as_str()) {
                    rejected(format!("two groups are named \"{}\"", group.name))
                } else {
                    Ok(parsed)
                }
            });
            match taken {
                Ok(parsed) => drop(groups.insert(parsed.id, Arc::new(parsed))),
                Err(error) => refused.push(RefusedGroup::new(group.id, &error.0)),
            }
        }
        Ok(Self {
            epoch: message.epoch,
            host,
            routes,
            tree_routes: Arc::new(tree_routes),
            root_route,
            groups,
            train_frames,
            unicast_train_frames: unicast_train_frames.max(train_frames),
            tree_route_max,
            rate_bytes,
            refused,
        })
    }
}

fn parse_unicast(
    message: &proto::Plan,
    own: HostId,
) -> Result<BTreeMap<HostId, Arc<Alternatives>>, PlanRejected> {
    let what = "routes";
    let mut parsed: BTreeMap<HostId, Alternatives> = BTreeMap::new();
    for route in &message.routes {
        let host = parse_route(what, route, own, RECIRCULATE_PORT)?;
        let all = parsed.entry(host).or_insert_with(|| Alternatives {
            routes: Vec::new(),
            at_random: message.routes_at_random,
        });
        if all.routes.len() >= ALTERNATIVES_MAX {
            return rejected(format!(
                "{what} has more than {ALTERNATIVES_MAX} routes to host {host}; at most {ALTERNATIVES_MAX}"
            ));
        }
        all.routes.push(Alternative {
            ports: route.ports.clone(),
            share: if route.share == 0 {
                SHARES_WHOLE
            } else {
                route.share
            },
        });
    }
    for (host, all) in &parsed {
        let sum: u64 = all.routes.iter().map(|route| u64::from(route.share)).sum();
        if sum != u64::from(SHARES_WHOLE) {
            return rejected(format!(
                "the shares of the {} routes to host {host} in {what} add up to {sum}; they must add up to {SHARES_WHOLE}",
                all.routes.len()
            ));
        }
    }
    let parsed = parsed.into_iter();
    Ok(parsed.map(|(host, all)| (host, Arc::new(all))).collect())
}

fn parse_tree_routes(
    routes: &[proto::Route],
    own: HostId,
) -> Result<BTreeMap<HostId, Vec<u8>>, PlanRejected> {
    let mut parsed = BTreeMap::new();
    for route in routes {
        let host = parse_route("tree_routes", route, own, PORT_ID_MAX)?;
        if parsed.insert(host, route.ports.clone()).is_some() {
            return rejected(format!(
                "tree_routes has two routes to host {host}; it must have one"
            ));
        }
    }
    Ok(parsed)
}

fn parse_root_route(ports: &[u8]) -> Result<Vec<u8>, PlanRejected> {
    if ports.len() > SWITCHES_CROSSED_MAX {
        let length = ports.len();
        return rejected(format!(
            "the route to the root has {length} bytes; at most {SWITCHES_CROSSED_MAX}"
        ));
    }
    match ports.iter().find(|&&port| port > PORT_ID_MAX) {
        Some(port) => rejected(format!(
            "the route to the root has byte {port}; bytes must be 0 to {PORT_ID_MAX}"
        )),
        None => Ok(ports.to_vec()),
    }
}

fn parse_train_frames(frames: u32) -> Result<u16, PlanRejected> {
    match u16::try_from(frames) {
        Ok(frames @ ..=TRAIN_FRAMES_MAX) => Ok(frames.max(1)),
        _ => rejected(format!(
            "trains of {frames} frames; they must be 1, for none, to {TRAIN_FRAMES_MAX}"
        )),
    }
}

/// The shortest TREE route has one branch and the marker.
fn parse_tree_route_max(bytes: u32) -> Result<u8, PlanRejected> {
    match u8::try_from(bytes) {
        Ok(0) => Ok(u8::MAX),
        Ok(bytes @ 3..) => Ok(bytes),
        _ => rejected(format!(
            "TREE routes of {bytes} bytes; it must be 3 to {ROUTE_LENGTH_MAX}, or 0 for {ROUTE_LENGTH_MAX}"
        )),
    }
}

fn parse_rate(bytes: u64) -> Result<Option<u64>, PlanRejected> {
    match bytes {
        0 => Ok(None),
        1..=RATE_BYTES_MAX => Ok(Some(bytes)),
        _ => rejected(format!(
            "a rate of {bytes} bytes a second; it must be 1 to {RATE_BYTES_MAX}, or 0 for any"
        )),
    }
}

fn parse_route(
    what: &str,
    route: &proto::Route,
    own: HostId,
    port_most: u8,
) -> Result<HostId, PlanRejected> {
    let host = parse_host(&format!("a destination in {what}"), route.host)?;
    if host == own {
        return rejected(format!(
            "{what} has a route to host {host}, which is this host itself"
        ));
    }
    let length = route.ports.len();
    if !(1..=ROUTE_LENGTH_MAX).contains(&length) {
        return rejected(format!(
            "the route to host {host} in {what} has {length} bytes; it must have 1 to {ROUTE_LENGTH_MAX}"
        ));
    }
    if let Some(port) = route.ports.iter().find(|&&port| port > port_most) {
        return rejected(format!(
            "the route to host {host} in {what} has byte {port}; bytes must be 0 to {port_most}"
        ));
    }
    Ok(host)
}

#[cfg(test)]
pub(crate) mod tests;
