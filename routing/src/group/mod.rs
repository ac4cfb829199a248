//! Plans for groups: a scheme with all its parameters, applied to a topology.

mod dimension_order;
mod error;
mod json;
mod least;
mod legal_tree;
mod metrics;
mod order;
mod plan;
mod request;
mod request_json;
mod scheme;
mod shape;
mod shared_tree;
mod switch_bound;
mod switch_delivery;
mod switch_parameters;
mod switch_tree;
mod switch_trees;
mod switches;
mod unicast;

pub use dimension_order::DimensionOrder;
pub use error::GroupError;
pub use least::Least;
pub use metrics::{Metrics, SENDS_MAX, measure_group};
pub use order::Order;
pub use plan::{Delivery, GroupPlan};
pub use request::{GroupRequest, PAYLOAD_BYTES_DEFAULT};
pub use scheme::{CHAIN_LENGTH_DEFAULT, Scheme};
pub use shape::{plan_recipe, plan_structure, plan_tree};
pub use shared_tree::{SHARED_TREES_MAX, SharedTree, paths_along, rooted_tree, shared_trees};
pub use switch_delivery::{GroupEntry, Relay, SwitchCost, SwitchDelivery};
pub use switch_parameters::{Guard, SwitchMode, SwitchParameters};
pub use switch_tree::{SwitchTree, TreeEnd};
pub use unicast::{Routing, Unicast, with_paths};

use crate::structure::{Discipline, k_binomial};
use crate::topology::Topology;
use shape::{build, check_reach, complete};
use wormcast_wire::SwitchId;

/// Plans a group on the unicast paths that the request asks for. `root` is the root of
/// up\*/down\* routes.
///
/// # Errors
/// As [`plan_group`], and paths that cannot be planned. With `measure`, as
/// [`measure_group`].
pub fn plan_group_on(
    topology: &Topology,
    root: Option<SwitchId>,
    request: &GroupRequest,
    measure: bool,
) -> Result<GroupPlan, GroupError> {
    unicast::with_paths(topology, root, request.routing, |paths| {
        let mut plan = plan_group(paths, request)?;
        if measure {
            plan.metrics = measure_group(paths, &plan.request)?;
        }
        Ok(plan)
    })
}

/// Plans a group. Hops are counted along these unicast paths; up\*/down\* routes also
/// give the spanning tree.
///
/// # Errors
/// Members that are none, or cannot reach each other; parameters outside their bounds;
/// a scheme or order that the topology does not suit.
pub fn plan_group<'r, 't: 'r>(
    paths: impl Into<Unicast<'r, 't>>,
    request: &GroupRequest,
) -> Result<GroupPlan, GroupError> {
    let paths = paths.into();
    let (request, ordered) = complete(paths, request)?;
    if let Scheme::Switch(parameters) = request.scheme {
        return switches::plan_switch(paths.routes()?, request, parameters, ordered);
    }
    let structure = build(paths, &request, &ordered)?.expect("hosts forward");
    let steps = match (request.scheme, request.discipline) {
        (Scheme::KBinomial { k: Some(k) }, Discipline::Fpfs) => {
            k_binomial::steps(ordered.len(), request.packets, k)
        }
        (_, discipline) => structure.steps_under(request.packets, discipline),
    };
    let edges = structure.edges_under(request.packets, request.discipline);
    if let Unicast::DimensionOrder(_) = paths {
        // Of two members that the source reaches, one may not reach the other if a link
        // is gone.
        for edge in &edges {
            check_reach(paths, edge.from, edge.to)?;
        }
    }
    Ok(GroupPlan {
        request,
        ordered,
        steps,
        delivery: Delivery::Hosts { edges },
        metrics: None,
    })
}
