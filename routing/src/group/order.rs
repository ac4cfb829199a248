//! Orders of members that a group may ask for.

use super::GroupError;
use crate::structure::{StructureError, ordering};
use crate::topology::Topology;
use crate::updown::UpDown;
use wormcast_wire::HostId;

/// An order of the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Ascending by id.
    Id,
    /// By depth-first order of the switches (PACKET §4.3.2).
    Cco,
    /// By coordinates, on a torus or mesh.
    Dimension,
    /// Along a Hamiltonian path, on a torus or mesh.
    Hamiltonian,
    /// At random: what the others are compared with.
    Random {
        /// Seed; the same one gives the same order.
        seed: u64,
    },
}

impl Order {
    pub const NAMES: &'static [&'static str] = &["id", "cco", "dimension", "hamiltonian", "random"];

    pub const fn name(self) -> &'static str {
        match self {
            Order::Id => "id",
            Order::Cco => "cco",
            Order::Dimension => "dimension",
            Order::Hamiltonian => "hamiltonian",
            Order::Random { .. } => "random",
        }
    }

    /// The order of that name; `ascending` is `id`, and `random` has seed 0.
    ///
    /// # Errors
    /// [`StructureError::UnknownName`].
    pub fn from_name(name: &str) -> Result<Order, StructureError> {
        match name {
            "id" | "ascending" => Ok(Order::Id),
            "cco" => Ok(Order::Cco),
            "dimension" => Ok(Order::Dimension),
            "hamiltonian" => Ok(Order::Hamiltonian),
            "random" => Ok(Order::Random { seed: 0 }),
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
    /// A member that is no host; an order by coordinates without coordinates.
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
            Order::Hamiltonian => Ok(ordering::hamiltonian(topology, members)?),
            Order::Random { seed } => Ok(ordering::random(members, seed)),
        }
    }
}
