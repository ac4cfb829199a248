//! Load of every channel, in pairs of hosts.

use super::flows::channel_loads;
use super::ranks::Ranks;
use super::{Algorithm, Kept, NextHops, RouteError, Routes};
use crate::topology::{Link, Topology};
use crate::updown::UpDown;

/// Pairs of hosts whose worms go over each channel between switches, a channel being one
/// direction of a link. Pairs that are further apart than a worm may go count as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelLoads {
    /// By index of arc.
    arcs: Vec<u32>,
    /// Ascending.
    sorted: Vec<u32>,
}

/// Loads of the two channels of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkLoad {
    pub link: Link,
    /// Pairs of hosts from `link.a` to `link.b`.
    pub a_to_b: u32,
    /// Pairs of hosts from `link.b` to `link.a`.
    pub b_to_a: u32,
}

impl Routes<'_> {
    /// Loads of all channels if every host sends to every other.
    ///
    /// # Errors
    /// [`RouteError::NoBalance`] unless routes keep to one legal path a pair;
    /// [`Routes::summary`] has figures for the others.
    pub fn channel_loads(&self) -> Result<ChannelLoads, RouteError> {
        match &self.kept {
            Kept::NextHops(tables) if is_legal(self.algorithm()) => {
                Ok(ChannelLoads::of(self.topology(), self.updown(), tables))
            }
            _ => Err(RouteError::NoBalance {
                algorithm: self.algorithm(),
            }),
        }
    }
}

/// Whether routes never go up after they went down.
pub(super) fn is_legal(algorithm: Algorithm) -> bool {
    matches!(algorithm, Algorithm::Osud | Algorithm::TreeOnly)
}

impl ChannelLoads {
    /// Loads along next hops that follow legal paths.
    pub(super) fn of(topology: &Topology, updown: &UpDown, tables: &NextHops) -> ChannelLoads {
        let ranks = Ranks::new(topology, updown);
        let by_rank = channel_loads(&ranks, tables);
        let mut arcs = vec![0; by_rank.len()];
        for (rank, &switch) in ranks.switch.iter().enumerate() {
            let first = topology.arc_first(switch) as usize;
            let loads = &by_rank[ranks.arcs_of(rank)];
            arcs[first..first + loads.len()].copy_from_slice(loads);
        }
        let mut sorted = arcs.clone();
        sorted.sort_unstable();
        ChannelLoads { arcs, sorted }
    }

    /// Load of the busiest channel, 0 if there is none.
    pub fn largest(&self) -> u32 {
        self.sorted.last().copied().unwrap_or(0)
    }

    /// Sum over all channels: pairs of hosts times links between them.
    pub fn total(&self) -> u64 {
        self.sorted.iter().map(|&load| u64::from(load)).sum()
    }

    /// Mean over all channels, idle ones included; 0 if there is none.
    pub fn mean(&self) -> f64 {
        match self.sorted.len() {
            0 => 0.0,
            channels => self.total() as f64 / channels as f64,
        }
    }

    /// The least load that so many hundredths of the channels do not exceed (nearest rank).
    pub fn percentile(&self, hundredths: usize) -> u32 {
        let place = (self.sorted.len() * hundredths.min(100)).div_ceil(100);
        match place {
            0 => self.sorted.first().copied().unwrap_or(0),
            place => self.sorted[place - 1],
        }
    }

    /// Gini coefficient: 0 if all channels carry the same, near 1 if one carries all.
    pub fn gini(&self) -> f64 {
        let (channels, total) = (self.sorted.len() as f64, self.total() as f64);
        if total == 0.0 {
            return 0.0;
        }
        let weighted: f64 = (1..)
            .zip(&self.sorted)
            .map(|(place, &load)| f64::from(place) * f64::from(load))
            .sum();
        2.0 * weighted / (channels * total) - (channels + 1.0) / channels
    }

    /// Channels that carry nothing.
    pub fn idle(&self) -> usize {
        self.sorted.partition_point(|&load| load == 0)
    }

    /// Loads link by link, in the order of the topology.
    pub fn links(&self, topology: &Topology) -> Vec<LinkLoad> {
        let load = |switch, port| {
            let at = topology.switch_index(switch).expect("an end of a link");
            let arcs = topology.arcs_of(at);
            let slot = arcs.binary_search_by_key(&port, |arc| arc.port);
            self.arcs[topology.arc_first(at) as usize + slot.expect("a port of a link")]
        };
        let link = |&link: &Link| LinkLoad {
            link,
            a_to_b: load(link.a, link.a_port),
            b_to_a: load(link.b, link.b_port),
        };
        topology.links().iter().map(link).collect()
    }

    /// Largest and total load in each part of the fabric.
    pub(super) fn by_part(&self, topology: &Topology) -> Vec<(u32, u64)> {
        let mut parts = vec![(0, 0); topology.components()];
        for switch in 0..topology.switch_count() as u32 {
            let first = topology.arc_first(switch) as usize;
            let part = &mut parts[topology.component_of(switch) as usize];
            for &load in &self.arcs[first..first + topology.arcs_of(switch).len()] {
                *part = (part.0.max(load), part.1 + u64::from(load));
            }
        }
        parts
    }
}
