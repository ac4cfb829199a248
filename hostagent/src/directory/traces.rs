//! Traces, between the messages of agent.proto and the agent.

use super::lag::branch_told;
use super::rpc;
use super::rpc::agent_message::Body as AgentBody;
use crate::dataplane::{Command, DataPlaneGone, DataPlaneHandle, Report};
use tokio::sync::oneshot;
use wormcast_agent_core::agent::MemberReport;
use wormcast_protocol::{Sighting, TraceRequest, Traced, Way};
use wormcast_wire::trace::Record;
use wormcast_wire::{GroupId, HOST_ID_MAX, HostId};

/// Sends the probes that are asked for, and says along which ways.
pub(super) async fn answer(
    dataplane: &DataPlaneHandle,
    trace: &rpc::Trace,
) -> Result<rpc::TraceSent, DataPlaneGone> {
    let result = match read(trace) {
        Ok(request) => {
            let (done, ways) = oneshot::channel();
            dataplane.send(Command::Trace { request, done }).await?;
            ways.await.map_err(|_| DataPlaneGone)?
        }
        Err(error) => Err(error),
    };
    let (error, ways) = match result {
        Ok(ways) => (String::new(), ways),
        Err(error) => (error, Vec::new()),
    };
    Ok(rpc::TraceSent {
        number: trace.number,
        attempt: trace.attempt,
        error,
        ways: ways.into_iter().map(way).collect(),
    })
}

fn read(trace: &rpc::Trace) -> Result<TraceRequest, String> {
    let of = match (trace.host, trace.group) {
        (Some(to), _) => Traced::ToHost(read_host("host", to)?),
        (None, Some(group)) => Traced::InGroup {
            group: read_group(group)?,
            origin: read_host("origin", trace.origin)?,
            bytes: trace.bytes,
        },
        (None, None) => return Err("a trace names a host or a group; this one neither".to_owned()),
    };
    let attempt = u16::try_from(trace.attempt)
        .map_err(|_| format!("attempt {} is too high; the last is 65535", trace.attempt))?;
    let route = trace.route.map(|route| {
        u8::try_from(route).map_err(|_| format!("there is no route {route}; routes are 0 to 19"))
    });
    Ok(TraceRequest {
        trace: trace.number,
        attempt,
        of,
        route: route.transpose()?,
    })
}

/// A host that a question names.
pub(super) fn read_host(what: &str, id: u32) -> Result<HostId, String> {
    match u16::try_from(id) {
        Ok(id) if id <= HOST_ID_MAX => Ok(HostId(id)),
        _ => Err(format!("{what} {id} is none; hosts are 0 to {HOST_ID_MAX}")),
    }
}

/// A group that a question names.
pub(super) fn read_group(group: u32) -> Result<GroupId, String> {
    let id = u16::try_from(group).map(GroupId).ok();
    let id = id.filter(|id| *id != GroupId::BROADCAST);
    id.ok_or_else(|| format!("group {group} is none; groups are 0 to 65535 without 255"))
}

fn way(way: Way) -> rpc::Way {
    rpc::Way {
        number: way.number.into(),
        kind: way.kind as u32,
        route: way.route,
        hosts: way.to.iter().map(|host| host.0.into()).collect(),
        alternative: way.alternative.map(|(place, _)| place.into()),
        share: way.alternative.map_or(0, |(_, share)| share),
        tree: way.tree.map(u32::from),
    }
}

/// What the controller is told.
pub(super) fn report_body(report: Report) -> AgentBody {
    match report {
        Report::Member(report) => AgentBody::MemberReport(member_report(report)),
        Report::Probe(sighting) => AgentBody::ProbeSeen(probe_seen(&sighting)),
        Report::Branch(answer) => AgentBody::BranchTold(branch_told(answer)),
    }
}

fn member_report(report: MemberReport) -> rpc::MemberReport {
    rpc::MemberReport {
        group: report.group.0.into(),
        origin: report.origin.0.into(),
        host: report.host.0.into(),
        reason: report.reason,
        host_dead: report.host_dead,
    }
}

fn probe_seen(sighting: &Sighting) -> rpc::ProbeSeen {
    rpc::ProbeSeen {
        number: sighting.trace,
        attempt: sighting.attempt.into(),
        sender: sighting.sender.0.into(),
        way: sighting.way.into(),
        hops: sighting.hops.into(),
        room: sighting.room.into(),
        count: sighting.count.into(),
        marked: sighting.marked,
        records: sighting.records.iter().map(hop_record).collect(),
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
