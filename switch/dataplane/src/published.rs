//! What became of what services beside the controllers publish.

use serde::Serialize;

/// What became of messages and connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PublishedCounts {
    /// Messages published, whoever heard them.
    pub published: u64,
    /// Messages handed to subscribers, each once for each of them.
    pub delivered: u64,
    /// Messages that found the queue of a subscriber full.
    pub dropped: u64,
    /// Connections closed because there were too many, or because they were none of a
    /// subscriber.
    pub refused: u64,
    pub subscribers: u64,
}

/// What happened to samples that were not sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LearnCounts {
    /// Samples in buffers that were sent.
    pub sent: u64,
    /// The same sample waits to be sent or acknowledged.
    pub duplicates: u64,
    /// Samples whose acknowledgement was no longer waited for, for want of room.
    pub forgotten: u64,
}

/// What became of notifications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NotificationCounts {
    /// Messages, of all switches with the same socket.
    #[serde(flatten)]
    pub published: PublishedCounts,
    pub learned: LearnCounts,
}

/// What became of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EventLogCounts {
    #[serde(flatten)]
    pub published: PublishedCounts,
    /// Records of packets, each a half of the pipeline, that were not published because
    /// packets came faster.
    pub records_lost: u64,
}
