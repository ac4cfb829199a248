//! Hosts that do not re-inject worms of others: routes go around them, as short as may be.

use crate::graphs;

use std::collections::BTreeSet;

use proptest::prelude::*;
use wormcast_routing::generate::{Irregular, irregular};
use wormcast_routing::intransit::is_cut;
use wormcast_routing::routes::{Algorithm, RouteError, Routes, Setting};
use wormcast_routing::topology::Topology;
use wormcast_verify::deadlock::{Branching, ChannelGraph};
use wormcast_wire::{HostId, SwitchId};

fn network(switches: usize, hosts: usize, seed: u64) -> Topology {
    let links = 3;
    let parameters = Irregular {
        switches,
        ports: 8,
        hosts,
        links,
        seed,
    };
    irregular(&parameters).expect("it can be wired")
}

/// The same without the hosts that may not re-inject: a switch without hosts cannot cut.
fn without_others(topology: &Topology, may: &BTreeSet<HostId>) -> Topology {
    let mut parts = graphs::parts_of(topology);
    parts.hosts.retain(|host| may.contains(&host.id));
    Topology::new(parts).expect("only hosts are gone")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn only_hosts_that_may_re_inject_and_paths_are_as_short_as_without_the_others(
        switches in 3usize..24,
        seed in any::<u64>(),
        may in proptest::collection::btree_set(0u16..48, 1..32),
    ) {
        let all = network(switches, 2, seed);
        let may: BTreeSet<HostId> = may.into_iter().map(HostId).collect();
        let topology = all.with_transit(|host| may.contains(&host));
        let bare = without_others(&all, &may);
        for algorithm in Algorithm::ALL {
            let routes = Routes::plan(&topology, algorithm, None).unwrap();
            let others = Routes::plan(&bare, algorithm, None).unwrap();
            for route in routes.iter() {
                prop_assert!(route.in_transit.iter().all(|host| may.contains(host)));
            }
            for from in 0..switches as u32 {
                for to in 0..switches as u32 {
                    let (own, other) = (routes.paths(from, to).unwrap(), others.paths(from, to).unwrap());
                    if algorithm.has_alternatives() {
                        prop_assert_eq!(own, other);
                    } else {
                        prop_assert_eq!(own[0].arcs.len(), other[0].arcs.len());
                    }
                }
            }
            let mut graph = ChannelGraph::new(&topology, Branching::Independent);
            graph.add_routes(&routes);
            prop_assert!(graph.check().is_deadlock_free());
            let summary = routes.summary();
            let load = summary.in_transit_load_mean * topology.hosts().len() as f64;
            prop_assert!((load - summary.in_transit_mean * summary.pairs as f64).abs() < 1e-6);
        }
    }
}

#[test]
fn where_no_host_re_injects_every_path_is_legal() {
    let topology = network(16, 2, 7).with_transit(|_| false);
    for algorithm in Algorithm::ALL {
        let routes = Routes::plan(&topology, algorithm, None).unwrap();
        assert_eq!(routes.unreachable().count(), 0, "{algorithm:?}");
        assert!(routes.iter().all(|route| route.in_transit.is_empty()));
        let turns_up = (0..16).any(|from| {
            let paths = (0..16).flat_map(|to| routes.paths(from, to).unwrap());
            paths.into_iter().any(|path| {
                let arcs = path.arcs.windows(2);
                arcs.into_iter()
                    .any(|pair| is_cut(routes.updown(), pair[0], pair[1]))
            })
        });
        assert!(!turns_up, "{algorithm:?}");
    }
}

#[test]
fn pairs_are_counted_whose_routes_are_longer_for_want_of_hosts() {
    let free = network(16, 2, 7);
    let none = free.with_transit(|_| false);
    for algorithm in Algorithm::ALL {
        let planned = |topology| Routes::plan(topology, algorithm, None).unwrap();
        assert_eq!(planned(&free).lengthened(), Ok(0));
        let lengthened = planned(&none).lengthened().unwrap();
        assert_eq!(lengthened > 0, algorithm.uses_in_transit_hosts());
        if algorithm == Algorithm::Omit {
            let minimal = planned(&none).summary().minimal;
            let pairs = planned(&none).summary().pairs as f64;
            assert_eq!(lengthened as f64, (pairs * (1.0 - minimal)).round());
        }
    }
}

#[test]
fn a_topology_file_says_which_hosts_do_not_re_inject() {
    let topology = network(4, 1, 1).with_transit(|host| host != HostId(2));
    let text = topology.to_json();
    assert_eq!(text.matches("\"transit\":false").count(), 1);
    assert_eq!(Topology::from_json(&text), Ok(topology));
    let wrong = text.replace("\"transit\":false", "\"transit\":0");
    let error = Topology::from_json(&wrong).unwrap_err();
    let refusal = "hosts[2].transit: 0 is not true or false";
    assert_eq!(error.to_string(), refusal);
}

#[test]
fn a_setting_falls_back_where_its_root_is_not_there() {
    let topology = network(8, 1, 3);
    let setting = |algorithm, root: Option<u16>, balanced| Setting {
        algorithm,
        root: root.map(SwitchId),
        balanced,
    };
    let root = |setting: Setting| {
        let routes = setting.plan(&topology).unwrap();
        routes.updown().root(&topology)
    };
    assert_eq!(root(setting(Algorithm::Rmit, Some(5), false)), SwitchId(5));
    assert_eq!(
        root(setting(Algorithm::Osud, Some(99), false)),
        root(Setting::plain(Algorithm::Osud))
    );
    assert_eq!(root(setting(Algorithm::Osud, Some(5), true)), SwitchId(5));
    let refused = setting(Algorithm::Pit, None, true);
    let algorithm = Algorithm::Pit;
    assert_eq!(refused.check(), Err(RouteError::NoBalance { algorithm }));
    assert_eq!(
        refused.plan(&topology).map(|_| ()),
        Err(RouteError::NoBalance { algorithm })
    );
}
