//! Traces: along which ways probes go, and what came of them.

mod engine;

use core::fmt;
use std::collections::VecDeque;
use wormcast_wire::trace::Record;
use wormcast_wire::worm::Kind;
use wormcast_wire::{GroupId, HostId};

/// Ways of one trace at one host; a request for more is refused.
pub const WAYS_MAX: usize = 1024;
/// Arrivals that the shell has not taken. More are dropped and counted; probes are sent again.
pub const OBSERVATIONS_MAX: usize = 1024;
/// Choices that an error names.
const NAMED_MAX: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRequest {
    /// Number of the trace; its probes carry it.
    pub trace: u32,
    /// How often it has been asked for, this time included.
    pub attempt: u16,
    pub of: Traced,
    /// Of several routes to a host this one only, by its place.
    pub route: Option<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traced {
    /// What this host sends to another.
    ToHost(HostId),
    /// What this host sends of the messages of an origin to a group.
    InGroup {
        group: GroupId,
        origin: HostId,
        /// Length of the messages, which may decide how they travel; `None`: as the longest do.
        bytes: Option<u64>,
    },
}

/// A way of messages: a worm that leaves this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// Its number within the trace at this host.
    pub number: u16,
    pub kind: Kind,
    pub route: Vec<u8>,
    pub to: Vec<HostId>,
    /// UNICAST: place and share among the routes to the host.
    pub alternative: Option<(u8, u32)>,
    /// Place of the tree that it goes along, where a group has several.
    pub tree: Option<u8>,
}

/// A probe that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    pub trace: u32,
    pub way: u16,
    pub attempt: u16,
    pub sender: HostId,
    /// Switches crossed.
    pub hops: u8,
    /// Records that it had room for.
    pub room: u8,
    /// Records that it brought, whether believed or not.
    pub count: u8,
    /// A switch marked it: congestion experienced.
    pub marked: bool,
    /// Records that are believed, oldest first.
    pub records: Vec<Record>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    #[error("host {0} is this host: no worm goes there")]
    ToItself(HostId),
    #[error("there is no route to host {to}; there are routes to {hosts}")]
    NoRoute { to: HostId, hosts: Choices },
    /// There are fewer routes.
    #[error("there is no route {route} to host {to}; its routes are 0 to {last}")]
    NoAlternative { to: HostId, route: u8, last: usize },
    /// This host is no member of the group.
    #[error("this host is no member of group {group}; it is one of {groups}")]
    NoGroup { group: GroupId, groups: Choices },
    /// The origin is none of the group.
    #[error("host {origin} sends nothing to group {group}; its members are {members}")]
    NoOrigin {
        origin: HostId,
        group: GroupId,
        members: Choices,
    },
    #[error(
        "{count} ways are to be traced, at most {WAYS_MAX} can be; ask for one route of each, such as route 0"
    )]
    TooMany { count: usize },
    /// No room for a record.
    #[error("a route of {length} bytes leaves no room for a record in frames of {mtu} bytes")]
    NoRoom {
        /// Bytes of the route.
        length: usize,
        mtu: usize,
    },
}

/// Numbers that may be chosen; as text the first few of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choices(&'static str, Vec<u16>);

impl fmt::Display for Choices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Choices(what, numbers) = self;
        if numbers.is_empty() {
            return write!(f, "no {what}");
        }
        let named = numbers.iter().take(NAMED_MAX).map(u16::to_string);
        let named: Vec<String> = named.collect();
        write!(f, "{what}s {}", named.join(", "))?;
        match numbers.len().checked_sub(NAMED_MAX) {
            None | Some(0) => Ok(()),
            Some(more) => write!(f, " and {more} more"),
        }
    }
}

pub(crate) fn choices(what: &'static str, numbers: impl Iterator<Item = u16>) -> Choices {
    Choices(what, numbers.collect())
}

/// Probes on their way out, and those that came.
#[derive(Debug, Default)]
pub(crate) struct Probes {
    /// Frames to be sent: those of the last trace.
    pub(crate) due: VecDeque<Vec<u8>>,
    pub(crate) seen: VecDeque<Observation>,
}

impl Probes {
    pub fn is_due(&self) -> bool {
        !self.due.is_empty()
    }
}
