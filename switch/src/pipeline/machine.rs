//! The interpreter: one packet's frame, the state that outlives packets, and the
//! instructions that change both.

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

use super::codec::{self, BitWriter};
use super::config::{PipelineConfig, limits};
use super::entry::CounterValue;
use super::hash;
use super::meter::Meter;
use super::statistics::{DropCause, Event, Statistics};
use super::wide::{self, WideScratch};
use crate::program::code::{NO_HEADER, Op};
use crate::program::{FieldRef, InputPart, Program, Slot, ones};

/// Requests a packet's code has made, acted on when its control ends.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    pub(super) exit: bool,
    /// Session and field list.
    pub(super) clone: Option<(u64, u64)>,
    pub(super) resubmit: Option<u64>,
    pub(super) recirculate: Option<u64>,
    pub(super) digest: Option<u64>,
}

/// How a piece of code ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    Done,
    /// The parser stops with this error.
    Error(u64),
    /// The packet ends here.
    Drop(DropCause),
}

/// Registers of one array.
#[derive(Debug)]
pub(super) struct RegisterArray {
    pub(super) words: Vec<u64>,
    pub(super) limbs: usize,
    pub(super) size: usize,
}

/// The frame of the packet in work and all state that code can reach.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) words: Vec<u64>,
    /// Header vector of a packet that has just arrived.
    initial: Vec<u64>,
    /// The packet as it arrived.
    pub(super) packet: Vec<u8>,
    /// First byte the parser has not taken.
    pub(super) cursor: usize,
    /// Bytes counters count.
    pub(super) ingress_bytes: u64,
    /// What BMv2 calls the packet length register: follows header changes.
    pub(super) length: u64,
    /// Bytes the packet is cut to when it is sent.
    pub(super) truncate: Option<u64>,
    pub(super) marks: Marks,
    pub(super) now_us: u64,
    loops: u32,

    pub(super) counters: Vec<Vec<CounterValue>>,
    pub(super) registers: Vec<RegisterArray>,
    pub(super) meters: Vec<Vec<Meter>>,
    /// Values and masks of each parser value set, as words of the select key.
    pub(super) value_sets: Vec<Vec<(Vec<u64>, Vec<u64>)>>,
    pub(super) statistics: Statistics,
    generator: ChaCha8Rng,
    input: Vec<u8>,
    wide: WideScratch,
}

impl Machine {
    pub(super) fn new(program: &Program, config: &PipelineConfig) -> Self {
        let code = &program.code;
        let constants = code.constants_base as usize;
        let mut words = vec![0; constants + code.constants.len()];
        words[constants..].copy_from_slice(&code.constants);
        words[code.drop_port as usize] = u64::from(config.drop_port.0);
        let mut initial = vec![0; program.layout.words as usize];
        for header in program.layout.headers.iter().filter(|header| header.metadata) {
            initial[header.base as usize] = 1;
        }
        Self {
            words,
            initial,
            packet: Vec::with_capacity(2048),
            cursor: 0,
            ingress_bytes: 0,
            length: 0,
            truncate: None,
            marks: Marks::default(),
            now_us: 0,
            loops: 0,
            counters: program
                .counters()
                .iter()
                .map(|counter| match counter.table {
                    None => vec![CounterValue::default(); counter.size],
                    Some(_) => Vec::new(),
                })
                .collect(),
            registers: program
                .registers()
                .iter()
                .map(|register| {
                    let limbs = register.width_bits.div_ceil(64) as usize;
                    RegisterArray {
                        words: vec![0; register.size * limbs],
                        limbs,
                        size: register.size,
                    }
                })
                .collect(),
            meters: program
                .meters()
                .iter()
                .map(|meter| match meter.table {
                    None => vec![Meter::default(); meter.size],
                    Some(_) => Vec::new(),
                })
                .collect(),
            value_sets: vec![Vec::new(); program.value_sets().len()],
            statistics: Statistics::default(),
            generator: ChaCha8Rng::seed_from_u64(config.seed),
            input: Vec::with_capacity(512),
            wide: WideScratch::default(),
        }
    }

    /// Starts a pass of the packet in `packet`: no headers, all metadata 0.
    #[inline]
    pub(super) fn reset(&mut self) {
        self.words[..self.initial.len()].copy_from_slice(&self.initial);
        self.cursor = 0;
        self.marks = Marks::default();
        self.loops = 0;
    }

    /// Sets all metadata to 0.
    pub(super) fn reset_metadata(&mut self, program: &Program) {
        for header in program.layout.headers.iter().filter(|header| header.metadata) {
            let kind = &program.layout.types[header.kind as usize];
            let first = header.base as usize + 1;
            self.words[first..first + kind.words as usize - 1].fill(0);
        }
    }

    #[inline]
    pub(super) fn set(&mut self, field: FieldRef, value: u64) {
        self.words[field.slot as usize] = value & ones(field.width);
    }

    #[inline]
    pub(super) fn set_optional(&mut self, field: Option<FieldRef>, value: u64) {
        if let Some(field) = field {
            self.set(field, value);
        }
    }

    #[inline]
    pub(super) fn get(&self, field: FieldRef) -> u64 {
        self.words[field.slot as usize]
    }

    #[inline]
    fn word(&self, slot: Slot) -> u64 {
        self.words[slot as usize]
    }

    #[inline]
    fn write(&mut self, slot: Slot, value: u64) {
        self.words[slot as usize] = value;
    }

    #[inline]
    fn combine(&mut self, to: Slot, a: Slot, b: Slot, operation: impl Fn(u64, u64) -> u64) {
        let value = operation(self.word(a), self.word(b));
        self.write(to, value);
    }

    /// Runs code from an instruction to its end.
    pub(super) fn run(&mut self, program: &Program, start: u32) -> Flow {
        let ops = program.code.ops.as_slice();
        let mut at = start as usize;
        loop {
            let op = ops[at];
            at += 1;
            match op {
                Op::End => return Flow::Done,
                Op::Jump { target } => at = target as usize,
                Op::Loop { target } => {
                    self.loops += 1;
                    if self.loops > limits::ACTION_LOOPS_MAX {
                        return Flow::Drop(DropCause::ActionLoop);
                    }
                    at = target as usize;
                }
                Op::JumpIfZero { condition, target } => {
                    if self.word(condition) == 0 {
                        at = target as usize;
                    }
                }
                Op::JumpIfNonZero { condition, target } => {
                    if self.word(condition) != 0 {
                        at = target as usize;
                    }
                }
                Op::Move { to, from } => self.write(to, self.word(from)),
                Op::Add { to, a, b } => self.combine(to, a, b, u64::wrapping_add),
                Op::Subtract { to, a, b } => self.combine(to, a, b, u64::wrapping_sub),
                Op::Multiply { to, a, b } => self.combine(to, a, b, u64::wrapping_mul),
                Op::And { to, a, b } => self.combine(to, a, b, |a, b| a & b),
                Op::Or { to, a, b } => self.combine(to, a, b, |a, b| a | b),
                Op::Xor { to, a, b } => self.combine(to, a, b, |a, b| a ^ b),
                Op::Not { to, a } => self.write(to, !self.word(a)),
                Op::ShiftLeft { to, a, b } => {
                    self.combine(to, a, b, |a, b| if b < 64 { a << b } else { 0 });
                }
                Op::ShiftRight { to, a, b } => {
                    self.combine(to, a, b, |a, b| if b < 64 { a >> b } else { 0 });
                }
                Op::ShiftRightSigned { to, a, b } => {
                    self.combine(to, a, b, |a, b| ((a as i64) >> b.min(63)) as u64);
                }
                Op::Divide { to, a, b } => self.divide(to, a, b, u64::checked_div),
                Op::Modulo { to, a, b } => self.divide(to, a, b, u64::checked_rem),
                Op::Equal { to, a, b } => self.combine(to, a, b, |a, b| u64::from(a == b)),
                Op::NotEqual { to, a, b } => self.combine(to, a, b, |a, b| u64::from(a != b)),
                Op::Less { to, a, b } => self.combine(to, a, b, |a, b| u64::from(a < b)),
                Op::LessEqual { to, a, b } => self.combine(to, a, b, |a, b| u64::from(a <= b)),
                Op::LessSigned { to, a, b } => {
                    self.combine(to, a, b, |a, b| u64::from((a as i64) < b as i64));
                }
                Op::LessEqualSigned { to, a, b } => {
                    self.combine(to, a, b, |a, b| u64::from(a as i64 <= b as i64));
                }
                Op::LogicalNot { to, a } => self.write(to, u64::from(self.word(a) == 0)),
                Op::SignExtend { to, a, bits } => {
                    let shift = 64 - bits;
                    let value = ((self.word(a) << shift) as i64 >> shift) as u64;
                    self.write(to, value);
                }
                Op::Wide { index } => {
                    let wide = &program.code.wide[index as usize];
                    if !wide::run(wide, &mut self.words, &mut self.wide) {
                        self.statistics.count_event(Event::DivisionByZero);
                    }
                }
                Op::MoveWords { to, from, count } => {
                    let from = from as usize;
                    self.words
                        .copy_within(from..from + count as usize, to as usize);
                }
                Op::Count { counter, index } => {
                    let index = self.word(index);
                    let bytes = self.ingress_bytes;
                    match cell(&mut self.counters[counter as usize], index) {
                        Some(value) => value.add(bytes),
                        None => self.statistics.count_event(Event::CellIndexOutOfBounds),
                    }
                }
                Op::Clone { session, list } => {
                    self.marks.clone = Some((self.word(session), self.word(list)));
                }
                Op::Resubmit { list } => self.marks.resubmit = non_zero(self.word(list)),
                Op::Recirculate { list } => self.marks.recirculate = non_zero(self.word(list)),
                Op::Digest { list } => self.marks.digest = non_zero(self.word(list)),
                Op::Truncate { bytes } => {
                    let bytes = self.word(bytes);
                    self.truncate = Some(self.truncate.map_or(bytes, |old| old.min(bytes)));
                }
                Op::Exit => self.marks.exit = true,
                Op::Assert { condition } => {
                    if self.word(condition) == 0 {
                        return Flow::Drop(DropCause::AssertionFailed);
                    }
                }
                Op::Log => self.statistics.count_event(Event::LogMessage),
                Op::Hash { to, calculation } => {
                    let value = self.calculate(program, calculation);
                    self.write(to, value);
                }
                Op::Fold { to, a, b } => self.combine(to, a, b, |a, b| a % b.max(1)),
                Op::Random { to, low, high } => {
                    let value = self.random(self.word(low), self.word(high));
                    self.write(to, value);
                }
                Op::ReadRegister {
                    to,
                    register,
                    index,
                } => self.read_register(to, register, index),
                Op::WriteRegister {
                    from,
                    register,
                    index,
                } => self.write_register(from, register, index),
                Op::ExecuteMeter { to, meter, index } => {
                    self.execute_meter(program, to, meter, index);
                }
                Op::Raise { error } => return Flow::Error(self.word(error)),
                Op::Advance { bits } => match self.advance(program, self.word(bits)) {
                    Ok(()) => {}
                    Err(error) => return Flow::Error(error),
                },
                Op::Lookahead { to, index } => {
                    if let Err(error) = self.look_ahead(program, to, index) {
                        return Flow::Error(error);
                    }
                }
                Op::Extract { header } => {
                    if let Err(error) = self.extract(program, header, None) {
                        return Flow::Error(error);
                    }
                }
                Op::ExtractVarbit { header, bits } => {
                    let bits = Some(self.word(bits));
                    if let Err(error) = self.extract(program, header, bits) {
                        return Flow::Error(error);
                    }
                }
                Op::ExtractNext { stack } => {
                    if let Err(error) = self.extract_next(program, stack, None) {
                        return Flow::Error(error);
                    }
                }
                Op::ExtractVarbitNext { stack, bits } => {
                    let bits = Some(self.word(bits));
                    if let Err(error) = self.extract_next(program, stack, bits) {
                        return Flow::Error(error);
                    }
                }
                other => self.run_header_op(program, other),
            }
        }
    }

    #[inline]
    fn divide(&mut self, to: Slot, a: Slot, b: Slot, operation: fn(u64, u64) -> Option<u64>) {
        let value = operation(self.word(a), self.word(b)).unwrap_or_else(|| {
            self.statistics.count_event(Event::DivisionByZero);
            0
        });
        self.write(to, value);
    }

    /// A uniform value from `low` to `high`; `low` is not above `high`.
    fn random(&mut self, low: u64, high: u64) -> u64 {
        let span = high.wrapping_sub(low).wrapping_add(1);
        if span == 0 {
            return self.generator.next_u64();
        }
        // Values past the last whole multiple of the span would favour small results.
        let zone = u64::MAX - (u64::MAX % span + 1) % span;
        loop {
            let value = self.generator.next_u64();
            if value <= zone {
                return low + value % span;
            }
        }
    }

    fn read_register(&mut self, to: Slot, register: u32, index: Slot) {
        let array = &self.registers[register as usize];
        match usize::try_from(self.words[index as usize]) {
            Ok(index) if index < array.size => {
                let first = index * array.limbs;
                self.words[to as usize..to as usize + array.limbs]
                    .copy_from_slice(&array.words[first..first + array.limbs]);
            }
            _ => self.statistics.count_event(Event::CellIndexOutOfBounds),
        }
    }

    fn write_register(&mut self, from: Slot, register: u32, index: Slot) {
        let array = &mut self.registers[register as usize];
        match usize::try_from(self.words[index as usize]) {
            Ok(index) if index < array.size => {
                let first = index * array.limbs;
                array.words[first..first + array.limbs]
                    .copy_from_slice(&self.words[from as usize..from as usize + array.limbs]);
            }
            _ => self.statistics.count_event(Event::CellIndexOutOfBounds),
        }
    }

    fn execute_meter(&mut self, program: &Program, to: Slot, meter: u32, index: Slot) {
        let unit = program.meters()[meter as usize].unit;
        let index = self.word(index);
        match cell(&mut self.meters[meter as usize], index) {
            Some(meter) => {
                let colour = meter.execute(unit, self.ingress_bytes, self.now_us);
                self.write(to, colour as u64);
            }
            None => self.statistics.count_event(Event::CellIndexOutOfBounds),
        }
    }

    // Parsing.

    fn remaining(&self) -> usize {
        self.packet.len() - self.cursor
    }

    fn advance(&mut self, program: &Program, bits: u64) -> Result<(), u64> {
        if bits % 8 != 0 {
            return Err(program.errors.parser_invalid_argument);
        }
        if bits / 8 > self.remaining() as u64 {
            return Err(program.errors.packet_too_short);
        }
        self.cursor += (bits / 8) as usize;
        Ok(())
    }

    fn look_ahead(&mut self, program: &Program, to: Slot, index: u32) -> Result<(), u64> {
        let lookahead = program.code.lookaheads[index as usize];
        let end = (lookahead.offset + lookahead.width).div_ceil(8) as usize;
        if end > self.remaining() {
            return Err(program.errors.packet_too_short);
        }
        let limbs = lookahead.width.div_ceil(64).max(1) as usize;
        codec::load_bits(
            &self.packet,
            self.cursor * 8 + lookahead.offset as usize,
            lookahead.width,
            &mut self.words[to as usize..to as usize + limbs],
        );
        Ok(())
    }

    fn extract(
        &mut self,
        program: &Program,
        header: u32,
        varbit_bits: Option<u64>,
    ) -> Result<(), u64> {
        let header = &program.layout.headers[header as usize];
        let kind = &program.layout.types[header.kind as usize];
        let bits = varbit_bits.unwrap_or(0);
        if bits % 8 != 0 {
            return Err(program.errors.parser_invalid_argument);
        }
        let fixed = kind.fixed_bits as usize / 8;
        if fixed as u64 + bits / 8 > self.remaining() as u64 {
            return Err(program.errors.packet_too_short);
        }
        if varbit_bits.is_some() && bits / 8 > u64::from(kind.varbit_bytes_max) {
            return Err(program.errors.header_too_short);
        }
        let varbit = match (varbit_bits, header.varbit) {
            (Some(bits), Some(slot)) => Some((slot as usize, bits)),
            _ => None,
        };
        codec::extract(
            &kind.pieces,
            &mut self.words,
            header.base as usize,
            &self.packet,
            self.cursor,
            varbit,
        );
        self.words[header.base as usize] = 1;
        if let Some(union) = header.union {
            self.invalidate_others(program, union, header.base);
        }
        self.cursor += fixed + (bits / 8) as usize;
        Ok(())
    }

    fn extract_next(
        &mut self,
        program: &Program,
        stack: u32,
        varbit_bits: Option<u64>,
    ) -> Result<(), u64> {
        let stack = &program.layout.stacks[stack as usize];
        let fill = self.word(stack.fill);
        if fill >= u64::from(stack.size) {
            return Err(program.errors.stack_out_of_bounds);
        }
        self.extract(program, stack.first_header + fill as u32, varbit_bits)?;
        self.write(stack.fill, fill + 1);
        Ok(())
    }

    // Headers.

    /// Instructions on headers and stacks.
    fn run_header_op(&mut self, program: &Program, op: Op) {
        match op {
            Op::MakeValid { header } => self.make_valid(program, header),
            Op::MakeInvalid { header } => self.make_invalid(program, header),
            Op::CopyHeader { to, from } => self.copy_header(program, to, from),
            Op::MakeValidAt { header } => {
                if let Some(header) = self.header_at(header) {
                    self.make_valid(program, header);
                }
            }
            Op::MakeInvalidAt { header } => {
                if let Some(header) = self.header_at(header) {
                    self.make_invalid(program, header);
                }
            }
            Op::CopyHeaderAt { to, from } => {
                match (self.header_at(to), self.header_at(from)) {
                    (Some(to), Some(from)) => self.copy_header(program, to, from),
                    (Some(to), None) => self.make_invalid(program, to),
                    (None, _) => {}
                }
            }
            Op::ValidAt { to, header } => {
                let valid = self
                    .header_at(header)
                    .map_or(0, |header| self.validity(program, header));
                self.write(to, valid);
            }
            Op::EqualHeaders { to, a, b } => {
                let equal = match (self.header_at(a), self.header_at(b)) {
                    (Some(a), Some(b)) => self.headers_equal(program, a, b),
                    _ => false,
                };
                self.write(to, u64::from(equal));
            }
            Op::EqualVarbits { to, a, b } => {
                let equal = codec::varbit_bytes(&self.words, a, &self.packet)
                    == codec::varbit_bytes(&self.words, b, &self.packet);
                self.write(to, u64::from(equal));
            }
            Op::ValidUnion { to, union } => {
                let headers = &program.layout.unions[union as usize].headers;
                let valid = headers
                    .iter()
                    .any(|&header| self.validity(program, header) == 1);
                self.write(to, u64::from(valid));
            }
            Op::CopyStack { to, from } => {
                let stacks = &program.layout.stacks;
                let (to, from) = (&stacks[to as usize], &stacks[from as usize]);
                self.write(to.fill, self.word(from.fill));
                for index in 0..to.size {
                    let (to, from) = (to.first_header + index, from.first_header + index);
                    self.copy_header(program, to, from);
                }
            }
            Op::Push { stack, count } => self.push(program, stack, self.word(count)),
            Op::Pop { stack, count } => self.pop(program, stack, self.word(count)),
            Op::FindHeader { to, stack, index } => {
                let stack = &program.layout.stacks[stack as usize];
                let index = self.word(index);
                let header = if index < u64::from(stack.size) {
                    u64::from(stack.first_header) + index
                } else {
                    self.statistics.count_event(Event::StackIndexOutOfBounds);
                    NO_HEADER
                };
                self.write(to, header);
            }
            Op::LoadStack { to, access, index } => {
                let index = self.word(index);
                self.load_element(program, to, access, index);
            }
            Op::StoreStack {
                from,
                access,
                index,
            } => {
                let index = self.word(index);
                self.store_element(program, from, access, index);
            }
            Op::LoadLast { to, access } => {
                let index = self.last_index(program, access);
                self.load_element(program, to, access, index);
            }
            Op::StoreLast { from, access } => {
                let index = self.last_index(program, access);
                self.store_element(program, from, access, index);
            }
            Op::LastIndex { to, stack } => {
                let fill = self.word(program.layout.stacks[stack as usize].fill);
                self.write(to, fill.wrapping_sub(1));
            }
            other => unreachable!("{other:?} is not an instruction on headers"),
        }
    }

    #[inline]
    fn header_at(&self, slot: Slot) -> Option<u32> {
        u32::try_from(self.word(slot)).ok()
    }

    #[inline]
    fn validity(&self, program: &Program, header: u32) -> u64 {
        self.words[program.layout.headers[header as usize].base as usize]
    }

    fn invalidate_others(&mut self, program: &Program, union: u32, keep: Slot) {
        for &other in &program.layout.unions[union as usize].headers {
            let base = program.layout.headers[other as usize].base;
            if base != keep {
                self.words[base as usize] = 0;
            }
        }
    }

    /// Bytes of a header on the wire.
    fn header_bytes(&self, program: &Program, header: u32) -> u64 {
        let header = &program.layout.headers[header as usize];
        let fixed = program.layout.types[header.kind as usize].fixed_bits;
        let varbit = header.varbit.map_or(0, |slot| self.word(slot));
        (u64::from(fixed) + varbit) / 8
    }

    /// `setValid`: an invalid header starts with all fields 0, and the packet grows.
    fn make_valid(&mut self, program: &Program, header: u32) {
        if self.validity(program, header) == 1 {
            return;
        }
        let instance = &program.layout.headers[header as usize];
        let base = instance.base as usize;
        let kind = &program.layout.types[instance.kind as usize];
        self.words[base..base + kind.words as usize].fill(0);
        self.words[base] = 1;
        if let Some(union) = instance.union {
            self.invalidate_others(program, union, instance.base);
        }
        self.length = self.length.wrapping_add(self.header_bytes(program, header));
    }

    /// `setInvalid`: the packet shrinks.
    fn make_invalid(&mut self, program: &Program, header: u32) {
        let instance = &program.layout.headers[header as usize];
        if instance.metadata || self.words[instance.base as usize] == 0 {
            return;
        }
        self.length = self.length.wrapping_sub(self.header_bytes(program, header));
        self.words[instance.base as usize] = 0;
    }

    /// Assignment of headers; the fields of an invalid source are not copied.
    fn copy_header(&mut self, program: &Program, to: u32, from: u32) {
        let layout = &program.layout;
        let to_base = layout.headers[to as usize].base as usize;
        let from_base = layout.headers[from as usize].base as usize;
        if self.words[from_base] == 0 {
            self.words[to_base] = 0;
            return;
        }
        let words = layout.types[layout.headers[from as usize].kind as usize].words as usize;
        self.words
            .copy_within(from_base..from_base + words, to_base);
        if let Some(union) = layout.headers[to as usize].union {
            self.invalidate_others(program, union, to_base as u32);
        }
    }

    fn headers_equal(&self, program: &Program, a: u32, b: u32) -> bool {
        let layout = &program.layout;
        let (a, b) = (&layout.headers[a as usize], &layout.headers[b as usize]);
        if a.kind != b.kind
            || self.words[a.base as usize] == 0
            || self.words[b.base as usize] == 0
        {
            return false;
        }
        let kind = &layout.types[a.kind as usize];
        let same_varbit = match (a.varbit, b.varbit) {
            (Some(a), Some(b)) => {
                codec::varbit_bytes(&self.words, a, &self.packet)
                    == codec::varbit_bytes(&self.words, b, &self.packet)
            }
            _ => true,
        };
        same_varbit
            && kind.fields.iter().filter(|field| !field.varbit).all(|field| {
                let range = |base: Slot| {
                    let first = (base + field.offset) as usize;
                    first..first + field.limbs as usize
                };
                self.words[range(a.base)] == self.words[range(b.base)]
            })
    }

    fn push(&mut self, program: &Program, stack: u32, count: u64) {
        let stack = &program.layout.stacks[stack as usize];
        let words = program.layout.types[stack.kind as usize].words as usize;
        let size = stack.size as usize;
        let count = usize::try_from(count).unwrap_or(size).min(size);
        let base = program.layout.headers[stack.first_header as usize].base as usize;
        self.words
            .copy_within(base..base + (size - count) * words, base + count * words);
        for index in 0..count {
            self.words[base + index * words] = 0;
        }
        let fill = self.word(stack.fill) + count as u64;
        self.write(stack.fill, fill.min(size as u64));
    }

    fn pop(&mut self, program: &Program, stack: u32, count: u64) {
        let stack = &program.layout.stacks[stack as usize];
        let words = program.layout.types[stack.kind as usize].words as usize;
        let size = stack.size as usize;
        let count = usize::try_from(count).unwrap_or(size).min(size);
        let base = program.layout.headers[stack.first_header as usize].base as usize;
        self.words
            .copy_within(base + count * words..base + size * words, base);
        for index in size - count..size {
            self.words[base + index * words] = 0;
        }
        let fill = self.word(stack.fill).saturating_sub(count as u64);
        self.write(stack.fill, fill);
    }

    fn last_index(&self, program: &Program, access: u32) -> u64 {
        let stack = program.code.stack_fields[access as usize].stack;
        self.word(program.layout.stacks[stack as usize].fill)
            .wrapping_sub(1)
    }

    /// First word of a field of a stack element.
    fn element(&mut self, program: &Program, access: u32, index: u64) -> Option<(usize, usize)> {
        let access = program.code.stack_fields[access as usize];
        let stack = &program.layout.stacks[access.stack as usize];
        if index >= u64::from(stack.size) {
            self.statistics.count_event(Event::StackIndexOutOfBounds);
            return None;
        }
        let header = &program.layout.headers[(stack.first_header + index as u32) as usize];
        Some((
            (header.base + access.offset) as usize,
            access.limbs as usize,
        ))
    }

    fn load_element(&mut self, program: &Program, to: Slot, access: u32, index: u64) {
        let limbs = program.code.stack_fields[access as usize].limbs as usize;
        match self.element(program, access, index) {
            Some((first, limbs)) => self.words.copy_within(first..first + limbs, to as usize),
            None => self.words[to as usize..to as usize + limbs].fill(0),
        }
    }

    fn store_element(&mut self, program: &Program, from: Slot, access: u32, index: u64) {
        if let Some((first, limbs)) = self.element(program, access, index) {
            self.words
                .copy_within(from as usize..from as usize + limbs, first);
        }
    }

    // Calculations.

    /// The result of a calculation over the current headers and payload.
    pub(super) fn calculate(&mut self, program: &Program, calculation: u32) -> u64 {
        let calculation = &program.calculations[calculation as usize];
        self.input.clear();
        let words = &self.words;
        let mut out = BitWriter::new(&mut self.input);
        let is_valid = |slot: Slot| words[slot as usize] != 0;
        for part in &calculation.input {
            match part {
                InputPart::Field { slot, width, valid } => {
                    if valid.is_none_or(is_valid) {
                        let first = *slot as usize;
                        if *width <= 64 {
                            out.put(words[first], *width);
                        } else {
                            let limbs = width.div_ceil(64) as usize;
                            out.put_words(&words[first..first + limbs], *width);
                        }
                    }
                }
                InputPart::Varbit { slot, valid } => {
                    if is_valid(*valid) {
                        out.put_bytes(codec::varbit_bytes(words, *slot, &self.packet));
                    }
                }
                InputPart::Constant { bytes, width } => put_constant(&mut out, bytes, *width),
                InputPart::Header(header) => {
                    let header = &program.layout.headers[*header as usize];
                    if is_valid(header.base) {
                        let kind = &program.layout.types[header.kind as usize];
                        let base = header.base as usize;
                        codec::deparse(
                            &kind.pieces,
                            words,
                            base,
                            header.varbit,
                            &self.packet,
                            &mut out,
                        );
                    }
                }
                InputPart::Payload => {
                    out.align();
                    out.put_bytes(&self.packet[self.cursor..]);
                }
            }
        }
        hash::compute(calculation.algorithm, &self.input)
    }
}

/// Bytes hold `width` bits, aligned at the end.
fn put_constant(out: &mut BitWriter<'_>, bytes: &[u8], width: u32) {
    let mut left = width;
    for byte in bytes {
        let take = if left % 8 == 0 { 8 } else { left % 8 };
        out.put(u64::from(*byte), take);
        left -= take;
    }
}

#[inline]
fn non_zero(list: u64) -> Option<u64> {
    let list = list & 0xffff;
    (list != 0).then_some(list)
}

#[inline]
fn cell<T>(cells: &mut [T], index: u64) -> Option<&mut T> {
    usize::try_from(index)
        .ok()
        .and_then(|index| cells.get_mut(index))
}
