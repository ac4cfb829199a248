//! Net lists of InfiniBand: what ibsim reads and ibnetdiscover prints, also with -g. A node has
//! a header line, `Switch 36 "S-0002c90200412345"  # "leaf 1" …`, and a line for each port that
//! is connected, `[1](guid) "H-…"[1](guid)  # …`. What it prints with -p has a line for each
//! port: see `infiniband_ports.rs`.
//!
//! InfiniBand's port p + 1 is our port p; its port 0 is the switch itself. A channel
//! adapter is a host for each of its ports that is connected; so is a router, but one that
//! re-injects nothing. A cable from a node to itself is used for nothing. The GUIDs we write hold the
//! id: 57430001 (switches) or 57430002 (hosts), then the id shifted left by 8, which
//! leaves room for the GUIDs of ports.

use std::collections::{BTreeMap, BTreeSet};

use super::draft::{Draft, DraftHost, DraftLink, DraftSwitch, Origin};
use super::error::FormatError;
use super::numbering::number;
use wormcast_wire::{HOST_ID_MAX, HostId, PortId, SWITCH_ID_MAX, SWITCH_PORTS_MAX, SwitchId};

use super::infiniband_lines::{Entry, Kind, Lid, PortLine, UNICAST_LIDS, entries};
use super::infiniband_ports;

pub(super) const SWITCH_GUIDS: u64 = 0x5743_0001_0000_0000;
pub(super) const HOST_GUIDS: u64 = 0x5743_0002_0000_0000;

/// Who has which address, in the words of the forwarding tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// Switches by their node GUIDs.
    pub switches: BTreeMap<u64, SwitchId>,
    /// LIDs, each of a port: with an LMC of n it has 2^n.
    pub lids: BTreeMap<u16, Owner>,
}

/// Whose a LID is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Of a switch itself, its port 0.
    Switch(SwitchId),
    /// Of the port of a channel adapter.
    Host(HostId),
}

#[derive(Clone, Copy)]
struct Node<'a> {
    kind: Kind,
    ports: u16,
    description: Option<&'a str>,
    lid: Option<Lid>,
    offset: usize,
}

impl Node<'_> {
    /// Whether both say the same.
    fn is_as(&self, other: &Node<'_>) -> bool {
        (self.kind, self.ports, self.description, self.lid)
            == (other.kind, other.ports, other.description, other.lid)
    }
}

type NodePort<'a> = (&'a str, u8);

/// A net list, its nodes by their names.
struct NetList<'a> {
    text: &'a str,
    nodes: BTreeMap<&'a str, Node<'a>>,
    /// Where every port that is connected leads, from both ends.
    peers: BTreeMap<NodePort<'a>, (NodePort<'a>, usize)>,
    /// Addresses of the ports of adapters.
    lids: BTreeMap<NodePort<'a>, Lid>,
    /// Ports on which a cable leads back to the same node, the lower first, and where that is said.
    loops: BTreeMap<(NodePort<'a>, NodePort<'a>), usize>,
    /// Whether nodes are grouped by chassis, so that some come several times.
    grouped: bool,
    /// Whether it is a report of ports (`ibnetdiscover -p`): adapters have the names of their ports.
    by_ports: bool,
}

/// What is wired to what, and the addresses.
pub(super) fn read(text: &str) -> Result<(Draft, Addresses), FormatError> {
    let mut net = NetList {
        text,
        nodes: BTreeMap::new(),
        peers: BTreeMap::new(),
        lids: BTreeMap::new(),
        loops: BTreeMap::new(),
        grouped: false,
        by_ports: infiniband_ports::is_report(text),
    };
    let mut at = None;
    let mut port_lines = Vec::new();
    let entries: Vec<_> = if net.by_ports {
        infiniband_ports::entries(text)?
            .into_iter()
            .map(Ok)
            .collect()
    } else {
        entries(text).collect()
    };
    for entry in entries {
        match entry? {
            Entry::Chassis => net.grouped = true,
            Entry::Node {
                name,
                kind,
                ports,
                description,
                lid,
                offset,
            } => {
                at = Some(name);
                let node = Node {
                    kind,
                    ports,
                    description,
                    lid,
                    offset,
                };
                net.add_node(name, node)?;
            }
            Entry::Port(line) => {
                let Some(node) = at else {
                    let reason = "a port comes before the first node; nodes start with Switch or \
                                  Ca, the number of ports and a name in quotes";
                    return Err(net.error(line.offset, "syntax", reason.into()));
                };
                port_lines.push((node, line));
            }
        }
    }
    for (node, line) in &port_lines {
        net.connect(node, line)?;
    }
    net.close_one_sided()?;
    net.into_draft()
}

impl<'a> NetList<'a> {
    fn error(&self, offset: usize, code: &'static str, reason: String) -> FormatError {
        FormatError::at(self.text, offset, code, reason)
    }

    fn add_node(&mut self, name: &'a str, node: Node<'a>) -> Result<(), FormatError> {
        let (kind, ports, offset) = (node.kind, node.ports, node.offset);
        if kind == Kind::Switch && !(1..=SWITCH_PORTS_MAX).contains(&ports) {
            let reason = format!("{ports} ports are outside 1 to {SWITCH_PORTS_MAX}");
            return Err(self.error(offset, "outside-bounds", reason));
        }
        if let Some(known) = self.nodes.insert(name, node)
            && !(self.grouped && known.is_as(&node))
        {
            let code = match kind {
                Kind::Switch => "duplicate-switch",
                Kind::Adapter | Kind::Router => "duplicate-host",
            };
            return Err(self.error(offset, code, format!("\"{name}\" is given twice")));
        }
        Ok(())
    }

    /// Takes down where a port leads, as its own node says.
    fn connect(&mut self, node: &'a str, line: &PortLine<'a>) -> Result<(), FormatError> {
        let (from, to) = ((node, line.port), (line.remote, line.remote_port));
        for (name, port) in [from, to] {
            let Some(known) = self.nodes.get(name) else {
                let (code, what) = if name.starts_with(['H', 'h', 'C', 'c']) {
                    ("unknown-host", "adapter")
                } else {
                    ("unknown-switch", "switch")
                };
                let some: Vec<&str> = self.nodes.keys().copied().take(8).collect();
                let reason = format!(
                    "there is no {what} \"{name}\"; there are {}, …",
                    some.join(", ")
                );
                return Err(self.error(line.offset, code, reason));
            };
            if port == 0 || u16::from(port) > known.ports {
                let reason = format!("port {port} is outside \"{name}\", 1 to {}", known.ports);
                return Err(self.error(line.offset, "port-outside-switch", reason));
            }
        }
        if node == line.remote {
            let ends = (from.min(to), from.max(to));
            self.loops.entry(ends).or_insert(line.offset);
            return Ok(());
        }
        let is_switch = |name| self.nodes[name].kind == Kind::Switch;
        if !is_switch(node) && !is_switch(line.remote) {
            let reason = format!(
                "adapters \"{node}\" and \"{}\" are linked; hosts hang on switches",
                to.0
            );
            return Err(self.error(line.offset, "unsupported", reason));
        }
        let known = self.peers.insert(from, (to, line.offset));
        if known.is_some_and(|(known, _)| !self.grouped || known != to) {
            let reason = format!("port {} of \"{node}\" is used twice", line.port);
            return Err(self.error(line.offset, "port-used-twice", reason));
        }
        if let Some(lid) = line.lid {
            self.lids.insert(from, lid);
        }
        Ok(())
    }

    /// Both ends of a link say the same, or one of them says it.
    fn close_one_sided(&mut self) -> Result<(), FormatError> {
        let mut back = BTreeMap::new();
        for (&from, &(to, offset)) in &self.peers {
            match self.peers.get(&to) {
                Some((peer, _)) if *peer == from => {}
                Some((peer, _)) => {
                    let reason = format!(
                        "port {} of \"{}\" leads to port {} of \"{}\", but that leads to port {} of \
                         \"{}\"",
                        from.1, from.0, to.1, to.0, peer.1, peer.0
                    );
                    return Err(self.error(offset, "links-disagree", reason));
                }
                None if self.is_looped(to) => {
                    let reason = format!("port {} of \"{}\" is used twice", to.1, to.0);
                    return Err(self.error(offset, "port-used-twice", reason));
                }
                None => {
                    if back.insert(to, (from, offset)).is_some() {
                        let reason = format!("port {} of \"{}\" is used twice", to.1, to.0);
                        return Err(self.error(offset, "port-used-twice", reason));
                    }
                }
            }
        }
        self.peers.extend(back);
        Ok(())
    }

    /// Whether a cable leads from a port back to its own node.
    fn is_looped(&self, port: NodePort<'a>) -> bool {
        self.loops
            .keys()
            .any(|(one, other)| *one == port || *other == port)
    }

    /// Switches, or all others.
    fn names(&self, switches: bool) -> impl Iterator<Item = &'a str> + '_ {
        let is_one = move |(name, node): (&&'a str, &Node<'a>)| {
            ((node.kind == Kind::Switch) == switches).then_some(*name)
        };
        self.nodes.iter().filter_map(is_one)
    }

    /// Says of cables from a node to itself that they are left out.
    fn warn_of_loops(&self, draft: &mut Draft) -> Result<(), FormatError> {
        for (&((name, port), (_, other)), &offset) in &self.loops {
            for end in [(name, port), (name, other)] {
                if self.peers.contains_key(&end) {
                    let reason = format!("port {} of \"{name}\" is used twice", end.1);
                    return Err(self.error(offset, "port-used-twice", reason));
                }
            }
            let called = self.nodes[name].description.unwrap_or(name);
            let reason = format!(
                "a cable leads from port {port} of \"{called}\" to its own port {other}; it is left out"
            );
            draft.warn(self.text, offset, &reason);
        }
        Ok(())
    }

    fn into_draft(self) -> Result<(Draft, Addresses), FormatError> {
        let switches: Vec<&str> = self.names(true).collect();
        let switch_ids = match guid_ids(&switches, SWITCH_GUIDS, SWITCH_ID_MAX, 0) {
            Some(ids) => ids,
            None => number(&switches, SWITCH_ID_MAX),
        };
        let switch_id = |name: &str| SwitchId(switch_ids[name] as u16);
        let mut draft = Draft::default();
        let mut addresses = Addresses::default();
        self.warn_of_loops(&mut draft)?;
        if switches.len() > usize::from(SWITCH_ID_MAX) + 1 {
            let reason = format!("{} switches are more than there are ids", switches.len());
            return Err(FormatError::new("too-many-switches", reason));
        }
        let described = self.unique_descriptions();
        for &name in &switches {
            let id = switch_id(name);
            if let Some(guid) = guid_of(name) {
                addresses.switches.insert(guid, id);
            }
            self.add_lids(&mut addresses, (name, 0), Owner::Switch(id))?;
            draft.switches.push(DraftSwitch {
                id,
                ports: Some(self.nodes[name].ports),
                origin: Origin::Byte(self.nodes[name].offset),
            });
            let known = described.get(name).copied().unwrap_or(name);
            if known != format!("switch {id}") {
                draft.names.switches.insert(id, known.to_owned());
            }
        }
        self.add_hosts(&mut draft, &mut addresses, &described, switch_id)?;
        for (&from, &(to, offset)) in &self.peers {
            let is_switch = |end: NodePort<'_>| self.nodes[end.0].kind == Kind::Switch;
            let end = |(name, port): NodePort<'_>| (switch_id(name), PortId::new(port - 1));
            if is_switch(from) && is_switch(to) && end(from) < end(to) {
                draft.links.push(DraftLink {
                    a: end(from),
                    b: end(to),
                    origin: Origin::Byte(offset),
                });
            }
        }
        draft.links.sort_by_key(|link| (link.a, link.b));
        Ok((draft, addresses))
    }

    /// The addresses of a port; port 0 of a switch has its own.
    fn add_lids(
        &self,
        addresses: &mut Addresses,
        port: NodePort<'a>,
        owner: Owner,
    ) -> Result<(), FormatError> {
        let node = &self.nodes[port.0];
        let lid = match owner {
            Owner::Switch(_) => node.lid,
            Owner::Host(_) => self.lids.get(&port).copied(),
        };
        let Some(lid) = lid else { return Ok(()) };
        for more in 0..1u16 << lid.lmc {
            let one = lid.first + more;
            let reason = if !UNICAST_LIDS.contains(&one) {
                format!("lid {one} is above {}", UNICAST_LIDS.end())
            } else if addresses.lids.insert(one, owner).is_some() {
                format!("lid {one} is given twice")
            } else {
                continue;
            };
            return Err(self.error(node.offset, "address", format!("{}: {reason}", port.0)));
        }
        Ok(())
    }

    fn add_hosts(
        &self,
        draft: &mut Draft,
        addresses: &mut Addresses,
        described: &BTreeMap<&str, &str>,
        switch_id: impl Fn(&str) -> SwitchId,
    ) -> Result<(), FormatError> {
        let adapters: Vec<&str> = self.names(false).collect();
        let ports_of = |name| self.peers.range((name, 0)..=(name, u8::MAX));
        for &name in &adapters {
            if ports_of(name).next().is_none() {
                let reason = format!("adapter \"{name}\" hangs on no switch");
                return Err(self.error(self.nodes[name].offset, "host-links", reason));
            }
        }
        let single = adapters.iter().all(|name| ports_of(*name).count() == 1);
        // Adapters with several ports are numbered port by port.
        let of_port = u64::from(self.by_ports);
        let ours = guid_ids(&adapters, HOST_GUIDS, HOST_ID_MAX, of_port).filter(|_| single);
        let ids = ours.unwrap_or_else(|| {
            if single {
                number(&adapters, HOST_ID_MAX)
            } else {
                in_order(&adapters)
            }
        });
        // Ports of one adapter that have names of their own.
        let mut owners: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (&name, description) in described.iter().filter(|(name, _)| ids.contains_key(*name)) {
            owners.entry(description).or_default().push(name);
        }
        let shared = owners.into_values().filter(|names| names.len() > 1);
        let shared: BTreeSet<&str> = shared.flatten().collect();
        let mut in_order = adapters;
        in_order.sort_by_key(|name| ids[name]);
        let mut next = 0;
        for name in in_order {
            let several = ports_of(name).count() > 1 || shared.contains(name);
            for (&(_, port), &((switch, switch_port), _)) in ports_of(name) {
                let id = if single { ids[name] } else { next };
                next += 1;
                let Some(id) = u16::try_from(id).ok().filter(|id| *id <= HOST_ID_MAX) else {
                    let reason = format!("more than {} hosts", usize::from(HOST_ID_MAX) + 1);
                    return Err(self.error(self.nodes[name].offset, "outside-bounds", reason));
                };
                self.add_lids(addresses, (name, port), Owner::Host(HostId(id)))?;
                draft.hosts.push(DraftHost {
                    id: HostId(id),
                    switch: switch_id(switch),
                    port: PortId::new(switch_port - 1),
                    transit: self.nodes[name].kind == Kind::Adapter,
                    origin: Origin::Byte(self.nodes[name].offset),
                });
                let known = described.get(name).copied().unwrap_or(name);
                if several {
                    draft
                        .names
                        .hosts
                        .insert(HostId(id), format!("{known}/{port}"));
                } else if known != format!("host {id}") {
                    draft.names.hosts.insert(HostId(id), known.to_owned());
                }
            }
        }
        Ok(())
    }

    /// In a report of ports, adapters of one description whose ports have different numbers: they are taken for the
    /// ports of one.
    fn is_one_adapter(&self, names: &[&str]) -> bool {
        let ports = names.iter().map(|name| self.nodes[name].ports);
        let distinct: BTreeSet<u16> = ports.collect();
        self.by_ports && distinct.len() == names.len()
    }

    /// Descriptions that no other node of the kind has.
    fn unique_descriptions(&self) -> BTreeMap<&'a str, &'a str> {
        let mut owners: BTreeMap<(bool, &str), Vec<&str>> = BTreeMap::new();
        for (name, node) in &self.nodes {
            if let Some(description) = node.description {
                let key = (node.kind == Kind::Switch, description);
                owners.entry(key).or_default().push(name);
            }
        }
        owners
            .into_iter()
            .filter(|((is_switch, _), names)| {
                names.len() == 1 || (!is_switch && self.is_one_adapter(names))
            })
            .flat_map(|((_, description), names)| {
                names.into_iter().map(move |name| (name, description))
            })
            .collect()
    }
}

/// The GUID in a name, as in `S-0002c90200412345`.
fn guid_of(name: &str) -> Option<u64> {
    u64::from_str_radix(name.get(2..)?, 16).ok()
}

/// The ids in our own GUIDs; `None` if one is not ours.
///
/// `port`: the GUIDs are those of ports with this number.
fn guid_ids<'w>(
    names: &[&'w str],
    base: u64,
    largest: u16,
    port: u64,
) -> Option<BTreeMap<&'w str, usize>> {
    names
        .iter()
        .map(|name| {
            let guid = guid_of(name)?;
            let id = guid.checked_sub(base + port)?;
            let ours = name.len() == 18 && id & 0xFF == 0 && id >> 8 <= u64::from(largest);
            ours.then_some((*name, (id >> 8) as usize))
        })
        .collect()
}

/// Counted from 0 in the order of the names, as [`number`] orders them.
fn in_order<'w>(names: &[&'w str]) -> BTreeMap<&'w str, usize> {
    number(names, 0)
}
