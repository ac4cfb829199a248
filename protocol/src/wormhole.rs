//! Wormhole mode: frames of one way may follow each other in a train, one worm.

use crate::engine::Engine;
use crate::event::Transmit;
use crate::session::Session;
use crate::session::shared::Shared;
use wormcast_wire::ETHERNET_LENGTH;
use wormcast_wire::wormhole::train::TRAIN_LENGTH;

impl Engine {
    /// Packets that are cut from now on leave room for a train header, or do not.
    pub fn leave_train_room(&mut self, leave: bool) {
        self.shared.train_room = if leave { TRAIN_LENGTH } else { 0 };
    }
}

impl Session {
    /// Says of a frame with a packet whether it is to be a worm of its own, or may go in a train. What is sent again is
    /// one of its own: it gets there where trains do not.
    pub(crate) fn coupled(&self, sent: Transmit, alone: bool, shared: &Shared) -> Transmit {
        let train_bytes_max = if alone {
            0
        } else {
            ETHERNET_LENGTH + self.mtu(shared)
        };
        Transmit {
            train_bytes_max,
            ..sent
        }
    }
}
