//! Hosts that keep a rate, honour PFC and number their frames.

use std::collections::BTreeMap;

use wormcast_switch::lossless::headroom::WIRE_OVERHEAD_BYTES;
use wormcast_switch::lossless::{PauseFrame, PausedQueues, PrioritySet, frame};
use wormcast_switch::ports::{BitRate, TokenBucket};

/// EtherType and head of a UNICAST worm (protocol/SPEC.md §2).
const WORM_TYPE: [u8; 2] = [0x88, 0xb5];
const HEAD_AND_TAIL: u8 = 0b0110;

/// A UNICAST worm of buffer class 1 (`false`) or 2, numbered, of `length` bytes.
pub fn worm(source: u16, class2: bool, route: &[u8], number: u32, length: usize) -> Vec<u8> {
    let mut frame = vec![3, 0x57, 0x4f, 0x52, 0x4d, 0, 2, 0, 0, 0];
    frame.extend(source.to_be_bytes());
    frame.extend(WORM_TYPE);
    let mut header = vec![0x10, HEAD_AND_TAIL | u8::from(class2), route.len() as u8, 0];
    header.extend(source.to_be_bytes());
    header.extend((number as u16).to_be_bytes());
    header.extend([0x88, 0xb6, 0, 0]);
    header.extend(route);
    let checksum = !sum(&header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    frame.extend(header);
    frame.extend(number.to_be_bytes());
    frame.resize(length.max(frame.len()), 0x5a);
    frame
}

fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2);
    let mut sum: u32 = words
        .map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Route that is left, source, class 2, number.
pub fn read_worm(frame: &[u8]) -> (Vec<u8>, u16, bool, u32) {
    assert_eq!(frame[12..14], WORM_TYPE, "{frame:02x?}");
    let route_end = 26 + usize::from(frame[16]);
    let number = frame[route_end..route_end + 4].try_into().unwrap();
    (
        frame[26..route_end].to_vec(),
        u16::from_be_bytes([frame[18], frame[19]]),
        frame[15] & 1 != 0,
        u32::from_be_bytes(number),
    )
}

/// What a host sends without end.
#[derive(Clone, Debug)]
pub struct Flow {
    pub route: Vec<u8>,
    pub class2: bool,
    pub length: usize,
}

/// A host. It sends its flows in turn at the rate of its link, takes what arrives, and
/// sends on what is not for it (in-transit ejection).
pub struct Host {
    pub source: u16,
    pub flows: Vec<Flow>,
    /// How long a pause frame lies unread.
    pub reaction_us: u64,
    turn: usize,
    numbers: BTreeMap<bool, u32>,
    bucket: TokenBucket,
    paused: PausedQueues,
    unread: Vec<(u64, PauseFrame)>,
    /// Frames to be sent on.
    pub in_transit: Vec<Vec<u8>>,
    pub sent: BTreeMap<bool, u64>,
    pub received: BTreeMap<(u16, bool), Vec<u32>>,
}

impl Host {
    pub fn new(source: u16, rate: BitRate) -> Self {
        Self {
            source,
            flows: Vec::new(),
            reaction_us: 0,
            turn: 0,
            numbers: BTreeMap::new(),
            bucket: TokenBucket::new(rate, 0).with_overhead(WIRE_OVERHEAD_BYTES as usize),
            paused: PausedQueues::new(rate, [3, 4].into_iter().collect()),
            unread: Vec::new(),
            in_transit: Vec::new(),
            sent: BTreeMap::new(),
            received: BTreeMap::new(),
        }
    }

    /// A frame has arrived.
    pub fn take(&mut self, frame: &[u8], now_us: u64) {
        if frame::is_mac_control(frame) {
            let pause = PauseFrame::parse(frame).unwrap();
            self.unread.push((now_us + self.reaction_us, pause));
            return;
        }
        let (route, source, class2, number) = read_worm(frame);
        if !route.is_empty() {
            return self.in_transit.push(frame.to_vec());
        }
        self.received
            .entry((source, class2))
            .or_default()
            .push(number);
    }

    /// The next frame, if one may go now.
    pub fn poll(&mut self, now_us: u64) -> Option<Vec<u8>> {
        while self
            .unread
            .first()
            .is_some_and(|(at_us, _)| *at_us <= now_us)
        {
            self.paused.receive(&self.unread.remove(0).1, now_us);
        }
        if !self.bucket.allows(now_us) {
            return None;
        }
        let paused = self.paused.paused(now_us);
        let frame = self.next(paused)?;
        self.bucket.charge(frame.len());
        Some(frame)
    }

    fn next(&mut self, paused: PrioritySet) -> Option<Vec<u8>> {
        let priority = |class2| if class2 { 4 } else { 3 };
        let may_go = |frame: &Vec<u8>| !paused.contains(priority(read_worm(frame).2));
        if let Some(at) = self.in_transit.iter().position(may_go) {
            return Some(self.in_transit.remove(at));
        }
        for _ in 0..self.flows.len() {
            let flow = &self.flows[self.turn % self.flows.len()];
            self.turn += 1;
            if paused.contains(priority(flow.class2)) {
                continue;
            }
            let number = self.numbers.entry(flow.class2).or_default();
            let frame = worm(self.source, flow.class2, &flow.route, *number, flow.length);
            *number += 1;
            *self.sent.entry(flow.class2).or_default() += 1;
            return Some(frame);
        }
        None
    }

    /// Frames that have arrived from all.
    pub fn received_frames(&self) -> u64 {
        self.received
            .values()
            .map(|numbers| numbers.len() as u64)
            .sum()
    }
}
