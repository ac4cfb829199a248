//! Names of things on the wire: hosts, groups, sequence numbers, buffer classes.

use core::fmt;

/// A host of the fabric, 0..=65534. 65535 is the source of worms that no agent
/// built (SPEC §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostId(pub u16);

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host {}", self.0)
    }
}

/// A multicast group, 0..=65535 without 255, which is broadcast (WORM §8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupId(pub u16);

impl GroupId {
    /// The group number that means broadcast and is no group (WORM §8.1).
    pub const BROADCAST: GroupId = GroupId(255);
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "group {}", self.0)
    }
}

/// Buffer class of an edge (WORM §4): a buffer request points to a higher host
/// ID or from class one to class two, so requests form no cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BufferClass {
    /// Before the reversal of ID order.
    One,
    /// After it.
    Two,
}

impl BufferClass {
    /// 0 for class one, 1 for class two.
    pub fn index(self) -> usize {
        match self {
            BufferClass::One => 0,
            BufferClass::Two => 1,
        }
    }
}

/// Sequence number of a packet in the stream of one origin to one group, as the
/// wire carries it: modulo 2^32, compared by RFC 1982.
///
/// Inside the engine a packet is named by its *position*, a `u64` that does not
/// wrap; [`Seq::expand`] turns one into the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seq(pub u32);

impl Seq {
    /// The position with this sequence number that is nearest to `near`.
    ///
    /// Exact as long as the true position is less than 2^31 packets from `near`;
    /// windows are bounded far below ([`crate::WINDOW_PACKETS_MAX`]). `near` below
    /// 2^31 would allow no negative distance, which is why streams start at
    /// position 2^32 plus their first sequence number.
    pub fn expand(self, near: u64) -> u64 {
        let distance = self.0.wrapping_sub(near as u32) as i32;
        near.wrapping_add_signed(i64::from(distance))
    }

    /// The sequence number of a position.
    pub fn of(position: u64) -> Seq {
        Seq(position as u32)
    }

    /// The position of the first packet of a stream that starts at this number.
    pub fn first_position(self) -> u64 {
        (1 << 32) + u64::from(self.0)
    }

    /// RFC 1982 §3.2: true if this number comes after `other`. Two numbers just
    /// 2^31 apart have no order; then the answer is false both ways.
    pub fn is_after(self, other: Seq) -> bool {
        let distance = self.0.wrapping_sub(other.0);
        distance != 0 && distance < 1 << 31
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn order_is_that_of_rfc_1982_across_the_wrap() {
        assert!(Seq(0).is_after(Seq(u32::MAX)));
        assert!(!Seq(u32::MAX).is_after(Seq(0)));
        assert!(!Seq(7).is_after(Seq(7)));
        assert!(!Seq(0).is_after(Seq(1 << 31)) && !Seq(1 << 31).is_after(Seq(0)));
    }

    proptest! {
        #[test]
        fn expanding_finds_the_position_again(near in (1u64 << 32)..(1 << 40), distance in -(1i64 << 31) + 1..(1i64 << 31)) {
            let position = near.wrapping_add_signed(distance);
            prop_assert_eq!(Seq::of(position).expand(near), position);
        }

        #[test]
        fn exactly_one_of_two_numbers_comes_after_the_other(a: u32, b: u32) {
            prop_assume!(a != b && a.wrapping_sub(b) != 1 << 31);
            prop_assert!(Seq(a).is_after(Seq(b)) != Seq(b).is_after(Seq(a)));
        }
    }
}
