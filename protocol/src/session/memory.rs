//! Packets that are held no more, and their memory given back.

use super::Session;
use super::shared::Shared;
use wormcast_wire::BufferClass;

impl Session {
    pub(super) fn release_before(&mut self, position: u64, shared: &mut Shared) {
        let Session { store, sending, .. } = self;
        store.advance(position, |packet| {
            if let Some(sending) = sending {
                sending.stable_bytes += packet.payload.len() as u64;
            }
            shared.pools.release(packet);
        });
    }

    pub fn release_all(&mut self, shared: &mut Shared) {
        let end = self.store.end();
        self.store
            .advance(end, |packet| shared.pools.release(packet));
    }

    /// Gives up the oldest packet of the class that is read here and acknowledged by all
    /// children, though not stable, and those before it; true if there was one. The origin holds it until it is stable,
    /// for whoever turns out to lack it.
    pub fn evict(&mut self, class: BufferClass, shared: &mut Shared) -> bool {
        let Some(reception) = &self.reception else {
            return false;
        };
        let until = self
            .children
            .iter()
            .filter(|child| !child.excluded)
            .map(|child| child.cumulative())
            .fold(reception.consumed(), u64::min);
        let base = self.store.base();
        // A parent may repair in another class than that of the copies, so the oldest need not be of it.
        let counts = |position: &u64| {
            let packet = self.store.get(*position);
            packet.is_some_and(|packet| packet.pool == Some(class))
        };
        let Some(first) = (base..until).find(counts) else {
            return false;
        };
        // Several at a time, so that not every packet has to look for room.
        let until = until.min((base + 16).max(first + 1));
        self.statistics.evicted_packets += until - base;
        self.store
            .advance(until, |packet| shared.pools.release(packet));
        true
    }
}
