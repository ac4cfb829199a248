//! The one network interface the agent sits on: what it is, and how frames get in and out.

mod interface;
mod lldp;
mod namespace;
mod poller;
mod socket;
mod wake;

pub use interface::{
    Interface, InterfaceError, MacAddress, WORM_MTU_BYTES_MAX, WORM_MTU_BYTES_MIN,
};
pub use lldp::{LLDP_TTL_S, Prover, build_lldp_frame};
pub use namespace::Namespace;
pub use poller::Poller;
pub use socket::{
    BATCH_FRAMES_MAX, PacketSocket, RECEIVE_BUFFER_BYTES, ReceiveError, SEND_BUFFER_BYTES,
    SendBlocked, SocketError,
};
pub use wake::{Ready, WakeHandle, Waker};
