//! What messages contain: who wrote them, and bytes that follow from that. And what an observer makes of bytes.

/// Bytes of a message that say which it is. One of no bytes at all says nothing.
pub const IDENT_BYTES: usize = 24;

/// Which message it is. The size is part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ident {
    /// The group it was written to.
    pub group: u16,
    /// The host it was written on.
    pub origin: u16,
    /// Which life of that host's agent, and stay in the group: a stream of its own.
    pub life: u32,
    /// Which program of that host wrote it.
    pub writer: u32,
    /// Counts the messages of that program.
    pub counter: u32,
    /// Bytes.
    pub size: u64,
}

impl Ident {
    fn bytes(&self) -> [u8; IDENT_BYTES] {
        let mut bytes = [0; IDENT_BYTES];
        bytes[..2].copy_from_slice(&self.group.to_be_bytes());
        bytes[2..4].copy_from_slice(&self.origin.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.life.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.writer.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.counter.to_be_bytes());
        bytes[16..].copy_from_slice(&self.size.to_be_bytes());
        bytes
    }

    /// What the first bytes of a message say.
    pub fn parse(bytes: &[u8]) -> Option<Ident> {
        let bytes = bytes.get(..IDENT_BYTES)?;
        let two = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let four = |at: usize| u32::from(two(at)) << 16 | u32::from(two(at + 2));
        Some(Ident {
            group: two(0),
            origin: two(2),
            life: four(4),
            writer: four(8),
            counter: four(12),
            size: u64::from(four(16)) << 32 | u64::from(four(20)),
        })
    }
}

/// Makes the bytes of a message, one run after another.
#[derive(Clone, Debug)]
pub struct Content {
    ident: [u8; IDENT_BYTES],
    at: u64,
    state: u64,
}

impl Content {
    /// From its first byte on.
    pub fn new(ident: &Ident) -> Content {
        let mut seed = Hash::default();
        seed.add(&ident.bytes());
        Content {
            ident: ident.bytes(),
            at: 0,
            state: seed.0 | 1,
        }
    }

    /// The next bytes.
    pub fn take(&mut self, count: usize) -> Vec<u8> {
        let next = || {
            let at = self.at as usize;
            self.at += 1;
            // An xorshift generator (Marsaglia, 2003).
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            self.ident.get(at).copied().unwrap_or(self.state as u8)
        };
        std::iter::repeat_with(next).take(count).collect()
    }
}

/// A hash of all bytes of a message (FNV-1a): what was written and what was taken are compared by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Hash(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    pub fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}
