//! Bounds of integers.
//!
//! BMv2 computes with integers of unbounded size and cuts a value only when it is
//! assigned (JSON format, "General information"). Every expression therefore knows bounds
//! of its value, so that the compiler can choose a width at which nothing is lost.

use super::error::ProgramError;
use super::json::Node;

/// Bounds of an integer: at least `-2^negative` (0 where there is none) and below
/// `2^positive`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) negative: Option<u32>,
    pub(super) positive: u32,
}

/// Bits past which a bound counts as unknown.
pub(super) const UNBOUNDED: u32 = 1 << 20;

impl Range {
    pub(super) fn unsigned(width: u32) -> Self {
        Self {
            negative: None,
            positive: width,
        }
    }

    pub(super) fn signed(width: u32) -> Self {
        let bits = width.saturating_sub(1);
        Self {
            negative: Some(bits),
            positive: bits,
        }
    }

    pub(super) fn of_field(width: u32, signed: bool) -> Self {
        if signed {
            Self::signed(width)
        } else {
            Self::unsigned(width)
        }
    }

    pub(super) fn may_be_negative(self) -> bool {
        self.negative.is_some()
    }

    /// Bits of the magnitude.
    pub(super) fn bits(self) -> u32 {
        self.positive.max(self.negative.unwrap_or(0))
    }

    /// Words that hold every value, in two's complement if one may be negative.
    pub(super) fn limbs(self) -> u32 {
        let bits = match self.negative {
            None => self.positive,
            Some(_) => self.bits() + 1,
        };
        bits.div_ceil(64).max(1)
    }

    pub(super) fn union(self, other: Range) -> Range {
        let negative = match (self.negative, other.negative) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).max(b.unwrap_or(0))),
        };
        Range {
            negative,
            positive: self.positive.max(other.positive),
        }
    }
}

/// A constant: two's complement words and its bounds.
#[derive(Clone, Debug)]
pub(super) struct Constant {
    pub(super) limbs: Vec<u64>,
    pub(super) range: Range,
}

impl Constant {
    pub(super) fn unsigned(value: u64) -> Self {
        Self {
            limbs: vec![value],
            range: Range::unsigned(64 - value.leading_zeros()),
        }
    }

    pub(super) fn read(node: &Node<'_>) -> Result<Self, ProgramError> {
        let (bytes, negative) = node.signed_hex()?;
        let mut limbs = vec![0u64; bytes.len().div_ceil(8) + 1];
        for (position, &byte) in bytes.iter().rev().enumerate() {
            limbs[position / 8] |= u64::from(byte) << (position % 8 * 8);
        }
        let width: u32 = limbs
            .iter()
            .enumerate()
            .rev()
            .find(|(_, limb)| **limb != 0)
            .map_or(0, |(index, limb)| {
                index as u32 * 64 + 64 - limb.leading_zeros()
            });
        let range = if negative && width > 0 {
            let mut carry = true;
            for limb in &mut limbs {
                let (value, overflow) = (!*limb).overflowing_add(u64::from(carry));
                *limb = value;
                carry = overflow;
            }
            Range {
                negative: Some(width),
                positive: 0,
            }
        } else {
            Range::unsigned(width)
        };
        limbs.truncate(range.limbs() as usize);
        Ok(Self { limbs, range })
    }

    /// The value if it is not negative and has at most 32 bits.
    pub(super) fn to_u32(&self) -> Option<u32> {
        if self.range.may_be_negative() || self.range.positive > 32 {
            None
        } else {
            u32::try_from(self.limbs[0]).ok()
        }
    }
}
