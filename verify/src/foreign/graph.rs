//! Who waits for which channel.

use super::lost::Lost;
use super::network::Network;
use super::packet::Packet;
use wormcast_routing::digraph::Digraph;

/// One direction of a link, or one virtual channel of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    pub from: String,
    /// Port it leaves by, if that is known.
    pub from_port: Option<String>,
    /// Node that it leads to.
    pub to: String,
    /// Port it arrives at, if that is known.
    pub to_port: Option<String>,
    /// Its virtual channel (virtual lane), if the file tells them apart.
    pub vc: Option<String>,
}

/// A channel that a packet holds while it waits for the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub channel: Channel,
    pub packet: Packet,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// All channels so that every packet takes them in this order; empty if there is none.
    pub order: Vec<Channel>,
    /// A shortest cycle of packets, each of which waits for the channel of the next, the
    /// last for the first; empty if there is none.
    pub cycle: Vec<Held>,
    /// What was read: names and numbers.
    pub checked: Vec<(&'static str, usize)>,
    /// Packets that do not arrive, at most [`super::LOST_MAX`].
    pub lost: Vec<Lost>,
    pub lost_count: usize,
    /// What the topology's file has that was left out.
    pub warnings: Vec<String>,
}

/// Channels by number, and for each those that packets need next, with one that does.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    pub channels: Vec<Channel>,
    next: Vec<Vec<(u32, u32)>>,
    packets: Vec<Packet>,
}

impl Graph {
    /// A channel for each wire, in the same order, and again for each further virtual channel.
    pub fn of_network(network: &Network, vcs: &[String]) -> Graph {
        let mut graph = Graph::default();
        match vcs {
            [] => graph.add_wires(network, None),
            vcs => vcs.iter().for_each(|vc| graph.add_wires(network, Some(vc))),
        }
        graph
    }

    fn add_wires(&mut self, network: &Network, vc: Option<&String>) {
        let name = |node: u32| network.name_of(node).to_owned();
        let port = |port: Option<u16>| port.map(|port| port.to_string());
        for wire in network.wires() {
            self.add_channel(Channel {
                from: name(wire.from),
                from_port: port(wire.from_port),
                to: name(wire.to),
                to_port: port(wire.to_port),
                vc: vc.cloned(),
            });
        }
    }

    pub fn add_channel(&mut self, channel: Channel) -> u32 {
        self.channels.push(channel);
        self.next.push(Vec::new());
        self.channels.len() as u32 - 1
    }

    /// A packet that holds one channel needs the other; `packet` is asked for only if no
    /// other packet does.
    pub fn add(&mut self, held: u32, needed: u32, packet: impl FnOnce() -> Packet) {
        let next = &mut self.next[held as usize];
        // A channel leads to one node, so that there are few.
        if next.iter().all(|(known, _)| *known != needed) {
            next.push((needed, self.packets.len() as u32));
            self.packets.push(packet());
        }
    }

    /// An order of all channels, or a shortest cycle.
    pub fn check(self) -> Verdict {
        let mut graph = Digraph::default();
        for _ in &self.next {
            graph.add_node();
        }
        for (held, next) in (0..).zip(&self.next) {
            for &(needed, _) in next {
                graph.add_arc(held, needed);
            }
        }
        let mut verdict = Verdict {
            order: Vec::new(),
            cycle: Vec::new(),
            checked: Vec::new(),
            lost: Vec::new(),
            lost_count: 0,
            warnings: Vec::new(),
        };
        if let Some(order) = graph.topological_order() {
            let channel = |number: u32| self.channels[number as usize].clone();
            verdict.order = order.into_iter().map(channel).collect();
            return verdict;
        }
        let cycle = graph.shortest_cycle().expect("there is no order");
        for (place, &held) in cycle.iter().enumerate() {
            let needed = cycle[(place + 1) % cycle.len()];
            let next = &self.next[held as usize];
            let (_, packet) = next
                .iter()
                .find(|(known, _)| *known == needed)
                .expect("an arc");
            verdict.cycle.push(Held {
                channel: self.channels[held as usize].clone(),
                packet: self.packets[*packet as usize].clone(),
            });
        }
        verdict
    }
}
