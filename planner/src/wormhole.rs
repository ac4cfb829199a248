//! How switches pass worms on: in packet mode, or in wormhole mode (wire/SPEC.md §3.1), where a channel carries one
//! worm at a time.
//!
//! That is a default action. Where switches say STOP and GO, each port also has a replication group in wormhole mode by
//! which a frame that waits brings one to the neighbour, and where multicasts are interrupted one by which a frame that waits ends the
//! fragment before it. Groups come before the default action that needs them, and go after it, as of
//! any table ([`Stage`](crate::Stage)).

use wormcast_verify::deadlock::Branching;
use wormcast_wire::PortId;

use crate::model::copies::{Copies, Replica};
use crate::model::ids::{INSTANCE_PLAIN, MGID_HOLD, MGID_INTERRUPT, Mgid, PortSet};
use crate::model::state::{TableDefault, action};

pub(crate) const TABLE_WORMHOLE: &str = "ingress.wormhole";

/// Frames of a channel that wait, from which on its neighbour is sent STOP.
pub const STOP_FRAMES: u16 = 16;
/// Those down to which it is sent GO.
pub const GO_FRAMES: u16 = 8;
/// Frames of a channel that may wait. What a neighbour has in its queues when it is sent STOP has room beside
/// those that wait.
pub const HELD_MAX: u16 = 128;
/// Least time between two frames of a worm that leave, µs: no longer than a frame takes on any link.
const GAP_US: u32 = 0;
/// How long a STOP holds, µs.
pub const STOP_US: u32 = 10_000;
/// Silence of a multicast after which unicast that waits for it is flushed; where multicasts are interrupted, the time
/// after which the head of one keeps the outputs that it has, µs.
const IDLE_US: u32 = 2_000;
/// Silence of any worm after which its outputs go to those that wait, µs.
const SILENT_US: u32 = 1_000_000;
/// Frames of a train that an agent sends, at most. A train that waits has room at one switch before that says STOP.
pub const TRAIN_FRAMES: u16 = 8;

/// How switches pass worms on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Switching {
    /// Each frame goes as soon as it can.
    #[default]
    Packet,
    /// A worm has its channels for itself.
    Wormhole(WormholeScheme),
}

/// What a worm does that finds an output taken (WORM §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WormholeScheme {
    /// It waits. Where all routes are along the tree, that is the first scheme.
    Plain,
    /// Unicast yields to a multicast that waits elsewhere: scheme C.
    Flush,
    /// A multicast that is blocked gives all its outputs up: the second scheme. All multicasts go by the root.
    Interrupt,
    /// UNICAST worms wait for each other. All others hold no channel, and trains of them are refused; nobody says STOP
    /// (p4src/CONTRACT.md, Tofino). To a switch this is plain waiting.
    Unicast,
}

const _: () = assert!(TRAIN_FRAMES < STOP_FRAMES && TRAIN_FRAMES > 1);

impl Switching {
    /// That of these names: those of REST and `wormcast switching`, and `unicast`, as the controller calls plain waiting
    /// where switches can do no more; `None`: there is none.
    pub fn named(mode: &str, scheme: Option<&str>) -> Option<Switching> {
        match (mode, scheme) {
            ("packet", None) => Some(Switching::Packet),
            ("wormhole", Some("plain")) => Some(Switching::Wormhole(WormholeScheme::Plain)),
            ("wormhole", Some("interrupt")) => Some(Switching::Wormhole(WormholeScheme::Interrupt)),
            ("wormhole", Some("flush")) => Some(Switching::Wormhole(WormholeScheme::Flush)),
            ("wormhole", Some("unicast")) => Some(Switching::Wormhole(WormholeScheme::Unicast)),
            _ => None,
        }
    }

    /// What the other branches of a TREE worm do while one is blocked.
    pub fn branching(self) -> Branching {
        match self {
            Switching::Packet | Switching::Wormhole(WormholeScheme::Unicast) => {
                Branching::Independent
            }
            Switching::Wormhole(WormholeScheme::Plain) => Branching::Coupled,
            Switching::Wormhole(WormholeScheme::Flush) => Branching::Flushed,
            Switching::Wormhole(WormholeScheme::Interrupt) => Branching::Interrupted,
        }
    }

    /// Whether TREE worms have to go by the root of the spanning tree: there they take turns, and nobody waits in a
    /// circle (WORM §3, the second scheme).
    pub(crate) fn goes_by_root(self) -> bool {
        self == Switching::Wormhole(WormholeScheme::Interrupt)
    }

    /// Frames of a train at most where agents send trains: of a worm of any kind, and of a UNICAST worm.
    pub(crate) fn train_frames(self) -> (u16, u16) {
        match self {
            Switching::Wormhole(WormholeScheme::Unicast) => (1, TRAIN_FRAMES),
            _ => (TRAIN_FRAMES, TRAIN_FRAMES),
        }
    }
}

/// What a switch does with worms, one at the root or another.
pub(crate) fn wormhole_default(switching: Switching, is_root: bool) -> TableDefault {
    let scheme = |scheme| match scheme {
        WormholeScheme::Plain | WormholeScheme::Unicast => 1,
        WormholeScheme::Flush => 2,
        WormholeScheme::Interrupt if !is_root => 3,
        WormholeScheme::Interrupt => 4,
    };
    let action = match switching {
        Switching::Packet => action("ingress.packet_mode", &[]),
        Switching::Wormhole(chosen) => action(
            "ingress.wormhole_mode",
            &[
                ("gap_us", GAP_US.into()),
                ("go_frames", GO_FRAMES.into()),
                ("held_max", HELD_MAX.into()),
                ("idle_us", IDLE_US.into()),
                ("scheme", scheme(chosen)),
                ("silent_us", SILENT_US.into()),
                ("stop_frames", STOP_FRAMES.into()),
                ("stop_us", STOP_US.into()),
            ],
        ),
    };
    TableDefault {
        table: TABLE_WORMHOLE.into(),
        action,
    }
}

/// By each port a frame that waits goes round, and a copy of it becomes STOP or GO.
pub(crate) fn hold_groups(
    switching: Switching,
    ports: u16,
) -> impl Iterator<Item = (Mgid, Copies)> {
    let ports = match switching {
        Switching::Packet | Switching::Wormhole(WormholeScheme::Unicast) => 0,
        Switching::Wormhole(_) => ports,
    };
    let ports = (0..ports).filter_map(|port| PortId::new(u8::try_from(port).ok()?));
    ports.map(move |port| {
        let copies = Copies::new([port, PortId::RECIRCULATE].map(plain));
        (Mgid(MGID_HOLD + u16::from(port.get())), copies)
    })
}

/// A frame of a multicast that is interrupted goes round, and copies of it end the fragment at all that TREE worms reach.
pub(crate) fn interrupt_group(
    switching: Switching,
    all: Option<&Copies>,
) -> Option<(Mgid, Copies)> {
    let all = all.filter(|_| switching.goes_by_root())?.iter().cloned();
    let copies = all.chain([plain(PortId::RECIRCULATE)]);
    Some((MGID_INTERRUPT, Copies::new(copies)))
}

fn plain(port: PortId) -> Replica {
    Replica {
        port,
        instance: INSTANCE_PLAIN,
        backups: PortSet::default(),
    }
}
