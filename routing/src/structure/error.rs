//! Why there is no structure.

use crate::topology::list;
use wormcast_wire::HostId;

/// Why there is no structure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StructureError {
    /// A group needs one member at least.
    #[error("group has no members; it needs at least one")]
    NoMembers,
    #[error("host {host} is given twice as a member")]
    MemberTwice { host: HostId },
    /// A host that is not a member.
    #[error("host {host} is not a member; members are {}", list(.members))]
    NotMember { host: HostId, members: Vec<HostId> },
    /// A limit of 0 on the children of a host, or on the length of a chain.
    #[error("{parameter} is 0; it is 1 at least")]
    NoChildren { parameter: &'static str },
    /// A parameter outside its bounds.
    #[error("{parameter} {value} is outside {least} to {most}")]
    Outside {
        parameter: &'static str,
        value: u32,
        /// The least it may be.
        least: u32,
        /// The most it may be.
        most: u32,
    },
    /// Rings that do not hold the members.
    #[error("rings of {rings:?} members do not hold the {members} there are")]
    Rings {
        /// How many members each ring is said to have.
        rings: Vec<usize>,
        members: usize,
    },
    /// Two members without a way between them.
    #[error("members {a} and {b} cannot reach each other")]
    Apart { a: HostId, b: HostId },
    /// Edges that make no rooted tree.
    #[error("edges make no rooted tree: {reason}")]
    NotATree { reason: String },
    /// An order that needs coordinates, on a topology that has none.
    #[error(
        "dimension or hamiltonian order needs a torus or mesh; orders for any topology \
                 are id, cco, random"
    )]
    NoGrid,
    /// A scheme that needs coordinates, on a topology that has none.
    #[error(
        "scheme {scheme} goes by coordinates, and this topology has none; it needs a \
                 torus or mesh. Schemes for any topology are repeat, circuit, tree, k-binomial, \
                 postal, switch"
    )]
    SchemeNeedsGrid { scheme: &'static str },
    /// Dimension-order paths, on a topology without coordinates.
    #[error(
        "dimension-order paths need a torus or mesh; on any topology there are osud, \
                 tree-only"
    )]
    RoutingNeedsGrid,
    /// There is no scheme, variant or order of that name.
    #[error("there is no {what} \"{name}\"; choices are {}", .choices.join(", "))]
    UnknownName {
        what: &'static str,
        name: String,
        choices: &'static [&'static str],
    },
}
