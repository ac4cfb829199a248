//! What GATHER worms say (`wire/SPEC.md` §3.2), as bytes.

use wormcast_wire::worm::checksum;

/// The group of all of them.
pub const GROUP: u16 = 7;
/// Of an ACK: say it again.
pub const REFRESH: u8 = 1;
/// Of an answer: the branch has spoken.
pub const KNOWN: u8 = 2;

const ETHERNET: usize = 14;
const HEADER: usize = 12;
const HEADER_AND_ETHERNET: usize = ETHERNET + HEADER;
const SAID: usize = 24;
const KIND: u8 = 5;

/// What a worm asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// So much is acknowledged.
    Ack = 1,
    /// What has a branch acknowledged?
    Request = 2,
    /// That much.
    Answer = 3,
}

/// What a GATHER worm says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said {
    /// What it is.
    pub op: u8,
    /// REFRESH or KNOWN.
    pub flags: u8,
    /// Number of the origin.
    pub origin: u16,
    /// Of a request.
    pub port: u8,
    /// Of the plan.
    pub epoch: u32,
    /// Life of the stream.
    pub stream: u32,
    /// Held before this.
    pub cumulative: u32,
    /// Confirmed before this.
    pub stable: u32,
}

impl Said {
    /// The worm, with a route.
    pub fn frame(&self, route: &[u8], source: u16) -> Vec<u8> {
        let mut bytes = vec![3, 0x57, 0x4F, 0x52, 0x4D, 0, 2, 0, 0, 0, 0, 1, 0x88, 0xB5];
        bytes.extend([0x10 | KIND, 0x06, route.len() as u8, 0]);
        bytes.extend(source.to_be_bytes());
        bytes.extend([0, 1, 0, 1, 0, 0]);
        let mut body = vec![self.op, self.flags];
        body.extend(GROUP.to_be_bytes());
        body.extend(self.origin.to_be_bytes());
        body.extend([self.port, 0]);
        for number in [self.epoch, self.stream, self.cumulative, self.stable] {
            body.extend(number.to_be_bytes());
        }
        // The order in which switches sum up: a route of odd length is padded at the end.
        let mut summed = bytes[ETHERNET..].to_vec();
        summed.extend(&body);
        summed.extend(route);
        let sum = checksum(&summed);
        bytes[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&sum.to_be_bytes());
        bytes.extend(route);
        bytes.extend(body);
        bytes.resize(bytes.len().max(60), 0);
        bytes
    }

    /// Of a worm that came to its end; its checksum is right.
    pub fn read(frame: &[u8]) -> Said {
        assert_eq!(frame[ETHERNET], 0x10 | KIND, "a GATHER worm");
        assert_eq!(frame[ETHERNET + 2], 0, "its route is used up");
        let mut summed = frame[ETHERNET..HEADER_AND_ETHERNET + SAID].to_vec();
        let found = summed[10..12].to_vec();
        summed[10..12].fill(0);
        assert_eq!(checksum(&summed).to_be_bytes()[..], found, "its checksum");
        let body = &frame[HEADER_AND_ETHERNET..];
        let number = |at: usize| u32::from_be_bytes(body[at..at + 4].try_into().expect("4 bytes"));
        Said {
            op: body[0],
            flags: body[1],
            origin: u16::from_be_bytes([body[4], body[5]]),
            port: body[6],
            epoch: number(8),
            stream: number(12),
            cumulative: number(16),
            stable: number(20),
        }
    }
}

/// Whether a number is before another, modulo 2^32.
pub fn before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) >= 1 << 31
}
