//! Why there is no structure.

use std::fmt;

use crate::topology::list;
use wormcast_wire::HostId;

/// Why there is no structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StructureError {
    /// A group needs one member at least.
    NoMembers,
    /// A member given twice.
    MemberTwice {
        /// The member.
        host: HostId,
    },
    /// A host that is not a member.
    NotMember {
        /// The host.
        host: HostId,
        /// The members.
        members: Vec<HostId>,
    },
    /// A limit of 0 on the children of a host, or on the length of a chain.
    NoChildren {
        /// Which parameter.
        parameter: &'static str,
    },
    /// A parameter outside its bounds.
    Outside {
        /// Which parameter.
        parameter: &'static str,
        /// What it is.
        value: u32,
        /// The least it may be.
        least: u32,
        /// The most it may be.
        most: u32,
    },
    /// Rings that do not hold the members.
    Rings {
        /// How many members each ring is said to have.
        rings: Vec<usize>,
        /// How many there are.
        members: usize,
    },
    /// Two members without a way between them.
    Apart {
        /// One member.
        a: HostId,
        /// The other.
        b: HostId,
    },
    /// Edges that make no rooted tree.
    NotATree {
        /// What is wrong.
        reason: String,
    },
    /// An order that needs coordinates, on a topology that has none.
    NoGrid,
    /// A scheme that needs coordinates, on a topology that has none.
    SchemeNeedsGrid {
        /// The scheme.
        scheme: &'static str,
    },
    /// Dimension-order paths, on a topology without coordinates.
    RoutingNeedsGrid,
    /// There is no scheme, variant or order of that name.
    UnknownName {
        /// What was to be named.
        what: &'static str,
        /// What was asked for.
        name: String,
        /// What there is.
        choices: &'static [&'static str],
    },
}

impl fmt::Display for StructureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use StructureError::*;
        match self {
            NoMembers => write!(f, "group has no members; it needs at least one"),
            MemberTwice { host } => write!(f, "host {host} is given twice as a member"),
            NotMember { host, members } => {
                write!(
                    f,
                    "host {host} is not a member; members are {}",
                    list(members)
                )
            }
            NoChildren { parameter } => {
                write!(f, "{parameter} is 0; it is 1 at least")
            }
            Outside {
                parameter,
                value,
                least,
                most,
            } => write!(f, "{parameter} {value} is outside {least} to {most}"),
            Rings { rings, members } => write!(
                f,
                "rings of {rings:?} members do not hold the {members} there are"
            ),
            Apart { a, b } => write!(f, "members {a} and {b} cannot reach each other"),
            NotATree { reason } => write!(f, "edges make no rooted tree: {reason}"),
            NoGrid => f.write_str(
                "dimension or hamiltonian order needs a torus or mesh; orders for any topology \
                 are id, cco, random",
            ),
            SchemeNeedsGrid { scheme } => write!(
                f,
                "scheme {scheme} goes by coordinates, and this topology has none; it needs a \
                 torus or mesh. Schemes for any topology are repeat, circuit, tree, k-binomial, \
                 postal, switch"
            ),
            RoutingNeedsGrid => f.write_str(
                "dimension-order paths need a torus or mesh; on any topology there are osud, \
                 tree-only",
            ),
            UnknownName {
                what,
                name,
                choices,
            } => {
                write!(
                    f,
                    "there is no {what} \"{name}\"; choices are {}",
                    choices.join(", ")
                )
            }
        }
    }
}

impl std::error::Error for StructureError {}
