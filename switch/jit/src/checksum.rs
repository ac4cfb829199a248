//! Checksums to machine code: verification, updates, and the Internet checksum itself.
//!
//! The Internet checksum (RFC 1071) is a sum modulo 2^16 − 1, in which the weight of a bit
//! depends on its position modulo 16 alone. So each field is added at its own weight, and
//! bytes behind an odd number of bytes weigh 256 times as much.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{Block, InstBuilder, Value};
use cranelift_frontend::Variable;

use super::lower::{Exits, Lower, Register};
use wormcast_switch_pipeline::abi::ODD_BYTES;
use wormcast_switch_program::{Algorithm, Checksum, InputPart, Piece, Program, Slot, ones};

/// Most fields of one group.
const ITEMS_MAX: usize = 256;

/// Bits of an input.
#[derive(Clone, Copy)]
enum Item {
    Word { slot: Slot, width: u32 },
    Constant { value: u64, width: u32 },
}

/// Whole bytes that are there or not together.
enum Group {
    Items {
        valid: Option<Slot>,
        items: Vec<Item>,
        bits: u32,
    },
    Varbit {
        valid: Slot,
        slot: Slot,
    },
}

/// Whether the number of bytes so far is odd.
#[derive(Clone, Copy)]
enum Parity {
    Known(bool),
    Variable,
}

/// The groups of an input; `None` when it has parts that code is not made for.
fn groups(program: &Program, input: &[InputPart]) -> Option<Vec<Group>> {
    let mut groups = Vec::new();
    for part in input {
        match part {
            InputPart::Field { slot, width, valid } => {
                add_field(&mut groups, *valid, *slot, *width)?;
            }
            InputPart::Constant { bytes, width } => {
                let mut left = *width;
                for &byte in bytes {
                    let take = if left.is_multiple_of(8) { 8 } else { left % 8 };
                    let value = u64::from(byte) & ones(take);
                    add_item(&mut groups, None, Item::Constant { value, width: take })?;
                    left -= take;
                }
            }
            InputPart::Header(header) => {
                let header = &program.layout.headers[*header as usize];
                let kind = &program.layout.types[header.kind as usize];
                if kind
                    .pieces
                    .iter()
                    .any(|piece| matches!(piece, Piece::Varbit))
                {
                    return None;
                }
                for field in kind.fields.iter().filter(|field| field.width > 0) {
                    let slot = header.base + field.offset;
                    add_field(&mut groups, Some(header.base), slot, field.width)?;
                }
            }
            InputPart::Varbit { slot, valid } => {
                close(&groups)?;
                groups.push(Group::Varbit {
                    valid: *valid,
                    slot: *slot,
                });
            }
            InputPart::Payload => return None,
        }
    }
    // The last bits may be any number: zeros follow.
    Some(groups)
}

/// The last group must end on a byte where another one begins.
fn close(groups: &[Group]) -> Option<()> {
    match groups.last() {
        Some(Group::Items { bits, .. }) if !bits.is_multiple_of(8) => None,
        _ => Some(()),
    }
}

fn add_field(groups: &mut Vec<Group>, valid: Option<Slot>, slot: Slot, width: u32) -> Option<()> {
    let limbs = width.div_ceil(64);
    for limb in (0..limbs).rev() {
        let width = (width - limb * 64).min(64);
        let slot = slot + limb;
        add_item(groups, valid, Item::Word { slot, width })?;
    }
    Some(())
}

fn add_item(groups: &mut Vec<Group>, guard: Option<Slot>, item: Item) -> Option<()> {
    let (Item::Word { width, .. } | Item::Constant { width, .. }) = item;
    if let Some(Group::Items { valid, items, bits }) = groups.last_mut()
        && *valid == guard
        && items.len() < ITEMS_MAX
    {
        items.push(item);
        *bits += width;
        return Some(());
    }
    close(groups)?;
    groups.push(Group::Items {
        valid: guard,
        items: vec![item],
        bits: width,
    });
    Some(())
}

impl Lower<'_, '_> {
    /// Verifies all checksums; tells in a register whether one is wrong.
    pub(super) fn lower_verify(&mut self, exits: Exits) {
        let program = self.program;
        let wrong = self.builder.declare_var(I64);
        let none = self.constant(0);
        self.builder.def_var(wrong, none);
        for checksum in &program.verified {
            let skip = self.builder.create_block();
            let valid = self.read(checksum.target_valid);
            self.go_on_if(valid, skip);
            self.condition(checksum, skip, exits);
            let expected = self.calculate(checksum.calculation);
            let found = self.read(checksum.target);
            let differs = self.builder.ins().icmp(IntCC::NotEqual, expected, found);
            let differs = self.truth(differs);
            let before = self.builder.use_var(wrong);
            let after = self.builder.ins().bor(before, differs);
            self.builder.def_var(wrong, after);
            self.builder.ins().jump(skip, &[]);
            self.start(skip);
        }
        let wrong = self.builder.use_var(wrong);
        self.set_register(Register::Wrong, wrong);
    }

    /// Updates all checksums. A condition that drops the packet counts as false.
    pub(super) fn lower_updates(&mut self) {
        let program = self.program;
        for checksum in &program.updated {
            let skip = self.builder.create_block();
            let dropped = self.builder.create_block();
            self.builder.append_block_param(dropped, I64);
            self.condition(checksum, skip, Exits { stop: dropped });
            let value = self.calculate(checksum.calculation);
            let value = self.mask(value, ones(checksum.target_width));
            self.write(checksum.target, value);
            self.builder.ins().jump(skip, &[]);
            self.builder.switch_to_block(dropped);
            self.builder.ins().jump(skip, &[]);
            self.start(skip);
        }
    }

    fn go_on_if(&mut self, condition: Value, otherwise: Block) {
        let on = self.builder.create_block();
        self.builder.ins().brif(condition, on, &[], otherwise, &[]);
        self.continue_in(on);
    }

    fn condition(&mut self, checksum: &Checksum, skip: Block, exits: Exits) {
        if let Some((code, result)) = checksum.condition {
            self.lower_piece(code, exits);
            let result = self.read(result);
            self.go_on_if(result, skip);
        }
    }

    /// The result of a calculation.
    fn calculate(&mut self, number: u32) -> Value {
        let calculation = &self.program.calculations[number as usize];
        let groups = match calculation.algorithm {
            Algorithm::Checksum16 => groups(self.program, &calculation.input),
            _ => None,
        };
        if let Some(groups) = groups {
            return self.internet_checksum(&groups);
        }
        let number = self.constant(u64::from(number));
        self.call(self.calls.calculate as *const u8, &[number], true)
            .expect("a function that gives a value")
    }

    fn internet_checksum(&mut self, groups: &[Group]) -> Value {
        let sum = self.builder.declare_var(I64);
        let odd = self.builder.declare_var(I64);
        let zero = self.constant(0);
        self.builder.def_var(sum, zero);
        self.builder.def_var(odd, zero);
        let mut parity = Parity::Known(false);
        for group in groups {
            match group {
                Group::Items { valid, items, bits } => {
                    let uneven = (bits / 8) % 2 == 1;
                    if uneven && valid.is_some() {
                        parity = self.settle_parity(odd, parity);
                    }
                    self.when_valid(*valid, |lower| {
                        let value = lower.sum_of(items, *bits);
                        lower.add_to(sum, value, parity, odd);
                        if uneven && matches!(parity, Parity::Variable) {
                            let before = lower.builder.use_var(odd);
                            let after = lower.builder.ins().bxor_imm(before, 1);
                            lower.builder.def_var(odd, after);
                        }
                    });
                    if let Parity::Known(known) = parity {
                        parity = Parity::Known(known ^ uneven);
                    }
                }
                Group::Varbit { valid, slot } => {
                    parity = self.settle_parity(odd, parity);
                    self.when_valid(Some(*valid), |lower| {
                        let slot = lower.constant(u64::from(*slot));
                        let function = lower.calls.sum_varbit as *const u8;
                        let result = lower
                            .call(function, &[slot], true)
                            .expect("a function that gives a value");
                        let value = lower.mask(result, !ODD_BYTES);
                        lower.add_to(sum, value, Parity::Variable, odd);
                        let is_odd = lower.builder.ins().ushr_imm(result, 63);
                        let before = lower.builder.use_var(odd);
                        let after = lower.builder.ins().bxor(before, is_odd);
                        lower.builder.def_var(odd, after);
                    });
                }
            }
        }
        let sum = self.builder.use_var(sum);
        self.fold(sum)
    }

    /// Code for a header that is valid, or for no header at all.
    fn when_valid(&mut self, valid: Option<Slot>, code: impl FnOnce(&mut Self)) {
        let Some(valid) = valid else {
            return code(self);
        };
        let valid = self.read(valid);
        let skip = self.builder.create_block();
        self.go_on_if(valid, skip);
        let before = self.known.clone();
        code(self);
        self.builder.ins().jump(skip, &[]);
        self.start_with(skip, before);
    }

    /// Keeps the parity in a variable from here on: it depends on headers.
    fn settle_parity(&mut self, odd: Variable, parity: Parity) -> Parity {
        if let Parity::Known(known) = parity {
            let known = self.constant(u64::from(known));
            self.builder.def_var(odd, known);
        }
        Parity::Variable
    }

    fn add_to(&mut self, sum: Variable, value: Value, parity: Parity, odd: Variable) {
        let value = match parity {
            Parity::Known(false) => value,
            Parity::Known(true) => self.builder.ins().ishl_imm(value, 8),
            Parity::Variable => {
                let odd = self.builder.use_var(odd);
                let shift = self.builder.ins().ishl_imm(odd, 3);
                self.builder.ins().ishl(value, shift)
            }
        };
        let before = self.builder.use_var(sum);
        let after = self.builder.ins().iadd(before, value);
        self.builder.def_var(sum, after);
    }

    /// The fields of a group that starts behind an even number of bytes: below 2^33.
    fn sum_of(&mut self, items: &[Item], bits: u32) -> Value {
        let padded = bits.next_multiple_of(16);
        let mut sum = self.constant(0);
        let mut at = 0;
        for &item in items {
            let (value, width) = match item {
                Item::Word { slot, width } => {
                    let value = self.read(slot);
                    (self.mask(value, ones(width)), width)
                }
                Item::Constant { value, width } => (self.constant(value), width),
            };
            at += width;
            let value = if width > 32 {
                self.halves(value)
            } else {
                value
            };
            let weight = i64::from((padded - at) % 16);
            let value = self.builder.ins().ishl_imm(value, weight);
            sum = self.builder.ins().iadd(sum, value);
        }
        self.halves(sum)
    }

    /// The sum of the two halves of a word, which is equal to it modulo 2^16 − 1.
    fn halves(&mut self, value: Value) -> Value {
        let high = self.builder.ins().ushr_imm(value, 32);
        let low = self.mask(value, ones(32));
        self.builder.ins().iadd(high, low)
    }

    /// The complement of a sum at 16 bits.
    fn fold(&mut self, sum: Value) -> Value {
        let mut sum = self.halves(sum);
        for _ in 0..3 {
            let high = self.builder.ins().ushr_imm(sum, 16);
            let low = self.mask(sum, 0xffff);
            sum = self.builder.ins().iadd(high, low);
        }
        let sum = self.builder.ins().bnot(sum);
        self.mask(sum, 0xffff)
    }
}
