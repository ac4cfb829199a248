//! Widths of fields.

/// Widest field, bits.
pub const FIELD_BITS_MAX: usize = 16_384;

/// Ones in the low bits of a word.
#[inline]
pub fn ones(width: u32) -> u64 {
    if width >= 64 {
        u64::MAX
    } else {
        (1 << width) - 1
    }
}
