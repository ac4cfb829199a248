//! Minimal routing with in-transit buffers (ITB §III.B): which paths worms take.
//!
//! Where a path turns from down to up it is cut: a host on that switch takes the worm in
//! and re-injects it, so that each piece is legal and dependencies end at the cut. Every
//! such turn must be cut and no other place needs to be, so that a path says by itself
//! where its cuts are; the choice is among paths, and among the hosts of the switch. A
//! switch without hosts that may re-inject ([`Topology::can_cut`]) cannot cut: then the paths are the shortest of those that can be
//! cut, at the latest a legal one.
//!
//! - [`search`]: how far every switch is from one, by links or by switches crossed
//! - [`one_path`]: OMIT, one path for each pair, load spread, as next-hop tables
//! - [`lengths`]: what is left to go between all switches, two bytes a pair
//! - [`path_graph`]: all shortest paths of a pair, counted, drawn without bias

mod lengths;
mod one_path;
mod path_graph;
mod search;

pub(crate) use lengths::Lengths;
pub(crate) use one_path::plan as plan_one;
pub(crate) use path_graph::PathGraph;
pub(crate) use search::{Measure, fewest_crossings};

use crate::topology::Topology;
use crate::updown::UpDown;

/// Most paths of one length kept for a pair (ITB §IV.D); PIT keeps as many of either length.
pub const PATHS_MAX: usize = 10;

/// Whether a worm that came over one arc and leaves over another must be taken in by a
/// host in between.
pub fn is_cut(updown: &UpDown, came: u32, leaves: u32) -> bool {
    !updown.is_up(came) && updown.is_up(leaves)
}

/// How many hosts re-inject a worm that goes over these arcs.
pub(crate) fn cuts(updown: &UpDown, arcs: &[u32]) -> usize {
    arcs.windows(2)
        .filter(|pair| is_cut(updown, pair[0], pair[1]))
        .count()
}

/// How many switches such a worm crosses, those at a cut counted twice.
pub(crate) fn crossed(updown: &UpDown, arcs: &[u32]) -> usize {
    arcs.len() + 1 + cuts(updown, arcs)
}

/// Which of the hosts on a switch re-injects: all that may in turn over the pairs of hosts of two
/// switches, each pair of switches starting elsewhere.
///
/// `turn` numbers the pair of hosts; `key` is anything that tells paths and cuts apart.
/// No counters are kept, so that a route does not depend on the routes asked for before.
pub(crate) fn host_in_turn(topology: &Topology, at: u32, turn: usize, key: [u32; 3]) -> u32 {
    let mut hosts = topology.transit_at(at);
    let start = key.into_iter().fold(u64::from(at), |mixed, part| {
        mix(mixed.wrapping_add(u64::from(part)))
    });
    let number = (start % hosts.len() as u64) as usize + turn;
    let number = number % hosts.len();
    hosts.nth(number).expect("a cut needs a host")
}

/// Spreads close numbers far apart (the finalizer of SplitMix64: Steele, Lea, Flood,
/// OOPSLA 2014).
pub(crate) fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
