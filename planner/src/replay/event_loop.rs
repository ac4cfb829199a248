//! The events of a replay.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::recurrence::Recurrence;
use super::{ChannelUse, Replay};
use crate::cost::timing::Timing;
use crate::cost::traffic::NONE;
use crate::cost::{CostModel, Message, Traffic};

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

pub(super) struct EventLoop<'a> {
    pub traffic: &'a Traffic,
    timing: Timing,
    pub packets: u32,
    room: u32,
    heap: BinaryHeap<Reverse<Event>>,
    pub stations: Vec<Progress>,
    /// By channel: what is left of its burst, until when it is taken, how long it was, longest wait.
    pub burst: Vec<u64>,
    pub free: Vec<u64>,
    pub busy: Vec<u64>,
    wait: Vec<u64>,
    /// By host: until when its processor is taken, and when it may send again.
    pub processor: Vec<u64>,
    pub gap_over: Vec<u64>,
    source_done: u64,
    recurrence: Recurrence,
    message_packets: u64,
    events: u64,
    now: u64,
}

impl<'a> EventLoop<'a> {
    pub(super) fn new(
        model: &CostModel<'_, '_>,
        traffic: &'a Traffic,
        message: Message,
    ) -> EventLoop<'a> {
        let timing = Timing::new(model, traffic, message);
        let packets = u32::try_from(message.packets.max(1)).unwrap_or(u32::MAX);
        let mut replay = EventLoop {
            traffic,
            burst: timing.burst.clone(),
            timing,
            packets,
            room: model.costs().host_buffer_packets.max(1),
            heap: BinaryHeap::new(),
            stations: vec![Progress::default(); traffic.stations.len()],
            free: vec![0; traffic.channels.len()],
            busy: vec![0; traffic.channels.len()],
            wait: vec![0; traffic.channels.len()],
            processor: vec![0; traffic.hosts.len()],
            gap_over: vec![0; traffic.hosts.len()],
            source_done: 0,
            recurrence: Recurrence::default(),
            message_packets: packets.into(),
            events: 0,
            now: 0,
        };
        replay.stations[0].held = packets;
        replay.push(replay.timing.message_send, Kind::Wake, 0, 0, 0);
        replay
    }

    pub(super) fn never_skip(&mut self) {
        self.recurrence.give_up();
    }

    pub(super) fn pending(&self) -> impl ExactSizeIterator<Item = &Event> {
        self.heap.iter().map(|event| &event.0)
    }

    pub(super) fn run(&mut self) {
        self.run_within(u64::MAX);
    }

    /// Runs until all is done, and says so, or until there have been so many events and
    /// no recurrence.
    pub(super) fn run_within(&mut self, events: u64) -> bool {
        while let Some(Reverse(event)) = self.heap.peek().copied() {
            if self.events >= events && !self.recurrence.has_skipped() {
                return false;
            }
            self.heap.pop();
            self.events += 1;
            self.now = event.at;
            match event.kind {
                Kind::Enter => self.enter(event),
                Kind::Arrive => self.arrive(event),
                Kind::Held => self.held(event),
                Kind::Ready => {
                    self.stations[event.place as usize].sending = false;
                    self.try_send(event.place, event.at);
                }
                Kind::Wake => self.try_send(event.place, event.at),
            }
        }
        true
    }

    /// Packets that every member has, and since when.
    pub(super) fn standing(&self) -> (u32, u64) {
        let stations = self.traffic.stations.iter().zip(&self.stations);
        let counted = stations.filter(|(station, _)| station.counts);
        let held = counted.map(|(_, progress)| progress.held).min();
        (held.unwrap_or(0), self.now)
    }

    fn push(&mut self, at: u64, kind: Kind, place: u32, packet: u32, tail: u64) {
        self.heap.push(Reverse(Event {
            at,
            kind,
            place,
            packet,
            tail,
        }));
    }

    fn is_last(&self, packet: u32) -> bool {
        packet + 1 == self.packets
    }

    fn enter(&mut self, event: Event) {
        let traffic = self.traffic;
        let place = event.place as usize;
        let (crossing, packet) = (&traffic.crossings[place], event.packet);
        let channel = crossing.channel as usize;
        let full = self.timing.crossing(place, self.is_last(packet));
        let time = full.saturating_sub(self.burst[channel]);
        self.burst[channel] -= full - time;
        let begin = event.at.max(self.free[channel]);
        let end = (begin + time).max(event.tail);
        let waiting = self.free[channel].saturating_sub(event.at) + time;
        self.wait[channel] = self.wait[channel].max(waiting);
        self.free[channel] = end;
        self.busy[channel] += time;
        let head = match self.timing.cut_through {
            true => begin + self.timing.head(place).min(time),
            false => end,
        };
        for child in crossing.children.clone() {
            let delay = traffic.crossings[child as usize].delay_ps;
            self.push(head + delay, Kind::Enter, child, packet, end + delay);
        }
        if crossing.station != NONE {
            let at = end + self.timing.wire;
            self.push(at, Kind::Arrive, crossing.station, packet, at);
        }
        let send = self.timing.send_of[place];
        if send != NONE {
            self.sent(send, packet, event.at, begin, end);
        }
    }

    /// A send has been handed to the link, which begins with it at `begin`.
    fn sent(&mut self, send: u32, packet: u32, now: u64, begin: u64, end: u64) {
        let station = self.traffic.sends[send as usize].station;
        let at = station as usize;
        self.stations[at].send += 1;
        let sends = &self.traffic.stations[at].sends;
        if self.stations[at].send as usize == sends.len() {
            self.stations[at].send = 0;
            self.stations[at].next = packet + 1;
            self.stations[at].passed = packet + 1;
            if station == 0 {
                self.source_done = end;
            }
            self.make_room(station, now);
        }
        self.push(begin, Kind::Ready, station, packet, 0);
    }

    fn arrive(&mut self, event: Event) {
        let at = event.place as usize;
        let last = self.is_last(event.packet);
        let host = self.traffic.stations[at].host as usize;
        let done = self.processor[host].max(event.at) + self.timing.receive(at, last);
        self.processor[host] = done;
        if last {
            self.stations[at].complete = done + self.timing.message_receive;
        }
        let held = done + self.timing.forward(at, last);
        self.push(held, Kind::Held, event.place, event.packet, 0);
    }

    fn held(&mut self, event: Event) {
        let at = event.place as usize;
        self.stations[at].held += 1;
        if self.traffic.stations[at].sends.is_empty() {
            self.stations[at].passed += 1;
            self.make_room(event.place, event.at);
        } else {
            self.try_send(event.place, event.at);
        }
    }

    /// There is room at a station for one packet more.
    fn make_room(&mut self, station: u32, now: u64) {
        let fed_by = self.traffic.stations[station as usize].fed_by;
        if fed_by != NONE {
            self.try_send(self.traffic.sends[fed_by as usize].station, now);
        }
    }

    fn try_send(&mut self, station: u32, now: u64) {
        let at = station as usize;
        let progress = self.stations[at];
        let (packet, sends) = (progress.next, &self.traffic.stations[at].sends);
        if progress.sending || sends.is_empty() || packet >= progress.held.min(self.packets) {
            return;
        }
        let send = sends.start + progress.send;
        let has_room =
            |target: &u32| packet - self.stations[*target as usize].passed.min(packet) < self.room;
        if !self.traffic.targets_of(send).iter().all(has_room) {
            return;
        }
        let host = self.traffic.stations[at].host as usize;
        if now < self.gap_over[host] {
            self.push(self.gap_over[host], Kind::Wake, station, 0, 0);
            return;
        }
        if station == 0 && progress.send == 0 {
            self.skip_periods(packet, now);
        }
        let begin = now.max(self.processor[host]);
        let mut done = begin + self.timing.send(send as usize, self.is_last(packet));
        if packet == 0 {
            done += self.timing.message_copy;
            if station != 0 && progress.send == 0 {
                done += self.timing.message_forward;
            }
        }
        self.processor[host] = done;
        self.gap_over[host] = begin + self.timing.gap;
        self.stations[at].sending = true;
        let first = self.traffic.sends[send as usize].first;
        self.push(done, Kind::Enter, first, packet, done);
    }

    fn skip_periods(&mut self, packet: u32, now: u64) {
        let mut recurrence = std::mem::take(&mut self.recurrence);
        recurrence.look(self, packet, now);
        self.recurrence = recurrence;
    }

    pub(super) fn completion_ps(&self) -> u64 {
        let stations = self.traffic.stations.iter().zip(&self.stations);
        let last = stations
            .filter(|(station, _)| station.counts)
            .map(|(_, progress)| progress.complete)
            .max();
        last.map_or(0, |last| self.complete(last + self.recurrence.skipped_ps))
    }

    /// When all is done, if the last member has the message at that time.
    pub(super) fn complete(&self, received: u64) -> u64 {
        self.timing.complete(received, self.message_packets)
    }

    pub(super) fn finish(&self, model: &CostModel<'_, '_>) -> Replay {
        let ns = |ps: u64| ps as f64 / 1e3;
        let skipped = self.recurrence.skipped_ps;
        let hosts = model.topology().hosts();
        let host = |place: u32| hosts[self.traffic.hosts[place as usize] as usize].id;
        let members = self.traffic.stations.iter().zip(&self.stations);
        let mut channels: Vec<ChannelUse> = self
            .traffic
            .channels
            .iter()
            .enumerate()
            .map(|(place, &channel)| ChannelUse {
                channel: model.name(channel),
                busy_ns: ns(self.busy[place]),
                backlog_bytes_max: (self.wait[place] as f64 / model.ps_per_byte(channel)).round()
                    as u64,
            })
            .collect();
        channels.sort_by_key(|used| used.channel);
        Replay {
            completion_ns: ns(self.completion_ps()),
            start_up_ns: match self.source_done {
                0 => 0.0,
                done => ns(done + skipped),
            },
            members: members
                .filter(|(station, _)| station.counts)
                .map(|(station, progress)| (host(station.host), ns(progress.complete + skipped)))
                .collect(),
            channels,
            packets_replayed: u64::from(self.packets),
            events: self.events,
        }
    }
}
