//! The tests of this crate in one program: each file beside this one is a module.

mod pdu_vectors;
mod support;
mod tree_routes;
mod worm_vectors;
