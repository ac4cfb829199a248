//! What a file says, before it has been checked: ports may still be open.

use std::collections::BTreeSet;

use super::document::{Document, Names, Reading};
use super::error::FormatError;
use super::place::{Place, find_json};
use wormcast_routing::topology::{End, Grid, Host, Link, Parts, Switch, Topology, TopologyError};
use wormcast_wire::{HOST_ID_MAX, HostId, PORT_ID_MAX, PortId, SwitchId};

/// Where a row of a draft stands in the text.
#[derive(Clone, Copy)]
pub(super) enum Origin {
    Byte(usize),
    /// At this place in its list of a JSON file.
    JsonRow,
}

pub(super) struct DraftSwitch {
    pub id: SwitchId,
    /// As many as it uses if not given.
    pub ports: Option<u16>,
    pub origin: Origin,
}

pub(super) struct DraftHost {
    pub id: HostId,
    pub switch: SwitchId,
    /// The lowest free one if not given.
    pub port: Option<PortId>,
    pub transit: bool,
    pub origin: Origin,
}

pub(super) struct DraftLink {
    pub a: (SwitchId, Option<PortId>),
    pub b: (SwitchId, Option<PortId>),
    pub origin: Origin,
}

#[derive(Default)]
pub(super) struct Draft {
    pub switches: Vec<DraftSwitch>,
    pub hosts: Vec<DraftHost>,
    pub links: Vec<DraftLink>,
    pub grid: Option<Grid>,
    pub names: Names,
    pub kind: Option<String>,
    pub warnings: Vec<String>,
}

impl Draft {
    /// Says what was left out or added, and where.
    pub fn warn(&mut self, text: &str, offset: usize, reason: &str) {
        let Place { line, column } = Place::of_offset(text, offset);
        self.warnings
            .push(format!("line {line}, column {column}: {reason}"));
    }

    /// Hosts added, ports given out, all checked.
    pub fn finish(mut self, text: &str, reading: &Reading) -> Result<Document, FormatError> {
        let mut hosts_per_switch = reading.hosts_per_switch;
        if reading.give_hosts && hosts_per_switch == 0 && self.hosts.is_empty() {
            hosts_per_switch = 1;
            let reason = "it has no hosts, so every switch was given one; `wormcast topo convert \
                          --hosts-per-switch` writes a file with more";
            self.warnings.push(reason.to_owned());
        }
        self.add_hosts(hosts_per_switch)?;
        let parts = self.assign_ports()?;
        let checked = if reading.allow_split {
            Topology::new_split(parts)
        } else {
            Topology::new(parts)
        };
        let topology = checked.map_err(|error| FormatError {
            place: self.place_of(&error, text),
            ..FormatError::from(error)
        })?;
        Ok(Document {
            topology,
            names: self.names,
            kind: self.kind,
            warnings: self.warnings,
        })
    }

    fn add_hosts(&mut self, hosts_per_switch: usize) -> Result<(), FormatError> {
        let first = self
            .hosts
            .iter()
            .map(|host| usize::from(host.id.0) + 1)
            .max();
        let first = first.unwrap_or(0);
        let added = hosts_per_switch.saturating_mul(self.switches.len());
        if first.saturating_add(added) > usize::from(HOST_ID_MAX) + 1 {
            let reason = format!(
                "{hosts_per_switch} hosts on each of {} switches, after {first} host ids, are more \
                 than {}",
                self.switches.len(),
                usize::from(HOST_ID_MAX) + 1
            );
            return Err(FormatError::new("outside-bounds", reason));
        }
        let mut switches: Vec<(SwitchId, Origin)> = self
            .switches
            .iter()
            .map(|switch| (switch.id, switch.origin))
            .collect();
        switches.sort_by_key(|(id, _)| *id);
        for number in 0..added {
            let (switch, origin) = switches[number / hosts_per_switch];
            self.hosts.push(DraftHost {
                id: HostId((first + number) as u16),
                switch,
                port: None,
                transit: true,
                origin,
            });
        }
        Ok(())
    }

    /// Ports that are given stay; then hosts, then links take the lowest free ones.
    fn assign_ports(&self) -> Result<Parts, FormatError> {
        let mut used = BTreeSet::new();
        for host in &self.hosts {
            used.extend(host.port.map(|port| (host.switch, port)));
        }
        for (switch, port) in self.links.iter().flat_map(|link| [link.a, link.b]) {
            used.extend(port.map(|port| (switch, port)));
        }
        let mut next = vec![0u16; usize::from(u16::MAX) + 1];
        let mut take = |switch: SwitchId, port: Option<PortId>| {
            if let Some(port) = port {
                return Ok::<PortId, FormatError>(port);
            }
            let next = &mut next[usize::from(switch.0)];
            loop {
                let free = u8::try_from(*next)
                    .ok()
                    .and_then(PortId::new)
                    .ok_or_else(|| {
                        let reason = format!(
                            "switch {switch} would need port {next}; ports are 0 to {PORT_ID_MAX}"
                        );
                        FormatError::new("port-outside-switch", reason)
                    })?;
                *next += 1;
                if used.insert((switch, free)) {
                    return Ok(free);
                }
            }
        };
        let mut parts = Parts {
            grid: self.grid.clone(),
            ..Parts::default()
        };
        for host in &self.hosts {
            parts.hosts.push(Host {
                id: host.id,
                switch: host.switch,
                port: take(host.switch, host.port)?,
                transit: host.transit,
            });
        }
        for link in &self.links {
            parts.links.push(Link {
                a: link.a.0,
                a_port: take(link.a.0, link.a.1)?,
                b: link.b.0,
                b_port: take(link.b.0, link.b.1)?,
            });
        }
        parts.switches = self
            .switches
            .iter()
            .map(|switch| {
                let all = (switch.id, PortId::new(0).expect("a port"))..=(switch.id, LAST_PORT);
                let least = used
                    .range(all)
                    .next_back()
                    .map_or(1, |(_, port)| u16::from(port.get()) + 1);
                Switch {
                    id: switch.id,
                    ports: switch.ports.unwrap_or(least),
                }
            })
            .collect();
        Ok(parts)
    }

    fn place_of(&self, error: &TopologyError, text: &str) -> Option<Place> {
        let place = |list: &str, (row, origin): (usize, Origin)| match origin {
            Origin::Byte(offset) => Some(Place::of_offset(text, offset)),
            Origin::JsonRow => {
                let offset = find_json(text, &format!("{list}[{row}]"))?;
                Some(Place::of_offset(text, offset))
            }
        };
        // The last row with that id: of two, the second is the one too many.
        let of_switch = |id| {
            let mut rows = self.switches.iter().enumerate().rev();
            let (row, switch) = rows.find(|(_, switch)| switch.id == id)?;
            place("switches", (row, switch.origin))
        };
        let of_host = |id| {
            let mut rows = self.hosts.iter().enumerate().rev();
            let (row, host) = rows.find(|(_, host)| host.id == id)?;
            place("hosts", (row, host.origin))
        };
        let of_link = |row: usize| place("links", (row, self.links.get(row)?.origin));
        let of_end = |end: &End| match *end {
            End::Host(host) => of_host(host),
            End::Link(link) => of_link(link),
        };
        match error {
            TopologyError::DuplicateSwitch { switch } => of_switch(*switch),
            TopologyError::DuplicateHost { host } => of_host(*host),
            TopologyError::PortOutsideSwitch { at, .. } => of_end(at),
            TopologyError::PortUsedTwice { second, .. } => of_end(second),
            TopologyError::LinkToItself { link, .. } => of_link(*link),
            TopologyError::UnknownSwitch { at, .. } => match at.strip_prefix("host ") {
                Some(host) => of_host(HostId(host.parse().ok()?)),
                None => of_link(at.strip_prefix("links[")?.strip_suffix(']')?.parse().ok()?),
            },
            _ => None,
        }
    }
}

const LAST_PORT: PortId = match PortId::new(PORT_ID_MAX) {
    Some(port) => port,
    None => unreachable!(),
};
