//! How few steps there can be: every sequence through a family of routings, on small graphs.
//!
//! The family: OSUD along every order of the switches, and the paths of every spanning
//! tree.

use std::collections::BTreeSet;

use super::channels::Channels;
use super::dependencies::Dependencies;
use super::paths::{Paths, Side};
use super::trees::Tree;
use super::{Change, Method, plan};
use crate::order::switch_order::Order;
use wormcast_routing::routes::{Algorithm, Routes};
use wormcast_routing::topology::{Host, Link, Parts, Switch, Topology};
use wormcast_wire::{HostId, PortId, SwitchId};

/// Every connected graph of so many switches, one host each.
fn graphs(switches: u16) -> impl Iterator<Item = Topology> {
    let pairs: Vec<(u16, u16)> = (0..switches)
        .flat_map(|a| (a + 1..switches).map(move |b| (a, b)))
        .collect();
    (0u32..1 << pairs.len()).filter_map(move |chosen| {
        let mut parts = Parts::default();
        let port = |other: u16| PortId::new(other as u8 + 1).unwrap();
        for id in 0..switches {
            parts.switches.push(Switch {
                id: SwitchId(id),
                ports: switches + 1,
            });
            let (switch, port) = (SwitchId(id), PortId::new(0).unwrap());
            parts.hosts.push(Host {
                id: HostId(id),
                switch,
                port,
                transit: true,
            });
        }
        for (bit, &(a, b)) in pairs.iter().enumerate() {
            if chosen >> bit & 1 == 1 {
                let (a_port, b_port) = (port(b), port(a));
                parts.links.push(Link {
                    a: SwitchId(a),
                    a_port,
                    b: SwitchId(b),
                    b_port,
                });
            }
        }
        Topology::new(parts).ok()
    })
}

fn permutations(count: u32) -> Vec<Vec<u32>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for shorter in permutations(count - 1) {
        for place in 0..count as usize {
            let mut longer = shorter.clone();
            longer.insert(place, count - 1);
            all.push(longer);
        }
    }
    all
}

/// What a routing makes worms hold and need; routings with the same are the same here.
type Turns = BTreeSet<(u32, u32)>;

fn turns(channels: &Channels, paths: &Paths) -> Turns {
    paths
        .pairs()
        .filter_map(|(from, to)| paths.get(from, to))
        .flat_map(|path| Paths::turns(channels, path, false))
        .collect()
}

fn family(channels: &Channels, topology: &Topology, needed: &Paths) -> Vec<Turns> {
    let mut family = BTreeSet::new();
    for ranks in permutations(topology.switches().len() as u32) {
        let mut switches: Vec<SwitchId> = topology.switches().iter().map(|s| s.id).collect();
        switches.sort_by_key(|switch| ranks[switch.0 as usize]);
        let updown = switches.into_iter().collect::<Order>().direct(topology);
        let routes = Routes::plan_along(topology, Algorithm::Osud, updown).unwrap();
        let paths = Paths::of_routes(channels, Side::New, &routes);
        if paths
            .pairs()
            .all(|(from, to)| paths.get(from, to).is_some())
        {
            family.insert(turns(channels, &paths));
        }
    }
    for tree in Tree::all(channels).expect("few links") {
        family.insert(turns(channels, &tree.paths(channels, needed)));
    }
    family.into_iter().collect()
}

fn is_safe(channels: &Channels, before: &Turns, after: &Turns) -> bool {
    let mut graph = Dependencies::new(channels.len());
    before
        .union(after)
        .all(|&(held, needed)| graph.add(held, needed))
}

/// Fewest steps from one to the other through the family; `None` if it takes more than
/// `most`.
fn fewest(
    channels: &Channels,
    family: &[Turns],
    start: &Turns,
    end: &Turns,
    most: usize,
) -> Option<usize> {
    let mut reached = vec![start.clone()];
    let mut left: Vec<&Turns> = family.iter().collect();
    for steps in 1..=most {
        if reached.iter().any(|before| is_safe(channels, before, end)) {
            return Some(steps);
        }
        let (next, rest): (Vec<&Turns>, Vec<&Turns>) = left.into_iter().partition(|after| {
            reached
                .iter()
                .any(|before| is_safe(channels, before, after))
        });
        reached = next.into_iter().cloned().collect();
        left = rest;
    }
    None
}

#[test]
fn no_sequence_of_the_family_takes_fewer_steps_to_another_root() {
    let (mut longer, mut compared) = (Vec::new(), 0);
    for switches in 3..=5 {
        for topology in graphs(switches) {
            let channels = Channels::new(&topology, &topology, false);
            let of_root = |root| {
                let routes = Routes::plan(&topology, Algorithm::Osud, root).unwrap();
                Paths::of_routes(&channels, Side::New, &routes)
            };
            let old = of_root(None);
            let start = turns(&channels, &old);
            let mut members = None;
            for root in topology.switches() {
                let made = plan(&Change {
                    old: &topology,
                    new: &topology,
                    algorithm: Algorithm::Osud,
                    root: None,
                    routes: None,
                    new_root: Some(root.id),
                    planned: false,
                })
                .unwrap();
                assert!(
                    made.steps.iter().all(|step| step.method != Method::Drain),
                    "{topology:?} {root:?}"
                );
                if made.steps.len() < 2 {
                    continue;
                }
                compared += 1;
                let end = turns(&channels, &of_root(Some(root.id)));
                let members = members.get_or_insert_with(|| family(&channels, &topology, &old));
                let best = fewest(&channels, members, &start, &end, made.steps.len());
                if best.is_some_and(|best| best < made.steps.len()) {
                    longer.push((topology.to_json(), root.id, made.steps.len(), best));
                }
            }
        }
    }
    assert!(compared > 300, "{compared} changes take several steps");
    assert!(longer.is_empty(), "{longer:?}");
}
