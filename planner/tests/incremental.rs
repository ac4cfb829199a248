//! Links lost and back one by one, against paths and loads worked out anew each time.

#[path = "../../routing/tests/graphs/mod.rs"]
mod graphs;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use graphs::{connected_graphs, distances, follow};
use proptest::prelude::*;
use wormcast_planner::change::{ChangeError, Incremental};
use wormcast_routing::generate::{Irregular, from_spec, irregular};
use wormcast_routing::routes::{Algorithm, Route, RouteError, Routes};
use wormcast_routing::topology::{Link, Topology};
use wormcast_wire::SwitchId;

/// Directions of the whole topology, and the links that are there.
struct Plain<'t> {
    topology: &'t Topology,
    levels: BTreeMap<SwitchId, u32>,
    links: BTreeSet<Link>,
}

impl Plain<'_> {
    fn is_up(&self, from: SwitchId, to: SwitchId) -> bool {
        (self.levels[&to], to) < (self.levels[&from], from)
    }

    /// Links of the shortest legal path from every switch that has one.
    fn lengths_to(&self, dst: SwitchId) -> BTreeMap<SwitchId, u32> {
        let mut next: BTreeMap<SwitchId, Vec<SwitchId>> = BTreeMap::new();
        for link in &self.links {
            next.entry(link.a).or_default().push(link.b);
            next.entry(link.b).or_default().push(link.a);
        }
        // Backward from the end: first against links that go down, then against those up.
        let mut found = BTreeMap::from([((dst, false), 0), ((dst, true), 0)]);
        let mut queue = VecDeque::from([(dst, false), (dst, true)]);
        while let Some((at, climbs)) = queue.pop_front() {
            for &from in next.get(&at).into_iter().flatten() {
                let before: &[bool] = match (climbs, self.is_up(from, at)) {
                    (true, true) => &[true],
                    (false, false) => &[false, true],
                    _ => continue,
                };
                for &before in before {
                    if !found.contains_key(&(from, before)) {
                        found.insert((from, before), found[&(at, climbs)] + 1);
                        queue.push_back((from, before));
                    }
                }
            }
        }
        let lengths = found.into_iter().filter(|((_, climbs), _)| *climbs);
        lengths.map(|((at, _), length)| (at, length)).collect()
    }

    fn check(&self, kept: &Incremental<'_>) {
        let mut load: BTreeMap<(SwitchId, u8), u64> = BTreeMap::new();
        let there: BTreeSet<Link> = kept.links().collect();
        assert_eq!(there, self.links);
        let ends: BTreeSet<(SwitchId, u8)> = (self.links.iter())
            .flat_map(|link| [(link.a, link.a_port.get()), (link.b, link.b_port.get())])
            .collect();
        for dst in self.topology.hosts() {
            let lengths = self.lengths_to(dst.switch);
            for src in self.topology.hosts().iter().filter(|src| src.id != dst.id) {
                let between = kept.links_between(src.switch, dst.switch).unwrap();
                assert_eq!(between.map(u32::from), lengths.get(&src.switch).copied());
                match kept.route(src.id, dst.id) {
                    Ok(route) => {
                        follow(self.topology, &route);
                        assert_eq!(route.switches.len() as u32, lengths[&src.switch] + 1);
                        let up: Vec<bool> = (route.switches.windows(2))
                            .map(|pair| self.is_up(pair[0], pair[1]))
                            .collect();
                        assert!(up.windows(2).all(|pair| pair[0] || !pair[1]), "{route:?}");
                        let hops = route
                            .switches
                            .iter()
                            .copied()
                            .zip(route.ports.iter().copied());
                        for hop in hops.take(route.ports.len() - 1) {
                            assert!(ends.contains(&hop), "{route:?} takes a lost link");
                            *load.entry(hop).or_default() += 1;
                        }
                    }
                    Err(RouteError::Unreachable { .. }) => {
                        assert!(!lengths.contains_key(&src.switch));
                    }
                    Err(other) => panic!("{other}"),
                }
            }
        }
        assert_eq!(kept.load_max(), load.into_values().max().unwrap_or(0));
    }
}

fn all_routes(topology: &Topology, kept: &Incremental<'_>) -> Vec<Option<Route>> {
    let hosts = topology.hosts();
    (hosts.iter())
        .flat_map(|src| hosts.iter().map(move |dst| kept.route(src.id, dst.id).ok()))
        .collect()
}

/// Loses and regains the links that `picks` name in turn, and checks after each.
fn toggle(topology: &Topology, picks: impl IntoIterator<Item = usize>) {
    let routes = Routes::plan(topology, Algorithm::Osud, None).unwrap();
    let mut kept = Incremental::new(&routes).unwrap();
    let mut plain = Plain {
        topology,
        levels: distances(topology, routes.updown().root(topology)),
        links: topology.links().iter().copied().collect(),
    };
    plain.check(&kept);
    let planned: Vec<Option<Route>> = all_routes(topology, &kept);
    assert_eq!(
        planned.iter().flatten().cloned().collect::<Vec<_>>(),
        routes.iter().collect::<Vec<_>>()
    );
    for pick in picks {
        let link = topology.links()[pick % topology.links().len()];
        let before = all_routes(topology, &kept);
        let was_there = plain.links.remove(&link);
        let touched = if was_there {
            kept.lose(link.a, link.a_port)
        } else {
            plain.links.insert(link);
            kept.gain(link.b, link.b_port)
        };
        let touched = touched.unwrap();
        plain.check(&kept);
        let entries: BTreeSet<_> = touched.entries.iter().copied().collect();
        assert_eq!(entries.len(), touched.entries.len(), "each entry once");
        assert!(if was_there {
            touched.found.is_empty()
        } else {
            touched.lost.is_empty()
        });
        let end = |host| topology.host(host).unwrap().switch;
        for (was, is) in before.into_iter().zip(all_routes(topology, &kept)) {
            match (was, is) {
                (Some(was), Some(is)) if was != is => {
                    let mut both = was.switches.iter().zip(&was.ports).zip(&is.ports);
                    let ((at, _), _) = both.find(|((_, was), is)| was != is).unwrap();
                    assert!(entries.contains(&(end(was.dst), *at)), "{was:?} {is:?}");
                }
                (Some(was), None) => {
                    assert!(touched.lost.contains(&(end(was.src), end(was.dst))));
                }
                (None, Some(is)) => {
                    assert!(touched.found.contains(&(end(is.src), end(is.dst))));
                }
                _ => {}
            }
        }
    }
}

#[test]
fn every_link_of_every_small_graph() {
    for switches in 2..=5 {
        for topology in connected_graphs(switches, switches == 5) {
            let links = topology.links().len();
            // Each alone, then all of them one after the other, and back in that order.
            toggle(&topology, (0..links).flat_map(|link| [link, link]));
            toggle(&topology, (0..links).chain(0..links));
        }
    }
}

#[test]
fn regular_networks() {
    for spec in [
        "torus:4",
        "fat-tree:4",
        "mesh:4x3",
        "ring:9",
        "full-mesh:6",
        "line:5:2",
    ] {
        let topology = from_spec(spec).unwrap();
        toggle(&topology, [0, 3, 5, 3, 1, 0, 5, 1, 4, 2]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn random_networks(
        switches in 4usize..24,
        links in 2usize..6,
        seed in any::<u64>(),
        picks in prop::collection::vec(any::<usize>(), 1..14),
    ) {
        let parameters = Irregular { switches, ports: 8, hosts: 2, links, seed };
        toggle(&irregular(&parameters).unwrap(), picks);
    }
}

#[test]
fn a_switch_goes_and_comes_back() {
    let topology = irregular(&Irregular::of_itb(16, 3)).unwrap();
    let routes = Routes::plan(&topology, Algorithm::Osud, None).unwrap();
    let mut kept = Incremental::new(&routes).unwrap();
    let levels = distances(&topology, routes.updown().root(&topology));
    let all: BTreeSet<Link> = topology.links().iter().copied().collect();
    for switch in topology.switches() {
        kept.lose_switch(switch.id).unwrap();
        let links: BTreeSet<Link> = (all.iter().copied())
            .filter(|link| link.a != switch.id && link.b != switch.id)
            .collect();
        Plain {
            topology: &topology,
            levels: levels.clone(),
            links,
        }
        .check(&kept);
        kept.gain_switch(switch.id).unwrap();
        Plain {
            topology: &topology,
            levels: levels.clone(),
            links: all.clone(),
        }
        .check(&kept);
    }
}

#[test]
fn what_is_refused() {
    let topology = from_spec("ring:4").unwrap();
    let link = topology.links()[0];
    let tree = Routes::plan(&topology, Algorithm::TreeOnly, None).unwrap();
    assert!(matches!(
        Incremental::new(&tree),
        Err(ChangeError::Algorithm { .. })
    ));
    let routes = Routes::plan(&topology, Algorithm::Osud, None).unwrap();
    let mut kept = Incremental::new(&routes).unwrap();
    let said = |error: Result<_, ChangeError>| {
        error
            .map(|_: wormcast_planner::change::Touched| ())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        said(kept.gain(link.a, link.a_port)),
        format!("link at {}:{} is there already", link.a, link.a_port)
    );
    kept.lose(link.a, link.a_port).unwrap();
    assert_eq!(
        said(kept.lose(link.b, link.b_port)),
        format!("link at {}:{} is lost already", link.b, link.b_port)
    );
    assert_eq!(
        said(kept.lose(SwitchId(9), link.a_port)),
        "topology: there is no switch 9; switches are 0, 1, 2, 3"
    );
    let host = topology.hosts()[0];
    assert_eq!(
        said(kept.lose(host.switch, host.port)),
        "there is no link at 0:0; ports of switch 0 with links to switches are 1, 2"
    );
}
