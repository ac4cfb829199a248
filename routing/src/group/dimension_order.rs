//! Dimension-order paths on tori and meshes (TORUS §2): all hops in the first dimension,
//! then all in the next, and so on; the shorter way round where links lead both ways, the
//! increasing one on a tie.
//!
//! These are the paths the torus schemes are made for, and the only ones on a torus whose
//! links lead one way. Without two virtual channels a ring of such paths can deadlock, so
//! they serve to count hops and to replay schedules, not to route worms.

use crate::routes::{Route, RouteError};
use crate::structure::StructureError;
use crate::topology::{Grid, Topology, TopologyError};
use wormcast_wire::{HostId, SWITCHES_CROSSED_MAX};

/// Dimension-order paths of one topology.
#[derive(Clone, Copy, Debug)]
pub struct DimensionOrder<'t> {
    topology: &'t Topology,
    grid: &'t Grid,
}

impl<'t> DimensionOrder<'t> {
    /// Paths of this topology.
    ///
    /// # Errors
    /// [`StructureError::NoGrid`] without coordinates.
    pub fn new(topology: &'t Topology) -> Result<DimensionOrder<'t>, StructureError> {
        let grid = topology.grid().ok_or(StructureError::NoGrid)?;
        Ok(DimensionOrder { topology, grid })
    }

    /// What the paths lead through.
    pub fn topology(&self) -> &'t Topology {
        self.topology
    }

    /// The path from one host to another, as a source route.
    ///
    /// # Errors
    /// Unknown hosts, a path to oneself, a link of the path that is gone, and paths
    /// longer than a worm may go.
    pub fn route(&self, src: HostId, dst: HostId) -> Result<Route, RouteError> {
        let from = self.topology.host_index(src)?;
        let to = self.topology.host_index(dst)?;
        if from == to {
            return Err(RouteError::ToItself { host: src });
        }
        let end = self.topology.switch_of(to);
        let (mut switches, mut ports) = (Vec::new(), Vec::new());
        let arrived = self.walk(self.topology.switch_of(from), end, |at, arc| {
            switches.push(self.topology.switch_id(at));
            ports.push(self.topology.arcs()[arc as usize].port.get());
        });
        if !arrived {
            return Err(RouteError::Unreachable { src, dst });
        }
        switches.push(self.topology.switch_id(end));
        ports.push(self.topology.hosts()[to as usize].port.get());
        if switches.len() > SWITCHES_CROSSED_MAX {
            return Err(RouteError::TooLong {
                src,
                dst,
                switches: switches.len(),
            });
        }
        Ok(Route {
            src,
            dst,
            switches,
            ports,
            in_transit: Vec::new(),
        })
    }

    /// Switches crossed between two hosts, 1 if they share a switch; `None` if a link of
    /// the path is gone.
    ///
    /// # Errors
    /// [`TopologyError::UnknownHost`].
    pub fn distance(&self, src: HostId, dst: HostId) -> Result<Option<u32>, TopologyError> {
        let from = self.topology.switch_of(self.topology.host_index(src)?);
        let to = self.topology.switch_of(self.topology.host_index(dst)?);
        let mut crossed = 1;
        Ok(self.walk(from, to, |_, _| crossed += 1).then_some(crossed))
    }

    /// Visits (index of switch, arc that leaves it) from one switch to another; false if
    /// a link of the path is gone.
    pub(crate) fn walk(&self, from: u32, to: u32, mut visit: impl FnMut(u32, u32)) -> bool {
        let mut at = from;
        let mut here = self.topology.switch_id(from).0;
        let there = self.topology.switch_id(to).0;
        let mut stride = 1u16;
        for &radix in &self.grid.radix {
            let goal = there / stride % radix;
            while here / stride % radix != goal {
                let next = self.step(here, stride, radix, goal);
                let arcs = self.topology.arcs_of(at);
                let leads = |arc: &crate::topology::Arc| self.topology.switch_id(arc.to).0 == next;
                let Some(slot) = arcs.iter().position(leads) else {
                    return false;
                };
                let arc = self.topology.arc_first(at) + slot as u32;
                visit(at, arc);
                at = self.topology.arcs()[arc as usize].to;
                here = next;
            }
            stride = stride.saturating_mul(radix);
        }
        true
    }

    /// The switch after `here` on the way to `goal`, a place along one dimension.
    fn step(&self, here: u16, stride: u16, radix: u16, goal: u16) -> u16 {
        let place = here / stride % radix;
        let ahead = (goal + radix - place) % radix;
        let onward = match (self.grid.unidirectional, self.grid.wraps) {
            (true, _) => true,
            (false, true) => ahead <= radix - ahead,
            (false, false) => goal > place,
        };
        let next = if onward {
            (place + 1) % radix
        } else {
            (place + radix - 1) % radix
        };
        here - place * stride + next * stride
    }
}
