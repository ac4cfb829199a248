//! Worms as they are received (SPEC §1–§3).

use crate::header::Train;
use crate::header::{CHECKSUM_AT, VERSION, checksum_with, covered_end, route_start};
pub use crate::header::{
    END_OF_ROUTE, HEADER_LENGTH, Header, Kind, checksum, encode, encode_worm, flags,
};
pub use crate::ids::RECIRCULATE_PORT;
use crate::trace::Trace;
use crate::{DecodeError, ETHERNET_LENGTH, ETHERTYPE_WORM, HostId, u16_at};

/// A worm in a received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worm<'a> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WORM_MAC;
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
