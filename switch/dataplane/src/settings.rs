//! Settings of the data plane.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::messages::MessagePorts;
use wormcast_switch_flow::BitRate;
use wormcast_switch_flow::QueueSettings;
use wormcast_switch_pipeline::PortId;
use wormcast_switch_ports::receive::RING_BYTES_MAX_LOSSLESS;
use wormcast_switch_ports::{ImpairmentTable, Interface, InterfaceError, ReceiveMode, ReceiveRing};

/// Most switches of one process.
pub const SWITCHES_MAX: usize = 4_096;

/// Most threads that move frames.
pub const WORKERS_MAX: usize = 64;

/// All switches of the process, and the links between them.
#[derive(Clone, Debug)]
pub struct DataplaneSettings {
    /// Switches; no device id twice, at most [`SWITCHES_MAX`].
    pub switches: Vec<SwitchSettings>,
    /// Links in memory between ports of these switches.
    pub links: Vec<LinkSettings>,
    /// Threads that move frames, 1 to [`WORKERS_MAX`]. Each switch is on one of them; where
    /// there are more threads than switches, several share a switch.
    pub workers: usize,
    /// How long a thread that has no more frames looks for others before it sleeps,
    /// microseconds; at high rates it does so for a little in any case.
    pub spin_us: u64,
    /// Seed of all impairments.
    pub seed: u64,
}

impl DataplaneSettings {
    pub fn single(switch: SwitchSettings, seed: u64) -> Self {
        Self {
            switches: vec![switch],
            links: Vec::new(),
            workers: 1,
            spin_us: 0,
            seed,
        }
    }

    /// How many threads share what: a number for each group of switches. Lossless switches
    /// have one thread, since a pause frame must overtake what their ports are about to
    /// send.
    pub fn threads(&self) -> Vec<usize> {
        let groups = self.workers.min(self.switches.len()).max(1);
        let lossless = |switch: &SwitchSettings| switch.queueing.lossless.is_some();
        if self.switches.iter().any(lossless) {
            return vec![1; groups];
        }
        let share = |group: usize| (self.workers - group).div_ceil(groups).max(1);
        (0..groups).map(share).collect()
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let count = self.switches.len();
        if !(1..=SWITCHES_MAX).contains(&count) {
            return Err(format!(
                "{count} switches: a process runs 1 to {SWITCHES_MAX}"
            ));
        }
        if !(1..=WORKERS_MAX).contains(&self.workers) {
            return Err(format!("{} workers: 1 to {WORKERS_MAX}", self.workers));
        }
        let mut device_ids = BTreeSet::new();
        let mut used = BTreeSet::new();
        for (number, switch) in self.switches.iter().enumerate() {
            if !device_ids.insert(switch.device_id) {
                return Err(format!("device id {} is given twice", switch.device_id));
            }
            let attached = switch.ports.iter().map(|port| port.number);
            for port in attached.chain(switch.cpu_port) {
                let end = LinkEnd {
                    switch: number,
                    port,
                };
                if !used.insert(end) {
                    return Err(format!("port {} is given twice", switch.port_name(port)));
                }
            }
        }
        for end in self.links.iter().flat_map(|link| link.ends) {
            let Some(switch) = self.switches.get(end.switch) else {
                return Err(format!(
                    "a link leads to switch {}: there are 0 to {}",
                    end.switch,
                    count - 1
                ));
            };
            if !used.insert(end) {
                let name = switch.port_name(end.port);
                return Err(format!("port {name} is given twice"));
            }
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
pub struct SwitchSettings {
    /// Device id, as controllers name it.
    pub device_id: u64,
    /// Name for logs; empty if it has none.
    pub name: String,
    /// Ports that lead out of the process, no number twice.
    pub ports: Vec<PortSettings>,
    /// Port that leads to the controller.
    pub cpu_port: Option<PortId>,
    /// Egress queues of a port, 1–8.
    pub priorities: u8,
    /// Most packets in one egress queue.
    pub queue_frames: usize,
    /// How egress queues behave, and whether frames are lost at all.
    pub queueing: QueueSettings,
    /// Frames that may wait to be received, for each port.
    pub ring_frames: usize,
    /// How the kernel hands them over.
    pub receive: ReceiveMode,
    /// Rate of every port without one of its own among the impairments.
    pub port_rate: Option<BitRate>,
    pub impairments: ImpairmentTable,
    /// Directory for captures, if they are wanted.
    pub capture_directory: Option<PathBuf>,
    /// Where frames go that leave by ports which were not given; nowhere without.
    pub message_ports: Option<MessagePorts>,
}

impl SwitchSettings {
    /// A switch without ports, whose egress queues hold `queue_frames` packets each.
    pub fn without_ports(device_id: u64, queue_frames: usize) -> Self {
        Self {
            device_id,
            name: String::new(),
            ports: Vec::new(),
            cpu_port: None,
            priorities: 8,
            queue_frames,
            queueing: QueueSettings::default(),
            ring_frames: 64,
            receive: ReceiveMode::default(),
            port_rate: None,
            impairments: ImpairmentTable::default(),
            capture_directory: None,
            message_ports: None,
        }
    }

    /// Opens the ring of a port. It has room for more than `ring_frames` where a lossless link may
    /// bring more before the switch looks.
    pub(super) fn open_ring(
        &self,
        interface: &Interface,
        port: PortId,
    ) -> Result<ReceiveRing, InterfaceError> {
        let Some(lossless) = &self.queueing.lossless else {
            return ReceiveRing::open_as(interface, self.ring_frames, self.receive);
        };
        let needed = lossless
            .plan_port(port.0)
            .map_or(0, |plan| plan.ring_frames);
        let frames = usize::try_from(needed).unwrap_or(usize::MAX);
        let room = (frames.max(self.ring_frames), RING_BYTES_MAX_LOSSLESS);
        ReceiveRing::open_with(interface, room, self.receive)
    }

    /// Name of one of its ports: `SWITCH-ethPORT`, as networks of virtual interfaces have
    /// them. A switch without a name is called by its device id.
    pub fn port_name(&self, port: PortId) -> String {
        if self.name.is_empty() {
            format!("s{}-eth{}", self.device_id, port.0)
        } else {
            format!("{}-eth{}", self.name, port.0)
        }
    }
}

/// A port that leads out of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSettings {
    /// Number in the P4 program.
    pub number: PortId,
    pub attachment: Attachment,
}

/// What is attached to a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// A network interface: its name.
    Interface(String),
    /// Captures: frames come from `NAME_in.pcap` and go to `NAME_out.pcap`.
    Files(String),
}

impl Attachment {
    /// Whether it is a network interface.
    pub fn is_interface(&self) -> bool {
        matches!(self, Self::Interface(_))
    }

    /// Name of the interface, or the one that names the captures.
    pub fn name(&self) -> &str {
        match self {
            Attachment::Interface(name) | Attachment::Files(name) => name,
        }
    }
}

impl PortSettings {
    /// One `-i PORT@INTERFACE`.
    pub fn interface(number: u16, interface: impl Into<String>) -> Self {
        Self {
            number: PortId(number),
            attachment: Attachment::Interface(interface.into()),
        }
    }
}

/// A link in memory, which carries frames in both directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkSettings {
    /// Its two ends; not twice the same.
    pub ends: [LinkEnd; 2],
}

/// A port at the end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkEnd {
    /// Position of the switch in [`DataplaneSettings::switches`].
    pub switch: usize,
    pub port: PortId,
}

#[cfg(test)]
mod tests {
    use super::*;
    use wormcast_switch_flow::headroom::LosslessSettings;

    fn threads(workers: usize, switches: u64) -> Vec<usize> {
        let switch = |id| SwitchSettings::without_ports(id, 16);
        let mut settings = DataplaneSettings::single(switch(0), 1);
        settings.switches = (0..switches).map(switch).collect();
        settings.workers = workers;
        settings.threads()
    }

    #[test]
    fn threads_are_given_to_switches_in_turn() {
        assert_eq!(threads(1, 5), [1]);
        assert_eq!(threads(3, 5), [1, 1, 1]);
        assert_eq!(threads(4, 1), [4]);
        assert_eq!(threads(8, 3), [3, 3, 2]);
        assert_eq!(threads(2, 2), [1, 1]);
    }

    #[test]
    fn a_lossless_switch_has_one_thread() {
        let mut switch = SwitchSettings::without_ports(0, 16);
        switch.queueing.lossless = Some(LosslessSettings::default());
        let mut settings = DataplaneSettings::single(switch, 1);
        settings.workers = 4;
        assert_eq!(settings.threads(), [1]);
    }
}
