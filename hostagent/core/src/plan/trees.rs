//! What switches copy a group's worms along, where it is not the spanning tree.

use super::fields::{PlanRejected, parse_host, rejected};
use std::collections::BTreeMap;
use wormcast_agent_proto as proto;
use wormcast_routing::group::{SHARED_TREES_MAX, paths_along};
use wormcast_routing::topology::Link;
use wormcast_wire::{GroupId, HostId, PORT_ID_MAX, PortId, SwitchId};

/// Port path to members from one host.
pub type TreePaths = BTreeMap<HostId, Vec<u8>>;

/// The number by which switches copy, if there is one.
pub(super) fn parse_number(
    id: GroupId,
    number: Option<u32>,
) -> Result<Option<GroupId>, PlanRejected> {
    match number.map(u16::try_from) {
        None => Ok(None),
        Some(Ok(number)) if GroupId(number) != GroupId::BROADCAST => Ok(Some(GroupId(number))),
        Some(_) => rejected(format!(
            "group {id} has number {}; it must be 0 to 65535, but not 255, which is broadcast",
            number.unwrap_or_default()
        )),
    }
}

/// The ways from `own` along each of these trees; to a member farther than a worm goes there is none.
pub(super) fn parse_trees(
    id: GroupId,
    own: HostId,
    members: &[HostId],
    message: &proto::Group,
) -> Result<Vec<TreePaths>, PlanRejected> {
    let proto::Group {
        trees,
        leaves,
        roots,
        ..
    } = message;
    let mut tops = Vec::with_capacity(roots.len());
    for &root in roots {
        match u16::try_from(root) {
            Ok(root) => tops.push(SwitchId(root)),
            Err(_) => {
                return rejected(format!(
                    "a root of group {id} is {root}; switches are 0 to 65535"
                ));
            }
        }
    }
    if trees.len() > SHARED_TREES_MAX as usize {
        return rejected(format!(
            "group {id} has {} trees; at most {SHARED_TREES_MAX}",
            trees.len()
        ));
    }
    let mut at: BTreeMap<HostId, (SwitchId, PortId)> = BTreeMap::new();
    for &proto::Leaf { host, switch, port } in leaves {
        let host = parse_host(&format!("a leaf of the trees of group {id}"), host)?;
        if members.binary_search(&host).is_err() {
            return rejected(format!(
                "host {host} is a leaf of the trees of group {id}; leaves must be members"
            ));
        }
        if at.insert(host, parse_end(id, switch, port)?).is_some() {
            return rejected(format!(
                "host {host} is twice a leaf of the trees of group {id}; it must be one once"
            ));
        }
    }
    let mut parsed = Vec::with_capacity(trees.len());
    for proto::SharedTree { links } in trees {
        let link = |link: &proto::TreeLink| {
            let (a, a_port) = parse_end(id, link.a, link.a_port)?;
            let (b, b_port) = parse_end(id, link.b, link.b_port)?;
            Ok(Link {
                a,
                a_port,
                b,
                b_port,
            })
        };
        let links: Vec<Link> = links
            .iter()
            .map(link)
            .collect::<Result<_, PlanRejected>>()?;
        match paths_along(&links, &tops, &at, own) {
            Ok(paths) => parsed.push(paths),
            Err(switch) => {
                return rejected(format!(
                    "a tree of group {id} has a loop through switch {switch}; its links must be a tree"
                ));
            }
        }
    }
    Ok(parsed)
}

fn parse_end(id: GroupId, switch: u32, port: u32) -> Result<(SwitchId, PortId), PlanRejected> {
    let known = u8::try_from(port).ok().and_then(PortId::new);
    match (u16::try_from(switch), known) {
        (Ok(switch), Some(port)) => Ok((SwitchId(switch), port)),
        _ => rejected(format!(
            "the trees of group {id} have port {port} of switch {switch}; switches must be 0 to 65535, ports 0 to {PORT_ID_MAX}"
        )),
    }
}
