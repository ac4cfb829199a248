//! Directions from a total order of the switches instead of levels.

use super::{NO_ARC, UpDown};
use crate::topology::Topology;
use wormcast_wire::{PortId, SwitchId};

impl UpDown {
    /// Directs every link towards the switch of lower rank; `ranks` has one for each
    /// switch, all different. The order of levels and ids of [`UpDown::new`] is one such
    /// order. A part may have several switches without a way up; the one of lowest rank
    /// counts as its root, and routes reach from one place to another only where some
    /// switch is above both. The level of a switch is its least distance, going up, from
    /// a switch without a way up.
    pub fn from_ranks(topology: &Topology, ranks: &[u32]) -> UpDown {
        let switches = topology.switch_count();
        assert_eq!(ranks.len(), switches, "one rank for each switch");
        let mut roots = vec![u32::MAX; topology.components()];
        let mut up = vec![false; topology.arcs().len()];
        for switch in 0..switches as u32 {
            let root = &mut roots[topology.component_of(switch) as usize];
            if *root == u32::MAX || ranks[switch as usize] < ranks[*root as usize] {
                *root = switch;
            }
            let first = topology.arc_first(switch) as usize;
            for (slot, arc) in topology.arcs_of(switch).iter().enumerate() {
                up[first + slot] = ranks[arc.to as usize] < ranks[switch as usize];
            }
        }
        let main = (0..switches as u32)
            .min_by_key(|&switch| ranks[switch as usize])
            .map_or(0, |lowest| topology.component_of(lowest));
        let mut updown = UpDown {
            level: vec![u32::MAX; switches],
            parent_arc: vec![NO_ARC; switches],
            up,
            order: Vec::with_capacity(switches),
            roots,
            main,
        };
        updown.measure_ranked_levels(topology);
        updown.choose_ranked_parents(topology);
        updown
    }

    /// The same with another spanning tree: the parent of a switch is where this port of it leads,
    /// if that is a way up; else the parent stays.
    #[must_use]
    pub fn with_parents(
        mut self,
        topology: &Topology,
        port_up: impl Fn(SwitchId) -> Option<PortId>,
    ) -> UpDown {
        for switch in 0..topology.switch_count() as u32 {
            let Some(port) = port_up(topology.switch_id(switch)) else {
                continue;
            };
            let arcs = topology.arcs_of(switch);
            if let Ok(slot) = arcs.binary_search_by_key(&port, |arc| arc.port) {
                let arc = topology.arc_first(switch) + slot as u32;
                if self.is_up(arc) {
                    self.parent_arc[switch as usize] = arc;
                }
            }
        }
        self.order_by_parents(topology);
        self
    }

    /// The port of each switch to its parent in the spanning tree; roots have none.
    pub fn parent_ports<'t>(
        &'t self,
        topology: &'t Topology,
    ) -> impl Iterator<Item = (SwitchId, PortId)> + 't {
        (0..topology.switch_count() as u32).filter_map(|switch| {
            let arc = topology.arcs()[self.parent_arc(switch)? as usize];
            Some((topology.switch_id(switch), arc.port))
        })
    }

    /// Whether in each part one switch alone has no way up, so that there is a legal path between
    /// any two switches of a part, and the tree spans it.
    pub fn joins_all(&self) -> bool {
        self.depth().is_some() || self.level.is_empty()
    }

    /// Puts parents before their children.
    fn order_by_parents(&mut self, topology: &Topology) {
        let switches = topology.switch_count();
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); switches];
        let mut order = Vec::with_capacity(switches);
        for &switch in &self.order {
            match self.parent_of(topology, switch) {
                Some(parent) => children[parent as usize].push(switch),
                None => order.push(switch),
            }
        }
        let mut next = 0;
        while let Some(&at) = order.get(next) {
            next += 1;
            order.append(&mut children[at as usize]);
        }
        self.order = order;
    }

    /// Breadth first, downward from all switches without a way up.
    fn measure_ranked_levels(&mut self, topology: &Topology) {
        for switch in 0..topology.switch_count() as u32 {
            let first = topology.arc_first(switch) as usize;
            let last = first + topology.arcs_of(switch).len();
            if !self.up[first..last].contains(&true) {
                self.level[switch as usize] = 0;
                self.order.push(switch);
            }
        }
        let mut next = 0;
        while let Some(&switch) = self.order.get(next) {
            next += 1;
            for (arc, index) in topology
                .arcs_of(switch)
                .iter()
                .zip(topology.arc_first(switch)..)
            {
                if !self.is_up(index) && self.level[arc.to as usize] == u32::MAX {
                    self.level[arc.to as usize] = self.level[switch as usize] + 1;
                    self.order.push(arc.to);
                }
            }
        }
    }

    fn choose_ranked_parents(&mut self, topology: &Topology) {
        for switch in 0..topology.switch_count() as u32 {
            self.parent_arc[switch as usize] = topology
                .arcs_of(switch)
                .iter()
                .zip(topology.arc_first(switch)..)
                .filter(|(_, index)| self.is_up(*index))
                .min_by_key(|(arc, _)| (self.level[arc.to as usize], arc.to, arc.port))
                .map_or(NO_ARC, |(_, index)| index);
        }
    }
}
