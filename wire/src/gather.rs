//! What a GATHER worm says (SPEC §3.2): ACKs that switches sum up.

use crate::header::{self, HEADER_LENGTH, Header, Kind};
use crate::worm::Worm;
use crate::{DecodeError, ETHERNET_LENGTH, put_u16, put_u32, u16_at, u32_at};
use crate::{GroupId, HostId, Seq};

/// Bytes behind the route.
pub const LENGTH: usize = header::GATHER_LENGTH;
/// EtherType of the payload; nobody looks at it.
const NEXT: u16 = 0x0001;
/// Bytes of a frame that no link pads.
const FRAME_LENGTH_LEAST: usize = 60;

/// What a GATHER worm is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// So much is acknowledged.
    Ack = 1,
    /// How much has a branch acknowledged?
    Request = 2,
    /// So much.
    Answer = 3,
}

pub mod flags {
    /// Of an ACK: say it again.
    pub const REFRESH: u8 = 1 << 0;
    /// Of an answer: the branch has acknowledged.
    pub const KNOWN: u8 = 1 << 1;
    /// All bits that mean something.
    pub const ALL: u8 = REFRESH | KNOWN;
}

/// What a GATHER worm says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announcement {
    pub op: Op,
    pub flags: u8,
    /// Whose tree: the group.
    pub group: GroupId,
    /// Whose tree: the origin.
    pub origin: HostId,
    /// Of a request and its answer: the port of the branch.
    pub port: u8,
    /// Of the plan by which members and branches are counted.
    pub epoch: u32,
    /// Which life of the stream.
    pub stream: u32,
    /// All behind the branch hold, or have delivered, everything before.
    pub cumulative: Seq,
    /// All behind the branch have confirmed everything before.
    pub stable: Seq,
}

/// Reads what a GATHER worm says.
pub fn decode(worm: &Worm<'_>) -> Result<Announcement, DecodeError> {
    if worm.header.kind != Kind::Gather {
        return Err(DecodeError::WormKind);
    }
    let body = worm.payload.get(..LENGTH).ok_or(DecodeError::Truncated)?;
    let op = match body[0] {
        1 => Op::Ack,
        2 => Op::Request,
        3 => Op::Answer,
        _ => return Err(DecodeError::GatherOp),
    };
    Ok(Announcement {
        op,
        flags: body[1] & flags::ALL,
        group: GroupId(u16_at(body, 2)),
        origin: HostId(u16_at(body, 4)),
        port: body[6],
        epoch: u32_at(body, 8),
        stream: u32_at(body, 12),
        cumulative: Seq(u32_at(body, 16)),
        stable: Seq(u32_at(body, 20)),
    })
}

/// Writes a whole frame to the front of `frame`, padding included; gives the bytes written. `frame` must have room,
/// and `route` at most [`crate::ROUTE_LENGTH_MAX`] bytes.
pub fn encode(
    frame: &mut [u8],
    mac: [u8; 6],
    (source, sequence): (HostId, u16),
    route: &[u8],
    announced: &Announcement,
) -> usize {
    let header = Header {
        kind: Kind::Gather,
        flags: header::flags::HEAD | header::flags::TAIL,
        hops: 0,
        source,
        sequence,
        next: NEXT,
    };
    let at = header::encode(frame, mac, &header, route);
    let body = &mut frame[at..at + LENGTH];
    body[0] = announced.op as u8;
    body[1] = announced.flags & flags::ALL;
    put_u16(body, 2, announced.group.0);
    put_u16(body, 4, announced.origin.0);
    body[6] = announced.port;
    body[7] = 0;
    put_u32(body, 8, announced.epoch);
    put_u32(body, 12, announced.stream);
    put_u32(body, 16, announced.cumulative.0);
    put_u32(body, 20, announced.stable.0);
    let end = at + LENGTH;
    header::seal(&mut frame[ETHERNET_LENGTH..end]);
    let length = end.max(FRAME_LENGTH_LEAST);
    frame[end..length].fill(0);
    length
}

/// Bytes of the longest frame.
pub const FRAME_LENGTH_MAX: usize =
    ETHERNET_LENGTH + HEADER_LENGTH + crate::ROUTE_LENGTH_MAX + LENGTH;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worm;
    use proptest::prelude::*;

    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 9];

    fn any_announcement() -> impl Strategy<Value = Announcement> {
        let op = prop_oneof![Just(Op::Ack), Just(Op::Request), Just(Op::Answer)];
        let names = (any::<u16>(), any::<u16>(), any::<u8>());
        let numbers = (any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>());
        (op, 0..=flags::ALL, names, numbers).prop_map(|(op, flags, names, numbers)| Announcement {
            op,
            flags,
            group: GroupId(names.0),
            origin: HostId(names.1),
            port: names.2,
            epoch: numbers.0,
            stream: numbers.1,
            cumulative: Seq(numbers.2),
            stable: Seq(numbers.3),
        })
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            announced in any_announcement(),
            route in proptest::collection::vec(any::<u8>(), 0..=255),
            source: u16,
        ) {
            let mut frame = vec![0xAA; FRAME_LENGTH_MAX];
            let length = encode(&mut frame, MAC, (HostId(source), 7), &route, &announced);
            prop_assert!(length >= FRAME_LENGTH_LEAST);
            let worm = worm::decode(&frame[..length]).expect("own encoding");
            prop_assert_eq!((worm.header.source, worm.route), (HostId(source), &route[..]));
            prop_assert_eq!(decode(&worm), Ok(announced));
            prop_assert!(worm.payload[LENGTH..].iter().all(|byte| *byte == 0));
        }

        #[test]
        fn one_flipped_bit_is_noticed(
            announced in any_announcement(),
            route in proptest::collection::vec(any::<u8>(), 0..=9),
            bit in any::<proptest::sample::Index>(),
        ) {
            let mut frame = vec![0; FRAME_LENGTH_MAX];
            encode(&mut frame, MAC, (HostId(1), 7), &route, &announced);
            let worm = &mut frame[ETHERNET_LENGTH..];
            let bit = bit.index((HEADER_LENGTH + route.len() + LENGTH) * 8);
            worm[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(worm::decode_worm(worm).is_err());
        }

        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60), length in 0u8..30) {
            let mut worm = vec![0x15, 6, length, 0, 0, 1, 0, 1, 0, 1, 0, 0];
            worm.extend(bytes);
            header::seal(&mut worm);
            if let Ok(worm) = worm::decode_worm(&worm) {
                let _ = decode(&worm);
            }
        }
    }

    #[test]
    fn what_is_of_another_kind_or_no_op_says_nothing() {
        let header = Header {
            kind: Kind::Control,
            flags: 0,
            hops: 0,
            source: HostId(1),
            sequence: 0,
            next: NEXT,
        };
        let mut worm = Worm {
            train: None,
            header,
            route: &[],
            trace: None,
            payload: &[1; LENGTH],
        };
        assert_eq!(decode(&worm), Err(DecodeError::WormKind));
        worm.header.kind = Kind::Gather;
        assert!(decode(&worm).is_ok());
        worm.payload = &[1; LENGTH - 1];
        assert_eq!(decode(&worm), Err(DecodeError::Truncated));
        for op in [0, 4, 255] {
            let payload = [op; LENGTH];
            let worm = Worm {
                payload: &payload,
                ..worm
            };
            assert_eq!(decode(&worm), Err(DecodeError::GatherOp));
        }
    }
}
