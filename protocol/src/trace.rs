//! Traces: along which ways probes go, and what came of them.

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

/// What is to be traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRequest {
    /// Number of the trace; its probes carry it.
    pub trace: u32,
    /// How often it has been asked for, this time included.
    pub attempt: u16,
    /// Which messages.
    pub of: Traced,
    /// Of several routes to a host this one only, by its place.
    pub route: Option<u8>,
}

/// Whose way is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traced {
    /// What this host sends to another.
    ToHost(HostId),
    /// What this host sends of the messages of an origin to a group.
    InGroup {
        /// The group.
        group: GroupId,
        /// The origin.
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
    /// What its route means.
    pub kind: Kind,
    /// The route.
    pub route: Vec<u8>,
    /// Those it leads to.
    pub to: Vec<HostId>,
    /// UNICAST: place and share among the routes to the host.
    pub alternative: Option<(u8, u32)>,
    /// Place of the tree that it goes along, where a group has several.
    pub tree: Option<u8>,
}

/// A probe that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Number of the trace.
    pub trace: u32,
    /// Number of the way.
    pub way: u16,
    /// Which attempt it is of.
    pub attempt: u16,
    /// The host that sent it.
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

/// Why nothing is traced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// To itself.
    #[error("host {0} is this host: no worm goes there")]
    ToItself(HostId),
    /// There is no route.
    #[error("there is no route to host {to}; there are routes to {hosts}")]
    NoRoute {
        /// Where to.
        to: HostId,
        /// Where there are routes to.
        hosts: Choices,
    },
    /// There are fewer routes.
    #[error("there is no route {route} to host {to}; its routes are 0 to {last}")]
    NoAlternative {
        /// Where to.
        to: HostId,
        /// The route asked for.
        route: u8,
        /// The last there is.
        last: usize,
    },
    /// This host is no member of the group.
    #[error("this host is no member of group {group}; it is one of {groups}")]
    NoGroup {
        /// The group.
        group: GroupId,
        /// Its groups.
        groups: Choices,
    },
    /// The origin is none of the group.
    #[error("host {origin} sends nothing to group {group}; its members are {members}")]
    NoOrigin {
        /// The origin asked for.
        origin: HostId,
        /// The group.
        group: GroupId,
        /// Who may be one.
        members: Choices,
    },
    /// Too many ways.
    #[error(
        "{count} ways are to be traced, at most {WAYS_MAX} can be; ask for one route of each, such as route 0"
    )]
    TooMany {
        /// How many.
        count: usize,
    },
    /// No room for a record.
    #[error("a route of {length} bytes leaves no room for a record in frames of {mtu} bytes")]
    NoRoom {
        /// Bytes of the route.
        length: usize,
        /// The MTU.
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
