//! Links that block (ITB §IV): a worm moves byte by byte and holds every channel from its head to
//! its tail. A switch has a slack buffer for each link into it, with STOP and GO (ITB §IV.C).
//!
//! An in-transit host takes a worm in whatever happens, and re-injects it while it still arrives
//! (ITB §III.B). Worms in transit go before those of the host itself.

use std::collections::VecDeque;

use crate::network::{Network, Track};
use crate::outcome::{Meter, Outcome, Span};
use crate::traffic::{Message, Waiting, Window};

/// Cycles of 6.25 ns that a byte is on a link (ITB §IV.B).
pub const WIRE: u64 = 8;
/// From when a head is first in its buffer until it asks for its output: 150 ns (ITB §IV.C).
pub const ROUTING: u64 = 24;
/// From when a head is at an in-transit host until it can go on: 275 + 200 ns (ITB §IV.D).
pub const TRANSIT: u64 = 76;
/// Bytes of a slack buffer (ITB §IV.C).
pub const SLACK: u32 = 80;
/// STOP is sent when there is room for fewer bytes than this, GO when there is for more than
/// [`GO_ROOM`]: 56 and 40 of 80.
const STOP_ROOM: u32 = 24;
const GO_ROOM: u32 = 40;

const NOBODY: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Links {
    pub size: u32,
    /// Bytes of a slack buffer, at least [`SLACK`].
    pub slack: u32,
    pub window: Window,
}

/// A piece of a message's way; a message that is re-injected is several worms.
struct Worm {
    message: u32,
    piece: usize,
    /// Channels it has got.
    gained: usize,
    /// Bytes that the host has of it which injects it.
    supply: u32,
    /// The worm that goes on with it behind an in-transit host.
    next: u32,
}

/// A worm on a channel: on its wire, and in the buffer at its end.
struct Slot {
    worm: u32,
    arrived: u32,
    left: u32,
}

struct Channel {
    owner: u32,
    /// Bytes that the owner has sent.
    sent: u32,
    /// The channel from whose buffer the owner sends; [`NOBODY`] if a host injects.
    from: u32,
    /// Heads that wait for this channel, with the channel whose buffer they are in.
    asking: Vec<(u32, u32)>,
    /// The buffer that was served last; the next above it comes first.
    served: u32,
    slots: VecDeque<Slot>,
    /// Bytes in the buffer.
    held: u32,
    /// Bit n: a byte was sent n cycles ago; and whether STOP was the signal then.
    wire: u64,
    signals: u64,
    stop: bool,
}

struct Host {
    own: VecDeque<u32>,
    transit: VecDeque<u32>,
    transit_bytes: u64,
}

struct Fabric<'a> {
    network: &'a Network,
    messages: &'a [Message],
    links: Links,
    tracks: Vec<&'a Track>,
    channels: Vec<Channel>,
    hosts: Vec<Host>,
    worms: Vec<Worm>,
    /// Heads on their way through a switch, with the channel they came by.
    routing: VecDeque<(u64, u32, u32)>,
    /// Worms that an in-transit host will be ready to send.
    transit: VecDeque<(u64, u32)>,
    waiting: Waiting,
    meter: Meter<'a>,
    /// Messages that the model has: waiting, at hosts, or in the network.
    left: usize,
    transit_bytes_max: u64,
}

/// Runs the messages, in the order in which they are due, until the end of the span; with `drain`
/// until all have arrived.
///
/// # Panics
/// If worms wait for each other in a circle, which legal routes exclude.
pub fn run(
    network: &Network,
    messages: &[Message],
    links: Links,
    span: Span,
    drain: bool,
) -> Outcome {
    let mut fabric = Fabric::new(network, messages, links, span);
    let mut due = 0;
    let mut now = 0;
    loop {
        if fabric.left == 0 {
            // Nothing moves until the next message.
            match messages.get(due) {
                Some(message) if message.at < span.end => now = now.max(message.at),
                _ => break,
            }
        }
        if now >= span.end && !drain {
            break;
        }
        while messages.get(due).is_some_and(|message| message.at <= now) {
            fabric.offer(due as u32);
            due += 1;
        }
        fabric.step(now);
        now += 1;
    }
    let left = fabric.left + (messages.len() - due);
    let mut outcome = fabric.meter.finish(left);
    outcome.transit_bytes_max = fabric.transit_bytes_max;
    outcome
}

impl<'a> Fabric<'a> {
    fn new(network: &'a Network, messages: &'a [Message], links: Links, span: Span) -> Fabric<'a> {
        assert!(links.slack >= SLACK, "less than is on the way after STOP");
        let channel = || Channel {
            owner: NOBODY,
            sent: 0,
            from: NOBODY,
            asking: Vec::new(),
            served: NOBODY,
            slots: VecDeque::new(),
            held: 0,
            wire: 0,
            signals: 0,
            stop: false,
        };
        let host = || Host {
            own: VecDeque::new(),
            transit: VecDeque::new(),
            transit_bytes: 0,
        };
        Fabric {
            network,
            messages,
            links,
            tracks: messages
                .iter()
                .map(|message| network.track(message))
                .collect(),
            channels: (0..network.channels).map(|_| channel()).collect(),
            hosts: (0..network.hosts).map(|_| host()).collect(),
            worms: Vec::new(),
            routing: VecDeque::new(),
            transit: VecDeque::new(),
            waiting: Waiting::new(links.window, network.hosts),
            meter: Meter::new(messages, span),
            left: 0,
            transit_bytes_max: 0,
        }
    }

    fn offer(&mut self, number: u32) {
        let message = &self.messages[number as usize];
        self.left += 1;
        if self
            .waiting
            .is_free(number, message, self.network.pair(message))
        {
            self.inject(number);
        }
    }

    fn inject(&mut self, number: u32) {
        let worm = self.add_worm(number, 0, self.links.size);
        let src = self.messages[number as usize].src;
        self.hosts[src as usize].own.push_back(worm);
    }

    fn add_worm(&mut self, message: u32, piece: usize, supply: u32) -> u32 {
        self.worms.push(Worm {
            message,
            piece,
            gained: 0,
            supply,
            next: NOBODY,
        });
        self.worms.len() as u32 - 1
    }

    /// The channels of a worm.
    fn piece(&self, worm: u32) -> &'a [u32] {
        let worm = &self.worms[worm as usize];
        &self.tracks[worm.message as usize].pieces[worm.piece]
    }

    fn step(&mut self, now: u64) {
        let hosts = self.network.hosts;
        for number in 0..self.channels.len() as u32 {
            let channel = &mut self.channels[number as usize];
            if channel.owner == NOBODY && channel.slots.is_empty() {
                continue; // nothing on the wire, nothing in the buffer
            }
            channel.signals = channel.signals << 1 | u64::from(channel.stop);
            channel.wire <<= 1;
            if channel.wire >> WIRE & 1 == 1 {
                self.arrive(number, now);
            }
        }
        while let Some(&(at, worm, by)) = self.routing.front()
            && at <= now
        {
            self.routing.pop_front();
            self.ask(worm, by);
        }
        while let Some(&(at, worm)) = self.transit.front()
            && at <= now
        {
            self.transit.pop_front();
            let host = self.piece(worm)[0];
            self.hosts[host as usize].transit.push_back(worm);
        }
        for number in 0..self.channels.len() as u32 {
            let channel = &self.channels[number as usize];
            if channel.owner == NOBODY {
                if number >= hosts && channel.asking.is_empty() {
                    continue;
                }
                self.grant(number);
            }
            if self.channels[number as usize].owner != NOBODY {
                self.send(number, now);
            }
        }
    }

    /// A byte comes to the end of a channel.
    fn arrive(&mut self, number: u32, now: u64) {
        let size = self.links.size;
        let channel = &mut self.channels[number as usize];
        // It belongs to the first worm that has not arrived whole.
        let whole = channel.slots.iter().rposition(|slot| slot.arrived == size);
        let place = whole.map_or(0, |last| last + 1);
        let slot = &mut channel.slots[place];
        slot.arrived += 1;
        let (worm, arrived) = (slot.worm, slot.arrived);
        if let Some(host) = self.network.sink(number) {
            if arrived == size {
                channel.slots.pop_front();
            }
            self.take(host, worm, arrived, now);
            return;
        }
        channel.held += 1;
        assert!(channel.held <= self.links.slack, "STOP came too late");
        channel.stop |= self.links.slack - channel.held < STOP_ROOM;
        if place == 0 && arrived == 1 {
            self.routing.push_back((now + ROUTING, worm, number));
        }
    }

    /// A host takes a byte of a worm.
    fn take(&mut self, host: u32, worm: u32, arrived: u32, now: u64) {
        let Worm {
            message,
            piece,
            next,
            ..
        } = self.worms[worm as usize];
        if piece + 1 < self.tracks[message as usize].pieces.len() {
            if arrived == 1 {
                let next = self.add_worm(message, piece + 1, 1);
                self.worms[worm as usize].next = next;
                self.transit.push_back((now + TRANSIT, next));
            } else {
                self.worms[next as usize].supply += 1;
            }
            let at = &mut self.hosts[host as usize];
            at.transit_bytes += 1;
            self.transit_bytes_max = self.transit_bytes_max.max(at.transit_bytes);
        } else if arrived == self.links.size {
            self.meter.arrive(message, now);
            self.left -= 1;
            let done = &self.messages[message as usize];
            if let Some(free) = self.waiting.next(done, self.network.pair(done)) {
                self.inject(free);
            }
        }
    }

    /// A head has been through the switch, and wants its next channel.
    fn ask(&mut self, worm: u32, by: u32) {
        let next = self.piece(worm)[self.worms[worm as usize].gained];
        self.channels[next as usize].asking.push((by, worm));
        if self.channels[next as usize].owner != NOBODY {
            self.check_circle(worm);
        }
    }

    /// A free channel goes to the next that wants it.
    fn grant(&mut self, number: u32) {
        let (from, worm) = if number < self.network.hosts {
            let host = &mut self.hosts[number as usize];
            match host.transit.pop_front().or_else(|| host.own.pop_front()) {
                Some(worm) => (NOBODY, worm),
                None => return,
            }
        } else {
            let channel = &mut self.channels[number as usize];
            let (served, asking) = (channel.served, &channel.asking);
            let turn = |&place: &usize| asking[place].0.wrapping_sub(served).wrapping_sub(1);
            match (0..asking.len()).min_by_key(turn) {
                Some(place) => channel.asking.swap_remove(place),
                None => return,
            }
        };
        let channel = &mut self.channels[number as usize];
        channel.owner = worm;
        channel.sent = 0;
        channel.from = from;
        channel.served = from;
        channel.slots.push_back(Slot {
            worm,
            arrived: 0,
            left: 0,
        });
        let is_behind = channel.slots.len() > 1;
        self.worms[worm as usize].gained += 1;
        if is_behind {
            self.check_circle(worm);
        }
    }

    /// The owner of a channel sends a byte, if it has one and may.
    fn send(&mut self, number: u32, now: u64) {
        let channel = &mut self.channels[number as usize];
        if channel.signals >> WIRE & 1 == 1 {
            return;
        }
        let (worm, sent, from) = (channel.owner, channel.sent, channel.from);
        if from == NOBODY {
            if self.worms[worm as usize].supply == sent {
                return;
            }
            if self.worms[worm as usize].piece > 0 {
                self.hosts[number as usize].transit_bytes -= 1;
            }
        } else if !self.leave(from, worm, now) {
            return;
        }
        let channel = &mut self.channels[number as usize];
        channel.wire |= 1;
        channel.sent += 1;
        if channel.sent == self.links.size {
            channel.owner = NOBODY;
        }
    }

    /// A byte of the worm that is first in a buffer leaves it; false if it has none there.
    fn leave(&mut self, number: u32, worm: u32, now: u64) -> bool {
        let channel = &mut self.channels[number as usize];
        let slot = &mut channel.slots[0];
        assert_eq!(slot.worm, worm, "worms of a buffer leave in order");
        if slot.left == slot.arrived {
            return false;
        }
        slot.left += 1;
        channel.held -= 1;
        if self.links.slack - channel.held > GO_ROOM {
            channel.stop = false;
        }
        if slot.left == self.links.size {
            channel.slots.pop_front();
            if let Some(first) = channel.slots.front().filter(|first| first.arrived > 0) {
                self.routing.push_back((now + ROUTING, first.worm, number));
            }
        }
        true
    }

    /// The worm that must move first, if this one cannot: it is before it in a buffer, or has
    /// the channel that it wants.
    fn blocker(&self, worm: u32) -> Option<u32> {
        let gained = self.worms[worm as usize].gained;
        let piece = self.piece(worm);
        let by = *piece.get(gained.checked_sub(1)?)?;
        let first = self.channels[by as usize].slots.front()?;
        if first.worm != worm {
            return Some(first.worm);
        }
        let next = &self.channels[*piece.get(gained)? as usize];
        let asks = next.asking.iter().any(|&(_, other)| other == worm);
        (asks && next.owner != NOBODY).then_some(next.owner)
    }

    /// Each worm waits for one other at most, so a circle is found by going along.
    fn check_circle(&self, worm: u32) {
        let mut waits = vec![worm];
        let mut at = worm;
        while let Some(other) = self.blocker(at) {
            assert!(other != worm, "deadlock: worms {waits:?} wait in a circle");
            if waits.contains(&other) {
                break;
            }
            waits.push(other);
            at = other;
        }
    }
}
