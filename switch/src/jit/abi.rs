//! What compiled code and the pipeline agree on: one structure in memory, the functions of
//! the pipeline that compiled code calls, and how results are told.

use std::ffi::c_void;

/// The piece of work compiled code is called with. Everything it reads or changes hangs off
/// this structure, by pointers that are valid for the call.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Run {
    /// The frame of words.
    pub(crate) words: *mut u64,
    /// The packet.
    pub(crate) packet: *const u8,
    /// Bytes of the packet.
    pub(crate) packet_bytes: u64,
    /// First byte the parser has not taken.
    pub(crate) cursor: u64,
    /// The packet length register.
    pub(crate) length: u64,
    /// Jumps backwards so far.
    pub(crate) loops: u64,
    /// Not 0 once `exit` was called.
    pub(crate) exit: u64,
    /// Words of the key of a table or of a select.
    pub(crate) key: *mut u64,
    /// Arguments of the action that the last lookup gave.
    pub(crate) arguments: *const u64,
    /// 1 if the last lookup hit.
    pub(crate) hit: u64,
    /// Error the parser stopped with.
    pub(crate) error: u64,
    /// Not 0 if a checksum did not verify.
    pub(crate) wrong: u64,
    /// Where the deparser writes.
    pub(crate) frame: *mut u8,
    /// Bytes it has written.
    pub(crate) frame_bytes: u64,
    /// The rest of the pipeline, for the functions in [`Calls`].
    pub(crate) pipeline: *mut c_void,
}

/// A compiled function. Gives a [`status`].
pub(crate) type Entry = unsafe extern "C" fn(*mut Run) -> u64;

/// Functions of the pipeline that compiled code calls. The first argument is always the
/// [`Run`] that it was called with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calls {
    /// Runs one instruction in the interpreter: its index. Gives a [`status`].
    pub(crate) execute: unsafe extern "C" fn(*mut Run, u64) -> u64,
    /// Counts an event: its number.
    pub(crate) count_event: unsafe extern "C" fn(*mut Run, u64),
    /// Looks the key up in a table. Gives the position of the action in the table's list,
    /// [`NO_ACTION`] for none; sets `arguments` and `hit`.
    pub(crate) look_up: unsafe extern "C" fn(*mut Run, u64) -> u64,
    /// Whether a case of a parser state holds for the key: the state and the case.
    pub(crate) case_holds: unsafe extern "C" fn(*mut Run, u64, u64) -> u64,
    /// The result of a calculation.
    pub(crate) calculate: unsafe extern "C" fn(*mut Run, u64) -> u64,
    /// Sum of the 16-bit words of the bytes of a variable field, named by its first word in
    /// the frame. An odd last byte is padded with zeros, and told by [`ODD_BYTES`].
    pub(crate) sum_varbit: unsafe extern "C" fn(*mut Run, u64) -> u64,
    /// Writes a header behind the bytes of the frame there are: the header, how many bytes.
    /// Gives how many there are then; the frame may have moved.
    pub(crate) write_header: unsafe extern "C" fn(*mut Run, u64, u64) -> u64,
    /// Adds to a cell of a counter: the counter, the index.
    pub(crate) count: unsafe extern "C" fn(*mut Run, u64, u64),
}

/// Set in what [`Calls::sum_varbit`] gives when the number of bytes is odd.
pub(crate) const ODD_BYTES: u64 = 1 << 63;

/// What [`Calls::look_up`] gives when no action runs.
pub(crate) const NO_ACTION: u64 = u64::MAX;

/// How compiled code ended.
pub(crate) mod status {
    /// To its end.
    pub(crate) const DONE: u64 = 0;
    /// The parser stopped with [`Run::error`](super::Run::error).
    pub(crate) const ERROR: u64 = 1;
    /// This plus the number of a drop cause: the packet ends.
    pub(crate) const DROP: u64 = 2;
}

/// Numbers of events and drop causes that compiled code itself tells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    pub(crate) stack_index_out_of_bounds: u64,
    pub(crate) division_by_zero: u64,
    pub(crate) log_message: u64,
    pub(crate) action_loop: u64,
    pub(crate) parser_loop: u64,
    pub(crate) assertion_failed: u64,
    pub(crate) loops_max: u64,
    pub(crate) parser_states_max: u64,
}
