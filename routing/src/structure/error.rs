//! Why there is no structure.

use std::fmt;

use crate::ids::HostId;
use crate::topology::list;

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
    /// A limit of 0 on the children of a host.
    NoChildren {
        /// Which parameter.
        parameter: &'static str,
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
                write!(
                    f,
                    "{parameter} is 0; a host needs room for 1 child at least"
                )
            }
            Apart { a, b } => write!(f, "members {a} and {b} cannot reach each other"),
            NotATree { reason } => write!(f, "edges make no rooted tree: {reason}"),
            NoGrid => {
                write!(
                    f,
                    "dimension order needs a torus or mesh; orders for any topology are id, cco"
                )
            }
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
