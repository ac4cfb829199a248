//! Trains by way of switches that take them (port byte 254), in random networks: each comes whole in the end, nobody
//! waits in a circle, and switches hold nothing afterwards.

use std::collections::BTreeSet;
use wormcast_fabric_tests::random::Random;
use wormcast_fabric_tests::trains::OWN_CHANNEL;
use wormcast_fabric_tests::trains::{Received, Scheme, Trains, rooted};
use wormcast_routing::generate;
use wormcast_routing::routes::{Algorithm, Routes};
use wormcast_routing::topology::{Attachment, Topology};
use wormcast_wire::{HostId, PortId};

const LONG_US: u64 = 20_000_000;
const QUIET_US: u64 = 50_000;
const SILENT_US: u64 = 50_000;
const WORMS: usize = 100;

/// From host to host by some switches that take the worm, each leg legal for itself (ITB §II).
fn route(
    routes: &Routes,
    hosts: &[HostId],
    from: HostId,
    to: HostId,
    random: &mut Random,
) -> Vec<u8> {
    let (mut bytes, mut at) = (Vec::new(), from);
    let picks = (0..1 + random.below(3)).map(|_| *random.pick(hosts));
    for next in picks.collect::<Vec<_>>() {
        if next != at {
            bytes.extend(leg(routes, at, next));
            *bytes.last_mut().expect("a port") = 254; // its switch in place of the host
            at = next;
        }
    }
    if at != to {
        bytes.extend(leg(routes, at, to));
    }
    bytes
}

fn leg(routes: &Routes, from: HostId, to: HostId) -> Vec<u8> {
    routes.route(from, to).expect("a route").ports
}

/// Whether it ends at a host, and waits nowhere for itself: for an output or a switch that it has already.
fn is_possible(topology: &Topology, from: HostId, route: &[u8]) -> bool {
    let mut at = topology.host(from).expect("a host").switch;
    let mut has = BTreeSet::new();
    for (place, &byte) in route.iter().enumerate() {
        if !has.insert((at, byte)) {
            return false;
        }
        let Some(port) = PortId::new(byte) else {
            continue; // 254
        };
        match topology.attachment(at, port) {
            Some(Attachment::Switch(next, _)) => at = next,
            _ => return place + 1 == route.len(),
        }
    }
    false
}

/// Random worms, most of them by way of switches that take them, and how often a worm should come to a host.
fn network(
    topology: &Topology,
    scheme: Scheme,
    seed: u64,
    loss: f64,
    frames_max: u64,
) -> (Trains, usize) {
    let mut random = Random::new(seed);
    let mut network = Trains::new(topology.clone(), scheme, SILENT_US, seed);
    network.loss = loss;
    let mut sent = 0;
    let routes = Routes::plan(topology, Algorithm::Osud, None).expect("routes");
    let hosts: Vec<HostId> = topology.hosts().iter().map(|host| host.id).collect();
    for _ in 0..WORMS {
        let &from = random.pick(&hosts);
        let &to = random.pick(&hosts);
        if from == to {
            continue;
        }
        let bytes = if random.chance(0.8) {
            route(&routes, &hosts, from, to, &mut random)
        } else {
            leg(&routes, from, to)
        };
        if !is_possible(topology, from, &bytes) {
            continue;
        }
        let (after_us, frames) = (random.below(3_000), 1 + random.below(frames_max) as u16);
        network.send(from.0, after_us, false, &bytes, frames);
        sent += 1;
    }
    // Beside them multicasts as the scheme has them: of one host, or by way of the root.
    let multicasts = match scheme {
        Scheme::Flush => vec![hosts[0]; 3],
        Scheme::Interrupt => hosts.clone(),
        _ => vec![],
    };
    for from in multicasts {
        let members = hosts.iter().copied();
        let members = members.filter(|&host| host != from && random.chance(0.4));
        let members: Vec<HostId> = members.collect();
        if !members.is_empty() {
            let tree = rooted(topology, from, &members);
            network.send(from.0, random.below(3_000), true, &tree, 8);
            sent += members.len();
        }
    }
    assert!(
        network.run(QUIET_US, LONG_US),
        "seed {seed}: {:?}\n{}",
        network.circle(),
        network.state()
    );
    (network, sent)
}

/// Nothing is held but by worms whose tail is lost; a last worm that goes by each switch ends these too.
fn is_empty(network: &mut Trains, topology: &Topology, seed: u64) {
    network.loss = 0.0;
    for host in topology.hosts() {
        // By the same port, or after the longest silence.
        network.send(host.id.0, 2 * SILENT_US, false, &[254, host.port.get()], 3);
    }
    assert!(network.run(3 * SILENT_US, LONG_US), "{}", network.state());
    for switch in topology.switches() {
        let at = &network.switches[&switch.id.0];
        let own = |register| at.register(register, OWN_CHANNEL);
        let name = format!("seed {seed}, switch {}", switch.id.0);
        assert_eq!(own("channel_came"), own("channel_gone"), "{name}");
        assert_eq!(own("channel_outputs"), 0, "{name}");
        assert_eq!(at.register("absorbed_train", 0), 0, "{name}");
    }
}

fn topologies() -> impl Iterator<Item = (Topology, u64)> {
    (0..12).flat_map(|seed| {
        let specs = [format!("irregular:8:{seed}:2:4"), "torus:3".into()];
        specs.map(|spec| (generate::from_spec(&spec).expect("a network"), seed))
    })
}

fn every(scheme: Scheme, frames_max: u64) -> (u64, u64) {
    let (mut resets, mut aborted) = (0, 0);
    for (topology, seed) in topologies() {
        let (mut network, sent) = network(&topology, scheme, seed, 0.0, frames_max);
        // What is reset is sent again under another number.
        assert_eq!(network.whole().count(), sent, "seed {seed}");
        assert_eq!(network.events("TURN_LOST"), 0, "seed {seed}");
        resets += topology
            .hosts()
            .iter()
            .map(|host| network.resets(host.id.0))
            .sum::<u64>();
        aborted += network.events("ABORTED");
        is_empty(&mut network, &topology, seed);
    }
    (resets, aborted)
}

/// As agents send them: taken whole or refused at the head.
#[test]
fn short_trains_come_whole_or_not_at_all() {
    for scheme in [Scheme::Plain, Scheme::Flush, Scheme::Interrupt] {
        let (resets, aborted) = every(scheme, 8);
        println!("{scheme:?}: {resets} resets");
        assert!(resets > 0, "no switch was ever busy");
        if scheme != Scheme::Interrupt {
            assert_eq!(aborted, 0, "{scheme:?}"); // there tails were lost in one network, and one was broken
        }
    }
}

#[test]
fn long_trains_come_whole_in_the_end() {
    let (resets, aborted) = every(Scheme::Plain, 60);
    println!("{resets} resets, {aborted} broken");
    assert!(resets > 0 && aborted > 0);
}

/// Links lose frames: trains end early, nothing comes twice or out of order, nothing is held.
#[test]
fn lost_frames_leave_nothing_behind() {
    let mut aborted = 0;
    for (topology, seed) in topologies() {
        let (mut network, _) = network(&topology, Scheme::Plain, seed, 0.01, 30);
        for (key, Received { positions, .. }) in &network.received {
            assert!(
                positions.windows(2).all(|pair| pair[0] < pair[1]),
                "seed {seed}, {key:?}"
            );
        }
        aborted += network.events("ABORTED");
        is_empty(&mut network, &topology, seed);
    }
    assert!(aborted > 0);
}
