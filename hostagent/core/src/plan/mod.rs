//! The controller's plan: checked once on arrival, then trusted.

mod change;
#[cfg(test)]
mod examples;
mod fields;
mod gathered;
mod left_out;
mod structure;
mod structures;
mod trees;

pub use left_out::LeftOut;
pub use structure::PlannedStructure;
pub use trees::TreePaths;

use crate::order::Sequencer;
use crate::pacing::RATE_BYTES_MAX;
use crate::trains::TRAIN_FRAMES_MAX;
use fields::{list, parse_host, parse_hosts, rejected};
use gathered::parse_gathered;
use left_out::parse_left_out;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use structures::PlannedStructures;
use trees::{parse_number, parse_trees};
use wormcast_agent_proto as proto;
use wormcast_protocol::{Alternative, Alternatives, Choice, Gathered, GroupPlan};
use wormcast_wire::ack::SET_BYTES_MAX;
use wormcast_wire::{
    ALTERNATIVES_MAX, GroupId, HostId, MTU_MAX, MTU_MIN, PORT_ID_MAX, ROUTE_LENGTH_MAX,
    SHARES_WHOLE, SWITCHES_CROSSED_MAX, pdu,
};

/// Groups of one plan at most: as many as a switch has room for (GROUPS_SIZE).
pub const GROUPS_MAX: usize = 16_384;
/// Members of one group at most. An ACK has a bit for each that lacks messages: one without would seem to have them.
pub const MEMBERS_MAX: usize = 1024;
const _: () = assert!(MEMBERS_MAX <= 8 * SET_BYTES_MAX);
/// Bytes of a group's name at most.
pub const GROUP_NAME_BYTES_MAX: usize = 255;

/// What a group's scheme is called in which each message takes the structure for its length.
pub const AUTO: &str = "auto";

/// Characters of the reason for which a group is refused at most; the rest is cut off.
const REASON_CHARS_MAX: usize = 500;

const RECIRCULATE_PORT: u8 = 254;

/// A plan that can be applied.
#[derive(Clone, Debug)]
pub struct AgentPlan {
    /// The controller's number for it.
    pub epoch: u64,
    /// This host.
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
    /// Why not.
    pub reason: String,
}

impl RefusedGroup {
    /// With the reason cut to what a report may have.
    pub fn new(group: u32, reason: &str) -> Self {
        let reason = reason.chars().take(REASON_CHARS_MAX).collect();
        Self { group, reason }
    }
}

/// A group of the plan.
#[derive(Clone, Debug)]
pub struct PlannedGroup {
    /// Its number.
    pub id: GroupId,
    /// Its name; may be empty.
    pub name: String,
    /// Members, ascending.
    pub members: Vec<HostId>,
    /// How messages reach them, for ascending lengths of messages; at least one.
    pub structures: Vec<PlannedStructure>,
    /// The number by which switches copy, if they know the group.
    pub number: Option<GroupId>,
    /// The ways to the other members along each of its own trees.
    pub trees: Vec<TreePaths>,
    /// Who orders the messages of all origins, in an ordered group.
    pub sequencer: Option<Sequencer>,
    /// Bytes of its frames after the Ethernet header at most; none: as the interface has it.
    pub mtu: Option<u16>,
    /// Whether this agent takes its messages where no receiver is open, and drops them.
    pub sink: bool,
    /// Which of its ACKs switches gather.
    pub gathered: Option<Gathered>,
    /// Members of the operator's group that take no part, ascending; none is among `members`.
    pub left_out: Arc<[LeftOut]>,
    /// Equal at two hosts exactly if they have the same plan of the group (up to a
    /// collision in 32 bits); the epoch that the engine wants.
    pub fingerprint: u32,
}

/// Why a plan is refused; the text goes back to the controller.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct PlanRejected(String);

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

impl PlannedGroup {
    fn parse(message: &proto::Group, own: HostId) -> Result<Self, PlanRejected> {
        let id = match u16::try_from(message.id) {
            Ok(id) if GroupId(id) != GroupId::BROADCAST => GroupId(id),
            _ => {
                let id = message.id;
                return rejected(format!(
                    "group id {id}; it must be 0 to 65535, but not 255, which is broadcast"
                ));
            }
        };
        if message.name.len() > GROUP_NAME_BYTES_MAX {
            let length = message.name.len();
            return rejected(format!(
                "the name of group {id} has {length} bytes; at most {GROUP_NAME_BYTES_MAX}"
            ));
        }
        let members = parse_members(id, &message.members, own)?;
        let structures = parse_structures(id, &members, &message.structures)?;
        let mut group = Self {
            id,
            name: message.name.clone(),
            structures,
            number: parse_number(id, message.number)?,
            trees: Vec::new(),
            sequencer: None,
            mtu: parse_mtu(id, message.mtu)?,
            sink: message.sink,
            gathered: None,
            left_out: parse_left_out(id, &members, &message.left_out)?,
            members,
            fingerprint: 0,
        };
        group.sequencer = parse_sequencer(id, &group.members, message.sequencer.as_ref())?;
        group.gathered = parse_gathered(id, &group.members, message.gathered.as_ref())?;
        group.trees = parse_trees(id, own, &group.members, message)?;
        group.fingerprint = group.compute_fingerprint(message);
        Ok(group)
    }

    /// FNV-1a over all that shapes the group's structures, and what switches copy along. Name, MTU, who
    /// gathers ACKs and who is left out do not: another one disturbs no transfer.
    fn compute_fingerprint(&self, message: &proto::Group) -> u32 {
        let mut hash = 0x811c_9dc5_u32;
        let mut mix = |value: u32| {
            for byte in value.to_be_bytes() {
                hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
            }
        };
        mix(u32::from(self.id.0));
        mix(self.members.len() as u32);
        self.members.iter().for_each(|host| mix(u32::from(host.0)));
        for structure in &self.structures {
            structure.mix_into(&mut mix);
        }
        if let Some(Sequencer { host, reign }) = self.sequencer {
            mix(u32::from(host.0));
            mix((reign >> 32) as u32);
            mix(reign as u32);
        }
        mix(self.number.map_or(u32::MAX, |number| u32::from(number.0)));
        for proto::SharedTree { links } in &message.trees {
            mix(links.len() as u32);
            for link in links {
                let ends = [link.a, link.a_port, link.b, link.b_port];
                ends.into_iter().for_each(&mut mix);
            }
        }
        message.roots.iter().for_each(|root| mix(*root));
        for leaf in &message.leaves {
            [leaf.host, leaf.switch, leaf.port]
                .into_iter()
                .for_each(&mut mix);
        }
        hash
    }

    /// The name of its scheme; `auto` where each message takes one of several.
    pub fn scheme_name(&self) -> &'static str {
        match &self.structures[..] {
            // One that was chosen says what for.
            [only] if only.expected.is_empty() => only.scheme.name(),
            _ => AUTO,
        }
    }

    /// What the engine of `host` is told.
    pub fn engine_plan(self: &Arc<Self>, host: HostId) -> GroupPlan {
        GroupPlan {
            id: self.id,
            epoch: self.fingerprint,
            choices: self
                .structures
                .iter()
                .map(|one| Choice {
                    bytes_most: one.bytes_most,
                    replication: one.scheme.replication(),
                })
                .collect(),
            members: self.members.clone(),
            mtu: self.mtu,
            structures: Arc::new(PlannedStructures {
                host,
                group: Arc::clone(self),
            }),
            tells_begun: self.sequencer.is_some(),
            gathered: self.gathered.clone(),
        }
    }

    /// Members but `host`.
    pub fn others(&self, host: HostId) -> Vec<HostId> {
        self.members
            .iter()
            .copied()
            .filter(|&member| member != host)
            .collect()
    }
}

fn parse_mtu(id: GroupId, value: Option<u32>) -> Result<Option<u16>, PlanRejected> {
    match value {
        None | Some(0) => Ok(None),
        Some(mtu) if (MTU_MIN..=MTU_MAX).contains(&(mtu as usize)) => Ok(Some(mtu as u16)),
        Some(mtu) => rejected(format!(
            "the MTU of group {id} is {mtu}; it must be {MTU_MIN} to {MTU_MAX}, or 0 for that of the interface"
        )),
    }
}

fn parse_members(id: GroupId, values: &[u32], own: HostId) -> Result<Vec<HostId>, PlanRejected> {
    let members = parse_hosts(&format!("the members of group {id}"), values)?;
    if values.is_empty() {
        return rejected(format!(
            "group {id} has no members; it must have 1 to {MEMBERS_MAX}"
        ));
    }
    if let Some(pair) = members.windows(2).find(|pair| pair[0] >= pair[1]) {
        return rejected(format!(
            "the members of group {id} are not ascending: {} comes before {}",
            pair[0].0, pair[1].0
        ));
    }
    if !members.contains(&own) {
        return rejected(format!(
            "host {own} is not among the members of group {id}, which are {}",
            list(&members)
        ));
    }
    Ok(members)
}

fn parse_sequencer(
    id: GroupId,
    members: &[HostId],
    given: Option<&proto::Sequencer>,
) -> Result<Option<Sequencer>, PlanRejected> {
    let Some(&proto::Sequencer { host, epoch }) = given else {
        return Ok(None);
    };
    let host = parse_host(&format!("the sequencer of group {id}"), host)?;
    if members.binary_search(&host).is_err() {
        return rejected(format!(
            "host {host} is the sequencer of group {id}; it must be one of the members {}",
            list(members)
        ));
    }
    Ok(Some(Sequencer { host, reign: epoch }))
}

fn parse_structures(
    id: GroupId,
    members: &[HostId],
    messages: &[proto::Structure],
) -> Result<Vec<PlannedStructure>, PlanRejected> {
    let count = messages.len();
    if !(1..=pdu::CHOICES_MAX).contains(&count) {
        let most = pdu::CHOICES_MAX;
        return rejected(format!(
            "group {id} has {count} structures; it must have 1 to {most}"
        ));
    }
    let parsed = messages
        .iter()
        .map(|message| PlannedStructure::parse(id, members, message));
    let parsed = parsed.collect::<Result<Vec<_>, PlanRejected>>()?;
    let bounds: Vec<u64> = parsed.iter().map(|one| one.bytes_most).collect();
    if bounds.windows(2).any(|pair| pair[0] >= pair[1]) || bounds.last() != Some(&u64::MAX) {
        let given: Vec<String> = messages
            .iter()
            .map(|message| message.bytes_most.to_string())
            .collect();
        return rejected(format!(
            "the structures of group {id} are for messages of up to {} bytes; the bounds must ascend, and the last must be 0, for any",
            given.join(", ")
        ));
    }
    Ok(parsed)
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
