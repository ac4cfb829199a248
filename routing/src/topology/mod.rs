//! What is wired to what: switches, hosts, full-duplex links.
//!
//! A [`Topology`] is valid by construction: ids are unique, every port exists and is
//! used once, every host hangs on a switch. It is connected unless the caller allowed a
//! split fabric. Adjacency is kept as flat arrays, so that routing thousands of switches
//! stays in cache.

mod damage;
mod error;
pub mod json;
pub(crate) mod remoteness;

pub use damage::Damage;
pub(crate) use error::list;
pub use error::{End, TopologyError};

use wormcast_wire::{HOST_ID_MAX, HostId, PortId, SWITCH_ID_MAX, SWITCH_PORTS_MAX, SwitchId};

/// Most switches of one topology; next-hop tables take two bytes for each pair of them.
pub const SWITCHES_MAX: usize = 16_384;

/// A switch and how many ports it has (1 to 254).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    pub id: SwitchId,
    /// How many ports it has; they are numbered from 0.
    pub ports: u16,
}

/// A host and where it hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    pub id: HostId,
    /// The switch it hangs on.
    pub switch: SwitchId,
    /// The port of that switch.
    pub port: PortId,
    /// Whether it may take worms of others and re-inject them (ITB §III.B).
    pub transit: bool,
}

/// A full-duplex link between two switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link {
    pub a: SwitchId,
    pub a_port: PortId,
    pub b: SwitchId,
    pub b_port: PortId,
}

/// Coordinates behind the ids of a regular topology: switch id = x + radix\[0\]·y + ….
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Switches along each dimension.
    pub radix: Vec<u16>,
    /// Whether the ends of each dimension are joined (torus) or not (mesh).
    pub wraps: bool,
    /// Whether links may be used in the increasing direction only (TORUS §2).
    pub unidirectional: bool,
}

impl Grid {
    /// Place of a switch along each dimension.
    pub fn coordinates(&self, switch: SwitchId) -> Vec<u16> {
        let mut rest = switch.0;
        self.radix
            .iter()
            .map(|&radix| {
                let place = rest % radix;
                rest /= radix;
                place
            })
            .collect()
    }
}

/// What hangs on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attachment {
    Host(HostId),
    /// Another switch, at that port of it.
    Switch(SwitchId, PortId),
}

/// One direction of a link, seen from the switch it leaves.
#[derive(Clone, Copy, Debug)]
pub struct Arc {
    /// Index of the switch it leads to.
    pub to: u32,
    /// Index of the arc the other way.
    pub reverse: u32,
    /// Port of the switch it leaves.
    pub port: PortId,
}

/// Parts of a topology before they have been checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Switches, in any order.
    pub switches: Vec<Switch>,
    /// Hosts, in any order.
    pub hosts: Vec<Host>,
    /// Links, in any order.
    pub links: Vec<Link>,
    /// Coordinates, for regular topologies.
    pub grid: Option<Grid>,
}

/// A checked topology. Switches and hosts are in ascending order of id.
#[derive(Clone, Debug)]
pub struct Topology {
    parts: Parts,
    arc_first: Vec<u32>,
    arcs: Vec<Arc>,
    host_switch: Vec<u32>,
    host_first: Vec<u32>,
    hosts_by_switch: Vec<u32>,
    transit_first: Vec<u32>,
    transit_by_switch: Vec<u32>,
    component: Vec<u32>,
    components: u32,
}

impl PartialEq for Topology {
    fn eq(&self, other: &Self) -> bool {
        self.parts == other.parts
    }
}

impl Eq for Topology {}

impl Topology {
    /// Checks the parts and builds a connected topology.
    ///
    /// # Errors
    /// Whatever is wrong first: see [`TopologyError`].
    pub fn new(parts: Parts) -> Result<Topology, TopologyError> {
        let topology = Topology::new_split(parts)?;
        topology.check_connected()?;
        Ok(topology)
    }

    /// As [`Topology::new`], but switches need not all be reachable from each other:
    /// what remains of a damaged fabric.
    ///
    /// # Errors
    /// Whatever is wrong first, [`TopologyError::NotConnected`] excepted.
    pub fn new_split(mut parts: Parts) -> Result<Topology, TopologyError> {
        parts.switches.sort_by_key(|switch| switch.id);
        parts.hosts.sort_by_key(|host| host.id);
        check_ids(&parts)?;
        let ports = assign_ports(&parts)?;
        check_grid(&parts)?;
        Ok(Topology::index(parts, ports))
    }

    pub fn empty() -> Topology {
        Topology::index(Parts::default(), Vec::new())
    }

    /// The connected parts, each by itself, in order of their lowest switch. All keep the
    /// coordinates.
    pub fn split(&self) -> Vec<Topology> {
        if self.components == 1 {
            return vec![self.clone()];
        }
        let empty = Parts {
            grid: self.parts.grid.clone(),
            ..Parts::default()
        };
        let mut parts = vec![empty; self.components()];
        let place = |at: u32| self.component[at as usize] as usize;
        for (at, &switch) in self.parts.switches.iter().enumerate() {
            parts[place(at as u32)].switches.push(switch);
        }
        for (at, &host) in self.parts.hosts.iter().enumerate() {
            parts[place(self.host_switch[at])].hosts.push(host);
        }
        for &link in &self.parts.links {
            let at = self.switch_index(link.a).expect("checked");
            parts[place(at)].links.push(link);
        }
        let built = parts.into_iter().map(Topology::new_split);
        built
            .collect::<Result<_, _>>()
            .expect("parts of a checked topology")
    }

    /// Switches, ascending.
    pub fn switches(&self) -> &[Switch] {
        &self.parts.switches
    }

    /// Hosts, ascending.
    pub fn hosts(&self) -> &[Host] {
        &self.parts.hosts
    }

    /// Links, in the order they were given.
    pub fn links(&self) -> &[Link] {
        &self.parts.links
    }

    /// Coordinates behind the switch ids, if the topology is a torus or mesh.
    pub fn grid(&self) -> Option<&Grid> {
        self.parts.grid.as_ref()
    }

    /// The host with this id.
    ///
    /// # Errors
    /// [`TopologyError::UnknownHost`].
    pub fn host(&self, id: HostId) -> Result<Host, TopologyError> {
        Ok(self.parts.hosts[self.host_index(id)? as usize])
    }

    /// What hangs on a port of a switch; `None` if nothing does, or if there is no such
    /// switch or port.
    pub fn attachment(&self, switch: SwitchId, port: PortId) -> Option<Attachment> {
        let at = self.switch_index(switch).ok()?;
        if let Ok(found) = self.arcs_of(at).binary_search_by_key(&port, |arc| arc.port) {
            let arc = self.arcs_of(at)[found];
            let back = self.arcs[arc.reverse as usize].port;
            return Some(Attachment::Switch(self.switch_id(arc.to), back));
        }
        self.hosts_at(at)
            .map(|host| self.parts.hosts[host as usize])
            .find(|host| host.port == port)
            .map(|host| Attachment::Host(host.id))
    }

    /// How many parts the fabric is split into; 1 for a connected one, 0 for an empty one.
    pub fn components(&self) -> usize {
        self.components as usize
    }

    /// Position of the switch in [`Topology::switches`].
    ///
    /// # Errors
    /// [`TopologyError::UnknownSwitch`].
    pub fn switch_index(&self, id: SwitchId) -> Result<u32, TopologyError> {
        match self
            .parts
            .switches
            .binary_search_by_key(&id, |switch| switch.id)
        {
            Ok(index) => Ok(index as u32),
            Err(_) => Err(TopologyError::UnknownSwitch {
                switch: u64::from(id.0),
                at: "topology".into(),
                choices: self.parts.switches.iter().map(|switch| switch.id).collect(),
            }),
        }
    }

    /// Position of the host in [`Topology::hosts`].
    ///
    /// # Errors
    /// [`TopologyError::UnknownHost`].
    pub fn host_index(&self, id: HostId) -> Result<u32, TopologyError> {
        match self.parts.hosts.binary_search_by_key(&id, |host| host.id) {
            Ok(index) => Ok(index as u32),
            Err(_) => Err(TopologyError::UnknownHost {
                host: u64::from(id.0),
                choices: self.parts.hosts.iter().map(|host| host.id).collect(),
            }),
        }
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// How many switches there are.
    pub fn switch_count(&self) -> usize {
        self.parts.switches.len()
    }

    /// Id of the switch with this index.
    ///
    /// # Panics
    /// If there are not so many switches. So do all functions that take an index.
    pub fn switch_id(&self, index: u32) -> SwitchId {
        self.parts.switches[index as usize].id
    }

    /// Index of the switch that the host with this index hangs on.
    pub fn switch_of(&self, host: u32) -> u32 {
        self.host_switch[host as usize]
    }

    /// Indices of the hosts on a switch, ascending.
    pub fn hosts_at(&self, switch: u32) -> impl ExactSizeIterator<Item = u32> + '_ {
        let range = self.host_first[switch as usize]..self.host_first[switch as usize + 1];
        self.hosts_by_switch[range.start as usize..range.end as usize]
            .iter()
            .copied()
    }

    /// Indices of the hosts on a switch that may re-inject worms of others, ascending.
    pub fn transit_at(&self, switch: u32) -> impl ExactSizeIterator<Item = u32> + '_ {
        let range = self.transit_first[switch as usize]..self.transit_first[switch as usize + 1];
        self.transit_by_switch[range.start as usize..range.end as usize]
            .iter()
            .copied()
    }

    /// Whether a worm can be cut at a switch: some host there may re-inject it.
    pub fn can_cut(&self, switch: u32) -> bool {
        self.transit_at(switch).len() > 0
    }

    /// The same with other hosts that may re-inject worms of others.
    #[must_use]
    pub fn with_transit(&self, may: impl Fn(HostId) -> bool) -> Topology {
        let mut topology = self.clone();
        for host in &mut topology.parts.hosts {
            host.transit = may(host.id);
        }
        topology.index_transit();
        topology
    }

    /// Both directions of all links, by the switch they leave.
    pub fn arcs(&self) -> &[Arc] {
        &self.arcs
    }

    /// Index of the first arc that leaves a switch; those of `switch` end where those of
    /// `switch + 1` begin.
    pub fn arc_first(&self, switch: u32) -> u32 {
        self.arc_first[switch as usize]
    }

    /// Arcs that leave a switch, in ascending order of port.
    pub fn arcs_of(&self, switch: u32) -> &[Arc] {
        let first = self.arc_first[switch as usize] as usize;
        let last = self.arc_first[switch as usize + 1] as usize;
        &self.arcs[first..last]
    }

    /// Which part of a split fabric a switch is in, numbered by the lowest switch in it.
    pub fn component_of(&self, switch: u32) -> u32 {
        self.component[switch as usize]
    }

    fn index(parts: Parts, mut ends: Vec<(u32, PortId, u32)>) -> Topology {
        // `ends` holds (switch, port, number of the end); end e of link l is 2·l + e.
        ends.sort_unstable();
        let switches = parts.switches.len();
        let mut arc_first = vec![0u32; switches + 1];
        let mut arc_of_end = vec![0u32; ends.len()];
        for (arc, &(switch, _, end)) in ends.iter().enumerate() {
            arc_first[switch as usize + 1] = arc as u32 + 1;
            arc_of_end[end as usize] = arc as u32;
        }
        fill_gaps(&mut arc_first);
        let arcs = ends
            .iter()
            .map(|&(_, port, end)| {
                let reverse = arc_of_end[end as usize ^ 1];
                Arc {
                    to: ends[reverse as usize].0,
                    reverse,
                    port,
                }
            })
            .collect();

        let index_of = |id: SwitchId| {
            parts
                .switches
                .binary_search_by_key(&id, |switch| switch.id)
                .expect("checked") as u32
        };
        let host_switch: Vec<u32> = parts
            .hosts
            .iter()
            .map(|host| index_of(host.switch))
            .collect();
        let mut hosts_by_switch: Vec<u32> = (0..parts.hosts.len() as u32).collect();
        hosts_by_switch.sort_by_key(|&host| host_switch[host as usize]);
        let mut host_first = vec![0u32; switches + 1];
        for (position, &host) in hosts_by_switch.iter().enumerate() {
            host_first[host_switch[host as usize] as usize + 1] = position as u32 + 1;
        }
        fill_gaps(&mut host_first);

        let mut topology = Topology {
            parts,
            arc_first,
            arcs,
            host_switch,
            host_first,
            hosts_by_switch,
            transit_first: Vec::new(),
            transit_by_switch: Vec::new(),
            component: vec![u32::MAX; switches],
            components: 0,
        };
        topology.index_transit();
        topology.number_components();
        topology
    }

    fn index_transit(&mut self) {
        let may = |host: &u32| self.parts.hosts[*host as usize].transit;
        self.transit_by_switch = self.hosts_by_switch.iter().copied().filter(may).collect();
        let mut first = vec![0u32; self.parts.switches.len() + 1];
        for (position, &host) in self.transit_by_switch.iter().enumerate() {
            first[self.host_switch[host as usize] as usize + 1] = position as u32 + 1;
        }
        fill_gaps(&mut first);
        self.transit_first = first;
    }

    fn number_components(&mut self) {
        let mut stack = Vec::new();
        for start in 0..self.switch_count() as u32 {
            if self.component[start as usize] != u32::MAX {
                continue;
            }
            self.component[start as usize] = self.components;
            stack.push(start);
            while let Some(switch) = stack.pop() {
                let first = self.arc_first[switch as usize] as usize;
                let last = self.arc_first[switch as usize + 1] as usize;
                for arc in &self.arcs[first..last] {
                    if self.component[arc.to as usize] == u32::MAX {
                        self.component[arc.to as usize] = self.components;
                        stack.push(arc.to);
                    }
                }
            }
            self.components += 1;
        }
    }

    fn check_connected(&self) -> Result<(), TopologyError> {
        match self.component.iter().position(|&component| component != 0) {
            None => Ok(()),
            Some(apart) => Err(TopologyError::NotConnected {
                from: self.parts.switches[0].id,
                unreachable: self
                    .component
                    .iter()
                    .zip(&self.parts.switches)
                    .skip(apart)
                    .filter(|(component, _)| **component != 0)
                    .map(|(_, switch)| switch.id)
                    .collect(),
            }),
        }
    }
}

/// Turns "one past the last, 0 where there is none" into running offsets.
fn fill_gaps(offsets: &mut [u32]) {
    for index in 1..offsets.len() {
        offsets[index] = offsets[index].max(offsets[index - 1]);
    }
}

fn check_ids(parts: &Parts) -> Result<(), TopologyError> {
    if parts.switches.is_empty() {
        return Err(TopologyError::NoSwitches);
    }
    if parts.switches.len() > SWITCHES_MAX {
        return Err(TopologyError::TooManySwitches {
            count: parts.switches.len(),
        });
    }
    for switch in &parts.switches {
        if switch.id.0 > SWITCH_ID_MAX {
            return Err(TopologyError::outside(
                "switch id",
                switch.id.0,
                0,
                SWITCH_ID_MAX,
            ));
        }
        if switch.ports == 0 || switch.ports > SWITCH_PORTS_MAX {
            let what = format!("ports of switch {}", switch.id);
            return Err(TopologyError::outside(
                &what,
                switch.ports,
                1,
                SWITCH_PORTS_MAX,
            ));
        }
    }
    for pair in parts.switches.windows(2) {
        if pair[0].id == pair[1].id {
            return Err(TopologyError::DuplicateSwitch { switch: pair[0].id });
        }
    }
    for host in &parts.hosts {
        if host.id.0 > HOST_ID_MAX {
            return Err(TopologyError::outside("host id", host.id.0, 0, HOST_ID_MAX));
        }
    }
    for pair in parts.hosts.windows(2) {
        if pair[0].id == pair[1].id {
            return Err(TopologyError::DuplicateHost { host: pair[0].id });
        }
    }
    Ok(())
}

/// Checks that every port exists and is used once; gives the ends of the links.
fn assign_ports(parts: &Parts) -> Result<Vec<(u32, PortId, u32)>, TopologyError> {
    let mut used: Vec<Vec<Option<End>>> = parts
        .switches
        .iter()
        .map(|switch| vec![None; usize::from(switch.ports)])
        .collect();
    let mut take = |id: SwitchId, port: PortId, end: End| -> Result<u32, TopologyError> {
        let Ok(index) = parts.switches.binary_search_by_key(&id, |switch| switch.id) else {
            return Err(TopologyError::UnknownSwitch {
                switch: u64::from(id.0),
                at: end.to_string(),
                choices: parts.switches.iter().map(|switch| switch.id).collect(),
            });
        };
        let ports = parts.switches[index].ports;
        match used[index].get_mut(usize::from(port.get())) {
            None => Err(TopologyError::PortOutsideSwitch {
                switch: id,
                port,
                ports,
                at: end,
            }),
            Some(Some(first)) => Err(TopologyError::PortUsedTwice {
                switch: id,
                port,
                first: *first,
                second: end,
            }),
            Some(free) => {
                *free = Some(end);
                Ok(index as u32)
            }
        }
    };
    for host in &parts.hosts {
        take(host.switch, host.port, End::Host(host.id))?;
    }
    let mut ends = Vec::with_capacity(2 * parts.links.len());
    for (number, link) in parts.links.iter().enumerate() {
        if link.a == link.b {
            return Err(TopologyError::LinkToItself {
                link: number,
                switch: link.a,
            });
        }
        ends.push((
            take(link.a, link.a_port, End::Link(number))?,
            link.a_port,
            2 * number as u32,
        ));
        ends.push((
            take(link.b, link.b_port, End::Link(number))?,
            link.b_port,
            2 * number as u32 + 1,
        ));
    }
    Ok(ends)
}

fn check_grid(parts: &Parts) -> Result<(), TopologyError> {
    let Some(grid) = &parts.grid else {
        return Ok(());
    };
    let cells = grid
        .radix
        .iter()
        .try_fold(1usize, |cells, &radix| {
            cells.checked_mul(usize::from(radix))
        })
        .unwrap_or(usize::MAX);
    let largest = parts
        .switches
        .last()
        .map_or(0, |switch| usize::from(switch.id.0));
    if grid.radix.is_empty() || largest >= cells {
        return Err(TopologyError::GridMismatch {
            radix: grid.radix.clone(),
            largest,
        });
    }
    Ok(())
}
