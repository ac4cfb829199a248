//! The traffic manager: egress queues of all ports, and the way out of the switch.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::clock::Clock;
use super::flow_control::Lossless;
use super::port::{HeldPacket, Link, Port};
use super::port_set::PortSet;
use wormcast_switch_flow::ecn;
use wormcast_switch_pipeline::LoadedProgram;
use wormcast_switch_pipeline::{EmitSink, PortId, Queued, TrafficSink};
use wormcast_switch_program::Bits;
use wormcast_switch_program::DigestId;

/// Packet-ins and digests that may wait for the controller; more are dropped and counted.
pub const TO_CONTROLLER_MAX: usize = 4_096;

/// What the data plane has for the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToController {
    /// A frame that left by the CPU port, its `packet_in` header in front.
    PacketIn(Vec<u8>),
    Digest(DigestMessage),
}

/// A program that was put in the place of the one before.
#[derive(Clone, Debug)]
pub struct Installed {
    pub program: Arc<LoadedProgram>,
    /// How many were installed before it, whether it was among them or not.
    pub number: u64,
}

impl PartialEq for Installed {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number && Arc::ptr_eq(&self.program, &other.program)
    }
}

impl Eq for Installed {}

/// A digest: one message of a P4 `digest`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestMessage {
    /// The program that sent it.
    pub installed: Installed,
    pub digest: DigestId,
    /// Its fields, in order.
    pub fields: Vec<Bits>,
    /// When it was sent, microseconds since the start of 1970.
    pub unix_us: u64,
}

/// Queues and ways out of all ports.
pub(super) struct TrafficManager {
    clock: Clock,
    pub(super) now_us: u64,
    /// The last one stands for all ports that were not given.
    pub(super) ports: Vec<Port>,
    /// Positions of ports that have, or may have, something to send.
    pub(super) active: PortSet,
    /// Position in `ports` for each port number.
    positions: Vec<u16>,
    to_controller: mpsc::Sender<ToController>,
    /// The program whose digests come.
    pub(super) installed: Option<Installed>,
    pub(super) packet_ins: u64,
    pub(super) to_controller_full: u64,
    /// Flow control, if some priorities are lossless.
    pub(super) lossless: Option<Box<Lossless>>,
    /// Packets left behind from which on frames are marked; `u32::MAX`: never.
    pub(super) ecn_threshold: u32,
    /// Packets the one in egress has left behind in its queue.
    pub(super) left_behind: u32,
    marked: Vec<u8>,
}

impl TrafficManager {
    /// `ports` ends with the one that stands for all others.
    pub(super) fn new(
        clock: Clock,
        ports: Vec<Port>,
        to_controller: mpsc::Sender<ToController>,
    ) -> Self {
        Self {
            positions: positions(&ports),
            clock,
            now_us: 0,
            active: PortSet::new(ports.len()),
            ports,
            to_controller,
            installed: None,
            packet_ins: 0,
            to_controller_full: 0,
            lossless: None,
            ecn_threshold: u32::MAX,
            left_behind: 0,
            marked: Vec::new(),
        }
    }

    /// The ports are others than before, or lead elsewhere. All of them are looked at once.
    pub(super) fn ports_changed(&mut self) {
        self.positions = positions(&self.ports);
        self.active = PortSet::new(self.ports.len());
        (0..self.ports.len()).for_each(|position| self.active.insert(position));
    }

    /// Time begins anew, for the ports' rates too.
    pub(super) fn start_buckets_at(&mut self, now_us: u64) {
        for bucket in self
            .ports
            .iter_mut()
            .filter_map(|port| port.bucket.as_mut())
        {
            bucket.restart(now_us);
        }
    }

    #[inline]
    pub(super) fn position(&self, number: PortId) -> usize {
        match self.positions.get(usize::from(number.0)) {
            Some(position) => usize::from(*position),
            None => self.ports.len() - 1,
        }
    }

    /// The port of a number, which has something to do from now on.
    #[inline]
    fn port_mut(&mut self, number: PortId) -> &mut Port {
        let position = self.position(number);
        self.active.insert(position);
        &mut self.ports[position]
    }

    pub(super) fn clock(&self) -> Clock {
        self.clock
    }

    pub(super) fn unix_us(&self) -> u64 {
        self.clock.unix_us(self.now_us)
    }

    /// Packet-ins and digests that the server has not taken yet.
    pub(super) fn to_controller_waiting(&self) -> usize {
        self.to_controller.max_capacity() - self.to_controller.capacity()
    }

    fn send_to_controller(&mut self, message: ToController) {
        match self.to_controller.try_send(message) {
            Ok(()) => self.packet_ins += 1,
            Err(_) => self.to_controller_full += 1,
        }
    }
}

/// The position of each port number that leads somewhere; the last port is that of all
/// others.
fn positions(ports: &[Port]) -> Vec<u16> {
    let unattached = ports.len() - 1;
    let highest = ports.iter().map(|port| port.number.0).max().unwrap_or(0);
    let mut positions = vec![unattached as u16; usize::from(highest) + 1];
    for (position, port) in ports[..unattached].iter().enumerate() {
        if !matches!(port.link, Link::Unattached) {
            positions[usize::from(port.number.0)] = position as u16;
        }
    }
    positions
}

impl TrafficManager {
    /// Sends a frame with a mark of congestion, if it can carry one.
    #[cold]
    fn transmit_marked(&mut self, number: PortId, frame: &[u8]) {
        let mut marked = std::mem::take(&mut self.marked);
        marked.clear();
        marked.extend_from_slice(frame);
        let has_mark = ecn::mark(&mut marked);
        self.port_mut(number).ecn_marked += u64::from(has_mark);
        let left_behind = std::mem::take(&mut self.left_behind);
        self.transmit(number, &marked);
        self.left_behind = left_behind;
        self.marked = marked;
    }
}

impl TrafficSink for TrafficManager {
    #[inline]
    fn enqueue(&mut self, packet: Queued) -> Result<(), Queued> {
        if self.lossless.is_some() {
            return self.enqueue_held(packet);
        }
        let now_us = self.now_us;
        let (priority, bytes) = (packet.priority(), packet.length_bytes());
        let port = self.port_mut(packet.port());
        let held = HeldPacket { packet, hold: None };
        let pushed = port.queue.push(priority, held, bytes, now_us);
        pushed.map_err(|held| held.packet)
    }

    #[inline]
    fn passes(&mut self, port: PortId, priority: u8, length_bytes: u32) -> bool {
        if self.lossless.is_some() {
            // Its class, which may be paused, is chosen where it is queued.
            return false;
        }
        let now_us = self.now_us;
        let port = self.port_mut(port);
        let passes = port.passes(now_us);
        if passes {
            port.queue.count_passed(priority, length_bytes);
            self.left_behind = 0;
        }
        passes
    }

    fn digest(&mut self, digest: DigestId, fields: &[Bits]) {
        let unix_us = self.unix_us();
        // Whatever sends digests was installed.
        let Some(installed) = self.installed.clone() else {
            return;
        };
        self.send_to_controller(ToController::Digest(DigestMessage {
            installed,
            digest,
            fields: fields.to_vec(),
            unix_us,
        }));
    }
}

impl EmitSink for TrafficManager {
    #[inline]
    fn transmit(&mut self, number: PortId, frame: &[u8]) {
        let (now_us, unix_us) = (self.now_us, self.unix_us());
        if self.left_behind >= self.ecn_threshold {
            return self.transmit_marked(number, frame);
        }
        let port = self.port_mut(number);
        if matches!(port.link, Link::Cpu) {
            self.send_to_controller(ToController::PacketIn(frame.to_vec()));
        } else {
            port.send(number, frame, now_us, unix_us);
        }
    }
}
