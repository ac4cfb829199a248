//! Constants of hosts, links and switches.

use std::collections::BTreeMap;

use super::CostError;
use wormcast_wire::{HostId, PortId, SwitchId};

/// What hosts, links and switches take. Times are in nanoseconds; what is taken by byte is
/// taken for every byte of the packet on the wire.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// At the source, once a message, before its first packet (t_s of PACKET §5).
    pub message_send_ns: f64,
    /// At a member, once a message, after its last packet (t_r of PACKET §5). A delay: it
    /// does not keep the member from passing packets on.
    pub message_receive_ns: f64,
    /// At a sender, once a message for each host it sends to, before the first packet
    /// (t_process of separate addressing, TORUS Table 1).
    pub message_copy_ns: f64,
    /// At a host that passes a message on, once, before the first packet (t_process of
    /// the other algorithms, TORUS Table 1).
    pub message_forward_ns: f64,
    /// Instead of [`Costs::message_forward_ns`], by name of scheme.
    pub scheme_message_forward_ns: BTreeMap<String, f64>,
    /// Once a message for each member but the source: until its confirmation has come, and what else a
    /// member more takes. It adds to the time of every scheme alike, but where switches copy to more members than
    /// the source takes ACKs of: there confirmations come up a tree.
    pub message_confirm_ns: f64,
    /// Processor time of a sender for each packet and receiver: o_s.
    pub packet_send_ns: f64,
    /// Processor time of a receiver for each packet: o_r.
    pub packet_receive_ns: f64,
    pub send_ns_per_byte: f64,
    pub receive_ns_per_byte: f64,
    /// Least time from the begin of one send of a host to the begin of its next: g.
    pub send_gap_ns: f64,
    /// Delay in a host from having received a packet until it can pass it on.
    pub forward_packet_ns: f64,
    pub forward_ns_per_byte: f64,
    /// Processor time of a sender for the acknowledgement of one packet by one host it
    /// sent to. Of a packet that switches replicate it takes those of [`Costs::ack_fan_in`] members.
    pub acknowledgement_ns: f64,
    /// Time of a packet in a switch, its transmission apart.
    pub switch_hop_ns: f64,
    /// How much later each further copy of a packet leaves a switch that replicates it.
    pub switch_copy_ns: f64,
    /// Time of a packet in an in-transit host (ITB §III.B).
    pub in_transit_ns: f64,
    /// Propagation along a link.
    pub wire_ns: f64,
    /// Links between switches.
    pub link_bits_per_s: u64,
    /// Links between host and switch.
    pub host_link_bits_per_s: u64,
    /// Bytes that a link passes in no time when it has rested, as one with a token bucket does.
    pub link_burst_bytes: u32,
    /// Where hosts and switches share the processors of one machine: what a packet on a link takes of all
    /// of them together. This work and the message get in each other's way: the time of both is the root
    /// of the sum of the squares of their times (**choice**: a maximum knows nothing of two loads that are
    /// about the same, and a sum too much).
    pub shared_crossing_ns: f64,
    /// Most bytes of a message in one packet.
    pub packet_payload_bytes: u32,
    /// Bytes that every packet takes on a link besides its payload and its route.
    pub packet_header_bytes: u32,
    /// Bytes of a source route for each switch crossed.
    pub route_bytes_per_hop: u32,
    /// Bytes of a TREE route for each branch; its end marker is one more.
    pub tree_bytes_per_branch: u32,
    /// Whether switches send on a packet as soon as its header is in.
    pub cut_through: bool,
    /// Packets of a message that a host can hold: it has none sent to it of which it has
    /// not passed on as many before.
    pub host_buffer_packets: u32,
    /// Share of every channel that other traffic takes, from 0 to below 1. The rest is
    /// there for the message (a fluid share, no queue in front).
    pub utilisation: f64,
    /// The same for single channels, instead.
    pub channels: Vec<ChannelLoad>,
}

/// Share of one channel that other traffic takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChannelLoad {
    pub channel: Channel,
    /// The share, from 0 to below 1.
    pub utilisation: f64,
}

/// One direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Channel {
    /// Out of a switch by a port.
    Port(SwitchId, PortId),
    /// Out of a host.
    Host(HostId),
}

impl Costs {
    /// Names of all sets of costs.
    pub const NAMES: &'static [&'static str] = &["agents", "torus", "packet", "nic"];

    /// The set of that name:
    ///
    /// - `agents`: this project's agents and switch on 100 Mb/s links. 2.1 µs a packet in
    ///   the switch are the inverse of 480 thousand a second (switch/bench); an agent takes
    ///   8.5 µs of processor time a frame, and 170 µs until a process has woken up
    ///   (bench/cost says how that was measured).
    /// - `torus`: TORUS §5. o = 1994 + 3.15·(M−128) ns, L_p 14, L_f 60 ns, t_process of
    ///   Table 1. L_s of 670 ns is not told apart from L_f.
    /// - `packet`: PACKET §5. t_s = t_r = 12.5 µs, packets of 64 bytes, t_ns 3.0, t_nr
    ///   2.0 µs. **choice**, as the paper has none: links of 160 MB/s and switches of
    ///   150 ns, those of ITB §IV.
    /// - `nic`: Myrinet 2000 as in NIC §6. Its links have 2 Gb/s; the times of the adapter
    ///   are not printed there: **choice**: 4 µs to send, 1 µs for each further copy
    ///   and 1.5 µs to receive, so that a packet takes about 7 µs from host to host.
    ///
    /// # Errors
    /// [`CostError::UnknownSet`].
    pub fn named(name: &str) -> Result<Costs, CostError> {
        match name {
            "agents" => Ok(Costs::agents()),
            "torus" => Ok(Costs::torus()),
            "packet" => Ok(Costs::packet()),
            "nic" => Ok(Costs::nic()),
            _ => Err(CostError::UnknownSet {
                name: name.to_owned(),
                choices: Costs::NAMES,
            }),
        }
    }

    /// A network in which nothing takes time but the bytes on its links.
    pub fn free(bits_per_s: u64) -> Costs {
        Costs {
            message_send_ns: 0.0,
            message_receive_ns: 0.0,
            message_copy_ns: 0.0,
            message_forward_ns: 0.0,
            scheme_message_forward_ns: BTreeMap::new(),
            message_confirm_ns: 0.0,
            packet_send_ns: 0.0,
            packet_receive_ns: 0.0,
            send_ns_per_byte: 0.0,
            receive_ns_per_byte: 0.0,
            send_gap_ns: 0.0,
            forward_packet_ns: 0.0,
            forward_ns_per_byte: 0.0,
            acknowledgement_ns: 0.0,
            switch_hop_ns: 0.0,
            switch_copy_ns: 0.0,
            in_transit_ns: 0.0,
            wire_ns: 0.0,
            link_bits_per_s: bits_per_s,
            host_link_bits_per_s: bits_per_s,
            link_burst_bytes: 0,
            shared_crossing_ns: 0.0,
            packet_payload_bytes: 1444,
            packet_header_bytes: 0,
            route_bytes_per_hop: 0,
            tree_bytes_per_branch: 0,
            cut_through: false,
            host_buffer_packets: 32,
            utilisation: 0.0,
            channels: Vec::new(),
        }
    }

    fn agents() -> Costs {
        Costs {
            message_send_ns: 170_000.0,
            message_receive_ns: 170_000.0,
            packet_send_ns: 8_500.0,
            packet_receive_ns: 8_500.0,
            forward_packet_ns: 170_000.0,
            // One frame for four packets.
            acknowledgement_ns: 2_100.0,
            switch_hop_ns: 2_100.0,
            switch_copy_ns: 300.0,
            in_transit_ns: 170_000.0,
            // Ethernet 14 + 4, gap and preamble 20, worm header 12, DATA 24
            // (wire/SPEC.md §2, §5.2).
            packet_header_bytes: 74,
            route_bytes_per_hop: 1,
            tree_bytes_per_branch: 2,
            ..Costs::free(100_000_000)
        }
    }

    fn torus() -> Costs {
        let by_scheme = [
            ("md-torus", 206_000.0),
            ("mu-torus", 201_000.0),
            ("u-torus", 629_000.0),
            ("s-torus", 265_000.0),
            ("circuit", 265_000.0),
        ];
        Costs {
            message_copy_ns: 7_000.0,
            message_forward_ns: 206_000.0,
            scheme_message_forward_ns: by_scheme
                .into_iter()
                .map(|(name, ns)| (name.to_owned(), ns))
                .collect(),
            packet_send_ns: 1994.0 - 3.15 * 128.0,
            packet_receive_ns: 1994.0 - 3.15 * 128.0,
            send_ns_per_byte: 3.15,
            receive_ns_per_byte: 3.15,
            switch_hop_ns: 60.0,
            wire_ns: 14.0,
            packet_payload_bytes: 512,
            route_bytes_per_hop: 1,
            tree_bytes_per_branch: 2,
            cut_through: true,
            ..Costs::free(5_300_000_000)
        }
    }

    fn packet() -> Costs {
        Costs {
            message_send_ns: 12_500.0,
            message_receive_ns: 12_500.0,
            packet_send_ns: 3_000.0,
            packet_receive_ns: 2_000.0,
            switch_hop_ns: 150.0,
            in_transit_ns: 475.0,
            wire_ns: 49.2,
            packet_payload_bytes: 64,
            route_bytes_per_hop: 1,
            tree_bytes_per_branch: 2,
            cut_through: true,
            ..Costs::free(1_280_000_000)
        }
    }

    fn nic() -> Costs {
        Costs {
            message_send_ns: 3_000.0,
            message_receive_ns: 1_000.0,
            packet_send_ns: 1_000.0,
            packet_receive_ns: 1_500.0,
            switch_hop_ns: 300.0,
            in_transit_ns: 475.0,
            wire_ns: 15.0,
            packet_payload_bytes: 4096,
            packet_header_bytes: 24,
            route_bytes_per_hop: 1,
            tree_bytes_per_branch: 2,
            cut_through: true,
            ..Costs::free(2_000_000_000)
        }
    }

    /// Packets that a message of so many bytes is cut into; one for an empty one.
    pub fn packets(&self, bytes: u64) -> u64 {
        bytes
            .div_ceil(u64::from(self.packet_payload_bytes.max(1)))
            .max(1)
    }

    /// [`Costs::lambda`], rounded up: that of a tree of the postal model.
    pub fn postal_lambda(&self, payload_bytes: u32, switches: u32) -> u32 {
        // The subtraction keeps a quotient that is whole but for rounding from growing.
        (self.lambda(payload_bytes, switches) - 1e-9).ceil() as u32
    }

    /// λ (NIC §5.5) of packets with so many bytes of payload that cross so many switches: the time until one
    /// has been received, by the time between two sends; 1 to 65,535.
    pub fn lambda(&self, payload_bytes: u32, switches: u32) -> f64 {
        let route = u64::from(self.route_bytes_per_hop) * u64::from(switches);
        let bytes = (u64::from(payload_bytes) + u64::from(self.packet_header_bytes) + route) as f64;
        let free = 1.0 - self.utilisation;
        let host_link = bytes * 8e9 / self.host_link_bits_per_s as f64 / free;
        let link = bytes * 8e9 / self.link_bits_per_s as f64 / free;
        let send = self.packet_send_ns + self.acknowledgement_ns + self.send_ns_per_byte * bytes;
        let between = send
            .max(self.send_gap_ns)
            .max(host_link)
            .max(f64::MIN_POSITIVE);
        let hops = f64::from(switches);
        let on_the_way = if self.cut_through {
            host_link.max(link)
        } else {
            2.0 * host_link + (hops - 1.0).max(0.0) * link
        };
        let until = send
            + on_the_way
            + hops * self.switch_hop_ns
            + (hops + 1.0) * self.wire_ns
            + self.packet_receive_ns
            + self.receive_ns_per_byte * bytes
            + self.forward_packet_ns
            + self.forward_ns_per_byte * bytes;
        (until / between).clamp(1.0, 65_535.0)
    }

    pub(super) fn forward_of(&self, scheme: &str) -> f64 {
        *self
            .scheme_message_forward_ns
            .get(scheme)
            .unwrap_or(&self.message_forward_ns)
    }
}

impl Default for Costs {
    fn default() -> Costs {
        Costs::agents()
    }
}
