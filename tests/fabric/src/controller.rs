//! The controller's part: asks the planner that ships and carries out what it says.

use std::collections::BTreeSet;
use std::sync::Arc;
use wormcast_agent_proto::controller_message::Body;
use wormcast_agent_proto::{self as proto, ControllerMessage, Message};
use wormcast_planner::cost::Costs;
use wormcast_planner::{
    AgentPlan, ClassDNumbers, FabricState, Group, GroupScheme, Guard, Hosts, Planner, RouteOrder,
    Switching,
};
use wormcast_routing::group::{Guard as TreeGuard, Least, Scheme, SwitchMode, SwitchParameters};
use wormcast_routing::routes::{Algorithm, Setting};
use wormcast_routing::structure::{CircuitVariant, FAN_OUT_DEFAULT, TreeVariant};
use wormcast_routing::topology::{Damage, Topology};
use wormcast_wire::{GroupId, HostId, Replication, SchemeName};

/// What users want, what has failed, and the plan for it.
pub struct Controller {
    /// Groups as their users want them.
    pub groups: Vec<Group>,
    /// What has failed: links and switches, and hosts whose agents are gone.
    pub damage: Damage,
    /// Unicast routes, as the operator wants them.
    pub setting: Setting,
    /// Hosts through which no worms of others are routed: they opted out, or their agents are away.
    pub no_transit: BTreeSet<u16>,
    /// Members whose ACKs one host takes, where switches copy; none: as planned, by the costs.
    pub ack_fan_in: Option<u32>,
    pub guard: Guard,
    /// How switches pass worms on.
    pub switching: Switching,
    pub trains: bool,
    /// The last epoch planned.
    pub epoch: u64,
    planner: Planner,
    /// What the state file says of the order of switches: the one in force, and the one after the bridge.
    order: RouteOrder,
    next_order: Option<RouteOrder>,
}

pub const CIRCUIT: Scheme = Scheme::Circuit(CircuitVariant::OmitLast);
/// A circuit that returns to the origin.
pub const RETURN: Scheme = Scheme::Circuit(CircuitVariant::Return);
pub const TREE: Scheme = Scheme::Tree {
    variant: TreeVariant::Unordered,
    fan_out: FAN_OUT_DEFAULT,
};
pub const K_BINOMIAL: Scheme = Scheme::KBinomial { k: Some(2) };
/// TREE routes.
pub const SWITCH: Scheme = Scheme::Switch(SwitchParameters::new(SwitchMode::Tree, TreeGuard::A));
/// GROUP worms.
pub const TABLE: Scheme = Scheme::Switch(SwitchParameters::new(SwitchMode::Table, TreeGuard::A));
/// BROADCAST worms.
pub const BROADCAST: Scheme =
    Scheme::Switch(SwitchParameters::new(SwitchMode::Broadcast, TreeGuard::A));

/// TREE routes along two trees of the group's own.
pub const OWN_TREES: Scheme = Scheme::Switch(SwitchParameters {
    trees: 2,
    ..SwitchParameters::new(SwitchMode::Tree, TreeGuard::C)
});
/// TREE routes that all go through the root.
pub const THROUGH_ROOT: Scheme =
    Scheme::Switch(SwitchParameters::new(SwitchMode::Tree, TreeGuard::B));
/// GROUP worms along a tree of the group's own.
pub const OWN_TABLE: Scheme = Scheme::Switch(SwitchParameters {
    least: Least::Depth,
    ..SwitchParameters::new(SwitchMode::Table, TreeGuard::C)
});

/// Every scheme that a network without coordinates can have.
pub fn schemes() -> Vec<Scheme> {
    let all = Scheme::all().into_iter().map(|scheme| match scheme {
        Scheme::KBinomial { .. } => K_BINOMIAL,
        Scheme::Postal { .. } => Scheme::Postal { lambda: Some(2) },
        scheme => scheme,
    });
    let all = all.chain([RETURN, OWN_TREES, OWN_TABLE, THROUGH_ROOT]);
    all.filter(|scheme| !scheme.goes_by_coordinates()).collect()
}

/// Every scheme that a network can have, the choice among them too.
pub fn schemes_of(topology: &Topology) -> Vec<GroupScheme> {
    let mut all = Scheme::all();
    all.retain(|scheme| topology.grid().is_some() || !scheme.goes_by_coordinates());
    all.extend([RETURN, OWN_TREES, OWN_TABLE, THROUGH_ROOT]);
    let all = all.into_iter().map(GroupScheme::One);
    all.chain([GroupScheme::Auto]).collect()
}

pub fn group(
    id: u16,
    scheme: impl Into<GroupScheme>,
    members: impl IntoIterator<Item = u16>,
) -> Group {
    Group {
        id: GroupId(id),
        name: format!("group-{id}"),
        scheme: scheme.into(),
        packets: 0,
        ordered: false,
        members: members.into_iter().map(HostId).collect(),
        class_d: None,
        sink: false,
        rate_bits: None,
        gather: false,
    }
}

/// A planner with costs by which groups of scheme auto have several structures: long TREE routes are too dear for
/// long messages.
fn several_structures(setting: Setting) -> Planner {
    let mut planner = Planner::new(setting);
    planner.set_costs(Costs {
        tree_bytes_per_branch: 40,
        ..Costs::default()
    });
    planner
}

impl Controller {
    /// A controller of those groups; unicast worms travel by this algorithm.
    pub fn new(groups: Vec<Group>, unicast: Algorithm) -> Controller {
        Controller {
            groups,
            damage: Damage::default(),
            setting: Setting::plain(unicast),
            no_transit: BTreeSet::new(),
            ack_fan_in: None,
            guard: Guard::default(),
            switching: Switching::default(),
            trains: false,
            epoch: 0,
            order: RouteOrder::default(),
            next_order: None,
            planner: several_structures(Setting::plain(unicast)),
        }
    }

    /// What every switch and every agent must have now.
    pub fn plan(&mut self, topology: &Topology) -> FabricState {
        self.epoch += 1;
        let network = Damage {
            hosts: BTreeSet::new(),
            ..self.damage.clone()
        };
        let up = topology.without(&network).expect("something is left");
        let gone = |host: &HostId| self.damage.hosts.contains(host);
        let up = up.with_transit(|host| !self.no_transit.contains(&host.0) && !gone(&host));
        self.planner.set_routing(self.setting);
        self.planner.set_guard(self.guard.clone());
        self.planner.set_switching(self.switching, self.trains);
        // One plan comes after another: worms of the one before have left.
        self.planner.drained();
        let agents: BTreeSet<HostId> = topology.hosts().iter().map(|host| host.id).collect();
        let hosts = Hosts {
            live: agents.difference(&self.damage.hosts).copied().collect(),
            agents,
            ..Hosts::default()
        };
        let groups: Vec<Arc<Group>> = self
            .groups
            .iter()
            .map(|group| Arc::new(group.clone()))
            .collect();
        let state = self
            .planner
            .plan(&up, &up, &groups, &hosts, &ClassDNumbers::default());
        assert!(state.failures.is_empty(), "{:?}", state.failures);
        self.order = state.routes.in_force.clone();
        self.next_order = state.routes.next.clone();
        state
    }

    /// A new life of the controller: it knows what users want and what the state file keeps.
    pub fn restart(&mut self) {
        let gathered = self.planner.next_gather_epoch();
        self.planner = several_structures(self.setting);
        let order = RouteOrder::from_json(&self.order.to_json());
        self.planner.restore_order(order.expect("as it was kept"));
        self.planner.set_sequencer_epoch(self.epoch);
        self.planner.set_gather_epochs(gathered, u32::MAX);
    }

    /// All agents follow the bridge, and older worms have left. The plans after it are the next
    /// epoch.
    pub fn settle(&mut self) {
        self.planner.settle();
        self.epoch += 1;
        self.order = self
            .next_order
            .take()
            .expect("a bridge leads to another order");
    }
}

impl Controller {
    /// The plan of an agent as it goes over the wire.
    pub fn message(&self, plan: &AgentPlan) -> proto::Plan {
        let mut message = message(plan, self.epoch);
        for group in &mut message.groups {
            let most = group.members.len() as u32;
            for structure in &mut group.structures {
                let name = SchemeName::from_name(&structure.scheme);
                if name.is_some_and(|name| name.replication() == Replication::Switches)
                    && let Some(fan_in) = self.ack_fan_in
                {
                    structure.k = fan_in.min(most);
                }
            }
        }
        message
    }
}

fn message(plan: &AgentPlan, epoch: u64) -> proto::Plan {
    match ControllerMessage::decode(&plan.encode(epoch)[..]) {
        Ok(ControllerMessage {
            body: Some(Body::Plan(plan)),
        }) => plan,
        other => panic!("the planner encoded a plan; it decodes to {other:?}"),
    }
}
