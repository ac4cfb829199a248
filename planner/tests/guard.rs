//! What the guard admits: all that any host may send by its plan, in every mixture of old and new
//! plans and switches; and in the end nothing else.

use crate::lab;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lab::gather::gathering;
use lab::guard::{Enters, check_admitted, refuse, sent_by};
use lab::model::{Walker, write};
use lab::{
    Random, all_live, change_groups, damage, fabric_members, random_groups, random_topology,
    table_number,
};
use proptest::prelude::*;
use wormcast_planner::{
    AgentPlan, ClassDNumbers, FabricState, Group, GroupScheme, Guard, Hosts, Planner, Stage,
    SwitchState, Switching, Update, difference,
};
use wormcast_routing::generate::{Irregular, irregular};
use wormcast_routing::group::{Guard as RootGuard, Scheme, SwitchMode};
use wormcast_routing::routes::{Algorithm, Setting};
use wormcast_routing::topology::{Host, Topology};
use wormcast_wire::worm::Kind;
use wormcast_wire::{GroupId, HostId, SwitchId};

/// A fabric whose parts hear of a change one after another.
struct Fabric {
    network: Topology,
    planner: Planner,
    hosts: Hosts,
    states: BTreeMap<SwitchId, Arc<SwitchState>>,
    /// Plans that hosts may use at the moment: the last that all have confirmed, and what came since.
    used: BTreeMap<HostId, Vec<Arc<AgentPlan>>>,
    /// Out of the controller's reach, with what they had; nothing is asked of them.
    silent: BTreeSet<SwitchId>,
    bridges: usize,
    checked: usize,
}

impl Fabric {
    fn new(network: &Topology, hosts: Hosts) -> Fabric {
        let ids = network.switches().iter().map(|switch| switch.id);
        Fabric {
            planner: Planner::new(Setting::plain(Algorithm::Osud)),
            states: ids.map(|id| (id, Arc::default())).collect(),
            network: network.clone(),
            hosts,
            used: BTreeMap::new(),
            silent: BTreeSet::new(),
            bridges: 0,
            checked: 0,
        }
    }

    fn plan(&mut self, up: &Topology, groups: &[Arc<Group>]) -> FabricState {
        let class_d = ClassDNumbers::default();
        self.planner
            .plan(up, &self.network, groups, &self.hosts, &class_d)
    }

    /// Updates up to a stage, switches in any order; hosts may send at any moment.
    fn write(&mut self, random: &mut Random, new: &FabricState, stage: Stage, share: usize) {
        let mut due: BTreeMap<SwitchId, std::vec::IntoIter<Update>> = BTreeMap::new();
        let mut turns = Vec::new();
        for (&switch, wanted) in &new.switches {
            let mut updates = difference(wanted, &self.states[&switch], None);
            updates.retain(|update| update.stage <= stage);
            turns.extend(updates.iter().map(|_| switch));
            due.insert(switch, updates.into_iter());
        }
        random.shuffle(&mut turns);
        turns.truncate(turns.len() * share / 100);
        for (n, switch) in turns.into_iter().enumerate() {
            let update = due
                .get_mut(&switch)
                .and_then(Iterator::next)
                .expect("it has a turn");
            let state = self.states.get_mut(&switch).expect("a switch");
            write(Arc::make_mut(state), &update);
            if n % 9 == 0 {
                self.check(stage);
            }
        }
        self.check(stage);
    }

    fn tell(
        &mut self,
        random: &mut Random,
        plans: &BTreeMap<HostId, Arc<AgentPlan>>,
        stage: Stage,
    ) {
        let mut hosts: Vec<_> = plans.iter().collect();
        random.shuffle(&mut hosts);
        for (n, (&host, plan)) in hosts.into_iter().enumerate() {
            self.used.entry(host).or_default().push(plan.clone());
            if n % 5 == 0 {
                self.check(stage);
            }
        }
        self.check(stage);
    }

    /// All have confirmed, and older worms have left.
    fn confirm(&mut self) {
        for plans in self.used.values_mut() {
            plans.drain(..plans.len() - 1);
        }
    }

    fn check(&mut self, stage: Stage) {
        for plan in self.used.values().flatten() {
            let worms = sent_by(&self.network, plan);
            self.checked += worms.len();
            check_admitted(&self.states, &self.silent, &worms, &format!("in {stage:?}"));
        }
    }

    /// Brings a plan out; `until` is the last stage before the next plan comes.
    fn bring_out(&mut self, random: &mut Random, new: &FabricState, until: Option<Stage>) {
        let here = |switch: &&SwitchId| !new.switches.contains_key(switch);
        let away: Vec<SwitchId> = self.states.keys().filter(here).copied().collect();
        self.silent.extend(away);
        for stage in Stage::ALL {
            match stage {
                Stage::Shrink => {
                    if let Some(bridge) = &new.routes.bridge {
                        self.bridges += 1;
                        self.tell(random, bridge, stage);
                    }
                }
                Stage::Grow if new.routes.bridge.is_some() => {
                    self.confirm();
                    self.planner.settle();
                }
                Stage::Retire => self.tell(random, &new.agents, stage),
                Stage::Revoke => {
                    // Hosts may have used plans that their switch never heard of.
                    self.confirm();
                    self.silent
                        .retain(|switch| !new.switches.contains_key(switch));
                }
                Stage::Permit | Stage::Grow => {}
            }
            if Some(stage) == until {
                let share = random.between(0, 90);
                return self.write(random, new, stage, share);
            }
            self.write(random, new, stage, 100);
        }
    }
}

fn any_guard(random: &mut Random, network: &Topology, groups: &[Arc<Group>]) -> Guard {
    let host = |host: &Host| (host.id, 1_000 + u64::from(host.port.get()));
    let ids = groups.iter().map(|group| group.id);
    Guard {
        on: random.chance(75),
        closed: ids.filter(|_| random.chance(50)).collect(),
        rates: (network.hosts().iter())
            .map(host)
            .filter(|_| random.chance(20))
            .collect(),
    }
}

fn any_hosts(random: &mut Random, network: &Topology) -> Hosts {
    let mut hosts = all_live(network);
    hosts.agents.retain(|_| random.chance(85));
    hosts.live = hosts.agents.clone();
    hosts
}

/// Agents alone re-inject, some do not.
fn any_transit(random: &mut Random, network: &Topology, agents: &BTreeSet<HostId>) -> Topology {
    let may: BTreeSet<HostId> = (agents.iter().copied())
        .filter(|_| random.chance(75))
        .collect();
    network.with_transit(|host| may.contains(&host))
}

fn any_network(random: &mut Random, seed: u64) -> Topology {
    if random.chance(50) {
        random_topology(random)
    } else {
        irregular(&Irregular {
            switches: 7,
            ports: 8,
            hosts: 2,
            links: 3,
            seed,
        })
        .unwrap()
    }
}

/// Worms of some groups go up to the root first.
fn by_root(random: &mut Random, groups: Vec<Arc<Group>>) -> Vec<Arc<Group>> {
    let with_guard = |group: Arc<Group>| match group.scheme {
        GroupScheme::One(Scheme::Switch(mut parameters))
            if parameters.mode == SwitchMode::Tree && random.chance(40) =>
        {
            parameters.guard = RootGuard::B;
            Arc::new(Group {
                scheme: Scheme::Switch(parameters).into(),
                ..(*group).clone()
            })
        }
        _ => group,
    };
    groups.into_iter().map(with_guard).collect()
}

/// What hosts may send by a plan is admitted while switches and hosts learn of the next one by one, and
/// what the plan gives nobody is refused in the end.
#[test]
fn no_host_loses_what_its_plan_has_it_send() {
    let (mut bridges, mut checked, mut refused, mut turned) = (0, 0, 0, 0);
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let network = any_network(&mut random, seed);
        if network.hosts().len() < 2 {
            continue;
        }
        let hosts = any_hosts(&mut random, &network);
        let network = network.with_transit(|host| hosts.agents.contains(&host));
        let switches: Vec<SwitchId> = network.switches().iter().map(|s| s.id).collect();
        let mut fabric = Fabric::new(&network, hosts);
        let first = random_groups(&mut random, &network, 5);
        let first = by_root(&mut random, first);
        let mut groups = gathering(&mut random, first);
        let mut up = network.clone();
        let mut guard = Guard::default();
        for _ in 0..8 {
            if random.chance(50) {
                let changed = change_groups(&mut random, &network, &groups);
                let changed = by_root(&mut random, changed);
                groups = gathering(&mut random, changed);
            }
            if random.chance(40) {
                let algorithm = *random.choose(&Algorithm::ALL);
                let root = random.chance(50).then(|| *random.choose(&switches));
                let setting = Setting {
                    root,
                    ..Setting::plain(algorithm)
                };
                fabric.planner.set_routing(setting);
            }
            if random.chance(25) {
                let (mode, scheme) = *random.choose(&[
                    ("packet", None),
                    ("wormhole", Some("plain")),
                    ("wormhole", Some("interrupt")),
                ]);
                let switching = Switching::named(mode, scheme).expect("one of them");
                fabric.planner.set_switching(switching, false);
            }
            if random.chance(40) {
                up = if random.chance(50) {
                    any_transit(&mut random, &network, &fabric.hosts.agents)
                } else {
                    damage(&mut random, &network)
                };
            }
            if random.chance(40) {
                guard = any_guard(&mut random, &network, &groups);
                fabric.planner.set_guard(guard.clone());
                turned += 1;
            }
            let new = fabric.plan(&up, &groups);
            let until = random.chance(30).then(|| *random.choose(&Stage::ALL[..4]));
            fabric.bring_out(&mut random, &new, until);
            if until.is_none() {
                if new.routes.drains && fabric.planner.drained() {
                    let again = fabric.plan(&up, &groups);
                    fabric.bring_out(&mut random, &again, None);
                }
                // The longest TREE routes are those of the bridge, where there was one.
                let is_exact = new.routes.bridge.is_none();
                for (switch, state) in &fabric.states {
                    if !fabric.silent.contains(switch) {
                        refused +=
                            check_refused(&fabric, &guard, &groups, (*switch, state), is_exact);
                    }
                }
            }
        }
        bridges += fabric.bridges;
        checked += fabric.checked;
    }
    assert!(
        bridges > 20 && turned > 100,
        "{bridges} bridges, {turned} other guards"
    );
    assert!(
        checked > 100_000 && refused > 10_000,
        "{checked} admitted, {refused} refused"
    );
}

/// Offers a switch what none of the plans in use gives anybody; gives how much of it was refused, which is
/// all where the guard is on and nothing where it is off.
fn check_refused(
    fabric: &Fabric,
    guard: &Guard,
    groups: &[Arc<Group>],
    (switch, state): (SwitchId, &SwitchState),
    is_exact: bool,
) -> usize {
    let agents = &fabric.hosts.agents;
    let own = |host: &Host, kind, number| Enters {
        at: (switch, host.port),
        source: Some(host.id),
        kind,
        route: 0,
        next: Vec::new(),
        number,
    };
    let mut wrong = Vec::new();
    let numbers: BTreeMap<GroupId, BTreeSet<HostId>> =
        fabric_members(groups, &ClassDNumbers::default());
    for host in fabric
        .network
        .hosts()
        .iter()
        .filter(|host| host.switch == switch)
    {
        let sent: Vec<Enters> = (fabric.used.get(&host.id).into_iter().flatten())
            .flat_map(|plan| sent_by(&fabric.network, plan))
            .collect();
        let allowed: BTreeSet<Kind> = sent.iter().map(|worm| worm.kind).collect();
        for kind in [
            Kind::Unicast,
            Kind::Tree,
            Kind::Broadcast,
            Kind::Group,
            Kind::Control,
            Kind::Gather,
        ] {
            // A member that is cut off is admitted as one that takes part.
            let gathers = |group: &Arc<Group>| gathers(group) && group.members.contains(&host.id);
            let is_refused = match kind {
                Kind::Control => true,
                Kind::Gather => !groups.iter().any(gathers),
                _ => false,
            };
            if !agents.contains(&host.id) || is_refused {
                wrong.push((own(host, kind, None), "KIND_REFUSED"));
            }
            let source = Some(HostId(host.id.0 ^ 0x4000));
            let forged = Enters {
                source,
                ..own(host, kind, None)
            };
            wrong.push((forged, "SOURCE_REFUSED"));
        }
        if allowed.contains(&Kind::Unicast) {
            let long = Enters {
                route: 65,
                ..own(host, Kind::Unicast, None)
            };
            wrong.push((long, "ROUTE_TOO_LONG"));
            for next in [254, host.port.get()] {
                let back = Enters {
                    route: 1,
                    next: vec![next],
                    ..own(host, Kind::Unicast, None)
                };
                wrong.push((back, "ROUTE_REFUSED"));
            }
        }
        let longest = |worm: &&Enters| worm.kind == Kind::Tree && worm.at == (switch, host.port);
        let longest = sent.iter().filter(longest).map(|worm| worm.route).max();
        if let Some(longest) = longest.filter(|bytes| is_exact && *bytes < 255) {
            let long = Enters {
                route: longest + 1,
                ..own(host, Kind::Tree, None)
            };
            wrong.push((long, "ROUTE_TOO_LONG"));
        }
        for (number, members) in &numbers {
            if members.contains(&host.id) || !is_closed(guard, groups, *number) {
                continue;
            }
            let plain = Enters {
                source: None,
                ..own(host, Kind::Group, Some(*number))
            };
            wrong.push((plain, "GROUP_REFUSED"));
        }
        assert_eq!(
            state.rates.get(&host.port),
            guard.rates.get(&host.id).filter(|_| guard.on)
        );
    }
    let used: BTreeSet<_> = (fabric
        .network
        .hosts()
        .iter()
        .map(|host| (host.switch, host.port)))
    .chain(
        fabric
            .network
            .links()
            .iter()
            .flat_map(|l| [(l.a, l.a_port), (l.b, l.b_port)]),
    )
    .collect();
    for port in (0..20)
        .map(lab::port)
        .filter(|port| !used.contains(&(switch, *port)))
    {
        let at = (switch, port);
        let worm = Enters {
            at,
            source: Some(HostId(0)),
            kind: Kind::Unicast,
            route: 1,
            next: vec![0],
            number: None,
        };
        wrong.push((worm, "HOST_UNKNOWN"));
    }
    for (worm, reason) in &wrong {
        let expected = guard.on.then_some(*reason);
        assert_eq!(refuse(state, worm), expected, "{worm:?}");
    }
    if guard.on { wrong.len() } else { 0 }
}

/// Whether switches may gather ACKs of the group.
fn gathers(group: &Group) -> bool {
    let copied = match group.scheme {
        GroupScheme::Auto => true,
        GroupScheme::One(scheme) => matches!(scheme, Scheme::Switch(_)),
    };
    group.gather && copied
}

/// Every group that carries the number is of scheme `table` without that address, or closed by the operator.
fn is_closed(guard: &Guard, groups: &[Arc<Group>], number: GroupId) -> bool {
    let classes = ClassDNumbers::default();
    let by_address = |group: &&Arc<Group>| {
        group
            .class_d
            .is_some_and(|address| classes.number(address) == number)
    };
    groups
        .iter()
        .filter(by_address)
        .all(|group| guard.closed.contains(&group.id))
}

/// Who may send to which group, by switch.
fn of_groups(state: &FabricState) -> BTreeSet<(SwitchId, String)> {
    let tables = ["ingress.open_groups", "ingress.group_senders"];
    let switches = state.switches.iter();
    let entries =
        switches.flat_map(|(switch, state)| state.entries.keys().map(move |k| (switch, k)));
    let ours = entries.filter(|(_, key)| tables.contains(&&*key.table));
    ours.map(|(switch, key)| (*switch, format!("{key:?}")))
        .collect()
}

proptest! {
    /// What is marked as touched is all that differs, with the guard too; and of groups it is what a new planner
    /// has.
    #[test]
    fn plans_name_where_guards_differ(seed: u64) {
        let mut random = Random::new(seed);
        let network = random_topology(&mut random);
        if network.hosts().is_empty() {
            return Ok(());
        }
        let hosts = any_hosts(&mut random, &network);
        let network = network.with_transit(|host| hosts.agents.contains(&host));
        let mut planner = Planner::new(Setting::plain(Algorithm::RrmitMin));
        let mut groups = random_groups(&mut random, &network, 4);
        let mut announced: BTreeMap<SwitchId, Arc<SwitchState>> = BTreeMap::new();
        let nothing = SwitchState::default();
        for _ in 0..6 {
            groups = change_groups(&mut random, &network, &groups);
            let guard = any_guard(&mut random, &network, &groups);
            planner.set_guard(guard.clone());
            let up = if random.chance(30) { damage(&mut random, &network) } else { any_transit(&mut random, &network, &hosts.agents) };
            let class_d = ClassDNumbers::default();
            let found = planner.plan(&up, &network, &groups, &hosts, &class_d);
            let mut anew = Planner::new(Setting::plain(Algorithm::RrmitMin));
            anew.set_guard(guard);
            let anew = anew.plan(&up, &network, &groups, &hosts, &class_d);
            prop_assert_eq!(of_groups(&found), of_groups(&anew));
            if let Some(touched) = &found.touched {
                for (switch, state) in &found.switches {
                    let named = touched.get(switch).map_or(&[][..], |places| places);
                    let before = announced.get(switch).map_or(&nothing, |state| &**state);
                    let by_name = difference(state, before, Some(named));
                    prop_assert_eq!(by_name, difference(state, before, None));
                }
            }
            for (switch, state) in &found.switches {
                let before = announced.get(switch).map_or(&nothing, |state| &**state);
                let mut there = before.clone();
                for update in difference(state, before, None) {
                    write(&mut there, &update);
                }
                prop_assert_eq!(&there, &**state);
            }
            announced.extend(found.switches);
        }
    }
}

/// A walk through guarded switches reaches whom it reached before.
#[test]
fn worms_of_members_reach_all_through_guards() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let network = random_topology(&mut random);
        let groups = random_groups(&mut random, &network, 5);
        let hosts = all_live(&network);
        let plan = |on| {
            let mut planner = Planner::new(Setting::plain(Algorithm::Osud));
            planner.set_guard(Guard {
                on,
                ..Guard::default()
            });
            planner.plan(
                &network,
                &network,
                &groups,
                &hosts,
                &ClassDNumbers::default(),
            )
        };
        let (open, guarded) = (plan(false), plan(true));
        let mut before = Walker::new(&network, open.switches.clone());
        let mut after = Walker::new(&network, guarded.switches.clone());
        for group in &groups {
            for sender in network.hosts() {
                if let Some(number) =
                    table_number(&groups, group).filter(|_| group.members.contains(&sender.id))
                {
                    let got = after.send_group(sender, number);
                    assert_eq!(
                        got,
                        before.send_group(sender, number),
                        "{number} of {sender:?}"
                    );
                }
                if let Some(address) = group.class_d {
                    let got = after.send_class_d(sender, address);
                    assert_eq!(
                        got,
                        before.send_class_d(sender, address),
                        "{address} of {sender:?}"
                    );
                }
            }
        }
        for plan in guarded.agents.values() {
            let sender = network.host(plan.host).unwrap();
            for route in &plan.routes.0 {
                assert_eq!(after.send_unicast(&sender, &route.ports), Some(route.to));
            }
        }
    }
}
