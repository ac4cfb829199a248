//! The traffic manager: egress queues of all ports, and the way out of the switch.

use tokio::sync::mpsc;

use super::clock::Clock;
use super::port::{Link, Port};
use crate::pipeline::{Bits, EmitSink, PortId, Queued, TrafficSink};
use crate::program::DigestId;

/// Packet-ins and digests that may wait for the controller; more are dropped and counted.
pub const TO_CONTROLLER_MAX: usize = 4_096;

/// What the data plane has for the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToController {
    /// A frame that left by the CPU port, its `packet_in` header in front.
    PacketIn(Vec<u8>),
    /// A digest.
    Digest(DigestMessage),
}

/// A digest: one message of a P4 `digest`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestMessage {
    /// Which digest.
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
    /// Position in `ports` for each port number.
    positions: Vec<u16>,
    to_controller: mpsc::Sender<ToController>,
    pub(super) packet_ins: u64,
    pub(super) to_controller_full: u64,
}

impl TrafficManager {
    /// `ports` ends with the one that stands for all others.
    pub(super) fn new(
        clock: Clock,
        ports: Vec<Port>,
        to_controller: mpsc::Sender<ToController>,
    ) -> Self {
        let unattached = ports.len() - 1;
        let highest = ports.iter().map(|port| port.number.0).max().unwrap_or(0);
        let mut positions = vec![unattached as u16; usize::from(highest) + 1];
        for (position, port) in ports[..unattached].iter().enumerate() {
            positions[usize::from(port.number.0)] = position as u16;
        }
        Self {
            clock,
            now_us: 0,
            ports,
            positions,
            to_controller,
            packet_ins: 0,
            to_controller_full: 0,
        }
    }

    #[inline]
    fn port_mut(&mut self, number: PortId) -> &mut Port {
        let position = match self.positions.get(usize::from(number.0)) {
            Some(position) => usize::from(*position),
            None => self.ports.len() - 1,
        };
        &mut self.ports[position]
    }

    pub(super) fn unix_us(&self) -> u64 {
        self.clock.unix_us(self.now_us)
    }

    /// Packet-ins and digests that the server has not taken yet.
    pub(super) fn to_controller_waiting(&self) -> usize {
        self.to_controller.max_capacity() - self.to_controller.capacity()
    }

    fn tell_controller(&mut self, message: ToController) {
        match self.to_controller.try_send(message) {
            Ok(()) => self.packet_ins += 1,
            Err(_) => self.to_controller_full += 1,
        }
    }
}

impl TrafficSink for TrafficManager {
    #[inline]
    fn enqueue(&mut self, packet: Queued) -> Result<(), Queued> {
        let now_us = self.now_us;
        let priority = packet.priority();
        self.port_mut(packet.port())
            .queue
            .push(priority, packet, now_us)
    }

    fn digest(&mut self, digest: DigestId, fields: &[Bits]) {
        let unix_us = self.unix_us();
        self.tell_controller(ToController::Digest(DigestMessage {
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
        let port = self.port_mut(number);
        if matches!(port.link, Link::Cpu) {
            self.tell_controller(ToController::PacketIn(frame.to_vec()));
        } else {
            port.send(frame, now_us, unix_us);
        }
    }
}
