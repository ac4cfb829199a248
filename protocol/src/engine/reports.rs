//! What a member has still to report of messages, and what was reported to it.

use super::SessionKey;
use crate::event::Unread;
use std::collections::{BTreeMap, BTreeSet};
use wormcast_wire::{HostId, Seq};

/// Reports of members that the shell has not taken. More are dropped and counted; the
/// members repeat theirs, and no outcome depends on one.
pub const UNREAD_MAX: usize = 1024;

/// Reports in both directions.
#[derive(Default)]
pub(super) struct Reports {
    /// Streams with a report due to their origins, and whether it is that they are read slowly.
    pub(super) due: BTreeMap<SessionKey, bool>,
    /// Messages whose place in the order is asked of a host, or that are said to be next to one, by group and origin and
    /// that host: the life of the stream, the first packet, whether it is next.
    pub(super) orders_due: BTreeMap<(SessionKey, HostId), (u32, Seq, bool)>,
    /// Reports of members to this host.
    pub(super) notices: BTreeSet<Unread>,
}

impl Reports {
    pub fn is_due(&self) -> bool {
        !self.due.is_empty() || !self.orders_due.is_empty()
    }
}
