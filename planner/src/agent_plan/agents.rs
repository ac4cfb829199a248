//! What every agent must have, planned again and again: only what a change concerns is made anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wormcast_routing::routes::Setting;
use wormcast_wire::{GroupId, HostId, SwitchId};

use crate::gather::{GatherPlanner, Spans};
use crate::model::agent::{AgentGroup, AgentPlan, HostRoutes, Sequencer};
use crate::model::derived::Derived;
use crate::model::failure::{PlanFailure, Subject};
use crate::model::groups::Group;
use crate::model::hosts::{CUT_OFF, Capacity, Hosts, NOT_LIVE, NOT_LOCATED, PLAIN, Shortfall};

use crate::agent_plan::left_out::{left_out, unchanged};
use crate::agent_plan::rates::Rates;
use crate::agent_plan::shapes::Shapes;
use crate::agent_plan::wholes::{Kept, Lasting, Whole};
use crate::cost::Costs;
use crate::mtu::{LimitedMtus, MtuLimits};
use crate::order::parts::Part;
use crate::switch_plan::trees::{self, routes_to_root};

type Advertised = BTreeMap<HostId, Arc<AgentGroup>>;

/// One group as it is planned.
#[derive(Clone, Debug)]
struct Planned {
    group: Arc<Group>,
    shortfalls: Vec<Shortfall>,
    advertised: Advertised,
    sequencer: Option<Sequencer>,
    failure: Option<PlanFailure>,
}

/// What groups are planned with.
struct Making<'m> {
    shapes: Shapes<'m>,
    spans: Spans<'m>,
    gather: &'m mut GatherPlanner,
}

/// Keeps the last plan of the agents of one network, and changes it.
#[derive(Debug, Default)]
pub(crate) struct AgentPlanner {
    wholes: Arc<Vec<Whole>>,
    whole_of: BTreeMap<HostId, usize>,
    /// Parts without routes; their agents keep what they have.
    failures: Vec<PlanFailure>,
    at_random: bool,
    /// Connected parts that switches copy in.
    copies: Vec<Part>,
    root_routes: BTreeMap<HostId, Arc<[u8]>>,
    /// The roots of all parts, of what is up and of what is known.
    pub(crate) roots: BTreeSet<SwitchId>,
    /// Numbers of groups of scheme `table`.
    numbers: BTreeMap<GroupId, GroupId>,
    /// By which `auto` chooses.
    pub(crate) costs: Arc<Costs>,
    /// The first epoch of a sequencer that no earlier life of this planner has chosen.
    pub(crate) sequencer_epoch: u64,
    pub(crate) mtu_limits: Arc<MtuLimits>,
    /// Frames of a train that an agent sends, at most: of any kind, and of UNICAST.
    pub(crate) train_frames: (u16, u16),
    /// Bytes of a TREE route at most; none: as many as any route may have.
    pub(crate) tree_route_max: Option<u8>,
    /// Whether all TREE worms go by the root.
    pub(crate) by_root: bool,
    pub(crate) rates: Rates,
    hosts: Hosts,
    planned: BTreeMap<GroupId, Planned>,
    groups_of: BTreeMap<HostId, BTreeMap<GroupId, Arc<AgentGroup>>>,
    /// Configured groups of each host.
    memberships: BTreeMap<HostId, u64>,
    /// Some host has more groups than it takes: which of them it gets depends on all.
    crowded: bool,
    inherited: BTreeMap<GroupId, Planned>,
    inherited_agents: BTreeMap<HostId, Arc<AgentPlan>>,
    pub(crate) agents: BTreeMap<HostId, Arc<AgentPlan>>,
}

impl AgentPlanner {
    /// `known` are the connected parts of all that is known, `up` of what is up. What comes out
    /// the same as `before` will be the same objects; a group that cannot be planned stays. Routes
    /// that are `lasting` stay.
    pub(crate) fn new(
        known: Vec<Part>,
        up: Arc<Vec<Part>>,
        setting: &Setting,
        lasting: Option<&Lasting>,
        before: AgentPlanner,
    ) -> AgentPlanner {
        let kept = Kept {
            lasting,
            wholes: &before.wholes,
            whole_of: &before.whole_of,
        };
        let mut planner = AgentPlanner {
            inherited: BTreeMap::new(),
            inherited_agents: BTreeMap::new(),
            at_random: setting.algorithm.draws_routes(),
            costs: before.costs,
            sequencer_epoch: before.sequencer_epoch,
            mtu_limits: before.mtu_limits,
            train_frames: before.train_frames,
            tree_route_max: before.tree_route_max,
            by_root: before.by_root,
            rates: before.rates,
            ..AgentPlanner::default()
        };
        let mut copies: Vec<Part> = up.to_vec();
        // Where nothing is up, as if all were.
        let is_away = |whole: &&Part| {
            let mut switches = up.iter().flat_map(|part| part.topology.switches());
            !switches.any(|switch| whole.topology.switch_index(switch.id).is_ok())
        };
        copies.extend(known.iter().filter(is_away).cloned());
        planner.root_routes = known
            .iter()
            .chain(&copies)
            .flat_map(routes_to_root)
            .collect();
        let all = known.iter().chain(&copies);
        planner.roots = all.map(|part| part.order.root(&part.topology)).collect();
        planner.copies = copies;
        let mut wholes = Vec::with_capacity(known.len());
        for (at, whole) in known.into_iter().enumerate() {
            planner
                .whole_of
                .extend(whole.topology.hosts().iter().map(|host| (host.id, at)));
            let first = |part: &Part| part.topology.switches()[0].id;
            let is_inside = |part: &&Part| whole.topology.switch_index(first(part)).is_ok();
            let inside: Vec<&Part> = up.iter().filter(is_inside).collect();
            let switches = whole.topology.switches();
            let switches = switches.iter().map(|switch| switch.id).collect();
            let (whole, error) = Whole::new(whole, &inside, setting, &kept, planner.by_root);
            planner.failures.extend(error.map(|error| PlanFailure {
                subject: Subject::Switches(switches),
                reason: format!("no routes: {error}"),
            }));
            wholes.push(whole);
        }
        planner.wholes = Arc::new(wholes);
        planner.inherited = before.planned;
        planner.inherited_agents = before.agents;
        planner
    }

    /// Port bytes from each host to the root.
    pub(crate) fn root_routes(&self) -> impl Iterator<Item = &[u8]> {
        self.root_routes.values().map(|ports| &**ports)
    }

    pub(crate) fn routes(&self) -> impl Iterator<Item = (HostId, &HostRoutes)> {
        let routes = self.wholes.iter().flat_map(|whole| &whole.routes);
        routes.map(|(&host, routes)| (host, routes))
    }

    /// The plans with these routes in place of their own; what comes out as `before` will be the
    /// same objects.
    pub(crate) fn with_routes(
        &self,
        routes: &BTreeMap<HostId, HostRoutes>,
        before: &BTreeMap<HostId, Arc<AgentPlan>>,
    ) -> BTreeMap<HostId, Arc<AgentPlan>> {
        let mut without: BTreeMap<*const AgentGroup, Arc<AgentGroup>> = BTreeMap::new();
        let mut mtu_limits = LimitedMtus::new(&self.wholes, &self.mtu_limits);
        for group in self.agents.values().flat_map(|plan| &plan.groups) {
            let own = || {
                let whole = self.whole_of.get(&group.members[0]);
                let of = |host| routes.get(&host);
                let mtu = whole.and_then(|&at| mtu_limits.of_routes(at, &group.members, of));
                group.without_trees(mtu)
            };
            without.entry(Arc::as_ptr(group)).or_insert_with(own);
        }
        let with = |(&host, plan): (&HostId, &Arc<AgentPlan>)| {
            let (unicast, tree) = routes.get(&host).cloned().unwrap_or_default();
            let other = AgentPlan {
                routes: unicast,
                tree_routes: tree,
                root_route: None,
                groups: plan
                    .groups
                    .iter()
                    .map(|group| without[&Arc::as_ptr(group)].clone())
                    .collect(),
                digest: Derived::default(),
                ..**plan
            };
            let mut same = [Some(plan), before.get(&host)].into_iter().flatten();
            let same = same.find(|same| ***same == other).cloned();
            (host, same.unwrap_or_else(|| Arc::new(other)))
        };
        self.agents.iter().map(with).collect()
    }

    /// Takes groups away and adds or replaces others; those of scheme `table` have these numbers.
    pub(crate) fn change(
        &mut self,
        gone: &[GroupId],
        new: &[Arc<Group>],
        hosts: &Hosts,
        number: impl Fn(GroupId) -> Option<GroupId>,
        (spans, gather): (Spans<'_>, &mut GatherPlanner),
    ) {
        for &id in gone {
            self.numbers.remove(&id);
        }
        for group in new {
            match number(group.id) {
                Some(number) => self.numbers.insert(group.id, number),
                None => self.numbers.remove(&group.id),
            };
        }
        let wholes = self.wholes.clone();
        let costs = self.costs.clone();
        let links = self.mtu_limits.clone();
        let shapes = Shapes::new(&wholes, &costs, LimitedMtus::new(&wholes, &links));
        let mut stale = self.rates.take_changed();
        let mut before = std::mem::take(&mut self.inherited);
        for id in gone.iter().copied().chain(new.iter().map(|group| group.id)) {
            if let Some(removed) = self.remove(id, &mut stale) {
                before.insert(id, removed);
            }
        }
        for &member in new.iter().flat_map(|group| &group.members) {
            *self.memberships.entry(member).or_default() += 1;
        }
        let hosts_changed = *hosts != self.hosts;
        if hosts_changed {
            self.hosts = hosts.clone();
        }
        let is_crowded = self.is_crowded();
        let was_crowded = std::mem::replace(&mut self.crowded, is_crowded);
        let mut again: BTreeMap<GroupId, Arc<Group>> =
            new.iter().map(|group| (group.id, group.clone())).collect();
        if hosts_changed || was_crowded || self.crowded {
            let all = std::mem::take(&mut self.planned);
            again.extend(all.iter().map(|(&id, planned)| (id, planned.group.clone())));
            before.extend(all);
            self.groups_of.clear();
            stale.extend(self.whole_of.keys());
        }
        let mut making = Making {
            shapes,
            spans,
            gather,
        };
        self.plan_groups(again, &before, &mut making, &mut stale);
        // What others gave back may be room for groups that lack it.
        let mut again = BTreeMap::new();
        for id in making.gather.waiting() {
            if let Some(waiting) = self.remove(id, &mut stale) {
                for &member in &waiting.group.members {
                    *self.memberships.entry(member).or_default() += 1;
                }
                again.insert(id, waiting.group.clone());
                before.insert(id, waiting);
            }
        }
        self.plan_groups(again, &before, &mut making, &mut stale);
        self.plan_agents(stale);
    }

    fn plan_groups(
        &mut self,
        groups: BTreeMap<GroupId, Arc<Group>>,
        before: &BTreeMap<GroupId, Planned>,
        making: &mut Making<'_>,
        stale: &mut BTreeSet<HostId>,
    ) {
        for (id, group) in groups {
            let planned = self.plan(group, before.get(&id), making);
            for (&host, described) in &planned.advertised {
                let groups = self.groups_of.entry(host).or_default();
                groups.insert(id, described.clone());
                stale.insert(host);
            }
            self.planned.insert(id, planned);
        }
    }

    /// Of all groups by id.
    pub(crate) fn shortfalls(&self) -> Vec<Shortfall> {
        self.planned
            .values()
            .flat_map(|planned| &planned.shortfalls)
            .cloned()
            .collect()
    }

    /// Parts and groups that cannot be planned, groups by id.
    pub(crate) fn failures(&self) -> Vec<PlanFailure> {
        let groups = self
            .planned
            .values()
            .filter_map(|planned| planned.failure.as_ref());
        self.failures.iter().chain(groups).cloned().collect()
    }

    fn remove(&mut self, id: GroupId, stale: &mut BTreeSet<HostId>) -> Option<Planned> {
        let removed = self.planned.remove(&id)?;
        for member in &removed.group.members {
            if let Some(count) = self.memberships.get_mut(member) {
                *count -= 1;
            }
        }
        for host in removed.advertised.keys() {
            let groups = self.groups_of.get_mut(host);
            if groups.is_some_and(|groups| groups.remove(&id).is_some()) {
                stale.insert(*host);
            }
        }
        Some(removed)
    }

    fn is_crowded(&self) -> bool {
        let has = |host| self.memberships.get(host).copied().unwrap_or(0);
        self.hosts
            .capacities
            .iter()
            .any(|(host, capacity)| has(host) > capacity.groups)
    }

    fn plan(
        &self,
        group: Arc<Group>,
        before: Option<&Planned>,
        making: &mut Making<'_>,
    ) -> Planned {
        let (live, mut shortfalls) = self.assign(&group);
        let mut failure = None;
        let sequencer = self.choose_sequencer(&group, &live, before);
        if live.is_empty() {
            making.gather.forget(group.id);
        }
        let advertised =
            match self.advertise((&group, sequencer), (&live, &shortfalls), before, making) {
                Ok(advertised) => advertised,
                Err(reason) => {
                    making.gather.forget(group.id);
                    let reason = format!("it cannot be planned: {reason}");
                    let advertised = before
                        .filter(|before| before.group.scheme == group.scheme)
                        .map_or_else(Advertised::new, |before| {
                            unchanged(
                                &group,
                                &live,
                                &shortfalls,
                                &self.hosts.agents,
                                &before.advertised,
                            )
                        });
                    if advertised.is_empty() {
                        let short = |&host| Shortfall {
                            group: group.id,
                            host,
                            reason: reason.clone().into(),
                        };
                        shortfalls.extend(live.iter().map(short));
                    }
                    failure = Some(PlanFailure {
                        subject: Subject::Group(group.id),
                        reason,
                    });
                    advertised
                }
            };
        Planned {
            group,
            shortfalls,
            advertised,
            sequencer,
            failure,
        }
    }

    /// The one before for as long as it takes part, else the lowest that does.
    fn choose_sequencer(
        &self,
        group: &Group,
        live: &[HostId],
        before: Option<&Planned>,
    ) -> Option<Sequencer> {
        let before = before.and_then(|before| before.sequencer);
        let lowest = live.first().or(group.members.first());
        let host = lowest.copied().filter(|_| group.ordered)?;
        match before {
            Some(one) if live.is_empty() || live.binary_search(&one.host).is_ok() => Some(one),
            before => Some(Sequencer {
                host,
                epoch: before
                    .map_or(0, |one| one.epoch + 1)
                    .max(self.sequencer_epoch),
            }),
        }
    }

    /// What is advertised to whom of a group: those that take part of each other, and who is gone of all, as
    /// if all took part.
    fn advertise(
        &self,
        (group, sequencer): (&Arc<Group>, Option<Sequencer>),
        (live, shortfalls): (&[HostId], &[Shortfall]),
        before: Option<&Planned>,
        making: &mut Making<'_>,
    ) -> Result<Advertised, String> {
        let mut advertised = Advertised::new();
        if !live.is_empty() {
            let mut described = self.describe((group, sequencer), live, &mut making.shapes)?;
            described.left_out = left_out(group, live, shortfalls, &self.hosts.agents);
            described.gathered = making.gather.plan(&making.spans, group, &described);
            let described = same_or_new(described, before);
            advertised.extend(live.iter().map(|&host| (host, described.clone())));
        }
        let mut here: BTreeMap<usize, Vec<HostId>> = BTreeMap::new();
        for &member in group
            .members
            .iter()
            .filter(|member| self.hosts.agents.contains(member))
        {
            if let Some(&whole) = self.whole_of.get(&member) {
                here.entry(whole).or_default().push(member);
            }
        }
        for members in here.values() {
            let is_gone = |host: &&HostId| {
                !self.hosts.live.contains(host) && self.takes(**host, group).is_none()
            };
            let gone: Vec<&HostId> = members.iter().filter(is_gone).collect();
            if !gone.is_empty() {
                let here = |one: &Sequencer| members.binary_search(&one.host).is_ok();
                let lowest = |one: Sequencer| Sequencer {
                    host: members[0],
                    ..one
                };
                let own = sequencer.map(|one| if here(&one) { one } else { lowest(one) });
                let mut described = self.describe((group, own), members, &mut making.shapes)?;
                described.left_out = left_out(group, members, shortfalls, &self.hosts.agents);
                let described = same_or_new(described, before);
                advertised.extend(gone.into_iter().map(|&host| (host, described.clone())));
            }
        }
        Ok(advertised)
    }

    /// The members that take part now, and why the others do not.
    ///
    /// Those of the part with most of them, on a tie of the part with the lowest host.
    fn assign(&self, group: &Group) -> (Vec<HostId>, Vec<Shortfall>) {
        let mut reachable: BTreeMap<usize, Vec<HostId>> = BTreeMap::new();
        let mut shortfalls = Vec::new();
        let mut short = |host, reason| {
            shortfalls.push(Shortfall {
                group: group.id,
                host,
                reason,
            })
        };
        for &member in &group.members {
            let has_agent = self.hosts.agents.contains(&member);
            if has_agent && !self.hosts.live.contains(&member) {
                let since = self.hosts.away.get(&member).cloned();
                short(member, since.map_or(NOT_LIVE.into(), Into::into));
            } else if let Some(&whole) = self.whole_of.get(&member) {
                if !has_agent {
                    if group.class_d.is_none() {
                        // Else the switches serve it.
                        short(member, PLAIN.into());
                    }
                } else if let Some(reason) = self.takes(member, group) {
                    short(member, reason.into());
                } else {
                    reachable.entry(whole).or_default().push(member);
                }
            } else {
                short(member, NOT_LOCATED.into());
            }
        }
        let mut parts: Vec<Vec<HostId>> = reachable.into_values().collect();
        parts.sort_by_key(|members| (std::cmp::Reverse(members.len()), members[0]));
        let mut parts = parts.into_iter();
        let kept = parts.next().unwrap_or_default();
        parts
            .flatten()
            .for_each(|member| short(member, CUT_OFF.into()));
        (kept, shortfalls)
    }

    /// Why an agent does not take a group; `None`: it does.
    fn takes(&self, host: HostId, group: &Group) -> Option<String> {
        let capacity = self.hosts.capacities.get(&host)?;
        let Capacity {
            groups,
            members,
            refused,
        } = capacity;
        if let Some(reason) = refused.get(&group.id) {
            return Some(format!("its agent refuses the group: {reason}"));
        }
        let count = group.members.len();
        if count as u64 > *members {
            return Some(format!(
                "the group has {count} members; its agent takes at most {members}"
            ));
        }
        let has = self.groups_of.get(&host).map_or(0, BTreeMap::len);
        (has as u64 >= *groups).then(|| format!("its agent takes at most {groups} groups"))
    }

    fn describe(
        &self,
        (group, sequencer): (&Arc<Group>, Option<Sequencer>),
        members: &[HostId],
        shapes: &mut Shapes<'_>,
    ) -> Result<AgentGroup, String> {
        let whole = self.whole_of[&members[0]];
        let mut described = AgentGroup {
            group: group.clone(),
            id: group.id,
            name: group.name.clone(),
            members: members.to_vec(),
            structures: shapes.of(whole, group, members)?,
            number: self.numbers.get(&group.id).copied(),
            trees: trees::for_agents(&self.copies, group, members, self.by_root),
            sequencer,
            mtu: None,
            gathered: None,
            left_out: Vec::new(),
            encoded: Derived::default(),
            digest: Derived::default(),
        };
        if !shapes.mtu_limits.is_nowhere() {
            described.mtu = self.mtu_of(whole, group, &described, &mut shapes.mtu_limits);
        }
        Ok(described)
    }

    /// What all ways of a group carry; `None`: what its hosts send.
    fn mtu_of(
        &self,
        whole: usize,
        group: &Group,
        advertised: &AgentGroup,
        mtu_limits: &mut LimitedMtus<'_>,
    ) -> Option<u16> {
        let routes = |host| self.wholes[whole].routes.get(&host);
        let to_root = |host| self.root_routes.get(&host).map(|ports| &**ports);
        let ways = [
            mtu_limits.of_routes(whole, &advertised.members, routes),
            mtu_limits.of_copies(whole, (group, advertised), &self.copies, to_root),
        ];
        ways.into_iter().flatten().min()
    }

    fn plan_agents(&mut self, stale: BTreeSet<HostId>) {
        let agents = &self.hosts.agents;
        self.agents.retain(|host, _| agents.contains(host));
        let inherited = std::mem::take(&mut self.inherited_agents);
        for host in stale.into_iter().filter(|host| agents.contains(host)) {
            let whole = self.whole_of.get(&host).map(|&at| &self.wholes[at]);
            let Some((routes, tree_routes)) = whole.and_then(|whole| whole.routes.get(&host))
            else {
                continue;
            };
            let groups = self.groups_of.get(&host);
            let plan = AgentPlan {
                host,
                routes: routes.clone(),
                at_random: self.at_random,
                tree_routes: tree_routes.clone(),
                root_route: self.root_routes.get(&host).cloned(),
                groups: groups.map_or_else(Vec::new, |groups| groups.values().cloned().collect()),
                train_frames: self.train_frames.0.max(1),
                unicast_train_frames: self.train_frames.1.max(1),
                tree_route_max: self.tree_route_max.unwrap_or(u8::MAX),
                rate_bytes: self.rates.of(host),
                digest: Derived::default(),
            };
            let old = inherited.get(&host).or_else(|| self.agents.get(&host));
            let same = old.filter(|old| ***old == plan).cloned();
            self.agents
                .insert(host, same.unwrap_or_else(|| Arc::new(plan)));
        }
    }
}

/// The same object as before says that nothing has to be encoded again.
fn same_or_new(described: AgentGroup, before: Option<&Planned>) -> Arc<AgentGroup> {
    let mut old: Vec<&Arc<AgentGroup>> =
        before.map_or_else(Vec::new, |before| before.advertised.values().collect());
    old.dedup_by(|a, b| Arc::ptr_eq(a, b));
    let same = old.into_iter().find(|old| ***old == described);
    same.cloned().unwrap_or_else(|| Arc::new(described))
}
