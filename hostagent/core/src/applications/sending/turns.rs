//! Whose message a group's stream carries, and moving its bytes into the engine.

use super::{Item, Sending};
use crate::clients::limits::{GRANT_BYTES_MIN, SENDER_STALL_US};
use crate::clients::{Connections, GroupTable, Key, grant, refusal, reply};
use bytes::Buf;
use serde_json::json;
use wormcast_protocol::{Engine, Instant, UseError};
use wormcast_wire::GroupId;
use wormcast_wire::order::FOR_APPLICATIONS;

/// What came of one step.
enum Step {
    /// There may be more to do.
    Again,
    /// Nothing more now.
    Done,
    /// The sender has to be closed.
    Close(Key, String),
}

impl Sending {
    /// A member of an ordered group waits for this host's stream.
    pub(crate) fn note_waited(&mut self, group: GroupId, now: Instant) {
        if let Some(turn) = self.turns.get_mut(&group) {
            turn.asked_at = Some(now);
        }
    }

    /// Moves pending bytes into the engine, turn by turn, as far as it takes them.
    pub(crate) fn pump(
        &mut self,
        engine: &mut Engine,
        connections: &mut Connections,
        planned: Option<&GroupTable>,
        now: Instant,
    ) {
        let groups: Vec<GroupId> = self
            .turns
            .iter()
            .filter(|(_, turn)| turn.has_work())
            .map(|(&group, _)| group)
            .collect();
        for group in groups {
            loop {
                match self.step(engine, connections, (group, planned), now) {
                    Step::Again => {}
                    Step::Done => break,
                    Step::Close(key, reason) => {
                        self.close(engine, connections, key, now, Some(reason));
                    }
                }
            }
        }
    }

    /// One item of one group.
    fn step(
        &mut self,
        engine: &mut Engine,
        connections: &mut Connections,
        (group, planned): (GroupId, Option<&GroupTable>),
        now: Instant,
    ) -> Step {
        let Some(turn) = self.turns.get_mut(&group) else {
            return Step::Done;
        };
        if turn.is_ending(engine, group, now) {
            return Step::Done;
        }
        // Refused only if the group is gone.
        if turn.is_ordering(engine, group, now).unwrap_or(true) {
            return Step::Done;
        }
        let is_waited_for = turn.is_waited_for(now);
        let Some(active) = turn.take_active(now) else {
            return Step::Done;
        };
        let key = active.key;
        let item = self
            .senders
            .get_mut(&key)
            .and_then(|sender| sender.pending.front_mut());
        let result = match item {
            None if active.message.is_none() => {
                turn.active = None;
                return Step::Again;
            }
            None => {
                active.waited_since = if is_waited_for {
                    active.waited_since.or(Some(now))
                } else {
                    None
                };
                if active.stall_deadline().is_none_or(|at| now < at) {
                    return Step::Done;
                }
                let reason = format!(
                    "its unfinished message rested for {} s while others of group {group} waited",
                    SENDER_STALL_US / 1_000_000
                );
                return Step::Close(key, reason);
            }
            Some(Item::Announced(bytes)) => {
                let begun = active.message.is_some();
                let result = if begun {
                    Ok(())
                } else {
                    engine.announce(group, *bytes, now)
                };
                if let Some(sender) = self.senders.get_mut(&key) {
                    sender.pending.pop_front();
                }
                result.map(|()| Step::Again)
            }
            Some(Item::Data(_)) => self.write_data(engine, connections, (group, planned), now),
            Some(Item::End { .. }) => self.write_end(engine, connections, group, now),
        };
        result.unwrap_or_else(|error| Step::Close(key, refusal(&error).message))
    }

    /// Writes the active sender's first run of bytes, as far as the engine takes it.
    fn write_data(
        &mut self,
        engine: &mut Engine,
        connections: &mut Connections,
        (group, planned): (GroupId, Option<&GroupTable>),
        now: Instant,
    ) -> Result<Step, UseError> {
        let turn = self.turns.get_mut(&group);
        let Some(active) = turn.and_then(|turn| turn.active.as_mut()) else {
            return Ok(Step::Done);
        };
        let key = active.key;
        let Some(sender) = self.senders.get_mut(&key) else {
            return Ok(Step::Done);
        };
        let whole_bytes = sender.bytes_to_end();
        let left_out = self.left_out.get(&group);
        let Some(Item::Data(bytes)) = sender.pending.front_mut() else {
            return Ok(Step::Done);
        };
        active.rested_since = now;
        if active.message.is_none()
            && let Some(whole) = whole_bytes
        {
            engine.announce(group, whole, now)?;
        }
        if active.message.is_none() && self.ordered.contains(&group) {
            if engine.write(group, &[FOR_APPLICATIONS], false, now)? == 0 {
                return Ok(Step::Done);
            }
            active.message = Some(engine.progress(group).unwrap_or_default().messages_ended);
            active.began_without = left_out.cloned();
        }
        if self.rates.open_at(group, &sender.pacing) > now {
            return Ok(Step::Done);
        }
        let piece = self.rates.piece(group, &sender.pacing, bytes.len());
        let accepted = engine.write(group, &bytes[..piece], false, now)?;
        if accepted == 0 {
            return Ok(Step::Done);
        }
        (self.rates).note_sent(group, &mut sender.pacing, accepted, now);
        if active.message.is_none() {
            active.message = Some(engine.progress(group).unwrap_or_default().messages_ended);
            active.began_without = left_out.cloned();
        }
        let all = accepted >= bytes.len();
        if let Some(header) = active.beginning.feed(&bytes[..accepted])
            && let Some(message) = active.message
            && let Some(planned) = planned.and_then(|groups| groups.get(&group))
        {
            let left_out = active.began_without.clone();
            self.transfers
                .begin(message, planned, header, engine, left_out);
        }
        bytes.advance(accepted);
        if all {
            sender.pending.pop_front();
        }
        sender.pending_bytes -= accepted as u32;
        sender.ungranted_bytes += accepted as u32;
        if sender.ungranted_bytes >= GRANT_BYTES_MIN || sender.pending_bytes == 0 {
            let bytes = std::mem::take(&mut sender.ungranted_bytes);
            grant(connections, key, bytes);
        }
        // If it took less than it was given, it says when it takes more.
        Ok(if accepted == piece {
            Step::Again
        } else {
            Step::Done
        })
    }

    /// Ends the active sender's message; the turn goes on to the next.
    fn write_end(
        &mut self,
        engine: &mut Engine,
        connections: &mut Connections,
        group: GroupId,
        now: Instant,
    ) -> Result<Step, UseError> {
        let Some(turn) = self.turns.get_mut(&group) else {
            return Ok(Step::Done);
        };
        let ended_before = engine.progress(group).unwrap_or_default().messages_ended;
        let begun = turn
            .active
            .as_ref()
            .is_some_and(|active| active.message.is_some());
        let rest: &[u8] = if begun || !self.ordered.contains(&group) {
            &[]
        } else {
            &[FOR_APPLICATIONS]
        };
        match engine.write(group, rest, true, now) {
            // A cancelled message has no room for its end yet; this one comes after it.
            Err(UseError::EndWaits { .. }) => return Ok(Step::Done),
            Ok(accepted) if accepted < rest.len() => return Ok(Step::Done),
            result => result?,
        };
        let Some(active) = turn.active.take() else {
            return Ok(Step::Done);
        };
        let key = active.key;
        let Some(sender) = self.senders.get_mut(&key) else {
            return Ok(Step::Again);
        };
        let ended = engine.progress(group).unwrap_or_default().messages_ended;
        turn.end_waits = (ended == ended_before).then_some(ended);
        let (message, left_out) = match active.message {
            Some(message) => (message, active.began_without),
            None => (ended_before, self.left_out.get(&group).cloned()),
        };
        let written = active.beginning.bytes;
        self.transfers.note_written(group, message, written);
        turn.owners.insert(message, key);
        turn.began_without
            .extend(left_out.map(|hosts| (message, hosts)));
        if let Some(Item::End { request }) = sender.pending.pop_front() {
            let answer = Ok(json!({ "message": message }));
            reply(connections, key, request, answer);
        }
        sender.messages.insert(message, None);
        sender.forget_old();
        if !sender.pending.is_empty() {
            turn.queue.push_back(key);
        }
        Ok(Step::Again)
    }
}
