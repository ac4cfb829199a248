//! The tests of this crate in one program: each file beside this one is a module.

mod accepted;
mod balance;
#[path = "../examples/accepted/blocking.rs"]
mod blocking;
#[path = "../examples/accepted/cases.rs"]
mod cases;
mod forwarding;
mod generators;
mod graphs;
mod groups;
mod in_transit;
mod in_transit_alternatives;
mod k_binomial;
#[path = "../examples/accepted/network.rs"]
mod network;
#[path = "../examples/accepted/options.rs"]
mod options;
#[path = "../examples/accepted/outcome.rs"]
mod outcome;
mod postal;
mod proofs;
#[path = "../examples/accepted/queueing.rs"]
mod queueing;
mod shared_trees;
mod structures;
mod switches;
mod topology;
mod torus_schemes;
#[path = "../examples/accepted/traffic.rs"]
mod traffic;
mod transit;
mod tree_routes;
mod updown;
