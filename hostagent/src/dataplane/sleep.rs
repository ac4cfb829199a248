//! How long the data-plane thread sleeps, and for what.

use super::transmit::Blocked;
use super::{DataPlane, Wait};
use wormcast_protocol::Instant;

/// Shortest sleep while frames cannot be sent, µs: the engine's send timers are due then,
/// but there is nothing to do about it.
const BLOCKED_SLEEP_US: u64 = 1_000;

impl DataPlane {
    /// What to sleep for until there is something to do.
    pub(super) fn plan_sleep(&mut self, received: bool) -> Wait {
        let now = self.clock.read();
        let mut least_us = 0;
        let mut until = self.discovery.poll_timeout();
        let mut at = |time: Option<Instant>| {
            if let Some(time) = time {
                until = until.min(time);
            }
        };
        at(self.link.poll_timeout());
        at(self.agent.poll_timeout());
        match self.transmit.blocked() {
            Blocked::No => {}
            Blocked::Until(time) => {
                at(Some(time));
                least_us = time.since_us(now).min(BLOCKED_SLEEP_US);
            }
            Blocked::Socket | Blocked::LinkDown => least_us = BLOCKED_SLEEP_US,
        }
        if !self.link.up {
            least_us = BLOCKED_SLEEP_US;
        }
        // A socket whose interface is gone reports errors for ever.
        let mut read = self.link.up || self.link.socket.is_some();
        if received {
            least_us = least_us.max(self.settings.coalesce_us);
            read = false;
            until = until.min(now.plus_us(self.settings.coalesce_us));
        }
        let sleep_us = if std::mem::take(&mut self.more_waits) {
            0
        } else {
            until.since_us(now).max(least_us)
        };
        Wait {
            sleep_us,
            read,
            write: self.transmit.blocked() == Blocked::Socket && self.link.up,
        }
    }
}
