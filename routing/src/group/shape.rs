//! The shape of a group: its scheme with every choice filled in, and its members in their order.

use super::error::GroupError;
use super::order::Order;
use super::request::GroupRequest;
use super::scheme::{CHAIN_LENGTH_DEFAULT, Scheme};
use super::unicast::Unicast;
use crate::routes::Routes;
use crate::structure::postal::LAMBDA_DEFAULT;
use crate::structure::{Recipe, RootedTree, Structure, StructureError, k_binomial, ordering};
use crate::topology::Topology;
use crate::updown::UpDown;
use wormcast_wire::HostId;

/// The structure that [`super::plan_group`] takes the edges from; `None` if switches replicate.
///
/// # Errors
/// As [`super::plan_group`].
pub fn plan_structure<'r, 't: 'r>(
    paths: impl Into<Unicast<'r, 't>>,
    request: &GroupRequest,
) -> Result<Option<Structure>, GroupError> {
    let paths = paths.into();
    let (request, ordered) = complete(paths, request)?;
    build(paths, &request, &ordered)
}

/// Checks the members and fills in every choice; gives the members in their order too.
pub(super) fn complete(
    paths: Unicast<'_, '_>,
    request: &GroupRequest,
) -> Result<(GroupRequest, Vec<HostId>), GroupError> {
    let topology = paths.topology();
    let mut request = request.clone();
    request.members.sort_unstable();
    request.routing = Some(paths.routing());
    let order = choose_order(topology, request.scheme, request.order)?;
    request.order = Some(order);
    for &member in &request.members {
        check_reach(paths, request.source, member)?;
    }
    match &mut request.scheme {
        Scheme::KBinomial { k: k @ None } => {
            *k = Some(k_binomial::optimal_k(
                request.members.len(),
                request.packets,
            ));
        }
        Scheme::MuTorus { r: r @ None } => {
            let ring = topology.grid().and_then(|grid| grid.radix.first());
            *r = Some(ring.map_or(CHAIN_LENGTH_DEFAULT, |&radix| u32::from(radix)));
        }
        _ => {}
    }
    let own;
    let updown = match paths {
        Unicast::Routes(routes) => routes.updown(),
        Unicast::DimensionOrder(_) => {
            // Only CCO asks for the tree; to choose the root well takes longer.
            let root = topology.switches().first().map(|switch| switch.id);
            own = UpDown::new(topology, root.filter(|_| order != Order::Cco))?;
            &own
        }
    };
    let ordered = order.apply(topology, updown, &request.members)?;
    // The checks of members and source that every scheme makes.
    Structure::repeat(ordered.clone(), request.source)?;
    Ok((request, ordered))
}

/// The order that a scheme works on if this one is asked for.
fn choose_order(
    topology: &Topology,
    scheme: Scheme,
    asked: Option<Order>,
) -> Result<Order, GroupError> {
    let name = scheme.name();
    let has_grid = topology.grid().is_some();
    if scheme.goes_by_coordinates() && !has_grid && (asked.is_none() || scheme == Scheme::MdTorus) {
        return Err(StructureError::SchemeNeedsGrid { scheme: name }.into());
    }
    Ok(match (scheme, asked) {
        (Scheme::Tree { .. } | Scheme::Switch(_), _) => Order::Id,
        (Scheme::MdTorus, None | Some(Order::Dimension)) => Order::Dimension,
        (Scheme::MdTorus, Some(other)) => {
            return Err(GroupError::Request {
                at: "parameters.order".into(),
                reason: format!(
                    "{} does not suit {name}, which goes ring by ring; it takes dimension",
                    other.name()
                ),
            });
        }
        (_, Some(order)) => order,
        (Scheme::UTorus, None) => Order::Dimension,
        (Scheme::STorus | Scheme::MuTorus { .. }, None) => Order::Hamiltonian,
        (Scheme::KBinomial { .. }, None) if has_grid => Order::Dimension,
        (Scheme::KBinomial { .. }, None) => Order::Cco,
        (_, None) => Order::Id,
    })
}

pub(super) fn build(
    paths: Unicast<'_, '_>,
    request: &GroupRequest,
    ordered: &[HostId],
) -> Result<Option<Structure>, GroupError> {
    let recipe = recipe_of(paths, request, ordered)?;
    let structure = recipe.map(|recipe| recipe.structure(ordered, request.source));
    Ok(structure.transpose()?)
}

/// The shape that [`super::plan_group`] gives a group, and its members in the order it works on; `None` in
/// place of the shape if switches replicate.
///
/// # Errors
/// As [`super::plan_group`].
pub fn plan_recipe<'r, 't: 'r>(
    paths: impl Into<Unicast<'r, 't>>,
    request: &GroupRequest,
) -> Result<(Option<Recipe>, Vec<HostId>), GroupError> {
    let paths = paths.into();
    let (request, ordered) = complete(paths, request)?;
    Ok((recipe_of(paths, &request, &ordered)?, ordered))
}

fn recipe_of(
    paths: Unicast<'_, '_>,
    request: &GroupRequest,
    ordered: &[HostId],
) -> Result<Option<Recipe>, GroupError> {
    Ok(Some(match request.scheme {
        Scheme::Repeat => Recipe::Repeat,
        Scheme::Circuit(variant) => Recipe::Circuit(variant),
        Scheme::Tree { variant, fan_out } => {
            let hops = |a, b| paths.distance(a, b).ok().flatten();
            Recipe::Tree(RootedTree::build(ordered, fan_out, hops)?.into(), variant)
        }
        Scheme::KBinomial { k } => Recipe::KBinomial { k: k.unwrap_or(1) },
        Scheme::Postal { lambda } => Recipe::Postal {
            lambda: lambda.unwrap_or(LAMBDA_DEFAULT),
        },
        Scheme::UTorus => Recipe::UTorus,
        Scheme::STorus => Recipe::STorus,
        Scheme::MdTorus => Recipe::MdTorus {
            rings: ordering::rings(paths.topology(), ordered)?,
        },
        Scheme::MuTorus { r } => Recipe::MuTorus {
            r: r.unwrap_or(CHAIN_LENGTH_DEFAULT),
        },
        Scheme::Switch(_) => return Ok(None),
    }))
}

/// The rooted tree of a group (WORM §6), hops counted on these routes.
///
/// # Errors
/// As [`RootedTree::build`], and a member that is no host.
pub fn plan_tree(
    routes: &Routes<'_>,
    members: &[HostId],
    fan_out: u32,
) -> Result<RootedTree, GroupError> {
    for &member in members {
        routes.topology().host(member)?;
    }
    let hops = |a, b| routes.distance(a, b).ok().flatten();
    Ok(RootedTree::build(members, fan_out, hops)?)
}

pub(super) fn check_reach(
    paths: Unicast<'_, '_>,
    source: HostId,
    member: HostId,
) -> Result<(), GroupError> {
    match paths.distance(source, member)? {
        Some(_) => Ok(()),
        None => Err(StructureError::Apart {
            a: source,
            b: member,
        }
        .into()),
    }
}
