//! When to send the discovery frame.

use crate::link::{LLDP_TTL_S, MacAddress, PacketSocket, build_lldp_frame};
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
    frame: Vec<u8>,
    /// Until the next frame but one.
    interval_us: u64,
    due: Instant,
    pub(super) sent: u64,
}

impl Discovery {
    pub(super) fn new(name: &str, mac: MacAddress) -> Self {
        let frame = build_lldp_frame(name, mac, LLDP_TTL_S);
        Self {
            name: name.to_owned(),
            mac,
            frame,
            interval_us: SEARCHING_US,
            due: Instant::ZERO,
            sent: 0,
        }
    }

    /// The host may hang elsewhere now.
    pub(super) fn restart(&mut self, mac: MacAddress, now: Instant) {
        self.mac = mac;
        self.frame = build_lldp_frame(&self.name, mac, LLDP_TTL_S);
        self.interval_us = SEARCHING_US;
        self.due = now;
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
            && socket.send(&[[&self.frame, &[]]]).is_ok()
        {
            self.sent += 1;
        }
    }

    /// Says good-bye (time to live 0).
    pub(super) fn leave(&self, socket: Option<&PacketSocket>) {
        if let Some(socket) = socket {
            let _ = socket.send(&[[&build_lldp_frame(&self.name, self.mac, 0), &[]]]);
        }
    }
}
