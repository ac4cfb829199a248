//! Checksums that a sender left to its interface.
//!
//! A frame from a process on the same machine reaches a packet socket before any hardware
//! would have filled in its TCP or UDP checksum. The kernel says where it belongs; a
//! switch that sends the frame on must complete it, or the receiver throws it away.

/// Completes the checksum of the frame: the ones' complement sum (RFC 1071) from `start`
/// to the end, stored at `start + offset`. Positions outside the frame leave it as it is
/// and give `false`.
pub fn complete(frame: &mut [u8], start: usize, offset: usize) -> bool {
    let field = start.saturating_add(offset);
    if start >= frame.len() || field.saturating_add(2) > frame.len() {
        return false;
    }
    // The field holds the sum of the pseudo header, so it takes part as it is.
    let sum = match !fold(sum_words(&frame[start..])) {
        0 => 0xffff, // zero would mean "no checksum" in UDP (RFC 768)
        sum => sum,
    };
    frame[field..field + 2].copy_from_slice(&sum.to_be_bytes());
    true
}

fn sum_words(bytes: &[u8]) -> u64 {
    let mut pairs = bytes.chunks_exact(2);
    let mut sum: u64 = pairs
        .by_ref()
        .map(|pair| u64::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    if let [last] = pairs.remainder() {
        sum += u64::from(*last) << 8;
    }
    sum
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completed_checksum_verifies() {
        // A UDP header and payload; the field starts with the pseudo header's sum.
        let pseudo: u16 = 0x1234;
        let mut frame = vec![0xaa; 34];
        frame.extend([
            0x04, 0xd2, 0x16, 0x2e, 0x00, 0x0b, 0x12, 0x34, b'a', b'b', b'c',
        ]);
        assert!(complete(&mut frame, 34, 6));
        // With the pseudo header put back, everything must sum to 0xffff.
        let total = sum_words(&frame[34..]) + u64::from(pseudo);
        assert_eq!(fold(total), 0xffff);
    }

    #[test]
    fn zero_is_sent_as_all_ones() {
        let mut frame = vec![0xff, 0xff, 0, 0];
        assert!(complete(&mut frame, 0, 2));
        assert_eq!(frame, [0xff, 0xff, 0xff, 0xff]);
    }

    #[test]
    fn positions_outside_change_nothing() {
        let mut frame = vec![1, 2, 3, 4];
        for (start, offset) in [(4, 0), (0, 3), (usize::MAX, 1), (2, usize::MAX)] {
            assert!(!complete(&mut frame, start, offset));
        }
        assert_eq!(frame, [1, 2, 3, 4]);
    }
}
