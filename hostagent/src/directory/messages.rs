//! Plans as the controller's messages have them, for the agent.

use super::rpc;
use wormcast_agent_core::plan::{
    GatheredMessage, GroupMessage, LinkMessage, PlanChangeMessage, PlanMessage, RouteMessage,
    StructureMessage,
};

/// A plan as the agent takes it.
pub(super) fn plan_message(plan: rpc::Plan) -> PlanMessage {
    PlanMessage {
        epoch: plan.epoch,
        host_id: plan.host_id,
        routes: routes(plan.routes),
        routes_at_random: plan.routes_at_random,
        tree_routes: routes(plan.tree_routes),
        root_route: plan.root_route,
        groups: plan.groups.into_iter().map(group).collect(),
        train_frames: plan.train_frames,
        unicast_train_frames: plan.unicast_train_frames,
        tree_route_max: plan.tree_route_max,
        rate_bytes: plan.rate_bytes,
    }
}

/// The change of a plan as the agent takes it.
pub(super) fn change_message(change: rpc::PlanChange) -> PlanChangeMessage {
    PlanChangeMessage {
        base: change.base,
        epoch: change.epoch,
        routes: routes(change.routes),
        no_routes: change.no_routes,
        tree_routes: routes(change.tree_routes),
        no_tree_routes: change.no_tree_routes,
        root_route: change.root_route,
        routes_at_random: change.routes_at_random,
        groups: change.groups.into_iter().map(group).collect(),
        no_groups: change.no_groups,
        train_frames: change.train_frames,
        unicast_train_frames: change.unicast_train_frames,
        tree_route_max: change.tree_route_max,
        rate_bytes: change.rate_bytes,
    }
}

fn routes(routes: Vec<rpc::Route>) -> Vec<RouteMessage> {
    let route = |route: rpc::Route| RouteMessage {
        host: route.host,
        ports: route.ports,
        share: route.share,
    };
    routes.into_iter().map(route).collect()
}

fn group(group: rpc::Group) -> GroupMessage {
    GroupMessage {
        id: group.id,
        name: group.name,
        members: group.members,
        structures: group.structures.into_iter().map(structure).collect(),
        number: group.number,
        trees: group.trees.into_iter().map(tree).collect(),
        leaves: group
            .leaves
            .into_iter()
            .map(|leaf| (leaf.host, leaf.switch, leaf.port))
            .collect(),
        roots: group.roots,
        sequencer: group.sequencer.map(|of| (of.host, of.reign)),
        mtu: group.mtu,
        sink: group.sink,
        gathered: group.gathered.map(|of| GatheredMessage {
            epoch: of.epoch,
            origins: (of.origins.into_iter())
                .map(|origin| (origin.host, origin.source))
                .collect(),
        }),
        left_out: (group.left_out.into_iter())
            .map(|one| (one.host, one.reason))
            .collect(),
    }
}

fn tree(tree: rpc::SharedTree) -> Vec<LinkMessage> {
    let link = |link: rpc::TreeLink| (link.a, link.a_port, link.b, link.b_port);
    tree.links.into_iter().map(link).collect()
}

fn structure(structure: rpc::Structure) -> StructureMessage {
    StructureMessage {
        bytes_most: structure.bytes_most,
        scheme: structure.scheme,
        order: structure.order,
        variant: structure.variant,
        k: structure.k,
        lambda: structure.lambda,
        r: structure.r,
        rings: structure.rings,
        tree_edges: structure
            .tree_edges
            .into_iter()
            .map(|edge| (edge.parent, edge.child))
            .collect(),
        expected: structure
            .expected
            .into_iter()
            .map(|one| (one.bytes, one.microseconds))
            .collect(),
    }
}
