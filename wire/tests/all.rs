//! The tests of this crate in one program: each file beside this one is a module.

mod pdu_vectors;
#[allow(clippy::disallowed_methods, reason = "the vectors are files")]
mod support;
mod tree_routes;
mod worm_vectors;
