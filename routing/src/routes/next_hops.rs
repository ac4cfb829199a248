//! One next hop for every pair of switches and phase of the path.

/// Next hops towards every switch, as slots among the arcs of a switch. An up\*/down\*
/// path that has gone down may not go up again, hence the two phases.
#[derive(Clone, Debug)]
pub(crate) struct NextHops {
    switches: usize,
    slots: Vec<u8>,
}

/// Whether a path may still go up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It has gone up only.
    Up,
    /// It has gone down.
    Down,
}

/// No next hop. A switch has at most 254 arcs, so that this is no slot.
pub(crate) const NO_SLOT: u8 = u8::MAX;

impl NextHops {
    pub(crate) fn new(switches: usize) -> NextHops {
        NextHops {
            switches,
            slots: vec![NO_SLOT; 2 * switches * switches],
        }
    }

    fn row(&self, dst: u32, phase: Phase) -> usize {
        (2 * dst as usize + usize::from(phase == Phase::Down)) * self.switches
    }

    pub(crate) fn set(&mut self, dst: u32, at: u32, phase: Phase, slot: u8) {
        let row = self.row(dst, phase);
        self.slots[row + at as usize] = slot;
    }

    pub(crate) fn get(&self, dst: u32, at: u32, phase: Phase) -> u8 {
        self.slots[self.row(dst, phase) + at as usize]
    }
}
