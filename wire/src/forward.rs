//! What a switch in packet mode makes of a worm by its route alone (SPEC §2, §3): UNICAST, CONTROL, GATHER with a route, and TREE.
//! The tests of engine, agent and fabric join hosts by it. Trains are dropped here, also those of one frame, which record the
//! port by which they came.

use crate::header;
use crate::worm::{self, HEADER_LENGTH, Kind, RECIRCULATE_PORT, Worm, flags};
use crate::{ETHERNET_LENGTH, PORT_ID_MAX, SWITCHES_CROSSED_MAX, tree_route};

/// A copy of a worm that leaves by a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Copy {
    pub port: u8,
    pub frame: Vec<u8>,
}

/// What a switch with every port sends for a frame; empty if it drops it, or if the route
/// does not say where to.
pub fn forward(frame: &[u8]) -> Vec<Copy> {
    let Ok(worm) = worm::decode(frame) else {
        return Vec::new();
    };
    let too_far = usize::from(worm.header.hops) >= SWITCHES_CROSSED_MAX;
    if too_far || worm.train.is_some() {
        return Vec::new();
    }
    let copy = |port: u8, route: &[u8]| Copy {
        port,
        frame: onward(frame, &worm, route),
    };
    match worm.header.kind {
        Kind::Unicast | Kind::Control | Kind::Gather => match worm.route {
            [RECIRCULATE_PORT, rest @ ..] => forward(&onward(frame, &worm, rest)),
            [port @ ..=PORT_ID_MAX, rest @ ..] => vec![copy(*port, rest)],
            _ => Vec::new(),
        },
        Kind::Tree => tree_route::branches(worm.route).map_or(Vec::new(), |branches| {
            branches
                .map(|branch| copy(branch.port.get(), &branch.copy_route()))
                .collect()
        }),
        Kind::Broadcast | Kind::Group => Vec::new(),
    }
}

/// The frame one switch further, with this route. Flags without a meaning stay; a trace stays as it is,
/// since a switch without an id adds nothing to it.
fn onward(frame: &[u8], worm: &Worm<'_>, route: &[u8]) -> Vec<u8> {
    let mut out = frame[..ETHERNET_LENGTH + HEADER_LENGTH].to_vec();
    out.extend_from_slice(route);
    let header = &mut out[ETHERNET_LENGTH..];
    header[2] = route.len() as u8;
    header[3] += 1;
    let behind = ETHERNET_LENGTH + HEADER_LENGTH + worm.route.len();
    out.extend_from_slice(&frame[behind..]);
    header::seal(&mut out[ETHERNET_LENGTH..]);
    out
}

/// Sets the CE flag of a worm that is about to wait in a long queue.
pub fn mark(frame: &mut [u8]) {
    if worm::decode(frame).is_ok() {
        let worm = &mut frame[ETHERNET_LENGTH..];
        worm[1] |= flags::CE;
        header::seal(worm);
    }
}
