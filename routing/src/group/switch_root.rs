//! The root that multicast under guard B loads least.

use crate::topology::Topology;
use crate::updown::UpDown;
use wormcast_wire::SwitchId;

/// Root under which a multicast of `members` random hosts, sent by a random host, crosses
/// the fewest links on average (WORM §3, scheme B), in the part of the fabric with the
/// most hosts; ties to the lowest id. For each switch as the root: the mean level of
/// the hosts, and for each link of its tree the chance that a member hangs below it. Under
/// guard B every multicast climbs to the root, so that the root of least eccentricity,
/// which suits unicast, may be far from where the hosts are.
///
/// Takes O(switches · links) and the memory of one tree.
pub fn multicast_root(topology: &Topology, members: u32) -> SwitchId {
    let mut hosts_in = vec![0u64; topology.components()];
    for switch in 0..topology.switch_count() as u32 {
        let part = topology.component_of(switch) as usize;
        hosts_in[part] += topology.hosts_at(switch).len() as u64;
    }
    let part = (0..hosts_in.len())
        .min_by_key(|&part| (std::cmp::Reverse(hosts_in[part]), part))
        .unwrap_or(0);
    let mut tree = Tree::default();
    let mut best = (f64::INFINITY, 0);
    for root in 0..topology.switch_count() as u32 {
        if topology.component_of(root) as usize == part {
            let links = tree.mean_links(topology, root, hosts_in[part], members);
            if links < best.0 {
                best = (links, root);
            }
        }
    }
    topology.switch_id(best.1)
}

/// Mean links between switches that such a multicast crosses with this up\*/down\* tree.
pub fn mean_links_by_root(topology: &Topology, updown: &UpDown, members: u32) -> f64 {
    let root = updown.breadth_first()[0];
    let part = topology.component_of(root);
    let hosts = updown
        .breadth_first()
        .iter()
        .filter(|switch| topology.component_of(**switch) == part)
        .map(|&switch| topology.hosts_at(switch).len() as u64)
        .sum();
    Tree::default().mean_links(topology, root, hosts, members)
}

#[derive(Default)]
struct Tree {
    level: Vec<u32>,
    parent: Vec<u32>,
    order: Vec<u32>,
    below: Vec<u64>,
}

impl Tree {
    /// Grows the tree that [`UpDown`] has with this root: of the neighbours one level up,
    /// the one with the lowest id is the parent.
    fn mean_links(&mut self, topology: &Topology, root: u32, hosts: u64, members: u32) -> f64 {
        let switches = topology.switch_count();
        self.level.clear();
        self.level.resize(switches, u32::MAX);
        self.parent.clear();
        self.parent.resize(switches, u32::MAX);
        self.below.clear();
        self.below.resize(switches, 0);
        self.order.clear();
        self.level[root as usize] = 0;
        self.order.push(root);
        let mut next = 0;
        while let Some(&at) = self.order.get(next) {
            next += 1;
            for arc in topology.arcs_of(at) {
                let to = arc.to as usize;
                if self.level[to] == u32::MAX {
                    self.level[to] = self.level[at as usize] + 1;
                    self.order.push(arc.to);
                }
                if self.level[to] == self.level[at as usize] + 1 {
                    self.parent[to] = self.parent[to].min(at);
                }
            }
        }
        let (mut climbed, mut below) = (0.0, 0.0);
        for &switch in self.order.iter().rev() {
            let at = switch as usize;
            let here = topology.hosts_at(switch).len() as u64;
            climbed += (here * u64::from(self.level[at])) as f64;
            self.below[at] += here;
            if switch != root {
                self.below[self.parent[at] as usize] += self.below[at];
                let missed = 1.0 - self.below[at] as f64 / hosts.max(1) as f64;
                below += 1.0 - power(missed, members);
            }
        }
        climbed / hosts.max(1) as f64 + below
    }
}

/// By squaring, so that every machine finds the same.
fn power(base: f64, exponent: u32) -> f64 {
    let (mut result, mut square, mut left) = (1.0, base, exponent);
    while left > 0 {
        if left & 1 == 1 {
            result *= square;
        }
        square *= square;
        left >>= 1;
    }
    result
}
