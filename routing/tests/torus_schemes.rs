//! The schemes of TORUS §3 on tori of every kind, and the paths they are made for.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use wormcast_routing::generate::from_spec;
use wormcast_routing::group::DimensionOrder;
use wormcast_routing::group::{
    GroupRequest, Order, Routing, Scheme, Unicast, measure_group, plan_group, plan_group_on,
};
use wormcast_routing::routes::{Algorithm, Routes};
use wormcast_routing::structure::torus_latency::{
    Constants, PROCESS_S_NS, PROCESS_SEPARATE_NS, PathCounts, forwarded_ns, full_ns, separate_ns,
};
use wormcast_routing::structure::{Structure, TreeVariant, ordering};
use wormcast_routing::topology::{Damage, Topology};
use wormcast_wire::{HostId, PortId, SwitchId};

use crate::graphs;

fn hosts(topology: &Topology) -> Vec<HostId> {
    topology.hosts().iter().map(|host| host.id).collect()
}

fn coordinates(topology: &Topology, host: HostId) -> Vec<u16> {
    let switch = topology.host(host).unwrap().switch;
    topology.grid().unwrap().coordinates(switch)
}

#[test]
fn dimension_order_paths_go_one_dimension_after_the_other() {
    for spec in [
        "torus:4x3",
        "unidirectional-torus:4x3",
        "mesh:3x4",
        "unidirectional-torus:3x2x3",
        "torus:2x5",
    ] {
        let topology = from_spec(spec).unwrap();
        let grid = topology.grid().unwrap().clone();
        let paths = DimensionOrder::new(&topology).unwrap();
        for src in hosts(&topology) {
            for dst in hosts(&topology) {
                if src == dst {
                    continue;
                }
                let route = paths.route(src, dst).unwrap();
                graphs::follow(&topology, &route);
                let crossed = paths.distance(src, dst).unwrap().unwrap();
                assert_eq!(route.switches.len() as u32, crossed);
                // The dimension of each hop, and how many hops there should be in all.
                let places: Vec<Vec<u16>> = route
                    .switches
                    .iter()
                    .map(|&switch| grid.coordinates(switch))
                    .collect();
                let dimensions: Vec<usize> = places
                    .windows(2)
                    .map(|pair| {
                        (0..grid.radix.len())
                            .find(|&d| pair[0][d] != pair[1][d])
                            .unwrap()
                    })
                    .collect();
                assert!(dimensions.is_sorted(), "{spec} {src} {dst}");
                let mut hops = 0;
                for (dimension, &radix) in grid.radix.iter().enumerate() {
                    let (from, to) = (places[0][dimension], places[places.len() - 1][dimension]);
                    let ahead = (to + radix - from) % radix;
                    hops += match (grid.unidirectional, grid.wraps) {
                        (true, _) => ahead,
                        (false, true) => ahead.min(radix - ahead),
                        (false, false) => from.abs_diff(to),
                    };
                    let onward =
                        |pair: &[Vec<u16>]| pair[1][dimension] == (pair[0][dimension] + 1) % radix;
                    let moves = |pair: &&[Vec<u16>]| pair[0][dimension] != pair[1][dimension];
                    if grid.unidirectional {
                        assert!(places.windows(2).filter(moves).all(onward));
                    }
                }
                assert_eq!(u32::from(hops) + 1, crossed, "{spec} {src} {dst}");
            }
        }
    }
    let refused = DimensionOrder::new(&from_spec("testbed").unwrap()).unwrap_err();
    assert!(refused.to_string().contains("needs a torus or mesh"));
}

#[test]
fn the_hamiltonian_order_goes_hop_by_hop() {
    let closed = [
        "torus:4",
        "unidirectional-torus:4",
        "unidirectional-torus:3x3x3",
        "torus:5",
    ];
    let open = [
        "unidirectional-torus:4x3",
        "unidirectional-torus:3x4x2",
        "mesh:3x4",
        "mesh:2x3x4",
        "torus:3x5",
    ];
    for (spec, closes) in closed
        .iter()
        .map(|spec| (spec, true))
        .chain(open.iter().map(|spec| (spec, false)))
    {
        let topology = from_spec(spec).unwrap();
        let order = ordering::hamiltonian(&topology, &hosts(&topology)).unwrap();
        assert_eq!(
            order.iter().collect::<BTreeSet<_>>().len(),
            topology.hosts().len()
        );
        let paths = DimensionOrder::new(&topology).unwrap();
        let crossed = |a, b| paths.distance(a, b).unwrap().unwrap();
        for pair in order.windows(2) {
            assert_eq!(
                crossed(pair[0], pair[1]),
                2,
                "{spec}: {} to {}",
                pair[0],
                pair[1]
            );
        }
        if closes {
            assert_eq!(
                crossed(order[order.len() - 1], order[0]),
                2,
                "{spec} closes"
            );
        }
    }
}

#[test]
fn u_torus_takes_as_many_steps_as_halvings() {
    for members in 1..=520u16 {
        let order: Vec<HostId> = (0..members).map(HostId).collect();
        let source = HostId(members / 3);
        let structure = Structure::u_torus(order, source).unwrap();
        let halvings = u64::from(usize::from(members).next_power_of_two().trailing_zeros());
        assert_eq!(structure.steps(1), halvings, "{members} members");
    }
}

/// Tori of both kinds, of two and three dimensions.
const TORI: [&str; 7] = [
    "unidirectional-torus:4",
    "unidirectional-torus:8",
    "unidirectional-torus:5x3",
    "unidirectional-torus:3x4x3",
    "torus:8",
    "torus:5x4",
    "torus:3x4x3",
];

fn group(topology: &Topology, picked: &BTreeSet<usize>, source: usize) -> (Vec<HostId>, HostId) {
    let all = hosts(topology);
    let members: BTreeSet<HostId> = picked.iter().map(|&host| all[host % all.len()]).collect();
    let members: Vec<HostId> = members.into_iter().collect();
    let source = members[source % members.len()];
    (members, source)
}

/// Shares of steps with contention, steps and so on once more, from the roles and routes
/// of a plan, with sets and no closed forms.
fn plain_metrics(paths: Unicast<'_, '_>, request: &GroupRequest) -> [u64; 5] {
    let plan = plan_group(paths, request).unwrap();
    let wormcast_routing::group::Delivery::Hosts { edges } = plan.delivery else {
        panic!("hosts forward")
    };
    let mut steps: BTreeMap<u32, Vec<BTreeSet<(SwitchId, u8)>>> = BTreeMap::new();
    let (mut visits, mut used) = (0, BTreeSet::new());
    for edge in &edges {
        let route = paths.route(edge.from, edge.to).unwrap();
        let last = route.ports.len() - 1;
        let links: BTreeSet<(SwitchId, u8)> = route.switches[..last]
            .iter()
            .copied()
            .zip(route.ports[..last].iter().copied())
            .collect();
        visits += links.len() as u64;
        used.extend(links.iter().copied());
        steps.entry(edge.step).or_default().push(links);
    }
    let (mut contended, mut sends_that_meet) = (0, 0);
    for sends in steps.values() {
        let meets = (0..sends.len())
            .filter(|&a| (0..sends.len()).any(|b| a != b && !sends[a].is_disjoint(&sends[b])))
            .count() as u64;
        contended += u64::from(meets > 0);
        sends_that_meet += meets;
    }
    let used = used.len() as u64;
    [steps.len() as u64, contended, sends_that_meet, visits, used]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn u_torus_is_free_of_contention_on_tori_of_two_lanes(
spec in prop::sample::select(TORI.to_vec()),
        picked in prop::collection::btree_set(0usize..64, 1..64),
        source in 0usize..64,
    ) {
        let topology = from_spec(spec).unwrap();
        let (members, source) = group(&topology, &picked, source);
        let paths = DimensionOrder::new(&topology).unwrap();
        let metrics = measure_group(paths, &GroupRequest::new(Scheme::UTorus, source, members.clone()))
            .unwrap()
            .unwrap();
        prop_assert_eq!(metrics.contended_steps_two_lanes, 0, "{:?} from {}", members, source);
    }

    #[test]
    fn torus_schemes_reach_every_member_as_they_should(
        spec in prop::sample::select(TORI.to_vec()),
        picked in prop::collection::btree_set(0usize..64, 1..64),
        source in 0usize..64,
        r in 1u32..9,
    ) {
        let topology = from_spec(spec).unwrap();
        let (members, source) = group(&topology, &picked, source);
        let ring = |host| {
            let mut coordinates = coordinates(&topology, host);
            coordinates.pop();
            coordinates
        };
        for scheme in [
            Scheme::Repeat, Scheme::UTorus, Scheme::STorus, Scheme::MdTorus,
            Scheme::MuTorus { r: Some(r) }, Scheme::Postal { lambda: Some(3) }, Scheme::KBinomial { k: None },
        ] {
            let request = GroupRequest::new(scheme, source, members.clone());
            let plan = plan_group_on(&topology, None, &request, true).unwrap();
            let wormcast_routing::group::Delivery::Hosts { edges } = plan.delivery else {
                panic!("hosts forward")
            };
            let reached: BTreeSet<HostId> = edges.iter().map(|edge| edge.to).chain([source]).collect();
            prop_assert_eq!(edges.len() + 1, members.len());
            prop_assert_eq!(reached.len(), members.len());
            let heads: Vec<HostId> =
                edges.iter().filter(|edge| edge.from == source).map(|edge| edge.to).collect();
            let others = members.len() - 1;
            let metrics = plan.metrics.unwrap();
            match scheme {
                Scheme::STorus => {
                    prop_assert_eq!(plan.steps, others as u64);
                    prop_assert_eq!(metrics.intermediate_hosts as usize, others.saturating_sub(1));
                    prop_assert_eq!(metrics.link_concurrency as usize, others.min(1));
                }
                Scheme::MdTorus => {
                    // One head for each ring, and all the rest go along a ring.
                    let rings: BTreeSet<_> = members.iter().filter(|host| **host != source).map(|&host| ring(host)).collect();
                    let served: BTreeSet<_> = heads.iter().map(|&host| ring(host)).collect();
                    prop_assert_eq!(heads.len(), rings.len());
                    prop_assert_eq!(served, rings);
                    for edge in edges.iter().filter(|edge| edge.from != source) {
                        prop_assert_eq!(ring(edge.from), ring(edge.to));
                    }
                }
                Scheme::MuTorus { .. } => {
                    prop_assert_eq!(heads.len(), others.div_ceil(r as usize));
                    prop_assert_eq!(metrics.intermediate_hosts as usize, others.min(r as usize).saturating_sub(1));
                    prop_assert!(edges.iter().all(|edge| edge.from == source || edges.iter().filter(|other| other.from == edge.from).count() == 1));
                }
                _ => {}
            }
        }
    }

    #[test]
    fn metrics_are_those_of_a_plain_count(
        spec in prop::sample::select(TORI.to_vec()),
        picked in prop::collection::btree_set(0usize..64, 2..40),
        source in 0usize..64,
        scheme in prop::sample::select(Scheme::NAMES.to_vec()),
        seed in any::<u64>(),
    ) {
        let topology = from_spec(spec).unwrap();
        let scheme = Scheme::from_name(scheme).unwrap();
        if matches!(scheme, Scheme::Switch(_)) {
            return Ok(());
        }
        let (members, source) = group(&topology, &picked, source);
        let mut request = GroupRequest::new(scheme, source, members);
        if scheme != Scheme::MdTorus && seed % 2 == 0 {
            request.order = Some(Order::Random { seed });
        }
        let dimension = DimensionOrder::new(&topology).unwrap();
        let routes;
        let mut all: Vec<Unicast<'_, '_>> = vec![dimension.into()];
        if !topology.grid().unwrap().unidirectional {
            routes = Routes::plan(&topology, Algorithm::Osud, None).unwrap();
            all.push((&routes).into());
        }
        for paths in all {
            let metrics = measure_group(paths, &request).unwrap().unwrap();
            let counted = [
                metrics.busy_steps,
                metrics.contended_steps,
                metrics.contended_sends,
                metrics.link_visits,
                metrics.links_used,
            ];
            prop_assert_eq!(counted, plain_metrics(paths, &request));
        }
    }
}

#[test]
fn a_random_order_meets_on_links_where_the_right_one_does_not() {
    // PACKET §4.3: the ordering is what keeps a tree free of contention.
    let topology = from_spec("unidirectional-torus:8").unwrap();
    let mut contended = 0;
    for seed in 0..20 {
        let mut request = GroupRequest::new(Scheme::UTorus, HostId(0), hosts(&topology));
        request.order = Some(Order::Random { seed });
        let plan = plan_group_on(&topology, None, &request, true).unwrap();
        contended += plan.metrics.unwrap().contended_steps;
    }
    assert!(contended > 40, "{contended} of 120 steps");
}

#[test]
fn the_default_paths_are_those_the_topology_allows() {
    let one_way = from_spec("unidirectional-torus:4").unwrap();
    let two_way = from_spec("torus:4").unwrap();
    assert_eq!(Routing::default_on(&one_way), Routing::DimensionOrder);
    assert_eq!(
        Routing::default_on(&two_way),
        Routing::Algorithm(Algorithm::Osud)
    );
    let mut request = GroupRequest::new(
        Scheme::from_name("switch").unwrap(),
        HostId(0),
        vec![HostId(0), HostId(3)],
    );
    let refused = plan_group_on(&one_way, None, &request, false).unwrap_err();
    assert!(refused.to_string().contains("unidirectional"), "{refused}");
    request.scheme = Scheme::UTorus;
    request.routing = Some(Routing::Algorithm(Algorithm::Osud));
    let refused = plan_group_on(&one_way, None, &request, false).unwrap_err();
    assert!(refused.to_string().contains("unidirectional"), "{refused}");
}

#[test]
fn what_hosts_hold_is_counted_by_hand() {
    // Three packets over the binomial tree of four hosts: the one host that forwards gets
    // packets in steps 1, 3, 5 (FPFS) and sends each on in the step after.
    let topology = from_spec("line:1:4").unwrap();
    let mut request = GroupRequest::new(
        Scheme::KBinomial { k: Some(2) },
        HostId(0),
        hosts(&topology),
    );
    request.packets = 3;
    let metrics = plan_group_on(&topology, None, &request, true)
        .unwrap()
        .metrics
        .unwrap();
    assert_eq!(
        (
            metrics.fpfs.steps,
            metrics.fpfs.held_max,
            metrics.fpfs.packets_max
        ),
        (6, 1, 1)
    );
    assert_eq!(
        (
            metrics.fcfs.steps,
            metrics.fcfs.held_max,
            metrics.startup_steps
        ),
        (6, 1, 6)
    );
    assert_eq!(
        (metrics.link_visits, metrics.link_concentration()),
        (0, 0.0)
    );
    // The binomial tree of eight hosts: the first child has two children. FPFS: packets
    // in steps 1, 4, 7, each gone two steps later. FCFS: packets in steps 1, 2, 3, to the
    // first child in 2, 3, 4 and to the second in 5, 6, 7.
    let topology = from_spec("line:1:8").unwrap();
    let mut request = GroupRequest::new(
        Scheme::KBinomial { k: Some(3) },
        HostId(0),
        hosts(&topology),
    );
    request.packets = 3;
    let metrics = plan_group_on(&topology, None, &request, true)
        .unwrap()
        .metrics
        .unwrap();
    assert_eq!(
        (
            metrics.fpfs.steps,
            metrics.fpfs.held_max,
            metrics.fpfs.packets_max
        ),
        (9, 2, 1)
    );
    assert_eq!(
        (
            metrics.fcfs.steps,
            metrics.fcfs.held_max,
            metrics.fcfs.packets_max
        ),
        (9, 4, 3)
    );
}

#[test]
fn too_many_sends_are_not_replayed() {
    let topology = from_spec("torus:8").unwrap();
    let mut request = GroupRequest::new(Scheme::Repeat, HostId(0), hosts(&topology));
    request.packets = 1 << 20;
    let plan = plan_group_on(&topology, None, &request, false).unwrap();
    assert_eq!(plan.steps, 63 << 20);
    let refused = plan_group_on(&topology, None, &request, true).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "metrics: 63 sends of 1048576 packets are 66060288 to replay; there may be 4194304"
    );
}

#[test]
fn latencies_are_those_of_the_models() {
    let torus = Constants::TORUS;
    let close = |found: f64, expected: f64| {
        assert!((found - expected).abs() < 1e-6, "{found} for {expected}")
    };
    close(torus.overhead(128.0), 1994.0);
    close(torus.overhead(512.0), 1994.0 + 3.15 * 384.0);
    // Fifteen sends of o + 7 µs, and the last one received.
    close(
        separate_ns(&torus, 16, PROCESS_SEPARATE_NS, 128.0),
        15.0 * 8994.0 + 1994.0,
    );
    close(separate_ns(&torus, 1, PROCESS_SEPARATE_NS, 128.0), 0.0);
    // Eq. 12: 2·o + (G − 2)·L_i.
    close(
        forwarded_ns(&torus, 14, PROCESS_S_NS, 128.0),
        3988.0 + 14.0 * 268_988.0,
    );
    let path = PathCounts {
        hops: 3,
        forwarding: 1,
        switching: 1,
        intermediate: 1,
    };
    close(
        full_ns(&torus, [path, PathCounts::default()], PROCESS_S_NS, 128.0),
        3988.0 + 3.0 * 14.0 + 60.0 + 670.0 + 268_988.0,
    );
}

#[test]
fn plans_count_what_the_models_take() {
    // All of the 4x4 torus of TORUS §4: the figures behind Figs. 9 and 13.
    let topology = from_spec("unidirectional-torus:4").unwrap();
    let latency = |scheme| {
        let request = GroupRequest::new(scheme, HostId(0), hosts(&topology));
        let plan = plan_group_on(&topology, None, &request, true).unwrap();
        let metrics = plan.metrics.unwrap();
        let latency = metrics.latency.unwrap();
        assert!(latency.full_ns > latency.simplified_ns);
        assert!(
            latency.full_ns < 1.1 * latency.simplified_ns,
            "the network is little of it"
        );
        (
            metrics.intermediate_hosts,
            latency.simplified_ns.round() as u64,
        )
    };
    assert_eq!(latency(Scheme::Repeat), (0, 136_904));
    assert_eq!(latency(Scheme::STorus), (14, 3_769_820));
    assert_eq!(latency(Scheme::UTorus), (3, 3_988 + 3 * 632_988));
    assert_eq!(latency(Scheme::MdTorus), (3, 3_988 + 3 * 209_988));
    assert_eq!(
        latency(Scheme::MuTorus { r: None }),
        (3, 3_988 + 3 * 204_988)
    );
}

#[test]
fn adapters_hold_packets_as_long_as_the_paper_says() {
    // PACKET §3.3.2: a host with c children holds a packet for c sends under FPFS, for
    // c + (m - 1)(c - 1) under FCFS.
    for children in 2..=5u64 {
        for packets in 1..=20u32 {
            // Host 0 has c children, and the first of them c children of its own.
            let topology = from_spec(&format!("line:1:{}", 1 + 2 * children)).unwrap();
            let scheme = Scheme::Tree {
                variant: TreeVariant::Unordered,
                fan_out: children as u32,
            };
            let mut request = GroupRequest::new(scheme, HostId(0), hosts(&topology));
            request.packets = packets;
            let plan = plan_group_on(&topology, None, &request, true).unwrap();
            let metrics = plan.metrics.unwrap();
            assert_eq!(metrics.fpfs.held_max, children);
            let longer = (u64::from(packets) - 1) * (children - 1);
            assert_eq!(metrics.fcfs.held_max, children + longer);
            assert_eq!(metrics.fcfs.held_mean, (children + longer) as f64);
            assert_eq!(metrics.fcfs.packets_max, u64::from(packets));
        }
    }
}

#[test]
fn a_broken_ring_is_found_where_it_matters() {
    let ring = from_spec("unidirectional-torus:5").unwrap();
    // The link from switch 2 onward to switch 3, by the port of the first dimension.
    let cut = Damage {
        links: BTreeSet::from([(SwitchId(2), PortId::new(1).unwrap())]),
        ..Damage::default()
    };
    let broken = ring.without(&cut).unwrap();
    let plan = |members: &[u16], source: u16| {
        let members = members.iter().map(|&id| HostId(id)).collect();
        let request = GroupRequest::new(Scheme::STorus, HostId(source), members);
        plan_group_on(&broken, None, &request, false).map_err(|error| error.to_string())
    };
    assert_eq!(plan(&[0, 1, 2], 0).unwrap().steps, 2);
    assert_eq!(
        plan(&[2, 3], 2).unwrap_err(),
        "members 2 and 3 cannot reach each other"
    );
    // Host 5 reaches both on another row; it is the send from 2 on to 3 that fails.
    assert_eq!(plan(&[2, 5], 5).unwrap().steps, 1);
    assert_eq!(plan(&[3, 5], 5).unwrap().steps, 1);
    assert_eq!(
        plan(&[2, 3, 5], 5).unwrap_err(),
        "members 2 and 3 cannot reach each other"
    );
}
