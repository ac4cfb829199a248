//! The interpreter: one packet's frame, the state that outlives packets, and the
//! instructions that change both.

use std::ops::Range;

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

use super::config::{PipelineConfig, limits};
use super::crc::CustomCrc;
use super::entry::CounterValue;
use super::meter::Meter;
use super::recorder::Recorder;
use super::statistics::{DropCause, Event, Statistics};
use super::wide::{self, WideScratch};
use wormcast_switch_program::code::Op;
use wormcast_switch_program::{FieldRef, Program, Slot, ones};

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
    Drop(DropCause),
}

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
    /// Words of it that may be read before they are written.
    reset: Vec<Range<usize>>,
    /// First byte the parser has not taken.
    pub(super) cursor: usize,
    /// Bytes counters count.
    pub(super) ingress_bytes: u64,
    /// What BMv2 calls the packet length register: follows header changes.
    pub(super) length: u64,
    /// Bytes the packet is cut to when it is sent.
    /// Bytes that the program leaves of the packet when it is sent. As in BMv2, copies and the
    /// next pass of a packet that comes again are whole.
    pub(super) truncate: Option<u64>,
    /// Bytes that a clone session leaves of the packet, whatever becomes of it.
    pub(super) cut: u64,
    pub(super) marks: Marks,
    pub(super) now_us: u64,
    pub(super) loops: u32,

    pub(super) counters: Vec<Vec<CounterValue>>,
    pub(super) registers: Vec<RegisterArray>,
    pub(super) meters: Vec<Vec<Meter>>,
    /// Values and masks of each parser value set, as words of the select key.
    pub(super) value_sets: Vec<Vec<(Vec<u64>, Vec<u64>)>>,
    /// For each calculation the CRC that the control plane has put in its place.
    pub(super) custom_crcs: Vec<Option<Box<CustomCrc>>>,
    pub(super) statistics: Statistics,
    generator: ChaCha8Rng,
    pub(super) input: Vec<u8>,
    wide: WideScratch,
    /// Records the packet in work, if it is traced.
    pub(super) recorder: Option<Box<Recorder>>,
}

impl Machine {
    pub(super) fn new(program: &Program, config: &PipelineConfig) -> Self {
        let code = &program.code;
        let constants = code.constants_base as usize;
        let mut words = vec![0; constants + code.constants.len()];
        words[constants..].copy_from_slice(&code.constants);
        words[code.drop_port as usize] = u64::from(config.drop_port.0);
        let mut initial = vec![0; program.layout.words as usize];
        for header in program
            .layout
            .headers
            .iter()
            .filter(|header| header.metadata)
        {
            initial[header.base as usize] = 1;
        }
        Self {
            words,
            initial,
            reset: program.footprint.reset.clone(),
            cursor: 0,
            ingress_bytes: 0,
            length: 0,
            truncate: None,
            cut: u64::MAX,
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
            custom_crcs: vec![None; program.calculations.len()],
            statistics: Statistics::new(),
            generator: ChaCha8Rng::seed_from_u64(config.seed),
            input: Vec::with_capacity(512),
            wide: WideScratch::default(),
            recorder: None,
        }
    }

    /// Starts a pass of a packet: no headers, all metadata 0.
    #[inline]
    pub(super) fn reset(&mut self) {
        for range in &self.reset {
            self.words[range.clone()].copy_from_slice(&self.initial[range.clone()]);
        }
        self.cursor = 0;
        self.marks = Marks::default();
        self.loops = 0;
    }

    /// Sets all metadata to 0.
    pub(super) fn reset_metadata(&mut self, program: &Program) {
        for header in program
            .layout
            .headers
            .iter()
            .filter(|header| header.metadata)
        {
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
    pub(super) fn word(&self, slot: Slot) -> u64 {
        self.words[slot as usize]
    }

    #[inline]
    pub(super) fn write(&mut self, slot: Slot, value: u64) {
        self.words[slot as usize] = value;
    }

    #[inline]
    fn combine(&mut self, to: Slot, a: Slot, b: Slot, operation: impl Fn(u64, u64) -> u64) {
        let value = operation(self.word(a), self.word(b));
        self.write(to, value);
    }

    /// Runs code from an instruction to its end.
    #[inline]
    pub(super) fn run(&mut self, program: &Program, packet: &[u8], start: u32) -> Flow {
        if self.recorder.is_some() {
            return self.run_recorded(program, packet, start);
        }
        self.run_ops::<false>(program, packet, start)
    }

    /// The same; with `RECORDED` each instruction is shown to the recorder first.
    pub(super) fn run_ops<const RECORDED: bool>(
        &mut self,
        program: &Program,
        packet: &[u8],
        start: u32,
    ) -> Flow {
        let ops = program.code.ops.as_slice();
        let mut at = start as usize;
        loop {
            let op = ops[at];
            at += 1;
            if RECORDED {
                self.observe(program, packet, op);
            }
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
                op => match self.execute(program, packet, op) {
                    Flow::Done => {}
                    other => return other,
                },
            }
        }
    }

    /// Runs one instruction that is not a jump.
    #[inline(always)]
    pub(super) fn execute(&mut self, program: &Program, packet: &[u8], op: Op) -> Flow {
        match op {
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
            Op::Count { counter, index } => self.count(counter, self.word(index)),
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
            Op::Log { .. } => self.statistics.count_event(Event::LogMessage),
            Op::Hash { to, calculation } => {
                let value = self.calculate(program, packet, calculation);
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
            Op::Advance { bits } => match self.advance(program, packet, self.word(bits)) {
                Ok(()) => {}
                Err(error) => return Flow::Error(error),
            },
            Op::Lookahead { to, index } => {
                if let Err(error) = self.look_ahead(program, packet, to, index) {
                    return Flow::Error(error);
                }
            }
            Op::Extract { header } => {
                if let Err(error) = self.extract(program, packet, header, None) {
                    return Flow::Error(error);
                }
            }
            Op::ExtractVarbit { header, bits } => {
                let bits = Some(self.word(bits));
                if let Err(error) = self.extract(program, packet, header, bits) {
                    return Flow::Error(error);
                }
            }
            Op::ExtractNext { stack } => {
                if let Err(error) = self.extract_next(program, packet, stack, None) {
                    return Flow::Error(error);
                }
            }
            Op::ExtractUnionNext { stack, member } => {
                if let Err(error) = self.extract_union_next(program, packet, stack, member, None) {
                    return Flow::Error(error);
                }
            }
            Op::ExtractVarbitUnionNext {
                stack,
                member,
                bits,
            } => {
                let bits = Some(self.word(bits));
                if let Err(error) = self.extract_union_next(program, packet, stack, member, bits) {
                    return Flow::Error(error);
                }
            }
            Op::ExtractVarbitNext { stack, bits } => {
                let bits = Some(self.word(bits));
                if let Err(error) = self.extract_next(program, packet, stack, bits) {
                    return Flow::Error(error);
                }
            }
            other => self.run_header_op(program, packet, other),
        }
        Flow::Done
    }

    /// Counts the packet in a cell of a counter.
    pub(super) fn count(&mut self, counter: u32, index: u64) {
        let bytes = self.ingress_bytes;
        match cell(&mut self.counters[counter as usize], index) {
            Some(value) => value.add(bytes),
            None => self.statistics.count_event(Event::CellIndexOutOfBounds),
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
    pub(super) fn random(&mut self, low: u64, high: u64) -> u64 {
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
