//! up\*/down\* (WORM §2): root, levels, link directions, spanning tree.
//!
//! A link u→v is *up* if v is nearer to the root, or as near and has the lower id;
//! else *down*. A legal path is zero or more up links, then zero or more down links.
//! A split fabric has a root and a tree in each part.

mod next_hops;
mod ranked;

pub use next_hops::{NO_SLOT, NextHops, Phase};

use crate::topology::remoteness::Remoteness;
use crate::topology::{Link, Topology, TopologyError};
use wormcast_wire::SwitchId;

/// No arc: the root has no way up.
const NO_ARC: u32 = u32::MAX;

/// Directions of all links of a topology, and its spanning tree.
#[derive(Clone, Debug)]
pub struct UpDown {
    /// Root of each part of the fabric, by index of switch.
    roots: Vec<u32>,
    /// The part whose root was asked for, or the first.
    main: u32,
    level: Vec<u32>,
    /// Arc of the spanning tree from each switch to its parent.
    parent_arc: Vec<u32>,
    /// For each arc, whether it is up.
    up: Vec<bool>,
    /// Switches in breadth-first order, part after part.
    order: Vec<u32>,
}

impl UpDown {
    /// Directs all links. The root of a part is `root` if that lies in it, else the
    /// switch of least eccentricity, ties to the lowest id. The parent of a switch in
    /// the tree is its neighbour one level up with the lowest id, by the lowest port.
    ///
    /// # Errors
    /// [`TopologyError::UnknownSwitch`] if there is no switch `root`.
    pub fn new(topology: &Topology, root: Option<SwitchId>) -> Result<UpDown, TopologyError> {
        let root = root.map(|id| topology.switch_index(id)).transpose()?;
        let mut roots = choose_roots(topology);
        let main = root.map_or(0, |root| topology.component_of(root));
        if let Some(root) = root {
            roots[main as usize] = root;
        }
        Ok(UpDown::from_roots(topology, roots, main))
    }

    /// The same with other roots, by index, one for each part.
    pub(crate) fn with_roots(&self, topology: &Topology, roots: Vec<u32>) -> UpDown {
        UpDown::from_roots(topology, roots, self.main)
    }

    fn from_roots(topology: &Topology, roots: Vec<u32>, main: u32) -> UpDown {
        let switches = topology.switch_count();
        let mut updown = UpDown {
            level: vec![u32::MAX; switches],
            parent_arc: vec![NO_ARC; switches],
            up: vec![false; topology.arcs().len()],
            order: Vec::with_capacity(switches),
            roots,
            main,
        };
        updown.measure_levels(topology);
        updown.direct_arcs(topology);
        updown.grow_tree(topology);
        updown
    }

    /// The root that was asked for, or that of the part with the lowest switch; see
    /// [`UpDown::roots`] for a split fabric.
    pub fn root(&self, topology: &Topology) -> SwitchId {
        topology.switch_id(self.roots[self.main as usize])
    }

    /// Root of each part of the fabric, parts in order of their lowest switch.
    pub fn roots(&self, topology: &Topology) -> Vec<SwitchId> {
        self.roots
            .iter()
            .map(|&root| topology.switch_id(root))
            .collect()
    }

    /// Root of each part of the fabric, by index.
    pub(crate) fn root_indices(&self) -> &[u32] {
        &self.roots
    }

    /// Distance of a switch from its root, in links.
    ///
    /// # Errors
    /// [`TopologyError::UnknownSwitch`].
    pub fn level(&self, topology: &Topology, switch: SwitchId) -> Result<u32, TopologyError> {
        Ok(self.level[topology.switch_index(switch)? as usize])
    }

    /// Parent of a switch in the spanning tree; `None` for a root.
    ///
    /// # Errors
    /// [`TopologyError::UnknownSwitch`].
    pub fn parent(
        &self,
        topology: &Topology,
        switch: SwitchId,
    ) -> Result<Option<SwitchId>, TopologyError> {
        let parent = self.parent_of(topology, topology.switch_index(switch)?);
        Ok(parent.map(|parent| topology.switch_id(parent)))
    }

    /// Most links from a root to a switch of its part, all of them down; `None` if some
    /// part has several switches without a way up.
    pub(crate) fn depth(&self) -> Option<u32> {
        let tops = self.level.iter().filter(|&&level| level == 0).count();
        let deepest = self.level.iter().max().copied();
        deepest.filter(|_| tops == self.roots.len())
    }

    /// Whether the arc with this index leads towards the root.
    pub fn is_up(&self, arc: u32) -> bool {
        self.up[arc as usize]
    }

    /// Links of the spanning tree, the parent's side as `a`, in breadth-first order.
    pub fn tree_links(&self, topology: &Topology) -> Vec<Link> {
        self.order
            .iter()
            .filter_map(|&switch| {
                let up = topology.arcs()[self.parent_arc(switch)? as usize];
                Some(Link {
                    a: topology.switch_id(up.to),
                    a_port: topology.arcs()[up.reverse as usize].port,
                    b: topology.switch_id(switch),
                    b_port: up.port,
                })
            })
            .collect()
    }

    /// Parent in the spanning tree; `None` for a root.
    pub(crate) fn parent_of(&self, topology: &Topology, switch: u32) -> Option<u32> {
        self.parent_arc(switch)
            .map(|arc| topology.arcs()[arc as usize].to)
    }

    /// The arc to the parent in the spanning tree; `None` for a root.
    pub fn parent_arc(&self, switch: u32) -> Option<u32> {
        let arc = self.parent_arc[switch as usize];
        (arc != NO_ARC).then_some(arc)
    }

    /// Switches from the roots outward.
    pub(crate) fn breadth_first(&self) -> &[u32] {
        &self.order
    }

    fn measure_levels(&mut self, topology: &Topology) {
        for &root in &self.roots {
            self.level[root as usize] = 0;
            let mut next = self.order.len();
            self.order.push(root);
            while let Some(&switch) = self.order.get(next) {
                next += 1;
                for arc in topology.arcs_of(switch) {
                    if self.level[arc.to as usize] == u32::MAX {
                        self.level[arc.to as usize] = self.level[switch as usize] + 1;
                        self.order.push(arc.to);
                    }
                }
            }
        }
    }

    fn direct_arcs(&mut self, topology: &Topology) {
        for switch in 0..topology.switch_count() as u32 {
            let first = topology.arc_first(switch) as usize;
            for (slot, arc) in topology.arcs_of(switch).iter().enumerate() {
                // Indices ascend with ids, so they break ties alike.
                let here = (self.level[switch as usize], switch);
                self.up[first + slot] = (self.level[arc.to as usize], arc.to) < here;
            }
        }
    }

    fn grow_tree(&mut self, topology: &Topology) {
        for switch in 0..topology.switch_count() as u32 {
            let above = self.level[switch as usize].wrapping_sub(1);
            let first = topology.arc_first(switch);
            self.parent_arc[switch as usize] = topology
                .arcs_of(switch)
                .iter()
                .zip(first..)
                .filter(|(arc, _)| self.level[arc.to as usize] == above)
                .min_by_key(|(arc, _)| (arc.to, arc.port))
                .map_or(NO_ARC, |(_, index)| index);
        }
    }
}

/// In each part, the switch of least eccentricity; of several, the one of lowest id.
fn choose_roots(topology: &Topology) -> Vec<u32> {
    let mut best = vec![(u32::MAX, u32::MAX); topology.components()];
    for (switch, eccentricity) in (0..).zip(Remoteness::of(topology).eccentricity) {
        let best = &mut best[topology.component_of(switch) as usize];
        *best = (*best).min((eccentricity, switch));
    }
    best.into_iter().map(|(_, switch)| switch).collect()
}
