//! Which of many minimal paths are kept, who re-injects on them, and what files say.

use crate::graphs;

use std::collections::{BTreeMap, BTreeSet};

use graphs::all_paths::{Switches, paths_of, share_of};
use graphs::{follow, passed, wire};
use wormcast_routing::generate::{Irregular, from_spec, irregular};
use wormcast_routing::intransit::PATHS_MAX;
use wormcast_routing::routes::{Algorithm, Alternative, Routes, Share};
use wormcast_routing::topology::Topology;
use wormcast_wire::{HostId, SwitchId};

const IN_TRANSIT: [Algorithm; 5] = [
    Algorithm::Omit,
    Algorithm::Rmit,
    Algorithm::Rrmit,
    Algorithm::Pit,
    Algorithm::RrmitMin,
];

#[test]
fn parallel_links_are_paths_of_their_own() {
    let topology = Topology::new(wire(2, 1, &[(0, 1), (0, 1), (0, 1)])).unwrap();
    for algorithm in [Algorithm::Rmit, Algorithm::Rrmit, Algorithm::RrmitMin] {
        let routes = Routes::plan(&topology, algorithm, None).unwrap();
        let all = routes.alternatives(HostId(0), HostId(1)).unwrap();
        let ports: BTreeSet<_> = all.iter().map(|one| one.route.ports[0]).collect();
        assert_eq!(ports, BTreeSet::from([1, 2, 3]));
        assert_eq!(share_of(all.iter()), Share::WHOLE.parts());
    }
}

#[test]
fn more_than_ten_are_drawn_evenly() {
    // From corner to corner of a 4x4 mesh there are 20 minimal paths.
    let topology = from_spec("mesh:4").unwrap();
    let mut kept: BTreeMap<Switches, u32> = BTreeMap::new();
    let draws = 2000;
    let mut routes = Routes::plan(&topology, Algorithm::Rmit, None).unwrap();
    for seed in 0..draws {
        routes = routes.with_seed(seed);
        let all = routes.alternatives(HostId(0), HostId(15)).unwrap();
        assert_eq!(all, routes.alternatives(HostId(0), HostId(15)).unwrap());
        assert_eq!(paths_of(&all).len(), PATHS_MAX);
        for path in paths_of(&all) {
            *kept.entry(path).or_default() += 1;
        }
    }
    assert_eq!(kept.len(), 20);
    // Half of the draws each; the standard deviation is 22.
    for count in kept.into_values() {
        assert!((890..=1110).contains(&count), "{count}");
    }
}

#[test]
fn algorithms_keep_the_same_minimal_paths() {
    // From a corner of a 7x7 torus three steps along both dimensions: 20 minimal paths, 70
    // that go round one dimension the other way, one hop longer.
    let topology = from_spec("torus:7").unwrap();
    for seed in 0..20 {
        let [rmit, rrmit, pit] = [Algorithm::Rmit, Algorithm::Rrmit, Algorithm::Pit]
            .map(|algorithm| {
                Routes::plan(&topology, algorithm, None)
                    .unwrap()
                    .with_seed(seed)
            })
            .map(|routes| routes.alternatives(HostId(0), HostId(24)).unwrap());
        assert_eq!(paths_of(&rmit), paths_of(&rrmit));
        let (short, long): (Vec<_>, Vec<_>) = pit.into_iter().partition(|one| one.minimal);
        assert_eq!(paths_of(&rmit), paths_of(&short));
        assert_eq!((rmit.len(), long.len()), (PATHS_MAX, PATHS_MAX));
        assert!(long.iter().all(|one| passed(&one.route).len() == 8));
        assert_eq!(share_of(long.iter()) * 5, Share::WHOLE.parts());
    }
}

#[test]
fn turns_alternate_between_paths_that_differ() {
    let topology = irregular(&Irregular::of_itb(64, 3)).unwrap();
    let rmit = Routes::plan(&topology, Algorithm::Rmit, None).unwrap();
    let rrmit = Routes::plan(&topology, Algorithm::Rrmit, None).unwrap();
    let links = |one: &Alternative| -> BTreeSet<(SwitchId, u8)> {
        let hops = one
            .route
            .switches
            .iter()
            .copied()
            .zip(one.route.ports.clone());
        hops.take(one.route.ports.len() - 1).collect()
    };
    let in_common = |all: &[Alternative]| -> usize {
        all.windows(2)
            .map(|pair| links(&pair[0]).intersection(&links(&pair[1])).count())
            .sum()
    };
    let (mut by_turns, mut at_random, mut elsewhere) = (0, 0, 0);
    for src in (0..256).step_by(16) {
        for dst in (0..256).step_by(12).filter(|dst| *dst != src) {
            let [a, b] = [&rmit, &rrmit]
                .map(|routes| routes.alternatives(HostId(src), HostId(dst)).unwrap());
            assert_eq!(paths_of(&a), paths_of(&b), "the same paths");
            at_random += in_common(&a);
            by_turns += in_common(&b);
            elsewhere += u32::from(passed(&a[0].route) != passed(&b[0].route));
        }
    }
    assert!(by_turns * 10 <= at_random * 9, "{by_turns} of {at_random}");
    assert!(elsewhere > 20, "turns do not all start at the same path");
}

#[test]
fn hosts_of_a_switch_share_what_is_re_injected() {
    for algorithm in IN_TRANSIT {
        let topology = irregular(&Irregular::of_itb(32, 4)).unwrap();
        let routes = Routes::plan(&topology, algorithm, None).unwrap();
        let mut load: BTreeMap<HostId, f64> = BTreeMap::new();
        let mut of_switch: BTreeMap<SwitchId, f64> = BTreeMap::new();
        let (mut pairs, mut minimal, mut in_transit, mut switches) = (0, 0.0, 0.0, 0.0);
        for src in topology.hosts() {
            for dst in topology.hosts().iter().filter(|dst| dst.id != src.id) {
                pairs += 1;
                for one in routes.alternatives(src.id, dst.id).unwrap() {
                    let share = one.share.fraction();
                    minimal += if one.minimal { share } else { 0.0 };
                    in_transit += share * one.route.in_transit.len() as f64;
                    switches += share * one.route.switches.len() as f64;
                    for &host in &one.route.in_transit {
                        *load.entry(host).or_default() += share;
                        let switch = topology.host(host).unwrap().switch;
                        *of_switch.entry(switch).or_default() += share;
                    }
                }
            }
        }
        let most = load.values().copied().fold(0.0, f64::max);
        for (host, load) in &load {
            // A fourth each, where always the first host would carry all of it.
            let all = of_switch[&topology.host(*host).unwrap().switch];
            assert!(*load <= all / 4.0 * 1.001, "{algorithm:?}: {load} of {all}");
        }
        let summary = routes.summary();
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} and {b}");
        assert_eq!(summary.pairs, pairs);
        close(summary.minimal, minimal / pairs as f64);
        close(summary.in_transit_mean, in_transit / pairs as f64);
        close(summary.switches_mean, switches / pairs as f64);
        close(summary.in_transit_load_max, most);
        close(summary.in_transit_load_mean, in_transit / 128.0);
        assert_eq!(load[&summary.in_transit_busiest.unwrap()], most);
    }
}

#[test]
fn one_path_spreads_what_is_re_injected_over_switches() {
    // Under root 0: 1, over 3 and 4; 2, over 5 and 6. Each of 7 to 10 hangs on all four of
    // these, so that from 3 or 4 to 5 or 6 there are four minimal paths, a cut on each.
    let bottom = (7..11).flat_map(|low| (3..7).map(move |high| (high, low)));
    let links: Vec<(u16, u16)> = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5), (2, 6)]
        .into_iter()
        .chain(bottom)
        .collect();
    let topology = Topology::new(wire(11, 1, &links)).unwrap();
    let routes = Routes::plan(&topology, Algorithm::Omit, Some(SwitchId(0))).unwrap();
    let summary = routes.summary();
    // Eight pairs over four hosts.
    assert!(
        (summary.in_transit_load_mean - 8.0 / 11.0).abs() < 1e-9,
        "{summary:?}"
    );
    assert!(
        (summary.in_transit_load_max - 2.0).abs() < 1e-9,
        "{summary:?}"
    );
}

#[test]
fn a_minimal_path_that_crosses_too_many_switches_gives_way() {
    // 45 switches in a row, each 30 links below the root by an arm of its own, ids low
    // and high in turn: along the row every second switch is a cut, 67 crossed; over the
    // root there are 60 links and no cut.
    const ROW: u16 = 45;
    const DEPTH: u16 = 30;
    let id = |place: u16, depth: u16| match depth {
        0 => 0,
        DEPTH if place.is_multiple_of(2) => 1 + place / 2,
        DEPTH => 2000 + place,
        _ => 30 + place * DEPTH + depth,
    };
    let mut parts = wire(2100, 1, &[]);
    let used: BTreeSet<u16> = (0..ROW)
        .flat_map(|place| (0..=DEPTH).map(move |depth| id(place, depth)))
        .collect();
    parts.switches.retain(|switch| used.contains(&switch.id.0));
    parts.hosts.retain(|host| used.contains(&host.switch.0));
    parts.switches[0].ports = 64;
    let arms =
        (0..ROW).flat_map(|place| (1..=DEPTH).map(move |d| (id(place, d - 1), id(place, d))));
    let row = (1..ROW).map(|place| (id(place - 1, DEPTH), id(place, DEPTH)));
    graphs::join(&mut parts, arms.chain(row));
    let topology = Topology::new(parts).unwrap();
    let root = Some(SwitchId(0));
    for algorithm in [Algorithm::Omit, Algorithm::Rrmit] {
        let routes = Routes::plan(&topology, algorithm, root).unwrap();
        let host = |place| HostId(id(place, DEPTH));
        let around = routes.alternatives(host(0), host(ROW - 1)).unwrap();
        assert_eq!(around.len(), 1);
        assert_eq!(around[0].route.switches.len(), 61);
        assert!(!around[0].minimal);
        let along = routes.alternatives(host(0), host(40)).unwrap();
        assert!(along[0].minimal);
        assert_eq!(along[0].route.in_transit.len(), 20);
        follow(&topology, &along[0].route);
    }
}

#[test]
fn links_that_lead_one_way_are_refused() {
    let one_way = from_spec("unidirectional-torus:3").unwrap();
    for algorithm in IN_TRANSIT {
        assert_eq!(
            Routes::plan(&one_way, algorithm, None)
                .unwrap_err()
                .to_string(),
            format!(
                "{} needs links that lead both ways; this topology is unidirectional",
                algorithm.name()
            )
        );
    }
}

#[test]
fn files_list_alternatives_with_their_shares() {
    let topology = from_spec("torus:4").unwrap();
    for algorithm in IN_TRANSIT {
        let routes = Routes::plan(&topology, algorithm, None)
            .unwrap()
            .with_seed(7);
        let text = routes.to_json();
        let back = wormcast_routing::routes::read_routes(&text).unwrap();
        assert_eq!(back, routes.iter().collect::<Vec<_>>());
        let file: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            file["seed"].as_u64(),
            algorithm.has_alternatives().then_some(7)
        );
        let mut shares: BTreeMap<(u64, u64), Vec<f64>> = BTreeMap::new();
        for row in file["routes"].as_array().unwrap() {
            let pair = (row["src"].as_u64().unwrap(), row["dst"].as_u64().unwrap());
            let share = row
                .get("share")
                .map_or(1.0, |share| share.as_f64().unwrap());
            shares.entry(pair).or_default().push(share);
            assert!(row["minimal"].is_boolean());
        }
        assert_eq!(shares.len(), 16 * 15);
        let several = shares.values().any(|shares| shares.len() > 1);
        assert_eq!(several, algorithm.has_alternatives());
        for shares in shares.into_values() {
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
        let pair = routes
            .to_json_between(Some(HostId(0)), Some(HostId(10)))
            .unwrap();
        let expected = routes.alternatives(HostId(0), HostId(10)).unwrap();
        let expected: Vec<_> = expected.into_iter().map(|one| one.route).collect();
        assert_eq!(
            wormcast_routing::routes::read_routes(&pair).unwrap(),
            expected
        );
        let refused = routes.to_json_between(Some(HostId(0)), Some(HostId(99)));
        assert!(
            refused
                .unwrap_err()
                .to_string()
                .starts_with("there is no host 99")
        );
    }
}
