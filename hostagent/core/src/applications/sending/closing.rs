//! Senders that are closed: by their owner, with its connection, or with their group; what is told of a file that is cancelled.

use super::left_out::add_left_out;
use super::{Item, Sender, Sending};
use crate::api::{ApiError, ErrorCode, MemberOutcome, Notice};
use crate::clients::{ConnectionId, Connections, Key, Outbound, reply, send};
use crate::plan::LeftOut;
use crate::transfers::CANCELLED;
use wormcast_protocol::{Engine, Instant, MemberState};
use wormcast_wire::{FailReason, GroupId, HostId};

impl Sending {
    /// Closes a sender: at its owner's wish (`reason` none) or against it.
    ///
    /// What it has ended goes on its way; an unfinished message is cancelled.
    pub(crate) fn close(
        &mut self,
        engine: &mut Engine,
        connections: &mut Connections,
        key: Key,
        now: Instant,
        reason: Option<String>,
    ) {
        let Some(sender) = self.senders.remove(&key) else {
            return;
        };
        if let Some(turn) = self.turns.get_mut(&sender.group) {
            turn.queue.retain(|&waiting| waiting != key);
            // What becomes of its messages nobody asks any more: who waited is told that it was closed.
            turn.owners.retain(|_, &mut owner| owner != key);
            turn.began_without
                .retain(|message, _| turn.owners.contains_key(message));
            let active = turn.active.take_if(|active| active.key == key);
            if let Some(message) = active.and_then(|active| active.message) {
                let why = reason.as_deref();
                let why = why.unwrap_or("its program ended before its end");
                self.cancel_transfer(engine, sender.group, message, why);
                // Refused only if the group is gone, and with it the message.
                let _ = engine.cancel(sender.group, now);
            }
        }
        sender.dismiss(connections, key, reason);
    }

    /// A message is about to be cancelled: if it is a file, that is told of it.
    pub(super) fn cancel_transfer(
        &mut self,
        engine: &Engine,
        group: GroupId,
        message: u64,
        why: &str,
    ) {
        (self.transfers).cancel(group, message, engine, why, |began_without| {
            let states = engine.member_states(group, message).unwrap_or_default();
            cancelled_outcomes(states, began_without)
        });
    }

    /// Closes every sender of a connection.
    pub(crate) fn disconnect(
        &mut self,
        engine: Option<&mut Engine>,
        connections: &mut Connections,
        connection: ConnectionId,
        now: Instant,
    ) {
        let keys: Vec<Key> = self
            .senders
            .keys()
            .copied()
            .filter(|key| key.connection == connection)
            .collect();
        let Some(engine) = engine else { return };
        for key in keys {
            self.close(engine, connections, key, now, None);
        }
    }

    /// The group is gone, and all its senders.
    pub(crate) fn remove_group(
        &mut self,
        connections: &mut Connections,
        group: GroupId,
        reason: &str,
    ) {
        self.end_stream(connections, group, reason);
        self.ordered.remove(&group);
        self.left_out.remove(&group);
        self.rates.set(group, None);
    }

    /// The group's stream has ended, and all its senders: what becomes of their messages nobody will know.
    pub(crate) fn end_stream(
        &mut self,
        connections: &mut Connections,
        group: GroupId,
        reason: &str,
    ) {
        self.turns.remove(&group);
        self.transfers.lose(group, reason);
        let keys: Vec<Key> = self
            .senders
            .iter()
            .filter(|(_, sender)| sender.group == group)
            .map(|(&key, _)| key)
            .collect();
        for key in keys {
            if let Some(sender) = self.senders.remove(&key) {
                sender.dismiss(connections, key, Some(reason.to_owned()));
            }
        }
    }
}

impl Sender {
    /// Tells everyone who waits for this sender that it is gone.
    fn dismiss(self, connections: &mut Connections, key: Key, reason: Option<String>) {
        let text = reason.as_deref().unwrap_or("the sender was closed");
        let error = || Err(ApiError::new(ErrorCode::Closed, text));
        for wait in &self.waiting {
            reply(connections, key, wait.request, error());
        }
        for item in &self.pending {
            if let Item::End { request } = item {
                reply(connections, key, *request, error());
            }
        }
        if let Some(connection) = connections.open.get_mut(&key.connection) {
            connection.handles -= 1;
            if let Some(reason) = reason {
                let notice = Notice::HandleClosed {
                    handle: key.number,
                    reason,
                };
                send(connections, key.connection, Outbound::Notice(notice));
            }
        }
    }
}

/// Nobody has a message without its end.
fn cancelled_outcomes(
    states: Vec<(HostId, MemberState)>,
    began_without: &[LeftOut],
) -> Vec<MemberOutcome> {
    let outcome = |(host, state): (HostId, MemberState)| {
        let reason = match state {
            MemberState::Failed(reason) if reason != FailReason::Removed => reason.to_string(),
            _ => CANCELLED.to_owned(),
        };
        let outcome = MemberOutcome {
            host: host.0,
            delivered: false,
            reason: Some(reason),
            left_out: false,
        };
        (host.0, outcome)
    };
    let mut outcomes = states.into_iter().map(outcome).collect();
    add_left_out(&mut outcomes, began_without);
    outcomes.into_values().collect()
}
