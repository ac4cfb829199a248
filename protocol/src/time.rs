//! Time as the engine sees it: microseconds of a clock that never goes back.

/// A point in time, in microseconds since some start that the shell chooses and
/// keeps for the life of an engine. Monotone: the engine treats a `now` smaller
/// than one it has seen as no time having passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(u64);

impl Instant {
    /// The start of the clock.
    pub const ZERO: Instant = Instant(0);

    /// From microseconds since the start of the clock.
    pub const fn from_micros(us: u64) -> Instant {
        Instant(us)
    }

    /// Microseconds since the start of the clock.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    #[must_use]
    pub const fn plus_us(self, us: u64) -> Instant {
        Instant(self.0.saturating_add(us))
    }

    /// Microseconds from `earlier` to here, 0 if `earlier` is not earlier.
    pub const fn since_us(self, earlier: Instant) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The 32-bit timestamp that packets carry; wraps after 71.6 minutes.
    pub const fn stamp(self) -> u32 {
        self.0 as u32
    }
}
