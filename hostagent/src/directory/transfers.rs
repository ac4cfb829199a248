//! Files that this host sends, as messages of agent.proto.

use super::rpc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wormcast_agent_core::api::MemberOutcome;
use wormcast_agent_core::transfers::{TransferEnd, TransferReport, TransfersUnderWay};

/// A number for this life of the agent that no other one of it has.
pub(super) fn new_life() -> u64 {
    since_1970(SystemTime::now()).as_nanos() as u64
}

/// Which files are under way.
pub(super) fn count(life: u64, transfers: TransfersUnderWay) -> rpc::TransferCount {
    let now = SystemTime::now();
    let report = |one: TransferReport| report(life, one, now);
    rpc::TransferCount {
        life,
        begun: transfers.begun,
        under_way: transfers.count,
        first: transfers.named.into_iter().map(report).collect(),
    }
}

/// A file as it was at `until`.
pub(super) fn report(life: u64, report: TransferReport, until: SystemTime) -> rpc::TransferReport {
    let began = since_1970(until).saturating_sub(Duration::from_micros(report.lasted_us));
    let outcomes = report.end.outcomes();
    let delivered = outcomes.iter().filter(|one| one.delivered);
    let delivered = delivered.map(|one| one.host.into()).collect();
    let mut missed = missed(outcomes);
    let failed = report.end.is_failure();
    let (state, reason) = match report.end {
        TransferEnd::UnderWay => (rpc::TransferState::TransferUnderWay, String::new()),
        TransferEnd::Stable(_) if failed => (rpc::TransferState::TransferFailed, String::new()),
        TransferEnd::Stable(_) => (rpc::TransferState::TransferStable, String::new()),
        TransferEnd::Cancelled { reason, .. } if failed => {
            (rpc::TransferState::TransferFailed, reason)
        }
        TransferEnd::Cancelled { reason, .. } => (rpc::TransferState::TransferCancelled, reason),
        TransferEnd::StreamEnded { reason, members } => {
            missed.push(rpc::Missed {
                hosts: members.iter().map(|host| host.0.into()).collect(),
                ..rpc::Missed::default()
            });
            (rpc::TransferState::TransferStreamEnded, reason)
        }
    };
    rpc::TransferReport {
        life,
        number: report.number,
        origin: report.origin.0.into(),
        group: report.group.0.into(),
        group_name: report.group_name,
        scheme: report.scheme.to_owned(),
        message: report.message,
        name: report.name,
        bytes: report.bytes,
        began_ms: began.as_millis() as u64,
        lasted_us: report.lasted_us,
        retransmissions: report.retransmissions,
        state: state.into(),
        reason,
        delivered,
        missed,
    }
}

/// Members that do not have it, by reason.
fn missed(outcomes: &[MemberOutcome]) -> Vec<rpc::Missed> {
    let mut missed: Vec<rpc::Missed> = Vec::new();
    for one in outcomes.iter().filter(|one| !one.delivered) {
        let reason = one.reason.as_deref().unwrap_or_default();
        let of_reason = missed
            .iter_mut()
            .find(|other| other.reason == reason && other.left_out == one.left_out);
        match of_reason {
            Some(known) => known.hosts.push(one.host.into()),
            None => missed.push(rpc::Missed {
                reason: reason.to_owned(),
                left_out: one.left_out,
                hosts: vec![one.host.into()],
            }),
        }
    }
    missed
}

fn since_1970(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}
