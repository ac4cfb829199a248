//! Builds the code of a program: instructions, temporaries, constants, and the places
//! that values are stored in.

use std::collections::BTreeMap;

use super::code::{Code, Op, StackField, WideKind, WideOp};
use super::error::ProgramError;
use super::expression::Data;
use super::json::Node;
use super::layout::{FieldRef, Layout, Slot};
use super::range::{Range, UNBOUNDED};
use super::width::ones;

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
    Register {
        register: u32,
        index: Slot,
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

impl Target {
    fn width(&self) -> u32 {
        match *self {
            Target::Field { width, .. }
            | Target::Register { width, .. }
            | Target::Element { width, .. }
            | Target::Last { width, .. } => width,
        }
    }
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

    pub(super) fn wide(&mut self, op: WideOp) {
        let index = self.code.wide.len() as u32;
        self.code.wide.push(op);
        self.emit(Op::Wide { index });
    }

    /// Words needed for a value of which `asked` words are needed at most.
    pub(super) fn limbs_for(
        &self,
        range: Range,
        asked: u32,
        at: &Node<'_>,
    ) -> Result<u32, ProgramError> {
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
    pub(super) fn extend(
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

    pub(super) fn destination(
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

    pub(super) fn access(&mut self, stack: u32, field: u32) -> (u32, Element) {
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

    pub(super) fn wide_binary(&mut self, kind: WideKind, to: Slot, a: Slot, b: Slot, limbs: u32) {
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
            Data::Register {
                register,
                width,
                index,
            } => Ok(Target::Register {
                register: *register,
                index: self.word(index, at)?,
                width: *width,
            }),
            _ => Err(at.invalid("a field to assign to")),
        }
    }

    /// Whether a target is a saturating field, and then whether it is signed.
    fn saturates(&self, target: &Target) -> Option<bool> {
        match *target {
            Target::Field { slot, .. } => self.layout.saturates(slot),
            Target::Element { access, .. } | Target::Last { access, .. } => {
                let field = self.code.stack_fields[access as usize];
                let first = self.layout.stacks[field.stack as usize].first_header;
                let base = self.layout.headers[first as usize].base;
                self.layout.saturates(base + field.offset)
            }
            Target::Register { .. } => None,
        }
    }

    /// Stores a value, cut to the width of the target, or to its bounds if it is saturating.
    pub(super) fn store(
        &mut self,
        target: &Target,
        value: Operand,
        at: &Node<'_>,
    ) -> Result<(), ProgramError> {
        let value = match self.saturates(target) {
            Some(signed) => self.clamped(value, target.width(), signed, at)?,
            None => value,
        };
        match *target {
            Target::Field { slot, width } => self.store_words(slot, width, value, at),
            Target::Register {
                register,
                index,
                width,
            } => {
                let from = self.temporary(width.div_ceil(64).max(1), at)?;
                self.store_words(from, width, value, at)?;
                self.emit(Op::WriteRegister {
                    from,
                    register,
                    index,
                });
                Ok(())
            }
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
        let width = target.width();
        let limbs = width.div_ceil(64).max(1);
        if self.saturates(target).is_some() {
            let value = self.data(data, None, at)?;
            return self.store(target, value, at);
        }
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
pub(super) struct Element {
    pub(super) width: u32,
    pub(super) limbs: u32,
    pub(super) signed: bool,
}
