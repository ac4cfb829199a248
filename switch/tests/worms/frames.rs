//! Worm frames.

/// Internet checksum (RFC 1071).
pub fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
        .sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// A worm frame (wire/SPEC.md §1–2).
pub fn worm(kind: u8, route: &[u8], frame_bytes: usize) -> Vec<u8> {
    let mut header = vec![
        0x10 | kind,
        0x06,
        route.len() as u8,
        0,
        0,
        5,
        0,
        1,
        0x88,
        0xb6,
        0,
        0,
    ];
    header.extend_from_slice(route);
    let sum = checksum(&header).to_be_bytes();
    header[10..12].copy_from_slice(&sum);
    let mut frame = vec![3, 0x57, 0x4f, 0x52, 0x4d, 0, 2, 0, 0, 0, 0, 1, 0x88, 0xb5];
    frame.extend_from_slice(&header);
    frame.resize(frame_bytes.max(frame.len()), 0xa5);
    frame
}
