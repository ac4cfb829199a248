//! The network of WORM, Fig. 3, and what it should carry.

use crate::trains::Received;
use wormcast_routing::topology::{Host, Link, Parts, Switch, Topology};
use wormcast_wire::{HostId, PortId, SwitchId};

fn port(number: u8) -> PortId {
    PortId::new(number).expect("a port")
}

/// WORM, Fig. 3: switches A to E are 0 to 4, links A-B, A-C, B-E, C-D and the cross link D-E. Hosts: 0 at
/// A, 1 at E (b), 2 at D (c), 3 at C.
pub fn figure_3() -> Topology {
    let switch = |id| Switch {
        id: SwitchId(id),
        ports: 4,
    };
    let host = |id, at| Host {
        id: HostId(id),
        switch: SwitchId(at),
        port: port(0),
        transit: true,
    };
    let link = |a, a_port, b, b_port| Link {
        a: SwitchId(a),
        a_port: port(a_port),
        b: SwitchId(b),
        b_port: port(b_port),
    };
    let parts = Parts {
        switches: (0..5).map(switch).collect(),
        hosts: vec![host(0, 0), host(1, 4), host(2, 3), host(3, 2)],
        links: vec![
            link(0, 1, 1, 1),
            link(0, 2, 2, 1),
            link(1, 2, 4, 1),
            link(2, 2, 3, 1),
            link(3, 2, 4, 2),
        ],
        ..Parts::default()
    };
    Topology::new(parts).expect("a network")
}

impl Received {
    /// All of a worm of so many frames.
    pub fn whole(frames: u16) -> Received {
        Received {
            positions: (0..frames).collect(),
            aborted: false,
        }
    }
}
