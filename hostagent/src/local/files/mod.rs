//! Files that the agent reads or writes itself (API.md §8), so that their bytes go through no other program.
//!
//! A client hands over the descriptor of a file, or of a stream in its place. A thread for each file reads or writes; the connection's
//! reader and writer stand between it and the data plane, which knows nothing of files.

mod arrivals;
mod content;
mod descriptors;
mod order;
mod regular;
mod source;
mod stream;
mod target;
mod window;

pub(super) use arrivals::{Arrivals, Unchecked};
pub(super) use descriptors::Descriptors;
pub(super) use order::{Going, Order, Reading, Writing};
pub(super) use window::Window;
