//! A host that keeps the rate of its link, honours PFC and numbers its frames: the state of
//! one, free of clock and sockets, and one on an interface.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::AsFd;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use wormcast_switch_flow::headroom::WIRE_OVERHEAD_BYTES;
use wormcast_switch_flow::{BitRate, TokenBucket};
use wormcast_switch_flow::{PRIORITIES, PauseFrame, PausedQueues, PrioritySet, frame};
use wormcast_switch_ports::readiness::Interest;
use wormcast_switch_ports::{Interface, InterfaceError, ReceiveRing, TransmitQueue, wait};

use super::worm::{read_worm, worm};

/// What a host sends without end.
#[derive(Clone, Debug)]
pub struct Flow {
    pub route: Vec<u8>,
    pub class2: bool,
    pub length: usize,
}

/// Worms of one source and class, as they have arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrived {
    pub frames: u64,
    /// Numbers that were jumped over.
    pub lost: u64,
    /// Numbers that came again, or late.
    pub misordered: u64,
    next: u32,
}

/// A host. It sends its flows in turn, takes what arrives, and sends on what is not for it
/// (in-transit ejection).
pub struct Host {
    pub source: u16,
    pub flows: Vec<Flow>,
    /// How long a pause frame lies unread.
    pub reaction_us: u64,
    turn: usize,
    numbers: BTreeMap<bool, u32>,
    bucket: TokenBucket,
    paused: PausedQueues,
    unread: VecDeque<(u64, PauseFrame)>,
    /// Worms to be sent on.
    in_transit: [VecDeque<Vec<u8>>; 2],
    pub in_transit_max: usize,
    pub sent: u64,
    pub arrived: BTreeMap<(u16, bool), Arrived>,
}

fn priority(class2: bool) -> u8 {
    if class2 { 4 } else { 3 }
}

impl Host {
    pub fn new(source: u16, rate: BitRate, now_us: u64) -> Self {
        let overhead = WIRE_OVERHEAD_BYTES as usize;
        Self {
            source,
            flows: Vec::new(),
            reaction_us: 0,
            turn: 0,
            numbers: BTreeMap::new(),
            bucket: TokenBucket::new(rate, now_us).with_overhead(overhead),
            paused: PausedQueues::new(rate, [3, 4].into_iter().collect()),
            unread: VecDeque::new(),
            in_transit: Default::default(),
            in_transit_max: 0,
            sent: 0,
            arrived: BTreeMap::new(),
        }
    }

    pub fn take(&mut self, frame: &[u8], now_us: u64) {
        if frame::is_mac_control(frame) {
            if let Ok(pause) = PauseFrame::parse(frame) {
                self.unread.push_back((now_us + self.reaction_us, pause));
            }
            return;
        }
        let Some(worm) = read_worm(frame) else {
            return;
        };
        if !worm.route.is_empty() {
            self.in_transit[usize::from(worm.class2)].push_back(frame.to_vec());
            let waiting = self.in_transit.iter().map(VecDeque::len).sum();
            self.in_transit_max = self.in_transit_max.max(waiting);
            return;
        }
        let arrived = self.arrived.entry((worm.source, worm.class2)).or_default();
        arrived.frames += 1;
        if worm.number < arrived.next {
            arrived.misordered += 1;
        } else {
            arrived.lost += u64::from(worm.number - arrived.next);
            arrived.next = worm.number + 1;
        }
    }

    /// The next frame, if one may go now.
    pub fn poll(&mut self, now_us: u64) -> Option<Vec<u8>> {
        while let Some((at_us, pause)) = self.unread.front()
            && *at_us <= now_us
        {
            self.paused.receive(pause, now_us);
            self.unread.pop_front();
        }
        if !self.bucket.allows(now_us) {
            return None;
        }
        let frame = self.next(self.paused.paused(now_us))?;
        self.bucket.charge(frame.len());
        Some(frame)
    }

    fn next(&mut self, paused: PrioritySet) -> Option<Vec<u8>> {
        for class2 in [false, true] {
            if !paused.contains(priority(class2))
                && let Some(frame) = self.in_transit[usize::from(class2)].pop_front()
            {
                return Some(frame);
            }
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
            self.sent += 1;
            return Some(frame);
        }
        None
    }

    /// When it may be able to send, as far as time decides.
    fn next_us(&self, now_us: u64) -> u64 {
        let at_us = self.bucket.next_us();
        if at_us > now_us {
            return at_us;
        }
        let resumed_us = self.paused.next_expiry_us(PrioritySet::ALL, now_us);
        resumed_us.unwrap_or(now_us + 1_000).min(now_us + 1_000)
    }

    /// Frames that have arrived from all.
    pub fn received(&self) -> u64 {
        self.arrived.values().map(|arrived| arrived.frames).sum()
    }

    /// Frames that were lost or came out of order.
    pub fn wrong(&self) -> u64 {
        self.arrived
            .values()
            .map(|arrived| arrived.lost + arrived.misordered)
            .sum()
    }

    /// Pause frames that came in.
    pub fn pauses(&self) -> u64 {
        self.paused.pauses()
    }
}

/// Commands to a host on an interface while it runs.
#[derive(Debug)]
pub struct Orders {
    /// Begin when all hosts can receive.
    pub ready: Barrier,
    /// Send no new frames; what is in transit goes on.
    pub quiet: AtomicBool,
    pub end: AtomicBool,
    /// How often each host has looked for what it has to do.
    pub looks: Vec<AtomicU64>,
}

impl Orders {
    pub fn new(hosts: usize) -> Self {
        Self {
            ready: Barrier::new(hosts),
            quiet: AtomicBool::new(false),
            end: AtomicBool::new(false),
            looks: (0..hosts).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

/// Frames a host's interface may hold unread.
const RING_FRAMES: usize = 8_192;

/// Runs the host that has this place in `orders` on an interface until it is stopped. `storm`: it
/// pauses this priority for ever.
pub fn run(
    mut host: Host,
    place: usize,
    interface: &str,
    start: Instant,
    orders: &Orders,
    storm: Option<u8>,
) -> Result<Host, InterfaceError> {
    let interface = Interface::find(interface)?;
    let mut ring = ReceiveRing::open(&interface, RING_FRAMES)?;
    let mut transmit = TransmitQueue::open(&interface)?;
    orders.ready.wait();
    let mut storm_us = 0;
    while !orders.end.load(Ordering::Relaxed) {
        let now_us = start.elapsed().as_micros() as u64;
        if orders.quiet.load(Ordering::Relaxed) {
            host.flows.clear();
        }
        ring.receive(usize::MAX, |frame| host.take(frame, now_us));
        if let Some(priority) = storm
            && now_us >= storm_us
        {
            let mut quanta = [0; PRIORITIES];
            quanta[usize::from(priority)] = u16::MAX;
            let priorities = PrioritySet::of(priority);
            let pause = PauseFrame::Pfc { priorities, quanta };
            transmit.push(&pause.to_bytes([2, 0, 0, 0, 0, 1]));
            storm_us = now_us + 1_000;
        }
        while !transmit.is_full()
            && let Some(frame) = host.poll(now_us)
        {
            transmit.push(&frame);
        }
        transmit.flush();
        orders.looks[place].fetch_add(1, Ordering::Relaxed);
        let sleep_us = host.next_us(now_us).saturating_sub(now_us).max(50);
        wait(&[Interest::Readable(ring.as_fd())], Some(sleep_us));
    }
    assert_eq!(ring.counts().ring_full, 0, "the host itself was too slow");
    Ok(host)
}
