//! Files that this host sends, as the controller is told of them: how each transfer ended, and which are under way.
//!
//! Ends are told once, no more than [`REPORTS_A_SECOND`] of them after the first [`REPORTS_AT_ONCE`]. What is under way is
//! asked for again and again, so a controller that starts anew learns of it.

pub mod file_start;

use crate::api::MemberOutcome;
use crate::plan::{LeftOut, PlannedGroup};
use file_start::{DIGEST_BYTES, FileHeader};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use wormcast_protocol::Engine;
use wormcast_wire::{GroupId, HostId};

/// Ends told a second at most, where more happen all the time. Others are counted (`transfers.left_out`).
pub const REPORTS_A_SECOND: u64 = 8;
/// Ends told at once at most.
pub const REPORTS_AT_ONCE: u64 = 64;
/// Files under way whose end will be told at most. Others are counted (`transfers.left_out`).
pub const UNDER_WAY_MAX: usize = 1024;
/// Files under way that are named at once at most, those that began first. How these end is always told.
pub const NAMED_MAX: usize = 16;
/// Only what lasts longer is named while it is under way, µs.
pub const NAMED_AFTER_US: u64 = 500_000;

const INTERVAL_US: u64 = 1_000_000 / REPORTS_A_SECOND;
/// What is said of members of a message that was cancelled.
pub(crate) const CANCELLED: &str = "cancelled";

/// What the controller is told of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransferReport {
    /// Of the files that this agent has begun to send, from 1.
    pub number: u64,
    pub origin: HostId,
    pub group: GroupId,
    pub group_name: String,
    pub scheme: &'static str,
    /// Counts the messages of this origin to this group, from 0.
    pub message: u64,
    pub name: String,
    /// Of the content; of what is not written to its end, as announced.
    pub bytes: Option<u64>,
    /// Time from its beginning to its end, or until now, µs.
    pub lasted_us: u64,
    /// Packets of the stream that were sent again meanwhile, as far as known. Files that overlap share them.
    pub retransmissions: Option<u64>,
    pub end: TransferEnd,
}

/// How a transfer ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TransferEnd {
    UnderWay,
    /// What became of it at each member is known, as `wait_stable` says it.
    Stable(Vec<MemberOutcome>),
    /// Its program, or the agent for the reason given, gave it up before its end.
    Cancelled {
        reason: String,
        outcomes: Vec<MemberOutcome>,
    },
    /// This host's stream to the group has ended: what became of it at the members nobody will know.
    StreamEnded {
        reason: String,
        members: Vec<HostId>,
    },
}

impl TransferEnd {
    /// What became of it at each member; empty where that is not known.
    pub fn outcomes(&self) -> &[MemberOutcome] {
        match self {
            Self::Stable(outcomes) | Self::Cancelled { outcomes, .. } => outcomes,
            Self::UnderWay | Self::StreamEnded { .. } => &[],
        }
    }

    /// Whether every member has failed, and not because it was cancelled.
    pub fn is_failure(&self) -> bool {
        let outcomes = self.outcomes();
        let failed =
            |one: &MemberOutcome| !one.delivered && one.reason.as_deref() != Some(CANCELLED);
        !outcomes.is_empty() && outcomes.iter().all(failed)
    }
}

/// Which files are under way.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TransfersUnderWay {
    /// Files that this agent has begun to send.
    pub begun: u64,
    /// Of these, those that have not ended.
    pub count: u64,
    /// The first of these.
    /// The first of these, each from some time after its beginning to its end.
    pub named: Vec<TransferReport>,
}

/// All files that this host sends.
#[derive(Default, Debug)]
pub struct Transfers {
    under_way: BTreeMap<(GroupId, u64), Transfer>,
    reports: VecDeque<TransferReport>,
    begun: u64,
    left_out: u64,
    /// Time that has passed, pauses of the process included, µs.
    passed_us: u64,
    /// When another end could be told, if no more were at once.
    told_until_us: u64,
}

#[derive(Debug)]
struct Transfer {
    number: u64,
    origin: HostId,
    planned: Arc<PlannedGroup>,
    header: FileHeader,
    /// Of the content, once it is written to its end.
    bytes: Option<u64>,
    began_us: u64,
    retransmissions_before: u64,
    began_without: Option<Arc<[LeftOut]>>,
    /// The controller knows of it, and waits for its end.
    is_named: bool,
}

impl Transfers {
    pub(crate) fn set_passed(&mut self, passed_us: u64) {
        self.passed_us = passed_us;
    }

    pub(crate) fn begun(&self) -> u64 {
        self.begun
    }

    pub(crate) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The header of a file has been written.
    pub(crate) fn begin(
        &mut self,
        message: u64,
        planned: &Arc<PlannedGroup>,
        header: FileHeader,
        engine: &Engine,
        began_without: Option<Arc<[LeftOut]>>,
    ) {
        self.begun += 1;
        if self.under_way.len() >= UNDER_WAY_MAX {
            self.left_out += 1;
            return;
        }
        let origin = engine.config().host;
        let transfer = Transfer {
            number: self.begun,
            origin,
            planned: Arc::clone(planned),
            header,
            bytes: None,
            began_us: self.passed_us,
            retransmissions_before: engine.sent_again(planned.id, origin).unwrap_or(0),
            began_without,
            is_named: false,
        };
        self.under_way.insert((planned.id, message), transfer);
    }

    /// A message has been written to its end; it has so many bytes.
    pub(crate) fn note_written(&mut self, group: GroupId, message: u64, bytes: u64) {
        if let Some(transfer) = self.under_way.get_mut(&(group, message)) {
            let around = transfer.header.start_bytes + DIGEST_BYTES as u64;
            transfer.bytes = Some(bytes.saturating_sub(around));
        }
    }

    /// Who took no part when a file began that is under way.
    pub(crate) fn began_without(&self, group: GroupId, message: u64) -> Option<Arc<[LeftOut]>> {
        let transfer = self.under_way.get(&(group, message))?;
        transfer.began_without.clone()
    }

    /// Its outcome is known.
    pub(crate) fn settle(
        &mut self,
        group: GroupId,
        message: u64,
        outcomes: &[MemberOutcome],
        engine: Option<&Engine>,
    ) {
        self.end((group, message), engine, |_| {
            TransferEnd::Stable(outcomes.to_vec())
        });
    }

    /// It is about to be cancelled.
    pub(crate) fn cancel(
        &mut self,
        group: GroupId,
        message: u64,
        engine: &Engine,
        reason: &str,
        outcomes: impl FnOnce(&[LeftOut]) -> Vec<MemberOutcome>,
    ) {
        self.end((group, message), Some(engine), |transfer| {
            TransferEnd::Cancelled {
                reason: reason.to_owned(),
                outcomes: outcomes(transfer.began_without.as_deref().unwrap_or_default()),
            }
        });
    }

    /// The stream of a group has ended.
    pub(crate) fn lose(&mut self, group: GroupId, reason: &str) {
        let messages = self.under_way.range((group, 0)..=(group, u64::MAX));
        let messages: Vec<u64> = messages.map(|((_, message), _)| *message).collect();
        for message in messages {
            self.end((group, message), None, |transfer| {
                TransferEnd::StreamEnded {
                    reason: reason.to_owned(),
                    members: transfer.planned.others(transfer.origin),
                }
            });
        }
    }

    fn end(
        &mut self,
        (group, message): (GroupId, u64),
        engine: Option<&Engine>,
        how: impl FnOnce(&Transfer) -> TransferEnd,
    ) {
        let Some(transfer) = self.under_way.remove(&(group, message)) else {
            return;
        };
        if !transfer.is_named && !self.may_tell() {
            self.left_out += 1;
            return;
        }
        let mut report = transfer.report(message, self.passed_us);
        report.retransmissions = engine
            .and_then(|engine| engine.sent_again(group, transfer.origin))
            .map(|now| now.saturating_sub(transfer.retransmissions_before));
        report.end = how(&transfer);
        self.reports.push_back(report);
    }

    /// Whether another end may be told now.
    fn may_tell(&mut self) -> bool {
        // Time begins with all that may be told at once.
        let now = self.passed_us + REPORTS_AT_ONCE * INTERVAL_US;
        let next = self.told_until_us.max(self.passed_us) + INTERVAL_US;
        if next > now {
            return false;
        }
        self.told_until_us = next;
        true
    }

    pub(crate) fn poll(&mut self) -> Option<TransferReport> {
        self.reports.pop_front()
    }

    pub(crate) fn list(&mut self) -> TransfersUnderWay {
        let passed_us = self.passed_us;
        let mut first: Vec<_> = self.under_way.iter_mut().collect();
        first.sort_by_key(|(_, transfer)| transfer.number);
        first.retain(|(_, transfer)| transfer.began_us + NAMED_AFTER_US <= passed_us);
        first.truncate(NAMED_MAX);
        let name = |((_, message), transfer): (&(GroupId, u64), &mut Transfer)| {
            transfer.is_named = true;
            transfer.report(*message, passed_us)
        };
        let named = first.into_iter().map(name).collect();
        TransfersUnderWay {
            begun: self.begun,
            count: self.under_way.len() as u64,
            named,
        }
    }
}

impl Transfer {
    fn report(&self, message: u64, passed_us: u64) -> TransferReport {
        TransferReport {
            number: self.number,
            origin: self.origin,
            group: self.planned.id,
            group_name: self.planned.name.clone(),
            scheme: self.planned.scheme_name(),
            message,
            name: self.header.name.clone(),
            bytes: self.bytes.or(self.header.size),
            lasted_us: passed_us.saturating_sub(self.began_us),
            retransmissions: None,
            end: TransferEnd::UnderWay,
        }
    }
}
