//! Worms that switches copy: by a TREE route, by their tables, or to everybody.

use std::collections::BTreeMap;

use super::{Branching, ChannelGraph, DeadlockError, Worm, coupled};
use wormcast_routing::topology::Attachment;
use wormcast_routing::updown::UpDown;
use wormcast_wire::tree_route::branches;
use wormcast_wire::{HostId, PortId, SwitchId};

/// Ports that a switch copies the worms of a group to, except the one they come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableEntry {
    pub switch: SwitchId,
    pub ports: Vec<PortId>,
}

/// What tells a switch where a worm goes on.
#[derive(Clone, Debug)]
enum Header {
    /// A TREE route.
    Tree(Vec<u8>),
    /// Ports to each host that is reached from here.
    Ways(Vec<Vec<u8>>),
    /// The number of a group.
    Group,
    /// Ports to the root, and from there to everybody.
    Broadcast(Vec<u8>),
    /// To everybody below.
    Down,
}

type Table = BTreeMap<SwitchId, Vec<PortId>>;

/// A copy that arrives at a switch.
struct Arrival {
    switch: SwitchId,
    port: PortId,
    /// Place in the tree of the channel it holds.
    place: u32,
    header: Header,
    /// Whether it has had its turn at the root.
    turned: bool,
}

impl ChannelGraph<'_> {
    /// Adds the worm of one TREE route.
    ///
    /// # Errors
    /// A route that does not parse, or leads where the topology has nothing; with
    /// [`Branching::Interrupted`], one that branches before the root.
    pub fn add_tree(&mut self, src: HostId, route: &[u8]) -> Result<(), DeadlockError> {
        let by_turns = self.model.branching == Branching::Interrupted;
        let header = Header::Tree(route.to_vec());
        self.add_multicast(src, header, &Table::new(), by_turns)
    }

    /// Adds the worm that goes these ways at once, each the ports to a host: that of the TREE route made of
    /// them, however long it is.
    ///
    /// # Errors
    /// As [`ChannelGraph::add_tree`].
    pub fn add_ways(&mut self, src: HostId, ways: Vec<Vec<u8>>) -> Result<(), DeadlockError> {
        let by_turns = self.model.branching == Branching::Interrupted;
        self.add_multicast(src, Header::Ways(ways), &Table::new(), by_turns)
    }

    /// Adds the worm of a group that switches copy by their tables.
    ///
    /// # Errors
    /// As [`ChannelGraph::add_tree`]; a worm that reaches a switch without an entry, or
    /// the same channel twice.
    pub fn add_table(&mut self, src: HostId, entries: &[TableEntry]) -> Result<(), DeadlockError> {
        let by_turns = self.model.branching == Branching::Interrupted;
        self.add_table_from(src, entries, by_turns)
    }

    /// Without turns, the host itself sends one message after the other.
    pub(super) fn add_table_from(
        &mut self,
        src: HostId,
        entries: &[TableEntry],
        by_turns: bool,
    ) -> Result<(), DeadlockError> {
        let table = self.table_of(entries)?;
        self.add_multicast(src, Header::Group, &table, by_turns)
    }

    fn table_of(&self, entries: &[TableEntry]) -> Result<Table, DeadlockError> {
        let mut table = Table::new();
        for entry in entries {
            self.topology.switch_index(entry.switch)?;
            for &port in &entry.ports {
                self.numbers.leave(entry.switch, port)?;
            }
            table.entry(entry.switch).or_default().extend(&entry.ports);
        }
        for ports in table.values_mut() {
            ports.sort_unstable();
            ports.dedup();
        }
        Ok(table)
    }

    /// Adds a broadcast: by these ports to the root, from there as these entries of all switches say.
    ///
    /// # Errors
    /// As [`ChannelGraph::add_tree`]; ports that do not lead to a switch.
    pub fn add_broadcast_by(
        &mut self,
        src: HostId,
        to_root: &[u8],
        entries: &[TableEntry],
    ) -> Result<(), DeadlockError> {
        let table = self.table_of(entries)?;
        let by_turns = self.model.branching == Branching::Interrupted;
        self.add_multicast(src, Header::Broadcast(to_root.to_vec()), &table, by_turns)
    }

    /// Adds a broadcast: by these ports to the root, from there down the spanning tree to
    /// every host. Without ports, up the spanning tree.
    ///
    /// # Errors
    /// As [`ChannelGraph::add_tree`]; ports that do not end at the root.
    pub fn add_broadcast(
        &mut self,
        src: HostId,
        to_root: Option<&[u8]>,
    ) -> Result<(), DeadlockError> {
        self.plan_updown()?;
        let ports = match to_root {
            Some(ports) => ports.to_vec(),
            None => self.climb(src)?,
        };
        let by_turns = self.model.branching == Branching::Interrupted;
        let header = Header::Broadcast(ports);
        self.add_multicast(src, header, &Table::new(), by_turns)
    }

    fn add_multicast(
        &mut self,
        src: HostId,
        header: Header,
        table: &Table,
        by_turns: bool,
    ) -> Result<(), DeadlockError> {
        let host = self.topology.host_index(src)?;
        let root = self.root_for(host)?;
        let mut tree = coupled::Tree::new(self.numbers.injection(host));
        let mut hosts = Vec::new();
        let source = self.topology.host(src)?;
        let mut arriving = vec![Arrival {
            switch: source.switch,
            port: source.port,
            place: 0,
            header,
            turned: !by_turns,
        }];
        while let Some(mut here) = arriving.pop() {
            if !here.turned && Some(here.switch) == root {
                let turn = self.numbers.turn(self.topology.switch_index(here.switch)?);
                here.place = tree.grow(here.place, turn).unwrap_or(here.place);
                here.turned = true;
            }
            let copies = self.copies(&here, table)?;
            if !here.turned && copies.len() != 1 {
                return Err(self.not_from_root(src, here.switch, root));
            }
            for (port, header) in copies {
                let switch = here.switch;
                let (channel, end) = self.numbers.leave(switch, port)?;
                let place = tree
                    .grow(here.place, channel)
                    .ok_or(DeadlockError::TreeMeetsItself { switch, port })?;
                match end {
                    Attachment::Host(_) if !here.turned => {
                        return Err(self.not_from_root(src, switch, root));
                    }
                    Attachment::Host(host) => hosts.push(host),
                    Attachment::Switch(switch, port) => arriving.push(Arrival {
                        switch,
                        port,
                        place,
                        header,
                        turned: here.turned,
                    }),
                }
            }
        }
        hosts.sort_unstable();
        self.count("multicasts", 1);
        let worm = Worm::Tree { src, hosts };
        tree.belong_to(self.number(&worm));
        if !self.trees.iter_mut().any(|known| known.absorb(&tree)) {
            self.trees.push(tree);
        }
        Ok(())
    }

    /// Ports that copies leave a switch by, and what they carry.
    fn copies(
        &self,
        here: &Arrival,
        table: &Table,
    ) -> Result<Vec<(PortId, Header)>, DeadlockError> {
        let switch = here.switch;
        match &here.header {
            Header::Tree(route) => {
                let branches =
                    branches(route).map_err(|error| DeadlockError::Tree { switch, error })?;
                let copy = |branch: wormcast_wire::tree_route::Branch<'_>| {
                    (branch.port, Header::Tree(branch.copy_route()))
                };
                Ok(branches.map(copy).collect())
            }
            Header::Ways(ways) => {
                let mut onward: BTreeMap<u8, Vec<Vec<u8>>> = BTreeMap::new();
                for (&byte, rest) in ways.iter().filter_map(|way| way.split_first()) {
                    onward.entry(byte).or_default().push(rest.to_vec());
                }
                let copy = |(byte, rest)| match PortId::new(byte) {
                    Some(port) => Ok((port, Header::Ways(rest))),
                    None => Err(DeadlockError::NoPort { switch, byte }),
                };
                onward.into_iter().map(copy).collect()
            }
            Header::Group => {
                let ports = table
                    .get(&switch)
                    .ok_or(DeadlockError::NoEntry { switch })?;
                let onward = ports.iter().filter(|port| **port != here.port);
                Ok(onward.map(|&port| (port, Header::Group)).collect())
            }
            Header::Broadcast(ports) => match ports.split_first() {
                Some((&byte, rest)) => {
                    let port = PortId::new(byte).ok_or(DeadlockError::NoPort { switch, byte })?;
                    Ok(vec![(port, Header::Broadcast(rest.to_vec()))])
                }
                None if !table.is_empty() => {
                    let down = table.get(&switch).into_iter().flatten();
                    Ok(down
                        .map(|&port| (port, Header::Broadcast(Vec::new())))
                        .collect())
                }
                None => {
                    let at = self.topology.switch_index(switch)?;
                    let updown = self.updown.as_ref().expect("planned for a broadcast");
                    match updown.parent_arc(at) {
                        None => self.copies_down(switch),
                        Some(_) => Err(DeadlockError::BroadcastBelowRoot { switch }),
                    }
                }
            },
            Header::Down => self.copies_down(switch),
        }
    }

    /// A broadcast goes down all links of the spanning tree, and to all hosts.
    fn copies_down(&self, switch: SwitchId) -> Result<Vec<(PortId, Header)>, DeadlockError> {
        let topology = self.topology;
        let at = topology.switch_index(switch)?;
        let updown = self.updown.as_ref().expect("planned for a broadcast");
        let links = topology.arcs_of(at).iter();
        let links = links.filter(|arc| updown.parent_arc(arc.to) == Some(arc.reverse));
        let hosts = topology.hosts_at(at);
        let hosts = hosts.map(|host| topology.hosts()[host as usize].port);
        let ports = links.map(|arc| arc.port).chain(hosts);
        Ok(ports.map(|port| (port, Header::Down)).collect())
    }

    fn climb(&self, src: HostId) -> Result<Vec<u8>, DeadlockError> {
        let updown = self.updown.as_ref().expect("planned for a broadcast");
        let mut at = self.topology.switch_of(self.topology.host_index(src)?);
        let mut ports = Vec::new();
        while let Some(arc) = updown.parent_arc(at) {
            let arc = self.topology.arcs()[arc as usize];
            ports.push(arc.port.get());
            at = arc.to;
        }
        Ok(ports)
    }

    fn plan_updown(&mut self) -> Result<(), DeadlockError> {
        if self.updown.is_none() {
            self.updown = Some(UpDown::new(self.topology, self.model.root)?);
        }
        Ok(())
    }

    /// Where all multicasts of this host start, if there is such a place.
    fn root_for(&mut self, host: u32) -> Result<Option<SwitchId>, DeadlockError> {
        if self.model.branching != Branching::Interrupted {
            return Ok(None);
        }
        let part = self.topology.component_of(self.topology.switch_of(host));
        let known = self.roots.iter().copied().find(|root| {
            let at = self.topology.switch_index(*root);
            at.is_ok_and(|at| self.topology.component_of(at) == part)
        });
        if known.is_some() {
            return Ok(known);
        }
        self.plan_updown()?;
        let updown = self.updown.as_ref().expect("planned");
        Ok(updown.roots(self.topology).get(part as usize).copied())
    }

    fn not_from_root(
        &self,
        src: HostId,
        switch: SwitchId,
        root: Option<SwitchId>,
    ) -> DeadlockError {
        let root = root.expect("every part has a root");
        DeadlockError::NotFromRoot { src, switch, root }
    }
}
