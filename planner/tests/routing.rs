//! Any algorithm, root and balance as a fabric's routes, around hosts that do not re-inject.

use crate::lab;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lab::follow;
use proptest::prelude::*;
use wormcast_planner::{AgentPlan, ClassDNumbers, FabricState, Group, Hosts, Planner};
use wormcast_routing::generate::{Irregular, from_spec, irregular};
use wormcast_routing::group::Scheme;
use wormcast_routing::routes::{Algorithm, Route, Setting};
use wormcast_routing::topology::{Damage, Topology};
use wormcast_verify::deadlock::{Branching, ChannelGraph};
use wormcast_wire::{GroupId, HostId, SHARES_WHOLE, SwitchId};

fn network(seed: u64) -> Topology {
    let parameters = Irregular {
        switches: 9,
        ports: 8,
        hosts: 2,
        links: 3,
        seed,
    };
    irregular(&parameters).expect("it can be wired")
}

fn groups(topology: &Topology) -> Vec<Arc<Group>> {
    let members = topology.hosts().iter().map(|host| host.id).step_by(2);
    vec![Arc::new(Group {
        id: GroupId(0),
        name: "all".into(),
        scheme: Scheme::from_name("switch").expect("it is listed").into(),
        members: members.collect(),
        packets: 0,
        ordered: false,
        class_d: None,
        sink: false,
        rate_bits: None,
        gather: false,
    })]
}

fn plan(planner: &mut Planner, up: &Topology, known: &Topology) -> FabricState {
    let everyone: BTreeSet<HostId> = known.hosts().iter().map(|host| host.id).collect();
    let hosts = Hosts {
        agents: everyone.clone(),
        live: everyone,
        ..Hosts::default()
    };
    let class_d = ClassDNumbers::default();
    planner.plan(up, known, &groups(known), &hosts, &class_d)
}

fn settings() -> impl Strategy<Value = Setting> {
    let algorithms = prop::sample::select(Algorithm::ALL.to_vec());
    (algorithms, proptest::option::of(0u16..9), any::<bool>()).prop_map(
        |(algorithm, root, balanced)| {
            let root = root.map(SwitchId);
            let balanced = balanced && !algorithm.uses_in_transit_hosts();
            Setting {
                algorithm,
                root,
                balanced,
            }
        },
    )
}

fn leads(topology: &Topology, from: HostId, to: HostId, ports: &[u8]) -> Route {
    follow(topology, from, to, ports).expect("it leads there")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn routes_reach_all_and_are_free_of_deadlock_with_what_switches_copy(
        seed: u64,
        setting in settings(),
        may in proptest::collection::btree_set(0u16..18, 0..18),
    ) {
        let topology = network(seed).with_transit(|host| may.contains(&host.0));
        let state = plan(&mut Planner::new(setting), &topology, &topology);
        if let Some(root) = setting.root {
            prop_assert_eq!(&state.roots, &[root]);
        }
        let mut graph = ChannelGraph::new(&topology, Branching::Independent);
        for (&from, sent) in &state.agents {
            prop_assert_eq!(sent.at_random, setting.algorithm.draws_routes());
            for table in [&sent.routes, &sent.tree_routes] {
                let mut shares: BTreeMap<HostId, u32> = BTreeMap::new();
                for planned in &table.0 {
                    *shares.entry(planned.to).or_default() += planned.share;
                    let route = leads(&topology, from, planned.to, &planned.ports);
                    prop_assert!(route.in_transit.iter().all(|host| may.contains(&host.0)));
                    graph.add_route(&route).unwrap();
                }
                prop_assert_eq!(shares.len(), topology.hosts().len() - 1);
                prop_assert!(shares.values().all(|&sum| sum == SHARES_WHOLE));
            }
        }
        prop_assert!(graph.check().is_deadlock_free(), "one order for all worms");
    }

    #[test]
    fn other_hosts_that_re_inject_and_other_settings_give_what_a_new_planner_with_the_order_gives(
        seed: u64,
        changes in proptest::collection::vec(
            (settings(), proptest::collection::btree_set(0u16..18, 0..18), any::<bool>()), 1..5),
    ) {
        let known = network(seed);
        let damaged = known.without(&Damage {
            switches: [SwitchId(4)].into(),
            ..Damage::default()
        }).unwrap();
        let mut planner = Planner::new(Setting::plain(Algorithm::Osud));
        for (setting, may, whole) in changes {
            let up = if whole { &known } else { &damaged };
            let [up, known] = [up, &known].map(|one| one.with_transit(|host| may.contains(&host.0)));
            planner.set_routing(setting);
            let again = plan(&mut planner, &up, &known);
            let mut anew = Planner::new(setting);
            anew.restore_order(again.routes.next.as_ref().unwrap_or(&again.routes.in_force).clone());
            planner.settle();
            let anew = plan(&mut anew, &up, &known);
            for (plan, anew) in again.agents.values().zip(anew.agents.values()) {
                let served = |plan: &AgentPlan| -> BTreeSet<HostId> {
                    plan.routes.0.iter().map(|route| route.to).collect()
                };
                prop_assert_eq!(served(plan), served(anew));
                prop_assert_eq!(&plan.tree_routes, &anew.tree_routes);
            }
            prop_assert_eq!(&again.switches, &anew.switches);
            prop_assert_eq!(&again.roots, &anew.roots);
            prop_assert!(again.failures.is_empty());
        }
    }
}

#[test]
fn a_host_that_stops_re_injecting_changes_routes_and_no_switch() {
    let topology = from_spec("irregular:16:2:1").unwrap();
    let mut planner = Planner::new(Setting::plain(Algorithm::Rmit));
    let before = plan(&mut planner, &topology, &topology);
    let passes = |state: &FabricState, host: HostId| {
        state.agents.iter().any(|(&from, sent)| {
            let routes = sent.routes.0.iter().filter(|route| route.to != host);
            routes
                .map(|route| leads(&topology, from, route.to, &route.ports))
                .any(|route| route.in_transit.contains(&host))
        })
    };
    let busy = topology
        .hosts()
        .iter()
        .find(|host| passes(&before, host.id));
    let busy = busy.expect("some host re-injects").id;
    let without = topology.with_transit(|host| host != busy);
    let after = plan(&mut planner, &without, &without);
    assert!(!passes(&after, busy));
    assert_eq!(
        after.touched,
        Some(BTreeMap::new()),
        "no switch is concerned"
    );
    assert_ne!(before.agents, after.agents);
    let again = plan(&mut planner, &topology, &topology);
    assert_eq!(again.agents, before.agents);
}

#[test]
fn who_re_injects_does_not_matter_to_routes_that_are_not_cut() {
    let topology = network(3);
    let mut planner = Planner::new(Setting::plain(Algorithm::Osud));
    let before = plan(&mut planner, &topology, &topology);
    let without = topology.with_transit(|_| false);
    let after = plan(&mut planner, &without, &without);
    let same = |(host, plan): (&HostId, &Arc<_>)| Arc::ptr_eq(plan, &after.agents[host]);
    assert!(before.agents.iter().all(same));
}

#[test]
fn a_root_that_is_away_is_replaced_by_the_choice_of_its_part() {
    let topology = network(5);
    let setting = Setting {
        root: Some(SwitchId(7)),
        ..Setting::plain(Algorithm::Omit)
    };
    let up = topology
        .without(&Damage {
            switches: [SwitchId(7)].into(),
            ..Damage::default()
        })
        .unwrap();
    let mut planner = Planner::new(setting);
    assert_eq!(
        plan(&mut planner, &topology, &topology).roots,
        [SwitchId(7)]
    );
    let state = plan(&mut planner, &up, &topology);
    let [root] = state.roots[..] else {
        panic!("one part")
    };
    assert!(up.switch_index(root).is_ok());
    assert!(state.failures.is_empty());
    for host in up.hosts() {
        let to_others = state.agents[&host.id].routes.0.iter();
        let up_there = to_others.filter(|route| up.host(route.to).is_ok());
        let reached: BTreeSet<HostId> = up_there
            .map(|route| leads(&up, host.id, route.to, &route.ports).dst)
            .collect();
        assert_eq!(reached.len(), up.hosts().len() - 1);
    }
    planner.settle();
    let back = plan(&mut planner, &topology, &topology);
    assert_eq!(back.roots, [SwitchId(7)]);
}
