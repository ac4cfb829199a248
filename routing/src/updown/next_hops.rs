//! One next hop for every pair of switches and phase of the path.

/// Next hops towards every switch, as slots among the arcs of a switch. An up\*/down\*
/// path that has gone down may not go up again, hence the two phases. Two bytes for each
/// pair of switches: 200 MB for 10,000.
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

    fn first(&self, dst: u32, phase: Phase) -> usize {
        (2 * dst as usize + phase as usize) * self.switches
    }

    pub(crate) fn set(&mut self, dst: u32, at: u32, phase: Phase, slot: u8) {
        let first = self.first(dst, phase);
        self.slots[first + at as usize] = slot;
    }

    pub(crate) fn get(&self, dst: u32, at: u32, phase: Phase) -> u8 {
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
