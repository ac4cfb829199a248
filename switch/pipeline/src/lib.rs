//! The pipeline: executes a [`Program`] on packets. Pure.
//!
//! A [`Pipeline`] does no IO, reads no clock, owns no threads and writes no log. Time and
//! the seed of `random` are arguments; what leaves it goes to a [`TrafficSink`] or an
//! [`EmitSink`]. The queues between ingress and egress belong to the caller: the pipeline
//! hands out [`Queued`] packets and takes them back with [`Pipeline::egress`].
//!
//! The semantics are those of `simple_switch` of behavioral-model, quirks included, except
//! where those would end the process or depend on stale memory: fields of headers that were
//! never set are 0; a stack index out of bounds, a division by zero, a failed assertion and
//! endless loops have named outcomes (see [`DropCause`] and [`Event`]).

pub mod abi;
mod calculation;
mod cells;
mod choices;
mod codec;
mod compiled;
mod config;
mod copies;
mod crc;
mod crc_control;
mod entries;
mod entry;
mod error;
mod event;
mod execution;
mod extraction;
mod fields;
mod filter;
mod forward;
mod handles;
mod hash;
mod headers;
mod identity;
mod idle;
mod index;
mod journal;
mod json;
mod loaded;
mod machine;
mod meter;
mod packet;
mod profile;
mod recorder;
mod replication;
mod sink;
mod stages;
mod statistics;
mod table;
mod text;
mod timer;
mod traced;
mod tracing;
mod transaction;
mod unions;
mod value_set;
mod wide;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

pub use compiled::{CALLS, NUMBERS};
pub use config::{Execution, PipelineConfig, PortId, limits};
pub use crc::CrcParameters;
pub use entry::{
    ActionSet, Backups, CloneSession, ColourCounts, CounterValue, EntryAction, EntryHandle,
    GroupMember, MeterRates, Replica, SelectionMode, SizeSemantics, TableEntry, WeightedCall,
};
pub use error::ControlError;
pub use loaded::{Compilation, Compiler, LoadedProgram, MachineCode};
pub use packet::{DequeueInfo, Queued};
pub use sink::{EmitSink, TrafficSink};
pub use statistics::{DropCause, Event, PORTS_COUNTED, Statistics, TableCounts};
pub use timer::{Expired, IDLE_TIMEOUT_MIN_US, Idle};

use abi::Entries;
use journal::Journal;
use machine::Machine;
use packet::Pool;
use profile::Profile;
use replication::Replication;
use table::TableState;
use tracing::Tracing;
#[cfg(doc)]
use wormcast_switch_program::Program;
use wormcast_switch_program::{FieldMatch, Slot, ones};

/// Packet trace: what the pipeline does with chosen packets, step by step.
///
/// A [`Filter`] chooses packets when they arrive. For these the pipeline runs its
/// interpreter and records a typed event for each step; names are looked up only when a
/// [`TraceRecord`] is written as [text](TraceRecord::lines) or [JSON](TraceRecord::json),
/// on the thread of whoever reads it. Packets that no filter chooses pay one branch.
///
/// Records go to a [`TraceSink`] that never waits: a reader that is too slow loses records,
/// which are counted.
pub mod trace {
    pub use super::event::{TableLookup, TraceEvent, TraceRecord, Verification};
    pub use super::fields::hex;
    pub use super::filter::{Filter, Format, MATCH_BYTES_MAX, MATCHES_MAX};
    pub use super::tracing::{Delivery, TRACES_MAX, TraceSink, TracesFull, Tracing};
}

/// A program and its state: tables, counters, registers, meters, groups.
#[derive(Debug)]
pub struct Pipeline {
    program: Arc<LoadedProgram>,
    config: PipelineConfig,
    machine: Machine,
    tables: Vec<TableState>,
    profiles: Vec<Profile>,
    replication: Replication,
    ports_down: BTreeSet<PortId>,
    /// Members of the parser value sets as they were written.
    value_sets: Vec<Vec<Vec<FieldMatch>>>,
    pool: Pool,
    tracing: Tracing,
    /// The drop port as `egress_spec` shows it.
    drop_spec: u64,
    journal: Journal<Pipeline>,
    /// Time as control operations see it.
    now_us: u64,
    /// Table that is looked at first for idle entries.
    idle_table: usize,
    /// Buffers that are kept from packet to packet.
    key: Vec<u64>,
    /// Code of the program, which keeps it alive.
    entries: Option<Entries>,
    /// The key of a lookup by compiled code; as long as the longest one.
    key_words: Vec<u64>,
    /// Bytes of all headers the deparser may write, without variable fields.
    header_bytes: usize,
    frame: Vec<u8>,
    replicas: Vec<Replica>,
    kept: Vec<(Slot, u64)>,
    saved: Vec<u64>,
    /// The header vector as ingress left it, while its copies run through egress.
    vector: Vec<u64>,
    /// A second buffer for frames: a recirculated packet lies in the first one.
    spare_frame: Vec<u8>,
    /// A packet is on its way from ingress through egress in one go.
    running_direct: bool,
    /// Copies made meanwhile: packets do not overtake others of their queue.
    deferred: VecDeque<Queued>,
}

impl Pipeline {
    /// A pipeline in its initial state: the entries and default actions of the program,
    /// all counters and registers 0.
    pub fn new(program: Arc<LoadedProgram>, config: PipelineConfig) -> Self {
        let machine = Machine::new(&program, &config);
        let tables = (0..program.tables().len())
            .map(|id| TableState::new(&program, id))
            .collect();
        let profiles = program.action_profiles().iter();
        let profiles = profiles.map(|_| Profile::default()).collect();
        let compiler = config.compiler;
        let entries = compiler.and_then(|compiler| program.entries(compiler).ok());
        let width = program.intrinsics.egress_spec.width;
        let value_sets = vec![Vec::new(); program.value_sets().len()];
        Self {
            entries,
            key_words: vec![0; abi::key_words_max(&program)],
            header_bytes: crate::abi::header_bytes_max(&program),
            drop_spec: u64::from(config.drop_port.0) & ones(width),
            program,
            config,
            machine,
            tables,
            profiles,
            replication: Replication::default(),
            ports_down: BTreeSet::new(),
            value_sets,
            pool: Pool::default(),
            tracing: Tracing::default(),
            journal: Journal::default(),
            now_us: 0,
            idle_table: 0,
            key: Vec::with_capacity(16),
            frame: Vec::with_capacity(2048),
            replicas: Vec::new(),
            kept: Vec::new(),
            saved: Vec::new(),
            vector: Vec::new(),
            spare_frame: Vec::with_capacity(2048),
            running_direct: false,
            deferred: VecDeque::new(),
        }
    }

    pub fn program(&self) -> &Arc<LoadedProgram> {
        &self.program
    }

    pub fn config(&self) -> &PipelineConfig {
        &self.config
    }

    /// What has happened to packets so far.
    pub fn statistics(&self) -> &Statistics {
        &self.machine.statistics
    }

    /// Counts of every table, in the order of [`Program::tables`].
    pub fn table_counts(&self) -> impl Iterator<Item = TableCounts> {
        self.tables.iter().map(|table| TableCounts {
            entries: table.len(),
            hits: table.hits,
            misses: table.misses,
        })
    }
}
