//! What every switch and every agent must have, from topology and groups.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wormcast_routing::routes::Setting;
use wormcast_routing::topology::Topology;
use wormcast_wire::{GroupId, HostId, PortId, SwitchId};

use crate::agent_plan::agents::AgentPlanner;
use crate::agent_plan::wholes::Lasting;
use crate::cost::Costs;
use crate::difference::stages::differing;
use crate::gather::GatherPlanner;
use crate::guard::groups::GroupGuard;
use crate::guard::trees::TreeLengths;
use crate::guard::{Guard, Guarded};
use crate::model::agent::{AgentPlan, HostRoutes};
use crate::model::failure::{PlanFailure, Subject};
use crate::model::groups::Group;
use crate::model::hosts::{Hosts, Shortfall};
use crate::model::ids::GROUP_NUMBERS_MAX;
use crate::model::state::{Place, SwitchState};
use crate::mtu::MtuLimits;
use crate::order::bridge::{self, Bridge};
use crate::order::parts::Part;
use crate::order::route_change::{Method, RouteChange, count_changed, crossed_max};
use crate::order::route_order::{LinkEnds, RouteOrder, without};
use crate::order::wiring::{Wiring, ranks};
use crate::reuse::{Reuse, is_left_of, joins_hosts, reusable};
use crate::switch_plan::class_d::ClassDNumbers;
use crate::switch_plan::switches::SwitchPlanner;
use crate::wormhole::Switching;

/// Why a member does not take part: its group was made a moment ago.
pub const NOT_PLANNED: &str = "the plan in force is older than this group";

/// What every switch and every agent must have.
#[derive(Clone, Debug, Default)]
pub struct FabricState {
    /// Tables and replication groups by switch.
    pub switches: BTreeMap<SwitchId, Arc<SwitchState>>,
    pub agents: BTreeMap<HostId, Arc<AgentPlan>>,
    /// Members that are not served, by group.
    pub shortfalls: Vec<Shortfall>,
    /// Origins in groups that gather whose ACKs come by hosts alone, by group.
    pub by_hosts: Vec<Shortfall>,
    /// Switches that are joined, by their lowest.
    pub parts: Vec<BTreeSet<SwitchId>>,
    /// The root of each of these parts.
    pub roots: Vec<SwitchId>,
    /// Pairs of hosts within these parts whose routes are longer because some hosts do not
    /// re-inject worms.
    pub lengthened: u64,
    /// What could not be planned and is left out or as it was.
    pub failures: Vec<PlanFailure>,
    /// Where switches differ from what they were to have by the states that the same planner gave
    /// before; `None`: anywhere.
    pub touched: Option<BTreeMap<SwitchId, Vec<Place>>>,
    /// The way from the routes before.
    pub routes: RouteChange,
    /// How switches pass worms on.
    pub switching: Switching,
}

/// Plans one network again and again.
///
/// It keeps what does not depend on a change: for the change of a group the routes, trees and all
/// other groups stay as they are. The order of switches stays for as long as it serves, and so do
/// routes that a failure leaves whole. Otherwise what it gives is what a new planner with this
/// order would give.
#[derive(Debug)]
pub struct Planner {
    pub(crate) setting: Setting,
    /// What is up and what is known in the plan before; nothing if there is none to build on.
    network: Option<(Topology, Topology)>,
    parts: Vec<BTreeSet<SwitchId>>,
    roots: Vec<SwitchId>,
    lengthened: u64,
    groups: BTreeMap<GroupId, Arc<Group>>,
    pub(crate) switches: SwitchPlanner,
    pub(crate) agents: AgentPlanner,
    in_force: Option<RouteOrder>,
    next: Option<RouteOrder>,
    method: Method,
    /// While the order changes, with the topology that said who re-injects.
    pub(crate) bridge: Option<(Topology, Bridge)>,
    pub(crate) bridge_plans: BTreeMap<HostId, Arc<AgentPlan>>,
    pub(crate) crossed_max: u32,
    /// Those of this plan alone.
    crossed_now: u32,
    /// Ends of links that carry nothing.
    down: BTreeSet<(SwitchId, PortId)>,
    /// Links over which worms of an order before may have come, turned since: not used for now.
    held: BTreeSet<LinkEnds>,
    /// Whether such a link was left out of the plan before.
    left_out: bool,
    /// What switches were to have by the plans before, those that are away now included.
    announced: BTreeMap<SwitchId, Arc<SwitchState>>,
    /// Links carry other frames than in the plan before.
    mtu_limits_changed: bool,
    pub(crate) guard: Guard,
    /// What the guard of each switch admits, by the plan before.
    pub(crate) guarded: BTreeMap<SwitchId, Guarded>,
    pub(crate) group_guard: GroupGuard,
    /// TREE routes of hosts, and of hosts on a bridge.
    pub(crate) tree_lengths: [TreeLengths; 2],
    /// Hosts may re-inject for the sake of a bridge alone.
    pub(crate) admits_more: bool,
    gather: GatherPlanner,
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
            in_force: None,
            next: None,
            method: Method::default(),
            bridge: None,
            bridge_plans: BTreeMap::new(),
            crossed_max: 0,
            crossed_now: 0,
            down: BTreeSet::new(),
            held: BTreeSet::new(),
            left_out: false,
            announced: BTreeMap::new(),
            mtu_limits_changed: false,
            guard: Guard::default(),
            guarded: BTreeMap::new(),
            group_guard: GroupGuard::default(),
            tree_lengths: Default::default(),
            admits_more: false,
            gather: GatherPlanner::default(),
        }
    }

    /// Goes on from the order that was in force in an earlier life.
    pub fn restore_order(&mut self, in_force: RouteOrder) {
        self.in_force = Some(in_force);
        self.next = None;
        self.network = None;
        self.held.clear();
    }

    /// All hosts follow the last plan, and older worms have left. Whether a link was left out for
    /// their sake, so that a new plan has to be made.
    pub fn drained(&mut self) -> bool {
        self.held.clear();
        let admits_more = std::mem::take(&mut self.admits_more);
        std::mem::take(&mut self.left_out) || admits_more
    }

    /// All hosts use the bridge, and older worms have left: the next order is in force.
    pub fn settle(&mut self) {
        if let Some(next) = self.next.take() {
            self.in_force = Some(next);
        }
        self.bridge = None;
        self.bridge_plans.clear();
    }

    /// Plans with these unicast routes from now on.
    pub fn set_routing(&mut self, setting: Setting) {
        if self.setting != setting {
            self.setting = setting;
            self.network = None;
        }
    }

    /// Chooses by these costs from now on: structures where messages take one by their length, and how
    /// many ACKs one host takes where switches copy.
    pub fn set_costs(&mut self, costs: Costs) {
        if *self.agents.costs != costs {
            self.agents.costs = Arc::new(costs);
            self.network = None;
        }
    }

    /// Sequencers that are chosen from now on have epochs of this number or more: one that no
    /// earlier life of this planner has reached, so that agents believe them.
    pub fn set_sequencer_epoch(&mut self, epoch: u64) {
        self.agents.sequencer_epoch = self.agents.sequencer_epoch.max(epoch);
    }

    /// Epochs of gathered ACKs that may be taken from now on, those before the first by an earlier life of this
    /// planner perhaps: groups that have one of these get another. A plan takes one at most.
    pub fn set_gather_epochs(&mut self, first: u32, end: u32) {
        if self.gather.set_epochs(first, end) {
            self.network = None;
        }
    }

    /// The epoch of gathered ACKs that the next plan takes, if it takes one.
    pub fn next_gather_epoch(&self) -> u32 {
        self.gather.next_epoch()
    }

    /// These links carry less than the longest frames that hosts send, from now on. Groups whose ways
    /// cross one learn how long their frames may be.
    pub fn set_mtu_limits(&mut self, links: MtuLimits) {
        if *self.agents.mtu_limits != links {
            self.agents.mtu_limits = Arc::new(links);
            self.mtu_limits_changed = true;
        }
    }

    /// Switches pass worms on in this way, from now on, and agents send `trains` or do not. Whoever asks for trains has
    /// all switches in wormhole mode before, and until agents have stopped: others drop them. Where multicasts are
    /// interrupted, TREE worms of all groups go by the root. Where UNICAST alone waits, all trains are UNICAST.
    pub fn set_switching(&mut self, switching: Switching, trains: bool) {
        let train_frames = if trains {
            switching.train_frames()
        } else {
            Default::default()
        };
        if self.switches.switching != switching || self.agents.train_frames != train_frames {
            self.switches.switching = switching;
            self.agents.train_frames = train_frames;
            self.agents.by_root = switching.goes_by_root();
            self.network = None;
        }
    }

    /// Switches take TREE routes of so many bytes at most, from now on, 3 or more; none: of as many as any route may
    /// have. Agents split what needs more.
    pub fn set_tree_route_max(&mut self, bytes: Option<u8>) {
        if self.agents.tree_route_max != bytes {
            self.agents.tree_route_max = bytes;
            self.network = None;
        }
    }

    /// The links with these ends carry nothing, from now on, because a port of theirs is down. Both ends
    /// of a link are named. Links that are known, not up, and not named here may carry worms.
    pub fn set_down(&mut self, ends: BTreeSet<(SwitchId, PortId)>) {
        self.down = ends;
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
    /// Agents that are not live have their groups as if all took part, so that who comes
    /// back finds itself a member; nobody else hears of them. Switches replicate to every located
    /// member of a group, agent or not, under the number that `class_d` gives its address, and with
    /// scheme `table` under one for it and groups like it. A group whose live members are not all connected keeps those of the part with most
    /// of them (on a tie the part with the lowest host); the others are shortfalls, and so is who
    /// cannot take a group.
    ///
    /// A group or a connected part that cannot be planned is named in `failures` and holds up
    /// nothing else: a group stays as it was planned before if it can.
    pub fn plan(
        &mut self,
        up: &Topology,
        known: &Topology,
        groups: &[Arc<Group>],
        hosts: &Hosts,
        class_d: &ClassDNumbers,
    ) -> FabricState {
        let wanted: BTreeMap<GroupId, Arc<Group>> = groups
            .iter()
            .map(|group| (group.id, group.clone()))
            .collect();
        let up = without(up, |link| self.held.contains(&link));
        self.left_out = matches!(up, Cow::Owned(_));
        let given = &*up;
        let given_known = known;
        let (up, known) = [given, known]
            .map(|topology| self.relevant(topology))
            .into();
        if self.next.is_none() {
            self.method = Method::KeptOrder;
        }
        // Nothing to build on, should something fail.
        let before = self.network.take();
        let reuse = reusable(before.as_ref(), (&up, &known));
        let routes_before = (reuse != Reuse::All).then(|| self.hosts_routes());
        if reuse != Reuse::All {
            let only_lost = before.as_ref().is_some_and(|before| {
                let known_lost = is_left_of(&known, &before.1);
                known_lost && is_left_of(&up, &before.0)
            });
            self.start(&up, &known, reuse, only_lost);
        }
        let is_new = |group: &&Arc<Group>| {
            let old = self.groups.get(&group.id);
            old.is_none_or(|old| !Arc::ptr_eq(old, group) && old != *group)
        };
        let changed: Vec<Arc<Group>> = wanted.values().filter(is_new).cloned().collect();
        let is_gone = |id: &&GroupId| !wanted.contains_key(id);
        let gone: Vec<GroupId> = self.groups.keys().filter(is_gone).copied().collect();
        let (touched, renumbered) = self.switches.change(&gone, &changed, class_d);
        let mtu_limits_changed = std::mem::take(&mut self.mtu_limits_changed);
        let for_agents: Vec<Arc<Group>> = match reuse {
            _ if mtu_limits_changed => wanted.values().cloned().collect(),
            Reuse::Switches => wanted.values().cloned().collect(),
            _ => {
                let ids = changed.iter().map(|group| group.id).chain(renumbered);
                let ids: BTreeSet<GroupId> = ids.collect();
                ids.iter()
                    .filter_map(|id| wanted.get(id))
                    .cloned()
                    .collect()
            }
        };
        let number = |group| self.switches.table_number(group);
        self.gather.keep(|group| wanted.contains_key(&group));
        let gathering = (self.switches.spans(), &mut self.gather);
        (self.agents).change(&gone, &for_agents, hosts, number, gathering);
        let gathered = self.gather.apply(&mut self.switches.switches);
        self.build_bridge(given, reuse);
        let guarded = self.admit(&wanted, (given, given_known), &hosts.agents);
        let (mut changed, mut bridged) = (0, 0);
        if let Some(before) = routes_before {
            changed = count_changed(&before, self.agents.routes());
            if let Some((_, bridge)) = &self.bridge {
                let routes = bridge.routes.iter().map(|(&host, routes)| (host, routes));
                bridged = count_changed(&before, routes);
            }
        }
        let touched = match reuse {
            Reuse::Nothing => self.touched_since(),
            _ => {
                let mut touched = touched;
                for (switch, places) in gathered.into_iter().chain(guarded) {
                    touched.entry(switch).or_default().extend(places);
                }
                Some(touched)
            }
        };
        let switches = self.switches.switches.iter();
        self.announced
            .extend(switches.map(|(&switch, state)| (switch, state.clone())));
        let kept = before.filter(|_| reuse == Reuse::All);
        self.network = Some(kept.unwrap_or_else(|| (up.into_owned(), known.into_owned())));
        self.groups = wanted;
        FabricState {
            switches: self.switches.switches.clone(),
            agents: self.agents.agents.clone(),
            shortfalls: self.agents.shortfalls(),
            by_hosts: self.gather.by_hosts(),
            parts: self.parts.clone(),
            roots: self.roots.clone(),
            lengthened: self.lengthened,
            failures: self.failures(),
            touched,
            routes: RouteChange {
                method: self.method,
                in_force: self.in_force.clone().unwrap_or_default(),
                next: self.next.clone(),
                bridge: self.bridge.is_some().then(|| self.bridge_plans.clone()),
                stopped: self.bridge.as_ref().map_or(0, |(_, bridge)| bridge.stopped),
                changed,
                bridged,
                crossed_max: self.crossed_max,
                drains: !self.held.is_empty() || self.admits_more,
            },
            switching: self.switches.switching,
        }
    }

    /// Where switches differ from what they were to have before; `None` if that is nothing.
    fn touched_since(&self) -> Option<BTreeMap<SwitchId, Vec<Place>>> {
        let nothing = SwitchState::default();
        let differs = |(&switch, state): (&SwitchId, &Arc<SwitchState>)| {
            let before = self
                .announced
                .get(&switch)
                .map_or(&nothing, |state| &**state);
            (switch, differing(state, before))
        };
        let switches = self.switches.switches.iter();
        (!self.announced.is_empty()).then(|| switches.map(differs).collect())
    }

    fn failures(&self) -> Vec<PlanFailure> {
        let mut failures = self.agents.failures();
        let without: Vec<GroupId> = self.switches.without_room().collect();
        if !without.is_empty() {
            failures.push(PlanFailure {
                subject: Subject::Groups(without),
                reason: format!(
                    "switches have room for {GROUP_NUMBERS_MAX} group numbers, and addresses and lower groups take it: messages go by TREE routes"
                ),
            });
        }
        failures
    }

    fn hosts_routes(&self) -> BTreeMap<HostId, HostRoutes> {
        let routes = self.agents.routes();
        routes
            .map(|(host, routes)| (host, routes.clone()))
            .collect()
    }

    /// Routes to use while the order changes, and plans with them.
    fn build_bridge(&mut self, up: &Topology, reuse: Reuse) {
        let (Some(before), Some(after)) = (&self.in_force, &self.next) else {
            self.bridge = None;
            self.bridge_plans.clear();
            return;
        };
        let is_kept = reuse == Reuse::All && self.bridge.as_ref().is_some_and(|b| b.0 == *up);
        if !is_kept {
            let goal = self.hosts_routes();
            let bridge = bridge::plan(up, &before.order, &after.order, &goal);
            let tables = bridge.routes.values();
            self.crossed_max = self.crossed_max.max(crossed_max(tables));
            self.bridge = Some((up.clone(), bridge));
        }
        if let Some((_, bridge)) = &self.bridge {
            self.bridge_plans = self.agents.with_routes(&bridge.routes, &self.bridge_plans);
        }
    }

    /// A topology without what does not matter to these routes.
    fn relevant<'t>(&self, topology: &'t Topology) -> Cow<'t, Topology> {
        let matters = self.setting.algorithm.uses_in_transit_hosts();
        if matters || topology.hosts().iter().all(|host| host.transit) {
            Cow::Borrowed(topology)
        } else {
            Cow::Owned(topology.with_transit(|_| true))
        }
    }

    fn start(&mut self, up: &Topology, known: &Topology, reuse: Reuse, only_lost: bool) {
        let same_order = self.choose_order(up, known);
        let order = self.next.as_ref().or(self.in_force.as_ref());
        let order = order.expect("it was chosen");
        let parts = Arc::new(Part::of(up, order, &self.setting));
        if reuse == Reuse::Nothing {
            let ids = |part: &Part| {
                let switches = part.topology.switches();
                switches.iter().map(|switch| switch.id).collect()
            };
            self.parts = parts.iter().map(ids).collect();
            let root = |part: &Part| part.order.root(&part.topology);
            self.roots = parts.iter().map(root).collect();
            self.groups.clear();
            self.switches = SwitchPlanner::new(parts.clone(), known, self.switches.switching);
            self.guarded.clear();
            self.group_guard.forget();
            self.gather.forget_switches();
        }
        // A part without routes has none that are longer, and is named among the failures.
        let lengthened = |part: &Part| part.lengthened(&self.setting).unwrap_or(0);
        self.lengthened = parts.iter().map(lengthened).sum();
        let before = std::mem::take(&mut self.agents);
        let known = Part::of(known, order, &self.setting);
        let kept = only_lost.then(|| Lasting {
            wiring: Wiring::new(up),
            ranks: ranks(up, &order.order),
            same_order,
        });
        self.agents = AgentPlanner::new(known, parts, &self.setting, kept.as_ref(), before);
        let crossed = crossed_max(self.agents.routes().map(|(_, routes)| routes));
        self.crossed_max = crossed.max(std::mem::replace(&mut self.crossed_now, crossed));
    }

    /// What is known without links that carry nothing.
    fn carrying<'t>(&self, known: &'t Topology) -> Cow<'t, Topology> {
        without(known, |(switch, port, _, _)| {
            let port = PortId::new(port);
            port.is_some_and(|port| self.down.contains(&(SwitchId(switch), port)))
        })
    }

    /// Keeps the order in force if it serves, else chooses the next; whether that is what it was.
    fn choose_order(&mut self, up: &Topology, known: &Topology) -> bool {
        let before = self.next.take();
        let base = before.as_ref().or(self.in_force.as_ref());
        let Some(base) = base else {
            self.in_force = Some(RouteOrder::new(up, known, &self.setting));
            self.method = Method::NewOrder;
            return false;
        };
        let wanted = base.for_now(up, known, &self.setting);
        let same = wanted.order.directs_as(&base.order, known);
        let in_force = self.in_force.as_ref().expect("there is a base");
        let all = in_force.order.clone().with_all(known);
        if wanted.order.directs_as(&all, known) {
            self.method = Method::KeptOrder;
            self.in_force = Some(wanted.with_order(all));
            return same;
        }
        let all = in_force.clone().with_order(all);
        let carrying = self.carrying(known);
        if joins_hosts(up, known) && wanted.follows_at_once(&all, &carrying) {
            self.method = Method::RepairedOrder;
            self.held.extend(wanted.links_away(&carrying));
            self.in_force = Some(wanted);
        } else {
            self.method = if wanted.repairs(in_force) {
                Method::RepairedOrder
            } else {
                Method::NewOrder
            };
            self.in_force = Some(all);
            self.next = Some(wanted);
        }
        same
    }
}
