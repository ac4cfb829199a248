//! The local API as messages (API.md): how programs on this host send and receive.

mod frame;
mod message;

pub use frame::{CONTROL_BYTES_MAX, DATA_BYTES_MAX, Frame, FrameError};
pub use message::{
    API_VERSION, AbortReason, ApiError, Arrival, ErrorCode, GroupSelector, MemberOutcome, Notice,
    NumberedRequest, Request, StreamProgress, WrittenFile,
};
