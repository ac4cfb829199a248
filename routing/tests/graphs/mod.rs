//! Small graphs, all of them, and up\*/down\* worked out once more in the plainest way.
#![allow(dead_code)] // not every test file uses all of it

pub mod all_paths;
pub mod tree_walk;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use wormcast_routing::routes::Route;
use wormcast_routing::topology::{Attachment, Host, Link, Parts, Switch, Topology};
use wormcast_wire::{HostId, PortId, SwitchId};

/// Every connected graph of so many switches, one host each. With `sorted`, only those
/// whose degrees do not ascend with the ids: every graph has such a numbering, but not
/// every numbering is tried.
pub fn connected_graphs(switches: u16, sorted: bool) -> impl Iterator<Item = Topology> {
    let pairs: Vec<(u16, u16)> = (0..switches)
        .flat_map(|a| (a + 1..switches).map(move |b| (a, b)))
        .collect();
    (0u32..1 << pairs.len()).filter_map(move |chosen| {
        let links: Vec<(u16, u16)> = pairs
            .iter()
            .enumerate()
            .filter(|(bit, _)| chosen >> bit & 1 == 1)
            .map(|(_, pair)| *pair)
            .collect();
        let degree = |id: u16| links.iter().filter(|(a, b)| *a == id || *b == id).count();
        if sorted && (1..switches).any(|id| degree(id - 1) < degree(id)) {
            return None;
        }
        Topology::new(wire(switches, 1, &links)).ok()
    })
}

/// A topology of these links; hosts on the lowest ports.
pub fn wire(switches: u16, hosts: u16, links: &[(u16, u16)]) -> Parts {
    let mut parts = Parts::default();
    let mut free = vec![0u8; usize::from(switches)];
    let mut take = |switch: u16| {
        let port = PortId::new(free[usize::from(switch)]).unwrap();
        free[usize::from(switch)] += 1;
        port
    };
    for id in 0..switches {
        parts.switches.push(Switch {
            id: SwitchId(id),
            ports: 16,
        });
        for host in 0..hosts {
            let (id, port) = (HostId(id * hosts + host), take(id));
            parts.hosts.push(Host {
                id,
                switch: SwitchId(id.0 / hosts),
                port,
                transit: true,
            });
        }
    }
    for &(a, b) in links {
        let (a_port, b_port) = (take(a), take(b));
        parts.links.push(Link {
            a: SwitchId(a),
            a_port,
            b: SwitchId(b),
            b_port,
        });
    }
    parts
}

pub fn neighbours(topology: &Topology) -> BTreeMap<SwitchId, BTreeSet<SwitchId>> {
    let mut all: BTreeMap<_, BTreeSet<_>> = topology
        .switches()
        .iter()
        .map(|switch| (switch.id, BTreeSet::new()))
        .collect();
    for link in topology.links() {
        all.get_mut(&link.a).unwrap().insert(link.b);
        all.get_mut(&link.b).unwrap().insert(link.a);
    }
    all
}

/// Links from one switch to every other that can be reached.
pub fn distances(topology: &Topology, from: SwitchId) -> BTreeMap<SwitchId, u32> {
    let neighbours = neighbours(topology);
    let mut found = BTreeMap::from([(from, 0)]);
    let mut queue = VecDeque::from([from]);
    while let Some(at) = queue.pop_front() {
        for &to in &neighbours[&at] {
            if !found.contains_key(&to) {
                found.insert(to, found[&at] + 1);
                queue.push_back(to);
            }
        }
    }
    found
}

/// Up\*/down\* from the definitions of WORM §2.
pub struct Plain {
    pub levels: BTreeMap<SwitchId, u32>,
    neighbours: BTreeMap<SwitchId, BTreeSet<SwitchId>>,
}

impl Plain {
    pub fn new(topology: &Topology, root: SwitchId) -> Plain {
        Plain {
            levels: distances(topology, root),
            neighbours: neighbours(topology),
        }
    }

    pub fn is_up(&self, from: SwitchId, to: SwitchId) -> bool {
        (self.levels[&to], to) < (self.levels[&from], from)
    }

    pub fn is_legal(&self, switches: &[SwitchId]) -> bool {
        let up: Vec<bool> = switches
            .windows(2)
            .map(|pair| self.is_up(pair[0], pair[1]))
            .collect();
        !up.windows(2).any(|pair| !pair[0] && pair[1])
    }

    /// Links of the shortest legal paths from one switch to all.
    pub fn shortest_to_all(&self, from: SwitchId) -> BTreeMap<SwitchId, u32> {
        let mut found = BTreeMap::from([((from, true), 0)]);
        let mut queue = VecDeque::from([(from, true)]);
        let mut shortest = BTreeMap::new();
        while let Some((at, may_go_up)) = queue.pop_front() {
            let length = found[&(at, may_go_up)];
            shortest.entry(at).or_insert(length);
            for &next in &self.neighbours[&at] {
                let up = self.is_up(at, next);
                if (may_go_up || !up) && !found.contains_key(&(next, up)) {
                    found.insert((next, up), length + 1);
                    queue.push_back((next, up));
                }
            }
        }
        shortest
    }

    /// Links of the shortest legal path.
    pub fn shortest(&self, from: SwitchId, to: SwitchId) -> u32 {
        let mut found = BTreeMap::from([((from, true), 0)]);
        let mut queue = VecDeque::from([(from, true)]);
        while let Some((at, may_go_up)) = queue.pop_front() {
            if at == to {
                return found[&(at, may_go_up)];
            }
            for &next in &self.neighbours[&at] {
                let up = self.is_up(at, next);
                if up && !may_go_up {
                    continue;
                }
                let length = found[&(at, may_go_up)] + 1;
                found.entry((next, up)).or_insert_with(|| {
                    queue.push_back((next, up));
                    length
                });
            }
        }
        panic!("{from} cannot reach {to}");
    }
}

/// Follows the ports of a route, over its in-transit hosts; panics if they do not lead
/// where the route says.
pub fn follow(topology: &Topology, route: &Route) {
    assert_eq!(route.switches.len(), route.ports.len());
    let mut at = Attachment::Switch(
        topology.host(route.src).unwrap().switch,
        PortId::new(0).unwrap(),
    );
    let mut in_transit = route.in_transit.iter();
    for (switch, port) in route.switches.iter().zip(&route.ports) {
        let here = match at {
            Attachment::Switch(here, _) => here,
            Attachment::Host(host) => {
                assert_eq!(
                    in_transit.next(),
                    Some(&host),
                    "{route:?} goes on after a host"
                );
                topology.host(host).unwrap().switch
            }
        };
        assert_eq!(here, *switch);
        at = topology
            .attachment(here, PortId::new(*port).unwrap())
            .unwrap();
    }
    assert_eq!(at, Attachment::Host(route.dst));
    assert_eq!(in_transit.next(), None, "{route:?}");
}

/// Switches of each piece of a route between its in-transit hosts: a switch named twice
/// in a row is where one takes the worm in.
pub fn pieces(route: &Route) -> Vec<Vec<SwitchId>> {
    let pieces: Vec<Vec<SwitchId>> = route
        .switches
        .chunk_by(|a, b| a != b)
        .map(<[SwitchId]>::to_vec)
        .collect();
    assert_eq!(pieces.len(), route.in_transit.len() + 1, "{route:?}");
    pieces
}

/// Switches that a route passes, those at in-transit hosts once.
pub fn passed(route: &Route) -> Vec<SwitchId> {
    let mut passed = route.switches.clone();
    passed.dedup();
    passed
}

/// The port paths along these switches, to the host on the last.
pub fn path(topology: &Topology, switches: &[u16]) -> Vec<u8> {
    let port_to = |from: u16, to: u16| {
        topology
            .links()
            .iter()
            .find_map(|link| match (link.a.0, link.b.0) {
                (a, b) if (a, b) == (from, to) => Some(link.a_port),
                (a, b) if (b, a) == (from, to) => Some(link.b_port),
                _ => None,
            })
            .unwrap()
            .get()
    };
    switches
        .windows(2)
        .map(|pair| port_to(pair[0], pair[1]))
        .chain([0])
        .collect()
}

/// The route along these switches, from the host on the first to the host on the last;
/// host n is on port 0 of switch n.
pub fn route(topology: &Topology, switches: &[u16]) -> Route {
    Route {
        src: HostId(switches[0]),
        dst: HostId(*switches.last().unwrap()),
        switches: switches.iter().map(|&id| SwitchId(id)).collect(),
        ports: path(topology, switches),
        in_transit: vec![],
    }
}

/// A path of minimal length, always the same one.
pub fn minimal(topology: &Topology, src: u16, dst: u16) -> Route {
    let to = distances(topology, SwitchId(dst));
    let neighbours = neighbours(topology);
    let mut switches = vec![src];
    while *switches.last().unwrap() != dst {
        let at = SwitchId(*switches.last().unwrap());
        switches.push(
            neighbours[&at]
                .iter()
                .find(|next| to[*next] + 1 == to[&at])
                .unwrap()
                .0,
        );
    }
    route(topology, &switches)
}

/// Parts of a topology, to take something away or add to it.
pub fn parts_of(topology: &Topology) -> Parts {
    Parts {
        switches: topology.switches().to_vec(),
        hosts: topology.hosts().to_vec(),
        links: topology.links().to_vec(),
        grid: None,
    }
}

/// Adds links on the lowest free ports; [`wire`] has put one host on port 0 of each.
pub fn join(parts: &mut Parts, links: impl Iterator<Item = (u16, u16)>) {
    let mut used: BTreeMap<u16, u8> = BTreeMap::new();
    let mut take = |switch: u16| {
        let used = used.entry(switch).or_default();
        *used += 1;
        PortId::new(*used).unwrap()
    };
    for (a, b) in links {
        parts.links.push(Link {
            a: SwitchId(a),
            a_port: take(a),
            b: SwitchId(b),
            b_port: take(b),
        });
    }
}
