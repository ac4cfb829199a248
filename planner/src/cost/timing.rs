//! How long everything takes that a message does on a traffic, in picoseconds.

use super::traffic::{NONE, ps};
use super::{CostModel, Message, Traffic};

/// Times of a full packet and of the last one.
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    full: u64,
    last: u64,
}

impl Pair {
    fn get(self, last: bool) -> u64 {
        if last { self.last } else { self.full }
    }
}

/// Times of all crossings, sends and stations.
pub(crate) struct Timing {
    crossing: Vec<Pair>,
    head: Vec<u64>,
    /// For the first crossing of a send, the send; else `NONE`.
    pub send_of: Vec<u32>,
    send: Vec<Pair>,
    receive: Vec<Pair>,
    forward: Vec<Pair>,
    pub message_send: u64,
    pub message_receive: u64,
    pub message_copy: u64,
    pub message_forward: u64,
    pub gap: u64,
    pub wire: u64,
    pub cut_through: bool,
    /// By channel in use: what its burst takes off the times of packets.
    pub burst: Vec<u64>,
    /// Once a message: until all members have confirmed it.
    confirm: u64,
    /// A packet on all links: of processors that all share.
    shared: u64,
}

impl Timing {
    pub(crate) fn new(model: &CostModel<'_, '_>, traffic: &Traffic, message: Message) -> Timing {
        let costs = model.costs();
        let header = u64::from(costs.packet_header_bytes);
        let wire_bytes = |place: usize| {
            let over = header + u64::from(traffic.crossings[place].route_bytes);
            (
                message.payload_bytes() + over,
                message.last_payload_bytes() + over,
            )
        };
        let by_byte = |place: usize, fixed: f64, rate: f64| {
            let (full, last) = wire_bytes(place);
            Pair {
                full: ps(fixed + rate * full as f64),
                last: ps(fixed + rate * last as f64),
            }
        };
        let others = traffic.receivers();
        let copied = traffic.sends.iter().any(|send| send.targets.len() > 1);
        let confirm_ns = if copied {
            costs.confirmed_by_tree_ns(others)
        } else {
            costs.message_confirm_ns * others as f64
        };
        let mut timing = Timing {
            crossing: Vec::with_capacity(traffic.crossings.len()),
            head: Vec::with_capacity(traffic.crossings.len()),
            send_of: vec![NONE; traffic.crossings.len()],
            send: Vec::with_capacity(traffic.sends.len()),
            receive: vec![Pair::default(); traffic.stations.len()],
            forward: vec![Pair::default(); traffic.stations.len()],
            message_send: ps(costs.message_send_ns),
            message_receive: ps(costs.message_receive_ns),
            message_copy: ps(costs.message_copy_ns),
            message_forward: ps(costs.forward_of(traffic.scheme)),
            gap: ps(costs.send_gap_ns),
            wire: ps(costs.wire_ns),
            cut_through: costs.cut_through,
            burst: Vec::with_capacity(traffic.channels.len()),
            confirm: ps(confirm_ns),
            shared: ps(costs.shared_crossing_ns) * traffic.crossings.len() as u64,
        };
        for &channel in &traffic.channels {
            let bytes = f64::from(costs.link_burst_bytes);
            let burst = (model.ps_per_byte(channel) * bytes).round() as u64;
            timing.burst.push(burst);
        }
        for (place, crossing) in traffic.crossings.iter().enumerate() {
            let ns_per_byte = model.ps_per_byte(traffic.channels[crossing.channel as usize]) / 1e3;
            timing.crossing.push(by_byte(place, 0.0, ns_per_byte));
            let head = header + u64::from(crossing.route_bytes);
            timing.head.push(ps(ns_per_byte * head as f64));
            if crossing.station != NONE {
                let at = crossing.station as usize;
                timing.receive[at] =
                    by_byte(place, costs.packet_receive_ns, costs.receive_ns_per_byte);
                if !traffic.stations[at].sends.is_empty() {
                    timing.forward[at] =
                        by_byte(place, costs.forward_packet_ns, costs.forward_ns_per_byte);
                }
            }
        }
        for (number, send) in traffic.sends.iter().enumerate() {
            timing.send_of[send.first as usize] = number as u32;
            let fan_in = costs.ack_fan_in(send.targets.len() + 1) as usize;
            let acks = send.targets.len().min(fan_in);
            let acknowledged = costs.acknowledgement_ns * acks as f64;
            let fixed = costs.packet_send_ns + acknowledged;
            timing
                .send
                .push(by_byte(send.first as usize, fixed, costs.send_ns_per_byte));
        }
        timing
    }

    /// When all is done, if the last member has all of so many packets at `received`.
    pub(crate) fn complete(&self, received: u64, packets: u64) -> u64 {
        let alone = received + self.confirm;
        match self.shared {
            0 => alone,
            shared => (shared as f64 * packets as f64).hypot(alone as f64) as u64,
        }
    }

    /// A packet on a channel.
    pub(crate) fn crossing(&self, place: usize, last: bool) -> u64 {
        self.crossing[place].get(last)
    }

    pub(crate) fn head(&self, place: usize) -> u64 {
        self.head[place]
    }

    /// The processor of a sender.
    pub(crate) fn send(&self, send: usize, last: bool) -> u64 {
        self.send[send].get(last)
    }

    /// The processor of a receiver.
    pub(crate) fn receive(&self, station: usize, last: bool) -> u64 {
        self.receive[station].get(last)
    }

    /// From there until the packet can be passed on.
    pub(crate) fn forward(&self, station: usize, last: bool) -> u64 {
        self.forward[station].get(last)
    }
}
