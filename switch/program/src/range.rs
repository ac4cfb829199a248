//! Bounds of integers.
//!
//! BMv2 computes with integers of unbounded size and cuts a value only when it is
//! assigned (JSON format, "General information"). Every expression therefore knows bounds
//! of its value, so that the compiler can choose a width at which nothing is lost.

use super::error::ProgramError;
use super::expression::{BinaryKind, Data};
use super::json::Node;
use super::layout::Layout;

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

impl Data {
    /// Bounds of the value.
    pub(super) fn range(&self, layout: &Layout) -> Range {
        match self {
            Data::Slot { range, .. } => *range,
            Data::Constant(constant) => constant.range,
            Data::Binary { kind, left, right } => {
                binary_range(*kind, left.range(layout), right, layout)
            }
            Data::Not(value) => {
                let range = value.range(layout);
                Range {
                    negative: Some(range.positive),
                    positive: range.negative.unwrap_or(0),
                }
            }
            Data::Choose { left, right, .. } => left.range(layout).union(right.range(layout)),
            Data::FromLogic(_) => Range::unsigned(1),
            Data::SignedModulo { bits, .. } => Range::signed(*bits),
            Data::Clamp { bits, signed, .. } => Range::of_field(*bits, *signed),
            Data::StackField { stack, field, .. } | Data::LastField { stack, field } => {
                let kind = &layout.types[layout.stacks[*stack as usize].kind as usize];
                let field = &kind.fields[*field as usize];
                Range::of_field(field.width, field.signed)
            }
            Data::LastIndex(_) => Range {
                negative: Some(0),
                positive: 32,
            },
            Data::Fill(_) => Range::unsigned(32),
            Data::Register { width, .. } => Range::unsigned(*width),
        }
    }
}

fn binary_range(kind: BinaryKind, left: Range, right: &Data, layout: &Layout) -> Range {
    let right_range = right.range(layout);
    let grow = |bits: u32, by: u32| bits.saturating_add(by).min(UNBOUNDED);
    match kind {
        BinaryKind::Add => {
            let sum = left.union(right_range);
            Range {
                negative: sum.negative.map(|bits| grow(bits, 1)),
                positive: grow(sum.positive, 1),
            }
        }
        BinaryKind::Subtract => {
            let lowest = match left.negative {
                None => right_range.positive,
                Some(bits) => grow(bits.max(right_range.positive), 1),
            };
            let highest = match right_range.negative {
                None => left.positive,
                Some(bits) => grow(left.positive.max(bits), 1),
            };
            Range {
                negative: Some(lowest),
                positive: highest,
            }
        }
        BinaryKind::Multiply => {
            if !left.may_be_negative() && !right_range.may_be_negative() {
                Range::unsigned(grow(left.positive, right_range.positive))
            } else {
                let bits = grow(left.bits(), right_range.bits());
                Range {
                    negative: Some(bits),
                    positive: grow(bits, 1),
                }
            }
        }
        BinaryKind::Divide => left,
        BinaryKind::Modulo => Range::unsigned(right_range.positive.min(left.positive)),
        BinaryKind::And => match (left.may_be_negative(), right_range.may_be_negative()) {
            (false, false) => Range::unsigned(left.positive.min(right_range.positive)),
            (false, true) => Range::unsigned(left.positive),
            (true, false) => Range::unsigned(right_range.positive),
            (true, true) => left.union(right_range),
        },
        BinaryKind::Or | BinaryKind::Xor => {
            let both = left.union(right_range);
            match both.negative {
                None => both,
                Some(_) => Range {
                    negative: Some(both.bits()),
                    positive: both.bits(),
                },
            }
        }
        BinaryKind::ShiftLeft => {
            let by = match right {
                Data::Constant(constant) => constant.to_u32().unwrap_or(UNBOUNDED),
                _ if right_range.positive < 20 => (1 << right_range.positive) - 1,
                _ => UNBOUNDED,
            };
            Range {
                negative: left.negative.map(|bits| grow(bits, by)),
                positive: grow(left.positive, by),
            }
        }
        BinaryKind::ShiftRight => left,
    }
}
