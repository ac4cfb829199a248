//! Compiles truth values.

use super::assemble::{Assembler, Operand};
use super::code::{Op, WideKind};
use super::error::ProgramError;
use super::expression::{Comparison, Data, HeaderRef, Logic};
use super::json::Node;
use super::layout::Slot;
use super::range::Range;

impl Assembler<'_> {
    /// Code that leaves 0 or 1 in a word.
    pub(super) fn logic(&mut self, logic: &Logic, at: &Node<'_>) -> Result<Slot, ProgramError> {
        match logic {
            Logic::Constant(value) => Ok(self.constant(&[u64::from(*value)])),
            Logic::Compare { kind, left, right } => self.compare(*kind, left, right, at),
            Logic::Same { equal, left, right } => {
                let a = self.logic(left, at)?;
                let b = self.logic(right, at)?;
                let to = self.temporary(1, at)?;
                self.emit(if *equal {
                    Op::Equal { to, a, b }
                } else {
                    Op::NotEqual { to, a, b }
                });
                Ok(to)
            }
            Logic::SameHeader { equal, left, right } => {
                let a = self.header_number(left, at)?;
                let b = self.header_number(right, at)?;
                let to = self.temporary(1, at)?;
                self.emit(Op::EqualHeaders { to, a, b });
                if !equal {
                    self.emit(Op::LogicalNot { to, a: to });
                }
                Ok(to)
            }
            Logic::SameVarbit { equal, left, right } => {
                let to = self.temporary(1, at)?;
                self.emit(Op::EqualVarbits {
                    to,
                    a: *left,
                    b: *right,
                });
                if !equal {
                    self.emit(Op::LogicalNot { to, a: to });
                }
                Ok(to)
            }
            Logic::And(left, right) => {
                let a = self.logic(left, at)?;
                let b = self.logic(right, at)?;
                let to = self.temporary(1, at)?;
                self.emit(Op::And { to, a, b });
                Ok(to)
            }
            Logic::Or(left, right) => {
                let a = self.logic(left, at)?;
                let b = self.logic(right, at)?;
                let to = self.temporary(1, at)?;
                self.emit(Op::Or { to, a, b });
                Ok(to)
            }
            Logic::Not(value) => {
                let a = self.logic(value, at)?;
                let to = self.temporary(1, at)?;
                self.emit(Op::LogicalNot { to, a });
                Ok(to)
            }
            Logic::NonZero(value) => {
                let range = value.range(self.layout);
                let operand = self.data(value, None, at)?;
                if range == Range::unsigned(1) {
                    return Ok(operand.slot);
                }
                let zero = Operand {
                    slot: self.code.zero,
                    limbs: 1,
                    range: Range::unsigned(0),
                };
                self.compare_operands(Comparison::NotEqual, operand, zero, at)
            }
            Logic::Valid(HeaderRef::Fixed(header)) => {
                let header = &self.layout.headers[*header as usize];
                Ok(header.base)
            }
            Logic::Valid(header) => {
                let header = self.header_number(header, at)?;
                let to = self.temporary(1, at)?;
                self.emit(Op::ValidAt { to, header });
                Ok(to)
            }
            Logic::ValidUnion(union) => {
                let to = self.temporary(1, at)?;
                self.emit(Op::ValidUnion { to, union: *union });
                Ok(to)
            }
            Logic::Choose {
                condition,
                left,
                right,
            } => {
                let condition = self.logic(condition, at)?;
                let to = self.temporary(1, at)?;
                let to_right = self.here();
                self.emit(Op::JumpIfZero {
                    condition,
                    target: 0,
                });
                let from = self.logic(left, at)?;
                self.emit(Op::Move { to, from });
                let to_end = self.here();
                self.emit(Op::Jump { target: 0 });
                let here = self.here();
                self.set_jump(to_right, here);
                let from = self.logic(right, at)?;
                self.emit(Op::Move { to, from });
                let here = self.here();
                self.set_jump(to_end, here);
                Ok(to)
            }
        }
    }

    pub(super) fn compare(
        &mut self,
        kind: Comparison,
        left: &Data,
        right: &Data,
        at: &Node<'_>,
    ) -> Result<Slot, ProgramError> {
        let left = self.data(left, None, at)?;
        let right = self.data(right, None, at)?;
        self.compare_operands(kind, left, right, at)
    }

    pub(super) fn compare_operands(
        &mut self,
        kind: Comparison,
        left: Operand,
        right: Operand,
        at: &Node<'_>,
    ) -> Result<Slot, ProgramError> {
        let signed = left.range.may_be_negative() || right.range.may_be_negative();
        // Both in one form: a value of 64 bits without sign needs a second word beside a
        // negative one.
        let limbs = left
            .range
            .union(right.range)
            .limbs()
            .max(left.limbs)
            .max(right.limbs);
        let a = self.extend(left, limbs, at)?;
        let b = self.extend(right, limbs, at)?;
        let to = self.temporary(1, at)?;
        if limbs == 1 {
            self.emit(match (kind, signed) {
                (Comparison::Equal, _) => Op::Equal { to, a, b },
                (Comparison::NotEqual, _) => Op::NotEqual { to, a, b },
                (Comparison::Less, false) => Op::Less { to, a, b },
                (Comparison::LessEqual, false) => Op::LessEqual { to, a, b },
                (Comparison::Greater, false) => Op::Less { to, a: b, b: a },
                (Comparison::GreaterEqual, false) => Op::LessEqual { to, a: b, b: a },
                (Comparison::Less, true) => Op::LessSigned { to, a, b },
                (Comparison::LessEqual, true) => Op::LessEqualSigned { to, a, b },
                (Comparison::Greater, true) => Op::LessSigned { to, a: b, b: a },
                (Comparison::GreaterEqual, true) => Op::LessEqualSigned { to, a: b, b: a },
            });
            return Ok(to);
        }
        let less = if signed {
            WideKind::LessSigned
        } else {
            WideKind::Less
        };
        let (wide, a, b, negated) = match kind {
            Comparison::Equal => (WideKind::Equal, a, b, false),
            Comparison::NotEqual => (WideKind::Equal, a, b, true),
            Comparison::Less => (less, a, b, false),
            Comparison::Greater => (less, b, a, false),
            Comparison::LessEqual => (less, b, a, true),
            Comparison::GreaterEqual => (less, a, b, true),
        };
        self.wide_binary(wide, to, a, b, limbs);
        if negated {
            self.emit(Op::LogicalNot { to, a: to });
        }
        Ok(to)
    }

    /// A word with the number of a header.
    pub(super) fn header_number(
        &mut self,
        header: &HeaderRef,
        at: &Node<'_>,
    ) -> Result<Slot, ProgramError> {
        match header {
            HeaderRef::Fixed(header) => Ok(self.constant(&[u64::from(*header)])),
            HeaderRef::Element { stack, index } => {
                let index = self.word(index, at)?;
                let to = self.temporary(1, at)?;
                self.emit(Op::FindHeader {
                    to,
                    stack: *stack,
                    index,
                });
                Ok(to)
            }
        }
    }
}
