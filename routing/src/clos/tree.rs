//! The same groups as TREE routes of wire/SPEC.md §3: what the P4 program replicates today.

use super::{Branches, Clos, ClosGroup};
use wormcast_wire::ROUTE_LENGTH_MAX;
use wormcast_wire::tree_route::BRANCHES_MAX;

/// TREE worms of a group, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeCost {
    /// Worms that the source sends for one packet.
    pub worms: usize,
    /// Bytes of all their routes.
    pub bytes: usize,
    /// Links a packet crosses, over all worms.
    pub links: u64,
}

/// Counts the TREE worms of a group, cut leaf by leaf where a route would exceed 255 bytes or a
/// switch 16 branches.
pub fn cost(clos: Clos, group: &ClosGroup) -> TreeCost {
    let mut cost = TreeCost::default();
    let mut part: Vec<u32> = Vec::new();
    let branches = Branches::new(clos, &group.members);
    for (_, hosts) in &branches.leaves {
        for hosts in hosts.chunks(BRANCHES_MAX - 1) {
            let before = part.len();
            part.extend(hosts);
            if !fits(clos, group.source, &part) {
                let next = part.split_off(before);
                cost.add(clos, group, &part);
                part = next;
            }
        }
    }
    if !part.is_empty() {
        cost.add(clos, group, &part);
    }
    cost
}

impl TreeCost {
    fn add(&mut self, clos: Clos, group: &ClosGroup, members: &[u32]) {
        self.worms += 1;
        self.bytes += bytes(clos, group.source, members);
        self.links += Branches::new(clos, members).links(clos, group.source);
    }
}

/// Port and length of a branch.
const BRANCH_BYTES: usize = 2;

/// Bytes of one route: a branch for every switch and host, and the marker.
fn bytes(clos: Clos, source: u32, members: &[u32]) -> usize {
    let shape = Shape::new(clos, source, members);
    BRANCH_BYTES * (members.len() + shape.leaves + shape.pods + shape.ups) + 1
}

fn fits(clos: Clos, source: u32, members: &[u32]) -> bool {
    let shape = Shape::new(clos, source, members);
    bytes(clos, source, members) <= ROUTE_LENGTH_MAX
        && shape.most_branches <= BRANCHES_MAX
        && shape.pods <= BRANCHES_MAX
}

struct Shape {
    /// Other leaves, other pods, and branches that go up.
    leaves: usize,
    pods: usize,
    ups: usize,
    /// Most branches of a leaf or spine.
    most_branches: usize,
}

impl Shape {
    fn new(clos: Clos, source: u32, members: &[u32]) -> Shape {
        let branches = Branches::new(clos, members);
        let source_leaf = clos.leaf_of(source);
        let source_pod = clos.pod_of(source_leaf);
        let own = |leaf: u32| leaf == source_leaf;
        let leaves = branches
            .leaves
            .iter()
            .filter(|(leaf, _)| !own(*leaf))
            .count();
        let pods = branches
            .pods
            .iter()
            .filter(|(pod, _)| *pod != source_pod)
            .count();
        let up_to_spine = usize::from(leaves > 0);
        let up_to_core = usize::from(pods > 0);
        let of_leaf = branches
            .leaves
            .iter()
            .map(|(leaf, hosts)| hosts.len() + if own(*leaf) { up_to_spine } else { 0 })
            .max();
        let of_spine = branches
            .pods
            .iter()
            .map(|(pod, range)| {
                let here = branches.leaves[range.clone()].iter();
                let down = here.filter(|(leaf, _)| !own(*leaf)).count();
                down + if *pod == source_pod { up_to_core } else { 0 }
            })
            .max();
        Shape {
            leaves,
            pods,
            ups: up_to_spine + up_to_core,
            most_branches: of_leaf.max(of_spine).unwrap_or(0),
        }
    }
}
