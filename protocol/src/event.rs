//! What the engine tells the shell, and what the application side returns.

use crate::time::Instant;
use wormcast_wire::{BufferClass, FailReason, GroupId, HostId, Seq};

/// A frame in the caller's buffer, ready to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Bytes of the frame, Ethernet header included.
    pub length: usize,
    /// Buffer class of the worm; the shell may map it to a priority.
    pub class: BufferClass,
    /// Bytes that the frame may have in a train (wire/SPEC.md §2.3); 0: it is to be a worm of its own, because it
    /// says something else than a packet for the first time.
    pub train_bytes_max: usize,
}

/// What the engine tells the shell. `group` and `origin` name the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Member: bytes or the end of a message can be read. Sent once until a read
    /// has found nothing more, and again whenever the end of a message has come.
    Readable { group: GroupId, origin: HostId },
    /// Member, of a group with [`crate::GroupPlan::reports_begin`]: another message has begun to arrive.
    /// Sent once until [`crate::Engine::message_starts`] is called, and where messages were passed over here.
    Begun { group: GroupId, origin: HostId },
    /// Ordered group, for the sequencer: a member does not know the place of a message, or a member that
    /// it is next.
    OrderWanted {
        group: GroupId,
        from: HostId,
        is_next: bool,
        origin: HostId,
        /// In which life of its stream.
        stream: u32,
        /// Its first packet.
        start: Seq,
    },
    /// Origin: `write` accepts bytes again after it accepted fewer than given.
    Writable { group: GroupId },
    /// Origin: what became of a message at each member is known.
    Stable {
        group: GroupId,
        /// Counts the messages of this origin to this group, from 0.
        message: u64,
        /// Members of the plan that have the whole message and whose applications have confirmed it.
        confirmed: Vec<HostId>,
        /// Members of the group, at any time since the message began, that do not
        /// have it, ascending.
        failed: Vec<(HostId, FailReason)>,
    },
    /// Origin, after `finish`: all that was written is stable.
    Finished { group: GroupId },
    /// A child that owes an answer has been silent for
    /// [`crate::Timing::member_timeout_us`]. Nothing follows from it here: a paused
    /// host goes on where it was. The shell tells the controller. Sent once for each
    /// silence.
    MemberSilent {
        group: GroupId,
        origin: HostId,
        host: HostId,
        /// Milliseconds since it was last heard.
        silent_ms: u64,
    },
    /// A child is given up after [`crate::Timing::member_exclude_us`] of silence, or
    /// cannot be reached for want of a route. Sent once for each plan and child.
    MemberFailed {
        group: GroupId,
        origin: HostId,
        host: HostId,
        reason: FailReason,
        /// Milliseconds since it was last heard.
        silent_ms: u64,
    },
    /// Origin: a member will not have this message. Its host lives.
    MemberAborted {
        group: GroupId,
        /// The message, counted from 0.
        message: u64,
        host: HostId,
        reason: FailReason,
    },
    /// Member: the message being read breaks off, its rest will not come; drop what
    /// has been read of it. The next read starts with another message.
    MessageLost {
        group: GroupId,
        origin: HostId,
        reason: LossReason,
    },
    /// The structure that the plan gives for a stream cannot be used: more children
    /// than [`crate::Limits::children`].
    StructureRejected {
        group: GroupId,
        origin: HostId,
        children: usize,
        limit: usize,
    },
}

impl Event {
    /// Whether it is repeated, or can be learnt otherwise, so that the shell may miss it.
    pub(crate) fn only_informs(&self) -> bool {
        match self {
            Event::OrderWanted { .. }
            | Event::MemberSilent { .. }
            | Event::MemberFailed { .. }
            | Event::MemberAborted { .. }
            | Event::StructureRejected { .. } => true,
            Event::Readable { .. }
            | Event::Begun { .. }
            | Event::Writable { .. }
            | Event::Stable { .. }
            | Event::Finished { .. }
            | Event::MessageLost { .. } => false,
        }
    }
}

/// Origin: nobody at a member takes a message that has begun to arrive there, or it is taken slower than it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unread {
    pub group: GroupId,
    /// The message, counted from 0.
    pub message: u64,
    pub host: HostId,
    /// There is a receiver. It takes the message slower than it comes.
    pub slow: bool,
}

/// What an origin knows of a message at a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberState {
    /// Its application has confirmed it.
    Confirmed,
    /// It will not have it.
    Failed(FailReason),
    /// Nothing has come that says so.
    Unconfirmed,
}

/// Why a message breaks off at a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossReason {
    /// The origin's application cancelled it.
    Cancelled,
    OriginRestarted,
    /// The group went on without this member (it was taken for dead).
    LeftBehind,
    /// The group was removed, or the origin is no longer a member.
    GroupChanged,
}

/// What [`crate::Engine::read`] put into the caller's buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// Bytes written to the buffer. All are of one message.
    pub length: usize,
    /// They are the last of the message; [`crate::Engine::confirm`] or
    /// [`crate::Engine::abort`] must follow before more is read. (A message may be
    /// empty: then length is 0.)
    pub end_of_message: bool,
}

/// How far a stream has come at this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    pub origin: HostId,
    /// Which life of it.
    pub stream: u32,
    /// The first packet of the message that is being read, or that is read next. At the origin, of
    /// what it writes next.
    pub next: Seq,
    /// All members hold, and have read, everything before, as far as this host knows.
    pub stable: Seq,
    /// Another one where packets before were passed over at this host. What is read while it stays is without a gap.
    pub unbroken: Unbroken,
}

/// A part of a stream without a gap at this host: the memory of the stream in which it began, and which of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unbroken(pub u32, pub u32);

/// When the packets came of a message that is being read, as far as it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageArrival {
    pub first: Instant,
    pub last: Instant,
    /// Bytes in those that came after the first moment.
    pub later_bytes: u64,
}

/// Why the application's call is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UseError {
    /// This host is not a member of the group.
    #[error("this host is not a member of group {group}")]
    UnknownGroup { group: GroupId },
    /// Nothing has come from that origin.
    #[error("nothing has come from host {origin} in group {group}")]
    UnknownOrigin { group: GroupId, origin: HostId },
    /// As many streams as [`crate::Limits::sessions`] are in use.
    #[error("{limit} streams are in use, the most this host takes")]
    SessionsFull { limit: usize },
    /// The end of the message before waits for room in the window, so that no other can
    /// be ended; [`Event::Writable`] tells when.
    #[error("the end of the message before waits for room in the window of group {group}")]
    EndWaits { group: GroupId },
    /// The end of a message has been read and not confirmed.
    #[error("the end of a message has been read; confirm or abort it first")]
    NotConfirmed,
    /// There is no message end to confirm.
    #[error("no end of a message has been read since the last confirmation")]
    NothingToConfirm,
    /// The plan gives this host no structure to send with.
    #[error("the plan of group {group} has no structure with this host as origin")]
    NoStructure { group: GroupId },
}
