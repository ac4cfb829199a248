//! The way from the pipeline into machine code and back.
//!
//! Compiled code gets one [`Run`]; whatever it leaves to the pipeline it asks for with the
//! functions here, which take the same structure.

use std::ffi::c_void;

use super::Pipeline;
use super::abi::{Calls, Entry, NO_ACTION, Numbers, ODD_BYTES, Run, SLACK_BYTES, status};
use super::codec::{self, BitWriter};
use super::config::{Execution, limits};
use super::machine::{Flow, Machine};
use super::profile::Profile;
use super::stages::{holds, look_up};
use super::statistics::{DropCause, Event};
use super::table::TableState;
use wormcast_switch_program::{Piece, Program};

/// What the functions of [`CALLS`] work on.
struct Parts<'p> {
    program: &'p Program,
    machine: &'p mut Machine,
    tables: &'p mut [TableState],
    profiles: &'p [Profile],
    packet: &'p [u8],
    frame: &'p mut Vec<u8>,
    /// Bytes of all headers the deparser may write, without variable fields.
    header_bytes: usize,
}

/// The functions that compiled code may call.
pub const CALLS: Calls = Calls {
    execute,
    count_event,
    look_up: look_up_key,
    case_holds,
    calculate,
    sum_varbit,
    write_header,
    count,
};

/// Numbers that compiled code is made with.
pub const NUMBERS: Numbers = Numbers {
    stack_index_out_of_bounds: Event::StackIndexOutOfBounds as u64,
    division_by_zero: Event::DivisionByZero as u64,
    log_message: Event::LogMessage as u64,
    action_loop: DropCause::ActionLoop as u64,
    parser_loop: DropCause::ParserLoop as u64,
    assertion_failed: DropCause::AssertionFailed as u64,
    loops_max: limits::ACTION_LOOPS_MAX as u64,
    parser_states_max: limits::PARSER_STATES_MAX as u64,
};

impl Pipeline {
    /// How packets are run: interpreted, though compiled was asked for, where
    /// there is no code for the machine or the program.
    pub fn execution(&self) -> Execution {
        match self.entries {
            Some(_) => Execution::Compiled,
            None => Execution::Interpreted,
        }
    }

    /// Why packets are interpreted though compiled was asked for.
    pub fn refusal_to_compile(&self) -> Option<String> {
        let compiler = self.config.compiler?;
        self.program.entries(compiler).err().map(str::to_owned)
    }

    /// Runs compiled code on the packet in the machine.
    #[inline]
    pub(super) fn run_code(&mut self, entry: Entry, packet: &[u8]) -> Result<Ended, DropCause> {
        let machine = &mut self.machine;
        let mut run = Run {
            words: machine.words.as_mut_ptr(),
            packet: packet.as_ptr(),
            packet_bytes: packet.len() as u64,
            cursor: machine.cursor as u64,
            length: machine.length,
            loops: u64::from(machine.loops),
            exit: u64::from(machine.marks.exit),
            key: self.key_words.as_mut_ptr(),
            arguments: std::ptr::null(),
            hit: 0,
            error: 0,
            wrong: 0,
            frame: self.frame.as_mut_ptr(),
            frame_bytes: 0,
            pipeline: std::ptr::null_mut(),
        };
        let mut parts = Parts {
            program: &self.program,
            machine,
            tables: &mut self.tables,
            profiles: &self.profiles,
            packet,
            frame: &mut self.frame,
            header_bytes: self.header_bytes,
        };
        run.pipeline = (&raw mut parts).cast::<c_void>();
        // SAFETY: the entry belongs to the program of this pipeline, so every word, key and
        // header it touches lies in the buffers above, which were sized for that program;
        // `deparse` reserves the frame. They all live until the call ends, nothing else
        // uses them meanwhile, and the functions of CALLS get them through `run` alone.
        let status = unsafe { entry(&raw mut run) };
        let machine = &mut self.machine;
        machine.cursor = run.cursor as usize;
        machine.length = run.length;
        machine.loops = run.loops as u32;
        machine.marks.exit = run.exit != 0;
        match status {
            status::DONE => Ok(Ended {
                error: None,
                wrong: run.wrong != 0,
                frame_bytes: run.frame_bytes as usize,
            }),
            status::ERROR => Ok(Ended {
                error: Some(run.error),
                wrong: false,
                frame_bytes: 0,
            }),
            cause => Err(DropCause::ALL[(cause - status::DROP) as usize]),
        }
    }

    /// Updates checksums and writes the headers of the packet in the machine.
    pub(super) fn write_headers(&mut self, entry: Entry, packet: &[u8]) {
        self.frame.clear();
        self.frame.reserve(self.header_bytes + SLACK_BYTES);
        let ended = self.run_code(entry, packet);
        let written = ended.map_or(0, |ended| ended.frame_bytes);
        // SAFETY: the code has written so many bytes from the start of the frame on, all
        // within the capacity that was reserved here or by `write_header`.
        unsafe { self.frame.set_len(written) };
    }
}

/// How code ended that did not drop the packet.
pub(super) struct Ended {
    /// Error the parser stopped with.
    pub(super) error: Option<u64>,
    /// A checksum did not verify.
    pub(super) wrong: bool,
    frame_bytes: usize,
}

/// The parts behind a [`Run`].
///
/// # Safety
/// `run` is what compiled code was called with by [`Pipeline::run_code`], which is still on
/// the stack, and no other reference to the parts is alive.
unsafe fn parts<'r>(run: *mut Run) -> (&'r mut Run, &'r mut Parts<'r>) {
    // SAFETY: said above.
    unsafe {
        let run = &mut *run;
        let parts = &mut *run.pipeline.cast::<Parts<'r>>();
        (run, parts)
    }
}

unsafe extern "C" fn execute(run: *mut Run, index: u64) -> u64 {
    // SAFETY: compiled code hands on what it was called with.
    let (run, parts) = unsafe { parts(run) };
    let machine = &mut *parts.machine;
    machine.cursor = run.cursor as usize;
    machine.length = run.length;
    let op = parts.program.code.ops[index as usize];
    let flow = machine.execute(parts.program, parts.packet, op);
    run.cursor = machine.cursor as u64;
    run.length = machine.length;
    match flow {
        Flow::Done => status::DONE,
        Flow::Error(error) => {
            run.error = error;
            status::ERROR
        }
        Flow::Drop(cause) => status::DROP + cause as u64,
    }
}

unsafe extern "C" fn count_event(run: *mut Run, event: u64) {
    // SAFETY: compiled code hands on what it was called with.
    let (_, parts) = unsafe { parts(run) };
    let statistics = &mut parts.machine.statistics;
    statistics.count_event(Event::ALL[event as usize]);
}

unsafe extern "C" fn look_up_key(run: *mut Run, table: u64) -> u64 {
    // SAFETY: compiled code hands on what it was called with.
    let (run, parts) = unsafe { parts(run) };
    let table = table as usize;
    let words = parts.program.table_plans[table].key_words as usize;
    // SAFETY: the key buffer has room for the longest key; code has written this one.
    let key = unsafe { std::slice::from_raw_parts(run.key, words) };
    parts.machine.cursor = run.cursor as usize;
    let found = look_up(
        parts.program,
        table,
        parts.tables,
        parts.profiles,
        parts.machine,
        parts.packet,
        key,
    );
    run.hit = u64::from(found.hit);
    match found.action {
        Some(action) => {
            run.arguments = action.arguments.as_ptr();
            u64::from(action.position)
        }
        None => NO_ACTION,
    }
}

unsafe extern "C" fn case_holds(run: *mut Run, state: u64, case: u64) -> u64 {
    // SAFETY: compiled code hands on what it was called with.
    let (run, parts) = unsafe { parts(run) };
    let state = &parts.program.parser.states[state as usize];
    let words = state.key.iter().map(|part| part.width.div_ceil(64).max(1));
    let words: u32 = words.sum();
    // SAFETY: the key buffer has room for the longest key; code has written this one.
    let key = unsafe { std::slice::from_raw_parts(run.key, words as usize) };
    let (case, _) = &state.cases[case as usize];
    u64::from(holds(case, key, parts.machine))
}

unsafe extern "C" fn calculate(run: *mut Run, calculation: u64) -> u64 {
    // SAFETY: compiled code hands on what it was called with.
    let (run, parts) = unsafe { parts(run) };
    parts.machine.cursor = run.cursor as usize;
    parts
        .machine
        .calculate(parts.program, parts.packet, calculation as u32)
}

unsafe extern "C" fn sum_varbit(run: *mut Run, slot: u64) -> u64 {
    // SAFETY: compiled code hands on what it was called with.
    let (_, parts) = unsafe { parts(run) };
    let bytes = codec::varbit_bytes(&parts.machine.words, slot as u32, parts.packet);
    let sum = super::hash::sum_words(bytes);
    let odd = if bytes.len() % 2 == 1 { ODD_BYTES } else { 0 };
    sum | odd
}

unsafe extern "C" fn write_header(run: *mut Run, header: u64, written: u64) -> u64 {
    // SAFETY: compiled code hands on what it was called with.
    let (run, parts) = unsafe { parts(run) };
    let header = &parts.program.layout.headers[header as usize];
    let kind = &parts.program.layout.types[header.kind as usize];
    let frame = &mut *parts.frame;
    // SAFETY: code has written so many bytes, within the capacity that was reserved.
    unsafe { frame.set_len(written as usize) };
    let words = parts.machine.words.as_slice();
    match (kind.pieces.as_slice(), header.varbit) {
        ([Piece::Varbit], Some(slot)) => {
            frame.extend_from_slice(codec::varbit_bytes(words, slot, parts.packet));
        }
        (pieces, varbit) => {
            let base = header.base as usize;
            let mut out = BitWriter::new(frame);
            codec::deparse(pieces, words, base, varbit, parts.packet, &mut out);
        }
    }
    frame.reserve(parts.header_bytes + SLACK_BYTES);
    run.frame = frame.as_mut_ptr();
    frame.len() as u64
}

unsafe extern "C" fn count(run: *mut Run, counter: u64, index: u64) {
    // SAFETY: compiled code hands on what it was called with.
    let (_, parts) = unsafe { parts(run) };
    parts.machine.count(counter as u32, index);
}
