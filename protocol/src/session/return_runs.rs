//! At the origin of a circuit that returns: what has come back of a stream.

use super::reception::Reception;
use crate::window::runs::Runs;

/// What has come back of a stream.
#[derive(Debug)]
pub(crate) struct Returned {
    /// When to acknowledge it, and what ACKs tell of the way.
    pub reception: Reception,
    /// Everything before has come back, or is waited for no more.
    pub(super) end: u64,
    /// What has come back beyond.
    pub(super) runs: Runs,
}

impl Returned {
    /// Nothing of `start..end` is waited for.
    pub(super) fn add(&mut self, start: u64, end: u64) {
        self.runs.add(start, end);
        if let Some((_, end)) = self.runs.containing(self.end) {
            self.end = end;
        }
        self.runs.forget_before(self.end);
    }

    /// Nothing before `stable` is waited for. It became stable without coming back only where the way back was given up,
    /// and then this host is named as one without it.
    pub fn skip_to(&mut self, stable: u64) {
        if stable > self.end {
            self.add(self.end, stable);
        }
    }
}
