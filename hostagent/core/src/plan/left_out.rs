//! Members of the operator's group that take no part at the moment.

use super::fields::{MEMBERS_MAX, PlanRejected, REASON_CHARS_MAX, list, parse_host, rejected};
use std::sync::Arc;
use wormcast_agent_proto as proto;
use wormcast_wire::{GroupId, HostId};

/// A member that does not get the messages that begin now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeftOut {
    pub host: HostId,
    pub reason: String,
}

pub(super) fn parse_left_out(
    id: GroupId,
    members: &[HostId],
    given: &[proto::LeftOut],
) -> Result<Arc<[LeftOut]>, PlanRejected> {
    let count = members.len() + given.len();
    if count > MEMBERS_MAX {
        return rejected(format!(
            "group {id} has {count} members with those left out; at most {MEMBERS_MAX}"
        ));
    }
    let mut left_out: Vec<LeftOut> = Vec::with_capacity(given.len());
    for proto::LeftOut { host, reason } in given {
        let host = parse_host(&format!("a host left out of group {id}"), *host)?;
        if members.binary_search(&host).is_ok() {
            return rejected(format!(
                "host {host} is left out of group {id}; it must be none of the members {}",
                list(members)
            ));
        }
        if let Some(last) = left_out.last()
            && last.host >= host
        {
            return rejected(format!(
                "the hosts left out of group {id} are not ascending: {} comes before {host}",
                last.host
            ));
        }
        let reason = reason.chars().take(REASON_CHARS_MAX).collect();
        left_out.push(LeftOut { host, reason });
    }
    Ok(left_out.into())
}
