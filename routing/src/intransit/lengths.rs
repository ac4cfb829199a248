//! What is left to go from every state to every switch: two bytes for a pair of switches.

use super::search::{FAR, Measure, STEP, Search, Wiring};
use crate::topology::Topology;
use crate::updown::Phase;
use crate::updown::UpDown;

/// Lengths of the shortest paths from all states to all switches.
#[derive(Clone, Debug)]
pub(crate) struct Lengths {
    measure: Measure,
    switches: usize,
    left: Vec<u8>,
}

/// No way.
const NONE: u8 = u8::MAX;
/// As far as this or farther: no worm goes there.
const FARTHEST: u8 = NONE - 1;

impl Lengths {
    pub(crate) fn new(topology: &Topology, updown: &UpDown, measure: Measure) -> Lengths {
        let wiring = Wiring::new(topology, updown);
        let switches = wiring.switches();
        let mut search = Search::new(&wiring, measure);
        let mut left = Vec::with_capacity(2 * switches * switches);
        for dst in 0..switches as u32 {
            search.run(dst);
            left.extend(search.keys.iter().flatten().map(|&key| match key {
                FAR => NONE,
                key => (key / STEP).min(u32::from(FARTHEST)) as u8,
            }));
        }
        Lengths {
            measure,
            switches,
            left,
        }
    }

    pub(super) fn measure(&self) -> Measure {
        self.measure
    }

    /// Length from a state to a switch; none if there is no way, or none that a worm
    /// could go.
    pub(super) fn left(&self, to: u32, at: u32, phase: Phase) -> Option<u32> {
        let row = 2 * (to as usize * self.switches + at as usize);
        let left = self.left[row + usize::from(phase == Phase::Down)];
        (left < FARTHEST).then_some(u32::from(left))
    }
}
