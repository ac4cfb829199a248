//! Plans that follow from plans: the same as made anew along the same order of switches, and every
//! mixture of old and new is safe.

use crate::lab;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lab::model::{Walker, write};
use lab::{
    CIRCUIT, K_BINOMIAL, Random, all_live, change_groups, damage, group, host_ids, numbers_in,
    plan_all, port, random_groups, random_members, random_topology, topology,
};
use proptest::prelude::*;
use wormcast_planner::class_d::OWN_MAX;
use wormcast_planner::{
    Capacity, ClassDMode, ClassDNumbers, FabricState, Method, Planner, Stage, Subject, SwitchState,
    Update, difference,
};
use wormcast_routing::generate::from_spec;
use wormcast_routing::group::Scheme;
use wormcast_routing::routes::{Algorithm, Setting};
use wormcast_routing::structure::ordering;
use wormcast_routing::topology::{Grid, Host, Link, Parts, Switch, Topology};
use wormcast_routing::updown::UpDown;
use wormcast_wire::{GroupId, HostId, PortId, SwitchId};

fn sorted(mut updates: Vec<Update>) -> Vec<String> {
    updates.sort_by_key(|update| format!("{update:?}"));
    updates
        .into_iter()
        .map(|update| format!("{update:?}"))
        .collect()
}

proptest! {
    #[test]
    fn a_plan_that_follows_from_another_is_the_plan_made_anew(seed: u64, wide: bool) {
        let mode = if wide { ClassDMode::Wide } else { ClassDMode::Narrow };
        let mut random = Random::new(seed);
        let known = random_topology(&mut random);
        if known.hosts().is_empty() {
            return Ok(());
        }
        let mut up = known.clone();
        let mut planner = Planner::new(Setting::plain(Algorithm::Osud));
        let mut groups = random_groups(&mut random, &known, 4);
        let mut class_d = ClassDNumbers::default();
        let everyone = all_live(&known);
        let mut hosts = everyone.clone();
        let mut announced: BTreeMap<SwitchId, Arc<SwitchState>> = BTreeMap::new();
        let nothing = SwitchState::default();
        let mut is_repaired = false;
        for _ in 0..8 {
            groups = change_groups(&mut random, &known, &groups);
            class_d = ClassDNumbers::assign(mode, &groups, &class_d, OWN_MAX);
            if random.chance(20) {
                up = damage(&mut random, &known);
            }
            if random.chance(30) {
                hosts = everyone.clone();
                hosts.live.retain(|_| random.chance(80));
                for &host in everyone.agents.iter() {
                    if random.chance(20) {
                        let groups = random.between(0, 3) as u64;
                        let refused = BTreeMap::new();
                        hosts.capacities.insert(host, Capacity { groups, members: 1024, refused });
                    }
                }
            }
            let found = planner.plan(&up, &known, &groups, &hosts, &class_d);
            let order = found.routes.next.as_ref().unwrap_or(&found.routes.in_force).clone();
            is_repaired |= found.routes.method != Method::KeptOrder;
            planner.settle();
            let mut anew = Planner::new(Setting::plain(Algorithm::Osud));
            anew.restore_order(order);
            let anew = anew.plan(&up, &known, &groups, &hosts, &class_d);
            prop_assert_eq!(&found.switches, &anew.switches);
            prop_assert!(found.agents.keys().eq(anew.agents.keys()));
            for (plan, anew) in found.agents.values().zip(anew.agents.values()) {
                prop_assert_eq!(&plan.groups, &anew.groups);
                prop_assert_eq!(&plan.tree_routes, &anew.tree_routes);
                // Routes that a failure leaves whole stay: others are as short, but where the order
                // was repaired and they are legal still.
                prop_assert_eq!(plan.routes.0.len(), anew.routes.0.len());
                for (own, anew) in plan.routes.0.iter().zip(&anew.routes.0) {
                    let (long, short) = (own.ports.len(), anew.ports.len());
                    let fits = long == short || is_repaired && long > short;
                    prop_assert!(own.to == anew.to && fits, "{:?}, anew {:?}", own, anew);
                }
            }
            prop_assert_eq!(&found.shortfalls, &anew.shortfalls);
            prop_assert_eq!(&found.parts, &anew.parts);
            prop_assert!(found.touched.is_some() || announced.is_empty());
            if let Some(touched) = &found.touched {
                for (switch, state) in &found.switches {
                    let named = touched.get(switch).map_or(&[][..], |places| places);
                    let before = announced.get(switch).map_or(&nothing, |state| &**state);
                    let whole = sorted(difference(state, before, None));
                    let named = sorted(difference(state, before, Some(named)));
                    prop_assert_eq!(named, whole, "a change was not named");
                }
            }
            announced.extend(found.switches);
        }
    }

    #[test]
    fn the_order_of_some_hosts_is_that_of_all_with_the_others_left_out(seed: u64) {
        let mut random = Random::new(seed);
        let topology = random_topology(&mut random);
        for part in topology.split().iter().filter(|part| !part.hosts().is_empty()) {
            let members = random_members(&mut random, &host_ids(part));
            let group = Arc::new(group(1, K_BINOMIAL, &members));
            let state = plan_all(part, &[group]);
            let updown = UpDown::new(part, None).unwrap();
            let order = ordering::cco(part, &updown, &members).unwrap();
            prop_assert_eq!(&state.agents[&members[0]].groups[0].structures[0].order, &order);
        }
    }

    /// Updates of all switches in any order within a stage; the next plan may come while they grow.
    /// Switches that are not in a plan are dead, or out of reach and forward by what they hold.
    #[test]
    fn every_mixture_of_old_and_new_is_safe(seed: u64) {
        let mut random = Random::new(seed);
        let network = random_topology(&mut random);
        if !network.hosts().is_empty() {
            mix_plans(&mut random, &network);
        }
    }
}

fn mix_plans(random: &mut Random, network: &Topology) {
    let hosts = all_live(network);
    let mut planner = Planner::new(Setting::plain(Algorithm::Osud));
    let mut groups = random_groups(random, network, 6);
    let mut plan = |up: &Topology, groups: &[_]| {
        let class_d = ClassDNumbers::default();
        let state = planner.plan(up, network, groups, &hosts, &class_d);
        planner.settle();
        state
    };
    let mut old = plan(&damage(random, network), &groups);
    let empty = network
        .switches()
        .iter()
        .map(|switch| (switch.id, Arc::default()));
    let mut walker = Walker::new(network, empty);
    walker.states.extend(old.switches.clone());
    let mut stale = BTreeSet::new();
    for _ in 0..4 {
        groups = change_groups(random, network, &groups);
        let new = plan(&damage(random, network), &groups);
        for (switch, state) in &mut walker.states {
            if !new.switches.contains_key(switch) {
                stale.insert(*switch);
                if random.chance(50) {
                    *state = Arc::default(); // dead; when it is back it is empty
                }
            }
        }
        let numbers = numbers_in(&[&old, &new]);
        let ends_early = random.chance(40);
        for stage in Stage::ALL {
            let mut turns = turns(random, &walker, &new, stage);
            if ends_early && stage == Stage::Grow {
                turns.truncate(turns.len() / 2); // the next plan is due already
            }
            for (n, (switch, update)) in turns.iter().enumerate() {
                let state = walker.states.get_mut(switch).expect("a switch");
                write(Arc::make_mut(state), update);
                if n % 7 == 0 {
                    check_worms(random, &mut walker, &numbers, &stale);
                }
            }
            if stage >= Stage::Shrink {
                stale.retain(|switch| !new.switches.contains_key(switch)); // all have shrunk
            }
            check_worms(random, &mut walker, &numbers, &stale);
            if ends_early && stage == Stage::Grow {
                break;
            }
        }
        old = new;
    }
}

/// All updates due, those of one switch in their order, switches in any.
fn turns(
    random: &mut Random,
    walker: &Walker<'_>,
    new: &FabricState,
    stage: Stage,
) -> Vec<(SwitchId, Update)> {
    let mut due: BTreeMap<SwitchId, std::vec::IntoIter<Update>> = BTreeMap::new();
    let mut turns = Vec::new();
    for (&switch, wanted) in &new.switches {
        let mut updates = difference(wanted, &walker.states[&switch], None);
        updates.retain(|update| update.stage <= stage);
        turns.extend(updates.iter().map(|_| switch));
        due.insert(switch, updates.into_iter());
    }
    random.shuffle(&mut turns);
    let mut next = |switch: SwitchId| due.get_mut(&switch).and_then(Iterator::next);
    turns
        .into_iter()
        .filter_map(|switch| Some((switch, next(switch)?)))
        .collect()
}

/// No GROUP worm of some hosts, and no BROADCAST worm from any switch, loops or arrives twice.
///
/// What enters at a switch that was out of reach while plans changed may arrive twice, and does
/// not loop.
fn check_worms(
    random: &mut Random,
    walker: &mut Walker<'_>,
    numbers: &BTreeSet<GroupId>,
    stale: &BTreeSet<SwitchId>,
) {
    walker.down = random_down(random, walker.topology);
    for sender in random.sample(walker.topology.hosts(), 3) {
        for &number in numbers {
            let got = walker.send_group(&sender, number);
            let once = stale.contains(&sender.switch) || got.values().all(|&count| count == 1);
            assert!(once, "GROUP {number} from {sender:?}: {got:?}");
        }
    }
    for switch in walker.states.keys().copied().collect::<Vec<_>>() {
        let got = walker.send_broadcast(switch);
        let once = stale.contains(&switch) || got.values().all(|&count| count == 1);
        assert!(once, "BROADCAST from {switch}: {got:?}");
    }
}

/// Ends of links that are down; often one of parallel links, often one end alone.
fn random_down(random: &mut Random, topology: &Topology) -> BTreeSet<(SwitchId, PortId)> {
    let ends = |link: &Link| [(link.a, link.a_port), (link.b, link.b_port)];
    let links = random.sample(topology.links(), 3);
    let ends = links.iter().flat_map(ends);
    ends.filter(|_| random.chance(50)).collect()
}

#[test]
fn the_change_of_one_group_makes_nothing_else_anew() {
    let mut random = Random::new(5);
    let network = random_topology(&mut random);
    let hosts = all_live(&network);
    let mut groups = random_groups(&mut random, &network, 20);
    let mut planner = Planner::new(Setting::plain(Algorithm::Osud));
    let mut plan = |groups: &[_]| {
        planner.plan(
            &network,
            &network,
            groups,
            &hosts,
            &ClassDNumbers::default(),
        )
    };
    let before = plan(&groups);
    let mut two = random.sample(&host_ids(&network), 2);
    two.sort_unstable();
    groups.push(Arc::new(group(700, CIRCUIT, &two)));
    let after = plan(&groups);
    let changed: Vec<HostId> = host_ids(&network)
        .into_iter()
        .filter(|host| !Arc::ptr_eq(&after.agents[host], &before.agents[host]))
        .collect();
    assert_eq!(changed, two);
    let is_old = |new: &Arc<_>| {
        let mut old = before.agents.values().flat_map(|plan| &plan.groups);
        old.any(|old| Arc::ptr_eq(old, new))
    };
    let fresh = after
        .agents
        .values()
        .flat_map(|plan| &plan.groups)
        .filter(|new| !is_old(new));
    let fresh: BTreeSet<GroupId> = fresh.map(|group| group.id).collect();
    assert_eq!(fresh, BTreeSet::from([GroupId(700)]));
    assert_eq!(plan(&groups).touched, Some(BTreeMap::new()));
}

/// Two switches with two hosts each.
fn pair_of_pairs(grid: Option<Grid>) -> Topology {
    let mut parts = Parts::default();
    for n in 0..2 {
        let switch = SwitchId(n);
        parts.switches.push(Switch {
            id: switch,
            ports: 4,
        });
        for p in 0..2 {
            let id = HostId(2 * n + p);
            parts.hosts.push(Host {
                id,
                switch,
                port: port(p.into()),
                transit: true,
            });
        }
    }
    let (a, b) = (SwitchId(0), SwitchId(1));
    parts.links.push(Link {
        a,
        a_port: port(3),
        b,
        b_port: port(3),
    });
    parts.grid = grid;
    topology(parts)
}

#[test]
fn a_group_that_cannot_be_planned_is_named_and_holds_up_no_other() {
    let network = pair_of_pairs(None);
    let everyone = host_ids(&network);
    let good = Arc::new(group(1, CIRCUIT, &everyone));
    let bad = Arc::new(group(2, Scheme::UTorus, &everyone));
    let reason = "it cannot be planned: scheme u-torus goes by coordinates, and this topology has none; it needs a \
                  torus or mesh. Schemes for any topology are repeat, circuit, tree, k-binomial, postal, switch";

    let state = plan_all(&network, &[good.clone(), bad.clone()]);
    let failures: Vec<String> = state.failures.iter().map(ToString::to_string).collect();
    assert_eq!(failures, [format!("group 2: {reason}")]);
    assert!(state.agents.values().all(|plan| plan.groups.len() == 1));
    let short: Vec<_> = state
        .shortfalls
        .iter()
        .map(|s| (s.group.0, s.host, &*s.reason))
        .collect();
    assert_eq!(
        short,
        everyone
            .iter()
            .map(|&host| (2, host, reason))
            .collect::<Vec<_>>()
    );

    let mut planner = Planner::new(Setting::plain(Algorithm::Osud));
    let hosts = all_live(&network);
    let mut plan = |network: &Topology| {
        let groups = [good.clone(), bad.clone()];
        planner.plan(network, network, &groups, &hosts, &ClassDNumbers::default())
    };
    let before = plan(&pair_of_pairs(Some(Grid {
        radix: vec![2],
        wraps: false,
        unidirectional: false,
    })));
    assert!(before.failures.is_empty());
    let after = plan(&network);
    assert_eq!(after.failures.len(), 1);
    assert_eq!(after.agents, before.agents, "it stays as it was");
    assert!(after.shortfalls.is_empty());
}

#[test]
fn a_part_without_routes_is_named_and_its_switches_are_planned() {
    let one_way = from_spec("unidirectional-torus:3x3").expect("a kind of network");
    let state = plan_all(&one_way, &[]);
    assert!(state.agents.is_empty());
    assert_eq!(state.switches.len(), one_way.switches().len());
    let [failure] = &state.failures[..] else {
        panic!("one part fails")
    };
    assert!(
        matches!(&failure.subject, Subject::Switches(all) if all.len() == state.switches.len())
    );
    assert!(failure.reason.starts_with("no routes: "), "{failure}");
    assert!(
        failure.to_string().starts_with("switches 0, 1, "),
        "{failure}"
    );
}

#[test]
fn an_agent_that_takes_few_groups_or_refuses_one_is_left_out_of_the_others() {
    let network = pair_of_pairs(None);
    let everyone = host_ids(&network);
    let (one, two, three) = (everyone[0], everyone[1], everyone[2]);
    let mut groups: Vec<_> = (0..5)
        .map(|n| Arc::new(group(n, CIRCUIT, &everyone)))
        .collect();
    let mut hosts = all_live(&network);
    let capacity = |groups, members| Capacity {
        groups,
        members,
        refused: BTreeMap::new(),
    };
    let refused = BTreeMap::from([(GroupId(0), "not this one".to_owned())]);
    hosts.capacities.insert(one, capacity(3, 1024));
    hosts.capacities.insert(
        two,
        Capacity {
            refused,
            ..capacity(100, 1024)
        },
    );
    hosts.capacities.insert(three, capacity(100, 3));
    let mut planner = Planner::new(Setting::plain(Algorithm::Osud));
    let mut plan = |groups: &[_]| {
        planner.plan(
            &network,
            &network,
            groups,
            &hosts,
            &ClassDNumbers::default(),
        )
    };
    let numbers = |state: &FabricState, host| -> Vec<u16> {
        state.agents[&host]
            .groups
            .iter()
            .map(|group| group.id.0)
            .collect()
    };
    let state = plan(&groups);
    assert_eq!(numbers(&state, one), [0, 1, 2]);
    assert_eq!(numbers(&state, two), [1, 2, 3, 4]);
    assert!(numbers(&state, three).is_empty());
    let reasons: BTreeMap<_, _> = state
        .shortfalls
        .iter()
        .map(|s| ((s.group.0, s.host), &*s.reason))
        .collect();
    let mut expected = BTreeMap::from([
        ((3, one), "its agent takes at most 3 groups"),
        ((4, one), "its agent takes at most 3 groups"),
        ((0, two), "its agent refuses the group: not this one"),
    ]);
    let many = "the group has 4 members; its agent takes at most 3";
    expected.extend((0..5).map(|group| ((group, three), many)));
    assert_eq!(reasons, expected);
    let refused = groups.remove(0);
    assert_eq!(
        numbers(&plan(&groups), one),
        [1, 2, 3],
        "there is room for another again"
    );
    groups.insert(0, refused);
    assert_eq!(numbers(&plan(&groups), one), [0, 1, 2]);
}
