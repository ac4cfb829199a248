//! The one network interface the agent sits on: what it is, and how frames get in and out.

mod batch;
mod interface;
mod lldp;
mod namespace;
mod opening;
mod poller;
mod socket;
mod wake;

pub use batch::{BATCH_FRAMES_MAX, batch_frames};
pub use interface::{
    Interface, InterfaceError, MacAddress, WORM_MTU_BYTES_MAX, WORM_MTU_BYTES_MIN,
};
pub use lldp::{LLDP_TTL_S, Prover, build_lldp_frame};
pub use namespace::Namespace;
pub use opening::{RECEIVE_BUFFER_BYTES, SEND_BUFFER_BYTES, SocketError};
pub use poller::Poller;
pub use socket::{PacketSocket, ReceiveError, SendBlocked};
pub use wake::{Ready, WakeHandle, Waker};
