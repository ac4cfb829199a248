//! The idle timer of an entry.

use super::entry::TableEntry;
use wormcast_switch_program::TableId;

/// Shortest timeout that is kept to, microseconds; shorter ones count as this one.
pub const IDLE_TIMEOUT_MIN_US: u64 = 1_000;

/// The timer of an entry.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timer {
    /// As it was set; 0: the entry does not age.
    pub(super) timeout_ns: u64,
    pub(super) set_us: u64,
    /// When the entry was last reported idle, or the timer was set.
    pub(super) reset_us: u64,
    /// When to look at the entry again. A packet may put off what is due then.
    pub(super) look_us: u64,
}

impl Timer {
    pub(super) fn new(timeout_ns: u64, now_us: u64) -> Self {
        let timer = Self {
            timeout_ns,
            set_us: now_us,
            reset_us: now_us,
            look_us: 0,
        };
        timer.look_at(now_us.saturating_add(timer.timeout_us()))
    }

    pub(super) fn look_at(self, look_us: u64) -> Self {
        Self { look_us, ..self }
    }

    pub(super) fn timeout_us(&self) -> u64 {
        self.timeout_ns.div_ceil(1_000).max(IDLE_TIMEOUT_MIN_US)
    }

    /// When to look at the entry, if it ages.
    pub(super) fn deadline_us(&self) -> Option<u64> {
        (self.timeout_ns > 0).then_some(self.look_us)
    }
}

/// The age of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// After this time without a packet it is reported idle, nanoseconds; 0: never.
    pub timeout_ns: u64,
    /// Time since a packet found it, or since it was inserted, microseconds.
    pub since_hit_us: u64,
}

/// An entry that no packet has found for its timeout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expired {
    pub table: TableId,
    /// The entry, which stays where it is.
    pub entry: TableEntry,
    pub timeout_ns: u64,
}
