//! Why paths make no TREE route, and why bytes are none.

use crate::tree_route::BRANCHES_MAX;
use crate::{HostId, PORT_ID_MAX, SWITCHES_CROSSED_MAX};
use thiserror::Error;

/// Why paths make no TREE route.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TreeEncodeError {
    /// A path has to cross a switch at least.
    #[error("path to host {host} is empty; it needs one port for each switch crossed")]
    EmptyPath { host: HostId },
    /// A worm would be dropped for its hops.
    #[error(
        "path to host {host} crosses {switches} switches; \
         a worm crosses at most {SWITCHES_CROSSED_MAX}"
    )]
    PathTooLong {
        host: HostId,
        /// How many switches it crosses.
        switches: usize,
    },
    /// Byte 254 or 255.
    #[error("path to host {host} has byte {byte}; ports are 0 to {PORT_ID_MAX}")]
    NotAPort { host: HostId, byte: u8 },
    /// The second path passes or ends where the first one ends.
    #[error("path {path:?} ends at host {first}, but the path to host {second} goes there too")]
    PathsOverlap {
        /// Host at the end of the first path.
        first: HostId,
        /// Host at the end of the second path.
        second: HostId,
        path: Vec<u8>,
    },
}

/// Why a switch drops a TREE route whole. Offsets are into the route, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TreeDecodeError {
    /// No byte at all: a worm without a route does not belong at a switch.
    #[error("route is empty; a tree route has a branch and the marker 255 at least")]
    Empty,
    /// The marker, and no branch before it.
    #[error("tree route has no branches; it needs 1 to {BRANCHES_MAX}")]
    NoBranches,
    /// The route ends where a port, a length or the marker should be.
    #[error("tree route ends at byte {offset}, without the marker 255")]
    NoMarker { offset: usize },
    /// A sub-route that would end after the route.
    #[error("length {length} at byte {offset} is more than the {left} bytes left")]
    LengthPastEnd {
        /// Where the length byte is.
        offset: usize,
        length: u8,
        /// How many bytes there are.
        left: usize,
    },
    #[error("{count} bytes after the marker 255, from byte {offset}; there may be none")]
    BytesAfterMarker {
        /// Where the first of them is.
        offset: usize,
        count: usize,
    },
    /// More branches at a switch than [`BRANCHES_MAX`].
    #[error("branch at byte {offset} is one too many; a switch takes {BRANCHES_MAX}")]
    TooManyBranches {
        /// Where the first is that is too many.
        offset: usize,
    },
    /// 254, or 255 within a sub-route.
    #[error("byte {byte} at byte {offset} is no port; ports are 0 to {PORT_ID_MAX}")]
    NotAPort { offset: usize, byte: u8 },
    /// A port that is not above the one before: out of order, or given twice.
    #[error("port {port} at byte {offset} follows port {after}; ports ascend")]
    NotAscending { offset: usize, port: u8, after: u8 },
}
