//! Bit strings of any width, as a control plane writes them.

use std::fmt;

/// An unsigned value of any width: big-endian bytes without leading zeros, the canonical
/// form of P4Runtime (§8.4) except that zero has no bytes here.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bits(Vec<u8>);

impl Bits {
    /// From big-endian bytes; leading zeros are accepted and dropped.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
        Self(bytes[zeros..].to_vec())
    }

    pub fn from_u64(value: u64) -> Self {
        Self::from_bytes(&value.to_be_bytes())
    }

    /// From 64-bit limbs, least significant first.
    pub fn from_limbs(limbs: &[u64]) -> Self {
        let bytes: Vec<u8> = limbs
            .iter()
            .rev()
            .flat_map(|limb| limb.to_be_bytes())
            .collect();
        Self::from_bytes(&bytes)
    }

    /// All ones in the low `width_bits` bits.
    pub fn ones(width_bits: u32) -> Self {
        let mut bytes = vec![0xff; width_bits.div_ceil(8) as usize];
        if !width_bits.is_multiple_of(8) {
            bytes[0] = (1 << (width_bits % 8)) - 1;
        }
        Self(bytes)
    }

    /// Ones in the first `prefix_len` of `width_bits` bits.
    pub fn prefix_mask(width_bits: u32, prefix_len: u32) -> Self {
        let mut bytes = Self::ones(width_bits).0;
        let low_bits = width_bits.saturating_sub(prefix_len);
        let count = bytes.len();
        for bit in 0..low_bits as usize {
            bytes[count - 1 - bit / 8] &= !(1 << (bit % 8));
        }
        Self::from_bytes(&bytes)
    }

    /// Big-endian bytes without leading zeros; empty for zero.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Big-endian bytes without leading zeros, at least one: P4Runtime's canonical form.
    pub fn to_canonical_bytes(&self) -> Vec<u8> {
        if self.0.is_empty() {
            vec![0]
        } else {
            self.0.clone()
        }
    }

    /// Big-endian bytes filled with zeros in front to `ceil(width_bits / 8)` bytes.
    pub fn to_padded_bytes(&self, width_bits: u32) -> Vec<u8> {
        let count = width_bits.div_ceil(8) as usize;
        let mut bytes = vec![0; count.saturating_sub(self.0.len())];
        bytes.extend_from_slice(&self.0);
        bytes
    }

    /// Bits up to and including the first one: 0 for zero.
    pub fn width_bits(&self) -> u32 {
        match self.0.first() {
            None => 0,
            Some(first) => self.0.len() as u32 * 8 - first.leading_zeros(),
        }
    }

    /// The value if it has at most 64 bits.
    pub fn to_u64(&self) -> Option<u64> {
        if self.0.len() > 8 {
            return None;
        }
        Some(
            self.0
                .iter()
                .fold(0, |sum, &byte| sum << 8 | u64::from(byte)),
        )
    }

    /// Writes the low 64-bit limbs into `limbs`, least significant first.
    pub fn write_limbs(&self, limbs: &mut [u64]) {
        limbs.fill(0);
        for (position, &byte) in self.0.iter().rev().enumerate() {
            if let Some(limb) = limbs.get_mut(position / 8) {
                *limb |= u64::from(byte) << (position % 8 * 8);
            }
        }
    }

    pub fn and(&self, other: &Bits) -> Bits {
        let bytes: Vec<u8> = self
            .0
            .iter()
            .rev()
            .zip(other.0.iter().rev())
            .map(|(a, b)| a & b)
            .collect();
        Self::from_bytes(&bytes.into_iter().rev().collect::<Vec<u8>>())
    }
}

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        if self.0.is_empty() {
            return f.write_str("0");
        }
        for (position, byte) in self.0.iter().enumerate() {
            if position == 0 {
                write!(f, "{byte:x}")?;
            } else {
                write!(f, "{byte:02x}")?;
            }
        }
        Ok(())
    }
}

impl From<u64> for Bits {
    fn from(value: u64) -> Self {
        Self::from_u64(value)
    }
}
