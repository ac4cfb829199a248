//! The copies of packets a host holds: what it must still deliver, forward, or be
//! able to repair (NIC §5.2: the replica in host memory serves retransmission).

use super::runs::Runs;
use crate::time::Instant;
use std::collections::VecDeque;
use wormcast_wire::BufferClass;

/// A packet of a stream, as held.
#[derive(Debug)]
pub(crate) struct Packet {
    pub payload: Vec<u8>,
    pub first: bool,
    pub last: bool,
    pub cancel: bool,
    /// The pool it counts against; none for the origin's own packets.
    pub pool: Option<BufferClass>,
    /// When it came from the network.
    pub came: Instant,
}

/// Packets of one stream by position; a position below `base` is no longer held,
/// one at or above `end` has not come.
#[derive(Debug)]
pub(crate) struct Store {
    base: u64,
    slots: VecDeque<Option<Packet>>,
    /// The positions of `slots` where there is a packet.
    runs: Runs,
    /// Of the buffers of all payloads: a member that holds these packets needs as much.
    bytes: usize,
}

impl Store {
    pub fn new(base: u64) -> Store {
        Store {
            base,
            slots: VecDeque::new(),
            runs: Runs::default(),
            bytes: 0,
        }
    }

    /// Bytes of all buffers that are held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn base(&self) -> u64 {
        self.base
    }

    pub fn end(&self) -> u64 {
        self.base + self.slots.len() as u64
    }

    pub fn get(&self, position: u64) -> Option<&Packet> {
        let index = position.checked_sub(self.base)?;
        self.slots.get(index as usize)?.as_ref()
    }

    pub fn has(&self, position: u64) -> bool {
        self.get(position).is_some()
    }

    /// The first position from `from` on that is held.
    pub fn next_held(&self, from: u64) -> Option<u64> {
        if self.has(from) {
            return Some(from);
        }
        self.runs.after(from).next().map(|(start, _)| start)
    }

    /// Puts a packet at a position at or above `base` where there is none.
    pub fn insert(&mut self, position: u64, packet: Packet) {
        let index = (position - self.base) as usize;
        if index >= self.slots.len() {
            self.slots.resize_with(index + 1, || None);
        }
        debug_assert!(self.slots[index].is_none());
        self.bytes += packet.payload.capacity();
        self.slots[index] = Some(packet);
        self.runs.add(position, position + 1);
    }

    /// Gives up everything below `base`, handing the packets to `release`.
    pub fn advance(&mut self, base: u64, mut release: impl FnMut(Packet)) {
        while self.base < base {
            match self.slots.pop_front() {
                Some(slot) => {
                    if let Some(packet) = slot {
                        self.bytes -= packet.payload.capacity();
                        release(packet);
                    }
                    self.base += 1;
                }
                None => self.base = base,
            }
        }
        self.runs.forget_before(self.base);
    }

    /// Gives up everything at or above `end`.
    pub fn truncate(&mut self, end: u64, mut release: impl FnMut(Packet)) {
        while self.end() > end {
            if let Some(Some(packet)) = self.slots.pop_back() {
                self.bytes -= packet.payload.capacity();
                release(packet);
            }
            if self.slots.is_empty() {
                break;
            }
        }
        self.runs.forget_from(end);
    }

    /// The runs held at or above `from`, as (start, end).
    pub fn runs(&self, from: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.runs.after(from)
    }

    pub fn run_of(&self, position: u64) -> Option<(u64, u64)> {
        self.runs.containing(position)
    }
}

/// Memory of received packets, one pool for each buffer class (WORM §4), and
/// buffers given back, kept for use again so that a packet costs no allocation.
#[derive(Debug)]
pub(crate) struct Pools {
    used: [usize; 2],
    peak: [usize; 2],
    limit: [usize; 2],
    /// By their capacity.
    free: [Vec<Vec<u8>>; CAPACITIES.len() + 1],
    free_bytes: usize,
    free_bytes_most: usize,
    capacities: [usize; CAPACITIES.len() + 1],
}

/// Buffers that are shorter than the longest, bytes, so that few bytes do not take the room of many where frames are
/// large: for packets of paths with the usual MTU, of jumbo frames, and between.
const CAPACITIES: [usize; 4] = [2_048, 4_096, 9_216, 20_480];

/// Memory a held packet is counted with beyond its payload's buffer.
const PACKET_OVERHEAD: usize = 64;
/// Of each pool, one part in so many is kept for packets that come in order, so
/// that packets beyond a gap never keep out the one that closes it.
const IN_ORDER_SHARE: usize = 4;

impl Pools {
    /// Pools of these sizes for packets of at most `capacity` bytes; buffers of so many bytes at
    /// most are kept for use again.
    pub fn new(limit: [usize; 2], capacity: usize, free_bytes_most: usize) -> Pools {
        Pools {
            used: [0; 2],
            peak: [0; 2],
            limit,
            free: [const { Vec::new() }; CAPACITIES.len() + 1],
            free_bytes: 0,
            free_bytes_most,
            capacities: std::array::from_fn(|kind| {
                CAPACITIES
                    .get(kind)
                    .map_or(capacity, |&bytes| bytes.min(capacity))
            }),
        }
    }

    fn kind(&self, payload_bytes: usize) -> usize {
        let kind = self
            .capacities
            .iter()
            .position(|&bytes| payload_bytes <= bytes);
        kind.unwrap_or(CAPACITIES.len())
    }

    pub fn used(&self, class: BufferClass) -> usize {
        self.used[class.index()]
    }

    pub fn limit(&self, class: BufferClass) -> usize {
        self.limit[class.index()]
    }

    pub fn peak(&self, class: BufferClass) -> usize {
        self.peak[class.index()]
    }

    /// What a packet counts.
    pub fn packet_bytes(&self, payload_bytes: usize) -> usize {
        self.capacities[self.kind(payload_bytes)] + PACKET_OVERHEAD
    }

    /// Whether another packet of the class may be taken.
    pub fn admits(&self, class: BufferClass, payload_bytes: usize, in_order: bool) -> bool {
        let limit = self.limit[class.index()];
        let limit = if in_order {
            limit
        } else {
            limit - limit / IN_ORDER_SHARE
        };
        self.used[class.index()] + self.packet_bytes(payload_bytes) <= limit
    }

    /// A buffer with a copy of `payload`, counted against `pool`.
    pub fn take(&mut self, payload: &[u8], pool: Option<BufferClass>) -> Vec<u8> {
        let kind = self.kind(payload.len());
        let capacity = self.capacities[kind];
        let mut buffer = match self.free[kind].pop() {
            Some(buffer) => {
                self.free_bytes -= capacity;
                buffer
            }
            None => Vec::with_capacity(capacity),
        };
        buffer.extend_from_slice(payload);
        if let Some(class) = pool {
            let index = class.index();
            self.used[index] += self.packet_bytes(payload.len());
            self.peak[index] = self.peak[index].max(self.used[index]);
        }
        buffer
    }

    /// Takes a packet's memory back.
    pub fn release(&mut self, packet: Packet) {
        let mut buffer = packet.payload;
        if let Some(class) = packet.pool {
            self.used[class.index()] -= self.packet_bytes(buffer.len());
        }
        let kind = self.kind(buffer.len());
        if self.free_bytes + self.capacities[kind] <= self.free_bytes_most {
            self.free_bytes += self.capacities[kind];
            buffer.clear();
            self.free[kind].push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(pools: &mut Pools) -> Packet {
        let payload = pools.take(&[1, 2, 3], Some(BufferClass::One));
        Packet {
            payload,
            first: false,
            last: false,
            cancel: false,
            pool: Some(BufferClass::One),
            came: Instant::ZERO,
        }
    }

    #[test]
    fn runs_are_what_is_held_between_gaps() {
        let mut pools = Pools::new([1 << 20; 2], 100, 8);
        let mut store = Store::new(10);
        for position in [10, 11, 14, 16, 17] {
            store.insert(position, packet(&mut pools));
        }
        assert_eq!(
            store.runs(10).collect::<Vec<_>>(),
            [(10, 12), (14, 15), (16, 18)]
        );
        assert_eq!(store.runs(11).next(), Some((11, 12)));
        assert_eq!(store.next_held(12), Some(14));
        store.advance(15, |packet| pools.release(packet));
        let held = (store.base()..store.end()).filter(|at| store.has(*at));
        assert_eq!((store.base(), store.end(), held.count()), (15, 18, 2));
        store.truncate(17, |packet| pools.release(packet));
        assert_eq!(store.end(), 17);
        assert_eq!(pools.used(BufferClass::One), pools.packet_bytes(3));
        assert_eq!(store.bytes(), 100);
        store.advance(40, |packet| pools.release(packet));
        assert_eq!(
            (store.base(), store.end(), pools.used(BufferClass::One)),
            (40, 40, 0)
        );
    }

    #[test]
    fn packets_beyond_a_gap_leave_room_for_those_in_order() {
        let mut pools = Pools::new([8 * 164, 0], 100, 8);
        let mut held = Vec::new();
        while pools.admits(BufferClass::One, 3, false) {
            held.push(packet(&mut pools));
        }
        assert_eq!(held.len(), 6);
        assert!(pools.admits(BufferClass::One, 3, true));
        assert!(!pools.admits(BufferClass::Two, 3, true));
    }

    #[test]
    fn packets_take_little_more_room_than_their_bytes_where_frames_are_large() {
        let large = 65_500;
        for bytes in [100, 1_400, 2_048, 4_000, 9_000, 16_000, 60_000] {
            let payload = vec![7; bytes];
            let mut pools = Pools::new([30 * large, 0], large, 3 * large);
            let mut store = Store::new(0);
            let mut position = 0;
            while pools.admits(BufferClass::One, bytes, true) {
                let packet = Packet {
                    payload: pools.take(&payload, Some(BufferClass::One)),
                    first: false,
                    last: false,
                    cancel: false,
                    pool: Some(BufferClass::One),
                    came: Instant::ZERO,
                };
                store.insert(position, packet);
                position += 1;
            }
            let least = 30 * large / (3 * bytes / 2).max(2_048 + PACKET_OVERHEAD);
            assert!(position as usize >= least, "{bytes}: {position}");
            assert!(store.bytes() <= 30 * large, "{bytes}");
        }
    }
}
