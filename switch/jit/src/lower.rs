//! The state of one function under construction: where words of the frame are known, and
//! how they are read and written.
//!
//! Words of the header vector live in memory; within stretches of code that dominate each
//! other their values are remembered, so that they are loaded once. Temporaries and
//! arguments are variables of the function, unless an instruction that the interpreter runs
//! touches them.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I16, I32, I64};
use cranelift_codegen::ir::{AbiParam, Block, InstBuilder, MemFlags, SigRef, Signature, Value};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, Variable};

use super::interpreted::is_interpreted;
use wormcast_switch_pipeline::abi::{Calls, Numbers, Run, status};
use wormcast_switch_program::code::Op;
use wormcast_switch_program::{Program, Slot, effects};

/// Values that are known to be in words.
pub(super) type Known = BTreeMap<Slot, Value>;

/// A field of [`Run`].
#[derive(Clone, Copy)]
pub(super) enum Register {
    Cursor,
    Length,
    Loops,
    Exit,
    Arguments,
    Hit,
    Error,
    Wrong,
    Frame,
    FrameBytes,
}

/// The known values of these registers are kept beside those of words.
const CURSOR: Slot = Slot::MAX;
const LENGTH: Slot = Slot::MAX - 1;

impl Register {
    fn remembered(self) -> Option<Slot> {
        match self {
            Register::Cursor => Some(CURSOR),
            Register::Length => Some(LENGTH),
            _ => None,
        }
    }

    fn offset(self) -> i32 {
        let offset = match self {
            Register::Cursor => offset_of!(Run, cursor),
            Register::Length => offset_of!(Run, length),
            Register::Loops => offset_of!(Run, loops),
            Register::Exit => offset_of!(Run, exit),
            Register::Arguments => offset_of!(Run, arguments),
            Register::Hit => offset_of!(Run, hit),
            Register::Error => offset_of!(Run, error),
            Register::Wrong => offset_of!(Run, wrong),
            Register::Frame => offset_of!(Run, frame),
            Register::FrameBytes => offset_of!(Run, frame_bytes),
        };
        offset as i32
    }
}

/// Where a piece of code leaves to other than its end.
#[derive(Clone, Copy)]
pub(super) struct Exits {
    /// Takes a status.
    pub(super) stop: Block,
}

/// A function under construction.
pub(super) struct Lower<'f, 'p> {
    pub(super) builder: FunctionBuilder<'f>,
    pub(super) program: &'p Program,
    pub(super) register_limbs: &'p [u32],
    pub(super) calls: Calls,
    pub(super) numbers: Numbers,
    convention: CallConv,
    run: Value,
    words: Value,
    pub(super) packet: Value,
    pub(super) packet_bytes: Value,
    key: Value,
    pub(super) known: Known,
    variables: BTreeMap<Slot, Variable>,
    /// Temporaries and arguments of the piece in work that live in memory.
    in_memory: BTreeSet<Slot>,
    signatures: BTreeMap<(usize, bool), SigRef>,
}

impl<'f, 'p> Lower<'f, 'p> {
    /// Starts a function that takes a [`Run`].
    pub(super) fn new(
        mut builder: FunctionBuilder<'f>,
        program: &'p Program,
        register_limbs: &'p [u32],
        calls: Calls,
        numbers: Numbers,
        convention: CallConv,
    ) -> Self {
        let entry = builder.create_block();
        builder.append_block_params_for_function_params(entry);
        builder.switch_to_block(entry);
        let run = builder.block_params(entry)[0];
        let constant = MemFlags::trusted().with_readonly().with_can_move();
        let mut load = |offset: usize| builder.ins().load(I64, constant, run, offset as i32);
        let words = load(offset_of!(Run, words));
        let packet = load(offset_of!(Run, packet));
        let packet_bytes = load(offset_of!(Run, packet_bytes));
        let key = load(offset_of!(Run, key));
        Self {
            builder,
            program,
            register_limbs,
            calls,
            numbers,
            convention,
            run,
            words,
            packet,
            packet_bytes,
            key,
            known: Known::new(),
            variables: BTreeMap::new(),
            in_memory: BTreeSet::new(),
            signatures: BTreeMap::new(),
        }
    }

    pub(super) fn constant(&mut self, value: u64) -> Value {
        self.builder.ins().iconst(I64, value as i64)
    }

    pub(super) fn register(&mut self, register: Register) -> Value {
        if let Some(slot) = register.remembered()
            && let Some(&value) = self.known.get(&slot)
        {
            return value;
        }
        let offset = register.offset();
        let flags = MemFlags::trusted();
        let value = self.builder.ins().load(I64, flags, self.run, offset);
        if let Some(slot) = register.remembered() {
            self.known.insert(slot, value);
        }
        value
    }

    pub(super) fn set_register(&mut self, register: Register, value: Value) {
        let offset = register.offset();
        let flags = MemFlags::trusted();
        self.builder.ins().store(flags, value, self.run, offset);
        if let Some(slot) = register.remembered() {
            self.known.insert(slot, value);
        }
    }

    fn is_local(&self, slot: Slot) -> bool {
        let code = &self.program.code;
        slot >= code.arguments && slot < code.constants_base
    }

    fn variable(&mut self, slot: Slot) -> Variable {
        match self.variables.get(&slot) {
            Some(&variable) => variable,
            None => {
                let variable = self.builder.declare_var(I64);
                self.variables.insert(slot, variable);
                variable
            }
        }
    }

    /// The constant a word always holds.
    pub(super) fn fixed(&self, slot: Slot) -> Option<u64> {
        let code = &self.program.code;
        if slot == code.zero {
            return Some(0);
        }
        let index = slot.checked_sub(code.constants_base)?;
        code.constants.get(index as usize).copied()
    }

    /// The content of a word.
    pub(super) fn read(&mut self, slot: Slot) -> Value {
        if let Some(value) = self.fixed(slot) {
            return self.constant(value);
        }
        if self.is_local(slot) && !self.in_memory.contains(&slot) {
            let variable = self.variable(slot);
            return self.builder.use_var(variable);
        }
        if let Some(&value) = self.known.get(&slot) {
            return value;
        }
        let value = self.builder.ins().load(
            I64,
            MemFlags::trusted(),
            self.words,
            (slot * 8).cast_signed(),
        );
        self.known.insert(slot, value);
        value
    }

    /// Puts a value into a word.
    pub(super) fn write(&mut self, slot: Slot, value: Value) {
        if self.is_local(slot) && !self.in_memory.contains(&slot) {
            let variable = self.variable(slot);
            self.builder.def_var(variable, value);
            return;
        }
        self.builder.ins().store(
            MemFlags::trusted(),
            value,
            self.words,
            (slot * 8).cast_signed(),
        );
        self.known.insert(slot, value);
    }

    /// Address of a word that is chosen at run time.
    pub(super) fn address(&mut self, slot: Value) -> Value {
        let offset = self.builder.ins().ishl_imm(slot, 3);
        self.builder.ins().iadd(self.words, offset)
    }

    pub(super) fn write_key(&mut self, position: usize, value: Value) {
        let flags = MemFlags::trusted();
        let offset = (position * 8) as i32;
        self.builder.ins().store(flags, value, self.key, offset);
    }

    /// Loads `bytes` bytes, at most eight, most significant first.
    pub(super) fn load_big_endian(&mut self, address: Value, offset: u32, bytes: u32) -> Value {
        let mut result: Option<Value> = None;
        let mut at = offset;
        let mut left = bytes;
        for size in [8, 4, 2, 1] {
            if left < size {
                continue;
            }
            left -= size;
            let kind = match size {
                8 => I64,
                4 => I32,
                2 => I16,
                _ => I8,
            };
            let flags = MemFlags::new().with_notrap();
            let at_offset = at.cast_signed();
            let loaded = self.builder.ins().load(kind, flags, address, at_offset);
            let ordered = if size == 1 {
                loaded
            } else {
                self.builder.ins().bswap(loaded)
            };
            let word = if size == 8 {
                ordered
            } else {
                self.builder.ins().uextend(I64, ordered)
            };
            result = Some(match result {
                None => word,
                Some(high) => {
                    let high = self.builder.ins().ishl_imm(high, i64::from(size) * 8);
                    self.builder.ins().bor(high, word)
                }
            });
            at += size;
        }
        match result {
            Some(value) => value,
            None => self.constant(0),
        }
    }

    /// Cuts a value to its low bits.
    pub(super) fn mask(&mut self, value: Value, mask: u64) -> Value {
        if mask == u64::MAX {
            return value;
        }
        self.builder.ins().band_imm(value, mask.cast_signed())
    }

    /// 1 or 0 in a word.
    pub(super) fn truth(&mut self, condition: Value) -> Value {
        self.builder.ins().uextend(I64, condition)
    }

    pub(super) fn is_zero(&mut self, value: Value) -> Value {
        self.builder.ins().icmp_imm(IntCC::Equal, value, 0)
    }

    /// Starts a block that is only reached from where the code is now.
    pub(super) fn continue_in(&mut self, block: Block) {
        self.builder.switch_to_block(block);
    }

    /// Starts a block about whose way here nothing is known.
    pub(super) fn start(&mut self, block: Block) {
        self.builder.switch_to_block(block);
        self.known.clear();
    }

    /// Starts a block; known is what all ways to it have in common.
    pub(super) fn start_with(&mut self, block: Block, known: Known) {
        self.builder.switch_to_block(block);
        self.known = known;
    }

    pub(super) fn stop(&mut self, exits: Exits, value: u64) {
        let value = self.constant(value);
        self.builder.ins().jump(exits.stop, &[value.into()]);
    }

    /// Ends the way here with a status when a condition holds; it rarely does.
    pub(super) fn stop_if(&mut self, condition: Value, exits: Exits, value: u64) {
        let stop = self.builder.create_block();
        let on = self.builder.create_block();
        self.builder.set_cold_block(stop);
        self.builder.ins().brif(condition, stop, &[], on, &[]);
        self.builder.switch_to_block(stop);
        self.stop(exits, value);
        self.continue_in(on);
    }

    /// Ends the way here with an error of the parser when a condition holds.
    pub(super) fn raise_if(&mut self, condition: Value, exits: Exits, error: u64) {
        let stop = self.builder.create_block();
        let on = self.builder.create_block();
        self.builder.set_cold_block(stop);
        self.builder.ins().brif(condition, stop, &[], on, &[]);
        self.builder.switch_to_block(stop);
        let error = self.constant(error);
        self.set_register(Register::Error, error);
        self.stop(exits, status::ERROR);
        self.continue_in(on);
    }

    /// Calls a function of the pipeline; all arguments are words.
    pub(super) fn call(
        &mut self,
        function: *const u8,
        arguments: &[Value],
        gives: bool,
    ) -> Option<Value> {
        let key = (arguments.len(), gives);
        let signature = match self.signatures.get(&key) {
            Some(&signature) => signature,
            None => {
                let mut signature = Signature::new(self.convention);
                let words = vec![AbiParam::new(I64); arguments.len() + 1];
                signature.params = words;
                if gives {
                    signature.returns.push(AbiParam::new(I64));
                }
                let signature = self.builder.import_signature(signature);
                self.signatures.insert(key, signature);
                signature
            }
        };
        let address = self.constant(function as u64);
        let mut values = vec![self.run];
        values.extend_from_slice(arguments);
        let call = self
            .builder
            .ins()
            .call_indirect(signature, address, &values);
        self.builder.inst_results(call).first().copied()
    }

    pub(super) fn count_event(&mut self, event: u64) {
        let event = self.constant(event);
        self.call(self.calls.count_event as *const u8, &[event], false);
    }

    /// Counts an event on the way when a condition holds.
    pub(super) fn count_event_if(&mut self, condition: Value, event: u64) {
        let count = self.builder.create_block();
        let on = self.builder.create_block();
        self.builder.set_cold_block(count);
        self.builder.ins().brif(condition, count, &[], on, &[]);
        self.builder.switch_to_block(count);
        self.count_event(event);
        self.builder.ins().jump(on, &[]);
        self.continue_in(on);
    }

    /// Has the interpreter run an instruction.
    pub(super) fn execute(&mut self, index: u32, op: Op, exits: Exits) {
        let number = self.constant(u64::from(index));
        let function = self.calls.execute as *const u8;
        let result = self.call(function, &[number], true);
        self.forget_effects(op);
        self.known.remove(&CURSOR);
        self.known.remove(&LENGTH);
        let may_stop = matches!(
            op,
            Op::ExtractNext { .. }
                | Op::ExtractUnionNext { .. }
                | Op::ExtractVarbitNext { .. }
                | Op::ExtractVarbitUnionNext { .. }
        );
        if let (true, Some(result)) = (may_stop, result) {
            let on = self.builder.create_block();
            let stop = exits.stop;
            self.builder
                .ins()
                .brif(result, stop, &[result.into()], on, &[]);
            self.continue_in(on);
        }
    }

    /// Forgets what an instruction may have written.
    pub(super) fn forget_effects(&mut self, op: Op) {
        let effects = effects(
            &self.program.layout,
            &self.program.code,
            self.register_limbs,
            op,
        );
        for (first, count) in effects.writes {
            for slot in first..first + count {
                self.known.remove(&slot);
            }
        }
    }

    /// Decides where the temporaries and arguments of a piece of code live.
    pub(super) fn settle(&mut self, ops: &[Op]) {
        self.in_memory.clear();
        let program = self.program;
        for &op in ops.iter().filter(|&&op| is_interpreted(program, op)) {
            let effects = effects(
                &self.program.layout,
                &self.program.code,
                self.register_limbs,
                op,
            );
            for (first, count) in effects.reads.into_iter().chain(effects.writes) {
                let slots = (first..first + count).filter(|&slot| self.is_local(slot));
                let slots: Vec<Slot> = slots.collect();
                self.in_memory.extend(slots);
            }
        }
        // What a piece before has left of them is of no use.
        let code = &self.program.code;
        let (first, end) = (code.arguments, code.constants_base);
        self.known.retain(|&slot, _| slot < first || slot >= end);
    }

    /// Words with the arguments of the action that the last lookup gave.
    pub(super) fn take_arguments(&mut self, ops: &[Op], arguments: &[(Slot, u32)]) {
        let Some(&(first, _)) = arguments.first() else {
            return;
        };
        let words: u32 = arguments
            .iter()
            .map(|(_, width)| width.div_ceil(64).max(1))
            .sum();
        let mut used = BTreeSet::new();
        for &op in ops {
            let effects = effects(
                &self.program.layout,
                &self.program.code,
                self.register_limbs,
                op,
            );
            for (start, count) in effects.reads {
                used.extend(start..start + count);
            }
        }
        let pointer = self.register(Register::Arguments);
        for slot in (first..first + words).filter(|slot| used.contains(slot)) {
            let offset = ((slot - first) * 8).cast_signed();
            let flags = MemFlags::trusted();
            let value = self.builder.ins().load(I64, flags, pointer, offset);
            self.write(slot, value);
        }
    }
}

/// What two ways have in common.
pub(super) fn common(a: &Known, b: &Known) -> Known {
    a.iter()
        .filter(|(slot, value)| b.get(slot) == Some(value))
        .map(|(&slot, &value)| (slot, value))
        .collect()
}
