//! Minimal routing with in-transit buffers (ITB §III.B), held against a plain search of
//! all paths.

mod graphs;

use std::collections::{BTreeMap, BTreeSet};

use graphs::{Plain, connected_graphs, distances, follow, neighbours, passed, pieces, wire};
use proptest::prelude::*;
use wormcast_routing::deadlock::{Branching, ChannelGraph};
use wormcast_routing::generate::{Irregular, from_spec, irregular};
use wormcast_routing::ids::{HostId, SwitchId};
use wormcast_routing::intransit::ALTERNATIVES_MAX;
use wormcast_routing::routes::{Algorithm, Alternative, Routes, Share};
use wormcast_routing::topology::Topology;

const IN_TRANSIT: [Algorithm; 5] = [
    Algorithm::Omit,
    Algorithm::Rmit,
    Algorithm::Rrmit,
    Algorithm::Pit,
    Algorithm::RrmitMin,
];

type Switches = Vec<SwitchId>;

/// All paths without a switch twice, of at most so many links, by trying all.
struct Walker<'a> {
    neighbours: &'a BTreeMap<SwitchId, BTreeSet<SwitchId>>,
    to_go: BTreeMap<SwitchId, u32>,
    to: SwitchId,
    found: Vec<Switches>,
}

impl Walker<'_> {
    fn walk(&mut self, path: &mut Switches, links: u32) {
        let at = *path.last().unwrap();
        if at == self.to {
            self.found.push(path.clone());
            return;
        }
        for &next in &self.neighbours[&at] {
            if !path.contains(&next) && self.to_go[&next] < links {
                path.push(next);
                self.walk(path, links - 1);
                path.pop();
            }
        }
    }
}

struct Oracle {
    plain: Plain,
    neighbours: BTreeMap<SwitchId, BTreeSet<SwitchId>>,
    occupied: BTreeSet<SwitchId>,
}

impl Oracle {
    fn new(topology: &Topology, root: SwitchId) -> Oracle {
        Oracle {
            plain: Plain::new(topology, root),
            neighbours: neighbours(topology),
            occupied: topology.hosts().iter().map(|host| host.switch).collect(),
        }
    }

    fn cuts(&self, path: &[SwitchId]) -> u32 {
        path.windows(3)
            .filter(|at| !self.plain.is_up(at[0], at[1]) && self.plain.is_up(at[1], at[2]))
            .count() as u32
    }

    fn paths(
        &self,
        topology: &Topology,
        from: SwitchId,
        to: SwitchId,
        links: u32,
    ) -> Vec<Switches> {
        let mut walker = Walker {
            neighbours: &self.neighbours,
            to_go: distances(topology, to),
            to,
            found: Vec::new(),
        };
        walker.walk(&mut vec![from], links);
        walker.found
    }

    /// Least (links, cuts), or least (links + cuts, 0), relaxing every step until nothing
    /// changes; a cut needs a host.
    fn least(&self, from: SwitchId, to: SwitchId, crossings: bool) -> (u32, u32) {
        let mut best = BTreeMap::from([((from, false), (0, 0))]);
        loop {
            let before = best.clone();
            for (&(at, went_down), &(links, cuts)) in &before {
                for &next in &self.neighbours[&at] {
                    let up = self.plain.is_up(at, next);
                    let cut = went_down && up;
                    if cut && !self.occupied.contains(&at) {
                        continue;
                    }
                    let cut = u32::from(cut);
                    let value = match crossings {
                        true => (links + 1 + cut, 0),
                        false => (links + 1, cuts + cut),
                    };
                    let known = best.entry((next, !up)).or_insert(value);
                    *known = value.min(*known);
                }
            }
            if best == before {
                break;
            }
        }
        [false, true]
            .into_iter()
            .filter_map(|went_down| best.get(&(to, went_down)))
            .copied()
            .min()
            .unwrap()
    }
}

/// What holds for every answer.
fn check_answer(topology: &Topology, oracle: &Oracle, minimum: u32, all: &[Alternative]) {
    let parts: u32 = all.iter().map(|one| one.share.parts()).sum();
    assert_eq!(parts, Share::WHOLE.parts());
    let distinct: BTreeSet<_> = all.iter().map(|one| &one.route.ports).collect();
    assert_eq!(distinct.len(), all.len(), "no route twice");
    for Alternative { route, minimal, .. } in all {
        follow(topology, route);
        for piece in pieces(route) {
            assert!(oracle.plain.is_legal(&piece), "{route:?}");
        }
        let path = passed(route);
        assert_eq!(route.in_transit.len() as u32, oracle.cuts(&path));
        assert_eq!(*minimal, path.len() as u32 == minimum + 1, "{route:?}");
        assert!(route.switches.len() <= 64);
    }
}

fn paths_of(all: &[Alternative]) -> BTreeSet<Switches> {
    all.iter().map(|one| passed(&one.route)).collect()
}

fn share_of<'a>(all: impl Iterator<Item = &'a Alternative>) -> u32 {
    all.map(|one| one.share.parts()).sum()
}

/// `kept` are all of `all`, or ten of them.
fn check_kept(kept: &BTreeSet<Switches>, all: &BTreeSet<Switches>) {
    assert!(kept.is_subset(all), "{kept:?} of {all:?}");
    assert_eq!(kept.len(), all.len().min(ALTERNATIVES_MAX));
}

/// Holds the routes of a pair, all switches with hosts and single links, against all
/// paths there are.
fn check_pair(oracle: &Oracle, planned: &[Routes<'_>], src: HostId, dst: HostId) {
    let topology = planned[0].topology();
    let [from, to] = [src, dst].map(|host| topology.host(host).unwrap().switch);
    let minimum = distances(topology, from)[&to];
    let minimal: BTreeSet<Switches> = oracle
        .paths(topology, from, to, minimum)
        .into_iter()
        .collect();
    for routes in planned {
        let answer = routes.alternatives(src, dst).unwrap();
        check_answer(topology, oracle, minimum, &answer);
        assert_eq!(routes.route(src, dst).unwrap(), answer[0].route);
        let kept = paths_of(&answer);
        match routes.algorithm() {
            Algorithm::Omit => {
                assert_eq!(answer.len(), 1);
                let cuts = minimal.iter().map(|path| oracle.cuts(path)).min();
                assert_eq!(Some(answer[0].route.in_transit.len() as u32), cuts);
                assert!(answer[0].minimal);
            }
            Algorithm::Rmit | Algorithm::Rrmit => {
                check_kept(&kept, &minimal);
                assert!(answer.iter().all(|one| one.share == answer[0].share));
            }
            Algorithm::Pit => {
                let longer: BTreeSet<Switches> = oracle
                    .paths(topology, from, to, minimum + 1)
                    .into_iter()
                    .filter(|path| path.len() as u32 == minimum + 2)
                    .collect();
                let (short, long): (Vec<_>, Vec<_>) =
                    answer.iter().cloned().partition(|one| one.minimal);
                check_kept(&paths_of(&short), &minimal);
                check_kept(&paths_of(&long), &longer);
                let fifth = Share::WHOLE.parts() / 5;
                let expected = if longer.is_empty() { 0 } else { fifth };
                assert_eq!(share_of(long.iter()), expected);
                for set in [short, long] {
                    assert!(set.iter().all(|one| one.share == set[0].share));
                }
            }
            Algorithm::RrmitMin => {
                let (least, _) = oracle.least(from, to, true);
                let best: BTreeSet<Switches> = oracle
                    .paths(topology, from, to, least)
                    .into_iter()
                    .filter(|path| path.len() as u32 - 1 + oracle.cuts(path) == least)
                    .collect();
                check_kept(&kept, &best);
                for one in &answer {
                    assert_eq!(one.route.switches.len() as u32, least + 1);
                }
            }
            other => panic!("{other:?}"),
        }
    }
}

fn plan_all(topology: &Topology) -> Vec<Routes<'_>> {
    IN_TRANSIT
        .map(|algorithm| Routes::plan(topology, algorithm, None).unwrap())
        .into()
}

/// No deadlock, whether added switch by switch or route by route.
fn check_free(routes: &Routes<'_>) {
    let topology = routes.topology();
    let mut at_once = ChannelGraph::new(topology, Branching::Independent);
    at_once.add_routes(routes);
    assert!(at_once.check().is_deadlock_free());
    let mut one_by_one = ChannelGraph::new(topology, Branching::Independent);
    for route in routes.iter() {
        one_by_one.add_route(&route).unwrap();
    }
    assert!(one_by_one.check().is_deadlock_free());
}

#[test]
fn every_connected_graph_of_up_to_five_switches() {
    for topology in (1..=5).flat_map(|switches| connected_graphs(switches, false)) {
        let planned = plan_all(&topology);
        let oracle = Oracle::new(&topology, planned[0].updown().root(&topology));
        for src in topology.hosts() {
            for dst in topology.hosts().iter().filter(|dst| dst.id != src.id) {
                check_pair(&oracle, &planned, src.id, dst.id);
            }
        }
        for routes in &planned {
            check_free(routes);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn random_networks(
        switches in 2usize..=64,
        links in 2usize..6,
        seed in any::<u64>(),
        pairs in proptest::collection::vec(any::<(prop::sample::Index, prop::sample::Index)>(), 12),
    ) {
        let topology = irregular(&Irregular { switches, ports: 8, hosts: 2, links, seed }).unwrap();
        let planned = plan_all(&topology);
        let oracle = Oracle::new(&topology, planned[0].updown().root(&topology));
        for (src, dst) in pairs {
            let [src, dst] = [src, dst].map(|index| index.get(topology.hosts()).id);
            if src != dst {
                check_pair(&oracle, &planned, src, dst);
            }
        }
    }

    /// Where switches have no hosts, paths are the shortest of those that can be cut.
    #[test]
    fn switches_without_hosts(
        switches in 3u16..24,
        seed in any::<u64>(),
        bare in proptest::collection::btree_set(0u16..24, 1..16),
        pairs in proptest::collection::vec(any::<(prop::sample::Index, prop::sample::Index)>(), 12),
    ) {
        let parameters = Irregular { switches: switches.into(), ports: 8, hosts: 2, links: 3, seed };
        let mut parts = graphs::parts_of(&irregular(&parameters).unwrap());
        parts.hosts.retain(|host| host.switch.0 == 0 || !bare.contains(&host.switch.0));
        let topology = Topology::new(parts).unwrap();
        let planned = plan_all(&topology);
        let oracle = Oracle::new(&topology, planned[0].updown().root(&topology));
        for (src, dst) in pairs {
            let [src, dst] = [src, dst].map(|index| *index.get(topology.hosts()));
            if src.id == dst.id {
                continue;
            }
            let minimum = distances(&topology, src.switch)[&dst.switch];
            let (links, cuts) = oracle.least(src.switch, dst.switch, false);
            let (crossings, _) = oracle.least(src.switch, dst.switch, true);
            for routes in &planned {
                let answer = routes.alternatives(src.id, dst.id).unwrap();
                check_answer(&topology, &oracle, minimum, &answer);
                for one in &answer {
                    let length = passed(&one.route).len() as u32 - 1;
                    match routes.algorithm() {
                        Algorithm::RrmitMin => {
                            prop_assert_eq!(one.route.switches.len() as u32, crossings + 1);
                        }
                        Algorithm::Pit => prop_assert!((links..=links + 1).contains(&length)),
                        _ => prop_assert_eq!(length, links),
                    }
                    if routes.algorithm() == Algorithm::Omit {
                        prop_assert_eq!(one.route.in_transit.len() as u32, cuts);
                    }
                }
            }
        }
        for routes in &planned {
            check_free(routes);
        }
    }
}

#[test]
fn as_many_crossings_over_more_links_or_over_a_cut() {
    // Here a switch is reached in the same state over two links and a cut, and over three
    // links without one.
    let parameters = Irregular {
        switches: 56,
        ports: 8,
        hosts: 2,
        links: 3,
        seed: 14220457891169977572,
    };
    let topology = irregular(&parameters).unwrap();
    let planned = plan_all(&topology);
    let oracle = Oracle::new(&topology, planned[0].updown().root(&topology));
    for (src, dst) in [
        (0, 45),
        (4, 28),
        (72, 44),
        (103, 76),
        (63, 80),
        (28, 63),
        (40, 101),
        (106, 0),
        (97, 45),
        (23, 66),
        (44, 62),
        (110, 26),
    ] {
        check_pair(&oracle, &planned, HostId(src), HostId(dst));
    }
}

#[test]
fn regular_networks() {
    for spec in [
        "testbed",
        "ring:9",
        "star:9",
        "full-mesh:6",
        "torus:4:2",
        "torus:3x2x3",
        "torus:2",
        "mesh:4x3",
        "fat-tree:4",
        "shufflenet:2:2",
        "line:1:3",
    ] {
        let topology = from_spec(spec).unwrap();
        for routes in plan_all(&topology) {
            let oracle = Oracle::new(&topology, routes.updown().root(&topology));
            for src in topology.hosts() {
                for dst in topology.hosts().iter().filter(|dst| dst.id != src.id) {
                    let answer = routes.alternatives(src.id, dst.id).unwrap();
                    let minimum = distances(&topology, src.switch)[&dst.switch];
                    check_answer(&topology, &oracle, minimum, &answer);
                    // In a fat tree the switches between those with hosts cannot cut.
                    if spec != "fat-tree:4" && routes.algorithm() == Algorithm::Rmit {
                        assert!(answer.iter().all(|one| one.minimal), "{spec}");
                    }
                }
            }
            check_free(&routes);
        }
    }
}

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
        assert_eq!(paths_of(&all).len(), ALTERNATIVES_MAX);
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
