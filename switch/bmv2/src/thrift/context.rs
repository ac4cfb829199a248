//! What a call works on.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::failure::{Failure, TableError};
use super::multicast_nodes::Multicast;
use crate::notifications::Notifier;
use wormcast_switch_dataplane::{Installed, PortStatus, Queues};
use wormcast_switch_pipeline::LoadedProgram;
use wormcast_switch_pipeline::{Pipeline, PipelineConfig, PortId};
use wormcast_switch_program::{TableId, TableInfo};

/// What the interface needs of a switch.
pub trait Target {
    /// The program that runs, with its tables.
    fn pipeline(&mut self) -> Option<&mut Pipeline>;
    /// Which program it is of those that were installed.
    fn installed(&self) -> Option<Installed>;
    /// Puts another pipeline in its place.
    fn install(&mut self, pipeline: Pipeline);
    /// Microseconds since the switch started.
    fn elapsed_us(&self) -> u64;
    /// Microseconds since the start of 1970.
    fn unix_us(&self) -> u64;
    /// Ports with interfaces, by number.
    fn ports(&mut self) -> Vec<PortStatus>;
    /// Attaches an interface to a port.
    ///
    /// # Errors
    /// Why not, in words.
    fn add_port(&mut self, number: PortId, interface: &str) -> Result<(), String>;
    /// Detaches the interface of a port.
    ///
    /// # Errors
    /// Why not, in words.
    fn remove_port(&mut self, number: PortId) -> Result<(), String>;
    /// Bounds the egress queues of one port or all, of one priority or all.
    ///
    /// # Errors
    /// Why not, in words.
    fn set_queue_depth(&mut self, which: Queues, frames: usize) -> Result<(), String>;
    /// Sets the rate of the egress queues of one port or all, of one priority or all;
    /// 0 sets none.
    ///
    /// # Errors
    /// Why not, in words.
    fn set_queue_rate(&mut self, which: Queues, frames_a_second: u64) -> Result<(), String>;
}

/// What the switch says of itself.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    pub device_id: u64,
    pub thrift_port: u16,
    /// Settings of the pipelines that programs are swapped in with.
    pub pipeline: PipelineConfig,
    /// Programs may be swapped.
    pub swap: bool,
    /// Address of the event log, as it was given.
    pub event_log: Option<String>,
    /// Address of the debugger, as it was given.
    pub debugger: Option<String>,
}

/// What the interface remembers between calls, of all its connections.
#[derive(Debug, Default)]
pub struct State {
    /// What the switch says of itself.
    pub identity: Identity,
    /// The nodes that make up multicast groups.
    pub multicast: Multicast,
    /// A program that waits to be swapped in.
    pub pending: Option<Arc<LoadedProgram>>,
    /// Who publishes what was learned, if somebody does.
    pub notifier: Option<Arc<Notifier>>,
    pub default_members: BTreeMap<TableId, i32>,
    program: Option<Arc<LoadedProgram>>,
}

impl State {
    pub fn new(identity: Identity) -> Self {
        Self {
            identity,
            ..Self::default()
        }
    }
}

/// What one call works on.
pub struct Context<'a> {
    pub switch: &'a mut dyn Target,
    /// What is remembered.
    pub state: &'a mut State,
}

impl Context<'_> {
    /// The pipeline, and what is remembered of it.
    ///
    /// # Errors
    /// When no program runs.
    pub fn parts(&mut self) -> Result<(&mut Pipeline, &mut State), Failure> {
        let pipeline = self.switch.pipeline().ok_or_else(no_program)?;
        let program = pipeline.program();
        let known = self.state.program.as_ref();
        if !known.is_some_and(|known| Arc::ptr_eq(known, program)) {
            self.state.program = Some(Arc::clone(program));
            self.state.default_members.clear();
        }
        Ok((pipeline, self.state))
    }

    /// The pipeline.
    ///
    /// # Errors
    /// When no program runs.
    pub fn pipeline(&mut self) -> Result<&mut Pipeline, Failure> {
        self.parts().map(|(pipeline, _)| pipeline)
    }

    /// The pipeline, and a table by name.
    ///
    /// # Errors
    /// `INVALID_TABLE_NAME`, or when no program runs.
    pub fn table(&mut self, name: &str) -> Result<Table<'_>, Failure> {
        let (pipeline, state) = self.parts()?;
        let program = Arc::clone(pipeline.program());
        let id = program
            .table(name)
            .ok_or_else(|| TableError::InvalidTableName.because(format!("no table {name:?}")))?;
        Ok(Table {
            pipeline,
            state,
            program,
            id,
        })
    }
}

/// A table that a call is about.
pub struct Table<'a> {
    pub pipeline: &'a mut Pipeline,
    pub state: &'a mut State,
    pub program: Arc<LoadedProgram>,
    pub id: TableId,
}

impl Table<'_> {
    /// What the program says of it.
    pub fn info(&self) -> &TableInfo {
        &self.program.tables()[self.id.index()]
    }
}

/// The failure of whatever needs a program.
pub fn no_program() -> Failure {
    Failure::internal("no program runs; start with one, or set one over P4Runtime")
}
