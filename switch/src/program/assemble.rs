//! Compiles expression trees to instructions.
//!
//! Every value is computed at the least number of words at which the words that its user
//! needs come out right: sums, products and bitwise operations need no more words of their
//! operands than are asked of them; comparisons, divisions and right shifts need their
//! operands whole.

use std::collections::BTreeMap;

use super::code::{Code, Op, StackField, WideKind, WideOp};
use super::error::ProgramError;
use super::expression::{BinaryKind, Comparison, Data, HeaderRef, Logic, Range, UNBOUNDED};
use super::json::Node;
use super::layout::{FieldRef, Layout, Slot, ones};

/// Most words of temporaries.
const TEMPORARY_WORDS_MAX: u32 = 4096;
/// Most words of one value.
const VALUE_LIMBS_MAX: u32 = 512;

/// Words that hold a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand {
    pub(super) slot: Slot,
    /// Words there are. Fewer than asked for means that the value is whole.
    pub(super) limbs: u32,
    pub(super) range: Range,
}

/// Where a value is stored.
#[derive(Clone, Debug)]
pub(super) enum Target {
    Field {
        slot: Slot,
        width: u32,
    },
    Element {
        access: u32,
        index: Slot,
        width: u32,
        limbs: u32,
    },
    Last {
        access: u32,
        width: u32,
        limbs: u32,
    },
}

/// Code under construction.
pub(super) struct Assembler<'l> {
    pub(super) layout: &'l Layout,
    pub(super) code: Code,
    constants: BTreeMap<Vec<u64>, Slot>,
    temporaries: Slot,
    temporaries_used: u32,
}

impl<'l> Assembler<'l> {
    /// `argument_words`: the most words of arguments any action takes.
    pub(super) fn new(layout: &'l Layout, argument_words: u32) -> Self {
        let zero = layout.words;
        let arguments = zero + 2;
        let temporaries = arguments + argument_words;
        Self {
            layout,
            code: Code {
                zero,
                drop_port: zero + 1,
                arguments,
                constants_base: temporaries + TEMPORARY_WORDS_MAX,
                ..Code::default()
            },
            constants: BTreeMap::new(),
            temporaries,
            temporaries_used: 0,
        }
    }

    pub(super) fn emit(&mut self, op: Op) {
        self.code.ops.push(op);
    }

    /// Index of the next instruction.
    pub(super) fn here(&self) -> u32 {
        self.code.ops.len() as u32
    }

    /// Forgets all temporaries: a new statement begins.
    pub(super) fn release(&mut self) {
        self.temporaries_used = 0;
    }

    pub(super) fn temporary(&mut self, limbs: u32, at: &Node<'_>) -> Result<Slot, ProgramError> {
        if self.temporaries_used + limbs > TEMPORARY_WORDS_MAX {
            return Err(at.unsupported(
                "an expression this large",
                format!("expressions of at most {TEMPORARY_WORDS_MAX} words of temporaries"),
            ));
        }
        let slot = self.temporaries + self.temporaries_used;
        self.temporaries_used += limbs;
        Ok(slot)
    }

    pub(super) fn constant(&mut self, limbs: &[u64]) -> Slot {
        if limbs == [0] {
            return self.code.zero;
        }
        if let Some(&slot) = self.constants.get(limbs) {
            return slot;
        }
        let slot = self.code.constants_base + self.code.constants.len() as u32;
        self.code.constants.extend_from_slice(limbs);
        self.constants.insert(limbs.to_vec(), slot);
        slot
    }

    pub(super) fn set_jump(&mut self, at: u32, to: u32) {
        match &mut self.code.ops[at as usize] {
            Op::Jump { target }
            | Op::Loop { target }
            | Op::JumpIfZero { target, .. }
            | Op::JumpIfNonZero { target, .. } => *target = to,
            other => unreachable!("{other:?} is not a jump"),
        }
    }

    /// Code that leaves the low `bits` bits of a value in words (all of them with `None`).
    pub(super) fn data(
        &mut self,
        data: &Data,
        bits: Option<u32>,
        at: &Node<'_>,
    ) -> Result<Operand, ProgramError> {
        let asked = bits.map_or(u32::MAX, |bits| bits.div_ceil(64).max(1));
        self.data_limbs(data, asked, None, at)
    }

    /// A value that must be whole and fit in one word, such as an index; what does not fit
    /// becomes all ones, which is past every bound.
    pub(super) fn word(&mut self, data: &Data, at: &Node<'_>) -> Result<Slot, ProgramError> {
        let operand = self.data(data, None, at)?;
        if operand.limbs == 1 {
            return Ok(operand.slot);
        }
        let to = self.temporary(1, at)?;
        self.wide(WideOp {
            kind: WideKind::ClampUnsigned,
            to,
            a: operand.slot,
            b: 0,
            limbs: 1,
            extra: operand.limbs,
            bits: 64,
            signed: operand.range.may_be_negative(),
        });
        Ok(to)
    }

    fn wide(&mut self, op: WideOp) {
        let index = self.code.wide.len() as u32;
        self.code.wide.push(op);
        self.emit(Op::Wide { index });
    }

    /// Words needed for a value of which `asked` words are needed at most.
    fn limbs_for(&self, range: Range, asked: u32, at: &Node<'_>) -> Result<u32, ProgramError> {
        let limbs = if range.bits() >= UNBOUNDED {
            asked
        } else {
            asked.min(range.limbs())
        };
        if limbs > VALUE_LIMBS_MAX {
            return Err(at.unsupported(
                "a value without a known bound",
                format!("values of at most {} bits", VALUE_LIMBS_MAX * 64),
            ));
        }
        Ok(limbs)
    }

    /// The operand at exactly `limbs` words.
    fn extend(
        &mut self,
        operand: Operand,
        limbs: u32,
        at: &Node<'_>,
    ) -> Result<Slot, ProgramError> {
        if operand.limbs >= limbs {
            return Ok(operand.slot);
        }
        let to = self.temporary(limbs, at)?;
        let kind = if operand.range.may_be_negative() {
            WideKind::ExtendSigned
        } else {
            WideKind::Extend
        };
        self.wide(WideOp {
            kind,
            to,
            a: operand.slot,
            b: 0,
            limbs,
            extra: operand.limbs,
            bits: 0,
            signed: false,
        });
        Ok(to)
    }

    fn destination(
        &mut self,
        target: Option<(Slot, u32)>,
        limbs: u32,
        at: &Node<'_>,
    ) -> Result<Slot, ProgramError> {
        match target {
            Some((slot, words)) if words == limbs => Ok(slot),
            _ => self.temporary(limbs, at),
        }
    }

    /// `asked`: words needed at most. `target`: words the result may be written to, when it
    /// has that many.
    fn data_limbs(
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
                let to = self.temporary(bits.div_ceil(64), at)?;
                self.wide(WideOp {
                    kind: if *signed {
                        WideKind::ClampSigned
                    } else {
                        WideKind::ClampUnsigned
                    },
                    to,
                    a: operand.slot,
                    b: 0,
                    limbs: bits.div_ceil(64),
                    extra: operand.limbs,
                    bits: *bits,
                    signed: operand.range.may_be_negative(),
                });
                to
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
            Data::LastIndex(stack) => {
                let to = self.temporary(1, at)?;
                self.emit(Op::LastIndex { to, stack: *stack });
                to
            }
            Data::Fill(stack) => self.layout.stacks[*stack as usize].fill,
            Data::Register {
                register,
                width,
                index,
            } => {
                let index = self.word(index, at)?;
                let stored = width.div_ceil(64).max(1);
                let to = self.temporary(stored, at)?;
                self.emit(Op::Move {
                    to,
                    from: self.code.zero,
                });
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

    fn loaded(
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
    fn sign_extended(
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

    fn sign_modulo(
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

    fn access(&mut self, stack: u32, field: u32) -> (u32, Element) {
        let layout = self.layout;
        let kind = &layout.types[layout.stacks[stack as usize].kind as usize];
        let field = &kind.fields[field as usize];
        let index = self.code.stack_fields.len() as u32;
        self.code.stack_fields.push(StackField {
            stack,
            offset: field.offset,
            limbs: field.limbs,
        });
        let element = Element {
            width: field.width,
            limbs: field.limbs,
            signed: field.signed,
        };
        (index, element)
    }

    fn wide_binary(&mut self, kind: WideKind, to: Slot, a: Slot, b: Slot, limbs: u32) {
        self.wide(WideOp {
            kind,
            to,
            a,
            b,
            limbs,
            extra: limbs,
            bits: 0,
            signed: false,
        });
    }

    fn binary(
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

    fn not_negative(
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

    fn shift(
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
    fn copy_into(
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

    pub(super) fn move_words(&mut self, to: Slot, from: Slot, count: u32) {
        if to == from {
            return;
        }
        if count == 1 {
            self.emit(Op::Move { to, from });
        } else {
            self.emit(Op::MoveWords { to, from, count });
        }
    }

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

    fn compare(
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

    fn compare_operands(
        &mut self,
        kind: Comparison,
        left: Operand,
        right: Operand,
        at: &Node<'_>,
    ) -> Result<Slot, ProgramError> {
        let signed = left.range.may_be_negative() || right.range.may_be_negative();
        // Both in one form: a value of 64 bits without sign needs a second word beside a
        // negative one.
        let limbs = left.range.union(right.range).limbs().max(left.limbs).max(right.limbs);
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

    /// A place that an expression names.
    pub(super) fn target(&mut self, data: &Data, at: &Node<'_>) -> Result<Target, ProgramError> {
        match data {
            Data::Slot {
                slot,
                range,
                signed_bits,
            } => Ok(Target::Field {
                slot: *slot,
                width: signed_bits.unwrap_or(range.positive),
            }),
            Data::StackField {
                stack,
                index,
                field,
            } => {
                let index = self.word(index, at)?;
                let (access, field) = self.access(*stack, *field);
                Ok(Target::Element {
                    access,
                    index,
                    width: field.width,
                    limbs: field.limbs,
                })
            }
            Data::LastField { stack, field } => {
                let (access, field) = self.access(*stack, *field);
                Ok(Target::Last {
                    access,
                    width: field.width,
                    limbs: field.limbs,
                })
            }
            _ => Err(at.invalid("a field to assign to")),
        }
    }

    /// Stores a value, cut to the width of the target.
    pub(super) fn store(
        &mut self,
        target: &Target,
        value: Operand,
        at: &Node<'_>,
    ) -> Result<(), ProgramError> {
        match *target {
            Target::Field { slot, width } => self.store_words(slot, width, value, at),
            Target::Element {
                access,
                index,
                width,
                limbs,
            } => {
                let from = self.temporary(limbs, at)?;
                self.store_words(from, width, value, at)?;
                self.emit(Op::StoreStack {
                    from,
                    access,
                    index,
                });
                Ok(())
            }
            Target::Last {
                access,
                width,
                limbs,
            } => {
                let from = self.temporary(limbs, at)?;
                self.store_words(from, width, value, at)?;
                self.emit(Op::StoreLast { from, access });
                Ok(())
            }
        }
    }

    pub(super) fn store_words(
        &mut self,
        to: Slot,
        width: u32,
        value: Operand,
        at: &Node<'_>,
    ) -> Result<(), ProgramError> {
        let limbs = width.div_ceil(64).max(1);
        let fits = !value.range.may_be_negative() && value.range.positive <= width;
        let from = self.extend(value, limbs, at)?;
        if fits {
            self.move_words(to, from, limbs);
        } else if limbs == 1 {
            let mask = self.constant(&[ones(width)]);
            self.emit(Op::And {
                to,
                a: from,
                b: mask,
            });
        } else {
            self.wide(WideOp {
                kind: WideKind::Mask,
                to,
                a: from,
                b: 0,
                limbs,
                extra: width,
                bits: width,
                signed: false,
            });
        }
        Ok(())
    }

    /// Assigns an expression to a place.
    pub(super) fn assign(
        &mut self,
        target: &Target,
        data: &Data,
        at: &Node<'_>,
    ) -> Result<(), ProgramError> {
        let width = match *target {
            Target::Field { width, .. }
            | Target::Element { width, .. }
            | Target::Last { width, .. } => width,
        };
        let limbs = width.div_ceil(64).max(1);
        let hint = match *target {
            Target::Field { slot, .. } => Some((slot, limbs)),
            _ => None,
        };
        let value = self.data_limbs(data, limbs, hint, at)?;
        self.store(target, value, at)
    }

    pub(super) fn field_target(field: FieldRef) -> Target {
        Target::Field {
            slot: field.slot,
            width: field.width,
        }
    }
}

/// A field of a stack element.
#[derive(Clone, Copy)]
struct Element {
    width: u32,
    limbs: u32,
    signed: bool,
}

/// Words a field takes in the frame.
fn range_words(range: Range, signed_bits: Option<u32>) -> u32 {
    signed_bits.unwrap_or(range.positive).div_ceil(64).max(1)
}
