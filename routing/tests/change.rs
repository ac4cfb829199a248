//! Changes of routes on every small graph and on random ones: each step safe with the one
//! before by a check of its own, all pairs served in the end, none stopped without need.

mod graphs;

use std::collections::{BTreeMap, BTreeSet};

use graphs::connected_graphs;
use wormcast_routing::change::{Change, Method, Plan, plan};
use wormcast_routing::generate::{Irregular, irregular};
use wormcast_routing::ids::{HostId, PortId, SwitchId};
use wormcast_routing::routes::{Algorithm, Route, Routes};
use wormcast_routing::topology::{Attachment, Damage, Topology};

type Pair = (HostId, HostId);
/// A channel: what it leaves, by which port, where it leads.
type Hop = (SwitchId, u8, SwitchId);

/// A change of planned routes, nothing asked for.
fn change<'a>(old: &'a Topology, new: &'a Topology) -> Change<'a> {
    Change {
        old,
        new,
        algorithm: Algorithm::Osud,
        root: None,
        routes: None,
        new_root: None,
        planned: false,
    }
}

/// Follows a route from its source to its destination; gives the channels between
/// switches of each piece between in-transit hosts.
fn pieces(topology: &Topology, route: &Route) -> Vec<Vec<Hop>> {
    let mut pieces = vec![Vec::new()];
    let mut expected = topology.host(route.src).unwrap().switch;
    let mut in_transit = route.in_transit.iter();
    for (place, (&at, &port)) in route.switches.iter().zip(&route.ports).enumerate() {
        assert_eq!(at, expected, "{route:?}");
        let last = place + 1 == route.ports.len();
        match topology.attachment(at, PortId::new(port).unwrap()).unwrap() {
            Attachment::Switch(to, _) => {
                pieces.last_mut().unwrap().push((at, port, to));
                expected = to;
            }
            Attachment::Host(host) if last => assert_eq!(host, route.dst),
            Attachment::Host(host) => {
                assert_eq!(in_transit.next(), Some(&host), "{route:?}");
                pieces.push(Vec::new());
            }
        }
        assert!(!last || port_leads_to_host(topology, at, port), "{route:?}");
    }
    assert_eq!(in_transit.next(), None);
    pieces
}

fn port_leads_to_host(topology: &Topology, at: SwitchId, port: u8) -> bool {
    let found = topology.attachment(at, PortId::new(port).unwrap());
    matches!(found, Some(Attachment::Host(_)))
}

/// What a route makes worms hold and need.
fn turns(topology: &Topology, route: &Route) -> Vec<(Hop, Hop)> {
    let pieces = pieces(topology, route);
    pieces
        .iter()
        .flat_map(|piece| piece.windows(2).map(|pair| (pair[0], pair[1])))
        .collect()
}

fn all_hops(topology: &Topology) -> BTreeSet<Hop> {
    (topology.links().iter())
        .flat_map(|link| {
            [
                (link.a, link.a_port.get(), link.b),
                (link.b, link.b_port.get(), link.a),
            ]
        })
        .collect()
}

/// Takes away what nothing waits for until nothing is left, or only cycles.
fn is_acyclic(mut waits: BTreeSet<(Hop, Hop)>) -> bool {
    loop {
        let held: BTreeSet<Hop> = waits.iter().map(|(held, _)| *held).collect();
        let before = waits.len();
        waits.retain(|(_, needed)| held.contains(needed));
        if waits.is_empty() || waits.len() == before {
            return waits.is_empty();
        }
    }
}

/// Makes the steps one by one and checks each; gives the routes in the end.
fn check(asked: &Change<'_>, plan: &Plan) -> BTreeMap<Pair, Route> {
    let before = Routes::plan(asked.old, asked.algorithm, asked.root).unwrap();
    let mut in_force: BTreeMap<Pair, Route> = before
        .iter()
        .map(|route| ((route.src, route.dst), route))
        .collect();
    let there = all_hops(asked.new);
    let mut waits: BTreeSet<(Hop, Hop)> = BTreeSet::new();
    for route in in_force.values() {
        waits.extend(turns(asked.old, route));
    }
    if !asked.planned {
        waits.retain(|(held, needed)| there.contains(held) && there.contains(needed));
    }
    let host_stays =
        |host: HostId| asked.old.host(host).is_ok() && asked.old.host(host) == asked.new.host(host);
    in_force.retain(|(src, dst), route| {
        let whole = pieces(asked.old, route)
            .iter()
            .flatten()
            .all(|hop| there.contains(hop));
        let mut hosts = route.in_transit.iter().chain([src, dst]);
        whole && hosts.all(|host| host_stays(*host))
    });
    let served: BTreeSet<Pair> = in_force.keys().copied().collect();
    for (number, step) in plan.steps.iter().enumerate() {
        for pair in &step.drained {
            assert!(
                in_force.remove(&(pair.src, pair.dst)).is_some(),
                "{pair:?} was in force"
            );
        }
        for route in &step.changed {
            let known = in_force.insert((route.src, route.dst), route.clone());
            assert_ne!(known.as_ref(), Some(route), "it is new or other");
        }
        let mut after = BTreeSet::new();
        for route in in_force.values() {
            after.extend(turns(asked.new, route));
        }
        assert!(is_acyclic(&waits | &after), "step {number} of {plan:?}");
        check_certificate(&(&waits | &after), step);
        let stopped: BTreeSet<Pair> = step
            .drained
            .iter()
            .map(|pair| (pair.src, pair.dst))
            .collect();
        assert!(
            served
                .iter()
                .all(|pair| in_force.contains_key(pair) || stopped.contains(pair))
        );
        waits = after;
    }
    assert_eq!(in_force.len(), plan.routes);
    let reachable = Routes::plan(asked.new, asked.algorithm, asked.new_root).unwrap();
    let all: BTreeSet<Pair> = reachable
        .iter()
        .map(|route| (route.src, route.dst))
        .collect();
    assert_eq!(in_force.keys().copied().collect::<BTreeSet<_>>(), all);
    let hosts = asked.new.hosts().len();
    assert_eq!(
        plan.unreachable.len(),
        hosts * (hosts - 1).max(0) - all.len()
    );
    in_force
}

fn check_certificate(waits: &BTreeSet<(Hop, Hop)>, step: &wormcast_routing::change::Step) {
    use wormcast_routing::deadlock::Channel;
    let place: BTreeMap<Hop, usize> = (step.order.iter().enumerate())
        .map(|(place, channel)| match channel {
            Channel::Link {
                from,
                from_port,
                to,
                ..
            } => ((*from, from_port.get(), *to), place),
            other => panic!("{other:?} is not between switches"),
        })
        .collect();
    assert!(
        waits
            .iter()
            .all(|(held, needed)| place[held] < place[needed])
    );
}

fn failures(topology: &Topology) -> Vec<Damage> {
    let links = topology.links().iter().map(|link| Damage {
        links: [(link.a, link.a_port)].into(),
        ..Damage::default()
    });
    let switches = topology.switches().iter().map(|switch| Damage {
        switches: [switch.id].into(),
        ..Damage::default()
    });
    links.chain(switches).collect()
}

fn count(tally: &mut BTreeMap<(usize, Option<Method>), usize>, plan: &Plan) {
    let method = plan.steps.last().map(|step| step.method);
    *tally.entry((plan.steps.len(), method)).or_default() += 1;
}

fn small(switches: u16, sorted: bool) {
    let mut tally = BTreeMap::new();
    let mut back = BTreeMap::new();
    for old in connected_graphs(switches, sorted) {
        for damage in failures(&old) {
            let Ok(new) = old.without(&damage) else {
                continue;
            };
            let asked = change(&old, &new);
            let made = plan(&asked).unwrap();
            check(&asked, &made);
            count(&mut tally, &made);
            let asked = change(&new, &old);
            let made = plan(&asked).unwrap();
            check(&asked, &made);
            count(&mut back, &made);
        }
    }
    println!("{switches}: {tally:?}\n back {back:?}");
}

#[test]
fn every_failure_in_small_graphs() {
    for switches in 2..=5 {
        small(switches, false);
    }
}

fn roots(switches: u16) {
    let mut tally = BTreeMap::new();
    for old in connected_graphs(switches, false) {
        for root in old.switches() {
            let asked = Change {
                new_root: Some(root.id),
                ..change(&old, &old)
            };
            let made = plan(&asked).unwrap();
            check(&asked, &made);
            count(&mut tally, &made);
        }
    }
    println!("root {switches}: {tally:?}");
}

#[test]
fn change_of_root() {
    for switches in 2..=5 {
        roots(switches);
    }
}

#[test]
fn random() {
    for switches in [16, 64] {
        let mut tally = BTreeMap::new();
        for seed in 0..3 {
            let old = irregular(&Irregular::of_itb(switches, seed)).unwrap();
            for damage in failures(&old) {
                let Ok(new) = old.without(&damage) else {
                    continue;
                };
                let asked = change(&old, &new);
                let made = plan(&asked).unwrap();
                if switches < 64 {
                    check(&asked, &made);
                }
                count(&mut tally, &made);
            }
        }
        println!("{switches}: {tally:?}");
    }
}
