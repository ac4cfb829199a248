//! A switch after SPEC §3, small: what it does to a worm, and nothing else.

use wormcast_wire::worm::{self, HEADER_LENGTH, Header, Kind, MARKER_END, PORT_RECIRCULATE, flags};
use wormcast_wire::{ETHERNET_LENGTH, SWITCHES_CROSSED_MAX, tree_route};

/// A copy of a worm that leaves by a port.
#[derive(Debug)]
pub struct Copy {
    /// The port.
    pub port: u8,
    /// The frame.
    pub frame: Vec<u8>,
}

/// What the switch makes of a frame; empty if it drops it.
pub fn forward(frame: &[u8]) -> Vec<Copy> {
    let Ok(worm) = worm::decode(frame) else {
        return Vec::new();
    };
    if usize::from(worm.header.hops) >= SWITCHES_CROSSED_MAX {
        return Vec::new();
    }
    let header = Header {
        hops: worm.header.hops + 1,
        ..worm.header
    };
    match header.kind {
        Kind::Unicast => match worm.route.split_first() {
            Some((&port, rest)) if port < PORT_RECIRCULATE => {
                vec![Copy {
                    port,
                    frame: rebuild(frame, &header, rest, worm.payload),
                }]
            }
            Some((&PORT_RECIRCULATE, rest)) => {
                forward(&rebuild(frame, &header, rest, worm.payload))
            }
            _ => Vec::new(),
        },
        Kind::Tree => {
            let Some(branches) = tree_route::decode(worm.route) else {
                return Vec::new();
            };
            branches
                .into_iter()
                .map(|(port, sub_route)| {
                    let mut route = sub_route.to_vec();
                    if !route.is_empty() {
                        route.push(MARKER_END);
                    }
                    Copy {
                        port,
                        frame: rebuild(frame, &header, &route, worm.payload),
                    }
                })
                .collect()
        }
        Kind::Broadcast | Kind::Group | Kind::Control => Vec::new(),
    }
}

fn rebuild(frame: &[u8], header: &Header, route: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0; ETHERNET_LENGTH + HEADER_LENGTH + route.len()];
    out[..ETHERNET_LENGTH].copy_from_slice(&frame[..ETHERNET_LENGTH]);
    worm::encode_worm(&mut out[ETHERNET_LENGTH..], header, route);
    out.extend_from_slice(payload);
    out
}

/// Sets the CE flag of a worm that is about to wait in a long queue.
pub fn mark(frame: &mut [u8]) {
    if let Ok(worm) = worm::decode(frame) {
        let header = Header {
            flags: worm.header.flags | flags::CE,
            ..worm.header
        };
        let route = worm.route.to_vec();
        worm::encode_worm(&mut frame[ETHERNET_LENGTH..], &header, &route);
    }
}
