//! Why a received frame was not taken.

use thiserror::Error;
use wormcast_wire::DecodeError;

macro_rules! rejects {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Why a received frame was not taken. Every reason has a counter
        /// ([`crate::Counters::rejects`]).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
        pub enum Reject {
            $($(#[$doc])* #[error($name)] $variant,)*
        }

        impl Reject {
            /// All reasons; a reason's place here is the place of its counter.
            pub const ALL: &'static [Reject] = &[$(Reject::$variant,)*];

            /// The name of its counter.
            pub fn name(self) -> &'static str {
                match self {
                    $(Reject::$variant => $name,)*
                }
            }
        }
    };
}

rejects! {
    /// The frame ends before what its headers announce.
    Truncated = "truncated",
    /// EtherType other than 0x88B5.
    NotWorm = "not_worm",
    /// Worm version other than 1.
    WormVersion = "worm_version",
    WormKind = "worm_kind",
    WormChecksum = "worm_checksum",
    /// A worm that a host does not take: one with route left, GROUP, CONTROL.
    NotForHosts = "not_for_hosts",
    /// Payload is no host PDU (EtherType other than 0x88B6).
    NotHostPdu = "not_host_pdu",
    /// A GATHER worm that is neither ACK nor request nor answer.
    GatherOp = "gather_op",
    PduChecksum = "pdu_checksum",
    /// PDU version other than 1.
    PduVersion = "pdu_version",
    PduType = "pdu_type",
    /// A PDU whose fields contradict each other or its length.
    PduMalformed = "pdu_malformed",
    /// This host has no plan for the group.
    UnknownGroup = "unknown_group",
    /// The origin, or the sender, has no place in the group's structure.
    NotMember = "not_member",
    /// DATA or STATUS of a stream this host itself originates.
    OwnStream = "own_stream",
    /// A PDU that names this host as its sender.
    OwnSource = "own_source",
    /// What only the parent or the origin can say, from another member.
    NotParent = "not_parent",
    /// A PDU of an earlier life of the origin or of the child.
    StaleIncarnation = "stale_incarnation",
    /// Another life of a stream, announced for the first time; accepted when it is repeated.
    StreamUnproven = "stream_unproven",
    /// Another memory of a child, announced for the first time; accepted when it is repeated.
    ReceiverUnproven = "receiver_unproven",
    /// That the group has gone on without this host, or that it starts too late, announced for
    /// the first time; accepted when it is repeated.
    StableUnproven = "stable_unproven",
    /// An answer about a stream this host does not have.
    UnknownStream = "unknown_stream",
    /// An answer from a host that is not a child in this stream.
    NotChild = "not_child",
    /// A gathered ACK that is not for this host, or from another source than the plan names.
    GatheredUnasked = "gathered_unasked",
    /// A gathered ACK of another epoch or stream.
    GatheredStale = "gathered_stale",
    /// DATA further ahead than the reception window ([`crate::WINDOW_PACKETS_MAX`]).
    BeyondWindow = "beyond_window",
    /// An acknowledgement of packets that were never sent, or one that contradicts itself.
    AckImpossible = "ack_impossible",
    /// A NACK for a packet that was never sent.
    NackImpossible = "nack_impossible",
    /// A REPAIR request for packets that were never sent, for none, for the origin or for
    /// the one that asks.
    RepairImpossible = "repair_impossible",
    /// No room in the packet's buffer pool; a NACK was sent.
    NoBuffer = "no_buffer",
    /// No room, where there are no buffer classes ([`crate::Limits::unclassed`]): its payload is lost.
    Overflow = "overflow",
    /// No room for another stream ([`crate::Limits::sessions`]).
    SessionsFull = "sessions_full",
    /// DATA larger than this host's MTU allows.
    TooLong = "too_long",
    /// The structure of the stream cannot be used ([`crate::Event::StructureRejected`]).
    Structure = "structure",
}

impl From<DecodeError> for Reject {
    fn from(error: DecodeError) -> Reject {
        match error {
            DecodeError::Truncated => Reject::Truncated,
            DecodeError::NotWorm => Reject::NotWorm,
            DecodeError::WormVersion => Reject::WormVersion,
            DecodeError::WormKind => Reject::WormKind,
            DecodeError::WormChecksum => Reject::WormChecksum,
            DecodeError::GatherOp => Reject::GatherOp,
            DecodeError::PduChecksum => Reject::PduChecksum,
            DecodeError::PduVersion => Reject::PduVersion,
            DecodeError::PduType => Reject::PduType,
            DecodeError::PduMalformed => Reject::PduMalformed,
        }
    }
}
