//! What became of messages, and telling it.

use super::{Connections, Sending, StableWait};
use crate::applications::connection::{Key, Outbound, reply, send, unknown_handle};
use crate::applications::limits::OUTCOMES_MAX;
use crate::local::{ApiError, ErrorCode, MemberOutcome, Notice};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use wormcast_protocol::{FailReason, GroupId, HostId, Instant};

impl Sending {
    /// Answers at once if the message is stable already, else when it becomes so.
    pub(in crate::applications) fn wait_stable(
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
            None => {
                let known: Vec<Value> = sender
                    .messages
                    .keys()
                    .map(|&number| number.into())
                    .collect();
                let text = format!(
                    "message {message} is not among the last {OUTCOMES_MAX} messages of sender {}; those are: {}",
                    key.number,
                    if known.is_empty() {
                        "none".to_owned()
                    } else {
                        Value::from(known.clone()).to_string()
                    }
                );
                Err(ApiError {
                    code: ErrorCode::OutOfRange,
                    message: text,
                    choices: known,
                })
            }
        }
    }

    /// The engine reports a message stable.
    pub(in crate::applications) fn on_stable(
        &mut self,
        connections: &mut Connections,
        group: GroupId,
        message: u64,
        members: &[HostId],
        failed: &[(HostId, FailReason)],
    ) {
        let Some(turn) = self.turns.get_mut(&group) else {
            return;
        };
        let Some(key) = turn.owners.remove(&message) else {
            return;
        };
        let Some(sender) = self.senders.get_mut(&key) else {
            return;
        };
        let mut outcomes: BTreeMap<u16, Option<String>> =
            members.iter().map(|member| (member.0, None)).collect();
        for (host, reason) in failed {
            outcomes.insert(host.0, Some(reason.to_string()));
        }
        let outcomes: Vec<MemberOutcome> = outcomes
            .into_iter()
            .map(|(host, reason)| MemberOutcome {
                host,
                delivered: reason.is_none(),
                reason,
            })
            .collect();
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
    pub(in crate::applications) fn on_member_aborted(
        &self,
        connections: &mut Connections,
        group: GroupId,
        message: u64,
        host: HostId,
        reason: FailReason,
    ) {
        let Some(turn) = self.turns.get(&group) else {
            return;
        };
        // A message still being written has no owner here yet.
        let key = turn.owners.get(&message).copied().or_else(|| {
            let active = turn.active.as_ref()?;
            (active.message == Some(message)).then_some(active.key)
        });
        if let Some(key) = key {
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

fn stable_answer(message: u64, outcomes: &[MemberOutcome]) -> Value {
    let delivered = outcomes.iter().filter(|outcome| outcome.delivered).count();
    json!({
        "message": message,
        "delivered": delivered,
        "failed": outcomes.len() - delivered,
        "outcomes": outcomes,
    })
}
