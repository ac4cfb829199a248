//! Topologies, deadlock-free routes and multicast structures.
//!
//! Pure: no IO, no clock, no threads; the same input gives the same output. IDs and
//! bounds are those of the wire (wire/SPEC.md). Short names of papers: WORM (Gerla,
//! Palnati, Walton, SIGCOMM '96), PACKET (Kesavan, Panda, ICPP '97), ITB (Flich et al.
//! 2000), TORUS (Oral, George 2003), NIC (Yu, Buntinas, Panda 2003).
//!
//! - [`topology`], [`generate`]: what is wired to what
//! - [`updown`], [`routes`]: up\*/down\* and routes for each pair of hosts
//! - [`intransit`]: minimal paths that hosts on the way re-inject
//! - [`group`]: a scheme with its parameters on a topology, what it costs there; dimension-order paths of tori and meshes
//! - [`structure`]: circuits, trees and chains over the hosts of a group

pub mod digraph;
pub mod generate;
pub mod group;
pub mod intransit;
pub mod nested_json;
pub mod routes;
pub mod structure;
pub mod topology;
pub mod updown;
