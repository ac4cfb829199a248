//! Each pair reachable by routes that are what their algorithm promises, and a certificate for
//! all of them that a second checker accepts.

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use wormcast_routing::routes::{Algorithm, Route, Routes};
use wormcast_routing::topology::Topology;
use wormcast_verify::deadlock::{Branching, ChannelGraph, Verdict, certificate};
use wormcast_wire::{HostId, PortId};

use crate::proofs::plain::{End, Lengths, Plain, is_up};

/// Pairs looked at in a network with chance.
const PAIRS_SOME: usize = 60;

/// All that the definitions say of one network.
struct Expected {
    plain: Plain,
    levels: Vec<u32>,
    minimal: Lengths,
    legal: Lengths,
    /// Least links plus cuts.
    crossings: Lengths,
    /// Least links, and of those least cuts: links · MANY + cuts.
    cuts: Lengths,
    in_tree: Vec<(usize, usize)>,
}

/// More than any path has cuts.
const MANY: u32 = 1000;

/// Checks every algorithm on one network: all pairs of hosts, or those that a seed chooses.
pub fn check(topology: &Topology, seed: Option<u64>) {
    let first = Routes::plan(topology, Algorithm::Osud, None).unwrap();
    let expected = Expected::new(topology, &first);
    let pairs = pairs(topology.hosts().len() as u16, seed);
    for algorithm in Algorithm::ALL {
        let routes = Routes::plan(topology, algorithm, None).unwrap();
        let mut graph = ChannelGraph::new(topology, Branching::Independent);
        graph.add_routes(&routes);
        let Verdict::DeadlockFree { order, .. } = graph.check() else {
            panic!("{algorithm:?}: {:?}", graph.check());
        };
        let mut all: Vec<Route> = Vec::new();
        for &(src, dst) in &pairs {
            let ways = routes.alternatives(src, dst).unwrap();
            assert!(!ways.is_empty(), "{algorithm:?} {src} {dst}");
            for way in ways {
                expected.check(algorithm, &way.route, (src, dst));
                all.push(way.route);
            }
        }
        certificate::check(topology, all, &order).unwrap_or_else(|violation| {
            panic!("{algorithm:?}: {violation}");
        });
    }
}

fn pairs(hosts: u16, seed: Option<u64>) -> Vec<(HostId, HostId)> {
    let all = |src| (0..hosts).map(move |dst| (src, dst));
    let pairs: Vec<(u16, u16)> = match seed {
        None => (0..hosts).flat_map(all).collect(),
        Some(seed) => {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut draw = || (rng.next_u32() % u32::from(hosts)) as u16;
            (0..PAIRS_SOME).map(|_| (draw(), draw())).collect()
        }
    };
    pairs
        .into_iter()
        .filter(|(src, dst)| src != dst)
        .map(|(src, dst)| (HostId(src), HostId(dst)))
        .collect()
}

impl Expected {
    fn new(topology: &Topology, routes: &Routes<'_>) -> Expected {
        let plain = Plain::new(topology);
        let levels = plain.levels(routes.updown().root(topology));
        let minimal: Lengths = (0..plain.switches)
            .map(|from| plain.lengths_from(from))
            .collect();
        let legal = plain.costs(&levels, None);
        let crossings = plain.costs(&levels, Some(1));
        let in_tree = routes
            .updown()
            .tree_links(topology)
            .iter()
            .map(|link| (usize::from(link.a.0), usize::from(link.b.0)))
            .collect();
        // With links so dear, no path with more of them is taken.
        let cuts = plain.weighed(&levels, MANY, 1);
        Expected {
            plain,
            levels,
            minimal,
            legal,
            crossings,
            cuts,
            in_tree,
        }
    }

    fn check(&self, algorithm: Algorithm, route: &Route, pair: (HostId, HostId)) {
        let path = self.walk(route, pair);
        let (from, to) = (path[0], path[path.len() - 1]);
        let (links, cuts) = (path.len() as u32 - 1, route.in_transit.len() as u32);
        let minimal = self.minimal[from][to];
        let context = || format!("{algorithm:?} {route:?} minimal {minimal}");
        match algorithm {
            Algorithm::Osud => {
                assert_eq!((links, cuts), (self.legal[from][to], 0), "{}", context())
            }
            Algorithm::TreeOnly => {
                assert_eq!(cuts, 0);
                let along = |pair: &[usize]| {
                    self.in_tree.contains(&(pair[0], pair[1]))
                        || self.in_tree.contains(&(pair[1], pair[0]))
                };
                assert!(path.windows(2).all(along), "{}", context());
            }
            Algorithm::Omit => {
                assert_eq!(links * MANY + cuts, self.cuts[from][to], "{}", context());
            }
            Algorithm::Rmit | Algorithm::Rrmit => assert_eq!(links, minimal, "{}", context()),
            Algorithm::Pit => {
                assert!(links == minimal || links == minimal + 1, "{}", context());
            }
            Algorithm::RrmitMin => {
                assert_eq!(links + cuts, self.crossings[from][to], "{}", context());
            }
        }
    }

    /// Follows the bytes of a route; checks hosts, switches, legality between cuts. Gives the
    /// switches, one where the worm is cut there.
    fn walk(&self, route: &Route, (src, dst): (HostId, HostId)) -> Vec<usize> {
        assert_eq!((route.src, route.dst), (src, dst));
        assert_eq!(route.switches.len(), route.ports.len());
        let mut path = vec![self.plain.hosts[usize::from(src.0)].0];
        let mut in_transit = route.in_transit.iter();
        let mut gone_down = false;
        let mut last = End::Nothing;
        for (place, (switch, port)) in route.switches.iter().zip(&route.ports).enumerate() {
            let at = path[path.len() - 1];
            assert_eq!(usize::from(switch.0), at, "{route:?}");
            assert!(PortId::new(*port).is_some());
            last = self.plain.ends[at][usize::from(*port)];
            match last {
                End::Nothing => panic!("{route:?} leads nowhere"),
                End::Switch(to) => {
                    let up = is_up(&self.levels, at, to);
                    assert!(!(up && gone_down), "illegal: {route:?}");
                    gone_down = !up;
                    path.push(to);
                }
                End::Host(host) if place + 1 < route.ports.len() => {
                    assert_eq!(in_transit.next(), Some(&HostId(host)), "{route:?}");
                    gone_down = false;
                }
                End::Host(_) => {}
            }
        }
        assert_eq!(last, End::Host(dst.0), "{route:?}");
        assert_eq!(in_transit.next(), None, "{route:?}");
        let mut seen = path.clone();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), path.len(), "a switch twice: {route:?}");
        path
    }
}
