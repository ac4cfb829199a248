//! Reports to the controller that it did not ask for, as messages of agent.proto.

use super::rpc::agent_message::Body as AgentBody;
use super::{rpc, transfers};
use crate::dataplane::Report;
use wormcast_agent_core::agent::MemberReport;
use wormcast_agent_core::applications::OpenReceivers;
use wormcast_protocol::{BranchAnswer, Observation};
use wormcast_wire::trace::Record;

/// A report as a message, in this life of the agent.
pub(super) fn body(report: Report, life: u64) -> AgentBody {
    match report {
        Report::Member(report) => AgentBody::MemberReport(member_report(report)),
        Report::Probe(observation) => AgentBody::ProbeSeen(probe_seen(&observation)),
        Report::Branch(answer) => AgentBody::BranchAnswer(branch_answer(answer)),
        Report::Answer(answer) => AgentBody::Answer(rpc::Answer {
            group: answer.group.0.into(),
            host: answer.host.0.into(),
            text: answer.text,
        }),
        Report::Transfer { ended, report } => {
            AgentBody::TransferReport(transfers::report(life, report, ended))
        }
    }
}

fn member_report(report: MemberReport) -> rpc::MemberReport {
    rpc::MemberReport {
        group: report.group.0.into(),
        origin: report.origin.0.into(),
        host: report.host.0.into(),
        reason: report.reason,
        host_dead: report.host_dead,
        slow: report.slow,
    }
}

/// The receivers that are open, as a message.
pub(super) fn open_receivers(open: &OpenReceivers) -> rpc::OpenReceivers {
    let receivers = open.iter().map(|(group, origin)| rpc::OpenReceiver {
        group: group.0.into(),
        origin: origin.map(|origin| origin.0.into()),
    });
    rpc::OpenReceivers {
        receivers: receivers.collect(),
    }
}

fn probe_seen(observation: &Observation) -> rpc::ProbeSeen {
    rpc::ProbeSeen {
        number: observation.trace,
        attempt: observation.attempt.into(),
        sender: observation.sender.0.into(),
        way: observation.way.into(),
        hops: observation.hops.into(),
        room: observation.room.into(),
        count: observation.count.into(),
        marked: observation.marked,
        records: observation.records.iter().map(hop_record).collect(),
    }
}

fn hop_record(record: &Record) -> rpc::HopRecord {
    rpc::HopRecord {
        switch: record.switch.0.into(),
        hop: record.hop.into(),
        ingress_port: record.ingress_port.into(),
        egress_port: record.egress_port.into(),
        stay_us: record.stay_us,
        queue: record.queue.into(),
        left_us: record.left_us,
    }
}

/// A switch's answer as a message.
fn branch_answer(answer: BranchAnswer) -> rpc::BranchAnswer {
    let (held, confirmed) = answer
        .known
        .map_or((0, 0), |(held, confirmed)| (held.0, confirmed.0));
    rpc::BranchAnswer {
        number: answer.question,
        branch: answer.branch,
        known: answer.known.is_some(),
        held,
        confirmed,
    }
}
