//! VLAN tags that the kernel took out of a frame (IEEE 802.1Q).

/// TPID of a customer tag, where the kernel does not say which it was.
pub const TPID_CUSTOMER: u16 = 0x8100;

pub const TAG_BYTES: usize = 4;

/// Bytes of the two MAC addresses, which the tag follows.
const ADDRESSES_BYTES: usize = 12;

/// Whether a frame has a customer tag, beside which its payload may be as long as without.
#[inline]
pub fn is_tagged(frame: &[u8]) -> bool {
    frame.get(ADDRESSES_BYTES..ADDRESSES_BYTES + 2) == Some(&TPID_CUSTOMER.to_be_bytes())
}

/// Puts a tag back behind the addresses. `buffer` is the frame with [`TAG_BYTES`] free in
/// front of it; afterwards the whole of it is the frame. A frame too short for its
/// addresses is left alone and gives `false`.
pub fn insert_tag(buffer: &mut [u8], tpid: u16, tci: u16) -> bool {
    if buffer.len() < TAG_BYTES + ADDRESSES_BYTES {
        return false;
    }
    buffer.copy_within(TAG_BYTES..TAG_BYTES + ADDRESSES_BYTES, 0);
    buffer[ADDRESSES_BYTES..ADDRESSES_BYTES + 2].copy_from_slice(&tpid.to_be_bytes());
    buffer[ADDRESSES_BYTES + 2..ADDRESSES_BYTES + 4].copy_from_slice(&tci.to_be_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_follows_the_addresses() {
        let mut buffer = vec![0xee; 4];
        buffer.extend(1..=12);
        buffer.extend([0x08, 0x00, 0x45]);
        assert!(insert_tag(&mut buffer, 0x88a8, 0x6064));
        let mut expected: Vec<u8> = (1..=12).collect();
        expected.extend([0x88, 0xa8, 0x60, 0x64, 0x08, 0x00, 0x45]);
        assert_eq!(buffer, expected);
    }

    #[test]
    fn runts_are_left_alone() {
        let mut buffer = vec![7; 15];
        assert!(!insert_tag(&mut buffer, TPID_CUSTOMER, 1));
        assert_eq!(buffer, [7; 15]);
    }
}
