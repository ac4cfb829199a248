//! UNICAST worms with numbers in them (wire/SPEC.md §1–§3).

const WORM_TYPE: [u8; 2] = [0x88, 0xb5];
const HEAD_AND_TAIL: u8 = 0b0110;

/// A UNICAST worm of buffer class 1 (`false`) or 2, numbered, of `length` bytes.
pub fn worm(source: u16, class2: bool, route: &[u8], number: u32, length: usize) -> Vec<u8> {
    let mut frame = vec![3, 0x57, 0x4f, 0x52, 0x4d, 0, 2, 0, 0, 0];
    frame.extend(source.to_be_bytes());
    frame.extend(WORM_TYPE);
    let mut header = vec![0x10, HEAD_AND_TAIL | u8::from(class2), route.len() as u8, 0];
    header.extend(source.to_be_bytes());
    header.extend((number as u16).to_be_bytes());
    header.extend([0x88, 0xb6, 0, 0]);
    header.extend(route);
    let checksum = !sum(&header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    frame.extend(header);
    frame.extend(number.to_be_bytes());
    frame.resize(length.max(frame.len()), 0x5a);
    frame
}

fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2);
    let mut sum: u32 = words
        .map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// What a host reads in a worm.
pub struct Worm {
    /// Route that is left: not empty in transit.
    pub route: Vec<u8>,
    pub source: u16,
    pub class2: bool,
    pub number: u32,
}

/// Reads a worm; `None` if the frame is none of ours.
pub fn read_worm(frame: &[u8]) -> Option<Worm> {
    if frame.get(12..14)? != WORM_TYPE {
        return None;
    }
    let route_end = 26 + usize::from(*frame.get(16)?);
    let number = frame.get(route_end..route_end + 4)?.try_into().ok()?;
    Some(Worm {
        route: frame[26..route_end].to_vec(),
        source: u16::from_be_bytes([frame[18], frame[19]]),
        class2: frame[15] & 1 != 0,
        number: u32::from_be_bytes(number),
    })
}
