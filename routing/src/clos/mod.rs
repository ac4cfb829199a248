//! Groups by the million in a three-tier Clos network (Shahbaz et al., *Elmo: Source Routed
//! Multicast for Public Clouds*, SIGCOMM 2019, §5): what each costs in header bytes, in table
//! entries and in excess traffic.
//!
//! A network so regular needs no graph: a host is (pod, leaf, port), and the tree of a group goes
//! up from the source's leaf to one spine and one core switch, and down to every pod, leaf and
//! host that has members. Two ways to write that tree into a worm are here: the TREE route of
//! wire/SPEC.md §3, split and with tables where it does not fit ([`tree`]), and a shorter one
//! for this shape of network, by layers ([`layered`]). Groups too large for a header keep
//! entries in switches; [`plan`] decides.

pub mod layered;
pub mod plan;
pub mod tree;

/// Most pods, leaves of a pod and hosts of a leaf: six bits in a layered header.
pub const PORTS_MAX: u16 = 64;

/// A three-tier Clos network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clos {
    pods: u16,
    leaves: u16,
    hosts: u16,
}

/// Members of a group as hosts of a [`Clos`], ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosGroup {
    /// Host that sends.
    pub source: u32,
    /// Hosts that receive, the source not among them, ascending, none twice.
    pub members: Vec<u32>,
}

/// Why a network or group is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClosError {
    /// A number of switches or hosts outside its bounds.
    #[error("{found} {what} are outside 1 to {PORTS_MAX}")]
    Size {
        /// Which, as in "pods".
        what: &'static str,
        /// What was asked for.
        found: u16,
    },
    /// A host the network does not have.
    #[error("there is no host {host}; hosts are 0 to {}", .hosts - 1)]
    UnknownHost {
        /// The host.
        host: u32,
        /// How many there are.
        hosts: u32,
    },
    /// Members that do not ascend, or hold the source.
    #[error("member {host} is out of place: members ascend, none twice, without the source")]
    Members {
        /// The first that is out of place.
        host: u32,
    },
}

impl Clos {
    /// Pods of `leaves` leaf switches with `hosts` hosts each; spines and cores are as many as
    /// one likes, since a group uses one plane of them. Elmo's network is 12, 48, 48.
    ///
    /// # Errors
    /// [`ClosError::Size`].
    pub fn new(pods: u16, leaves: u16, hosts: u16) -> Result<Clos, ClosError> {
        for (what, found) in [
            ("pods", pods),
            ("leaves of a pod", leaves),
            ("hosts of a leaf", hosts),
        ] {
            if found == 0 || found > PORTS_MAX {
                return Err(ClosError::Size { what, found });
            }
        }
        Ok(Clos {
            pods,
            leaves,
            hosts,
        })
    }

    /// How many pods.
    pub fn pods(self) -> u32 {
        self.pods.into()
    }

    /// Leaf switches of all pods.
    pub fn leaf_count(self) -> u32 {
        u32::from(self.pods) * u32::from(self.leaves)
    }

    /// Leaf switches of one pod.
    pub fn leaves_of_pod(self) -> u32 {
        self.leaves.into()
    }

    /// Hosts of one leaf.
    pub fn hosts_of_leaf(self) -> u32 {
        self.hosts.into()
    }

    /// Hosts of all leaves; they are numbered from 0, leaf after leaf.
    pub fn host_count(self) -> u32 {
        self.leaf_count() * u32::from(self.hosts)
    }

    /// Leaf of a host, numbered through all pods.
    pub fn leaf_of(self, host: u32) -> u32 {
        host / u32::from(self.hosts)
    }

    /// Pod of a leaf.
    pub fn pod_of(self, leaf: u32) -> u32 {
        leaf / u32::from(self.leaves)
    }

    fn port_of(self, host: u32) -> u8 {
        (host % u32::from(self.hosts)) as u8
    }

    fn leaf_port(self, leaf: u32) -> u8 {
        (leaf % u32::from(self.leaves)) as u8
    }

    /// Checks that a group is of this network.
    ///
    /// # Errors
    /// [`ClosError::UnknownHost`], [`ClosError::Members`].
    pub fn check(self, group: &ClosGroup) -> Result<(), ClosError> {
        let hosts = self.host_count();
        for &host in group.members.iter().chain([&group.source]) {
            if host >= hosts {
                return Err(ClosError::UnknownHost { host, hosts });
            }
        }
        let mut before = None;
        for &host in &group.members {
            if before.is_some_and(|before| before >= host) || host == group.source {
                return Err(ClosError::Members { host });
            }
            before = Some(host);
        }
        Ok(())
    }
}

/// The tree of a group: members by leaf, leaves by pod.
pub(crate) struct Branches<'g> {
    /// (leaf, its members), ascending.
    leaves: Vec<(u32, &'g [u32])>,
    /// (pod, range of `leaves`), ascending.
    pods: Vec<(u32, std::ops::Range<usize>)>,
}

impl<'g> Branches<'g> {
    pub(crate) fn new(clos: Clos, members: &'g [u32]) -> Branches<'g> {
        let mut leaves: Vec<(u32, &[u32])> = Vec::new();
        let mut pods: Vec<(u32, std::ops::Range<usize>)> = Vec::new();
        for part in members.chunk_by(|a, b| clos.leaf_of(*a) == clos.leaf_of(*b)) {
            let leaf = clos.leaf_of(part[0]);
            let pod = clos.pod_of(leaf);
            match pods.last_mut() {
                Some((last, range)) if *last == pod => range.end += 1,
                _ => pods.push((pod, leaves.len()..leaves.len() + 1)),
            }
            leaves.push((leaf, part));
        }
        Branches { leaves, pods }
    }

    /// Links that the one best tree of this shape crosses, from the source's own link on.
    pub(crate) fn links(&self, clos: Clos, source: u32) -> u64 {
        let source_leaf = clos.leaf_of(source);
        let source_pod = clos.pod_of(source_leaf);
        let other_leaves = self.leaves.iter().filter(|(leaf, _)| *leaf != source_leaf);
        let other_pods = self.pods.iter().filter(|(pod, _)| *pod != source_pod);
        let (other_leaves, other_pods) = (other_leaves.count() as u64, other_pods.count() as u64);
        // Host to leaf, leaf to spine if anybody is elsewhere, spine to core likewise.
        let up = 1 + u64::from(other_leaves > 0) + u64::from(other_pods > 0);
        let hosts: usize = self.leaves.iter().map(|(_, hosts)| hosts.len()).sum();
        up + other_pods + other_leaves + hosts as u64
    }
}
