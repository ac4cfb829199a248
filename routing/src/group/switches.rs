//! Groups whose messages the switches replicate.

use super::{Delivery, GroupError, GroupPlan, GroupRequest, SwitchTree};
use crate::ids::HostId;
use crate::routes::{Algorithm, Routes};
use crate::tree_route::encode_tree;

pub(super) fn plan_switch(
    routes: &Routes<'_>,
    request: GroupRequest,
    ordered: Vec<HostId>,
) -> Result<GroupPlan, GroupError> {
    let topology = routes.topology();
    let along_tree = Routes::plan_along(topology, Algorithm::TreeOnly, routes.updown().clone())?;
    let source = request.source;
    let paths = ordered
        .iter()
        .filter(|member| **member != source)
        .map(|&member| Ok((member, along_tree.route(source, member)?.ports)))
        .collect::<Result<Vec<_>, GroupError>>()?;
    let tree_routes = encode_tree(&paths)?;
    let steps = tree_routes.len() as u64 * u64::from(request.packets);
    let tree = SwitchTree::new(topology, source, &paths)?;
    let delivery = Delivery::Switches {
        tree,
        routes: tree_routes,
    };
    Ok(GroupPlan {
        request,
        ordered,
        steps,
        delivery,
        metrics: None,
    })
}
