//! GATHER worms (`wire/SPEC.md` §3.2) of one group, as frames.

pub use wormcast_wire::gather::{Announcement, Op, flags};
use wormcast_wire::{GroupId, HostId, gather, worm};

pub const GROUP: GroupId = GroupId(7);
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// The worm, with a route.
pub fn frame_of(announced: &Announcement, route: &[u8], source: u16) -> Vec<u8> {
    let mut frame = vec![0; gather::FRAME_LENGTH_MAX];
    let length = gather::encode(&mut frame, MAC, (HostId(source), 1), route, announced);
    frame.truncate(length);
    frame
}

/// Of a worm that came to its end; its checksum is right.
pub fn read(frame: &[u8]) -> Announcement {
    let worm = worm::decode(frame).expect("a worm");
    assert!(worm.route.is_empty(), "its route is used up");
    gather::decode(&worm).expect("a GATHER worm")
}

/// Whether a number is before another, modulo 2^32.
pub fn before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) >= 1 << 31
}
