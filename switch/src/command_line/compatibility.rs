//! Options of BMv2's `simple_switch_grpc` that this switch has for its sake.

use std::net::IpAddr;
use std::path::PathBuf;

use wormcast_switch_bmv2::nanomsg;
use wormcast_switch_flow::whole_number;

/// Options of simple_switch and simple_switch_grpc that work here as they do there.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "As simple_switch and simple_switch_grpc have them")]
pub struct DropIn {
    /// TCP port of the Thrift server for simple_switch_CLI [default: 9090, if it is free, when
    /// called as simple_switch or simple_switch_grpc; otherwise there is no such server]
    #[arg(long, value_name = "N", value_parser = whole_number(0..=u16::MAX))]
    pub thrift_port: Option<u16>,
    /// Address that the Thrift server listens at, where anybody may change all tables; BMv2
    /// listens at all, which is :: here
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub thrift_addr: IpAddr,
    /// Let programs be swapped over Thrift
    #[arg(long)]
    pub enable_swap: bool,
    /// Do not let programs be swapped over Thrift
    #[arg(long, conflicts_with = "enable_swap")]
    pub disable_swap: bool,
    /// Take frames from IFACE_in.pcap and write them to IFACE_out.pcap, this many seconds
    /// after the start
    #[arg(
        long,
        value_name = "SECONDS",
        allow_negative_numbers = true,
        conflicts_with = "fabric"
    )]
    pub use_files: Option<i32>,
    /// Publish what is learned, idle entries and ports that go up or down over nanomsg, at
    /// ipc://PATH or tcp://ADDRESS:PORT [default: ipc:///tmp/bmv2-ID-notifications.ipc if
    /// called as simple_switch, otherwise nowhere]
    #[arg(long, value_name = "ADDR")]
    pub notifications_addr: Option<nanomsg::Address>,
    /// Take frames from a nanomsg pair and send them there, at ipc://PATH or
    /// tcp://ADDRESS:PORT; interfaces are ignored
    #[arg(
        long,
        value_name = "ADDR",
        conflicts_with_all = ["dp_grpc_server_addr", "use_files", "fabric"]
    )]
    pub packet_in: Option<nanomsg::Address>,
    /// Take frames over gRPC and send them there (BMv2's DataplaneInterface), at this address;
    /// interfaces are ignored
    #[arg(long, value_name = "ADDR", conflicts_with_all = ["use_files", "fabric"])]
    pub dp_grpc_server_addr: Option<wormcast_switch_listen::Address>,
    /// Publish each step of each packet over nanomsg, at ipc://PATH or tcp://ADDRESS:PORT, as
    /// long as somebody subscribes: BMv2's event log
    #[arg(long, value_name = "ADDR")]
    pub nanolog: Option<nanomsg::Address>,
    /// Begin with a state that `serialize_state` of simple_switch_CLI has saved
    #[arg(long, value_name = "FILE", conflicts_with_all = ["no_p4", "fabric"])]
    pub restore_state: Option<PathBuf>,
}

/// Which of BMv2's binaries this one stands for, by the name it was called with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Personality {
    /// `simple_switch`: no P4Runtime unless an address is given.
    SimpleSwitch,
    SimpleSwitchGrpc,
    /// Neither: both, and the defaults of this switch.
    #[default]
    Own,
}

impl DropIn {
    /// The option by which frames come in messages, if one does.
    pub fn message_option(&self) -> Option<&'static str> {
        match (&self.packet_in, &self.dp_grpc_server_addr) {
            (Some(_), _) => Some("--packet-in"),
            (None, Some(_)) => Some("--dp-grpc-server-addr"),
            (None, None) => None,
        }
    }
}

impl Personality {
    /// That of a binary called so, as by a symbolic link.
    pub fn of(program: &str) -> Self {
        match program.rsplit('/').next() {
            Some("simple_switch") => Self::SimpleSwitch,
            Some("simple_switch_grpc") => Self::SimpleSwitchGrpc,
            _ => Self::Own,
        }
    }

    /// Egress queues of a port unless their number is given.
    pub fn priority_queues(self) -> u8 {
        match self {
            Self::Own => 8,
            _ => 1,
        }
    }

    /// Most packets in an egress queue unless their number is given.
    pub fn queue_frames(self) -> u32 {
        match self {
            Self::Own => 1_024,
            _ => 64,
        }
    }

    /// What follows the name that `--log-file` gives in that of the file.
    pub fn log_suffix(self) -> &'static str {
        match self {
            Self::Own => "",
            _ => ".txt",
        }
    }

    /// Whether controllers of P4Runtime that ask for the config without one are told an
    /// error, as BMv2 does, rather than nothing.
    pub fn needs_config(self) -> bool {
        self != Self::Own
    }

    /// Whether there is a Thrift server without an option for its port.
    pub fn opens_thrift(self) -> bool {
        self != Self::Own
    }

    /// Whether programs may be swapped over Thrift by default.
    pub fn swap(self) -> bool {
        self != Self::SimpleSwitch
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notifications {
    /// There, as was asked for.
    Needed(nanomsg::Address),
    /// There, if nobody else publishes there: where BMv2 does unless it is told otherwise.
    IfFree(nanomsg::Address),
    None,
}

impl Notifications {
    /// Those of a switch: of BMv2's binaries only `simple_switch` publishes, since
    /// `simple_switch_grpc` has controllers of P4Runtime for that.
    pub fn of(drop_in: &DropIn, personality: Personality, device_id: Option<u64>) -> Self {
        match (&drop_in.notifications_addr, personality, device_id) {
            (Some(address), _, _) => Self::Needed(address.clone()),
            (None, Personality::SimpleSwitch, Some(id)) => {
                let path = format!("/tmp/bmv2-{id}-notifications.ipc");
                Self::IfFree(nanomsg::Address::Ipc(path.into()))
            }
            _ => Self::None,
        }
    }
}

/// Options of simple_switch_grpc that change nothing here.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Accepted for simple_switch_grpc's sake, without effect")]
pub struct WithoutEffect {
    /// Every line of the log is flushed
    #[arg(long)]
    log_flush: bool,
    /// There is no debugger
    #[arg(long)]
    debugger: bool,
    /// There is no debugger
    #[arg(long, value_name = "ADDR")]
    debugger_addr: Option<String>,
    /// Any number of ports up to 512
    #[arg(long, value_name = "N")]
    max_port_count: Option<u32>,
    /// At most 32768 groups
    #[arg(long, value_name = "N")]
    max_mc_groups: Option<u32>,
    /// At most 4096 replicas a group
    #[arg(long, value_name = "N")]
    max_l1_entries: Option<u32>,
    /// At most 4096 replicas a group
    #[arg(long, value_name = "N")]
    max_l2_entries: Option<u32>,
}

/// Options of simple_switch_grpc that this switch refuses.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Options of simple_switch_grpc that are refused")]
pub struct Unsupported {
    /// Not supported: modules are made for the insides of BMv2
    #[arg(long, value_name = "FILES")]
    load_modules: Option<String>,
}

impl Unsupported {
    /// Why the option that was given is refused.
    pub fn refusal(&self) -> Option<String> {
        let files = self.load_modules.as_ref()?;
        Some(format!(
            "--load-modules {files} is not supported: modules are C++ for the insides of BMv2, and \
             programs with externs of their own do not run here"
        ))
    }
}

impl WithoutEffect {
    pub fn notes(&self) -> Vec<String> {
        let given = [
            ("debugger", self.debugger || self.debugger_addr.is_some()),
            ("max-port-count", self.max_port_count.is_some()),
            ("max-mc-groups", self.max_mc_groups.is_some()),
            ("max-l1-entries", self.max_l1_entries.is_some()),
            ("max-l2-entries", self.max_l2_entries.is_some()),
        ];
        let given = given.iter().filter(|(_, given)| *given);
        given
            .map(|(name, _)| format!("--{name} has no effect here"))
            .collect()
    }
}
