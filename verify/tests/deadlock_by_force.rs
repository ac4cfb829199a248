//! The deadlock check against trying every set of waits on small networks.

use crate::graphs;

use graphs::{connected_graphs, minimal};
use proptest::prelude::*;
use wormcast_routing::routes::{Algorithm, Route, Routes};
use wormcast_routing::topology::{Link, Topology};
use wormcast_verify::deadlock::{Branching, ChannelGraph, Verdict};
use wormcast_wire::tree_route::encode_tree;
use wormcast_wire::{HostId, PortId, SwitchId};

/// Whether each worm of a closed chain of (worm, place it waits at) can hold what the one
/// before it waits for: a channel is held by one worm, and a worm that branches holds its
/// way from where the two part.
fn all_can_hold(worms: &[Vec<(Link, usize)>], coupled: bool, chain: &[(usize, usize)]) -> bool {
    let mut taken: Vec<Link> = Vec::new();
    for (number, &(worm, waits)) in chain.iter().enumerate() {
        let (other, place) = chain[(number + chain.len() - 1) % chain.len()];
        let channels = &worms[worm];
        let wanted = worms[other][place].0;
        let held = channels
            .iter()
            .position(|(link, _)| *link == wanted)
            .unwrap();
        let way = |mut at: usize| {
            let mut way = vec![at];
            while at > 0 {
                at = channels[at].1;
                way.push(at);
            }
            way
        };
        let (to_held, to_wait) = (way(held), way(channels[waits].1));
        let parting = *to_held.iter().find(|at| to_wait.contains(at)).unwrap();
        let mut holds: Vec<usize> = vec![held];
        let branches = channels.iter().enumerate().skip(1).any(|(at, (_, after))| {
            channels
                .iter()
                .skip(at + 1)
                .any(|(_, other)| other == after)
        });
        if coupled && branches {
            holds.extend(to_held.into_iter().chain(to_wait));
            holds.retain(|&at| way(at).contains(&parting));
        }
        holds.sort_unstable();
        holds.dedup();
        for at in holds {
            if taken.contains(&channels[at].0) {
                return false;
            }
            taken.push(channels[at].0);
        }
    }
    true
}

/// Whether worms can deadlock, by trying every set of waits of every set of worms.
/// A worm is its channels with parents; it waits for one and holds those it may.
fn deadlocks_by_force(worms: &[Vec<(Link, usize)>], coupled: bool) -> bool {
    // (worm, place it waits at) -> (worm that can hold that channel, its place) …
    fn search(
        worms: &[Vec<(Link, usize)>],
        coupled: bool,
        chain: &mut Vec<(usize, usize)>,
    ) -> bool {
        let (worm, place) = *chain.last().unwrap();
        let wanted = worms[worm][place].0;
        for (other, channels) in worms.iter().enumerate() {
            let Some(held) = channels.iter().position(|(link, _)| *link == wanted) else {
                continue;
            };
            let closes = other == chain[0].0;
            if !closes && chain.iter().any(|(known, _)| *known == other) || other == worm {
                continue;
            }
            for waits in 1..channels.len() {
                if closes && waits != chain[0].1 {
                    continue;
                }
                let upward = |mut at: usize, to: usize| {
                    while at > to {
                        at = channels[at].1;
                    }
                    at == to
                };
                let may = if coupled {
                    !upward(held, waits)
                } else {
                    held != waits && upward(waits, held)
                };
                if may {
                    if closes {
                        if all_can_hold(worms, coupled, chain) {
                            return true;
                        }
                        continue;
                    }
                    chain.push((other, waits));
                    if search(worms, coupled, chain) {
                        return true;
                    }
                    chain.pop();
                }
            }
        }
        false
    }
    (0..worms.len()).any(|worm| {
        (1..worms[worm].len()).any(|place| search(worms, coupled, &mut vec![(worm, place)]))
    })
}

/// Channels of a set of paths from one source, parents first.
fn channels_of(topology: &Topology, src: HostId, paths: &[Route]) -> Vec<(Link, usize)> {
    let home = topology.host(src).unwrap();
    let port = |number: u8| PortId::new(number).unwrap();
    // Injection and ejection are links to a switch that is not there.
    let outside = SwitchId(u16::MAX);
    let mut all = vec![(
        Link {
            a: outside,
            a_port: port(0),
            b: home.switch,
            b_port: home.port,
        },
        0,
    )];
    for route in paths {
        let mut parent = 0;
        for (at, byte) in route.switches.iter().zip(&route.ports) {
            let link = Link {
                a: *at,
                a_port: port(*byte),
                b: outside,
                b_port: port(0),
            };
            parent = match all.iter().position(|(known, _)| *known == link) {
                Some(place) => place,
                None => {
                    all.push((link, parent));
                    all.len() - 1
                }
            };
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn agrees_with_trying_everything(
        graph in 0usize..728,
        worms in prop::collection::btree_map(0u16..5, prop::collection::btree_set(0u16..5, 1..4), 1..5),
        coupled in any::<bool>(),
        on_tree in any::<bool>(),
    ) {
        // Paths of minimal length, legal or not, so that there is something to find.
        let topology = connected_graphs(5, false).nth(graph).unwrap();
        let branching = if coupled { Branching::Coupled } else { Branching::Independent };
        let mut checked = ChannelGraph::new(&topology, branching);
        let mut by_force = Vec::new();
        let spanning = Routes::plan(&topology, Algorithm::TreeOnly, None).unwrap();
        for (src, members) in worms {
            let paths: Vec<Route> = members
                .iter()
                .filter(|member| **member != src)
                .map(|&dst| if on_tree { spanning.route(HostId(src), HostId(dst)).unwrap() } else { minimal(&topology, src, dst) })
                .collect();
            if paths.len() == 1 {
                checked.add_route(&paths[0]).unwrap();
            } else if !paths.is_empty() {
                let named: Vec<_> = paths.iter().map(|route| (route.dst, &route.ports)).collect();
                checked.add_tree(HostId(src), &encode_tree(&named).unwrap()[0].bytes).unwrap();
            } else {
                continue;
            }
            by_force.push(channels_of(&topology, HostId(src), &paths));
        }
        match checked.check() {
            Verdict::DeadlockFree { .. } => prop_assert!(!deadlocks_by_force(&by_force, coupled)),
            Verdict::Deadlock { proven: true, .. } => prop_assert!(deadlocks_by_force(&by_force, coupled)),
            Verdict::Deadlock { .. } => {}
        }
    }
}
