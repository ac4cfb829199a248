//! A replay in closed form: the first packet, the pace of each place, the last packet.
//!
//! The first packet goes send by send in the order in which hosts get to them; on a
//! channel that several cross it waits for those laid out before it. At each place, a
//! processor or a channel, packets follow the first one no faster than the place works
//! off all that crosses it for one packet. The last packet goes through the structure
//! once more: at each place it comes after its predecessors there, or as soon as it
//! arrives, whichever is later. A slow place holds back the source once the buffers of
//! the hosts before it are full. Time O(crossings + sends · log sends), whatever the
//! number of packets.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::timing::Timing;
use super::traffic::NONE;
use super::{CostModel, Message, Traffic};

/// What a message is estimated to take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Until the last member has the last packet.
    pub completion_ns: f64,
    /// Until the last member has the first packet.
    pub first_packet_ns: f64,
    /// Between packets, at the slowest place.
    pub bottleneck_ns: f64,
}

/// Estimates what [`crate::replay::replay`] would find.
pub fn estimate(model: &CostModel<'_, '_>, traffic: &Traffic, message: Message) -> Estimate {
    let timing = Timing::new(model, traffic, message);
    let more = message.packets.max(1) - 1;
    let first = FirstPacket::lay_out(traffic, &timing, more == 0);
    let counted = |times: &[u64]| {
        let stations = traffic.stations.iter().zip(times);
        let counted = stations.filter(|(station, _)| station.counts);
        counted
            .map(|(_, &at)| at + timing.message_receive)
            .max()
            .unwrap_or(0)
    };
    let first_packet = counted(&first.received);
    let pace = Pace::new(traffic, &timing);
    let received = match more {
        0 => first_packet,
        _ => {
            let room = u64::from(model.costs().host_buffer_packets.max(1));
            counted(&last_packet(traffic, &timing, &first, &pace, more, room))
        }
    };
    let completion = timing.complete(received, more + 1);
    let ns = |ps: u64| ps as f64 / 1e3;
    Estimate {
        completion_ns: ns(completion),
        first_packet_ns: ns(first_packet),
        bottleneck_ns: ns(pace.slowest()),
    }
}

struct FirstPacket {
    /// By station: when its processor is done with it.
    received: Vec<u64>,
    /// By send: when its processor began with it.
    begun: Vec<u64>,
    /// By crossing: when it has left the channel.
    crossed: Vec<u64>,
    /// By channel: what is left of its burst.
    burst: Vec<u64>,
}

impl FirstPacket {
    fn lay_out(traffic: &Traffic, timing: &Timing, last: bool) -> FirstPacket {
        let mut first = FirstPacket {
            received: vec![0; traffic.stations.len()],
            begun: vec![0; traffic.sends.len()],
            crossed: vec![0; traffic.crossings.len()],
            burst: timing.burst.clone(),
        };
        let mut free = vec![0u64; traffic.channels.len()];
        let mut processor = vec![0u64; traffic.hosts.len()];
        let mut enters = vec![(0u64, 0u64); traffic.crossings.len()];
        let mut queue = BinaryHeap::new();
        queue.push(Reverse((timing.message_send, 0u32, 0u32)));
        while let Some(Reverse((at, station, nth))) = queue.pop() {
            let sends = &traffic.stations[station as usize].sends;
            if nth as usize >= sends.len() {
                continue;
            }
            let send = (sends.start + nth) as usize;
            let host = traffic.stations[station as usize].host as usize;
            let begin = at.max(processor[host]);
            let mut done = begin + timing.send(send, last) + timing.message_copy;
            if station != 0 && nth == 0 {
                done += timing.message_forward;
            }
            first.begun[send] = begin;
            processor[host] = done;
            let range = traffic.crossings_of(send);
            let from = range.start;
            enters[from] = (done, done);
            let mut on_link = done;
            for place in range {
                let crossing = &traffic.crossings[place];
                let (head, tail) = enters[place];
                let channel = crossing.channel as usize;
                let full = timing.crossing(place, last);
                let time = full.saturating_sub(first.burst[channel]);
                first.burst[channel] -= full - time;
                let begin = head.max(free[channel]);
                let end = (begin + time).max(tail);
                free[channel] = end;
                first.crossed[place] = end;
                if place == from {
                    on_link = begin;
                }
                let leaves = if timing.cut_through {
                    begin + timing.head(place).min(time)
                } else {
                    end
                };
                for child in crossing.children.clone() {
                    let delay = traffic.crossings[child as usize].delay_ps;
                    enters[child as usize] = (leaves + delay, end + delay);
                }
                if crossing.station != NONE {
                    let to = crossing.station as usize;
                    let host = traffic.stations[to].host as usize;
                    let done = processor[host].max(end + timing.wire) + timing.receive(to, last);
                    processor[host] = done;
                    first.received[to] = done;
                    let held = done + timing.forward(to, last);
                    queue.push(Reverse((held, crossing.station, 0)));
                }
            }
            let next = on_link.max(begin + timing.gap);
            queue.push(Reverse((next, station, nth + 1)));
        }
        first
    }

    /// When a channel has passed so many packets more than the first, all their copies together.
    fn passed(&self, place: usize, channel: usize, pace: &Pace, more: u64) -> u64 {
        self.crossed[place] + (more * pace.channel[channel]).saturating_sub(self.burst[channel])
    }
}

/// Time that each place needs for one packet, all its copies that cross it together.
struct Pace {
    channel: Vec<u64>,
    host: Vec<u64>,
}

impl Pace {
    fn new(traffic: &Traffic, timing: &Timing) -> Pace {
        let mut pace = Pace {
            channel: vec![0; traffic.channels.len()],
            host: vec![0; traffic.hosts.len()],
        };
        for (place, crossing) in traffic.crossings.iter().enumerate() {
            pace.channel[crossing.channel as usize] += timing.crossing(place, false);
        }
        for (at, station) in traffic.stations.iter().enumerate() {
            let sends = station.sends.clone();
            let works: u64 = sends.map(|send| timing.send(send as usize, false)).sum();
            let gaps = timing.gap * station.sends.len() as u64;
            pace.host[station.host as usize] += (timing.receive(at, false) + works).max(gaps);
        }
        pace
    }

    fn slowest(&self) -> u64 {
        self.channel
            .iter()
            .chain(&self.host)
            .copied()
            .max()
            .unwrap_or(0)
    }
}

/// When each station has received the last packet, `more` after the first.
fn last_packet(
    traffic: &Traffic,
    timing: &Timing,
    first: &FirstPacket,
    pace: &Pace,
    more: u64,
    room: u64,
) -> Vec<u64> {
    let host_of = |at: usize| traffic.stations[at].host as usize;
    let mut received = vec![0u64; traffic.stations.len()];
    // When its head and its tail can enter each channel.
    let mut enters = vec![(0u64, 0u64); traffic.crossings.len()];
    let mut queue = vec![0usize];
    received[0] = held_back(traffic, timing, first, pace, more, room)
        .max(timing.message_send + more * pace.host[host_of(0)]);
    let mut next = 0;
    while let Some(&at) = queue.get(next) {
        next += 1;
        let mut may_begin = received[at] + timing.forward(at, true);
        for send in traffic.stations[at].sends.clone() {
            let send = send as usize;
            let done = may_begin + timing.send(send, true);
            may_begin = done.max(may_begin + timing.gap);
            let range = traffic.crossings_of(send);
            enters[range.start] = (done, done);
            for place in range {
                let crossing = &traffic.crossings[place];
                let (head, tail) = enters[place];
                let channel = crossing.channel as usize;
                let behind = first.passed(place, channel, pace, more);
                let time = if more * pace.channel[channel] < first.burst[channel] {
                    0
                } else {
                    timing.crossing(place, true)
                };
                let end = (head + time).max(tail).max(behind);
                let leaves = if timing.cut_through {
                    end - time + timing.head(place).min(time)
                } else {
                    end
                };
                for child in crossing.children.clone() {
                    let delay = traffic.crossings[child as usize].delay_ps;
                    enters[child as usize] = (leaves + delay, end + delay);
                }
                if crossing.station != NONE {
                    let to = crossing.station as usize;
                    let arrives = end + timing.wire + timing.receive(to, true);
                    received[to] = arrives.max(first.received[to] + more * pace.host[host_of(to)]);
                    queue.push(to);
                }
            }
        }
    }
    received
}

/// When the source can begin with the last packet, for the sake of buffers below it.
fn held_back(
    traffic: &Traffic,
    timing: &Timing,
    first: &FirstPacket,
    pace: &Pace,
    more: u64,
    room: u64,
) -> u64 {
    // All packets find room at the first hosts already.
    if more <= room {
        return 0;
    }
    let mut latest = 0;
    let mut queue = vec![(0usize, 1u64)];
    let mut next = 0;
    while let Some(&(at, depth)) = queue.get(next) {
        next += 1;
        // Packets that find room on the way here.
        let waiting = more.saturating_sub(room * depth);
        for send in traffic.stations[at].sends.clone() {
            for place in traffic.crossings_of(send as usize) {
                let crossing = &traffic.crossings[place];
                if waiting > 0 {
                    let channel = crossing.channel as usize;
                    latest = latest.max(first.passed(place, channel, pace, waiting));
                }
                if crossing.station == NONE {
                    continue;
                }
                let to = crossing.station as usize;
                let host = pace.host[traffic.stations[to].host as usize];
                if waiting > 0 {
                    latest = latest.max(first.received[to] + waiting * host);
                }
                // The round of a buffer: sent, received, passed on.
                let sends = traffic.stations[to].sends.clone();
                let passed: u64 = sends.map(|send| timing.send(send as usize, false)).sum();
                let round = first.received[to] - first.begun[send as usize]
                    + timing.forward(to, false)
                    + passed;
                let rounds = more.saturating_sub(room) / room;
                latest = latest.max(first.begun[send as usize] + rounds * round);
                queue.push((to, depth + 1));
            }
        }
    }
    latest
}
