//! What becomes of what comes from above, and what this host does not believe at once.

use wormcast_wire::HostId;

/// What the parent or the origin may say that this host does not believe at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// The stream has another life.
    Stream(u32),
    /// The group has gone on without this host.
    Ahead,
    /// The first packet that matters comes before the one this host starts with.
    Behind,
}

/// How a DATA packet came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub sender: HostId,
    /// What it says of `stable` counts.
    pub stable_counts: bool,
    /// In a worm with CE.
    pub marked: bool,
    /// In a worm that switches copy.
    pub copied: bool,
}

/// What becomes of a PDU from above, before anything of it is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// It is taken; what it says of `stable` only if it comes from the parent or the
    /// origin.
    Taken {
        /// What it says of `stable` counts.
        stable_counts: bool,
    },
    /// The stream is to be opened anew as the PDU says.
    OpenAnew,
}
