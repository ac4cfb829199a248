//! Instructions to machine code.

use std::collections::BTreeMap;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value};

use super::interpreted::is_interpreted;
use super::lower::{Exits, Known, Lower, Register, common};
use wormcast_switch_pipeline::abi::status;
use wormcast_switch_program::Slot;
use wormcast_switch_program::code::Op;

/// The instructions of a piece of code: from its start to its first end.
pub(super) fn piece(ops: &[Op], start: u32) -> &[Op] {
    let ops = &ops[start as usize..];
    let length = ops.iter().position(|op| matches!(op, Op::End));
    &ops[..length.unwrap_or(ops.len())]
}

/// A place in a piece of code that jumps lead to.
struct Label {
    block: Block,
    /// What all ways to it so far have in common.
    known: Option<Known>,
    /// A jump from behind leads here: nothing can be said before that was seen.
    looped: bool,
}

type Labels = BTreeMap<u32, Label>;

impl Lower<'_, '_> {
    /// A whole piece of code; goes on behind its end.
    pub(super) fn lower_piece(&mut self, start: u32, exits: Exits) {
        let program = self.program;
        let ops = piece(&program.code.ops, start);
        self.settle(ops);
        self.lower_ops(ops, start, exits);
    }

    /// The instructions of a piece; its locals are settled.
    pub(super) fn lower_ops(&mut self, ops: &[Op], start: u32, exits: Exits) {
        let mut labels = self.labels(ops);
        let end = start + ops.len() as u32;
        let mut open = true;
        for (position, &op) in ops.iter().enumerate() {
            let at = start + position as u32;
            open = self.reach(&mut labels, at, open);
            if open {
                open = self.lower_op(&mut labels, at, op, exits);
            }
        }
        if !self.reach(&mut labels, end, open) {
            // Nothing reaches the end; what follows is never run.
            let block = self.builder.create_block();
            self.start(block);
        }
    }

    fn labels(&mut self, ops: &[Op]) -> Labels {
        let mut labels = Labels::new();
        for &op in ops {
            let (target, looped) = match op {
                Op::Loop { target } => (target, true),
                Op::Jump { target }
                | Op::JumpIfZero { target, .. }
                | Op::JumpIfNonZero { target, .. } => (target, false),
                _ => continue,
            };
            let block = match labels.get(&target) {
                Some(label) => label.block,
                None => self.builder.create_block(),
            };
            let label = labels.entry(target).or_insert(Label {
                block,
                known: None,
                looped: false,
            });
            label.looped |= looped;
        }
        labels
    }

    /// Begins the block of an instruction that jumps lead to. Gives whether the
    /// instruction can be reached.
    fn reach(&mut self, labels: &mut Labels, at: u32, open: bool) -> bool {
        let Some(label) = labels.get_mut(&at) else {
            return open;
        };
        let block = label.block;
        let mut known = label.known.take();
        let looped = label.looped;
        if open {
            self.builder.ins().jump(block, &[]);
            known = Some(match known {
                None => self.known.clone(),
                Some(known) => common(&known, &self.known),
            });
        }
        match known {
            Some(known) if !looped => self.start_with(block, known),
            Some(_) => self.start(block),
            None => {
                // No way leads here.
                self.start(block);
            }
        }
        true
    }

    fn leave_to(&mut self, labels: &mut Labels, target: u32) -> Block {
        let label = labels.get_mut(&target).expect("a label for every target");
        label.known = Some(match label.known.take() {
            None => self.known.clone(),
            Some(known) => common(&known, &self.known),
        });
        label.block
    }

    /// Lowers one instruction. Gives whether the next one is reached from it.
    fn lower_op(&mut self, labels: &mut Labels, at: u32, op: Op, exits: Exits) -> bool {
        match op {
            Op::End => return false,
            Op::Jump { target } => {
                let block = self.leave_to(labels, target);
                self.builder.ins().jump(block, &[]);
                return false;
            }
            Op::Loop { target } => {
                let loops = self.register(Register::Loops);
                let loops = self.builder.ins().iadd_imm(loops, 1);
                self.set_register(Register::Loops, loops);
                let limit = self.numbers.loops_max.cast_signed();
                let over = self
                    .builder
                    .ins()
                    .icmp_imm(IntCC::UnsignedGreaterThan, loops, limit);
                self.stop_if(over, exits, status::DROP + self.numbers.action_loop);
                let block = labels[&target].block;
                self.builder.ins().jump(block, &[]);
                return false;
            }
            Op::JumpIfZero { condition, target } => self.branch(labels, condition, target, true),
            Op::JumpIfNonZero { condition, target } => {
                self.branch(labels, condition, target, false);
            }
            Op::Exit => {
                let one = self.constant(1);
                self.set_register(Register::Exit, one);
            }
            Op::Assert { condition } => {
                let value = self.read(condition);
                let failed = self.is_zero(value);
                self.stop_if(failed, exits, status::DROP + self.numbers.assertion_failed);
            }
            Op::Raise { error } => {
                let error = self.read(error);
                self.set_register(Register::Error, error);
                self.stop(exits, status::ERROR);
                return false;
            }
            Op::Log { .. } => self.count_event(self.numbers.log_message),
            Op::Count { counter, index } => {
                let index = self.read(index);
                let counter = self.constant(u64::from(counter));
                self.call(self.calls.count as *const u8, &[counter, index], false);
            }
            op if is_interpreted(self.program, op) => self.execute(at, op, exits),
            op => {
                let lowered = self.lower_arithmetic(op)
                    || self.lower_header_op(op)
                    || self.lower_parser_op(op, exits);
                assert!(lowered, "{op:?} is neither compiled nor interpreted");
            }
        }
        true
    }

    fn branch(&mut self, labels: &mut Labels, condition: Slot, target: u32, if_zero: bool) {
        let condition = self.read(condition);
        let taken = self.leave_to(labels, target);
        let on = self.builder.create_block();
        let (not_zero, zero) = if if_zero { (on, taken) } else { (taken, on) };
        self.builder.ins().brif(condition, not_zero, &[], zero, &[]);
        self.continue_in(on);
    }

    /// Instructions on words alone; `false` for all others.
    fn lower_arithmetic(&mut self, op: Op) -> bool {
        match op {
            Op::Move { to, from } => {
                let value = self.read(from);
                self.write(to, value);
            }
            Op::MoveWords { to, from, count } => {
                let values: Vec<Value> = (0..count).map(|word| self.read(from + word)).collect();
                for (word, value) in values.into_iter().enumerate() {
                    self.write(to + word as u32, value);
                }
            }
            Op::Wide { index } => {
                let program = self.program;
                self.lower_wide(&program.code.wide[index as usize]);
            }
            Op::Add { to, a, b } => self.binary(to, a, b, |l, a, b| l.builder.ins().iadd(a, b)),
            Op::Subtract { to, a, b } => {
                self.binary(to, a, b, |l, a, b| l.builder.ins().isub(a, b));
            }
            Op::Multiply { to, a, b } => {
                self.binary(to, a, b, |l, a, b| l.builder.ins().imul(a, b));
            }
            Op::And { to, a, b } => self.binary(to, a, b, |l, a, b| l.builder.ins().band(a, b)),
            Op::Or { to, a, b } => self.binary(to, a, b, |l, a, b| l.builder.ins().bor(a, b)),
            Op::Xor { to, a, b } => self.binary(to, a, b, |l, a, b| l.builder.ins().bxor(a, b)),
            Op::Not { to, a } => {
                let value = self.read(a);
                let value = self.builder.ins().bnot(value);
                self.write(to, value);
            }
            Op::LogicalNot { to, a } => {
                let value = self.read(a);
                let zero = self.is_zero(value);
                let value = self.truth(zero);
                self.write(to, value);
            }
            Op::ShiftLeft { to, a, b } => self.shift(to, a, b, true),
            Op::ShiftRight { to, a, b } => self.shift(to, a, b, false),
            Op::ShiftRightSigned { to, a, b } => self.binary(to, a, b, |l, a, b| {
                let most = l.constant(63);
                let amount = l.builder.ins().umin(b, most);
                l.builder.ins().sshr(a, amount)
            }),
            Op::Divide { to, a, b } => self.divide(to, a, b, true),
            Op::Modulo { to, a, b } => self.divide(to, a, b, false),
            Op::Fold { to, a, b } => self.binary(to, a, b, |l, a, b| {
                let one = l.constant(1);
                let b = l.builder.ins().umax(b, one);
                l.builder.ins().urem(a, b)
            }),
            Op::Equal { to, a, b } => self.compare(to, a, b, IntCC::Equal),
            Op::NotEqual { to, a, b } => self.compare(to, a, b, IntCC::NotEqual),
            Op::Less { to, a, b } => self.compare(to, a, b, IntCC::UnsignedLessThan),
            Op::LessEqual { to, a, b } => self.compare(to, a, b, IntCC::UnsignedLessThanOrEqual),
            Op::LessSigned { to, a, b } => self.compare(to, a, b, IntCC::SignedLessThan),
            Op::LessEqualSigned { to, a, b } => {
                self.compare(to, a, b, IntCC::SignedLessThanOrEqual);
            }
            Op::SignExtend { to, a, bits } => {
                let shift = i64::from(64 - bits);
                let value = self.read(a);
                let value = self.builder.ins().ishl_imm(value, shift);
                let value = self.builder.ins().sshr_imm(value, shift);
                self.write(to, value);
            }
            _ => return false,
        }
        true
    }

    fn binary(
        &mut self,
        to: Slot,
        a: Slot,
        b: Slot,
        operation: impl FnOnce(&mut Self, Value, Value) -> Value,
    ) {
        let (a, b) = (self.read(a), self.read(b));
        let value = operation(self, a, b);
        self.write(to, value);
    }

    fn compare(&mut self, to: Slot, a: Slot, b: Slot, condition: IntCC) {
        self.binary(to, a, b, |l, a, b| {
            let holds = l.builder.ins().icmp(condition, a, b);
            l.truth(holds)
        });
    }

    /// Amounts of 64 and more shift everything out.
    fn shift(&mut self, to: Slot, a: Slot, b: Slot, left: bool) {
        self.binary(to, a, b, |l, a, b| {
            let shifted = if left {
                l.builder.ins().ishl(a, b)
            } else {
                l.builder.ins().ushr(a, b)
            };
            let zero = l.constant(0);
            let within = l.builder.ins().icmp_imm(IntCC::UnsignedLessThan, b, 64);
            l.builder.ins().select(within, shifted, zero)
        });
    }

    /// Division by zero is counted and gives 0.
    fn divide(&mut self, to: Slot, a: Slot, b: Slot, quotient: bool) {
        self.binary(to, a, b, |l, a, b| {
            let undefined = l.is_zero(b);
            l.count_event_if(undefined, l.numbers.division_by_zero);
            let one = l.constant(1);
            let divisor = l.builder.ins().umax(b, one);
            let value = if quotient {
                l.builder.ins().udiv(a, divisor)
            } else {
                l.builder.ins().urem(a, divisor)
            };
            let zero = l.constant(0);
            l.builder.ins().select(undefined, zero, value)
        });
    }
}
