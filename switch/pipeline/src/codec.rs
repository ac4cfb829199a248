//! Cutting headers from packets and writing them.

use wormcast_switch_program::{Piece, ones};

/// The bytes from `offset` on as a big-endian word, the first `count` of them.
#[inline]
fn load(data: &[u8], offset: usize, count: u32) -> u64 {
    if let Some(bytes) = data.get(offset..offset + 8) {
        let word = u64::from_be_bytes(bytes.try_into().expect("eight bytes were taken"));
        return word >> (64 - count * 8);
    }
    data[offset..offset + count as usize]
        .iter()
        .fold(0, |word, &byte| word << 8 | u64::from(byte))
}

/// Bits from `bit` on as words, least significant first.
pub(super) fn load_bits(data: &[u8], bit: usize, width: u32, words: &mut [u64]) {
    let mut left = width;
    for word in words.iter_mut() {
        let take = left.min(64);
        left -= take;
        // The least significant bits of a field are its last ones.
        let first = bit + left as usize;
        *word = load_up_to_64(data, first, take);
    }
}

fn load_up_to_64(data: &[u8], bit: usize, width: u32) -> u64 {
    if width == 0 {
        return 0;
    }
    let end = bit + width as usize;
    let mut value = 0u128;
    for byte in &data[bit / 8..end.div_ceil(8)] {
        value = value << 8 | u128::from(*byte);
    }
    let unused = end.div_ceil(8) * 8 - end;
    (value >> unused) as u64 & ones(width)
}

/// Reads the fields of a header into the words that follow `base`. The caller has checked
/// that the bytes are there. `varbit_bits` is the length of the variable field.
pub(super) fn extract(
    pieces: &[Piece],
    words: &mut [u64],
    base: usize,
    data: &[u8],
    start: usize,
    varbit: Option<(usize, u64)>,
) {
    let mut bit = start * 8;
    for piece in pieces {
        match piece {
            Piece::Chunk { bytes, fields } => {
                if *bytes == 0 {
                    continue;
                }
                let chunk = load(data, bit / 8, *bytes);
                for field in fields {
                    words[base + field.offset as usize] = chunk >> field.shift & field.mask;
                }
                bit += *bytes as usize * 8;
            }
            Piece::Wide { offset, width } => {
                let first = base + *offset as usize;
                let limbs = width.div_ceil(64).max(1) as usize;
                load_bits(data, bit, *width, &mut words[first..first + limbs]);
                bit += *width as usize;
            }
            Piece::Varbit => {
                if let Some((slot, bits)) = varbit {
                    words[slot] = bits;
                    words[slot + 1] = (bit / 8) as u64;
                    bit += bits as usize;
                }
            }
        }
    }
}

/// Appends bits to bytes; knows how many bits the last byte still takes.
pub(super) struct BitWriter<'b> {
    bytes: &'b mut Vec<u8>,
    /// Bits used of the last byte, 0 when it is full.
    used: u32,
}

impl<'b> BitWriter<'b> {
    pub(super) fn new(bytes: &'b mut Vec<u8>) -> Self {
        Self { bytes, used: 0 }
    }

    /// The low `width` bits of `value`, at most 64.
    #[inline]
    pub(super) fn put(&mut self, value: u64, width: u32) {
        if self.used == 0 && width.is_multiple_of(8) {
            let count = (width / 8) as usize;
            self.bytes
                .extend_from_slice(&value.to_be_bytes()[8 - count..]);
            return;
        }
        let mut left = width;
        while left > 0 {
            if self.used == 0 {
                self.bytes.push(0);
            }
            let room = 8 - self.used;
            let take = room.min(left);
            left -= take;
            let bits = (value >> left) as u8 & (ones(take) as u8);
            if let Some(last) = self.bytes.last_mut() {
                *last |= bits << (room - take);
            }
            self.used = (self.used + take) % 8;
        }
    }

    /// A field of any width, words least significant first.
    pub(super) fn put_words(&mut self, words: &[u64], width: u32) {
        let mut left = width;
        for (index, &word) in words.iter().enumerate().rev() {
            let above = left.saturating_sub(index as u32 * 64);
            if above > 0 {
                self.put(word, above.min(64));
                left = index as u32 * 64;
            }
        }
    }

    pub(super) fn put_bytes(&mut self, bytes: &[u8]) {
        if self.used == 0 {
            self.bytes.extend_from_slice(bytes);
        } else {
            for &byte in bytes {
                self.put(u64::from(byte), 8);
            }
        }
    }

    /// Fills the last byte with zeros.
    pub(super) fn align(&mut self) {
        self.used = 0;
    }
}

/// Appends a header.
pub(super) fn deparse(
    pieces: &[Piece],
    words: &[u64],
    base: usize,
    varbit: Option<u32>,
    packet: &[u8],
    out: &mut BitWriter<'_>,
) {
    for piece in pieces {
        match piece {
            Piece::Chunk { bytes, fields } => {
                let chunk = fields.iter().fold(0, |chunk, field| {
                    chunk | (words[base + field.offset as usize] & field.mask) << field.shift
                });
                out.put(chunk, bytes * 8);
            }
            Piece::Wide { offset, width } => {
                let first = base + *offset as usize;
                let limbs = width.div_ceil(64).max(1) as usize;
                out.put_words(&words[first..first + limbs], *width);
            }
            Piece::Varbit => {
                if let Some(slot) = varbit {
                    out.put_bytes(varbit_bytes(words, slot, packet));
                }
            }
        }
    }
}

/// The bytes of a variable field: they lie in the packet.
#[inline]
pub(super) fn varbit_bytes<'p>(words: &[u64], slot: u32, packet: &'p [u8]) -> &'p [u8] {
    let length = words[slot as usize] as usize / 8;
    let start = words[slot as usize + 1] as usize;
    packet.get(start..start + length).unwrap_or_default()
}
