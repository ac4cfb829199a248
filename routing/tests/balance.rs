//! Channel loads and what lowers them, against loads counted route by route.

use crate::graphs;

use std::collections::BTreeMap;

use graphs::{Plain, connected_graphs, follow};
use proptest::prelude::*;
use serde_json::Value;
use wormcast_routing::generate::{Irregular, from_spec, irregular};
use wormcast_routing::routes::{Algorithm, Balance, Routes};
use wormcast_routing::topology::{Damage, Topology};
use wormcast_wire::SwitchId;

/// Pairs of hosts over each channel, (switch, port) by which it leaves, idle ones too.
type Counted = BTreeMap<(SwitchId, u8), u32>;

fn count(topology: &Topology, routes: &Routes<'_>) -> Counted {
    let ends = |link: &wormcast_routing::topology::Link| {
        [(link.a, link.a_port.get()), (link.b, link.b_port.get())]
    };
    let channels = topology.links().iter().flat_map(ends);
    let mut counted: Counted = channels.map(|end| (end, 0)).collect();
    for route in routes.iter() {
        let hops = route.switches.iter().zip(&route.ports);
        for (switch, port) in hops.take(route.ports.len() - 1) {
            *counted.get_mut(&(*switch, *port)).expect("a channel") += 1;
        }
    }
    counted
}

/// The figures that the routes give agree with those counted.
fn check_loads(topology: &Topology, routes: &Routes<'_>) -> Counted {
    let counted = count(topology, routes);
    let loads = routes.channel_loads().unwrap();
    for link in loads.links(topology) {
        let ends = link.link;
        assert_eq!(link.a_to_b, counted[&(ends.a, ends.a_port.get())]);
        assert_eq!(link.b_to_a, counted[&(ends.b, ends.b_port.get())]);
    }
    let values: Vec<f64> = counted.values().map(|&load| f64::from(load)).collect();
    let total: f64 = values.iter().sum();
    assert_eq!(
        loads.largest(),
        counted.values().copied().max().unwrap_or(0)
    );
    assert_eq!(loads.total() as f64, total);
    assert_eq!(
        loads.idle(),
        values.iter().filter(|&&load| load == 0.0).count()
    );
    assert_eq!(loads.percentile(100), loads.largest());
    let p99 = f64::from(loads.percentile(99));
    let within = |bound: f64| values.iter().filter(|&&load| load <= bound).count() as f64;
    assert!(within(p99) >= 0.99 * values.len() as f64);
    assert!(p99 == 0.0 || within(p99 - 1.0) < 0.99 * values.len() as f64);
    if total > 0.0 {
        let mean = total / values.len() as f64;
        assert!((loads.mean() - mean).abs() < 1e-9);
        // By definition: half of the mean difference between any two, over the mean.
        let differences: f64 = values
            .iter()
            .flat_map(|a| values.iter().map(move |b| (a - b).abs()))
            .sum();
        let gini = differences / (2.0 * (values.len() as f64).powi(2) * mean);
        assert!(
            (loads.gini() - gini).abs() < 1e-9,
            "{} {gini}",
            loads.gini()
        );
    }
    counted
}

/// Balanced routes are shortest legal ones for their root, and no channel is busier than
/// the busiest of the plain ones.
fn check_balance(topology: &Topology, algorithm: Algorithm, root: Option<SwitchId>) {
    let balance = Balance::find(topology, algorithm, root).unwrap();
    let plain = check_loads(topology, &balance.plain);
    let chosen = check_loads(topology, &balance.chosen);
    let largest = |counted: &Counted| counted.values().copied().max().unwrap_or(0);
    assert!(largest(&chosen) <= largest(&plain));
    let chosen_root = balance.chosen.updown().root(topology);
    if let Some(root) = root {
        assert_eq!(chosen_root, root);
    }
    if algorithm == Algorithm::Osud && topology.components() == 1 {
        let by_definition = Plain::new(topology, chosen_root);
        for route in balance.chosen.iter() {
            follow(topology, &route);
            assert!(by_definition.is_legal(&route.switches));
            let (from, to) = (route.switches[0], *route.switches.last().unwrap());
            let links = route.switches.len() as u32 - 1;
            assert_eq!(links, by_definition.shortest(from, to), "{route:?}");
        }
    }
}

#[test]
fn every_connected_graph_of_up_to_four_switches() {
    for switches in 1..=4 {
        for topology in connected_graphs(switches, false) {
            for algorithm in [Algorithm::Osud, Algorithm::TreeOnly] {
                check_balance(&topology, algorithm, None);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn random_networks(switches in 2usize..24, seed in any::<u64>(), links in 2usize..6,
                       root in any::<Option<prop::sample::Index>>()) {
        let parameters = Irregular { switches, ports: 8, hosts: 2, links, seed };
        let topology = irregular(&parameters).unwrap();
        let root = root.map(|root| topology.switches()[root.index(switches)].id);
        check_balance(&topology, Algorithm::Osud, root);
        check_balance(&topology, Algorithm::TreeOnly, root);
    }

    #[test]
    fn split_fabrics(switches in 4usize..16, seed in any::<u64>(),
                     gone in prop::collection::btree_set(0u16..16, 1..6)) {
        let topology = irregular(&Irregular { switches, ports: 8, hosts: 1, links: 3, seed }).unwrap();
        let switches = gone.into_iter().filter(|&id| usize::from(id) + 1 < switches);
        let damage = Damage { switches: switches.map(SwitchId).collect(), ..Damage::default() };
        let left = topology.without(&damage).unwrap();
        check_balance(&left, Algorithm::Osud, None);
        // Each part does as well as it would alone: no part is worse than plainly.
        let balance = Balance::find(&left, Algorithm::Osud, None).unwrap();
        prop_assert_eq!(balance.chosen.unreachable().count(), balance.plain.unreachable().count());
    }
}

#[test]
fn a_better_root_and_refined_paths_lower_the_largest_load() {
    // Measured: 33, 55 and 58 %.
    for (spec, gain_least) in [
        ("irregular:16:1", 0.25),
        ("irregular:64:1", 0.45),
        ("mesh:8", 0.5),
    ] {
        let topology = from_spec(spec).unwrap();
        let balance = Balance::find(&topology, Algorithm::Osud, None).unwrap();
        let plain = balance.plain.channel_loads().unwrap().largest();
        let chosen = balance.chosen.channel_loads().unwrap().largest();
        let gain = 1.0 - f64::from(chosen) / f64::from(plain);
        assert!(gain >= gain_least, "{spec}: {plain} to {chosen}");
    }
    // In a fat tree, one root over all is as good as any; refining still evens it out.
    let topology = from_spec("fat-tree:8").unwrap();
    let balance = Balance::find(&topology, Algorithm::Osud, None).unwrap();
    assert!(balance.chosen.channel_loads().unwrap().largest() <= 144);
}

#[test]
fn the_summary_counts_the_same_loads() {
    let topology = from_spec("irregular:24:5").unwrap();
    let routes = Routes::plan(&topology, Algorithm::Osud, None).unwrap();
    let loads = routes.channel_loads().unwrap();
    let summary = routes.summary();
    assert_eq!(summary.link_load_max, f64::from(loads.largest()));
    assert!((summary.link_load_mean - loads.mean()).abs() < 1e-6);
}

#[test]
fn the_report_says_what_the_routes_do() {
    let topology = from_spec("irregular:20:3").unwrap();
    let balance = Balance::find(&topology, Algorithm::Osud, None).unwrap();
    let text = balance.to_json();
    let again = Balance::find(&topology, Algorithm::Osud, None).unwrap();
    assert_eq!(
        text,
        again.to_json(),
        "the same input gives the same choice"
    );
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["candidates"], 20);
    let sides = [("plain", &balance.plain), ("chosen", &balance.chosen)];
    for (side, routes) in sides {
        let counted = count(&topology, routes);
        assert_eq!(report[side]["root"], routes.updown().root(&topology).0);
        assert_eq!(report[side]["largest"], *counted.values().max().unwrap());
        assert_eq!(report[side]["total"], counted.values().sum::<u32>());
        assert_eq!(report[side]["channels"], counted.len());
        for link in report["links"].as_array().unwrap() {
            let load = |end: &str| {
                let number = |field: &str| link[field].as_u64().unwrap();
                let port = number(&format!("{end}_port")) as u8;
                counted[&(SwitchId(number(end) as u16), port)]
            };
            assert_eq!(link[side], serde_json::json!([load("a"), load("b")]));
        }
    }
    let largest = |side: &str| report[side]["largest"].as_f64().unwrap();
    let gain = 1.0 - largest("chosen") / largest("plain");
    assert_eq!(report["gain"].as_f64().unwrap(), gain);
}

#[test]
fn algorithms_without_one_legal_path_are_refused() {
    let topology = from_spec("torus:3").unwrap();
    let reason = Balance::find(&topology, Algorithm::Rmit, None).unwrap_err();
    assert_eq!(
        reason.to_string(),
        "the load of channels is balanced for osud and tree-only, not for rmit"
    );
    let routes = Routes::plan(&topology, Algorithm::Omit, None).unwrap();
    assert!(routes.channel_loads().is_err());
    assert!(Balance::find(&topology, Algorithm::Osud, Some(SwitchId(9))).is_err());
}
