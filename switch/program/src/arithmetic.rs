//! Compiles integer expressions.
//!
//! Every value is computed at the least number of words at which the words that its user
//! needs come out right: sums, products and bitwise operations need no more words of their
//! operands than are asked of them; comparisons, divisions and right shifts need their
//! operands whole.

use super::assemble::{Assembler, Element, Operand};
use super::code::{Op, WideKind, WideOp};
use super::error::ProgramError;
use super::expression::{BinaryKind, Data};
use super::json::Node;
use super::layout::Slot;
use super::range::Range;

impl Assembler<'_> {
    /// `asked`: words needed at most. `target`: words the result may be written to, when it
    /// has that many.
    pub(super) fn data_limbs(
        &mut self,
        data: &Data,
        asked: u32,
        target: Option<(Slot, u32)>,
        at: &Node<'_>,
    ) -> Result<Operand, ProgramError> {
        let range = data.range(self.layout);
        let limbs = match data {
            Data::Slot {
                slot, signed_bits, ..
            } => {
                let stored = range_words(range, *signed_bits);
                if let Some(bits) = signed_bits {
                    return self.sign_extended(*slot, stored, *bits, range, asked, at);
                }
                return Ok(Operand {
                    slot: *slot,
                    limbs: stored.min(asked),
                    range,
                });
            }
            Data::Constant(constant) => {
                let limbs = constant.limbs.len().min(asked as usize);
                let slot = self.constant(&constant.limbs[..limbs]);
                return Ok(Operand {
                    slot,
                    limbs: limbs as u32,
                    range,
                });
            }
            _ => self.limbs_for(range, asked, at)?,
        };
        let slot = match data {
            Data::Slot { .. } | Data::Constant(_) => unreachable!("handled above"),
            Data::Binary { kind, left, right } => {
                self.binary(*kind, left, right, limbs, target, at)?
            }
            Data::Not(value) => {
                let operand = self.data_limbs(value, limbs, None, at)?;
                let a = self.extend(operand, limbs, at)?;
                let to = self.destination(target, limbs, at)?;
                if limbs == 1 {
                    self.emit(Op::Not { to, a });
                } else {
                    self.wide_binary(WideKind::Not, to, a, a, limbs);
                }
                to
            }
            Data::Choose {
                condition,
                left,
                right,
            } => {
                let condition = self.logic(condition, at)?;
                let to = self.temporary(limbs, at)?;
                let to_right = self.here();
                self.emit(Op::JumpIfZero {
                    condition,
                    target: 0,
                });
                self.copy_into(left, to, limbs, at)?;
                let to_end = self.here();
                self.emit(Op::Jump { target: 0 });
                let here = self.here();
                self.set_jump(to_right, here);
                self.copy_into(right, to, limbs, at)?;
                let here = self.here();
                self.set_jump(to_end, here);
                to
            }
            Data::FromLogic(logic) => self.logic(logic, at)?,
            Data::SignedModulo { value, bits } => {
                let value_limbs = bits.div_ceil(64);
                let limbs = limbs.min(value_limbs);
                let operand = self.data_limbs(value, value_limbs, None, at)?;
                return self.sign_modulo(operand, *bits, limbs, range, at);
            }
            Data::Clamp {
                value,
                bits,
                signed,
            } => {
                let operand = self.data_limbs(value, u32::MAX, None, at)?;
                self.clamped(operand, *bits, *signed, at)?.slot
            }
            Data::StackField {
                stack,
                index,
                field,
            } => {
                let (access, field) = self.access(*stack, *field);
                let index = self.word(index, at)?;
                let to = self.temporary(field.limbs, at)?;
                self.emit(Op::LoadStack { to, access, index });
                return self.loaded(to, field, range, asked, at);
            }
            Data::LastField { stack, field } => {
                let (access, field) = self.access(*stack, *field);
                let to = self.temporary(field.limbs, at)?;
                self.emit(Op::LoadLast { to, access });
                return self.loaded(to, field, range, asked, at);
            }
            Data::LastIndex(fill) => {
                let to = self.temporary(1, at)?;
                self.emit(Op::LastIndex { to, fill: *fill });
                to
            }
            Data::Fill(fill) => *fill,
            Data::Register {
                register,
                width,
                index,
            } => {
                let index = self.word(index, at)?;
                let stored = width.div_ceil(64).max(1);
                let to = self.temporary(stored, at)?;
                for limb in 0..stored {
                    self.emit(Op::Move {
                        to: to + limb,
                        from: self.code.zero,
                    });
                }
                self.emit(Op::ReadRegister {
                    to,
                    register: *register,
                    index,
                });
                to
            }
        };
        Ok(Operand { slot, limbs, range })
    }

    /// The nearest value that has so many bits.
    pub(super) fn clamped(
        &mut self,
        operand: Operand,
        bits: u32,
        signed: bool,
        at: &Node<'_>,
    ) -> Result<Operand, ProgramError> {
        let limbs = bits.div_ceil(64).max(1);
        let to = self.temporary(limbs, at)?;
        self.wide(WideOp {
            kind: if signed {
                WideKind::ClampSigned
            } else {
                WideKind::ClampUnsigned
            },
            to,
            a: operand.slot,
            b: 0,
            limbs,
            extra: operand.limbs,
            bits,
            signed: operand.range.may_be_negative(),
        });
        Ok(Operand {
            slot: to,
            limbs,
            range: Range::of_field(bits, signed),
        })
    }

    pub(super) fn loaded(
        &mut self,
        slot: Slot,
        field: Element,
        range: Range,
        asked: u32,
        at: &Node<'_>,
    ) -> Result<Operand, ProgramError> {
        if field.signed {
            self.sign_extended(slot, field.limbs, field.width, range, asked, at)
        } else {
            Ok(Operand {
                slot,
                limbs: field.limbs.min(asked),
                range,
            })
        }
    }

    /// A signed field, which is stored without its sign extended.
    pub(super) fn sign_extended(
        &mut self,
        slot: Slot,
        stored: u32,
        bits: u32,
        range: Range,
        asked: u32,
        at: &Node<'_>,
    ) -> Result<Operand, ProgramError> {
        let operand = Operand {
            slot,
            limbs: stored,
            range: Range::unsigned(bits),
        };
        self.sign_modulo(operand, bits, stored.min(asked), range, at)
    }

    pub(super) fn sign_modulo(
        &mut self,
        operand: Operand,
        bits: u32,
        limbs: u32,
        range: Range,
        at: &Node<'_>,
    ) -> Result<Operand, ProgramError> {
        let words = bits.div_ceil(64).max(1);
        let a = self.extend(operand, words, at)?;
        let to = self.temporary(words, at)?;
        if words == 1 {
            self.emit(Op::SignExtend { to, a, bits });
        } else {
            self.wide(WideOp {
                kind: WideKind::SignExtend,
                to,
                a,
                b: 0,
                limbs: words,
                extra: bits,
                bits,
                signed: true,
            });
        }
        Ok(Operand {
            slot: to,
            limbs: limbs.min(words),
            range,
        })
    }

    pub(super) fn binary(
        &mut self,
        kind: BinaryKind,
        left: &Data,
        right: &Data,
        limbs: u32,
        target: Option<(Slot, u32)>,
        at: &Node<'_>,
    ) -> Result<Slot, ProgramError> {
        let ring = match kind {
            BinaryKind::Add => Some(WideKind::Add),
            BinaryKind::Subtract => Some(WideKind::Subtract),
            BinaryKind::Multiply => Some(WideKind::Multiply),
            BinaryKind::And => Some(WideKind::And),
            BinaryKind::Or => Some(WideKind::Or),
            BinaryKind::Xor => Some(WideKind::Xor),
            _ => None,
        };
        if let Some(wide) = ring {
            let left = self.data_limbs(left, limbs, None, at)?;
            let a = self.extend(left, limbs, at)?;
            let right = self.data_limbs(right, limbs, None, at)?;
            let b = self.extend(right, limbs, at)?;
            let to = self.destination(target, limbs, at)?;
            if limbs > 1 {
                // A product must not overwrite its own operands.
                let to = if wide == WideKind::Multiply {
                    self.temporary(limbs, at)?
                } else {
                    to
                };
                self.wide_binary(wide, to, a, b, limbs);
                return Ok(to);
            }
            self.emit(match kind {
                BinaryKind::Add => Op::Add { to, a, b },
                BinaryKind::Subtract => Op::Subtract { to, a, b },
                BinaryKind::Multiply => Op::Multiply { to, a, b },
                BinaryKind::And => Op::And { to, a, b },
                BinaryKind::Or => Op::Or { to, a, b },
                _ => Op::Xor { to, a, b },
            });
            return Ok(to);
        }
        match kind {
            BinaryKind::ShiftLeft => {
                self.not_negative(right, "a shift by a negative amount", at)?;
                let value = self.data_limbs(left, limbs, None, at)?;
                let a = self.extend(value, limbs, at)?;
                let b = self.word(right, at)?;
                self.shift(WideKind::ShiftLeft, a, b, limbs, target, at)
            }
            BinaryKind::ShiftRight => {
                self.not_negative(right, "a shift by a negative amount", at)?;
                let value = self.data_limbs(left, u32::MAX, None, at)?;
                let b = self.word(right, at)?;
                let kind = if value.range.may_be_negative() {
                    WideKind::ShiftRightSigned
                } else {
                    WideKind::ShiftRight
                };
                self.shift(kind, value.slot, b, value.limbs, target, at)
            }
            _ => {
                self.not_negative(left, "division of a negative value", at)?;
                self.not_negative(right, "division by a negative value", at)?;
                let left = self.data_limbs(left, u32::MAX, None, at)?;
                let right = self.data_limbs(right, u32::MAX, None, at)?;
                let words = left.limbs.max(right.limbs);
                let a = self.extend(left, words, at)?;
                let b = self.extend(right, words, at)?;
                let to = self.temporary(words, at)?;
                let divide = kind == BinaryKind::Divide;
                if words > 1 {
                    let wide = if divide {
                        WideKind::Divide
                    } else {
                        WideKind::Modulo
                    };
                    self.wide_binary(wide, to, a, b, words);
                } else if divide {
                    self.emit(Op::Divide { to, a, b });
                } else {
                    self.emit(Op::Modulo { to, a, b });
                }
                Ok(to)
            }
        }
    }

    pub(super) fn not_negative(
        &self,
        data: &Data,
        feature: &str,
        at: &Node<'_>,
    ) -> Result<(), ProgramError> {
        if data.range(self.layout).may_be_negative() {
            return Err(at.unsupported(feature, "operands that cannot be negative"));
        }
        Ok(())
    }

    pub(super) fn shift(
        &mut self,
        kind: WideKind,
        a: Slot,
        b: Slot,
        limbs: u32,
        target: Option<(Slot, u32)>,
        at: &Node<'_>,
    ) -> Result<Slot, ProgramError> {
        if limbs > 1 {
            let to = self.temporary(limbs, at)?;
            self.wide_binary(kind, to, a, b, limbs);
            return Ok(to);
        }
        let to = self.destination(target, limbs, at)?;
        self.emit(match kind {
            WideKind::ShiftLeft => Op::ShiftLeft { to, a, b },
            WideKind::ShiftRightSigned => Op::ShiftRightSigned { to, a, b },
            _ => Op::ShiftRight { to, a, b },
        });
        Ok(to)
    }

    /// Puts a value into words of its own.
    pub(super) fn copy_into(
        &mut self,
        data: &Data,
        to: Slot,
        limbs: u32,
        at: &Node<'_>,
    ) -> Result<(), ProgramError> {
        let operand = self.data_limbs(data, limbs, Some((to, limbs)), at)?;
        let from = self.extend(operand, limbs, at)?;
        self.move_words(to, from, limbs);
        Ok(())
    }
}

/// Words a field takes in the frame.
fn range_words(range: Range, signed_bits: Option<u32>) -> u32 {
    signed_bits.unwrap_or(range.positive).div_ceil(64).max(1)
}
