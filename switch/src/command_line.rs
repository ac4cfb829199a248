//! The command line: that of BMv2's `simple_switch_grpc`, and more.

pub mod compatibility;
mod logging;
mod settings;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::error::ContextKind;
use clap::{ArgAction, CommandFactory, Parser};
use clap_complete::Shell;

use self::compatibility::{DropIn, Notifications, Personality, Unsupported, WithoutEffect};
use logging::LogArguments;
pub use settings::{LogTo, P4Runtime, Settings, TraceSettings};
use wormcast_switch::lossless_arguments::LosslessArguments;
use wormcast_switch_dataplane::{Attachment, PortSettings, WORKERS_MAX};
use wormcast_switch_flow::whole_number;
use wormcast_switch_flow::{BitRate, Duration};
use wormcast_switch_listen::Address;
use wormcast_switch_listen::socket_file::SocketMode;
use wormcast_switch_p4runtime::{TlsArguments, TranslationArguments};
use wormcast_switch_pipeline::trace::{Filter, Format};
use wormcast_switch_pipeline::{Execution, PortId, limits};
use wormcast_switch_ports::receive::{RING_FRAMES_MAX, RING_FRAMES_MIN};
use wormcast_switch_ports::{ImpairmentTable, ReceiveMode};

/// Highest port number: v1model has nine bits for it.
const PORT_MAX: u16 = 511;

/// Where the P4Runtime server listens by default.
const DEFAULT_ADDRESS: &str = "0.0.0.0:9559";

/// Version of the BMv2 JSON format this reads.
const JSON_VERSION: &str = "2.23";

const AFTER_HELP: &str = "\
Options of simple_switch_grpc that come after `--` there may come before or after it here.

Example:
  wormcast-switch --no-p4 -i 1@s1-eth1 -i 2@s1-eth2 --device-id 1 --log-console \\
      -- --grpc-server-addr 127.0.0.1:9559 --cpu-port 510

SIGUSR1 writes the statistics to the log and to --statistics; SIGTERM and SIGINT end the switch, which then \
writes them to --statistics and a line of sums to the log.";

/// A P4 software switch: runs what p4c compiles for BMv2, controlled over P4Runtime.
#[derive(Debug, Parser)]
#[command(name = "wormcast-switch", version, disable_version_flag = true, after_help = AFTER_HELP)]
struct Arguments {
    /// Program to start with, as p4c-bm2-ss writes it
    #[arg(value_name = "JSON")]
    json: Option<PathBuf>,

    /// Start without a program; a controller sets one
    #[arg(long)]
    no_p4: bool,

    /// Attach an interface to a port; may be repeated
    #[arg(short, long, value_name = "PORT@IFACE", value_parser = parse_interface)]
    interface: Vec<PortSettings>,

    /// Device id that controllers name
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole_number(0..=u64::MAX))]
    device_id: u64,

    /// Run many switches, with links in memory between them: a JSON file (see
    /// docs/fabric.md); controllers tell them apart by device id
    #[arg(long, value_name = "FILE", conflicts_with_all = ["interface", "device_id"])]
    fabric: Option<PathBuf>,

    /// Threads that move frames: the switches of a fabric are spread over them; where there
    /// are more threads than switches, several share a switch
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole_number(1..=WORKERS_MAX as u16))]
    workers: u16,

    /// How long a thread without frames looks for more before it sleeps (like 500us): shorter
    /// latencies at low rates, for a processor that is never idle
    #[arg(long, value_name = "TIME", default_value = "0us")]
    spin: Duration,

    /// How packets are run: `compiled` to machine code or `interpreted`, with the same outcome
    #[arg(long = "engine", value_name = "HOW", default_value_t)]
    execution: Execution,

    /// Where the P4Runtime server listens: ADDRESS:PORT or unix:/path
    /// [default: 0.0.0.0:9559]
    #[arg(long, value_name = "ADDR")]
    grpc_server_addr: Option<Address>,

    /// Mode of the Unix sockets it makes: 0600 the owner, 0660 a group too, 0666 everyone
    /// [default: 0600]
    #[arg(long, value_name = "MODE")]
    socket_mode: Option<SocketMode>,

    /// Port that leads to the controller; without it there are no packet-ins and packet-outs
    #[arg(long, value_name = "N", value_parser = whole_number(1..=PORT_MAX))]
    cpu_port: Option<u16>,

    /// Port that drops
    #[arg(long, value_name = "N", default_value_t = PORT_MAX, value_parser = whole_number(0..=PORT_MAX))]
    drop_port: u16,

    /// Egress queues of a port, served from the highest priority down
    /// [default: 8; called as simple_switch or simple_switch_grpc 1]
    #[arg(long, value_name = "N", value_parser = whole_number(1..=8u8))]
    priority_queues: Option<u8>,

    /// Most packets in one egress queue, with 16 KiB each on average; more are dropped and counted
    /// [default: 1024; called as simple_switch or simple_switch_grpc 64]
    #[arg(long, value_name = "N", value_parser = whole_number(1..=1_000_000u32))]
    queue_frames: Option<u32>,

    /// Times one packet may be recirculated; then it is dropped and counted (pass_limit). 0: for ever, as worms need
    /// it that wait in wormhole mode
    #[arg(long, value_name = "N", default_value_t = limits::RECIRCULATIONS_MAX)]
    recirculations: u32,

    /// Frames that may wait to be received, for each port; fewer where they would take more than 16 MiB
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = whole_number(RING_FRAMES_MIN as u32..=RING_FRAMES_MAX as u32))]
    ring_frames: u32,

    /// How frames are received: v2 (each at once) or v3 (many at once, up to 1 ms late: more
    /// frames a second)
    #[arg(long, value_name = "HOW", default_value_t)]
    receive: ReceiveMode,

    /// Rate of each port, so that packets queue in the switch (like 100mbit)
    #[arg(long, value_name = "RATE")]
    port_rate: Option<BitRate>,

    /// Faults of a port's link: loss, duplicate, corrupt, reorder (0..1 or %), delay, rate;
    /// like `all:loss=0.01,delay=2ms` or `3:corrupt=0.1%`; may be repeated
    #[arg(long, value_name = "PORT:KEY=VALUE,…")]
    impair: Vec<String>,

    /// Seed of impairments and of `random`; the same seed, the same outcome
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole_number(0..=u64::MAX))]
    seed: u64,

    /// Write what each port receives and sends to IFACE_in.pcap and IFACE_out.pcap
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = ".")]
    pcap: Option<PathBuf>,

    /// Write the statistics to this file, as JSON, at the end and at SIGUSR1
    #[arg(long, value_name = "FILE")]
    statistics: Option<PathBuf>,

    /// Answer http://ADDR/metrics (Prometheus) and /healthz there
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_host_port)]
    metrics_addr: Option<String>,

    /// Trace packets: `all`, or conditions like port=1,ethertype=0x0800,match=14:45/f0,every=10,count=5
    #[arg(long, value_name = "FILTER")]
    trace: Option<Filter>,

    /// Where the trace goes; the standard output unless given
    #[arg(long, value_name = "FILE", requires = "trace")]
    trace_file: Option<PathBuf>,

    /// How the trace is written: text or json
    #[arg(
        long,
        value_name = "FORMAT",
        requires = "trace",
        default_value = "text"
    )]
    trace_format: Format,

    #[command(flatten)]
    logging: LogArguments,

    /// Print a completion script and exit
    #[arg(long, value_name = "SHELL")]
    completions: Option<Shell>,

    /// Print the version and exit
    #[arg(short = 'v', long, action = ArgAction::Version)]
    version: Option<bool>,

    /// Print the newest version of the JSON format this reads and exit
    #[arg(long)]
    json_version: bool,

    #[command(flatten, next_help_heading = "TLS")]
    tls: TlsArguments,

    #[command(flatten)]
    translation: TranslationArguments,

    #[command(flatten)]
    lossless: LosslessArguments,

    #[command(flatten)]
    drop_in: DropIn,

    #[command(flatten)]
    without_effect: WithoutEffect,

    #[command(flatten)]
    unsupported: Unsupported,
}

#[derive(Debug)]
pub enum Task {
    Run(Box<Settings>),
    Print(String),
}

/// Reads the command line, the name of the program first. Errors are clap's: they know
/// how to print themselves and which status to exit with.
pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Task, clap::Error> {
    // BMv2 wants the options of its gRPC target behind `--`; here it separates nothing.
    let mut separated = false;
    let arguments = arguments.filter(|argument| {
        let first = argument == "--" && !separated;
        separated |= first;
        !first
    });
    let mut arguments = join_capture_directory(arguments).into_iter().peekable();
    let personality = arguments
        .peek()
        .map_or_else(Personality::default, |program| Personality::of(program));
    let arguments = Arguments::try_parse_from(arguments).map_err(|mut error| {
        // That options may follow `--` as values: here they may not.
        error.remove(ContextKind::Suggested);
        error
    })?;
    if let Some(shell) = arguments.completions {
        let mut script = Vec::new();
        clap_complete::generate(
            shell,
            &mut Arguments::command(),
            "wormcast-switch",
            &mut script,
        );
        return Ok(Task::Print(String::from_utf8_lossy(&script).into_owned()));
    }
    if arguments.json_version {
        return Ok(Task::Print(format!("{JSON_VERSION}\n")));
    }
    arguments
        .check(personality)
        .map(|settings| Task::Run(Box::new(settings)))
}

/// Scripts give `--pcap DIR` as well as `--pcap=DIR`, and `--pcap` before a program. What
/// follows is the directory if it is one.
fn join_capture_directory(arguments: impl Iterator<Item = String>) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    for argument in arguments {
        match joined.last_mut() {
            Some(last) if last == "--pcap" && Path::new(&argument).is_dir() => {
                *last = format!("--pcap={argument}");
            }
            _ => joined.push(argument),
        }
    }
    joined
}

impl Arguments {
    fn check(self, personality: Personality) -> Result<Settings, clap::Error> {
        let fail = |message: String| {
            Err(Self::command().error(clap::error::ErrorKind::ValueValidation, message))
        };
        if let Some(refusal) = self.unsupported.refusal() {
            return fail(refusal);
        }
        if self.json.is_none() && !self.no_p4 && self.fabric.is_none() {
            return fail("no program: give the JSON of one, or --no-p4".to_owned());
        }
        if self.cpu_port == Some(self.drop_port) {
            return fail(format!(
                "--cpu-port and --drop-port are both {}; --drop-port is 511 unless given",
                self.drop_port
            ));
        }
        let mut numbers = BTreeSet::new();
        let mut names = BTreeSet::new();
        for port in &self.interface {
            let number = port.number.0;
            if !numbers.insert(number) {
                return fail(format!("port {number} has two interfaces"));
            }
            let interface = port.attachment.name();
            if !names.insert(interface) {
                return fail(format!("interface {interface} is attached to two ports"));
            }
            if Some(number) == self.cpu_port {
                return fail(format!(
                    "port {number} is the CPU port; it takes no interface"
                ));
            }
            if number == self.drop_port {
                return fail(format!(
                    "port {number} is the drop port; it takes no interface"
                ));
            }
        }
        let messages = self.drop_in.message_option();
        let mut impairments = ImpairmentTable::default();
        for argument in &self.impair {
            if let Err(error) = impairments.add(argument) {
                return fail(format!("--impair {argument}: {error}"));
            }
        }
        if let Some(number) = impairments
            .named_ports()
            .find(|number| messages.is_none() && !numbers.contains(number))
        {
            return fail(match self.fabric {
                None => format!("--impair names port {number}, which has no interface"),
                Some(_) => format!(
                    "--impair names port {number}: with --fabric, the file has the faults of \
                     single ports, and --impair those of all"
                ),
            });
        }
        if let Some(directory) = &self.pcap
            && !directory.is_dir()
        {
            return fail(format!(
                "--pcap: there is no directory {}",
                directory.display()
            ));
        }
        let queueing = match self.lossless.settings() {
            Ok(queueing) => queueing,
            Err(error) => return fail(error.to_string()),
        };
        let named_freely = self.fabric.is_some() || messages.is_some();
        let names_other = |number: &u16| !named_freely && !numbers.contains(number);
        if let Some(number) = queueing.named_ports().find(names_other) {
            return fail(format!(
                "--link-rate or --link-delay names port {number}, which has no interface"
            ));
        }
        let mut notes = self.without_effect.notes();
        notes.extend(self.logging.notes());
        let mut ports = self.interface;
        if let Some(option) = messages {
            if queueing.lossless.is_some() {
                return fail(format!(
                    "--lossless needs interfaces, whose ports are there from the start; with \
                     {option} they come one by one"
                ));
            }
            if !ports.is_empty() {
                notes.push(format!("the interfaces are ignored because of {option}"));
                ports.clear();
            }
        }
        if self.drop_in.use_files.is_some() {
            if self.pcap.is_some() {
                return fail(
                    "--pcap has no use with --use-files, which writes captures".to_owned(),
                );
            }
            // BMv2 opens them in this order, which matters where they are named pipes.
            ports.sort_by_key(|port| port.number);
            for port in &mut ports {
                port.attachment = Attachment::Files(port.attachment.name().to_owned());
            }
        }
        if self.workers > 1 && self.fabric.is_none() && queueing.lossless.is_some() {
            notes.push(
                "--workers has no effect on a single lossless switch, which has one thread"
                    .to_owned(),
            );
        }
        if self.no_p4 && self.json.is_some() {
            notes.push("the program is ignored because of --no-p4".to_owned());
        }
        let device_id = self.fabric.is_none().then_some(self.device_id);
        Ok(Settings {
            json: self.json.filter(|_| !self.no_p4),
            ports,
            device_id: self.device_id,
            fabric: self.fabric,
            workers: usize::from(self.workers),
            spin_us: self.spin.as_us(),
            execution: self.execution,
            p4runtime: match (&self.grpc_server_addr, personality) {
                (Some(_), _) => P4Runtime::Needed,
                (None, Personality::SimpleSwitch) => P4Runtime::None,
                // Whoever names a Thrift port can do without P4Runtime, as several
                // simple_switch of one machine can.
                (None, _) if self.drop_in.thrift_port.is_some() => P4Runtime::IfFree,
                (None, _) => P4Runtime::Needed,
            },
            address: self
                .grpc_server_addr
                .unwrap_or_else(|| Address::Tcp(DEFAULT_ADDRESS.to_owned())),
            socket_mode: self.socket_mode,
            tls: self.tls,
            translation: self.translation,
            cpu_port: self.cpu_port.map(PortId),
            drop_port: PortId(self.drop_port),
            priority_queues: self
                .priority_queues
                .unwrap_or(personality.priority_queues()),
            recirculations: (self.recirculations > 0).then_some(self.recirculations),
            queue_frames: self.queue_frames.unwrap_or(personality.queue_frames()) as usize,
            queueing,
            ring_frames: self.ring_frames as usize,
            receive: self.receive,
            port_rate: self.port_rate,
            impairments,
            seed: self.seed,
            capture_directory: self.pcap,
            statistics: self.statistics,
            metrics_address: self.metrics_addr,
            trace: self.trace.map(|filter| TraceSettings {
                filter,
                file: self.trace_file,
                format: self.trace_format,
            }),
            log_level: self.logging.log_level,
            packet_data_bytes: self.logging.dump_packet_data,
            log: self.logging.output(personality.log_suffix()),
            opens_thrift: personality.opens_thrift(),
            swap: !self.drop_in.disable_swap && (self.drop_in.enable_swap || personality.swap()),
            needs_config: personality.needs_config(),
            notifications: Notifications::of(&self.drop_in, personality, device_id),
            drop_in: self.drop_in,
            notes,
        })
    }
}

fn parse_host_port(text: &str) -> Result<String, String> {
    match text.parse() {
        Ok(Address::Tcp(address)) => Ok(address),
        _ => Err("it must be HOST:PORT (like 127.0.0.1:9100 or [::1]:9100)".to_owned()),
    }
}

fn parse_interface(text: &str) -> Result<PortSettings, String> {
    let error = || format!("it must be PORT@IFACE with a port from 0 to {PORT_MAX} (like 1@eth1)");
    let (number, interface) = text.split_once('@').ok_or_else(error)?;
    let number = number
        .parse()
        .ok()
        .filter(|number| *number <= PORT_MAX)
        .ok_or_else(error)?;
    if interface.is_empty() {
        return Err(error());
    }
    Ok(PortSettings::interface(number, interface))
}

#[cfg(test)]
mod tests;
