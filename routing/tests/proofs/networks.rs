//! Networks to prove things on.

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use wormcast_routing::generate::{Irregular, irregular};
use wormcast_routing::ids::{HostId, PortId, SwitchId};
use wormcast_routing::topology::{Host, Link, Parts, Switch, Topology};

/// Spreads neighbouring numbers over the parts a run is cut into.
pub const ODD_NUMBERS: u64 = 1;

/// Every connected graph of so many switches, one host each, and its number. With `sorted`, only
/// those whose degrees do not ascend with the ids: every graph has such a numbering, but not
/// every numbering is tried.
pub fn connected_graphs(switches: u16, sorted: bool) -> impl Iterator<Item = (u64, Topology)> {
    let pairs: Vec<(u16, u16)> = (0..switches)
        .flat_map(|a| (a + 1..switches).map(move |b| (a, b)))
        .collect();
    (0u64..1 << pairs.len()).filter_map(move |chosen| {
        let links: Vec<(u16, u16)> = pairs
            .iter()
            .enumerate()
            .filter(|(bit, _)| chosen >> bit & 1 == 1)
            .map(|(_, pair)| *pair)
            .collect();
        let mut degree = [0u8; 16];
        for (a, b) in &links {
            degree[usize::from(*a)] += 1;
            degree[usize::from(*b)] += 1;
        }
        let descending = degree[..usize::from(switches)].is_sorted_by(|a, b| a >= b);
        if (sorted && !descending) || !is_connected(switches, &links) {
            return None;
        }
        let topology = Topology::new(wire(switches, &links)).expect("connected");
        Some((chosen, topology))
    })
}

/// Networks by seed: from 2 to 256 switches, small ones more often; from sparse to dense.
pub fn random_networks(seeds: std::ops::Range<u64>) -> impl Iterator<Item = (u64, Topology)> {
    seeds.map(|seed| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        // Sizes spread evenly by their logarithm, one in fifty of up to 256.
        let most = if seed % 50 == 0 { 8 } else { 5 };
        let scale = 1 + rng.next_u32() % most;
        let switches = (1 << scale) + (rng.next_u32() as usize % (1 << scale));
        let switches = switches.min(256);
        // A ring of more than 64 could not be crossed by a worm.
        let least = if switches > 64 { 3 } else { 2 };
        let links = least + rng.next_u32() as usize % 5;
        let hosts = 1 + rng.next_u32() as usize % 3;
        let parameters = Irregular {
            switches,
            ports: 16,
            hosts,
            links,
            seed,
        };
        (seed, irregular(&parameters).expect("within bounds"))
    })
}

fn is_connected(switches: u16, links: &[(u16, u16)]) -> bool {
    let mut reached = 1u32;
    loop {
        let before = reached;
        for &(a, b) in links {
            if reached >> a & 1 == 1 || reached >> b & 1 == 1 {
                reached |= 1 << a | 1 << b;
            }
        }
        if reached == before {
            return reached == (1 << switches) - 1;
        }
    }
}

/// Host n on port 0 of switch n, links on the ports that follow.
fn wire(switches: u16, links: &[(u16, u16)]) -> Parts {
    let port = |number| PortId::new(number).expect("few");
    let mut free = vec![1u8; usize::from(switches)];
    let mut take = |switch: u16| {
        free[usize::from(switch)] += 1;
        port(free[usize::from(switch)] - 1)
    };
    Parts {
        switches: (0..switches)
            .map(|id| Switch {
                id: SwitchId(id),
                ports: 16,
            })
            .collect(),
        hosts: (0..switches)
            .map(|id| Host {
                id: HostId(id),
                switch: SwitchId(id),
                port: port(0),
            })
            .collect(),
        links: links
            .iter()
            .map(|&(a, b)| Link {
                a: SwitchId(a),
                a_port: take(a),
                b: SwitchId(b),
                b_port: take(b),
            })
            .collect(),
        grid: None,
    }
}
