//! What all streams of an engine share: configuration, routes, memory, events,
//! and the making of frames.

use crate::config::EngineConfig;
use crate::event::{Event, Transmit};
use crate::routes::{Alternatives, Turns};
use crate::statistics::Counters;
use crate::time::Instant;
use crate::window::store::Pools;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use wormcast_wire::gather::{self, Announcement};
use wormcast_wire::pdu::{self, Body, Common};
use wormcast_wire::worm::{self, Header, Kind, flags};
use wormcast_wire::{
    BufferClass, ETHERNET_LENGTH, ETHERTYPE_HOST_PDU, GroupId, HostId, ROUTE_LENGTH_MAX,
};

/// A stream, by its group and origin.
pub(crate) type SessionKey = (GroupId, HostId);

/// Time between two drains of the queue, so that the least delay is seen anew.
const DRAIN_INTERVAL_US: u64 = 4_000_000;
const DRAIN_US_MAX: u64 = 25_000;

/// A route that a worm takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WormRoute<'a> {
    pub kind: Kind,
    pub route: &'a [u8],
}

pub(crate) struct Shared {
    pub config: EngineConfig,
    pub pools: Pools,
    pub counters: Counters,
    pub unicast: BTreeMap<HostId, Turns>,
    /// Numbers drawn so far for the choice of routes.
    draws: u64,
    pub tree: Arc<BTreeMap<HostId, Vec<u8>>>,
    /// Ports to the root of the spanning tree.
    pub root: Option<Vec<u8>>,
    /// Bytes that a TREE route may have.
    pub tree_route_max: usize,
    /// Grows with every change of the routes.
    pub routes_version: u64,
    events: VecDeque<Event>,
    worm_sequence: u16,
    next_identity: u32,
    drain_next: Instant,
    pub drain_until: Instant,
    /// Bytes of a frame that packets leave free, for a train header.
    pub train_room: usize,
}

impl Shared {
    pub fn new(config: EngineConfig) -> Shared {
        let limits = &config.limits;
        let pools = Pools::new(
            if limits.unclassed {
                [limits.pool_class1_bytes + limits.pool_class2_bytes, 0]
            } else {
                [limits.pool_class1_bytes, limits.pool_class2_bytes]
            },
            config.mtu,
            limits.origin_window_bytes,
        );
        Shared {
            pools,
            counters: Counters::default(),
            unicast: BTreeMap::new(),
            draws: 0,
            tree: Arc::default(),
            root: None,
            tree_route_max: ROUTE_LENGTH_MAX,
            routes_version: 0,
            events: VecDeque::new(),
            worm_sequence: 0,
            next_identity: config.incarnation,
            drain_next: Instant::from_micros(DRAIN_INTERVAL_US),
            drain_until: Instant::ZERO,
            train_room: 0,
            config,
        }
    }

    /// A number for a stream, or for a receiver's memory of one, higher than any
    /// before it and than those of this host's earlier lives.
    pub fn take_identity(&mut self) -> u32 {
        let identity = self.next_identity;
        self.next_identity = identity.wrapping_add(1);
        identity
    }

    /// One that nothing depends on is dropped where there is no room. Of the others there are no more than packets that
    /// came or are unstable, and a shell that missed one would take a message for another, or wait for ever.
    pub fn emit(&mut self, event: Event) {
        if self.events.len() >= self.config.limits.events && event.only_informs() {
            self.counters.events_dropped += 1;
            return;
        }
        self.events.push_back(event);
    }

    pub fn take_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Largest payload of a DATA packet in a frame of `mtu` bytes after its Ethernet header, with room
    /// for a route of that length.
    pub fn payload_max(&self, mtu: usize, route_length: usize, with_origin: bool) -> usize {
        let origin = if with_origin { pdu::ORIGIN_LENGTH } else { 0 };
        let headers = worm::HEADER_LENGTH + pdu::COMMON_LENGTH + pdu::DATA_LENGTH + origin;
        mtu.saturating_sub(headers + route_length)
    }

    /// Bytes of a TREE route to all members, at most: routes take no more than a quarter of a frame.
    pub fn tree_room(&self, mtu: usize) -> usize {
        self.tree_route_max.min(mtu / 4)
    }

    /// Writes a frame that carries a PDU. None, counted, if it is too long.
    pub fn encode(
        &mut self,
        buf: &mut [u8],
        worm_route: WormRoute<'_>,
        class: BufferClass,
        common: &Common,
        body: &Body<'_>,
    ) -> Option<Transmit> {
        let host = self.config.host;
        let length =
            worm::HEADER_LENGTH + worm_route.route.len() + pdu::length_of(common, host, body);
        if length > self.config.mtu {
            self.counters.route_too_long += 1;
            return None;
        }
        let class_flag = if class == BufferClass::Two {
            flags::CLASS2
        } else {
            0
        };
        let header = Header {
            kind: worm_route.kind,
            flags: flags::HEAD | flags::TAIL | class_flag,
            hops: 0,
            source: host,
            sequence: self.next_worm(),
            next: ETHERTYPE_HOST_PDU,
        };
        let at = worm::encode(buf, self.config.mac, &header, worm_route.route);
        let written = pdu::encode(&mut buf[at..], host, common, body);
        let length = at + written;
        debug_assert!(length <= ETHERNET_LENGTH + self.config.mtu);
        self.counters.sent_frames += 1;
        self.counters.sent_bytes += length as u64;
        Some(Transmit {
            length,
            class,
            train_bytes_max: 0,
        })
    }

    /// Writes a frame that switches gather.
    pub fn encode_gathered(&mut self, buf: &mut [u8], announced: &Announcement) -> Transmit {
        let from = (self.config.host, self.next_worm());
        let length = gather::encode(buf, self.config.mac, from, &[], announced);
        self.counters.sent_frames += 1;
        self.counters.sent_bytes += length as u64;
        Transmit {
            length,
            class: BufferClass::One,
            train_bytes_max: 0,
        }
    }

    /// The number of the next worm.
    pub fn next_worm(&mut self) -> u16 {
        let sequence = self.worm_sequence;
        self.worm_sequence = sequence.wrapping_add(1);
        sequence
    }

    /// Which of the routes to a host the next message takes, by its place among them; the first if
    /// there is none.
    pub fn choose_route(&mut self, to: HostId) -> u8 {
        let Some(turns) = self.unicast.get_mut(&to) else {
            return 0;
        };
        let (draws, seed) = (&mut self.draws, self.config.seed);
        turns.choose(|| {
            *draws += 1;
            spread(seed ^ draws.wrapping_mul(0x9E37_79B9_7F4A_7C15))
        })
    }

    /// The shortest of the routes to a host, and its bytes; none if there is none.
    pub fn shortest_route(&self, to: HostId) -> Option<(u8, usize)> {
        let alternatives = &self.unicast.get(&to)?.alternatives;
        let lengths = alternatives.routes.iter().map(|route| route.ports.len());
        let shortest = lengths.enumerate().min_by_key(|(_, length)| *length);
        shortest.map(|(place, length)| (place as u8, length))
    }

    /// As [`Shared::encode_by`], by the first route: control PDUs take no turns.
    pub fn encode_to(
        &mut self,
        buf: &mut [u8],
        to: HostId,
        class: BufferClass,
        common: &Common,
        body: &Body<'_>,
    ) -> Option<Transmit> {
        self.encode_by(buf, (to, 0), class, common, body)
    }

    /// Writes a frame that carries a PDU to one host by one of the routes there. None, counted,
    /// if there is no route.
    pub fn encode_by(
        &mut self,
        buf: &mut [u8],
        (to, route): (HostId, u8),
        class: BufferClass,
        common: &Common,
        body: &Body<'_>,
    ) -> Option<Transmit> {
        let turns = self.unicast.get(&to);
        let alternatives = turns.map(|turns| Arc::clone(&turns.alternatives));
        let chosen = |all: &Arc<Alternatives>| all.routes.len() > usize::from(route);
        let Some(alternatives) = alternatives.filter(chosen) else {
            self.counters.no_route += 1;
            return None;
        };
        let worm_route = WormRoute {
            kind: Kind::Unicast,
            route: &alternatives.routes[usize::from(route)].ports,
        };
        self.encode(buf, worm_route, class, common, body)
    }

    /// A flow that keeps a queue at its bottleneck ends a round: from time to time
    /// let the queue run empty, or the least delay seen would creep up with it.
    pub fn note_queue(&mut self, queue_delay_us: u64, now: Instant) {
        if now >= self.drain_next && queue_delay_us > 1_000 {
            self.drain_next = now.plus_us(DRAIN_INTERVAL_US);
            self.drain_until = now.plus_us((queue_delay_us + 1_500).min(DRAIN_US_MAX));
        }
    }
}

/// Spreads a number over all 64 bits (the finalizer of SplitMix64; Steele, Lea, Flood 2014).
pub(crate) fn spread(number: u64) -> u64 {
    let mix = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mix = (mix ^ (mix >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mix ^ (mix >> 31)
}
