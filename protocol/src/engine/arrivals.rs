//! How far streams have come at this host, message by message: for whoever says in which order the
//! messages of several origins are read.

use super::Engine;
use crate::event::Arrived;
use wormcast_wire::{GroupId, HostId, Seq};

impl Engine {
    /// The streams of a group that this host has a part in, by origin.
    pub fn arrived(&self, group: GroupId) -> impl Iterator<Item = Arrived> + '_ {
        let sessions = self.sessions.of_group(group);
        sessions.map(|(_, session)| session.arrived())
    }

    /// The stream of one origin; none if nothing of it is known.
    pub fn arrived_from(&self, group: GroupId, origin: HostId) -> Option<Arrived> {
        let session = self.sessions.get(&(group, origin))?;
        Some(session.arrived())
    }

    /// The first packets of messages that have come in order from an origin, from a number on,
    /// ascending; at most so many. [`crate::Event::Begun`] tells of the next one after this call.
    pub fn message_starts(
        &mut self,
        group: GroupId,
        origin: HostId,
        from: Seq,
        most: usize,
    ) -> Vec<Seq> {
        let session = self.sessions.get_mut(&(group, origin));
        session.map_or_else(Vec::new, |session| session.message_starts(from, most))
    }
}
