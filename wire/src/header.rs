//! The headers of worms (SPEC §1–§3): their parts, checksum and encoding in place.

use crate::{
    ETHERNET_LENGTH, ETHERTYPE_HOST_PDU, ETHERTYPE_WORM, HostId, ROUTE_LENGTH_MAX, WORM_MAC,
};
use crate::{put_u16, u16_at};

/// Bytes of a worm header without route.
pub const HEADER_LENGTH: usize = 12;
/// Ends the list of branches of a TREE route at a switch.
pub const END_OF_ROUTE: u8 = 0xFF;
pub(crate) const VERSION: u8 = 1;
/// Where the checksum stands in the header.
pub(crate) const CHECKSUM_AT: usize = 10;
/// Bytes behind the route of a GATHER worm that its checksum covers: what it says ([`crate::gather`]).
pub(crate) const GATHER_LENGTH: usize = 24;

/// What a worm's route means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// Port bytes to one host.
    Unicast = 0,
    /// Branches to several.
    Tree = 1,
    /// Port bytes to the root, then all hosts.
    Broadcast = 2,
    /// A group number.
    Group = 3,
    /// For targets without PFC.
    Control = 4,
    /// An ACK that switches gather ([`crate::gather`]); with a route, as UNICAST.
    Gather = 5,
}

impl Kind {
    pub const ALL: [Kind; 6] = [
        Kind::Unicast,
        Kind::Tree,
        Kind::Broadcast,
        Kind::Group,
        Kind::Control,
        Kind::Gather,
    ];

    pub(crate) fn from_code(code: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| *kind as u8 == code)
    }
}

/// Flag bits of a worm (SPEC §2.1).
pub mod flags {
    /// Buffer class 2.
    pub const CLASS2: u8 = 1 << 0;
    /// First frame of a worm.
    pub const HEAD: u8 = 1 << 1;
    /// Last frame of a worm.
    pub const TAIL: u8 = 1 << 2;
    /// Sent on after an interruption.
    pub const RESUMED: u8 = 1 << 3;
    /// Congestion experienced.
    pub const CE: u8 = 1 << 4;
    /// Records of hops stand behind the route ([`crate::trace`]).
    pub const TRACE: u8 = 1 << 5;
    /// A train header stands before the route ([`crate::train`]).
    pub const TRAIN: u8 = 1 << 6;
    /// With TAIL: the train ends early.
    pub const ABORT: u8 = 1 << 7;
}

/// A worm header without its route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the route means.
    pub kind: Kind,
    pub flags: u8,
    /// Switches crossed.
    pub hops: u8,
    /// The host that built the worm.
    pub source: HostId,
    /// Counts the worms of that host, modulo 2^16.
    pub sequence: u16,
    /// EtherType of the payload.
    pub next: u16,
}

/// Bytes of a train header.
pub const TRAIN_LENGTH: usize = 20;
/// Ports that a head records on its way.
pub const BACK_MAX: usize = 15;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Train {
    /// Of the frame in its train; the head has 0.
    pub position: u16,
    /// Switches that the head has crossed.
    pub back_count: u8,
    /// Which multicast it is by the count of the root, where that counts; 0: none.
    pub order: u16,
    /// Ports by which it came into the last of them; the last byte is that of the last switch.
    pub back: [u8; BACK_MAX],
}

impl Train {
    /// That of a worm with flag TRAIN, from the bytes behind its header.
    pub(crate) fn read(bytes: &[u8; TRAIN_LENGTH]) -> Train {
        let [_, _, back_count, _, _, back @ ..] = *bytes;
        Train {
            position: u16_at(bytes, 0),
            back_count,
            order: u16_at(bytes, 3),
            back,
        }
    }
}

/// The RFC 1071 checksum of a header and the route after it, the checksum field
/// taken as zero. `header_and_route` has at least 12 bytes.
pub fn checksum(header_and_route: &[u8]) -> u16 {
    checksum_with(header_and_route, &[])
}

/// The same with what it covers behind the route.
pub(crate) fn checksum_with(header_and_route: &[u8], behind: &[u8]) -> u16 {
    let (before, rest) = header_and_route.split_at(CHECKSUM_AT);
    let mut sum = sum_of(before) + sum_of(&rest[2..]) + sum_of(behind);
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}

fn sum_of(bytes: &[u8]) -> u32 {
    let pairs = bytes.chunks(2);
    let pair = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
    pairs.map(pair).sum()
}

/// Where the bytes end that the checksum covers.
pub(crate) fn covered_end(kind: Kind, route_end: usize) -> usize {
    match kind {
        Kind::Gather => route_end + GATHER_LENGTH,
        _ => route_end,
    }
}

/// Where the route begins of a worm with these flags.
pub(crate) fn route_start(flags: u8) -> usize {
    match flags & flags::TRAIN {
        0 => HEADER_LENGTH,
        _ => HEADER_LENGTH + TRAIN_LENGTH,
    }
}

/// Writes the checksum of a worm that is whole as far as that covers it.
pub(crate) fn seal(worm: &mut [u8]) {
    let route_end = route_start(worm[1]) + usize::from(worm[2]);
    let end = Kind::from_code(worm[0] & 0xF).map_or(route_end, |kind| covered_end(kind, route_end));
    if let Some((route, behind)) = worm
        .get(..end)
        .and_then(|all| all.split_at_checked(route_end))
    {
        let sum = checksum_with(route, behind);
        put_u16(worm, CHECKSUM_AT, sum);
    }
}

impl Header {
    /// Whether a trace stands behind the route: only worms that carry a host PDU have one, since switches
    /// look for IP packets right behind the route.
    pub const fn is_traced(&self) -> bool {
        let can_be = self.next == ETHERTYPE_HOST_PDU && !matches!(self.kind, Kind::Gather);
        self.flags & flags::TRACE != 0 && can_be
    }
}

/// Writes Ethernet header, worm header and route to the front of `frame`; the
/// payload, or the trace of a traced worm, starts at the offset returned. `frame` must have room and `route` at
/// most [`ROUTE_LENGTH_MAX`] bytes. The worm is one of one frame, without [`flags::TRAIN`]: [`crate::wormhole::train::couple`]
/// makes frames of trains.
pub fn encode(frame: &mut [u8], mac: [u8; 6], header: &Header, route: &[u8]) -> usize {
    assert!(
        route.len() <= ROUTE_LENGTH_MAX,
        "a route has at most 255 bytes"
    );
    frame[..6].copy_from_slice(&WORM_MAC);
    frame[6..12].copy_from_slice(&mac);
    put_u16(frame, 12, ETHERTYPE_WORM);
    ETHERNET_LENGTH + encode_worm(&mut frame[ETHERNET_LENGTH..], header, route)
}

/// Writes worm header and route; gives the bytes written. The checksum is that of a worm whose checksum covers no more
/// than these.
pub fn encode_worm(worm: &mut [u8], header: &Header, route: &[u8]) -> usize {
    worm[0] = VERSION << 4 | header.kind as u8;
    worm[1] = header.flags & !flags::TRAIN;
    worm[2] = route.len() as u8;
    worm[3] = header.hops;
    put_u16(worm, 4, header.source.0);
    put_u16(worm, 6, header.sequence);
    put_u16(worm, 8, header.next);
    let end = HEADER_LENGTH + route.len();
    worm[HEADER_LENGTH..end].copy_from_slice(route);
    let sum = checksum(&worm[..end]);
    put_u16(worm, CHECKSUM_AT, sum);
    end
}
