//! ACKs that switches gather (`wire/SPEC.md` §3.2), as a plan names them.

use crate::plan::fields::{PlanRejected, list, parse_host, rejected};
use std::collections::BTreeMap;
use wormcast_agent_proto as proto;
use wormcast_protocol::Gathered;
use wormcast_wire::{GroupId, HostId};

pub(crate) fn parse_gathered(
    id: GroupId,
    members: &[HostId],
    given: Option<&proto::Gathered>,
) -> Result<Option<Gathered>, PlanRejected> {
    let Some(given) = given else {
        return Ok(None);
    };
    let mut origins: BTreeMap<HostId, HostId> = BTreeMap::new();
    for &proto::GatheredOrigin { host, source } in &given.origins {
        let host = parse_host(&format!("an origin of gathered ACKs in group {id}"), host)?;
        if members.binary_search(&host).is_err() {
            return rejected(format!(
                "ACKs to host {host} in group {id} are gathered; it must be one of the members {}",
                list(members)
            ));
        }
        let what = format!("the source of gathered ACKs to host {host} in group {id}");
        let source = parse_host(&what, source)?;
        if members.binary_search(&source).is_ok() {
            return rejected(format!(
                "{what} is {source}; it must be the number of a switch, none of the members {}",
                list(members)
            ));
        }
        if let Some((last, _)) = origins.last_key_value()
            && *last >= host
        {
            return rejected(format!(
                "the origins of gathered ACKs in group {id} are not ascending: {last} comes before {host}"
            ));
        }
        origins.insert(host, source);
    }
    Ok(Some(Gathered {
        epoch: given.epoch,
        origins,
    }))
}
