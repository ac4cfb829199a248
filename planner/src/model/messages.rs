//! What agents are sent, in the messages of agent.proto, encoded.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use wormcast_agent_proto::{self as proto, Message, encoding};
use wormcast_routing::structure::Recipe;
use wormcast_routing::topology::Link;
use wormcast_wire::{HostId, ROUTE_LENGTH_MAX};

use crate::model::agent::{
    AgentGroup, AgentPlan, AgentStructure, AgentTrees, Gathered, Leaf, LeftOut, PlannedRoute,
    RouteTable, Sequencer,
};

/// Fields whose messages are many: they are put behind the rest, encoded one by one, groups once for all agents.
const MESSAGE_PLAN: u32 = 2;
const MESSAGE_CHANGE: u32 = 4;
const PLAN_ROUTES: u32 = 3;
const PLAN_TREE_ROUTES: u32 = 4;
const PLAN_GROUPS: u32 = 5;
const CHANGE_ROUTES: u32 = 3;
const CHANGE_TREE_ROUTES: u32 = 5;
const CHANGE_GROUPS: u32 = 9;

impl AgentPlan {
    /// A `ControllerMessage` with the whole plan.
    pub fn encode(&self, epoch: u64) -> Vec<u8> {
        let mut plan = self.encode_without_groups(epoch);
        for group in &self.groups {
            put_bytes(PLAN_GROUPS, group.encoded(), &mut plan);
        }
        message(MESSAGE_PLAN, &plan)
    }

    /// A `ControllerMessage` with what is other than in the plan `before`, which has the epoch `base`; none where that
    /// message cannot say it.
    pub fn encode_change(&self, epoch: u64, before: &AgentPlan, base: u64) -> Option<Vec<u8>> {
        if (self.host, self.at_random) != (before.host, before.at_random) {
            return None;
        }
        let (routes, no_routes) = self.routes.change(&before.routes);
        let (tree_routes, no_tree_routes) = self.tree_routes.change(&before.tree_routes);
        let is_gone = |group: &&Arc<AgentGroup>| self.group(group.id).is_none();
        let fields = self.fields(epoch);
        let mut change = proto::PlanChange {
            base,
            epoch,
            routes: Vec::new(),
            no_routes,
            tree_routes: Vec::new(),
            no_tree_routes,
            root_route: fields.root_route,
            routes_at_random: fields.routes_at_random,
            groups: Vec::new(),
            no_groups: (before.groups.iter().filter(is_gone))
                .map(|group| group.id.0.into())
                .collect(),
            train_frames: fields.train_frames,
            tree_route_max: fields.tree_route_max,
            unicast_train_frames: fields.unicast_train_frames,
            rate_bytes: fields.rate_bytes,
        }
        .encode_to_vec();
        put_routes(CHANGE_ROUTES, routes, &mut change);
        put_routes(CHANGE_TREE_ROUTES, tree_routes, &mut change);
        for group in self.groups_changed(before) {
            put_bytes(CHANGE_GROUPS, group.encoded(), &mut change);
        }
        Some(message(MESSAGE_CHANGE, &change))
    }

    /// Whether its groups are those of another plan, as that has them.
    pub fn has_groups_of(&self, before: &AgentPlan) -> bool {
        self.groups.len() == before.groups.len() && self.groups_changed(before).next().is_none()
    }

    /// Groups that are new, or other than in another plan.
    fn groups_changed<'p>(
        &'p self,
        before: &'p AgentPlan,
    ) -> impl Iterator<Item = &'p Arc<AgentGroup>> {
        let is_same = |new: &Arc<AgentGroup>, old| Arc::ptr_eq(new, old) || new == old;
        self.groups
            .iter()
            .filter(move |new| !before.group(new.id).is_some_and(|old| is_same(new, old)))
    }

    fn encode_without_groups(&self, epoch: u64) -> Vec<u8> {
        let mut plan = self.fields(epoch).encode_to_vec();
        plan.reserve(24 * (self.routes.0.len() + self.tree_routes.0.len()));
        put_routes(PLAN_ROUTES, &self.routes.0, &mut plan);
        put_routes(PLAN_TREE_ROUTES, &self.tree_routes.0, &mut plan);
        plan
    }

    /// All but routes and groups.
    fn fields(&self, epoch: u64) -> proto::Plan {
        let trains = |frames: u16, least: u16| if frames > least { frames.into() } else { 0 };
        let is_limited = usize::from(self.tree_route_max) < ROUTE_LENGTH_MAX;
        proto::Plan {
            epoch,
            host_id: self.host.0.into(),
            routes: Vec::new(),
            tree_routes: Vec::new(),
            groups: Vec::new(),
            routes_at_random: self.at_random,
            root_route: self.root_route.as_deref().map(<[u8]>::to_vec),
            train_frames: trains(self.train_frames, 1),
            tree_route_max: if is_limited {
                self.tree_route_max.into()
            } else {
                0
            },
            unicast_train_frames: trains(self.unicast_train_frames, self.train_frames),
            rate_bytes: self.rate_bytes.unwrap_or(0),
        }
    }

    fn digest(&self) -> &[u8; 32] {
        self.digest.or_compute(|| {
            let mut digest = Sha256::new_with_prefix(self.encode_without_groups(0));
            for group in &self.groups {
                digest.update(group.digest());
            }
            digest.finalize().into()
        })
    }
}

/// A fingerprint of all agent plans: equal plans, equal digest, in every run.
pub fn digest_agents(agents: &BTreeMap<HostId, Arc<AgentPlan>>) -> String {
    let mut digest = Sha256::new();
    for plan in agents.values() {
        digest.update(plan.digest());
    }
    let digest = digest.finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl RouteTable {
    /// All routes to hosts to which they are other than before, and hosts to which there are none any more.
    fn change<'r>(&'r self, before: &RouteTable) -> (Vec<&'r PlannedRoute>, Vec<u32>) {
        let to = |routes: &[PlannedRoute]| routes[0].to;
        let mut old = before.0.chunk_by(|a, b| a.to == b.to).peekable();
        let mut changed: Vec<&PlannedRoute> = Vec::new();
        let mut gone: Vec<HostId> = Vec::new();
        for own in self.0.chunk_by(|a, b| a.to == b.to) {
            while let Some(lost) = old.next_if(|old| to(old) < to(own)) {
                gone.push(to(lost));
            }
            if old.next_if(|old| to(old) == to(own)) != Some(own) {
                changed.extend(own);
            }
        }
        gone.extend(old.map(to));
        (changed, numbers(&gone))
    }
}

impl AgentGroup {
    /// Its `Group` of agent.proto.
    pub(crate) fn encoded(&self) -> &[u8] {
        self.encoded.or_compute(|| self.message().encode_to_vec())
    }

    fn digest(&self) -> &[u8; 32] {
        self.digest
            .or_compute(|| Sha256::digest(self.encoded()).into())
    }

    fn message(&self) -> proto::Group {
        let trees = self.trees.as_deref();
        let list = |tree: &Vec<Link>| proto::SharedTree {
            links: tree.iter().map(link).collect(),
        };
        proto::Group {
            id: self.id.0.into(),
            name: self.name.clone(),
            members: numbers(&self.members),
            structures: structures(&self.structures),
            number: self.number.map(|number| number.0.into()),
            trees: trees.map_or_else(Vec::new, |of| of.trees.iter().map(list).collect()),
            leaves: trees.map_or_else(Vec::new, |of| of.leaves.iter().map(leaf).collect()),
            roots: trees.map_or_else(Vec::new, AgentTrees::root_numbers),
            sequencer: self
                .sequencer
                .map(|Sequencer { host, epoch }| proto::Sequencer {
                    host: host.0.into(),
                    epoch,
                }),
            mtu: self.mtu.map(u32::from),
            sink: self.group.sink,
            rate_bits: self.group.rate_bits.unwrap_or(0),
            gathered: self.gathered.as_ref().map(gathered),
            left_out: self.left_out.iter().map(left_out).collect(),
        }
    }
}

impl AgentTrees {
    fn root_numbers(&self) -> Vec<u32> {
        self.roots.iter().map(|root| root.0.into()).collect()
    }
}

fn link(link: &Link) -> proto::TreeLink {
    proto::TreeLink {
        a: link.a.0.into(),
        a_port: link.a_port.get().into(),
        b: link.b.0.into(),
        b_port: link.b_port.get().into(),
    }
}

fn leaf(leaf: &Leaf) -> proto::Leaf {
    proto::Leaf {
        host: leaf.host.0.into(),
        switch: leaf.switch.0.into(),
        port: leaf.port.get().into(),
    }
}

fn left_out(one: &LeftOut) -> proto::LeftOut {
    proto::LeftOut {
        host: one.host.0.into(),
        reason: one.reason.to_string(),
    }
}

fn gathered(gathered: &Gathered) -> proto::Gathered {
    let origin = |(host, source): (&HostId, &u16)| proto::GatheredOrigin {
        host: host.0.into(),
        source: (*source).into(),
    };
    proto::Gathered {
        epoch: gathered.epoch,
        origins: gathered.origins.iter().map(origin).collect(),
    }
}

/// The order of one that has that of the one before is left out.
fn structures(all: &[AgentStructure]) -> Vec<proto::Structure> {
    let mut messages: Vec<proto::Structure> = all.iter().map(structure).collect();
    for (place, pair) in all.windows(2).enumerate() {
        if pair[0].order == pair[1].order {
            messages[place + 1].order.clear();
        }
    }
    messages
}

fn structure(structure: &AgentStructure) -> proto::Structure {
    let expected = |&(bytes, ns): &(u64, f64)| proto::Expected {
        bytes,
        microseconds: ns / 1000.0,
    };
    let mut message = proto::Structure {
        bytes_most: match structure.bytes_most {
            u64::MAX => 0,
            most => most,
        },
        scheme: structure.scheme.name().to_owned(),
        order: numbers(&structure.order),
        expected: structure.expected.iter().map(expected).collect(),
        ..proto::Structure::default()
    };
    match &structure.recipe {
        Recipe::Repeat | Recipe::UTorus | Recipe::STorus => {}
        Recipe::Circuit(variant) => message.variant = variant.name().to_owned(),
        Recipe::Tree(tree, _) => {
            let edge = |(parent, child): (HostId, HostId)| proto::TreeEdge {
                parent: parent.0.into(),
                child: child.0.into(),
            };
            message.tree_edges = tree.edges().map(edge).collect();
        }
        Recipe::KBinomial { k } | Recipe::Copied { fan_in: k } => message.k = *k,
        Recipe::Postal { lambda } => message.lambda = *lambda,
        Recipe::MdTorus { rings } => {
            message.rings = rings.iter().map(|&ring| ring as u32).collect();
        }
        Recipe::MuTorus { r } => message.r = *r,
    }
    message
}

fn numbers(hosts: &[HostId]) -> Vec<u32> {
    hosts.iter().map(|host| host.0.into()).collect()
}

/// A large fabric has a million of them.
fn put_routes<'r>(
    field: u32,
    routes: impl IntoIterator<Item = &'r PlannedRoute>,
    bytes: &mut Vec<u8>,
) {
    let mut message = proto::Route::default();
    for route in routes {
        message.host = route.to.0.into();
        message.share = route.share;
        message.ports.clear();
        message.ports.extend_from_slice(&route.ports);
        encoding::message::encode(field, &message, bytes);
    }
}

fn put_bytes(field: u32, encoded: &[u8], bytes: &mut Vec<u8>) {
    encoding::encode_key(field, encoding::WireType::LengthDelimited, bytes);
    encoding::encode_varint(encoded.len() as u64, bytes);
    bytes.extend_from_slice(encoded);
}

/// A `ControllerMessage` with this body.
fn message(body: u32, encoded: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(encoded.len() + 12);
    put_bytes(body, encoded, &mut bytes);
    bytes
}
