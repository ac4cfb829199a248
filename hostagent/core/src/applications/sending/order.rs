//! Messages of the sequencer, which go before those of applications.

use super::Sending;
use bytes::Bytes;
use wormcast_protocol::Engine;
use wormcast_wire::GroupId;

impl Sending {
    /// Whether an order message may be put into the stream of a group: none waits.
    pub(crate) fn takes_order(&self, group: GroupId) -> bool {
        self.turns
            .get(&group)
            .is_none_or(|turn| turn.order.is_none())
    }

    /// Puts an order message before the next message of an application. Gives the number by which it is known.
    pub(crate) fn put_order(&mut self, group: GroupId, bytes: Vec<u8>) -> u64 {
        self.orders_put += 1;
        let turn = self.turns.entry(group).or_default();
        turn.put_order(self.orders_put, Bytes::from(bytes));
        self.orders_put
    }

    /// Whether all members have read an order message of this stream, and so all that comes before it.
    pub(crate) fn is_order_read(&mut self, engine: &Engine, group: GroupId, number: u64) -> bool {
        let stable = engine.progress(group).unwrap_or_default().messages_stable;
        let turn = self.turns.get_mut(&group);
        turn.is_some_and(|turn| number <= turn.orders_read(stable))
    }
}
