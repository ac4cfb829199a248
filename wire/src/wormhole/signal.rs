//! Control headers in CONTROL worms (SPEC §3): STOP and GO between neighbours, RESET to the source of a worm.

use crate::worm::{HEADER_LENGTH, Header, Kind, checksum, encode};
use crate::{ETHERNET_LENGTH, ETHERTYPE_WORM, HostId, put_u16, put_u32, u16_at, u32_at};

/// `next` of a worm with a control header.
pub const NEXT_CONTROL: u16 = 0x0001;
/// Bytes of a control header.
pub const SIGNAL_LENGTH: usize = 10;
const VERSION: u8 = 1;
const STOP: u8 = 1;
const GO: u8 = 2;
const RESET: u8 = 3;

/// What a CONTROL worm says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The neighbour takes nothing for so long, µs.
    Stop(u32),
    /// It takes more again.
    Go,
    /// The worm of this source and sequence came to its end on its way.
    Reset(HostId, u16),
}

/// A CONTROL worm as it came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    pub signal: Signal,
    /// Switches crossed; 1 from a neighbour.
    pub hops: u8,
}

/// Whether a frame claims to be a worm with a control header. For most frames two bytes decide it.
pub fn is_signal(frame: &[u8]) -> bool {
    frame.len() >= ETHERNET_LENGTH + HEADER_LENGTH
        && frame[ETHERNET_LENGTH] & 0xF == Kind::Control as u8
        && u16_at(frame, ETHERNET_LENGTH - 2) == ETHERTYPE_WORM
        && u16_at(frame, ETHERNET_LENGTH + 8) == NEXT_CONTROL
}

/// What a frame says of which [`is_signal`] holds. Nothing, if it is cut off, damaged or of another version, has
/// a route left, or says nothing known.
pub fn decode(frame: &[u8]) -> Option<Received> {
    let worm = frame.get(ETHERNET_LENGTH..)?;
    let covered = worm.get(..HEADER_LENGTH + SIGNAL_LENGTH)?;
    let has_route = covered[2] != 0;
    if covered[0] >> 4 != VERSION || has_route || checksum(covered) != u16_at(covered, 10) {
        return None;
    }
    let control = &covered[HEADER_LENGTH..];
    let signal = match control[0] {
        STOP => Signal::Stop(u32_at(control, 6)),
        GO => Signal::Go,
        RESET => Signal::Reset(HostId(u16_at(control, 2)), u16_at(control, 4)),
        _ => return None,
    };
    let hops = covered[3];
    Some(Received { signal, hops })
}

/// Writes a CONTROL worm without a route, as a host gets it, to the front of `frame`; gives its length.
pub fn encode_signal(frame: &mut [u8], mac: [u8; 6], header: &Header, signal: Signal) -> usize {
    let at = encode(frame, mac, header, &[]);
    let control = &mut frame[at..at + SIGNAL_LENGTH];
    control.fill(0);
    match signal {
        Signal::Stop(stop_us) => {
            control[0] = STOP;
            put_u32(control, 6, stop_us);
        }
        Signal::Go => control[0] = GO,
        Signal::Reset(source, sequence) => {
            control[0] = RESET;
            put_u16(control, 2, source.0);
            put_u16(control, 4, sequence);
        }
    }
    let end = at + SIGNAL_LENGTH;
    let sum = checksum(&frame[ETHERNET_LENGTH..end]);
    put_u16(frame, ETHERNET_LENGTH + 10, sum);
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worm::flags::{HEAD, TAIL};
    use proptest::prelude::*;

    fn frame(signal: Signal, hops: u8) -> Vec<u8> {
        let header = Header {
            kind: Kind::Control,
            flags: HEAD | TAIL,
            hops,
            source: HostId(0),
            sequence: 0,
            next: NEXT_CONTROL,
        };
        let mut frame = vec![0; 60];
        encode_signal(&mut frame, [2, 0, 0, 0, 0, 1], &header, signal);
        frame
    }

    /// The bytes that the Python codec makes of the same STOP and RESET.
    #[test]
    fn bytes_are_those_of_the_specification() {
        let stop = frame(Signal::Stop(0x0001_0203), 1);
        assert_eq!(stop[12..14], [0x88, 0xB5]);
        assert_eq!(stop[14..24], [0x14, 0x06, 0, 1, 0, 0, 0, 0, 0, 1]);
        assert_eq!(stop[26..36], [1, 0, 0, 0, 0, 0, 0, 1, 2, 3]);
        let reset = frame(Signal::Reset(HostId(0x0506), 0x0708), 3);
        assert_eq!(reset[26..36], [3, 0, 5, 6, 7, 8, 0, 0, 0, 0]);
    }

    #[test]
    fn what_is_said_is_read_again() {
        for signal in [
            Signal::Stop(0),
            Signal::Stop(u32::MAX),
            Signal::Go,
            Signal::Reset(HostId(7), 65_535),
        ] {
            let frame = frame(signal, 9);
            assert!(is_signal(&frame));
            assert_eq!(decode(&frame), Some(Received { signal, hops: 9 }));
            assert!(decode(&frame[..36]).is_some(), "padding is not needed");
            for end in 0..36 {
                assert!(!is_signal(&frame[..end]) || decode(&frame[..end]).is_none());
            }
            for bit in 8 * ETHERNET_LENGTH..8 * 36 {
                let mut damaged = frame.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert!(!is_signal(&damaged) || decode(&damaged).is_none());
            }
        }
    }

    #[test]
    fn what_says_nothing_known_is_refused() {
        let mut frame = frame(Signal::Go, 1);
        for (op, route) in [(0, 0), (4, 0), (2, 1)] {
            (frame[26], frame[16]) = (op, route);
            let sum = checksum(&frame[ETHERNET_LENGTH..36 + usize::from(route)]);
            put_u16(&mut frame, 24, sum);
            assert_eq!(decode(&frame), None, "{op}, {route}");
        }
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = is_signal(&bytes);
            let _ = decode(&bytes);
        }
    }
}
