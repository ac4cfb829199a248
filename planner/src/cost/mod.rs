//! What a multicast costs: constants, and a closed form of the time it takes.
//!
//! - [`Costs`]: what hosts, links and switches take, in units of time
//! - [`Traffic`]: a plan laid out on the channels of the topology
//! - [`crate::replay`]: every packet over every channel, event by event
//! - [`estimate`]: the same in closed form, from one packet and the loads of the channels
//! - [`fit`](fit()): the other way round, costs from messages that were timed
//!
//! Replay and estimate share one model of a network: a host is one processor that
//! receives and sends packets in turn (LogP with o and g; TORUS §5, PACKET §3), a channel
//! serves packets first come first served, a switch is a delay. A host passes on packet
//! after packet, each to all its children (FPFS, PACKET §3.2), and holds a bounded number
//! of them, so that a slow host holds back those above it. Nothing is lost.

mod acknowledgement;
mod costs;
mod error;
mod estimate;
mod fit;
mod fit_json;
mod json;
mod model;
pub(crate) mod timing;
pub(crate) mod traffic;

pub use costs::{Channel, ChannelLoad, Costs};
pub use error::CostError;
pub use estimate::{Estimate, estimate};
pub use fit::{Fit, Found, Timed, fit};
pub use model::CostModel;
pub use traffic::{Message, Traffic};
