//! Changes of routes in a running fabric: every mixture of what hosts may use is free of deadlock,
//! by the checker, which knows nothing of orders.

use crate::lab;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lab::{Random, all_live, damage, follow, random_topology};
use wormcast_planner::{
    AgentPlan, ClassDNumbers, FabricState, Method, Planner, RouteOrder, RouteTable,
};
use wormcast_routing::generate::{Irregular, from_spec, irregular};
use wormcast_routing::routes::{Algorithm, Setting};
use wormcast_routing::topology::{Damage, Topology};
use wormcast_verify::deadlock::{Branching, ChannelGraph};
use wormcast_wire::{HostId, SwitchId};

type Plans = BTreeMap<HostId, Arc<AgentPlan>>;

/// Worms that may be in the network: source routes, by their source.
#[derive(Clone, Default)]
struct InFlight(BTreeSet<(HostId, HostId, Arc<[u8]>)>);

impl InFlight {
    fn add(&mut self, plans: &Plans) {
        for (&from, plan) in plans {
            for RouteTable(routes) in [&*plan.routes, &*plan.tree_routes] {
                let all = routes.iter();
                self.0
                    .extend(all.map(|route| (from, route.to, route.ports.clone())));
            }
        }
    }

    /// What switches copy follows the tree: from each host to each other one.
    fn add_trees(&mut self, plans: &Plans) {
        for (&from, plan) in plans {
            let all = plan.tree_routes.0.iter();
            self.0
                .extend(all.map(|route| (from, route.to, route.ports.clone())));
        }
    }

    fn check(&self, network: &Topology, what: &str) {
        let mut graph = ChannelGraph::new(network, Branching::Independent);
        for (from, to, ports) in &self.0 {
            let route = follow(network, *from, *to, ports).expect("known links");
            graph.add_route(&route).unwrap();
        }
        assert!(graph.check().is_deadlock_free(), "{what}");
    }
}

/// The fabric: what its hosts use, and what may be in flight.
struct Fabric {
    network: Topology,
    planner: Planner,
    in_force: Plans,
    in_flight: InFlight,
    bridges: usize,
}

impl Fabric {
    fn new(network: &Topology, setting: Setting) -> Fabric {
        Fabric {
            network: network.clone(),
            planner: Planner::new(setting),
            in_force: Plans::new(),
            in_flight: InFlight::default(),
            bridges: 0,
        }
    }

    fn plan(&mut self, up: &Topology) -> FabricState {
        let hosts = all_live(&self.network);
        self.planner
            .plan(up, &self.network, &[], &hosts, &ClassDNumbers::default())
    }

    /// Hosts get these plans one by one: any may still use what it had.
    fn install(&mut self, plans: &Plans, what: &str) {
        self.in_flight.add(plans);
        self.in_flight.check(&self.network, what);
        self.in_force.clone_from(plans);
    }

    /// All hosts use their plans, and what was sent before has left; switches copy by `trees`.
    fn drain(&mut self, trees: &Plans) {
        self.in_flight = InFlight::default();
        self.in_flight.add(&self.in_force);
        self.in_flight.add_trees(trees);
    }

    /// Makes a change; with `cut_short` another comes before its last step.
    fn change(&mut self, up: &Topology, cut_short: bool) -> FabricState {
        let before = self.in_force.clone();
        let state = self.plan(up);
        if let Some(bridge) = &state.routes.bridge {
            assert!(state.routes.next.is_some());
            self.bridges += 1;
            self.install(bridge, "the order in force, and the bridge");
            if cut_short {
                return state;
            }
            // After stage SHRINK switches copy along what both trees have.
            self.drain(&before);
            self.in_flight = InFlight::default();
            self.in_flight.add(&self.in_force.clone());
            self.planner.settle();
        } else {
            assert!(state.routes.next.is_none());
        }
        self.install(&state.agents, "the routes of the plan");
        state
    }
}

fn any_setting(random: &mut Random, switches: &[SwitchId]) -> Setting {
    let algorithm = *random.choose(&Algorithm::ALL);
    Setting {
        algorithm,
        root: random.chance(50).then(|| *random.choose(switches)),
        balanced: random.chance(30) && !algorithm.uses_in_transit_hosts(),
    }
}

fn some_transit(random: &mut Random, topology: &Topology) -> Topology {
    let away: BTreeSet<HostId> = (topology.hosts().iter())
        .filter(|_| random.chance(25))
        .map(|host| host.id)
        .collect();
    topology.with_transit(|host| !away.contains(&host))
}

#[test]
fn every_mixture_of_routes_is_free_of_deadlock() {
    let (mut bridges, mut changes) = (0, 0);
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let network = match seed % 3 {
            0 => random_topology(&mut random),
            1 => from_spec(["torus:3x3", "fat-tree:4", "mesh:3x4"][seed as usize / 3 % 3]).unwrap(),
            _ => irregular(&Irregular {
                switches: 8,
                ports: 8,
                hosts: 2,
                links: 3,
                seed,
            })
            .unwrap(),
        };
        let network = some_transit(&mut random, &network);
        if network.hosts().is_empty() {
            continue;
        }
        let switches: Vec<SwitchId> = network.switches().iter().map(|s| s.id).collect();
        let mut fabric = Fabric::new(&network, Setting::plain(Algorithm::Osud));
        fabric.change(&network, false);
        let mut up = network.clone();
        for _ in 0..6 {
            if random.chance(40) {
                let setting = any_setting(&mut random, &switches);
                fabric.planner.set_routing(setting);
            }
            if random.chance(60) {
                up = if random.chance(30) {
                    network.clone()
                } else {
                    one_lost(&mut random, &up)
                };
            }
            let cut_short = random.chance(30);
            fabric.change(&up, cut_short);
            changes += 1;
        }
        bridges += fabric.bridges;
    }
    assert!(
        bridges > 30 && changes > 150,
        "{bridges} of {changes} changes had two steps"
    );
}

/// A link or a switch fails.
fn one_lost(random: &mut Random, up: &Topology) -> Topology {
    let mut lost = Damage::default();
    if random.chance(80) && !up.links().is_empty() {
        let link = *random.choose(up.links());
        lost.links.insert((link.a, link.a_port));
    } else {
        _ = lost.switches.insert(random.choose(up.switches()).id);
    }
    up.without(&lost).unwrap_or_else(|_| up.clone())
}

#[test]
fn a_failure_is_one_step_that_leaves_whole_routes_alone() {
    let (mut failures, mut one_step, mut pairs, mut changed) = (0, 0, 0, 0);
    for seed in 0..3 {
        let network = irregular(&Irregular::of_itb(16, seed)).unwrap();
        for algorithm in [Algorithm::Osud, Algorithm::Omit, Algorithm::RrmitMin] {
            for link in network.links().iter().step_by(5) {
                let mut fabric = Fabric::new(&network, Setting::plain(algorithm));
                let before = fabric.change(&network, false);
                let lost = Damage {
                    links: [(link.a, link.a_port)].into(),
                    ..Damage::default()
                };
                let up = network.without(&lost).unwrap();
                let after = fabric.change(&up, false);
                failures += 1;
                assert_eq!(after.routes.stopped, 0, "all are served at once");
                one_step += usize::from(after.routes.method == Method::KeptOrder);
                for (&from, plan) in &after.agents {
                    let old = &before.agents[&from].routes.0;
                    let new = &plan.routes.0;
                    for own in old.chunk_by(|a, b| a.to == b.to) {
                        let to = own[0].to;
                        let is: Vec<_> = new.iter().filter(|route| route.to == to).collect();
                        let lasts = own
                            .iter()
                            .all(|r| follow(&up, from, to, &r.ports).is_some());
                        pairs += 1;
                        changed += usize::from(!lasts);
                        if lasts && after.routes.method == Method::KeptOrder {
                            assert!(is.iter().copied().eq(own), "a route was whole");
                        }
                        let leads = |ports: &[u8]| follow(&up, from, to, ports).is_some();
                        assert!(!is.is_empty() && is.iter().all(|route| leads(&route.ports)));
                    }
                }
            }
        }
    }
    assert!(
        one_step * 4 >= failures * 3,
        "{one_step} of {failures} in one step"
    );
    assert!(changed * 5 < pairs, "{changed} of {pairs} pairs");
}

#[test]
fn where_each_switch_has_a_host_that_re_injects_no_pair_stops() {
    for seed in 0..10 {
        let network = irregular(&Irregular::of_itb(12, seed)).unwrap();
        let mut fabric = Fabric::new(&network, Setting::plain(Algorithm::Osud));
        fabric.change(&network, false);
        for root in network.switches() {
            fabric.planner.set_routing(Setting {
                root: Some(root.id),
                ..Setting::plain(Algorithm::Osud)
            });
            let state = fabric.change(&network, false);
            assert_eq!(state.routes.stopped, 0);
            assert_eq!(state.roots, [root.id]);
        }
        assert!(fabric.bridges > 5, "{} bridges", fabric.bridges);
    }
}

#[test]
fn another_algorithm_from_the_same_root_is_one_step() {
    let network = irregular(&Irregular::of_itb(16, 3)).unwrap();
    let mut fabric = Fabric::new(&network, Setting::plain(Algorithm::Osud));
    fabric.change(&network, false);
    for algorithm in Algorithm::ALL {
        fabric.planner.set_routing(Setting::plain(algorithm));
        let state = fabric.change(&network, false);
        assert_eq!(state.routes.method, Method::KeptOrder);
        assert!(state.routes.bridge.is_none());
    }
}

/// A controller that ends between two steps and begins again knows the order in force alone.
#[test]
fn a_planner_that_begins_again_goes_on_from_the_order_in_force() {
    let mut resumed = 0;
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let network = irregular(&Irregular::of_itb(10, seed)).unwrap();
        let switches: Vec<SwitchId> = network.switches().iter().map(|s| s.id).collect();
        let mut fabric = Fabric::new(&network, Setting::plain(Algorithm::Osud));
        fabric.change(&network, false);
        let setting = any_setting(&mut random, &switches);
        fabric.planner.set_routing(setting);
        let up = damage(&mut random, &network);
        let first = fabric.change(&up, true);
        let stored = first.routes.in_force.to_json();
        let stored = RouteOrder::from_json(&stored).unwrap();
        assert_eq!(stored, first.routes.in_force);
        fabric.planner = Planner::new(setting);
        fabric.planner.restore_order(stored);
        let again = fabric.change(&up, false);
        if first.routes.next.is_some() {
            resumed += 1;
            assert!(again.routes.next == first.routes.next, "the same step");
        }
        fabric.change(&network, false);
    }
    assert!(resumed > 5, "{resumed}");
    for text in ["", "{}", "[]", "{\"switches\":[1],\"parents\":[[1,254]]}"] {
        assert!(RouteOrder::from_json(text).is_err(), "{text}");
    }
}
