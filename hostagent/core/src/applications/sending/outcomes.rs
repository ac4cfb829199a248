//! What became of messages, and telling it.

use super::left_out::{LeftOuts, add_left_out};
use super::{Sending, StableWait};
use crate::api::{ApiError, ErrorCode, MemberOutcome, Notice};
use crate::clients::Connections;
use crate::clients::Serving;
use crate::clients::limits::OUTCOMES_MAX;
use crate::clients::{Key, Outbound, reply, send, unknown_handle};
use crate::plan::LeftOut;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use wormcast_protocol::{Engine, Instant, MemberState, Unread};
use wormcast_wire::{FailReason, GroupId, HostId};

impl Sending {
    /// Answers at once if the message is stable already, else when it becomes so.
    pub(crate) fn wait_stable(
        &mut self,
        key: Key,
        request: u64,
        message: u64,
        timeout_ms: Option<u64>,
        now: Instant,
    ) -> Result<Option<Value>, ApiError> {
        let sender = self
            .senders
            .get_mut(&key)
            .ok_or_else(|| unknown_handle(key))?;
        match sender.messages.get(&message) {
            Some(Some(outcomes)) => Ok(Some(stable_answer(message, outcomes))),
            Some(None) => {
                let deadline = timeout_ms.map(|ms| now.plus_us(ms.saturating_mul(1000)));
                sender.waiting.push(StableWait {
                    request,
                    message,
                    deadline,
                });
                Ok(None)
            }
            None => Err(self.unknown_message(key, message)),
        }
    }

    /// What is known at this moment of a message at each member: the one named, or the one
    /// that is being written or was ended last.
    pub(crate) fn message_state(
        &self,
        key: Key,
        message: Option<u64>,
        serving: &Serving<'_>,
    ) -> Result<Value, ApiError> {
        let sender = self.senders.get(&key).ok_or_else(|| unknown_handle(key))?;
        let turn = self.turns.get(&sender.group);
        let active = turn.and_then(|turn| turn.active.as_ref());
        let written = active.filter(|active| active.key == key);
        let is_writing = written.is_some() || !sender.pending.is_empty();
        let latest = match written.and_then(|active| active.message) {
            None if !is_writing => sender.messages.keys().next_back().copied(),
            number => number,
        };
        let number = message.or(latest);
        let ended = number.and_then(|number| sender.messages.get(&number));
        if let (None, Some(number)) = (ended, message)
            && latest != Some(number)
        {
            return Err(self.unknown_message(key, number));
        }
        let states = number.and_then(|number| {
            let engine = serving.engine.as_deref()?;
            engine.member_states(sender.group, number)
        });
        let left_out = LeftOuts::of(serving, sender.group);
        let is_settled = matches!(ended, Some(Some(_)));
        let mut outcomes: Vec<Value> = match (ended, states) {
            (Some(Some(outcomes)), _) => outcomes.iter().map(settled).collect(),
            (_, Some(states)) => {
                let describe = |(host, state)| unsettled(host, state, ended.is_some(), &left_out);
                states.into_iter().map(describe).collect()
            }
            _ => {
                let others = match (serving.groups, serving.host) {
                    (Some(groups), Some(host)) => groups
                        .get(&sender.group)
                        .map_or_else(Vec::new, |planned| planned.others(host)),
                    _ => Vec::new(),
                };
                let state = MemberState::Unconfirmed;
                let describe = |host| unsettled(host, state, ended.is_some(), &left_out);
                others.into_iter().map(describe).collect()
            }
        };
        if !is_settled {
            for one in self.began_without(sender.group, number) {
                let named = (outcomes.iter_mut()).find(|other| other["host"] == one.host.0);
                match named {
                    Some(other) => other["left_out"] = true.into(),
                    None => outcomes.push(json!({
                        "host": one.host.0, "state": "failed", "reason": one.reason, "left_out": true,
                    })),
                }
            }
            outcomes.sort_by_key(|outcome| outcome["host"].as_u64());
        }
        Ok(json!({
            "message": number,
            "ended": ended.is_some(),
            "stable": is_settled,
            "outcomes": outcomes,
        }))
    }

    fn unknown_message(&self, key: Key, message: u64) -> ApiError {
        let sender = self.senders.get(&key);
        let known: Vec<Value> = sender.map_or_else(Vec::new, |sender| {
            sender
                .messages
                .keys()
                .map(|&number| number.into())
                .collect()
        });
        let text = format!(
            "message {message} is not among the last {OUTCOMES_MAX} messages of sender {}; those are: {}",
            key.number,
            if known.is_empty() {
                "none".to_owned()
            } else {
                Value::from(known.clone()).to_string()
            }
        );
        ApiError {
            code: ErrorCode::OutOfRange,
            message: text,
            choices: known,
        }
    }

    /// A member reports that nobody there takes a message, or slowly.
    pub(crate) fn on_unread(&self, connections: &mut Connections, unread: &Unread) {
        let (message, host) = (unread.message, unread.host.0);
        if let Some(key) = self.owner_of(unread.group, message) {
            let handle = key.number;
            let notice = if unread.slow {
                Notice::MemberSlow {
                    handle,
                    message,
                    host,
                }
            } else {
                Notice::MemberUnclaimed {
                    handle,
                    message,
                    host,
                }
            };
            send(connections, key.connection, Outbound::Notice(notice));
        }
    }

    /// Another member says something of a message. False: nobody sends to the group.
    pub(crate) fn on_answer(
        &self,
        connections: &mut Connections,
        group: GroupId,
        host: HostId,
        text: &str,
    ) -> bool {
        let senders = self.senders.iter();
        let mut told = false;
        for (key, _) in senders.filter(|(_, sender)| sender.group == group) {
            let notice = Notice::Answer {
                handle: key.number,
                host: host.0,
                text: text.to_owned(),
            };
            send(connections, key.connection, Outbound::Notice(notice));
            told = true;
        }
        told
    }

    /// The sender of a message that is not stable.
    fn owner_of(&self, group: GroupId, message: u64) -> Option<Key> {
        let turn = self.turns.get(&group)?;
        // A message still being written has no owner here yet.
        turn.owners.get(&message).copied().or_else(|| {
            let active = turn.active.as_ref()?;
            (active.message == Some(message)).then_some(active.key)
        })
    }

    /// The engine reports a message stable. Nobody has it who is not named as having it.
    pub(crate) fn on_stable(
        &mut self,
        connections: &mut Connections,
        (group, message): (GroupId, u64),
        confirmed: &[HostId],
        failed: &[(HostId, FailReason)],
        left_out: &LeftOuts<'_>,
        engine: Option<&Engine>,
    ) {
        let turn = self.turns.get_mut(&group);
        // An order message has no owner, and one of a sender that is gone: there is nobody to tell but the controller.
        let owner = turn.and_then(|turn| {
            let key = turn.owners.remove(&message)?;
            Some((key, turn.began_without.remove(&message)))
        });
        let of_file = self.transfers.began_without(group, message);
        let began_without = owner.as_ref().and_then(|(_, without)| without.clone());
        let began_without = began_without.or(of_file).unwrap_or_default();
        let outcomes = stable_outcomes(confirmed, failed, left_out, &began_without);
        self.transfers.settle(group, message, &outcomes, engine);
        let Some((key, sender)) =
            owner.and_then(|(key, _)| Some((key, self.senders.get_mut(&key)?)))
        else {
            return;
        };
        let answer = stable_answer(message, &outcomes);
        sender.messages.insert(message, Some(outcomes));
        sender.forget_old();
        sender.waiting.retain(|wait| {
            if wait.message == message {
                reply(connections, key, wait.request, Ok(answer.clone()));
            }
            wait.message != message
        });
    }

    /// The engine reports that a member will not have a message.
    pub(crate) fn on_member_aborted(
        &self,
        connections: &mut Connections,
        group: GroupId,
        message: u64,
        host: HostId,
        reason: FailReason,
    ) {
        if let Some(key) = self.owner_of(group, message) {
            let notice = Notice::MemberFailed {
                handle: key.number,
                message,
                host: host.0,
                reason: reason.to_string(),
            };
            send(connections, key.connection, Outbound::Notice(notice));
        }
    }
}

/// What became of a message at each configured member.
fn stable_outcomes(
    confirmed: &[HostId],
    failed: &[(HostId, FailReason)],
    left_out: &LeftOuts<'_>,
    began_without: &[LeftOut],
) -> Vec<MemberOutcome> {
    let mut outcomes: BTreeMap<u16, Option<String>> =
        confirmed.iter().map(|member| (member.0, None)).collect();
    for (host, reason) in failed {
        outcomes.insert(host.0, Some(left_out.reason(*host, *reason)));
    }
    let outcome = |(host, reason): (u16, Option<String>)| {
        let delivered = reason.is_none();
        let outcome = MemberOutcome {
            host,
            delivered,
            reason,
            left_out: false,
        };
        (host, outcome)
    };
    let mut outcomes = outcomes.into_iter().map(outcome).collect();
    add_left_out(&mut outcomes, began_without);
    outcomes.into_values().collect()
}

fn settled(outcome: &MemberOutcome) -> Value {
    let state = if outcome.delivered {
        "delivered"
    } else {
        "failed"
    };
    let mut value = json!({"host": outcome.host, "state": state, "reason": outcome.reason});
    if outcome.left_out {
        value["left_out"] = true.into();
    }
    value
}

/// Of a message that is not ended nobody can have all.
fn unsettled(host: HostId, state: MemberState, ended: bool, left_out: &LeftOuts<'_>) -> Value {
    let (state, reason) = match state {
        MemberState::Confirmed => ("delivered", None),
        MemberState::Failed(reason) => ("failed", Some(left_out.reason(host, reason))),
        MemberState::Unconfirmed if ended => ("unconfirmed", None),
        MemberState::Unconfirmed => ("pending", None),
    };
    json!({"host": host.0, "state": state, "reason": reason})
}

fn stable_answer(message: u64, outcomes: &[MemberOutcome]) -> Value {
    let delivered = outcomes.iter().filter(|outcome| outcome.delivered).count();
    json!({
        "message": message,
        "delivered": delivered,
        "failed": outcomes.len() - delivered,
        "outcomes": outcomes,
    })
}
