//! Which members keep a stream back, and by how much.

use super::Session;
use wormcast_wire::HostId;

/// A child that has not confirmed all that this host has of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Behind {
    /// The child.
    pub host: HostId,
    /// Members below it. ACKs are aggregated, so it may be one of these that is behind; the child knows which.
    pub below: usize,
    /// Payload bytes that are here, have been sent by the origin, and are not confirmed by the child and by all
    /// below it.
    pub bytes: u64,
}

impl Session {
    /// Children that are behind, in the order of the plan. Those given up are not among them.
    pub fn behind(&self) -> impl Iterator<Item = Behind> + '_ {
        let end = match self.sending {
            Some(_) => self.sent_end,
            None => self.store.end(),
        };
        let living = self.children.iter().filter(|child| !child.excluded);
        let behind = living.map(move |child| {
            // What it confirmed may have been for another set of hosts below it.
            let confirmed = if child.stable_current {
                child.stable.max(self.stable)
            } else {
                self.stable
            };
            let held = (confirmed..end).filter_map(|position| self.store.get(position));
            Behind {
                host: child.host,
                below: child.below.len(),
                bytes: held.map(|packet| packet.payload.len() as u64).sum(),
            }
        });
        behind.filter(|child| child.bytes > 0)
    }
}
