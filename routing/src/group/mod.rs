//! Plans for groups: a scheme with all its parameters, applied to a topology.

mod error;
mod json;
mod legal_tree;
mod switch_bound;
mod switch_delivery;
mod switch_parameters;
mod switch_root;
mod switch_table;
mod switch_tree;
mod switch_trees;
mod switches;

pub use error::GroupError;
pub use switch_delivery::{GroupEntry, Relay, SwitchCost, SwitchDelivery};
pub use switch_parameters::{Guard, SwitchMode, SwitchParameters};
pub use switch_root::{mean_links_by_root, multicast_root};
pub use switch_tree::{SwitchTree, TreeEnd};

use crate::ids::HostId;
use crate::routes::Routes;
use crate::structure::k_binomial;
use crate::structure::{
    CircuitVariant, Edge, FAN_OUT_DEFAULT, RootedTree, Structure, StructureError, TreeVariant,
    ordering,
};
use crate::topology::Topology;
use crate::updown::UpDown;

/// How a group's messages reach its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// The source sends to each.
    Repeat,
    /// Hamiltonian circuit.
    Circuit(CircuitVariant),
    /// Rooted tree with at most so many children a host.
    Tree {
        /// How it is used.
        variant: TreeVariant,
        /// Most children of a host.
        fan_out: u32,
    },
    /// k-binomial tree; without `k`, the k that is best for the packets.
    KBinomial {
        /// Most children of a host.
        k: Option<u32>,
    },
    /// The switches replicate.
    Switch(SwitchParameters),
}

impl Scheme {
    /// Names of all of them.
    pub const NAMES: &'static [&'static str] =
        &["repeat", "circuit", "tree", "k-binomial", "switch"];

    /// The scheme of that name, with default parameters.
    ///
    /// # Errors
    /// [`StructureError::UnknownName`].
    pub fn from_name(name: &str) -> Result<Scheme, StructureError> {
        match name {
            "repeat" => Ok(Scheme::Repeat),
            "circuit" => Ok(Scheme::Circuit(CircuitVariant::OmitLast)),
            "tree" => Ok(Scheme::Tree {
                variant: TreeVariant::Unordered,
                fan_out: FAN_OUT_DEFAULT,
            }),
            "k-binomial" => Ok(Scheme::KBinomial { k: None }),
            "switch" => Ok(Scheme::Switch(SwitchParameters::default())),
            _ => Err(StructureError::UnknownName {
                what: "scheme",
                name: name.to_owned(),
                choices: Scheme::NAMES,
            }),
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Scheme::Repeat => "repeat",
            Scheme::Circuit(_) => "circuit",
            Scheme::Tree { .. } => "tree",
            Scheme::KBinomial { .. } => "k-binomial",
            Scheme::Switch(_) => "switch",
        }
    }
}

/// An order of the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Ascending by id.
    Id,
    /// By depth-first order of the switches (PACKET §4.3.2).
    Cco,
    /// By coordinates, on a torus or mesh.
    Dimension,
}

impl Order {
    /// Names of all of them.
    pub const NAMES: &'static [&'static str] = &["id", "cco", "dimension"];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Order::Id => "id",
            Order::Cco => "cco",
            Order::Dimension => "dimension",
        }
    }

    /// The order of that name; `ascending` is `id`.
    ///
    /// # Errors
    /// [`StructureError::UnknownName`].
    pub fn from_name(name: &str) -> Result<Order, StructureError> {
        match name {
            "id" | "ascending" => Ok(Order::Id),
            "cco" => Ok(Order::Cco),
            "dimension" => Ok(Order::Dimension),
            _ => Err(StructureError::UnknownName {
                what: "order",
                name: name.to_owned(),
                choices: Order::NAMES,
            }),
        }
    }

    /// Puts members into this order.
    ///
    /// # Errors
    /// A member that is no host; dimension order without coordinates.
    pub fn apply(
        self,
        topology: &Topology,
        updown: &UpDown,
        members: &[HostId],
    ) -> Result<Vec<HostId>, GroupError> {
        for &member in members {
            topology.host(member)?;
        }
        match self {
            Order::Id => Ok(ordering::by_id(members)),
            Order::Cco => Ok(ordering::cco(topology, updown, members)?),
            Order::Dimension => Ok(ordering::by_dimension(topology, members)?),
        }
    }
}

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
    /// order for them on tori and meshes, ascending for all others. A rooted tree is
    /// always ascending.
    pub order: Option<Order>,
    /// Packets of a message, for the best k and for counting steps.
    pub packets: u32,
}

/// A group planned on a topology.
#[derive(Clone, Debug)]
pub struct GroupPlan {
    /// What was planned, with every choice filled in; members are ascending.
    pub request: GroupRequest,
    /// Members in the order the scheme works on.
    pub ordered: Vec<HostId>,
    /// Steps until the last member has the last packet. k-binomial: T1 + (m−1)·k, which
    /// a source with fewer than k children undercuts. Switch: one for each worm of each
    /// packet, and one more with a relay.
    pub steps: u64,
    /// Who sends to whom.
    pub delivery: Delivery,
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

/// Plans a group. `routes` are the unicast routes that hops are counted on, and give the
/// spanning tree.
///
/// # Errors
/// Members that are none, or cannot reach each other; parameters outside their bounds.
pub fn plan_group(routes: &Routes<'_>, request: &GroupRequest) -> Result<GroupPlan, GroupError> {
    let (request, ordered) = complete(routes, request)?;
    if let Scheme::Switch(parameters) = request.scheme {
        return switches::plan_switch(routes, request, parameters, ordered);
    }
    let structure = build(routes, &request, &ordered)?.expect("hosts forward");
    let steps = match request.scheme {
        Scheme::KBinomial { k: Some(k) } => k_binomial::steps(ordered.len(), request.packets, k),
        _ => structure.steps(request.packets),
    };
    Ok(GroupPlan {
        request,
        ordered,
        steps,
        delivery: Delivery::Hosts {
            edges: structure.edges(),
        },
    })
}

/// The structure that [`plan_group`] takes the edges from; `None` if switches replicate.
///
/// # Errors
/// As [`plan_group`].
pub fn plan_structure(
    routes: &Routes<'_>,
    request: &GroupRequest,
) -> Result<Option<Structure>, GroupError> {
    let (request, ordered) = complete(routes, request)?;
    build(routes, &request, &ordered)
}

/// Checks the members and fills in every choice; gives the members in their order too.
fn complete(
    routes: &Routes<'_>,
    request: &GroupRequest,
) -> Result<(GroupRequest, Vec<HostId>), GroupError> {
    let mut request = request.clone();
    request.members.sort_unstable();
    for &member in &request.members {
        check_reach(routes, request.source, member)?;
    }
    if let Scheme::KBinomial { k: k @ None } = &mut request.scheme {
        *k = Some(k_binomial::optimal_k(
            request.members.len(),
            request.packets,
        ));
    }
    let order = match (request.scheme, request.order) {
        (Scheme::Tree { .. } | Scheme::Switch(_), _) => Order::Id,
        (_, Some(order)) => order,
        (Scheme::KBinomial { .. }, None) if routes.topology().grid().is_some() => Order::Dimension,
        (Scheme::KBinomial { .. }, None) => Order::Cco,
        (_, None) => Order::Id,
    };
    request.order = Some(order);
    let ordered = order.apply(routes.topology(), routes.updown(), &request.members)?;
    // The checks of members and source that every scheme makes.
    Structure::repeat(ordered.clone(), request.source)?;
    Ok((request, ordered))
}

fn build(
    routes: &Routes<'_>,
    request: &GroupRequest,
    ordered: &[HostId],
) -> Result<Option<Structure>, GroupError> {
    let source = request.source;
    let structure = match request.scheme {
        Scheme::Repeat => Structure::repeat(ordered, source)?,
        Scheme::Circuit(variant) => Structure::circuit(ordered, source, variant)?,
        Scheme::Tree { variant, fan_out } => {
            Structure::tree(plan_tree(routes, ordered, fan_out)?, source, variant)?
        }
        Scheme::KBinomial { k } => Structure::k_binomial(ordered, source, k.unwrap_or(1))?,
        Scheme::Switch(_) => return Ok(None),
    };
    Ok(Some(structure))
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

fn check_reach(routes: &Routes<'_>, source: HostId, member: HostId) -> Result<(), GroupError> {
    match routes.distance(source, member)? {
        Some(_) => Ok(()),
        None => Err(StructureError::Apart {
            a: source,
            b: member,
        }
        .into()),
    }
}
