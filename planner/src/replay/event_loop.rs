//! The events of a replay.

use std::cmp::Reverse;

use super::found::{ChannelUse, Replay};
use super::network::{Event, Kind, Network};
use super::recurrence::Recurrence;
use crate::cost::timing::Timing;
use crate::cost::traffic::NONE;
use crate::cost::{CostModel, Message, Traffic};

pub(super) struct EventLoop<'a> {
    network: Network<'a>,
    timing: Timing,
    room: u32,
    /// By channel: the longest wait.
    wait: Vec<u64>,
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
            network: Network::new(traffic, packets, timing.burst.clone()),
            timing,
            room: model.costs().host_buffer_packets.max(1),
            wait: vec![0; traffic.channels.len()],
            source_done: 0,
            recurrence: Recurrence::default(),
            message_packets: packets.into(),
            events: 0,
            now: 0,
        };
        replay.push(replay.timing.message_send, Kind::Wake, 0, 0, 0);
        replay
    }

    pub(super) fn never_skip(&mut self) {
        self.recurrence.give_up();
    }

    pub(super) fn run(&mut self) {
        self.run_within(u64::MAX);
    }

    /// Runs until all is done, and says so, or until there have been so many events and
    /// no recurrence.
    pub(super) fn run_within(&mut self, events: u64) -> bool {
        while let Some(Reverse(event)) = self.network.heap.peek().copied() {
            if self.events >= events && !self.recurrence.has_skipped() {
                return false;
            }
            self.network.heap.pop();
            self.events += 1;
            self.now = event.at;
            match event.kind {
                Kind::Enter => self.enter(event),
                Kind::Arrive => self.arrive(event),
                Kind::Held => self.held(event),
                Kind::Ready => {
                    self.network.stations[event.place as usize].sending = false;
                    self.try_send(event.place, event.at);
                }
                Kind::Wake => self.try_send(event.place, event.at),
            }
        }
        true
    }

    /// Packets that every member has, and since when.
    pub(super) fn standing(&self) -> (u32, u64) {
        let stations = self
            .network
            .traffic
            .stations
            .iter()
            .zip(&self.network.stations);
        let counted = stations.filter(|(station, _)| station.counts);
        let held = counted.map(|(_, progress)| progress.held).min();
        (held.unwrap_or(0), self.now)
    }

    fn push(&mut self, at: u64, kind: Kind, place: u32, packet: u32, tail: u64) {
        self.network.heap.push(Reverse(Event {
            at,
            kind,
            place,
            packet,
            tail,
        }));
    }

    fn is_last(&self, packet: u32) -> bool {
        packet + 1 == self.network.packets
    }

    fn enter(&mut self, event: Event) {
        let traffic = self.network.traffic;
        let place = event.place as usize;
        let (crossing, packet) = (&traffic.crossings[place], event.packet);
        let channel = crossing.channel as usize;
        let full = self.timing.crossing(place, self.is_last(packet));
        let time = full.saturating_sub(self.network.burst[channel]);
        self.network.burst[channel] -= full - time;
        let begin = event.at.max(self.network.free[channel]);
        let end = (begin + time).max(event.tail);
        let waiting = self.network.free[channel].saturating_sub(event.at) + time;
        self.wait[channel] = self.wait[channel].max(waiting);
        self.network.free[channel] = end;
        self.network.busy[channel] += time;
        let head = if self.timing.cut_through {
            begin + self.timing.head(place).min(time)
        } else {
            end
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
        let station = self.network.traffic.sends[send as usize].station;
        let at = station as usize;
        self.network.stations[at].send += 1;
        let sends = &self.network.traffic.stations[at].sends;
        if self.network.stations[at].send as usize == sends.len() {
            self.network.stations[at].send = 0;
            self.network.stations[at].next = packet + 1;
            self.network.stations[at].passed = packet + 1;
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
        let host = self.network.traffic.stations[at].host as usize;
        let done = self.network.processor[host].max(event.at) + self.timing.receive(at, last);
        self.network.processor[host] = done;
        if last {
            self.network.stations[at].complete = done + self.timing.message_receive;
        }
        let held = done + self.timing.forward(at, last);
        self.push(held, Kind::Held, event.place, event.packet, 0);
    }

    fn held(&mut self, event: Event) {
        let at = event.place as usize;
        self.network.stations[at].held += 1;
        if self.network.traffic.stations[at].sends.is_empty() {
            self.network.stations[at].passed += 1;
            self.make_room(event.place, event.at);
        } else {
            self.try_send(event.place, event.at);
        }
    }

    /// There is room at a station for one packet more.
    fn make_room(&mut self, station: u32, now: u64) {
        let fed_by = self.network.traffic.stations[station as usize].fed_by;
        if fed_by != NONE {
            self.try_send(self.network.traffic.sends[fed_by as usize].station, now);
        }
    }

    fn try_send(&mut self, station: u32, now: u64) {
        let at = station as usize;
        let progress = self.network.stations[at];
        let (packet, sends) = (progress.next, &self.network.traffic.stations[at].sends);
        if progress.sending || sends.is_empty() || packet >= progress.held.min(self.network.packets)
        {
            return;
        }
        let send = sends.start + progress.send;
        let has_room = |target: &u32| {
            packet - self.network.stations[*target as usize].passed.min(packet) < self.room
        };
        if !self.network.traffic.targets_of(send).iter().all(has_room) {
            return;
        }
        let host = self.network.traffic.stations[at].host as usize;
        if now < self.network.gap_over[host] {
            self.push(self.network.gap_over[host], Kind::Wake, station, 0, 0);
            return;
        }
        if station == 0 && progress.send == 0 {
            self.recurrence.look(&mut self.network, packet, now);
        }
        let begin = now.max(self.network.processor[host]);
        let mut done = begin + self.timing.send(send as usize, self.is_last(packet));
        if packet == 0 {
            done += self.timing.message_copy;
            if station != 0 && progress.send == 0 {
                done += self.timing.message_forward;
            }
        }
        self.network.processor[host] = done;
        self.network.gap_over[host] = begin + self.timing.gap;
        self.network.stations[at].sending = true;
        let first = self.network.traffic.sends[send as usize].first;
        self.push(done, Kind::Enter, first, packet, done);
    }

    pub(super) fn completion_ps(&self) -> u64 {
        let stations = self
            .network
            .traffic
            .stations
            .iter()
            .zip(&self.network.stations);
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
        let host = |place: u32| hosts[self.network.traffic.hosts[place as usize] as usize].id;
        let members = self
            .network
            .traffic
            .stations
            .iter()
            .zip(&self.network.stations);
        let mut channels: Vec<ChannelUse> = self
            .network
            .traffic
            .channels
            .iter()
            .enumerate()
            .map(|(place, &channel)| ChannelUse {
                channel: model.name(channel),
                busy_ns: ns(self.network.busy[place]),
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
            packets_replayed: u64::from(self.network.packets),
            events: self.events,
        }
    }
}
