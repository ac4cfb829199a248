//! Marks that tell hosts of congestion before a queue is full: ECN (RFC 3168) and the
//! worm header's CE flag (wire/SPEC.md §2.1).

use super::classify::{VLAN_TYPES, ether_type};

const WORM_TYPE: u16 = 0x88b5;
const WORM_FLAGS_AT: usize = 1;
const WORM_CE: u8 = 1 << 4;
const WORM_CHECKSUM_AT: usize = 10;

const IPV4_CHECKSUM_AT: usize = 10;
const ECN_CE: u8 = 0b11;

/// Marks a frame, if it can carry a mark: IP whose transport says it knows ECN (ECT(0) or
/// ECT(1)), or a worm. `false` if the frame stays as it was: it cannot, or it is marked.
pub fn mark(frame: &mut [u8]) -> bool {
    let mut at = 12;
    while ether_type(frame, at).is_some_and(|kind| VLAN_TYPES.contains(&kind)) {
        at += 4;
    }
    let Some(kind) = ether_type(frame, at) else {
        return false;
    };
    let packet = &mut frame[at + 2..];
    match kind {
        0x0800 => mark_ipv4(packet),
        0x86dd => mark_ipv6(packet),
        WORM_TYPE => mark_worm(packet),
        _ => false,
    }
}

fn is_capable(ecn: u8) -> bool {
    matches!(ecn & ECN_CE, 0b01 | 0b10)
}

fn mark_ipv4(packet: &mut [u8]) -> bool {
    if packet.len() < 20 || packet[0] >> 4 != 4 || !is_capable(packet[1]) {
        return false;
    }
    let old = [packet[0], packet[1]];
    packet[1] |= ECN_CE;
    update_checksum(packet, IPV4_CHECKSUM_AT, old, [packet[0], packet[1]]);
    true
}

fn mark_ipv6(packet: &mut [u8]) -> bool {
    // The traffic class is bits 4 to 11; its two low bits are ECN (RFC 8200 §7). No
    // checksum covers it.
    if packet.len() < 40 || packet[0] >> 4 != 6 || !is_capable(packet[1] >> 4) {
        return false;
    }
    packet[1] |= ECN_CE << 4;
    true
}

fn mark_worm(packet: &mut [u8]) -> bool {
    if packet.len() < 12 || packet[WORM_FLAGS_AT] & WORM_CE != 0 {
        return false;
    }
    let old = [packet[0], packet[1]];
    packet[WORM_FLAGS_AT] |= WORM_CE;
    update_checksum(packet, WORM_CHECKSUM_AT, old, [packet[0], packet[1]]);
    true
}

/// Changes an internet checksum as one of its 16-bit words changes: HC' = ~(~HC + ~m + m')
/// (RFC 1624 equation 3).
fn update_checksum(packet: &mut [u8], at: usize, old: [u8; 2], new: [u8; 2]) {
    let checksum = u16::from_be_bytes([packet[at], packet[at + 1]]);
    let mut sum = u32::from(!checksum)
        + u32::from(!u16::from_be_bytes(old))
        + u32::from(u16::from_be_bytes(new));
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    packet[at..at + 2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sum(bytes: &[u8]) -> u16 {
        let mut sum: u64 = bytes
            .chunks(2)
            .map(|pair| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u64::from(*low)))
            .sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    fn ipv4(tos: u8, random: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, tos];
        packet.extend(random);
        packet[10..12].fill(0);
        let checksum = !sum(&packet[..20]);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet
    }

    fn framed(kind: u16, tags: usize, packet: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; 12];
        for _ in 0..tags {
            frame.extend([0x81, 0x00, 0x60, 0x01]);
        }
        frame.extend(kind.to_be_bytes());
        frame.extend(packet);
        frame
    }

    proptest! {
        #[test]
        fn ipv4_is_marked_and_its_checksum_stays_right(
            tos in any::<u8>(),
            random in proptest::collection::vec(any::<u8>(), 18..40),
            tags in 0usize..3,
        ) {
            let packet = ipv4(tos, &random);
            let mut frame = framed(0x0800, tags, &packet);
            let marked = mark(&mut frame);
            prop_assert_eq!(marked, matches!(tos & 3, 1 | 2));
            let after = &frame[14 + 4 * tags..];
            prop_assert_eq!(after[1] & !3, tos & !3);
            prop_assert_eq!(after[1] & 3, if marked { 3 } else { tos & 3 });
            prop_assert_eq!(sum(&after[..20]), 0xffff);
            prop_assert_eq!(&after[20..], &packet[20..]);
            prop_assert!(!mark(&mut frame), "once");
        }

        #[test]
        fn worms_are_marked_and_their_checksum_stays_right(
            random in proptest::collection::vec(any::<u8>(), 10..10 + 20),
        ) {
            let mut packet = vec![0x10, random[0] & !WORM_CE];
            packet.extend(&random);
            packet[10..12].fill(0);
            let checksum = !sum(&packet);
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
            let mut frame = framed(WORM_TYPE, 0, &packet);
            prop_assert!(mark(&mut frame));
            prop_assert_eq!(frame[15], packet[1] | WORM_CE);
            prop_assert_eq!(sum(&frame[14..]), 0xffff);
            prop_assert!(!mark(&mut frame));
        }

        #[test]
        fn any_bytes_are_left_or_marked_without_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..80), kind in any::<usize>()) {
            if bytes.len() > 14 {
                let kinds = [0x0800u16, 0x86dd, WORM_TYPE, 0x8100];
                bytes[12..14].copy_from_slice(&kinds[kind % 4].to_be_bytes());
            }
            mark(&mut bytes);
        }
    }

    #[test]
    fn ipv6_is_marked() {
        let mut packet = vec![0x60 | 0x0b, 0b1010_0000];
        packet.resize(48, 7);
        let mut frame = framed(0x86dd, 0, &packet);
        assert!(mark(&mut frame));
        assert_eq!(frame[14..16], [0x6b, 0b1011_0000]);
        frame[15] = 0b1000_0000;
        assert!(!mark(&mut frame), "not capable");
    }
}
