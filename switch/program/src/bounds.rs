//! Bounds of what expressions give.

use super::expression::{BinaryKind, Data};
use super::layout::Layout;
use super::range::{Range, UNBOUNDED};

impl Data {
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
