//! What is to be planned.

use super::order::Order;
use super::scheme::Scheme;
use super::unicast::Routing;
use crate::structure::Discipline;
use crate::topology::Link;
use wormcast_wire::HostId;

/// Bytes of a message that one packet carries by default: what a frame of 1500
/// bytes has left after the worm header (12), the route a session keeps room for (20),
/// and the headers of a data packet that is forwarded (12 + 10 + 2; wire/SPEC.md §2,
/// §5).
pub const PAYLOAD_BYTES_DEFAULT: u32 = 1444;

/// What is to be planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRequest {
    pub scheme: Scheme,
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
    /// ([`Routing::default_on`]). Only [`super::plan_group_on`] looks at it.
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
