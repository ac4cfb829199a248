//! Who lags, between the messages of agent.proto and the agent.

use super::questions::{read_group, read_host};
use super::rpc;
use crate::dataplane::{Command, DataPlaneGone, DataPlaneHandle};
use tokio::sync::oneshot;
use wormcast_agent_core::agent::LagReport;
use wormcast_protocol::{AskedBranch, BranchQuestion, StreamLag};
use wormcast_wire::HostId;

/// Says what this host knows, and asks the switches that are named.
pub(super) async fn answer(
    dataplane: &DataPlaneHandle,
    asked: rpc::AskLag,
) -> Result<rpc::LagAnswer, DataPlaneGone> {
    let number = asked.number;
    let (answered, result) = match read(asked) {
        Ok((origin, question)) => {
            let (done, answered) = oneshot::channel();
            let command = Command::Lag {
                origin,
                question,
                done,
            };
            dataplane.send(command).await?;
            answered.await.map_err(|_| DataPlaneGone)?
        }
        Err(error) => (LagReport::default(), Err(error)),
    };
    Ok(rpc::LagAnswer {
        number,
        error: result.err().unwrap_or_default(),
        origins: answered.origins.iter().map(|host| host.0.into()).collect(),
        stream: answered.stream.map(stream),
    })
}

fn read(asked: rpc::AskLag) -> Result<(HostId, BranchQuestion), String> {
    let branch = |asked: rpc::AskedBranch| {
        let port = u8::try_from(asked.port);
        Ok(AskedBranch {
            number: asked.number,
            route: asked.route,
            port: port.map_err(|_| format!("{} is no port; ports are 0 to 253", asked.port))?,
        })
    };
    let branches = asked.branches.into_iter().map(branch);
    let question = BranchQuestion {
        number: asked.number,
        group: read_group(asked.group)?,
        epoch: asked.epoch,
        branches: branches.collect::<Result<_, String>>()?,
    };
    Ok((read_host("origin", asked.origin)?, question))
}

fn stream(stream: StreamLag) -> rpc::StreamLag {
    let child = |child: &wormcast_protocol::ChildLag| rpc::ChildLag {
        host: child.host.0.into(),
        below: child.below as u32,
        held: child.held,
        confirmed: child.confirmed,
        given_up: child.given_up,
    };
    rpc::StreamLag {
        first: stream.first,
        held: stream.held,
        confirmed: stream.confirmed,
        children: stream.children.iter().map(child).collect(),
    }
}
