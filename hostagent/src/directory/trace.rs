//! Traces, between the messages of agent.proto and the agent.

use super::questions::{read_group, read_host};
use super::rpc;
use crate::dataplane::{Command, DataPlaneGone, DataPlaneHandle};
use tokio::sync::oneshot;
use wormcast_protocol::{TraceRequest, Traced, Way};

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
