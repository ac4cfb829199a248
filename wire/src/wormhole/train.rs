//! Trains (SPEC §2.3): worms of several frames, and how one is coupled together from worms of one frame.
//!
//! The head keeps its route, the frames behind it lose theirs. All get a train header and the sequence of the head.

pub use crate::header::{BACK_MAX, TRAIN_LENGTH, Train};
use crate::header::{HEADER_LENGTH, Header, Kind, flags, seal};
use crate::worm::decode;
use crate::{DecodeError, ETHERNET_LENGTH, ETHERTYPE_WORM, put_u16, u16_at};
use thiserror::Error;

/// Where a frame stands in its train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Of the worm: that of its head.
    pub sequence: u16,
    /// From 0, the head.
    pub position: u16,
    pub is_last: bool,
}

/// Why a frame cannot be coupled into a train.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CoupleError {
    /// It is no sound worm.
    #[error("{0}")]
    NotWorm(DecodeError),
    /// Only UNICAST and TREE worms are trains.
    #[error("a worm of kind {0:?}; only UNICAST and TREE worms are trains")]
    Kind(Kind),
    /// It is a part of a worm already, or traced.
    #[error("flags {0:#04x}; a worm of one frame has HEAD and TAIL, and may have CLASS2 and CE")]
    Flags(u8),
    /// The buffer ends before the frame does.
    #[error("the frame takes {wanted} bytes, the buffer has {room}")]
    NoRoom {
        /// Bytes that the frame takes.
        wanted: usize,
        /// Bytes of the buffer.
        room: usize,
    },
}

/// Whether a frame claims to be one of a train, by the kinds that can be. For most frames two bytes decide it.
pub fn is_train(frame: &[u8]) -> bool {
    frame.len() >= ETHERNET_LENGTH + HEADER_LENGTH
        && frame[ETHERNET_LENGTH + 1] & flags::TRAIN != 0
        && u16_at(frame, ETHERNET_LENGTH - 2) == ETHERTYPE_WORM
        && matches!(
            frame[ETHERNET_LENGTH] & 0xF,
            kind if kind == Kind::Unicast as u8 || kind == Kind::Tree as u8
        )
}

/// Whether two worms of one frame may be in one train, by what their headers say: one route, one kind and one class.
pub fn share_a_train(first: &[u8], second: &[u8]) -> bool {
    let way = |frame: &[u8]| -> Option<(u8, u8, usize)> {
        let header = frame.get(ETHERNET_LENGTH..ETHERNET_LENGTH + HEADER_LENGTH)?;
        let end = ETHERNET_LENGTH + HEADER_LENGTH + usize::from(header[2]);
        (frame.len() >= end).then_some((header[0], header[1], end))
    };
    let (Some(one), Some(other)) = (way(first), way(second)) else {
        return false;
    };
    let start = ETHERNET_LENGTH + HEADER_LENGTH;
    one == other
        && first[ETHERNET_LENGTH + 8..ETHERNET_LENGTH + 10]
            == second[ETHERNET_LENGTH + 8..ETHERNET_LENGTH + 10]
        && first[start..one.2] == second[start..one.2]
}

/// Makes a worm of one frame, the first `length` bytes of a buffer, a frame of a train; gives its length. A head is
/// [`TRAIN_LENGTH`] bytes longer then, what follows it by as much less its route. An error leaves it as it was.
///
/// # Errors
/// [`CoupleError`].
pub fn couple(buf: &mut [u8], length: usize, place: Place) -> Result<usize, CoupleError> {
    let room = buf.len();
    let no_room = |wanted| CoupleError::NoRoom { wanted, room };
    let frame = buf.get(..length).ok_or(no_room(length))?;
    let worm = decode(frame).map_err(CoupleError::NotWorm)?;
    let Header { kind, flags, .. } = worm.header;
    if !matches!(kind, Kind::Unicast | Kind::Tree) {
        return Err(CoupleError::Kind(kind));
    }
    let whole = flags::HEAD | flags::TAIL;
    if flags & !(flags::CLASS2 | flags::CE) != whole {
        return Err(CoupleError::Flags(flags));
    }
    let is_head = place.position == 0;
    let start = ETHERNET_LENGTH + HEADER_LENGTH;
    let from = if is_head {
        start
    } else {
        start + worm.route.len()
    };
    let wanted = start + TRAIN_LENGTH + length - from;
    if wanted > room {
        return Err(no_room(wanted));
    }
    buf.copy_within(from..length, start + TRAIN_LENGTH);
    let worm = &mut buf[ETHERNET_LENGTH..wanted];
    worm[1] = flags & !whole | flags::TRAIN;
    if is_head {
        worm[1] |= flags::HEAD;
    } else {
        worm[2] = 0;
    }
    if place.is_last {
        worm[1] |= flags::TAIL;
    }
    put_u16(worm, 6, place.sequence);
    worm[HEADER_LENGTH..HEADER_LENGTH + TRAIN_LENGTH].fill(0);
    put_u16(worm, HEADER_LENGTH, place.position);
    seal(worm);
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worm::{Worm, encode};
    use crate::{ETHERTYPE_HOST_PDU, HostId};
    use proptest::prelude::*;

    fn frame(kind: Kind, flags: u8, route: &[u8], payload: &[u8]) -> Vec<u8> {
        let header = Header {
            kind,
            flags,
            hops: 0,
            source: HostId(7),
            sequence: 9,
            next: ETHERTYPE_HOST_PDU,
        };
        let mut frame = vec![0; ETHERNET_LENGTH + HEADER_LENGTH + route.len() + payload.len()];
        let at = encode(&mut frame, [2; 6], &header, route);
        frame[at..].copy_from_slice(payload);
        frame
    }

    const WHOLE: u8 = flags::HEAD | flags::TAIL;

    /// The bytes that the Python codec makes of the same head and tail.
    #[test]
    fn bytes_are_those_of_the_specification() {
        let mut buf = frame(Kind::Unicast, WHOLE, &[5, 1], b"abc");
        let length = buf.len();
        buf.resize(length + TRAIN_LENGTH, 0xEE);
        let place = |position, is_last| Place {
            sequence: 0x0102,
            position,
            is_last,
        };
        let mut body = buf.clone();
        assert_eq!(couple(&mut buf, length, place(0, false)), Ok(length + 20));
        assert_eq!(buf[14..24], [0x10, 0x42, 2, 0, 0, 7, 1, 2, 0x88, 0xB6]);
        assert_eq!(buf[26..46], [0; 20]);
        assert_eq!(buf[46..], *b"\x05\x01abc");
        let got = couple(&mut body, length, place(0x0304, true));
        assert_eq!(got, Ok(length + 18));
        assert_eq!(body[14..24], [0x10, 0x44, 0, 0, 0, 7, 1, 2, 0x88, 0xB6]);
        assert_eq!(body[26..30], [3, 4, 0, 0]);
        assert_eq!(body[46..length + 18], *b"abc");
    }

    #[test]
    fn what_cannot_be_coupled_is_refused_and_left_as_it_was() {
        let place = Place {
            sequence: 1,
            position: 0,
            is_last: false,
        };
        let refuse = |mut buf: Vec<u8>, length: usize, error: CoupleError| {
            let before = buf.clone();
            assert_eq!(couple(&mut buf, length, place), Err(error));
            assert_eq!(buf, before);
        };
        for kind in [Kind::Broadcast, Kind::Group, Kind::Gather] {
            let mut buf = frame(kind, WHOLE, &[1], &[0; 24]);
            seal(&mut buf[ETHERNET_LENGTH..]);
            let length = buf.len();
            buf.resize(200, 0);
            refuse(buf, length, CoupleError::Kind(kind));
        }
        for flags in [flags::HEAD, flags::TAIL, WHOLE | flags::RESUMED] {
            let mut buf = frame(Kind::Tree, flags, &[1, 0, 255], &[]);
            let length = buf.len();
            buf.resize(200, 0);
            refuse(buf, length, CoupleError::Flags(flags));
        }
        let mut buf = frame(Kind::Unicast, WHOLE, &[1, 2], &[0; 30]);
        let (length, room) = (buf.len(), buf.len() + TRAIN_LENGTH - 1);
        buf.resize(room, 0);
        let no_room = |wanted, room| CoupleError::NoRoom { wanted, room };
        refuse(buf.clone(), length, no_room(length + TRAIN_LENGTH, room));
        refuse(buf.clone(), room + 1, no_room(room + 1, room));
        buf[20] ^= 1;
        let damaged = CoupleError::NotWorm(DecodeError::WormChecksum);
        refuse(buf, length, damaged);
    }

    #[test]
    fn only_one_way_and_one_class_share_a_train() {
        let first = frame(Kind::Unicast, WHOLE, &[5, 1], b"abc");
        assert!(share_a_train(
            &first,
            &frame(Kind::Unicast, WHOLE, &[5, 1], b"other")
        ));
        for other in [
            frame(Kind::Tree, WHOLE, &[5, 1], b"abc"),
            frame(Kind::Unicast, WHOLE | flags::CLASS2, &[5, 1], b"abc"),
            frame(Kind::Unicast, WHOLE, &[5, 2], b"abc"),
            frame(Kind::Unicast, WHOLE, &[5], b"abc"),
            frame(Kind::Unicast, WHOLE, &[5, 1, 1], b"abc"),
            first[..27].to_vec(),
            Vec::new(),
        ] {
            assert!(!share_a_train(&first, &other), "{other:?}");
            assert!(!share_a_train(&other, &first), "{other:?}");
        }
    }

    proptest! {
        #[test]
        fn a_frame_of_a_train_is_decoded_to_what_it_was_made_of(
            is_tree in any::<bool>(),
            class2 in any::<bool>(),
            route in proptest::collection::vec(any::<u8>(), 0..=255),
            payload in proptest::collection::vec(any::<u8>(), 0..64),
            sequence in any::<u16>(),
            position in 0_u16..300,
            is_last in any::<bool>(),
        ) {
            let kind = if is_tree { Kind::Tree } else { Kind::Unicast };
            let class = if class2 { flags::CLASS2 } else { 0 };
            let mut buf = frame(kind, WHOLE | class, &route, &payload);
            let length = buf.len();
            buf.resize(length + TRAIN_LENGTH, 0xEE);
            let place = Place { sequence, position, is_last };
            let length = couple(&mut buf, length, place).expect("it fits");
            let frame = &buf[..length];
            prop_assert!(is_train(frame));
            let is_head = position == 0;
            let header = Header {
                kind,
                flags: class
                    | flags::TRAIN
                    | if is_head { flags::HEAD } else { 0 }
                    | if is_last { flags::TAIL } else { 0 },
                hops: 0,
                source: HostId(7),
                sequence,
                next: ETHERTYPE_HOST_PDU,
            };
            let train = Some(Train { position, back_count: 0, order: 0, back: [0; BACK_MAX] });
            let route: &[u8] = if is_head { &route } else { &[] };
            let expected = Worm { header, train, route, trace: None, payload: &payload };
            prop_assert_eq!(decode(frame), Ok(expected));
        }

        #[test]
        fn a_damaged_train_header_is_noticed(
            position in any::<u16>(),
            bit in 0_usize..8 * (HEADER_LENGTH + TRAIN_LENGTH),
        ) {
            let mut buf = frame(Kind::Unicast, WHOLE, &[1, 2, 3], &[]);
            let length = buf.len();
            buf.resize(length + TRAIN_LENGTH, 0);
            let place = Place { sequence: 1, position, is_last: false };
            let length = couple(&mut buf, length, place).expect("it fits");
            buf[ETHERNET_LENGTH + bit / 8] ^= 1 << (bit % 8);
            prop_assert!(decode(&buf[..length]).is_err());
        }

        #[test]
        fn random_bytes_never_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            length in 0_usize..320,
            position in any::<u16>(),
        ) {
            let mut bytes = bytes;
            let _ = is_train(&bytes);
            let _ = share_a_train(&bytes, &bytes[bytes.len() / 2..]);
            let _ = couple(&mut bytes, length, Place { sequence: 0, position, is_last: true });
        }
    }
}
