//! What the reader of a connection, and threads with files, have for its writer.

use super::descriptors::Descriptor;
use super::window::Window;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use wormcast_agent_core::api::{ApiError, Notice};

/// For the writer of a connection. What a reader orders before it asks the data plane comes before the answer.
#[derive(Debug)]
pub(in crate::local) enum Order {
    /// A file is to be read once the data plane has answered this request with what its sender's window has left.
    Read { id: u64, reading: Reading },
    /// All of the file is read, or no more of it will be.
    Sent {
        id: u64,
        handle: u32,
        window: Arc<Window>,
        /// Bytes and digest.
        result: Result<(u64, String), ApiError>,
    },
    /// The content of a message goes into a file.
    Write {
        id: u64,
        handle: u32,
        writing: Writing,
    },
    /// Whether the file can be written.
    Placed {
        id: u64,
        handle: u32,
        result: Result<(), ApiError>,
    },
    /// So much of it is written; told again when this has been taken.
    Written(Progress),
    /// Something for the client about a file that is written.
    Tell { handle: u32, notice: Notice },
    /// A request that gives messages up. What is on its way of them goes nowhere.
    GivenUp { id: u64, going: Going },
}

/// What a request gives up.
#[derive(Clone, Copy, Debug)]
pub(in crate::local) enum Going {
    Message(u32),
    /// All messages of a receiver.
    Receiver(u32),
}

/// What is read, and what for.
#[derive(Debug)]
pub(in crate::local) struct Reading {
    pub(in crate::local) descriptor: Descriptor,
    /// All that it has.
    pub(in crate::local) bytes: u64,
    /// The sender.
    pub(in crate::local) handle: u32,
    pub(in crate::local) window: Arc<Window>,
}

/// Where content goes.
#[derive(Debug)]
pub(in crate::local) struct Writing {
    pub(in crate::local) descriptor: Descriptor,
    /// How much content there will be, if that is known.
    pub(in crate::local) bytes: Option<u64>,
}

/// So much is written.
#[derive(Debug)]
pub(in crate::local) struct Progress {
    pub(super) handle: u32,
    pub(super) bytes: u64,
    /// Set while this waits to be taken.
    pub(super) waits: Arc<AtomicBool>,
}
