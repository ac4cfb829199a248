//! What the command line comes to.

use std::path::PathBuf;

use super::compatibility::{DropIn, Notifications};
use wormcast_switch_dataplane::PortSettings;
use wormcast_switch_dataplane::log::{Level, LogFiles};
use wormcast_switch_flow::BitRate;
use wormcast_switch_flow::QueueSettings;
use wormcast_switch_listen::Address;
use wormcast_switch_listen::socket_file::SocketMode;
use wormcast_switch_p4runtime::{TlsArguments, TranslationArguments};
use wormcast_switch_pipeline::trace::{Filter, Format};
use wormcast_switch_pipeline::{Execution, PortId};
use wormcast_switch_ports::{ImpairmentTable, ReceiveMode};

/// All settings of the switch.
#[derive(Debug)]
pub struct Settings {
    /// Program to start with.
    pub json: Option<PathBuf>,
    pub ports: Vec<PortSettings>,
    pub device_id: u64,
    /// File of many switches.
    pub fabric: Option<PathBuf>,
    /// Threads that move frames.
    pub workers: usize,
    /// How long a thread without frames looks for more, microseconds.
    pub spin_us: u64,
    pub execution: Execution,
    /// Where the P4Runtime server listens.
    pub address: Address,
    /// Who may connect to Unix sockets, if not their owner alone.
    pub socket_mode: Option<SocketMode>,
    /// Whether it speaks TLS, and with which files.
    pub tls: TlsArguments,
    /// What values of translated types stand for.
    pub translation: TranslationArguments,
    /// Whether there has to be one.
    pub p4runtime: P4Runtime,
    /// Port that leads to the controller.
    pub cpu_port: Option<PortId>,
    pub drop_port: PortId,
    /// Egress queues of a port.
    pub priority_queues: u8,
    /// Times a packet may be recirculated; None: for ever.
    pub recirculations: Option<u32>,
    /// Most packets in an egress queue.
    pub queue_frames: usize,
    /// How egress queues behave, and whether frames are lost at all.
    pub queueing: QueueSettings,
    /// Frames in a receive ring.
    pub ring_frames: usize,
    pub receive: ReceiveMode,
    pub port_rate: Option<BitRate>,
    pub impairments: ImpairmentTable,
    pub seed: u64,
    pub capture_directory: Option<PathBuf>,
    pub statistics: Option<PathBuf>,
    /// Where counts are answered over HTTP.
    pub metrics_address: Option<String>,
    /// Packets to trace from the start on.
    pub trace: Option<TraceSettings>,
    pub log: LogTo,
    /// Least level that is logged.
    pub log_level: Level,
    /// Bytes of each packet that comes and goes that are logged; 0: not even that it does.
    pub packet_data_bytes: usize,
    /// There is a Thrift server though no port was asked for.
    pub opens_thrift: bool,
    /// Programs may be swapped over Thrift.
    pub swap: bool,
    /// Asking for the config without one is an error.
    pub needs_config: bool,
    pub notifications: Notifications,
    /// What BMv2 has as well.
    pub drop_in: DropIn,
    /// Options that were given and have no effect, for a note.
    pub notes: Vec<String>,
}

/// A trace that runs from the start on.
#[derive(Debug, PartialEq, Eq)]
pub struct TraceSettings {
    pub filter: Filter,
    /// Where to; `None`: the standard output.
    pub file: Option<PathBuf>,
    pub format: Format,
}

/// Whether there has to be a P4Runtime server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum P4Runtime {
    Needed,
    /// Only if its address is free.
    IfFree,
    None,
}

#[derive(Debug, PartialEq, Eq)]
pub enum LogTo {
    Nowhere,
    Console,
    /// To a file, with older ones beside it.
    File(LogFiles),
}
