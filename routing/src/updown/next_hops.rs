//! One next hop for every pair of switches and phase of the path.

/// Next hops towards every switch, as slots among the arcs of a switch. An up\*/down\*
/// path that has gone down may not go up again, hence the two phases. Two bytes for each
/// pair of switches: 200 MB for 10,000.
#[derive(Clone, Debug)]
pub struct NextHops {
    switches: usize,
    slots: Vec<u8>,
}

/// Whether a path may still go up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It has gone up only.
    Up,
    Down,
}

/// No next hop. A switch has at most 254 arcs, so that this is no slot.
pub const NO_SLOT: u8 = u8::MAX;

impl NextHops {
    pub fn new(switches: usize) -> NextHops {
        NextHops {
            switches,
            slots: vec![NO_SLOT; 2 * switches * switches],
        }
    }

    fn first(&self, dst: u32, phase: Phase) -> usize {
        (2 * dst as usize + phase as usize) * self.switches
    }

    /// Takes the arc in this slot of switch `at` towards switch `dst`, both by index.
    pub fn set(&mut self, dst: u32, at: u32, phase: Phase, slot: u8) {
        let first = self.first(dst, phase);
        self.slots[first + at as usize] = slot;
    }

    /// The slot of the arc towards switch `dst`, or [`NO_SLOT`].
    pub fn get(&self, dst: u32, at: u32, phase: Phase) -> u8 {
        self.slots[self.first(dst, phase) + at as usize]
    }

    /// Slots towards a destination, by switch.
    pub(crate) fn row(&self, dst: u32, phase: Phase) -> &[u8] {
        let first = self.first(dst, phase);
        &self.slots[first..first + self.switches]
    }

    /// Slots towards a destination, by switch, of paths that may still go up and of those
    /// that may not.
    pub(crate) fn rows_mut(&mut self, dst: u32) -> (&mut [u8], &mut [u8]) {
        let first = self.first(dst, Phase::Up);
        self.slots[first..first + 2 * self.switches].split_at_mut(self.switches)
    }
}
