//! The tests of this crate in one program: each file beside this one is a module.

mod active;
mod choice;
mod forged;
mod gathered;
mod hostile;
mod lag;
mod long_routes;
mod many_streams;
mod measure;
mod mtu;
mod named;
mod pair;
mod probes;
mod returned;
mod settled;
mod star;
mod tree_limit;
mod waking;
