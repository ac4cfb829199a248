//! What can happen to a packet, as the pipeline records it: indices and values, no names.

use std::sync::Arc;

use super::loaded::LoadedProgram;
use crate::{DropCause, EntryHandle, Event, Replica, TableEntry};
use wormcast_switch_program::Bits;
use wormcast_switch_program::DigestId;
use wormcast_switch_program::Stage;

/// One packet, or one copy of it, in one half of the pipeline.
#[derive(Debug)]
pub struct TraceRecord {
    /// What the indices in the events mean.
    pub program: Arc<LoadedProgram>,
    /// Name of the switch, if it is one of several.
    pub switch: Arc<str>,
    /// Number of the packet among those traced, from 1.
    pub packet: u64,
    /// Number of the copy that left its queue, 0 in ingress.
    pub copy: u64,
    /// Which half.
    pub stage: Stage,
    /// Port it came in by.
    pub ingress_port: u16,
    /// Time, microseconds since the start of the switch.
    pub time_us: u64,
    /// Bytes as they arrived (in egress: as they arrived before).
    pub bytes: Box<[u8]>,
    pub events: Vec<TraceEvent>,
    /// Events that did not fit into the record.
    pub events_lost: u64,
}

/// How the verification of a checksum ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verification {
    TargetInvalid,
    ConditionFalse,
    Computed { computed: u64, found: u64 },
}

/// A table that was applied.
#[derive(Clone, Debug)]
pub struct TableLookup {
    pub table: u32,
    pub key: Box<[u64]>,
    /// The entry that matched and its handle.
    pub entry: Option<(EntryHandle, TableEntry)>,
}

#[derive(Clone, Debug)]
pub enum TraceEvent {
    ParserStarted,
    State {
        state: u32,
    },
    Extracted {
        header: u32,
        words: Box<[u64]>,
        varbit: Box<[u8]>,
    },
    Advanced {
        bits: u64,
    },
    Selected {
        state: u32,
        key: Box<[u64]>,
    },
    ParserEnded {
        error: Option<u64>,
        bytes: usize,
    },
    Verified {
        checksum: u32,
        verification: Verification,
    },
    Entered(Stage),
    Left(Stage),
    Table(Box<TableLookup>),
    /// A table that p4c has put around a call of an action.
    Called {
        table: u32,
    },
    Member {
        member: u32,
        group: Option<u32>,
    },
    Action {
        action: u32,
        arguments: Box<[u64]>,
    },
    Condition {
        stage: Stage,
        node: u32,
        holds: bool,
    },
    /// A field, or the validity of a header.
    Changed {
        header: u32,
        field: Option<u32>,
        before: Box<[u64]>,
        after: Box<[u64]>,
    },
    RegisterRead {
        register: u32,
        index: u64,
        value: Box<[u64]>,
    },
    RegisterWritten {
        register: u32,
        index: u64,
        value: Box<[u64]>,
    },
    Counted {
        counter: u32,
        index: u64,
    },
    Metered {
        meter: u32,
        index: u64,
        colour: u64,
    },
    Message {
        message: u32,
        arguments: Vec<Box<[u64]>>,
    },
    CloneAsked {
        session: u64,
    },
    ResubmitAsked,
    RecirculateAsked,
    DigestAsked,
    TruncateAsked {
        bytes: u64,
    },
    ExitAsked,
    Happened {
        event: Event,
    },
    Cloned {
        session: u64,
        from: Stage,
        replicas: Box<[Replica]>,
    },
    Digested {
        digest: DigestId,
        fields: Box<[Bits]>,
    },
    Resubmitted,
    Recirculated {
        bytes: usize,
    },
    Replicated {
        group: u64,
        replicas: Box<[Replica]>,
    },
    Enqueued {
        copy: u64,
        port: u16,
        priority: u8,
        instance: u16,
    },
    Dropped {
        cause: DropCause,
    },
    Updated {
        checksum: u32,
        value: Option<u64>,
    },
    Deparsed {
        header: u32,
    },
    Transmitted {
        port: u16,
        frame: Box<[u8]>,
    },
}
