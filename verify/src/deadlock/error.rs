//! Why routes cannot be checked.

use wormcast_routing::topology::TopologyError;
use wormcast_wire::tree_route::TreeDecodeError;
use wormcast_wire::{HostId, PortId, SwitchId};

/// Why routes cannot be checked: they are not routes of this topology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeadlockError {
    /// A switch or host that is not in the topology.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// There is no model of that name.
    #[error("{what} cannot be \"{name}\"; choices are {choices}")]
    UnknownName {
        /// What it would be: branches, buffers, forwarding.
        what: &'static str,
        name: String,
        choices: &'static str,
    },
    /// A unicast route that contradicts itself or the topology.
    #[error("route from host {src} to host {dst}: {reason}")]
    Route {
        src: HostId,
        dst: HostId,
        reason: String,
    },
    /// A TREE route that a switch would drop.
    #[error("at switch {switch}: {error}")]
    Tree {
        switch: SwitchId,
        error: TreeDecodeError,
    },
    /// Two branches of one worm need the same channel.
    #[error("two branches of a tree route leave switch {switch} by port {port}")]
    TreeMeetsItself { switch: SwitchId, port: PortId },
    /// A port with nothing on it.
    #[error("nothing hangs on port {port} of switch {switch}")]
    NothingThere { switch: SwitchId, port: PortId },
    /// A byte that is no port, on the way of a broadcast to the root.
    #[error("broadcast at switch {switch}: byte {byte} is no port; ports are 0 to 253")]
    NoPort { switch: SwitchId, byte: u8 },
    /// A broadcast that would go down from below the root.
    #[error("broadcast goes down from switch {switch}, which is not the root")]
    BroadcastBelowRoot { switch: SwitchId },
    /// A worm of a group at a switch that has no entry for it.
    #[error("a worm of the group reaches switch {switch}, which has no entry for it")]
    NoEntry { switch: SwitchId },
    /// A multicast that does not start at the root, though all must (WORM §3, scheme B).
    #[error(
        "multicast of host {src} branches or ends at switch {switch} before it has \
                 passed root {root}; with interrupted branches every multicast starts there"
    )]
    NotFromRoot {
        src: HostId,
        /// Where it branches, or ends.
        switch: SwitchId,
        root: SwitchId,
    },
    /// A plan of a group that cannot be read, or is of another topology.
    #[error("{at}: {reason}")]
    Group {
        /// Where, as in `groups[2].edges[0].class`.
        at: String,
        reason: String,
    },
    /// A host that forwards what it has not received.
    #[error("host {from} sends a message of host {src} to host {to} before it has received it")]
    ForwardsBefore {
        /// Host the message starts at.
        src: HostId,
        from: HostId,
        to: HostId,
    },
}
