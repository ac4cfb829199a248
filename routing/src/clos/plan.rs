//! How many worms, header bytes and table entries a group takes.
//!
//! A group whose layered header fits is one worm and leaves no trace in switches. One that does
//! not is cut, leaf by leaf, into as many worms as are allowed: each repeats the few links up to
//! the core and nothing else. Only where that is not enough are parts of it put into tables:
//! leaves with many members first, which save most bytes for an entry, then whole pods. A switch
//! that is full takes no more; then the group is cut further, whatever is allowed.

use super::layered::{self, GROUP_BYTES, SECTION_BYTES_MAX, Tables, section_bytes, set_bytes};
use super::{Branches, Clos, ClosError, ClosGroup};

/// What a group may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most header bytes of a worm; wire/SPEC.md has one byte for the length of a route.
    pub header_bytes: usize,
    /// Most worms that the source sends for one packet, while switches have room for entries.
    pub worms: usize,
    /// Most entries of a switch.
    pub entries: u32,
}

/// One worm of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedWorm {
    /// Members it is for.
    pub members: Vec<u32>,
    /// Which of their leaves and pods look the group up.
    pub tables: Tables,
    /// Its layered route.
    pub route: Vec<u8>,
}

/// A group, planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedGroup {
    /// Its worms; together they have each member once.
    pub worms: Vec<PlannedWorm>,
    /// Links a packet crosses, over all worms.
    pub links: u64,
    /// Links the best tree crosses.
    pub ideal_links: u64,
}

impl PlannedGroup {
    /// Header bytes of all worms, group numbers included.
    pub fn header_bytes(&self) -> usize {
        self.worms.iter().map(PlannedWorm::header_bytes).sum()
    }
}

impl PlannedWorm {
    /// Bytes of the route, and of the group number if a switch looks it up.
    pub fn header_bytes(&self) -> usize {
        let looked_up = self.tables != Tables::default();
        self.route.len() + if looked_up { GROUP_BYTES } else { 0 }
    }
}

/// Plans groups one after another, and counts the entries they leave.
#[derive(Clone, Debug)]
pub struct ClosPlanner {
    clos: Clos,
    limits: Limits,
    leaf_entries: Vec<u32>,
    pod_entries: Vec<u32>,
}

impl ClosPlanner {
    /// No groups yet. A header must have room for one host: 64 bytes are enough.
    pub fn new(clos: Clos, limits: Limits) -> ClosPlanner {
        let limits = Limits {
            header_bytes: limits.header_bytes.max(HEADER_BYTES_LEAST),
            worms: limits.worms.max(1),
            ..limits
        };
        ClosPlanner {
            clos,
            limits,
            leaf_entries: vec![0; clos.leaf_count() as usize],
            pod_entries: vec![0; clos.pods() as usize],
        }
    }

    /// Entries of each leaf.
    pub fn leaf_entries(&self) -> &[u32] {
        &self.leaf_entries
    }

    /// Entries of each pod's spines, all planes together.
    pub fn pod_entries(&self) -> &[u32] {
        &self.pod_entries
    }

    /// Plans one group and takes its entries.
    ///
    /// # Errors
    /// A group that is not of this network.
    pub fn add(&mut self, group: &ClosGroup) -> Result<PlannedGroup, ClosError> {
        let clos = self.clos;
        clos.check(group)?;
        let ideal_links = Branches::new(clos, &group.members).links(clos, group.source);
        let parts = self.cut(group);
        let tables = match parts.len() > self.limits.worms {
            true => self.choose_tables(group),
            false => None,
        };
        let (parts, tables) = match tables {
            Some(tables) => {
                self.take(group, &tables);
                (vec![group.members.clone()], tables)
            }
            None => (parts, Tables::default()),
        };
        let worms: Vec<PlannedWorm> = parts
            .into_iter()
            .map(|members| {
                let part = ClosGroup {
                    source: group.source,
                    members,
                };
                let route = layered::encode(clos, &part, &tables);
                PlannedWorm {
                    members: part.members,
                    tables: tables.clone(),
                    route,
                }
            })
            .collect();
        let links = worms
            .iter()
            .map(|worm| Branches::new(clos, &worm.members).links(clos, group.source))
            .sum();
        Ok(PlannedGroup {
            worms,
            links,
            ideal_links,
        })
    }

    /// Members of the worms that need no tables, leaf after leaf as many as fit. A leaf with more
    /// hosts than one header holds does not occur: its bitmap has 9 bytes at most.
    fn cut(&self, group: &ClosGroup) -> Vec<Vec<u32>> {
        let clos = self.clos;
        let branches = Branches::new(clos, &group.members);
        let mut parts: Vec<Vec<u32>> = vec![Vec::new()];
        let mut size = Size::new(clos, group);
        for &(leaf, hosts) in &branches.leaves {
            let mut grown = size.clone();
            grown.add(clos, leaf, hosts.len());
            if !grown.fits(clos, self.limits.header_bytes) {
                parts.push(Vec::new());
                grown = Size::new(clos, group);
                grown.add(clos, leaf, hosts.len());
            }
            size = grown;
            parts.last_mut().expect("one").extend(hosts);
        }
        parts
    }

    /// Tables with which one header is enough; `None` if a switch that would be needed is full.
    fn choose_tables(&self, group: &ClosGroup) -> Option<Tables> {
        let clos = self.clos;
        let branches = Branches::new(clos, &group.members);
        let source_leaf = clos.leaf_of(group.source);
        let source_pod = clos.pod_of(source_leaf);
        let most = self.limits.header_bytes - GROUP_BYTES;
        let mut tables = Tables::default();
        let mut pods: Vec<PodCost> = Vec::new();
        let mut bytes = 1 + 1;
        for (pod, range) in &branches.pods {
            let leaves: Vec<_> = branches.leaves[range.clone()]
                .iter()
                .copied()
                .filter(|(leaf, _)| *leaf != source_leaf)
                .collect();
            let section = section_bytes(clos, &leaves);
            bytes += section + if *pod == source_pod { 0 } else { 2 };
            pods.push(PodCost {
                pod: *pod,
                section,
                leaves: range.clone(),
            });
        }
        if let Some(own) = branches
            .leaves
            .iter()
            .find(|(leaf, _)| *leaf == source_leaf)
        {
            bytes += set_bytes(clos, own.1.len()) - 1;
        }
        if !pods.iter().any(|cost| cost.pod == source_pod) {
            bytes += section_bytes(clos, &[]);
        }
        // Leaves whose hosts take most bytes, each one entry.
        let mut large: Vec<(usize, u32)> = branches
            .leaves
            .iter()
            .map(|(leaf, hosts)| (set_bytes(clos, hosts.len()) - 1, *leaf))
            .filter(|(saved, leaf)| *saved > 1 && self.leaf_has_room(*leaf))
            .collect();
        large.sort_unstable_by_key(|&(saved, leaf)| (usize::MAX - saved, leaf));
        for (saved, leaf) in large {
            if bytes <= most && pods.iter().all(|cost| cost.section <= SECTION_BYTES_MAX) {
                break;
            }
            bytes -= saved;
            tables.leaves.push(leaf);
            let pod = clos.pod_of(leaf);
            let own = leaf == source_leaf;
            if let Some(cost) = pods.iter_mut().find(|cost| cost.pod == pod && !own) {
                cost.section -= saved;
            }
        }
        // Then pods: an entry in the spine and one in every leaf, so those that save most for it.
        pods.sort_by_key(|cost| {
            let entries = 1 + cost.leaves.len() as u64;
            (u64::MAX - (cost.section as u64 * 1000) / entries, cost.pod)
        });
        for cost in &pods {
            if bytes <= most && cost.section <= SECTION_BYTES_MAX {
                continue;
            }
            if cost.section <= 1 || !self.pod_has_room(cost, &branches) {
                continue;
            }
            bytes -= cost.section - 1;
            tables.pods.push(cost.pod);
            tables
                .leaves
                .retain(|leaf| clos.pod_of(*leaf) != cost.pod || *leaf == source_leaf);
        }
        tables.pods.sort_unstable();
        tables.leaves.sort_unstable();
        let fits = pods
            .iter()
            .all(|cost| cost.section <= SECTION_BYTES_MAX || tables.pods.contains(&cost.pod));
        (bytes <= most && fits).then_some(tables)
    }

    fn leaf_has_room(&self, leaf: u32) -> bool {
        self.leaf_entries[leaf as usize] < self.limits.entries
    }

    fn pod_has_room(&self, cost: &PodCost, branches: &Branches<'_>) -> bool {
        self.pod_entries[cost.pod as usize] < self.limits.entries
            && branches.leaves[cost.leaves.clone()]
                .iter()
                .all(|(leaf, _)| self.leaf_has_room(*leaf))
    }

    fn take(&mut self, group: &ClosGroup, tables: &Tables) {
        let source_leaf = self.clos.leaf_of(group.source);
        for &leaf in &tables.leaves {
            self.leaf_entries[leaf as usize] += 1;
        }
        for &pod in &tables.pods {
            self.pod_entries[pod as usize] += 1;
        }
        let branches = Branches::new(self.clos, &group.members);
        for (pod, range) in &branches.pods {
            if tables.pods.binary_search(pod).is_err() {
                continue;
            }
            for (leaf, _) in &branches.leaves[range.clone()] {
                // The source's own leaf sends before the worm gets to the spine.
                if *leaf != source_leaf {
                    self.leaf_entries[*leaf as usize] += 1;
                }
            }
        }
    }
}

/// Room for the source's leaf, its pod and one other pod with a leaf full of hosts.
const HEADER_BYTES_LEAST: usize = 64;

struct PodCost {
    pod: u32,
    section: usize,
    leaves: std::ops::Range<usize>,
}

/// Bytes of a header that grows leaf by leaf, in ascending order.
#[derive(Clone)]
struct Size {
    source_leaf: u32,
    source_pod: u32,
    /// Host set of the source's leaf, its pod's section, the number of pods.
    own_set: usize,
    own_sets: usize,
    own_leaves: usize,
    /// Other pods that are done, their ports and lengths too.
    done: usize,
    pod: Option<u32>,
    sets: usize,
    leaves: usize,
}

impl Size {
    fn new(clos: Clos, group: &ClosGroup) -> Size {
        let source_leaf = clos.leaf_of(group.source);
        Size {
            source_leaf,
            source_pod: clos.pod_of(source_leaf),
            own_set: 1,
            own_sets: 0,
            own_leaves: 0,
            done: 0,
            pod: None,
            sets: 0,
            leaves: 0,
        }
    }

    fn add(&mut self, clos: Clos, leaf: u32, hosts: usize) {
        let bytes = set_bytes(clos, hosts);
        let pod = clos.pod_of(leaf);
        if leaf == self.source_leaf {
            self.own_set = bytes;
        } else if pod == self.source_pod {
            self.own_sets += bytes;
            self.own_leaves += 1;
        } else {
            if self.pod.is_some_and(|open| open != pod) {
                self.done += 2 + self.section(clos);
                (self.sets, self.leaves) = (0, 0);
            }
            self.pod = Some(pod);
            self.sets += bytes;
            self.leaves += 1;
        }
    }

    fn section(&self, clos: Clos) -> usize {
        section_of(clos, self.leaves, self.sets)
    }

    fn fits(&self, clos: Clos, most: usize) -> bool {
        let open = self.pod.map_or(0, |_| 2 + self.section(clos));
        let own = self.own_set + section_of(clos, self.own_leaves, self.own_sets);
        own + 1 + self.done + open <= most && self.section(clos) <= SECTION_BYTES_MAX
    }
}

fn section_of(clos: Clos, leaves: usize, sets: usize) -> usize {
    1 + sets + (clos.leaves_of_pod().div_ceil(8) as usize).min(1 + leaves)
}
