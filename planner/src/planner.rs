//! What every switch and every agent must have, from topology and groups.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wormcast_routing::routes::Setting;
use wormcast_routing::topology::Topology;
use wormcast_wire::{GroupId, HostId, SwitchId};

use crate::agents::{AgentPlanner, Hosts, PlanFailure, Shortfall};
use crate::class_d::ClassDNumbers;
use crate::groups::Group;
use crate::parts::Part;
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
    /// The root of each of these parts.
    pub roots: Vec<SwitchId>,
    /// Pairs of hosts within these parts whose routes are longer because some hosts do not
    /// re-inject worms.
    pub lengthened: u64,
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
    setting: Setting,
    /// What is up and what is known in the plan before; nothing if there is none to build on.
    network: Option<(Topology, Topology)>,
    parts: Vec<BTreeSet<SwitchId>>,
    roots: Vec<SwitchId>,
    lengthened: u64,
    groups: BTreeMap<GroupId, Arc<Group>>,
    switches: SwitchPlanner,
    agents: AgentPlanner,
}

/// What of a plan before can be built on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reuse {
    Nothing,
    /// What switches have: only who re-injects worms is other than before.
    Switches,
    All,
}

impl Planner {
    /// A planner with these unicast routes.
    pub fn new(setting: Setting) -> Planner {
        Planner {
            setting,
            network: None,
            parts: Vec::new(),
            roots: Vec::new(),
            lengthened: 0,
            groups: BTreeMap::new(),
            switches: SwitchPlanner::default(),
            agents: AgentPlanner::default(),
        }
    }

    /// Plans with these unicast routes from now on.
    pub fn set_routing(&mut self, setting: Setting) {
        if self.setting != setting {
            self.setting = setting;
            self.network = None;
        }
    }

    /// What every switch and every agent must have.
    ///
    /// `up` is what is up, `known` that and what is suspected to be away for a moment (else the
    /// same). Suspicion costs nobody a membership: groups span `known`. It only moves routes: a
    /// pair of hosts that what is up joins has its route there, any other pair over all that is
    /// known. Switches that are not up are not planned, so that they keep what they have.
    ///
    /// Worms are re-injected by the hosts that the topologies allow it
    /// ([`Host::transit`](wormcast_routing::topology::Host)). A root that is not there is replaced
    /// by the choice of its part.
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
        let (up, known) = [up, known].map(|topology| self.relevant(topology)).into();
        // Nothing to build on, should something fail.
        let before = self.network.take();
        let reuse = reusable(before.as_ref(), (&up, &known));
        if reuse != Reuse::All {
            self.start(&up, &known, reuse);
        }
        let is_new = |group: &&Arc<Group>| {
            let old = self.groups.get(&group.id);
            old.is_none_or(|old| !Arc::ptr_eq(old, group) && old != *group)
        };
        let changed: Vec<Arc<Group>> = wanted.values().filter(is_new).cloned().collect();
        let is_gone = |id: &&GroupId| !wanted.contains_key(id);
        let gone: Vec<GroupId> = self.groups.keys().filter(is_gone).copied().collect();
        let touched = self.switches.change(&gone, &changed, class_d)?;
        match reuse {
            Reuse::Switches => {
                let all: Vec<Arc<Group>> = wanted.values().cloned().collect();
                self.agents.change(&gone, &all, hosts);
            }
            _ => self.agents.change(&gone, &changed, hosts),
        }
        let kept = before.filter(|_| reuse == Reuse::All);
        self.network = Some(kept.unwrap_or_else(|| (up.into_owned(), known.into_owned())));
        self.groups = wanted;
        Ok(FabricState {
            switches: self.switches.switches.clone(),
            agents: self.agents.agents.clone(),
            shortfalls: self.agents.shortfalls(),
            parts: self.parts.clone(),
            roots: self.roots.clone(),
            lengthened: self.lengthened,
            failures: self.agents.failures(),
            touched: (reuse != Reuse::Nothing).then_some(touched),
        })
    }

    /// A topology without what does not matter to these routes.
    fn relevant<'t>(&self, topology: &'t Topology) -> Cow<'t, Topology> {
        let matters = self.setting.algorithm.uses_in_transit_hosts();
        match matters || topology.hosts().iter().all(|host| host.transit) {
            true => Cow::Borrowed(topology),
            false => Cow::Owned(topology.with_transit(|_| true)),
        }
    }

    fn start(&mut self, up: &Topology, known: &Topology, reuse: Reuse) {
        let parts = Part::of(up, &self.setting);
        if reuse == Reuse::Nothing {
            let ids = |part: &Part| {
                let switches = part.topology.switches();
                switches.iter().map(|switch| switch.id).collect()
            };
            self.parts = parts.iter().map(ids).collect();
            let root = |part: &Part| part.order.root(&part.topology);
            self.roots = parts.iter().map(root).collect();
            self.groups.clear();
            self.switches = SwitchPlanner::new(&parts);
        }
        // A part without routes has none that are longer, and is named among the failures.
        let lengthened = |part: &Part| part.lengthened(&self.setting).unwrap_or(0);
        self.lengthened = parts.iter().map(lengthened).sum();
        let before = std::mem::take(&mut self.agents);
        let known = Part::of(known, &self.setting);
        self.agents = AgentPlanner::new(known, &parts, &self.setting, before);
    }
}

fn reusable(before: Option<&(Topology, Topology)>, now: (&Topology, &Topology)) -> Reuse {
    let Some((up, known)) = before else {
        return Reuse::Nothing;
    };
    if (up, known) == now {
        return Reuse::All;
    }
    let is_wired_alike =
        |a: &Topology, b: &Topology| a.with_transit(|_| true) == b.with_transit(|_| true);
    match is_wired_alike(up, now.0) && is_wired_alike(known, now.1) {
        true => Reuse::Switches,
        false => Reuse::Nothing,
    }
}
