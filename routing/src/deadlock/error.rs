//! Why routes cannot be checked.

use std::fmt;

use crate::topology::TopologyError;
use wormcast_wire::tree_route::TreeDecodeError;
use wormcast_wire::{HostId, PortId, SwitchId};

/// Why routes cannot be checked: they are not routes of this topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeadlockError {
    /// A switch or host that is not in the topology.
    Topology(TopologyError),
    /// There is no model of that name.
    UnknownName {
        /// What it would be: branches, buffers, forwarding.
        what: &'static str,
        /// What was asked for.
        name: String,
        /// What there is.
        choices: &'static str,
    },
    /// A unicast route that contradicts itself or the topology.
    Route {
        /// Host that sends.
        src: HostId,
        /// Host that receives.
        dst: HostId,
        /// What is wrong.
        reason: String,
    },
    /// A TREE route that a switch would drop.
    Tree {
        /// The switch.
        switch: SwitchId,
        /// Why it would.
        error: TreeDecodeError,
    },
    /// Two branches of one worm need the same channel.
    TreeMeetsItself {
        /// Switch the channel leaves.
        switch: SwitchId,
        /// Port it leaves by.
        port: PortId,
    },
    /// A port with nothing on it.
    NothingThere {
        /// The switch.
        switch: SwitchId,
        /// The port.
        port: PortId,
    },
    /// A byte that is no port, on the way of a broadcast to the root.
    NoPort {
        /// Switch it would leave.
        switch: SwitchId,
        /// The byte.
        byte: u8,
    },
    /// A broadcast that would go down from below the root.
    BroadcastBelowRoot {
        /// Where it would start.
        switch: SwitchId,
    },
    /// A worm of a group at a switch that has no entry for it.
    NoEntry {
        /// The switch.
        switch: SwitchId,
    },
    /// A multicast that does not start at the root, though all must (WORM §3, scheme B).
    NotFromRoot {
        /// Host that sends.
        src: HostId,
        /// Where it branches, or ends.
        switch: SwitchId,
        /// The root.
        root: SwitchId,
    },
    /// A plan of a group that cannot be read, or is of another topology.
    Group {
        /// Where, as in `groups[2].edges[0].class`.
        at: String,
        /// What is wrong there.
        reason: String,
    },
    /// A host that forwards what it has not received.
    ForwardsBefore {
        /// Host the message starts at.
        src: HostId,
        /// Host that forwards.
        from: HostId,
        /// Host it forwards to.
        to: HostId,
    },
}

impl From<TopologyError> for DeadlockError {
    fn from(error: TopologyError) -> DeadlockError {
        DeadlockError::Topology(error)
    }
}

impl fmt::Display for DeadlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeadlockError::Topology(error) => error.fmt(f),
            DeadlockError::UnknownName {
                what,
                name,
                choices,
            } => write!(f, "{what} cannot be \"{name}\"; choices are {choices}"),
            DeadlockError::Route { src, dst, reason } => {
                write!(f, "route from host {src} to host {dst}: {reason}")
            }
            DeadlockError::Tree { switch, error } => write!(f, "at switch {switch}: {error}"),
            DeadlockError::TreeMeetsItself { switch, port } => {
                write!(
                    f,
                    "two branches of a tree route leave switch {switch} by port {port}"
                )
            }
            DeadlockError::NothingThere { switch, port } => {
                write!(f, "nothing hangs on port {port} of switch {switch}")
            }
            DeadlockError::NoPort { switch, byte } => write!(
                f,
                "broadcast at switch {switch}: byte {byte} is no port; ports are 0 to 253"
            ),
            DeadlockError::BroadcastBelowRoot { switch } => write!(
                f,
                "broadcast goes down from switch {switch}, which is not the root"
            ),
            DeadlockError::NoEntry { switch } => write!(
                f,
                "a worm of the group reaches switch {switch}, which has no entry for it"
            ),
            DeadlockError::NotFromRoot { src, switch, root } => write!(
                f,
                "multicast of host {src} branches or ends at switch {switch} before it has \
                 passed root {root}; with interrupted branches every multicast starts there"
            ),
            DeadlockError::Group { at, reason } => write!(f, "{at}: {reason}"),
            DeadlockError::ForwardsBefore { src, from, to } => write!(
                f,
                "host {from} sends a message of host {src} to host {to} before it has received it"
            ),
        }
    }
}

impl std::error::Error for DeadlockError {}
