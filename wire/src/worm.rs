//! The worm header (SPEC §1–§3): encoding in place, decoding, checksum.

use crate::gather;
use crate::trace::Trace;
use crate::train::{TRAIN_LENGTH, Train};
use crate::{DecodeError, ETHERNET_LENGTH, ETHERTYPE_WORM, WORM_MAC, put_u16, u16_at};
use crate::{ETHERTYPE_HOST_PDU, HostId, ROUTE_LENGTH_MAX};

/// Bytes of a worm header without route.
pub const HEADER_LENGTH: usize = 12;
/// The port byte by which a switch absorbs a worm and takes it as newly arrived.
pub const RECIRCULATE_PORT: u8 = 254;
/// Ends the list of branches of a TREE route at a switch.
pub const END_OF_ROUTE: u8 = 0xFF;
const VERSION: u8 = 1;
/// Where the checksum stands in the header.
const CHECKSUM_AT: usize = 10;

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
    /// All kinds.
    pub const ALL: [Kind; 6] = [
        Kind::Unicast,
        Kind::Tree,
        Kind::Broadcast,
        Kind::Group,
        Kind::Control,
        Kind::Gather,
    ];

    fn from_code(code: u8) -> Option<Kind> {
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
    /// [`flags`].
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

/// A worm in a received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worm<'a> {
    /// Its header.
    pub header: Header,
    /// Of a frame of a train.
    pub train: Option<Train>,
    /// What is left of its route.
    pub route: &'a [u8],
    /// Records of the hops so far, of a worm that is traced.
    pub trace: Option<Trace<'a>>,
    /// What follows route and records, Ethernet padding included if there was any. What a GATHER worm says is its
    /// beginning.
    pub payload: &'a [u8],
}

/// The RFC 1071 checksum of a header and the route after it, the checksum field
/// taken as zero. `header_and_route` has at least 12 bytes.
pub fn checksum(header_and_route: &[u8]) -> u16 {
    checksum_with(header_and_route, &[])
}

/// The same with what it covers behind the route.
fn checksum_with(header_and_route: &[u8], behind: &[u8]) -> u16 {
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
fn covered_end(kind: Kind, route_end: usize) -> usize {
    match kind {
        Kind::Gather => route_end + gather::LENGTH,
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

/// Reads a worm out of an Ethernet frame and verifies its checksum.
pub fn decode(frame: &[u8]) -> Result<Worm<'_>, DecodeError> {
    if frame.len() < ETHERNET_LENGTH {
        return Err(DecodeError::Truncated);
    }
    if u16_at(frame, 12) != ETHERTYPE_WORM {
        return Err(DecodeError::NotWorm);
    }
    decode_worm(&frame[ETHERNET_LENGTH..])
}

/// Reads a worm out of the bytes after the Ethernet header.
pub fn decode_worm(bytes: &[u8]) -> Result<Worm<'_>, DecodeError> {
    if bytes.len() < HEADER_LENGTH {
        return Err(DecodeError::Truncated);
    }
    if bytes[0] >> 4 != VERSION {
        return Err(DecodeError::WormVersion);
    }
    let kind = Kind::from_code(bytes[0] & 0xF).ok_or(DecodeError::WormKind)?;
    let start = route_start(bytes[1]);
    let end = start + usize::from(bytes[2]);
    let covered = covered_end(kind, end);
    if bytes.len() < covered {
        return Err(DecodeError::Truncated);
    }
    if checksum_with(&bytes[..end], &bytes[end..covered]) != u16_at(bytes, CHECKSUM_AT) {
        return Err(DecodeError::WormChecksum);
    }
    let header = Header {
        kind,
        flags: bytes[1],
        hops: bytes[3],
        source: HostId(u16_at(bytes, 4)),
        sequence: u16_at(bytes, 6),
        next: u16_at(bytes, 8),
    };
    let (trace, payload) = if header.is_traced() {
        Trace::split(&bytes[end..]).map(|(trace, payload)| (Some(trace), payload))?
    } else {
        (None, &bytes[end..])
    };
    Ok(Worm {
        header,
        train: bytes[HEADER_LENGTH..start].first_chunk().map(Train::read),
        route: &bytes[start..end],
        trace,
        payload,
    })
}

/// The sequence of a worm whose header is whole.
pub fn sequence_of(frame: &[u8]) -> u16 {
    u16_at(frame, ETHERNET_LENGTH + 6)
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
/// most [`ROUTE_LENGTH_MAX`] bytes. The worm is one of one frame, without [`flags::TRAIN`]: [`crate::train::couple`]
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_header() -> impl Strategy<Value = Header> {
        (
            0usize..5,
            any::<u8>(),
            any::<u8>(),
            any::<u16>(),
            any::<u16>(),
            any::<u16>(),
        )
            .prop_map(|(kind, flags, hops, source, sequence, next)| Header {
                kind: Kind::ALL[kind],
                flags,
                hops,
                source: HostId(source),
                sequence,
                next,
            })
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            header in any_header(),
            route in proptest::collection::vec(any::<u8>(), 0..=255),
            payload in proptest::collection::vec(any::<u8>(), 0..64),
        ) {
            let header = Header { flags: header.flags & !(flags::TRACE | flags::TRAIN), ..header };
            let mut frame = vec![0; 14 + 12 + route.len() + payload.len()];
            let at = encode(&mut frame, [2, 0, 0, 0, 0, 9], &header, &route);
            frame[at..].copy_from_slice(&payload);
            let worm = decode(&frame).expect("own encoding");
            prop_assert_eq!(worm, Worm { header, train: None, route: &route, trace: None, payload: &payload });
            prop_assert_eq!(&frame[..6], &WORM_MAC);
        }

        #[test]
        fn one_flipped_bit_in_header_or_route_is_noticed(
            header in any_header(),
            route in proptest::collection::vec(any::<u8>(), 0..=40),
            bit in any::<proptest::sample::Index>(),
        ) {
            let mut bytes = vec![0; 12 + route.len()];
            encode_worm(&mut bytes, &header, &route);
            let bit = bit.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(decode_worm(&bytes).is_err());
        }

        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode(&bytes);
            let _ = decode_worm(&bytes);
        }
    }
}
