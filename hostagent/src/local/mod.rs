//! The local API: how programs on this host send and receive (API.md).

mod connection;
mod frame;
mod message;
mod server;

pub use frame::{CONTROL_BYTES_MAX, DATA_BYTES_MAX, Frame, FrameError};
pub use message::{
    API_VERSION, AbortReason, ApiError, ErrorCode, GroupSelector, MemberOutcome, Notice,
    NumberedRequest, Request, StreamProgress,
};
pub use server::{LocalServer, ServerError, SocketMode};
