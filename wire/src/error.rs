//! Why bytes are no worm or no host PDU.

use thiserror::Error;

/// Why bytes are no worm or no host PDU. Its text is what the vectors and the counters call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The frame ends before what its headers announce.
    #[error("truncated")]
    Truncated,
    /// EtherType other than [`crate::ETHERTYPE_WORM`].
    #[error("not_worm")]
    NotWorm,
    /// Worm version other than 1.
    #[error("worm_version")]
    WormVersion,
    #[error("worm_kind")]
    WormKind,
    #[error("worm_checksum")]
    WormChecksum,
    /// A GATHER worm that is neither ACK nor request nor answer.
    #[error("gather_op")]
    GatherOp,
    #[error("pdu_checksum")]
    PduChecksum,
    /// PDU version other than 1.
    #[error("pdu_version")]
    PduVersion,
    #[error("pdu_type")]
    PduType,
    /// A PDU whose fields contradict each other or its length.
    #[error("pdu_malformed")]
    PduMalformed,
}
