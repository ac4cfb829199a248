//! The tests of this crate in one program: each file beside this one is a module.

mod deadlock;
mod deadlock_buffers;
mod deadlock_by_force;
mod deadlock_certificate;
mod deadlock_schemes;
mod deadlock_simulated;
mod foreign;
mod foreign_files;
mod foreign_mistakes;
mod format_mistakes;
mod formats;
mod formats_of_tools;
#[path = "../../routing/tests/graphs/mod.rs"]
mod graphs;
