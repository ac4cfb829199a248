//! The interface and its socket over time: it may go down, come back, or be made anew.

use super::discovery::Discovery;
use crate::link::{Interface, InterfaceError, PacketSocket, SocketError};
use wormcast_protocol::Instant;
use wormcast_wire::{ETHERTYPE_WORM, WORM_MAC};

/// Time between two looks at an interface that is down, µs.
const RECHECK_US: u64 = 200_000;

/// Where the agent is plugged in.
pub(super) struct LinkState {
    pub(super) interface: Interface,
    pub(super) socket: Option<PacketSocket>,
    pub(super) up: bool,
    recheck_at: Instant,
    /// Times the link went down.
    pub(super) losses: u64,
}

impl LinkState {
    pub(super) fn open(interface: Interface) -> Result<Self, SocketError> {
        let socket = PacketSocket::open(&interface, ETHERTYPE_WORM, WORM_MAC)?;
        let up = interface.running;
        Ok(Self {
            interface,
            socket: Some(socket),
            up,
            recheck_at: Instant::ZERO,
            losses: 0,
        })
    }

    /// When to call [`recheck`](Self::recheck).
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        (!self.up).then_some(self.recheck_at)
    }

    /// Frames cannot be sent or received.
    pub(super) fn on_down(&mut self, now: Instant) {
        if self.up {
            self.up = false;
            self.losses += 1;
            crate::log::warning!("interface {} is down; waiting for it", self.interface.name);
        }
        self.recheck_at = now.plus_us(RECHECK_US);
    }

    /// Looks whether a suspected link is down, at most every [`RECHECK_US`].
    pub(super) fn suspect(&mut self, now: Instant) {
        if self.up && self.recheck_at <= now {
            self.recheck_at = now.plus_us(RECHECK_US);
            if !self.interface.look_again().is_ok_and(|found| found.running) {
                self.on_down(now);
            }
        }
    }

    /// If the link is down and it is time: looks again. True if it has just come up.
    pub(super) fn recheck(&mut self, discovery: &mut Discovery, now: Instant) -> bool {
        if self.up || self.recheck_at > now {
            return false;
        }
        self.recheck_at = now.plus_us(RECHECK_US);
        let found = match self.interface.look_again() {
            Ok(found) => found,
            Err(InterfaceError::Unknown { .. }) => {
                self.socket = None;
                return false;
            }
            Err(_) => return false,
        };
        // An interface made anew has another index; a socket bound to the old one is dead.
        if found.index != self.interface.index || self.socket.is_none() {
            match PacketSocket::open(&found, ETHERTYPE_WORM, WORM_MAC) {
                Ok(socket) => self.socket = Some(socket),
                Err(error) => {
                    crate::log::warning!("interface {} is back, but: {error}", found.name);
                    self.socket = None;
                    return false;
                }
            }
        }
        self.interface = found;
        if !self.interface.running {
            return false;
        }
        self.up = true;
        crate::log::info!("interface {} is up", self.interface.name);
        discovery.restart(self.interface.mac, now);
        true
    }
}
