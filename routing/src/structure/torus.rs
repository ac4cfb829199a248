//! Structures of NIC §5 and TORUS §3.

use std::sync::Arc;

use super::chains::Chains;
use super::recursive::Division;
use super::{CircuitVariant, Shape, Structure, StructureError, postal};
use wormcast_wire::HostId;

impl Structure {
    /// Tree of the postal model (NIC §5.4, §5.5), in which a message takes `lambda` send
    /// times to be received. The destinations keep their order, so that a child comes
    /// after its parent unless the parent is the source.
    ///
    /// # Errors
    /// No members, one twice, a source that is not among them, or a `lambda` outside 1
    /// to [`postal::LAMBDA_MAX`].
    pub fn postal(
        order: impl Into<Arc<[HostId]>>,
        source: HostId,
        lambda: u32,
    ) -> Result<Structure, StructureError> {
        let order = order.into();
        if !(1..=postal::LAMBDA_MAX).contains(&lambda) {
            return Err(StructureError::Outside {
                parameter: "lambda",
                value: lambda,
                least: 1,
                most: postal::LAMBDA_MAX,
            });
        }
        let division = Division::Postal(postal::Postal::new(order.len(), lambda));
        Structure::new(order, source, Shape::Recursive(division))
    }

    /// U-torus (TORUS §3): recursive halving of the order turned so that the source comes
    /// first; ⌈log2 n⌉ steps. In the order of [`super::ordering::by_dimension`], on dimension-order
    /// paths of a torus whose links have two virtual channels, no two messages of a step meet; with
    /// one virtual channel they seldom do.
    ///
    /// # Errors
    /// No members, one twice, or a source that is not among them.
    pub fn u_torus(
        order: impl Into<Arc<[HostId]>>,
        source: HostId,
    ) -> Result<Structure, StructureError> {
        Structure::new(order.into(), source, Shape::Recursive(Division::Halves))
    }

    /// S-torus (TORUS §3): from member to member in the order, which is
    /// [`super::ordering::hamiltonian`] on a torus; stored and forwarded at each.
    ///
    /// # Errors
    /// No members, one twice, or a source that is not among them.
    pub fn s_torus(
        order: impl Into<Arc<[HostId]>>,
        source: HostId,
    ) -> Result<Structure, StructureError> {
        Structure::circuit(order, source, CircuitVariant::OmitLast)
    }

    /// M_d-torus (TORUS §3): the source sends to one member of every ring, which passes
    /// on along its ring. `rings` holds how many members each ring has, in their order
    /// (see [`super::ordering::rings`]).
    ///
    /// # Errors
    /// No members, one twice, a source that is not among them, or rings that do not hold
    /// as many members as there are.
    pub fn md_torus(
        order: impl Into<Arc<[HostId]>>,
        source: HostId,
        rings: &[usize],
    ) -> Result<Structure, StructureError> {
        let mut structure = Structure::repeat(order, source)?;
        let members = structure.order.len();
        let in_rings = rings
            .iter()
            .try_fold(0usize, |sum, &size| sum.checked_add(size));
        if in_rings != Some(members) {
            return Err(StructureError::Rings {
                rings: rings.to_vec(),
                members,
            });
        }
        structure.shape = Shape::Chains(Chains::along_rings(structure.source, rings));
        Ok(structure)
    }

    /// M_u-torus (TORUS §3): the order, turned so that the source comes first, is cut
    /// after the source into chains of `length`; the source sends to the first of each.
    ///
    /// # Errors
    /// No members, one twice, a source that is not among them, or a length of 0.
    pub fn mu_torus(
        order: impl Into<Arc<[HostId]>>,
        source: HostId,
        length: u32,
    ) -> Result<Structure, StructureError> {
        if length == 0 {
            return Err(StructureError::NoChildren { parameter: "r" });
        }
        let mut structure = Structure::repeat(order, source)?;
        let (members, source) = (structure.order.len(), structure.source);
        structure.shape = Shape::Chains(Chains::of_length(members, source, length as usize));
        Ok(structure)
    }
}
