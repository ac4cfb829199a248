//! Failures after which worms of the order before go on beside those of the repaired one: whatever
//! may be in flight together is free of deadlock, by the checker, which knows nothing of orders.

use crate::lab;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lab::{Random, all_live};
use wormcast_planner::{AgentPlan, ClassDNumbers, Method, Planner, RouteTable};
use wormcast_routing::generate::{Irregular, from_spec, irregular};
use wormcast_routing::routes::{Algorithm, Route, Setting};
use wormcast_routing::topology::{Attachment, Damage, Link, Topology};
use wormcast_verify::deadlock::{Branching, ChannelGraph};
use wormcast_wire::{HostId, PortId, SwitchId};

type Plans = BTreeMap<HostId, Arc<AgentPlan>>;
/// Source routes by their source.
type InFlight = BTreeSet<(HostId, Arc<[u8]>)>;

fn add(in_flight: &mut InFlight, plans: &Plans) {
    for (&from, plan) in plans {
        for RouteTable(routes) in [&*plan.routes, &*plan.tree_routes] {
            in_flight.extend(routes.iter().map(|route| (from, route.ports.clone())));
        }
    }
}

/// The pieces of a route between links that are not in use: what lies behind such a link goes on.
fn pieces(network: &Topology, used: &Topology, from: HostId, ports: &[u8]) -> Vec<Route> {
    let host_at = |switch: SwitchId| {
        let mut hosts = network.hosts().iter();
        *hosts.find(|host| host.switch == switch).unwrap()
    };
    let begin = |at: SwitchId| Route {
        src: host_at(at).id,
        dst: from,
        switches: vec![at],
        ports: Vec::new(),
        in_transit: Vec::new(),
    };
    let mut at = network.host(from).unwrap().switch;
    let mut pieces = Vec::new();
    let mut piece = begin(at);
    let end = |mut piece: Route, at: SwitchId| {
        let host = host_at(at);
        piece.dst = host.id;
        piece.ports.push(host.port.get());
        piece
    };
    for (place, &byte) in ports.iter().enumerate() {
        let port = PortId::new(byte).unwrap();
        match network.attachment(at, port).expect("it is on the way") {
            Attachment::Switch(next, _) => {
                if used.attachment(at, port).is_some() {
                    piece.ports.push(byte);
                    piece.switches.push(next);
                } else {
                    pieces.push(end(piece, at));
                    piece = begin(next);
                }
                at = next;
            }
            Attachment::Host(_) if place + 1 == ports.len() => {}
            Attachment::Host(host) => {
                piece.ports.push(byte);
                piece.in_transit.push(host);
                piece.switches.push(at);
            }
        }
    }
    pieces.push(end(piece, at));
    pieces
}

fn check(network: &Topology, used: &Topology, in_flight: &InFlight, what: &str) {
    let mut graph = ChannelGraph::new(used, Branching::Independent);
    for (from, ports) in in_flight {
        for piece in pieces(network, used, *from, ports) {
            graph.add_route(&piece).unwrap();
        }
    }
    assert!(graph.check().is_deadlock_free(), "{what}");
}

fn without(network: &Topology, lost: &BTreeSet<Link>) -> Topology {
    let ends = lost.iter().map(|link| (link.a, link.a_port));
    let damage = Damage {
        links: ends.collect(),
        ..Damage::default()
    };
    network.without(&damage).unwrap()
}

/// Links that worms of a plan may take.
fn links_of(network: &Topology, plans: &Plans) -> BTreeSet<(SwitchId, u8)> {
    let mut found = BTreeSet::new();
    for (&from, plan) in plans {
        for route in plan.routes.0.iter().chain(&plan.tree_routes.0) {
            let mut at = network.host(from).unwrap().switch;
            for &port in route.ports.iter() {
                found.insert((at, port));
                let on_port = network.attachment(at, PortId::new(port).unwrap());
                if let Some(Attachment::Switch(next, _)) = on_port {
                    at = next;
                }
            }
        }
    }
    found
}

fn a_network(random: &mut Random, seed: u64) -> Topology {
    match seed % 4 {
        0 => from_spec(["torus:4x4", "mesh:4x4", "torus:3x3x3"][seed as usize / 4 % 3]).unwrap(),
        1 => irregular(&Irregular::of_itb(16, seed)).unwrap(),
        _ => irregular(&Irregular {
            switches: random.between(5, 20),
            ports: 8,
            hosts: 1,
            links: 3,
            seed,
        })
        .unwrap(),
    }
}

#[test]
fn worms_of_both_orders_are_safe_together_until_the_older_have_left() {
    let (mut at_once, mut bridged, mut held_back) = (0, 0, 0);
    for seed in 0..120 {
        let mut random = Random::new(seed);
        let network = a_network(&mut random, seed);
        let hosts = all_live(&network);
        let algorithm = *random.choose(&Algorithm::ALL);
        let mut planner = Planner::new(Setting::plain(algorithm));
        let plan = |planner: &mut Planner, up: &Topology| {
            planner.plan(up, &network, &[], &hosts, &ClassDNumbers::default())
        };
        let mut in_force = plan(&mut planner, &network).agents;
        let mut in_flight = InFlight::new();
        add(&mut in_flight, &in_force);
        let (mut lost, mut silent) = (BTreeSet::new(), BTreeSet::new());
        // What was down when an order was repaired, until older worms have left.
        let mut held: BTreeSet<Link> = BTreeSet::new();
        // Links in use when older worms had left, where the planner left some out.
        let mut before: Option<BTreeSet<(SwitchId, u8)>> = None;
        for _ in 0..16 {
            let is_back = random.chance(30) && !lost.is_empty();
            if before.is_none() && is_back {
                let back = *random.choose(&lost.iter().copied().collect::<Vec<_>>());
                lost.remove(&back);
            } else if before.is_none() {
                let link = *random.choose(network.links());
                if lost.insert(link) && random.chance(10) {
                    silent.insert(link);
                }
            }
            let up = without(&network, &lost);
            // Of others it is not known whether they carry worms.
            silent.retain(|link| lost.contains(link));
            let down: BTreeSet<Link> = lost.difference(&silent).copied().collect();
            let ends = down
                .iter()
                .flat_map(|link| [(link.a, link.a_port), (link.b, link.b_port)]);
            planner.set_down(ends.collect());
            let state = plan(&mut planner, &up);
            let is_over = |planner: &mut Planner, in_flight: &mut InFlight, now: &Plans| {
                *in_flight = InFlight::new();
                add(in_flight, now);
                planner.drained()
            };
            if let Some(bridge) = &state.routes.bridge {
                bridged += 1;
                held.clear();
                in_force.clone_from(bridge);
                _ = is_over(&mut planner, &mut in_flight, &in_force);
                planner.settle();
                // What it left out it plans now.
                let state = plan(&mut planner, &up);
                assert!(state.routes.bridge.is_none());
                in_force = state.agents;
                _ = is_over(&mut planner, &mut in_flight, &in_force);
                before = None;
                continue;
            }
            let joined = |held: &BTreeSet<Link>| {
                let held = held.difference(&lost).copied().collect();
                without(&up, &held).components() == 1
            };
            if state.routes.method == Method::RepairedOrder {
                at_once += 1;
                assert!(joined(&held), "seed {seed}: routes lead over links away");
                held.extend(&down);
            }
            in_force.clone_from(&state.agents);
            add(&mut in_flight, &in_force);
            let taken = links_of(&network, &in_force);
            let unused: BTreeSet<Link> = down.union(&held).copied().collect();
            // Where hosts are cut off without such a link their routes lead over it all the same.
            let used = without(&network, &unused);
            if joined(&held) {
                let ends = unused
                    .iter()
                    .flat_map(|link| [(link.a, link.a_port), (link.b, link.b_port)]);
                let is_taken = |(at, port): (SwitchId, PortId)| taken.contains(&(at, port.get()));
                assert!(
                    !ends.into_iter().any(is_taken),
                    "seed {seed}: it is held back"
                );
            }
            check(
                &network,
                &used,
                &in_flight,
                &format!("seed {seed}, {algorithm:?}"),
            );
            held_back += usize::from(before.is_some_and(|before| !taken.is_subset(&before)));
            before = None;
            if random.chance(40) {
                held.clear();
                let left_out = is_over(&mut planner, &mut in_flight, &in_force);
                before = left_out.then_some(taken);
            }
        }
    }
    assert!(
        at_once > 100 && bridged * 2 < at_once && held_back > 5,
        "{at_once} at once, {bridged} over a bridge, {held_back} links held back"
    );
}
