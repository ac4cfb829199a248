//! Plans for groups: a scheme with all its parameters, applied to a topology.

mod dimension_order;
mod error;
mod json;
mod least;
mod legal_tree;
mod metrics;
mod order;
mod request_json;
mod scheme;
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
pub use scheme::{CHAIN_LENGTH_DEFAULT, Scheme};
pub use shared_tree::{SHARED_TREES_MAX, SharedTree, paths_along, rooted_tree, shared_trees};
pub use switch_delivery::{GroupEntry, Relay, SwitchCost, SwitchDelivery};
pub use switch_parameters::{Guard, SwitchMode, SwitchParameters};
pub use switch_tree::{SwitchTree, TreeEnd};
pub use unicast::{Routing, Unicast, with_paths};

use crate::routes::Routes;
use crate::structure::k_binomial;
use crate::structure::postal::LAMBDA_DEFAULT;
use crate::structure::{Discipline, Edge, Recipe, RootedTree, Structure, StructureError, ordering};
use crate::topology::{Link, Topology};
use crate::updown::UpDown;
use wormcast_wire::{HostId, SwitchId};

/// Bytes of a message that one packet carries unless said otherwise: what a frame of 1500
/// bytes has left after the worm header (12), the route a session keeps room for (20),
/// and the headers of a data packet that is forwarded (12 + 10 + 2; wire/SPEC.md §2,
/// §5).
pub const PAYLOAD_BYTES_DEFAULT: u32 = 1444;

/// What is to be planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRequest {
    /// Scheme with its parameters.
    pub scheme: Scheme,
    /// Host that sends.
    pub source: HostId,
    /// Members, in any order; the source is one of them.
    pub members: Vec<HostId>,
    /// Order the scheme works on. Unless given: CCO for k-binomial trees, dimension
    /// order for them on tori and meshes; for U-torus and M_d-torus dimension order, for
    /// S-torus and M_u-torus along the Hamiltonian path; ascending for all others. A
    /// rooted tree is always ascending, M_d-torus always in dimension order.
    pub order: Option<Order>,
    /// Packets of a message, for the best k and for counting steps.
    pub packets: u32,
    /// Bytes of a message, if they were what was given.
    pub bytes: Option<u64>,
    /// Bytes of a message that one packet carries.
    pub payload_bytes: u32,
    /// In which order hosts send packets to their children.
    pub discipline: Discipline,
    /// Unicast paths between the hosts, unless the topology's default
    /// ([`Routing::default_on`]). Only [`plan_group_on`] looks at it.
    pub routing: Option<Routing>,
    /// Scheme `switch` under guard C: links of the trees that its messages take in turn, where they are
    /// chosen already. None: the tree that is best for the source.
    pub shared: Vec<Vec<Link>>,
}

impl GroupRequest {
    /// A request with one packet and every choice left open.
    pub fn new(scheme: Scheme, source: HostId, members: Vec<HostId>) -> GroupRequest {
        GroupRequest {
            scheme,
            source,
            members,
            order: None,
            packets: 1,
            bytes: None,
            payload_bytes: PAYLOAD_BYTES_DEFAULT,
            discipline: Discipline::default(),
            routing: None,
            shared: Vec::new(),
        }
    }
}

/// A group planned on a topology.
#[derive(Clone, Debug)]
pub struct GroupPlan {
    /// What was planned, with every choice filled in; members are ascending.
    pub request: GroupRequest,
    /// Members in the order the scheme works on.
    pub ordered: Vec<HostId>,
    /// Steps until the last member has the last packet. k-binomial under FPFS: T1 +
    /// (m−1)·k, which a source with fewer than k children undercuts. Switch: one for each
    /// worm of each packet, and one more with a relay.
    pub steps: u64,
    /// Who sends to whom.
    pub delivery: Delivery,
    /// What the sends cost the network, if it was asked for ([`measure_group`]).
    pub metrics: Option<Metrics>,
}

/// Who sends to whom.
#[derive(Clone, Debug)]
pub enum Delivery {
    /// Hosts forward.
    Hosts {
        /// Sends of the first packet, in the order of the schedule.
        edges: Vec<Edge>,
    },
    /// Switches replicate.
    Switches(Box<SwitchDelivery>),
}

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

/// The structure that [`plan_group`] takes the edges from; `None` if switches replicate.
///
/// # Errors
/// As [`plan_group`].
pub fn plan_structure<'r, 't: 'r>(
    paths: impl Into<Unicast<'r, 't>>,
    request: &GroupRequest,
) -> Result<Option<Structure>, GroupError> {
    let paths = paths.into();
    let (request, ordered) = complete(paths, request)?;
    build(paths, &request, &ordered)
}

/// Checks the members and fills in every choice; gives the members in their order too.
fn complete(
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

fn build(
    paths: Unicast<'_, '_>,
    request: &GroupRequest,
    ordered: &[HostId],
) -> Result<Option<Structure>, GroupError> {
    let recipe = recipe_of(paths, request, ordered)?;
    let structure = recipe.map(|recipe| recipe.structure(ordered, request.source));
    Ok(structure.transpose()?)
}

/// The shape that [`plan_group`] gives a group, and its members in the order it works on; `None` in
/// place of the shape if switches replicate.
///
/// # Errors
/// As [`plan_group`].
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

fn check_reach(paths: Unicast<'_, '_>, source: HostId, member: HostId) -> Result<(), GroupError> {
    match paths.distance(source, member)? {
        Some(_) => Ok(()),
        None => Err(StructureError::Apart {
            a: source,
            b: member,
        }
        .into()),
    }
}
