//! Priorities and sets of them.

use std::fmt;

/// Priorities of a port: IEEE 802.1Q has eight, and so has a PFC frame.
pub const PRIORITIES: usize = 8;

/// A set of priorities, one bit each.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct PrioritySet(pub u8);

impl PrioritySet {
    pub const NONE: Self = Self(0);
    pub const ALL: Self = Self(0xff);

    /// The set of one priority, 0–7.
    pub fn of(priority: u8) -> Self {
        debug_assert!(usize::from(priority) < PRIORITIES);
        Self(1 << (priority & 7))
    }

    /// Whether a priority is in the set.
    #[inline]
    pub fn contains(self, priority: u8) -> bool {
        self.0 >> (priority & 7) & 1 != 0
    }

    pub fn insert(&mut self, priority: u8) {
        self.0 |= Self::of(priority).0;
    }

    pub fn remove(&mut self, priority: u8) {
        self.0 &= !Self::of(priority).0;
    }

    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Priorities of this set that are not in the other.
    #[inline]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Priorities of either set.
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Its priorities, the lowest first.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..PRIORITIES as u8).filter(move |priority| self.contains(*priority))
    }
}

impl fmt::Debug for PrioritySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl fmt::Display for PrioritySet {
    /// The priorities with commas between them, as `--lossless` takes them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, priority) in self.iter().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            write!(f, "{comma}{priority}")?;
        }
        Ok(())
    }
}

impl FromIterator<u8> for PrioritySet {
    fn from_iter<I: IntoIterator<Item = u8>>(priorities: I) -> Self {
        let mut set = Self::NONE;
        for priority in priorities {
            set.insert(priority);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_sets() {
        let mut set: PrioritySet = [3, 4, 3].into_iter().collect();
        assert_eq!((set.len(), set.to_string()), (2, "3,4".to_owned()));
        assert!(set.contains(3) && !set.contains(0));
        set.remove(3);
        assert_eq!(set, PrioritySet::of(4));
        assert_eq!(set.without(PrioritySet::of(4)), PrioritySet::NONE);
        assert_eq!(
            set.with(PrioritySet::of(0)).iter().collect::<Vec<_>>(),
            [0, 4]
        );
        assert_eq!(format!("{set:?}"), "{4}");
    }
}
