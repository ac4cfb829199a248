//! What an engine tells of itself: counters, pools, and who lags.

use super::Engine;
use crate::session::{Behind, Session, StreamLag};
use crate::statistics::{Counters, SessionStatistics};
use wormcast_wire::{BufferClass, GroupId, HostId};

impl Engine {
    /// How many messages took each of the routes to a host, in the order of the routes; by host.
    /// Those of a host count from when they were set.
    pub fn routes_taken(&self) -> impl Iterator<Item = (HostId, &[u64])> + '_ {
        let all = self.shared.unicast.iter();
        all.map(|(host, turns)| (*host, turns.taken()))
    }

    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// Counters of each stream, by group and origin.
    pub fn statistics(&self) -> impl Iterator<Item = (GroupId, HostId, &SessionStatistics)> {
        self.sessions
            .iter()
            .map(|((group, origin), session)| (*group, *origin, &session.statistics))
    }

    /// Packets of a stream that were sent again, here and, as far as members reported theirs up the structure, below;
    /// none if this host knows no such stream.
    pub fn sent_again(&self, group: GroupId, origin: HostId) -> Option<u64> {
        let statistics = &self.sessions.get(&(group, origin))?.statistics;
        Some(statistics.retransmissions + statistics.retransmissions_below)
    }

    /// Children that have not confirmed all that this host has of a stream, in the order of the plan; none if this
    /// host knows no such stream. It looks at each packet that waits for a confirmation.
    pub fn behind(&self, group: GroupId, origin: HostId) -> impl Iterator<Item = Behind> + '_ {
        let session = self.sessions.get(&(group, origin));
        session.into_iter().flat_map(Session::behind)
    }

    /// How far this host is with a stream, and its children as far as it knows; none if it knows no such stream.
    pub fn lag(&self, group: GroupId, origin: HostId) -> Option<StreamLag> {
        self.sessions.get(&(group, origin)).map(Session::lag)
    }

    /// Origins of whose streams to a group this host knows.
    pub fn origins(&self, group: GroupId) -> impl Iterator<Item = HostId> + '_ {
        let sessions = self.sessions.of_group(group);
        sessions.map(|((_, origin), _)| *origin)
    }

    /// A stream that rests though it has something to do: there is none. For tests; it looks at all streams.
    #[doc(hidden)]
    pub fn forgotten(&self) -> Option<(GroupId, HostId)> {
        self.sessions.forgotten(&self.shared, self.now)
    }

    /// Streams that rest. For tests.
    #[doc(hidden)]
    pub fn resting(&self) -> usize {
        self.sessions.resting()
    }

    /// No stream rests until the next poll. For tests.
    #[doc(hidden)]
    pub fn wake_all(&mut self) {
        self.sessions.wake_all();
    }

    pub fn pool_bytes(&self, class: BufferClass) -> usize {
        self.shared.pools.used(class)
    }

    /// Bytes that a buffer pool may hold.
    pub fn pool_bytes_max(&self, class: BufferClass) -> usize {
        self.shared.pools.limit(class)
    }

    /// Most bytes there ever were in a buffer pool.
    pub fn pool_peak_bytes(&self, class: BufferClass) -> usize {
        self.shared.pools.peak(class)
    }
}
