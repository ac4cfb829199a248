//! How far the messages of an origin are, and those that a member reads.

use super::Session;
use super::messages::{Message, Progress};
use super::sending::dead_for;
use crate::child::Child;
use crate::event::MemberState;
use crate::window::store::Pools;
use std::collections::BTreeSet;
use wormcast_wire::{HostId, Seq};

impl Session {
    /// The first packet a member has that is not confirmed yet, if there is one.
    pub fn unread(&self) -> Option<u64> {
        let reception = self.reception.as_ref()?;
        (reception.consumed() < self.cumulative).then(|| reception.consumed())
    }

    /// Of the message that is being read, what has come in order and is not read: its bytes, and those of its buffers.
    pub fn unread_bytes(&self, pools: &Pools) -> (usize, usize) {
        let (mut bytes, mut buffers) = (0, 0);
        let from = self.unread().unwrap_or(self.cumulative);
        for packet in (from..self.cumulative).filter_map(|at| self.store.get(at)) {
            bytes += packet.payload.len();
            buffers += pools.packet_bytes(packet.payload.len());
            if packet.last {
                break;
            }
        }
        let read = self.reception.as_ref().map_or(0, |it| it.read_offset);
        (bytes.saturating_sub(read), buffers)
    }

    /// Whether the end of the message that is next to be read has come.
    pub fn has_end(&self) -> bool {
        let reception = self.reception.as_ref();
        reception.is_some_and(|reception| reception.message_end() > reception.consumed())
    }

    /// The message of this origin that the packet belongs to, if it is not stable.
    pub fn message_at(&self, at: Seq) -> Option<u64> {
        let position = at.expand(self.cumulative);
        let holds = |message: &&Message| {
            (message.start..message.end.unwrap_or(self.cumulative)).contains(&position)
        };
        let sending = self.sending.as_ref()?;
        sending
            .messages
            .iter()
            .find(holds)
            .map(|message| message.number)
    }

    /// What is known of a message that is not stable, at each member but this host; none if
    /// there is no such message.
    pub fn member_states(&self, number: u64) -> Option<Vec<(HostId, MemberState)>> {
        let sending = self.sending.as_ref()?;
        let mut messages = sending.messages.iter();
        let message = messages.find(|message| message.number == number)?;
        let confirmed = |host: HostId| {
            message.end.is_some_and(|end| {
                let over = |child: &Child| child.host == host || child.below.contains(&host);
                let child = self.children.iter().find(|child| over(child));
                child.is_some_and(|child| !child.excluded && child.stable >= end)
            })
        };
        // Who is given up may answer before the message is stable.
        let dead: BTreeSet<HostId> = dead_for(&self.children, message.end)
            .map(|(host, _)| host)
            .collect();
        let state = |host: HostId| match message.failed.get(&host) {
            Some(reason) => MemberState::Failed(*reason),
            None if confirmed(host) && !dead.contains(&host) => MemberState::Confirmed,
            None => MemberState::Unconfirmed,
        };
        let gone = message.failed.keys();
        let hosts: BTreeSet<HostId> = sending.members.iter().chain(gone).copied().collect();
        let others = hosts.into_iter().filter(|host| *host != self.origin);
        Some(others.map(|host| (host, state(host))).collect())
    }

    /// What this origin has done so far.
    pub fn progress(&self) -> Option<Progress> {
        let sending = self.sending.as_ref()?;
        let statistics = &self.statistics;
        let copies = match self.broadcast {
            Some(_) => 1,
            None => self.children.len().max(1) as u64,
        };
        Some(Progress {
            accepted_bytes: sending.accepted_bytes,
            sent_bytes: statistics.data_sent_bytes / copies,
            stable_bytes: sending.stable_bytes,
            messages_ended: sending.messages_ended,
            messages_stable: sending.messages_stable,
            messages_by_choice: sending.messages_by_choice,
        })
    }
}
