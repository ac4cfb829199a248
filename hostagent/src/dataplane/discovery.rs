//! When to send the discovery frame.

use crate::link::{LLDP_TTL_S, MacAddress, PacketSocket, Prover, build_lldp_frame};
use wormcast_protocol::Instant;

/// First interval, µs; it grows by half each time until the controller has a plan for this
/// host. Hundreds of agents that start together must not keep the controller from that plan.
const SEARCHING_US: u64 = 300_000;
/// Interval afterwards, µs.
const LOCATED_US: u64 = 1_000_000;

/// The discovery frame and its timer.
pub(super) struct Discovery {
    name: String,
    mac: MacAddress,
    /// Absent: this agent keeps no secret, or no controller has asked for proofs yet.
    prover: Option<Prover>,
    /// Until the next frame but one.
    interval_us: u64,
    due: Instant,
    pub(super) sent: u64,
}

impl Discovery {
    pub(super) fn new(name: &str, mac: MacAddress) -> Self {
        Self {
            name: name.to_owned(),
            mac,
            prover: None,
            interval_us: SEARCHING_US,
            due: Instant::ZERO,
            sent: 0,
        }
    }

    /// The host may hang elsewhere now.
    pub(super) fn restart(&mut self, mac: MacAddress, now: Instant) {
        self.mac = mac;
        self.interval_us = SEARCHING_US;
        self.due = now;
    }

    /// The controller has registered this host; from now on announcements have proofs for it.
    pub(super) fn on_registered(&mut self, prover: Option<Prover>, now: Instant) {
        self.prover = prover;
        self.restart(self.mac, now);
    }

    /// The controller knows where the host hangs.
    pub(super) fn on_located(&mut self) {
        self.interval_us = LOCATED_US;
    }

    pub(super) fn poll_timeout(&self) -> Instant {
        self.due
    }

    /// Sends the frame if it is due. One that is refused is not missed: the next follows.
    pub(super) fn handle_timeout(&mut self, socket: Option<&PacketSocket>, now: Instant) {
        if self.due > now {
            return;
        }
        self.due = now.plus_us(self.interval_us);
        self.interval_us = (self.interval_us * 3 / 2).min(LOCATED_US);
        if let Some(socket) = socket
            && self.announce(socket, LLDP_TTL_S)
        {
            self.sent += 1;
        }
    }

    fn announce(&mut self, socket: &PacketSocket, ttl_s: u16) -> bool {
        let frame = build_lldp_frame(&self.name, self.mac, ttl_s, self.prover.as_mut());
        socket.send(&[[&frame, &[]]]).is_ok()
    }

    /// Says good-bye (time to live 0).
    pub(super) fn leave(&mut self, socket: Option<&PacketSocket>) {
        if let Some(socket) = socket {
            self.announce(socket, 0);
        }
    }
}
