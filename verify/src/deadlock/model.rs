//! What switches and hosts do with a worm that is blocked.

use std::str::FromStr;

use super::DeadlockError;
use wormcast_wire::SwitchId;

/// What a worm that branches does while a branch is blocked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Branching {
    /// Every branch goes on by itself: each switch has room for the whole worm (packet
    /// mode).
    #[default]
    Independent,
    /// The other branches stop too, hold their channels and fill them with IDLE (WORM
    /// §3, scheme A).
    Coupled,
    /// The other branches end what they have sent as a fragment, give up their channels
    /// and resume later; every multicast starts at the root, one after the other (WORM
    /// §3, scheme B).
    Interrupted,
    /// As coupled; but a unicast worm that is blocked by a channel filled with IDLE is
    /// flushed, and its source sends it again (WORM §3, scheme C).
    Flushed,
}

impl Branching {
    pub const ALL: [Branching; 4] = [
        Branching::Independent,
        Branching::Coupled,
        Branching::Interrupted,
        Branching::Flushed,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Branching::Independent => "independent",
            Branching::Coupled => "coupled",
            Branching::Interrupted => "interrupted",
            Branching::Flushed => "flushed",
        }
    }

    /// The letter of the scheme in WORM §3.
    const fn letter(self) -> Option<&'static str> {
        match self {
            Branching::Independent => None,
            Branching::Coupled => Some("A"),
            Branching::Interrupted => Some("B"),
            Branching::Flushed => Some("C"),
        }
    }
}

impl FromStr for Branching {
    type Err = DeadlockError;

    /// By name, or by the letter of the scheme.
    fn from_str(name: &str) -> Result<Branching, DeadlockError> {
        let known =
            |branching: &Branching| branching.name() == name || branching.letter() == Some(name);
        let choices = "independent, coupled (A), interrupted (B), flushed (C)";
        let found = Branching::ALL.into_iter().find(known);
        found.ok_or_else(|| unknown("branches", name, choices))
    }
}

/// Room for worms in the adapters of hosts that pass them on: members that forward
/// (WORM §4) and in-transit hosts (ITB §III.B).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Buffers {
    /// What finds no room spills to host memory, which never fills.
    #[default]
    Spill,
    /// Two classes a host, each of which can fill (WORM §4). An in-transit host uses
    /// class 1 as long as the hosts a worm passes ascend, class 2 from the first descent.
    Classes,
    /// One pool a host, which can fill.
    Shared,
}

impl Buffers {
    pub const ALL: [Buffers; 3] = [Buffers::Spill, Buffers::Classes, Buffers::Shared];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Buffers::Spill => "spill",
            Buffers::Classes => "classes",
            Buffers::Shared => "shared",
        }
    }
}

impl FromStr for Buffers {
    type Err = DeadlockError;

    fn from_str(name: &str) -> Result<Buffers, DeadlockError> {
        let found = Buffers::ALL.into_iter().find(|known| known.name() == name);
        found.ok_or_else(|| unknown("buffers", name, "spill, classes, shared"))
    }
}

/// How a host passes a worm on. Without a difference where worms spill to host memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forwarding {
    /// A host accepts a worm only if it has a buffer for all of it; else the sender,
    /// which keeps it, tries again (WORM §4). No channel is held meanwhile.
    #[default]
    Store,
    /// A worm that cannot go on stays where it is: it holds the channels up to a host
    /// until it has the buffer there and the channels out (WORM §4, Fig. 4).
    CutThrough,
}

impl Forwarding {
    pub const ALL: [Forwarding; 2] = [Forwarding::Store, Forwarding::CutThrough];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Forwarding::Store => "store",
            Forwarding::CutThrough => "cut-through",
        }
    }
}

impl FromStr for Forwarding {
    type Err = DeadlockError;

    fn from_str(name: &str) -> Result<Forwarding, DeadlockError> {
        let found = Forwarding::ALL
            .into_iter()
            .find(|known| known.name() == name);
        found.ok_or_else(|| unknown("forwarding", name, "store, cut-through"))
    }
}

fn unknown(what: &'static str, name: &str, choices: &'static str) -> DeadlockError {
    DeadlockError::UnknownName {
        what,
        name: name.to_owned(),
        choices,
    }
}

/// What is assumed of switches and hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// Branches of a multicast worm while one is blocked.
    pub branching: Branching,
    /// Room in adapters.
    pub buffers: Buffers,
    /// How hosts pass worms on.
    pub forwarding: Forwarding,
    /// Where broadcasts, and with [`Branching::Interrupted`] all multicasts, start; each
    /// part of a split fabric chooses its own unless this lies in it.
    pub root: Option<SwitchId>,
}

impl From<Branching> for Model {
    fn from(branching: Branching) -> Model {
        Model {
            branching,
            ..Model::default()
        }
    }
}
