//! Names of what is in a fabric and on its links, and the bounds of SPEC §2 and §3.

use core::fmt;

/// Largest host id: the worm header has 16 bits for it, and 0xFFFF is the source of worms
/// that no agent built (SPEC §4).
pub const HOST_ID_MAX: u16 = 0xFFFE;
pub const SWITCH_ID_MAX: u16 = 0xFFFE;
/// Largest port: 254 and 255 have a meaning of their own in a route.
pub const PORT_ID_MAX: u8 = 253;
/// The port byte by which a switch absorbs a worm and takes it as newly arrived.
pub const RECIRCULATE_PORT: u8 = 254;
/// Most ports of one switch: 0 to [`PORT_ID_MAX`].
pub const SWITCH_PORTS_MAX: u16 = PORT_ID_MAX as u16 + 1;
/// Most switches a worm crosses: a switch drops a worm that arrives with as many hops.
pub const SWITCHES_CROSSED_MAX: usize = 64;
/// Most bytes of a route: its length is one byte of the header. The P4 program takes as many.
pub const ROUTE_LENGTH_MAX: usize = 255;

/// Most routes that a pair of hosts uses by turns: ten of either length of PIT (ITB §IV.D).
pub const ALTERNATIVES_MAX: usize = 20;
/// All worms of a pair of hosts: the shares of its routes add up to it. Any share of up to ten
/// routes, and of 80 % or 20 % of them, is a whole number of this.
pub const SHARES_WHOLE: u32 = 5 * 2520;

/// A host of the fabric, 0 to [`HOST_ID_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u16);

/// A multicast group, 0..=65535 without 255, which is broadcast (WORM §8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u16);

impl GroupId {
    /// The group number that means broadcast and is no group (WORM §8.1).
    pub const BROADCAST: GroupId = GroupId(255);
}

/// A switch. Ids need not be dense: a damaged fabric has gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchId(pub u16);

/// A switch port, 0 to [`PORT_ID_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(u8);

impl PortId {
    /// The port with this number; `None` for 254 and 255, which are not ports.
    pub const fn new(port: u8) -> Option<PortId> {
        if port <= PORT_ID_MAX {
            Some(PortId(port))
        } else {
            None
        }
    }

    /// What a switch has in place of a port where a frame is to come to it once more. No link is there.
    pub const RECIRCULATE: PortId = PortId(RECIRCULATE_PORT);

    /// Its number, which is its byte in a route.
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// Prints the number alone, padded as asked.
macro_rules! display_number {
    ($($id:ident)*) => {$(
        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

display_number!(HostId GroupId SwitchId PortId);

/// Buffer class of an edge (WORM §4): a buffer request points to a higher host
/// ID or from class one to class two, so requests form no cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BufferClass {
    /// Before the reversal of ID order.
    One,
    /// After it.
    Two,
}

impl BufferClass {
    /// 0 for class one, 1 for class two.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// 1 or 2, as in files.
    pub const fn number(self) -> u8 {
        self as u8 + 1
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
    /// windows are far below. `near` below
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
