//! A structure of a group without its source: what a controller tells the agents, who each apply it to
//! any source.

use std::sync::Arc;

use super::{CircuitVariant, RootedTree, Structure, StructureError, TreeVariant};
use wormcast_wire::HostId;

/// Members of a group, where switches copy, that all acknowledge to the origin directly.
pub const ACK_DIRECT_MEMBERS: usize = 8;
/// Most members whose ACKs one host takes in a larger group, whatever they cost: they come up a tree of
/// members. One who takes ACKs of others sends a few more than one who does not, so five of them cost an
/// origin no more than the seven others of a group of eight.
pub const ACK_FAN_IN_MOST: usize = 5;

/// The shape of a group's structures, with all choices made. Together with the order of the members it
/// gives the structure for any source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipe {
    Repeat,
    /// [`Structure::acknowledgement`]: switches copy, and ACKs come up a tree.
    Copied {
        /// Most members whose ACKs one host takes. 0, of a controller that says nothing of it: all in a
        /// group of [`ACK_DIRECT_MEMBERS`], [`ACK_FAN_IN_MOST`] in a larger one.
        fan_in: u32,
    },
    Circuit(CircuitVariant),
    Tree(Arc<RootedTree>, TreeVariant),
    KBinomial {
        /// Most children of a host.
        k: u32,
    },
    Postal {
        /// Send times until a message has been received.
        lambda: u32,
    },
    UTorus,
    STorus,
    MdTorus {
        /// How many members each ring has, in their order.
        rings: Vec<usize>,
    },
    MuTorus {
        /// Members of a chain.
        r: u32,
    },
}

impl Recipe {
    /// The structure for one source over the members in this order. (A rooted tree has its members in
    /// itself, ascending.)
    ///
    /// # Errors
    /// As those of the structure it names.
    pub fn structure(
        &self,
        order: impl Into<Arc<[HostId]>>,
        source: HostId,
    ) -> Result<Structure, StructureError> {
        match self {
            Recipe::Repeat => Structure::repeat(order, source),
            Recipe::Copied { fan_in } => {
                let order = order.into();
                let fan_in = match (*fan_in, order.len()) {
                    (0, members) if members <= ACK_DIRECT_MEMBERS => members,
                    (0, _) => ACK_FAN_IN_MOST,
                    (fan_in, _) => fan_in as usize,
                };
                Structure::acknowledgement(order, source, fan_in)
            }
            Recipe::Circuit(variant) => Structure::circuit(order, source, *variant),
            Recipe::Tree(tree, variant) => Structure::tree(tree.clone(), source, *variant),
            Recipe::KBinomial { k } => Structure::k_binomial(order, source, *k),
            Recipe::Postal { lambda } => Structure::postal(order, source, *lambda),
            Recipe::UTorus => Structure::u_torus(order, source),
            Recipe::STorus => Structure::s_torus(order, source),
            Recipe::MdTorus { rings } => Structure::md_torus(order, source, rings),
            Recipe::MuTorus { r } => Structure::mu_torus(order, source, *r),
        }
    }
}
