//! A three-tier Clos network: hosts are numbered leaf after leaf, leaves pod after pod.

use wormcast_wire::HostId;

/// Branches that lead up, beyond the ports that lead to leaves, pods and hosts.
const UP_TO_SPINE: u8 = 100;
const UP_TO_CORE: u8 = 101;

/// How many pods, leaves of a pod and hosts of a leaf. A group uses one spine of each pod and one
/// core switch, so it does not matter how many there are.
#[derive(Clone, Copy)]
pub struct Clos {
    pub pods: u32,
    pub leaves: u32,
    pub hosts: u32,
}

pub struct Group {
    pub source: u32,
    /// Ascending, the source not among them.
    pub members: Vec<u32>,
}

impl Clos {
    pub fn leaf_count(self) -> u32 {
        self.pods * self.leaves
    }

    pub fn leaf_of(self, host: u32) -> u32 {
        host / self.hosts
    }

    pub fn pod_of(self, host: u32) -> u32 {
        self.leaf_of(host) / self.leaves
    }

    /// Port bytes from the source to each member.
    pub fn paths(self, group: &Group) -> Vec<(HostId, Vec<u8>)> {
        let paths = group.members.iter().map(|&member| {
            let to_host = (member % self.hosts) as u8;
            let to_leaf = (self.leaf_of(member) % self.leaves) as u8;
            let path = if self.leaf_of(member) == self.leaf_of(group.source) {
                vec![to_host]
            } else if self.pod_of(member) == self.pod_of(group.source) {
                vec![UP_TO_SPINE, to_leaf, to_host]
            } else {
                let to_pod = self.pod_of(member) as u8;
                vec![UP_TO_SPINE, UP_TO_CORE, to_pod, to_leaf, to_host]
            };
            (HostId(member as u16), path)
        });
        paths.collect()
    }

    /// Leaves that have the group, ascending.
    pub fn leaves_with(self, group: &Group) -> Vec<u32> {
        let mut leaves: Vec<u32> = group
            .members
            .iter()
            .map(|&host| self.leaf_of(host))
            .collect();
        leaves.push(self.leaf_of(group.source));
        leaves.sort_unstable();
        leaves.dedup();
        leaves
    }

    /// Links that one worm to these members crosses, from the source's own on.
    pub fn links(self, source: u32, members: &[u32]) -> u64 {
        let distinct = |place: &dyn Fn(u32) -> u32| {
            let elsewhere = members.iter().filter(|host| place(**host) != place(source));
            let mut places: Vec<u32> = elsewhere.map(|&host| place(host)).collect();
            places.sort_unstable();
            places.dedup();
            places.len() as u64
        };
        let leaves = distinct(&|host| self.leaf_of(host));
        let pods = distinct(&|host| self.pod_of(host));
        1 + u64::from(leaves > 0) + u64::from(pods > 0) + pods + leaves + members.len() as u64
    }
}
