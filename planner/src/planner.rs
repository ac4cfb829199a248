//! What every switch and every agent must have, from topology and groups.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wormcast_routing::routes::Algorithm;
use wormcast_routing::topology::Topology;
use wormcast_wire::{GroupId, HostId, SwitchId};

use crate::agents::{AgentPlanner, Hosts, PlanFailure, Shortfall};
use crate::class_d::ClassDNumbers;
use crate::groups::Group;

use crate::replication::CapacityError;
use crate::state::{AgentPlan, Place, SwitchState};
use crate::switches::SwitchPlanner;

/// Why a member does not take part: its group was made a moment ago.
pub const NOT_PLANNED: &str = "the plan in force is older than this group";

/// What every switch and every agent must have.
#[derive(Clone, Debug, Default)]
pub struct FabricState {
    /// Tables and replication groups by switch.
    pub switches: BTreeMap<SwitchId, Arc<SwitchState>>,
    /// Plans by host.
    pub agents: BTreeMap<HostId, Arc<AgentPlan>>,
    /// Members that are not served, by group.
    pub shortfalls: Vec<Shortfall>,
    /// Switches that are joined, by their lowest.
    pub parts: Vec<BTreeSet<SwitchId>>,
    /// What could not be planned and is left out or as it was.
    pub failures: Vec<PlanFailure>,
    /// Where switches differ from the state that the same planner gave before; `None`: anywhere.
    pub touched: Option<BTreeMap<SwitchId, Vec<Place>>>,
}

/// Plans one network again and again.
///
/// It keeps what does not depend on a change: for the change of a group the routes, trees and all
/// other groups stay as they are. What it gives is what a new planner would give.
#[derive(Debug)]
pub struct Planner {
    unicast: Algorithm,
    /// What is up and what is known in the plan before; nothing if there is none to build on.
    network: Option<(Topology, Topology)>,
    parts: Vec<BTreeSet<SwitchId>>,
    groups: BTreeMap<GroupId, Arc<Group>>,
    switches: SwitchPlanner,
    agents: AgentPlanner,
}

impl Planner {
    /// A planner whose unicast routes are those of this algorithm.
    pub fn new(unicast: Algorithm) -> Planner {
        Planner {
            unicast,
            network: None,
            parts: Vec::new(),
            groups: BTreeMap::new(),
            switches: SwitchPlanner::default(),
            agents: AgentPlanner::default(),
        }
    }

    /// What every switch and every agent must have.
    ///
    /// `up` is what is up, `known` that and what is suspected to be away for a moment (else the
    /// same). Suspicion costs nobody a membership: groups span `known`. It only moves routes: a
    /// pair of hosts that what is up joins has its route there, any other pair over all that is
    /// known. Switches that are not up are not planned, so that they keep what they have.
    ///
    /// Agents that are not live are told of their groups as if all took part, so that who comes
    /// back finds itself a member; nobody else hears of them. Switches replicate to every located
    /// member of a group, agent or not, under its id and the number that `class_d` gives its
    /// address. A group whose live members are not all connected keeps those of the part with most
    /// of them (on a tie the part with the lowest host); the others are shortfalls, and so is who
    /// cannot take a group.
    ///
    /// A group or a connected part that cannot be planned is named in `failures` and holds up
    /// nothing else: a group stays as it was planned before if it can.
    ///
    /// # Errors
    /// [`CapacityError`]; the next plan is made wholly anew then.
    pub fn plan(
        &mut self,
        up: &Topology,
        known: &Topology,
        groups: &[Arc<Group>],
        hosts: &Hosts,
        class_d: &ClassDNumbers,
    ) -> Result<FabricState, CapacityError> {
        let wanted: BTreeMap<GroupId, Arc<Group>> = groups
            .iter()
            .map(|group| (group.id, group.clone()))
            .collect();
        // Nothing to build on, should something fail.
        let network = self.network.take().filter(|(a, b)| (a, b) == (up, known));
        let whole = network.is_none();
        if whole {
            self.start(up, known);
        }
        let is_new = |group: &&Arc<Group>| {
            let old = self.groups.get(&group.id);
            old.is_none_or(|old| !Arc::ptr_eq(old, group) && old != *group)
        };
        let changed: Vec<Arc<Group>> = wanted.values().filter(is_new).cloned().collect();
        let is_gone = |id: &&GroupId| !wanted.contains_key(id);
        let gone: Vec<GroupId> = self.groups.keys().filter(is_gone).copied().collect();
        let touched = self.switches.change(&gone, &changed, class_d)?;
        self.agents.change(&gone, &changed, hosts);
        self.network = Some(network.unwrap_or_else(|| (up.clone(), known.clone())));
        self.groups = wanted;
        Ok(FabricState {
            switches: self.switches.switches.clone(),
            agents: self.agents.agents.clone(),
            shortfalls: self.agents.shortfalls(),
            parts: self.parts.clone(),
            failures: self.agents.failures(),
            touched: (!whole).then_some(touched),
        })
    }

    fn start(&mut self, up: &Topology, known: &Topology) {
        let parts = up.split();
        let switches = |part: &Topology| part.switches().iter().map(|switch| switch.id).collect();
        self.parts = parts.iter().map(switches).collect();
        self.groups.clear();
        self.switches = SwitchPlanner::new(&parts);
        let before = std::mem::take(&mut self.agents);
        self.agents = AgentPlanner::new(known.split(), &parts, self.unicast, before);
    }
}
