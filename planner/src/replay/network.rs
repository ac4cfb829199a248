//! The network at one moment of a replay.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::cost::Traffic;

/// What happens to a packet; in order of precedence at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Its head reaches a channel.
    Enter,
    /// All of it reaches the adapter of a host.
    Arrive,
    /// A station can pass it on.
    Held,
    /// A station may begin its next send, because the one before is on the link.
    Ready,
    /// A station may begin its next send, because the gap is over.
    Wake,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Event {
    pub at: u64,
    pub kind: Kind,
    /// Crossing or station.
    pub place: u32,
    pub packet: u32,
    /// When the end of the packet is here; its head may be before (cut-through).
    pub tail: u64,
}

/// What a station has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Packets it can pass on.
    pub held: u32,
    /// Packet it sends next, and the send it does next with it.
    pub next: u32,
    pub send: u32,
    /// Packets passed on, so that there is room again.
    pub passed: u32,
    pub sending: bool,
    /// When it had the last packet.
    pub complete: u64,
}

/// All that the future depends on.
pub(super) struct Network<'a> {
    pub traffic: &'a Traffic,
    /// Packets of the message that are replayed.
    pub packets: u32,
    pub heap: BinaryHeap<Reverse<Event>>,
    pub stations: Vec<Progress>,
    /// By channel: what is left of its burst, until when it is taken, how long it was.
    pub burst: Vec<u64>,
    pub free: Vec<u64>,
    pub busy: Vec<u64>,
    /// By host: until when its processor is taken, and when it may send again.
    pub processor: Vec<u64>,
    pub gap_over: Vec<u64>,
}

impl<'a> Network<'a> {
    /// Before anything has happened; `burst` is what each channel has to spare.
    pub(super) fn new(traffic: &'a Traffic, packets: u32, burst: Vec<u64>) -> Network<'a> {
        let mut stations = vec![Progress::default(); traffic.stations.len()];
        stations[0].held = packets;
        Network {
            traffic,
            packets,
            heap: BinaryHeap::new(),
            stations,
            burst,
            free: vec![0; traffic.channels.len()],
            busy: vec![0; traffic.channels.len()],
            processor: vec![0; traffic.hosts.len()],
            gap_over: vec![0; traffic.hosts.len()],
        }
    }

    pub(super) fn pending(&self) -> impl ExactSizeIterator<Item = &Event> {
        self.heap.iter().map(|event| &event.0)
    }
}
