//! Members that take no part in the messages of their group, as they are advertised to the others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wormcast_wire::HostId;

use crate::model::agent::{AgentGroup, LeftOut};
use crate::model::groups::Group;
use crate::model::hosts::{COPIES_ALONE, CUT_OFF, Shortfall};

/// Members of a group that are not among those that take part, and why.
pub(crate) fn left_out(
    group: &Group,
    taking_part: &[HostId],
    shortfalls: &[Shortfall],
    agents: &BTreeSet<HostId>,
) -> Vec<LeftOut> {
    let reasons: BTreeMap<HostId, _> = (shortfalls.iter())
        .map(|short| (short.host, &short.reason))
        .collect();
    let others = group.members.iter().copied();
    others
        .filter(|member| taking_part.binary_search(member).is_err())
        .map(|host| LeftOut {
            host,
            reason: match reasons.get(&host) {
                Some(&reason) => reason.clone(),
                None if !agents.contains(&host) => COPIES_ALONE.into(),
                // It takes part; who gets this is in another part.
                None => CUT_OFF.into(),
            },
        })
        .collect()
}

/// A group as it was planned before, if that still fits its members. Its ACKs come by hosts.
pub(crate) fn unchanged(
    group: &Group,
    live: &[HostId],
    shortfalls: &[Shortfall],
    agents: &BTreeSet<HostId>,
    before: &BTreeMap<HostId, Arc<AgentGroup>>,
) -> BTreeMap<HostId, Arc<AgentGroup>> {
    let is_advertised = |host| {
        before
            .get(host)
            .is_some_and(|advertised| advertised.members == live)
    };
    if !live.iter().all(is_advertised) {
        return BTreeMap::new();
    }
    let with_left_out = |(&host, advertised): (&HostId, &Arc<AgentGroup>)| {
        let (advertised, left_out) = (
            advertised.by_hosts(),
            left_out(group, &advertised.members, shortfalls, agents),
        );
        let advertised = if advertised.left_out == left_out {
            advertised
        } else {
            Arc::new(AgentGroup {
                left_out,
                ..(*advertised).clone()
            })
        };
        (host, advertised)
    };
    before.iter().map(with_left_out).collect()
}
