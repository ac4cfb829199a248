//! What is wired to what, by name.

use std::collections::BTreeMap;

use crate::formats::{Addresses, Document, FormatError, Owner, Reading, read_with_addresses};
use wormcast_wire::{HostId, SwitchId};

/// Ports are numbered below this.
pub(super) const PORTS: usize = 256;
const NOTHING: u32 = u32::MAX;

/// A switch or a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// What its file calls it; `s3`, `h3` where it has an id only.
    pub name: String,
    /// Whether it is a switch.
    pub is_switch: bool,
}

/// One direction of a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wire {
    pub from: u32,
    /// `None` at a host, which has one.
    pub from_port: Option<u16>,
    pub to: u32,
    pub to_port: Option<u16>,
}

/// Named switches and hosts, and their links. Switches have the lower numbers.
#[derive(Clone, Debug)]
pub struct Network {
    nodes: Vec<Node>,
    numbers: BTreeMap<String, u32>,
    switches: usize,
    wires: Vec<Wire>,
    /// For each port of each switch the wire that leaves by it.
    leaving: Vec<u32>,
    /// The wires that leave each node.
    all_leaving: Vec<Vec<u32>>,
    /// For each host the wire that leaves it, and its switch.
    homes: Vec<(u32, u32)>,
    hosts_at: Vec<Vec<u32>>,
    addresses: Option<BTreeMap<u16, u32>>,
    guids: BTreeMap<u64, u32>,
    /// What its file has that was left out.
    pub warnings: Vec<String>,
}

impl Network {
    /// Reads a topology file in any format. Of a net list (ibnetdiscover, ibsim) ports are
    /// numbered from 1, as InfiniBand does, and LIDs and GUIDs are kept.
    ///
    /// # Errors
    /// As [`crate::formats::read`].
    pub fn read(text: &str) -> Result<Network, FormatError> {
        let reading = Reading {
            allow_split: true,
            ..Reading::default()
        };
        let (document, addresses) = read_with_addresses(text, &reading)?;
        Ok(Network::new(&document, addresses.as_ref()))
    }

    /// The network of a topology; `addresses` are those of a net list.
    pub fn new(document: &Document, addresses: Option<&Addresses>) -> Network {
        let topology = &document.topology;
        let (switches, hosts) = (topology.switches(), topology.hosts());
        let mut network = Network {
            nodes: Vec::with_capacity(switches.len() + hosts.len()),
            numbers: BTreeMap::new(),
            switches: switches.len(),
            wires: Vec::with_capacity(2 * (topology.links().len() + hosts.len())),
            leaving: vec![NOTHING; switches.len() * PORTS],
            all_leaving: vec![Vec::new(); switches.len() + hosts.len()],
            homes: Vec::with_capacity(hosts.len()),
            hosts_at: vec![Vec::new(); switches.len()],
            addresses: None,
            guids: BTreeMap::new(),
            warnings: document.warnings.clone(),
        };
        for switch in switches {
            network.name(document.names.switches.get(&switch.id), "s", switch.id.0);
        }
        for host in hosts {
            network.name(document.names.hosts.get(&host.id), "h", host.id.0);
        }
        network.name_by_ids(document);
        let first = u16::from(addresses.is_some());
        let switch = |id: SwitchId| topology.switch_index(id).expect("checked");
        for link in topology.links() {
            let a = (switch(link.a), Some(u16::from(link.a_port.get()) + first));
            let b = (switch(link.b), Some(u16::from(link.b_port.get()) + first));
            network.wire(a, b);
            network.wire(b, a);
        }
        for (host, number) in hosts.iter().zip(switches.len() as u32..) {
            let at = switch(host.switch);
            let port = (at, Some(u16::from(host.port.get()) + first));
            network.homes.push((network.wires.len() as u32, at));
            network.hosts_at[at as usize].push(number);
            network.wire((number, None), port);
            network.wire(port, (number, None));
        }
        if let Some(addresses) = addresses.filter(|addresses| !addresses.lids.is_empty()) {
            let host =
                |id: HostId| topology.host_index(id).expect("checked") + switches.len() as u32;
            let owner = |owner: &Owner| match owner {
                Owner::Switch(id) => switch(*id),
                Owner::Host(id) => host(*id),
            };
            let lids = addresses.lids.iter().map(|(lid, of)| (*lid, owner(of)));
            network.addresses = Some(lids.collect());
            let guids = addresses
                .switches
                .iter()
                .map(|(guid, id)| (*guid, switch(*id)));
            network.guids = guids.collect();
        }
        network
    }

    /// A name that no other node has.
    fn name(&mut self, given: Option<&String>, letter: &str, id: u16) {
        let number = self.nodes.len() as u32;
        let choices = given.cloned().into_iter().chain([format!("{letter}{id}")]);
        let mut choices = choices.chain((2..).map(|more| format!("{letter}{id}#{more}")));
        let name = choices
            .find(|name| !self.numbers.contains_key(name))
            .expect("endless");
        self.numbers.insert(name.clone(), number);
        self.nodes.push(Node {
            name,
            is_switch: letter == "s",
        });
    }

    /// Nodes are found by `s3` and `h3` too, where that is no other's name.
    fn name_by_ids(&mut self, document: &Document) {
        let switches = document
            .topology
            .switches()
            .iter()
            .map(|switch| format!("s{}", switch.id));
        let hosts = document
            .topology
            .hosts()
            .iter()
            .map(|host| format!("h{}", host.id));
        for (alias, number) in switches.chain(hosts).zip(0..) {
            self.numbers.entry(alias).or_insert(number);
        }
    }

    fn wire(&mut self, (from, from_port): (u32, Option<u16>), (to, to_port): (u32, Option<u16>)) {
        if let Some(port) = from_port {
            self.leaving[from as usize * PORTS + usize::from(port)] = self.wires.len() as u32;
        }
        self.all_leaving[from as usize].push(self.wires.len() as u32);
        self.wires.push(Wire {
            from,
            from_port,
            to,
            to_port,
        });
    }

    /// All nodes, switches first.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(super) fn switches(&self) -> u32 {
        self.switches as u32
    }

    pub(super) fn is_switch(&self, node: u32) -> bool {
        (node as usize) < self.switches
    }

    pub(super) fn find(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    pub(super) fn name_of(&self, node: u32) -> &str {
        &self.nodes[node as usize].name
    }

    pub(super) fn wires(&self) -> &[Wire] {
        &self.wires
    }

    /// The wire that leaves a switch by a port.
    pub(super) fn leaving(&self, switch: u32, port: u16) -> Option<u32> {
        let slot = switch as usize * PORTS + usize::from(port);
        let wire = *self
            .leaving
            .get(slot)
            .filter(|_| usize::from(port) < PORTS)?;
        (wire != NOTHING).then_some(wire)
    }

    /// The wires that leave a node.
    pub(super) fn all_leaving(&self, node: u32) -> &[u32] {
        &self.all_leaving[node as usize]
    }

    /// The wire out of a host, and its switch.
    pub(super) fn home(&self, host: u32) -> (u32, u32) {
        self.homes[host as usize - self.switches]
    }

    pub(super) fn hosts_at(&self, switch: u32) -> &[u32] {
        &self.hosts_at[switch as usize]
    }

    /// Owners of the LIDs, if the file has LIDs.
    pub(super) fn addresses(&self) -> Option<&BTreeMap<u16, u32>> {
        self.addresses.as_ref()
    }

    /// The switch with a node GUID.
    pub(super) fn by_guid(&self, guid: u64) -> Option<u32> {
        self.guids.get(&guid).copied()
    }

    /// Some of the names there are, for a refusal.
    pub(super) fn some_names(&self, is_switch: bool) -> String {
        let names = self.nodes.iter().filter(|node| node.is_switch == is_switch);
        let some: Vec<&str> = names
            .clone()
            .take(8)
            .map(|node| node.name.as_str())
            .collect();
        let more = if names.count() > 8 { ", …" } else { "" };
        format!("{}{more}", some.join(", "))
    }
}
