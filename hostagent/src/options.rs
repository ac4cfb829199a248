//! The command line.

use crate::agent::{AgentError, AgentSettings};
use crate::dataplane::DataPlaneSettings;
use crate::directory::{ControllerAddress, STATE_DIRECTORY_DEFAULT};
use crate::fabric_file::{self, Place};
use crate::link::{Interface, InterfaceError, Namespace, WORM_MTU_BYTES_MAX, WORM_MTU_BYTES_MIN};
use crate::local::SocketMode;
use crate::log::Level;
use clap::{CommandFactory, FromArgMatches, Parser};
use clap_complete::Shell;
use std::path::PathBuf;
use wormcast_agent_core::agent::Settings;
use wormcast_agent_core::clients::Patience;
use wormcast_wire::HostId;

/// Where the local API is by default.
pub const SOCKET_DEFAULT: &str = "/run/wormcast/agent.sock";
/// Where a controller on the same machine takes agents by default.
pub const CONTROLLER_DEFAULT: &str = "unix:/run/wormcast/agents.sock";
/// Environment variable that says otherwise, for agents and clients.
pub const SOCKET_VARIABLE: &str = "WORMCAST_SOCKET";
/// Most threads that move frames by default.
const WORKERS_DEFAULT_MAX: usize = 8;
/// Bytes of an agent's name at most.
const NAME_BYTES_MAX: usize = 200;

/// The Wormcast host agent: does for this host what a programmable network adapter would.
#[derive(Parser, Debug)]
#[command(name = "wormcast-agent", version)]
pub struct Options {
    /// Network interface that leads to the fabric
    #[arg(long, value_name = "IF", required_unless_present = "fabric")]
    pub interface: Option<String>,

    /// Many agents in this process, those of a file: {"agents": [{"name", "interface",
    /// "namespace", "socket", "host_id", "no_transit"}, …]}; the last ones but "socket" may be
    /// left out. All other options hold for each of them
    #[arg(long, value_name = "FILE", conflicts_with_all = ["interface", "socket", "name", "host_id", "no_transit"])]
    pub fabric: Option<PathBuf>,

    /// Threads that move frames: the agents of a file are spread over them [default: the
    /// number of processors, at most 8]
    #[arg(long, value_name = "N", requires = "fabric", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub workers: Option<u8>,

    /// Controller: host:port or unix:/path
    #[arg(long, value_name = "ADDR", default_value = CONTROLLER_DEFAULT)]
    pub controller: ControllerAddress,

    /// Unix socket of the local API [default: $WORMCAST_SOCKET, or /run/wormcast/agent.sock]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,

    /// Mode of that socket: 0600 the user of the agent, 0660 a group too, 0666 everyone
    /// [default: 0600]
    #[arg(long, value_name = "MODE")]
    pub socket_mode: Option<SocketMode>,

    /// Directory of the secret by which the controller knows this agent again after a restart
    #[arg(long, value_name = "DIR", default_value = STATE_DIRECTORY_DEFAULT)]
    pub state_dir: PathBuf,

    /// Unique name of this agent [default: the host's name]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Host ID to ask the controller for [default: the controller chooses]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=65_534))]
    pub host_id: Option<u16>,

    /// Have no worms of others routed through this host: it re-injects none
    #[arg(long)]
    pub no_transit: bool,

    /// Largest frame, bytes after the Ethernet header [default: the interface's MTU]
    #[arg(long, value_name = "BYTES")]
    pub mtu: Option<u32>,

    /// Memory for received packets, MiB
    #[arg(long, value_name = "MIB", default_value_t = 48, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub buffer_mib: u32,

    /// For experiments: KiB of that memory, instead
    #[arg(long, value_name = "KIB", hide = true, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub experiment_buffer_kib: Option<u32>,

    /// For experiments: no buffer classes. What a packet carries that finds no memory is lost for good
    /// (counter drops.overflow): messages come with bytes missing
    #[arg(long, hide = true)]
    pub experiment_unclassed: bool,

    /// Seconds a message waits for a local receiver before this member gives it up
    #[arg(long, value_name = "S", default_value_t = 10.0, allow_negative_numbers = true, value_parser = parse_seconds)]
    pub receiver_wait: f64,

    /// Seconds a local receiver may take nothing before this member gives the message up
    #[arg(long, value_name = "S", default_value_t = 60.0, allow_negative_numbers = true, value_parser = parse_seconds)]
    pub receiver_stall: f64,

    /// Microseconds for which frames are gathered under load; more saves CPU and adds latency
    #[arg(long, value_name = "US", default_value_t = 500, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub coalesce_us: u32,

    /// Print completions for a shell and end
    #[arg(long, value_name = "SHELL", exclusive = true)]
    pub completions: Option<Shell>,

    /// How much to say on standard error
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = Level::Info)]
    pub log_level: Level,
}

/// Options that cannot be satisfied on this machine.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    #[error("{0}")]
    Agent(AgentError),
    /// The file of many agents.
    #[error("--fabric {}: {reason}", path.display())]
    Fabric {
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// An MTU out of bounds.
    #[error(
        "an MTU of {value} bytes on {interface}; it must be {WORM_MTU_BYTES_MIN} to {most} \
         (`ip link set {interface} mtu N` changes the interface's)"
    )]
    Mtu {
        /// As asked, or as the interface has it.
        value: u32,
        most: u32,
        interface: String,
    },
    /// A name that is empty, too long or has control characters.
    #[error("name {name:?}; it must have 1 to {NAME_BYTES_MAX} bytes and no control characters")]
    Name { name: String },
}

impl Options {
    /// Takes the command line apart; `None` if all it asked for was completions, which
    /// have been printed. Ends the process if it is wrong, or asks for help.
    pub fn read() -> Option<Self> {
        let mut command = Self::command();
        let matches = command.clone().get_matches();
        if let Some(&shell) = matches.get_one::<Shell>("completions") {
            let name = command.get_name().to_owned();
            clap_complete::generate(shell, &mut command, name, &mut std::io::stdout());
            return None;
        }
        let options = Self::from_arg_matches(&matches);
        Some(options.unwrap_or_else(|error| error.format(&mut command).exit()))
    }

    /// Threads that move frames.
    pub fn workers(&self) -> usize {
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        self.workers
            .map_or_else(|| processors().min(WORKERS_DEFAULT_MAX), usize::from)
    }

    /// Checks the options against this machine; returns the agents that there are to be.
    ///
    /// # Errors
    /// [`OptionsError`].
    pub fn settle(mut self) -> Result<Vec<AgentSettings>, OptionsError> {
        let Some(path) = self.fabric.take() else {
            let place = Place {
                name: self.name.take().unwrap_or_else(host_name),
                interface: self.interface.take().unwrap_or_default(),
                namespace: None,
                socket: self.socket.take().unwrap_or_else(socket_path),
                host_id: self.host_id,
                no_transit: self.no_transit,
            };
            return Ok(vec![self.settle_one(place)?]);
        };
        let wrong = |reason: String| OptionsError::Fabric {
            path: path.clone(),
            reason,
        };
        let text = std::fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
        let places = fabric_file::parse(&text).map_err(wrong)?;
        let settle = |place: Place| {
            let name = place.name.clone();
            let settled = self.settle_one(place);
            settled.map_err(|error| wrong(format!("agent \"{name}\": {error}")))
        };
        places.into_iter().map(settle).collect()
    }

    fn settle_one(&self, place: Place) -> Result<AgentSettings, OptionsError> {
        let unusable = |error| OptionsError::Agent(AgentError::Interface(error));
        let namespace = place.namespace.as_deref().map(Namespace::open).transpose();
        let namespace = namespace.map_err(|source| {
            unusable(InterfaceError::Query {
                name: place.interface.clone(),
                source,
            })
        })?;
        let interface =
            Interface::find_in(namespace.as_ref(), &place.interface).map_err(unusable)?;
        let most = interface.mtu_bytes.min(WORM_MTU_BYTES_MAX);
        let mtu_bytes = self.mtu.unwrap_or(most);
        if !(WORM_MTU_BYTES_MIN..=most).contains(&mtu_bytes) {
            return Err(OptionsError::Mtu {
                value: mtu_bytes,
                most,
                interface: interface.name,
            });
        }
        let name = place.name;
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
            return Err(OptionsError::Name { name });
        }
        Ok(AgentSettings {
            dataplane: DataPlaneSettings {
                interface,
                name,
                agent: Settings {
                    mtu_bytes,
                    buffer_bytes: match self.experiment_buffer_kib {
                        Some(kib) => (kib as usize) << 10,
                        None => (self.buffer_mib as usize) << 20,
                    },
                    unclassed: self.experiment_unclassed,
                    patience: Patience {
                        receiver_wait_us: (self.receiver_wait * 1e6) as u64,
                        receiver_stall_us: (self.receiver_stall * 1e6) as u64,
                    },
                },
                coalesce_us: self.coalesce_us.into(),
                host: place.host_id.map(HostId),
            },
            controller: self.controller.clone(),
            no_transit: place.no_transit,
            socket: place.socket,
            socket_mode: self.socket_mode.unwrap_or(SocketMode::OWNER_ALONE),
            state_directory: self.state_dir.clone(),
        })
    }
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("it must be a number of 0 to 86400".to_owned()),
    }
}

/// Where an agent of this environment offers its local API.
pub fn socket_path() -> PathBuf {
    std::env::var_os(SOCKET_VARIABLE)
        .filter(|path| !path.is_empty())
        .map_or_else(|| SOCKET_DEFAULT.into(), PathBuf::from)
}

fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map(|name| name.trim().to_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(extra: &[&str]) -> Options {
        let required = [
            "wormcast-agent",
            "--interface",
            "lo",
            "--controller",
            "unix:/x",
            "--name",
            "n",
        ];
        Options::try_parse_from(required.iter().chain(extra)).unwrap()
    }

    #[test]
    fn defaults_fit_the_interface() {
        let settings = &options(&[]).settle().unwrap()[0];
        assert!(settings.dataplane.agent.mtu_bytes <= WORM_MTU_BYTES_MAX);
        assert_eq!(
            settings.dataplane.agent.patience.receiver_wait_us,
            10_000_000
        );
        assert_eq!(settings.dataplane.host, None);
    }

    #[test]
    fn the_controller_of_this_machine_is_the_default() {
        let options = Options::try_parse_from(["wormcast-agent", "--interface", "lo"]).unwrap();
        let known: ControllerAddress = CONTROLLER_DEFAULT.parse().unwrap();
        assert_eq!(format!("{:?}", options.controller), format!("{known:?}"));
    }

    #[test]
    fn wrong_values_name_their_bounds() {
        for mtu in ["0", "65536", "4000000000"] {
            let error = options(&["--mtu", mtu]).settle().unwrap_err().to_string();
            assert!(
                error.contains(mtu)
                    && error.contains(&format!("it must be {WORM_MTU_BYTES_MIN} to ")),
                "{error}"
            );
        }
        let mut nameless = options(&[]);
        nameless.name = Some(String::new());
        let error = nameless.settle().unwrap_err().to_string();
        assert!(error.contains("1 to 200 bytes"), "{error}");
        let mut unknown = options(&[]);
        unknown.interface = Some("nosuch9".to_owned());
        let error = unknown.settle().unwrap_err().to_string();
        assert!(error.contains("nosuch9") && error.contains("lo"), "{error}");
        for wrong in [
            ["--host-id", "65535"],
            ["--controller", "x"],
            ["--receiver-wait", "-1"],
        ] {
            let required = [
                "wormcast-agent",
                "--interface",
                "lo",
                "--controller",
                "unix:/x",
            ];
            let error = Options::try_parse_from(required.iter().chain(&wrong))
                .unwrap_err()
                .to_string();
            assert!(error.contains(wrong[0]), "{error}");
        }
    }
}
