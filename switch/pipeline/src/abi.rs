//! What compiled code and the pipeline agree on: one structure in memory, the functions of
//! the pipeline that compiled code calls, and how results come back.

use std::ffi::c_void;

use wormcast_switch_program::Program;

/// The piece of work compiled code is called with. Everything it reads or changes hangs off
/// this structure, by pointers that are valid for the call.
#[derive(Debug)]
#[repr(C)]
pub struct Run {
    /// The frame of words.
    pub words: *mut u64,
    pub packet: *const u8,
    pub packet_bytes: u64,
    /// First byte the parser has not taken.
    pub cursor: u64,
    /// The packet length register.
    pub length: u64,
    /// Jumps backwards so far.
    pub loops: u64,
    /// Not 0 once `exit` was called.
    pub exit: u64,
    /// Words of the key of a table or of a select.
    pub key: *mut u64,
    /// Arguments of the action that the last lookup gave.
    pub arguments: *const u64,
    /// 1 if the last lookup hit.
    pub hit: u64,
    /// Error the parser stopped with.
    pub error: u64,
    /// Not 0 if a checksum did not verify.
    pub wrong: u64,
    /// Where the deparser writes.
    pub frame: *mut u8,
    pub frame_bytes: u64,
    /// The rest of the pipeline, for the functions in [`Calls`].
    pub pipeline: *mut c_void,
}

/// A compiled function. Gives a [`status`].
pub type Entry = unsafe extern "C" fn(*mut Run) -> u64;

/// The functions of a program. They may be called as long as the [`MachineCode`](crate::MachineCode) that
/// gave them lives.
#[derive(Clone, Copy, Debug)]
pub struct Entries {
    pub parser: Entry,
    /// Verifies checksums; none when the program has none.
    pub verify: Option<Entry>,
    pub ingress: Entry,
    pub egress: Entry,
    /// Updates checksums and writes the headers.
    pub deparser: Entry,
}

/// Functions of the pipeline that compiled code calls. The first argument is always the
/// [`Run`] that it was called with.
#[derive(Clone, Copy, Debug)]
pub struct Calls {
    /// Runs one instruction in the interpreter: its index. Gives a [`status`].
    pub execute: unsafe extern "C" fn(*mut Run, u64) -> u64,
    /// Counts an event: its number.
    pub count_event: unsafe extern "C" fn(*mut Run, u64),
    /// Looks the key up in a table. Gives the position of the action in the table's list,
    /// [`NO_ACTION`] for none; sets `arguments` and `hit`.
    pub look_up: unsafe extern "C" fn(*mut Run, u64) -> u64,
    /// Whether a case of a parser state holds for the key: the state and the case.
    pub case_holds: unsafe extern "C" fn(*mut Run, u64, u64) -> u64,
    /// The result of a calculation.
    pub calculate: unsafe extern "C" fn(*mut Run, u64) -> u64,
    /// Sum of the 16-bit words of the bytes of a variable field, named by its first word in
    /// the frame. An odd last byte is padded with zeros, and marked by [`ODD_BYTES`].
    pub sum_varbit: unsafe extern "C" fn(*mut Run, u64) -> u64,
    /// Writes a header behind the bytes of the frame there are: the header, how many bytes.
    /// Gives how many there are then; the frame may have moved.
    pub write_header: unsafe extern "C" fn(*mut Run, u64, u64) -> u64,
    /// Adds to a cell of a counter: the counter, the index.
    pub count: unsafe extern "C" fn(*mut Run, u64, u64),
}

/// Set in what [`Calls::sum_varbit`] gives when the number of bytes is odd.
pub const ODD_BYTES: u64 = 1 << 63;

/// What [`Calls::look_up`] gives when no action runs.
pub const NO_ACTION: u64 = u64::MAX;

/// How compiled code ended.
pub mod status {
    pub const DONE: u64 = 0;
    /// The parser stopped with [`Run::error`](super::Run::error).
    pub const ERROR: u64 = 1;
    /// This plus the number of a drop cause: the packet ends.
    pub const DROP: u64 = 2;
}

/// Numbers of events and drop causes that compiled code itself tells.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    pub stack_index_out_of_bounds: u64,
    pub division_by_zero: u64,
    pub log_message: u64,
    pub action_loop: u64,
    pub parser_loop: u64,
    pub assertion_failed: u64,
    pub loops_max: u64,
    pub parser_states_max: u64,
}

/// Bytes that a store may reach behind what it writes.
pub const SLACK_BYTES: usize = 8;

/// Bytes of all headers of the deparser without their variable fields.
pub fn header_bytes_max(program: &Program) -> usize {
    let headers = program.deparser.iter();
    headers
        .map(|&header| {
            let kind = program.layout.headers[header as usize].kind;
            program.layout.types[kind as usize].fixed_bits.div_ceil(8) as usize
        })
        .sum()
}

/// Words of the longest key of a table or a select.
pub(crate) fn key_words_max(program: &Program) -> usize {
    let tables = program.table_plans.iter().map(|plan| plan.key_words);
    let most = tables.chain([program.parser.key_words]).max();
    most.unwrap_or(0) as usize
}
