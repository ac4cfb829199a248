//! A plan laid out on channels: who sends what over which of them.

use std::ops::Range;

use super::model::End;
use super::{CostError, CostModel};
use wormcast_routing::group::{Delivery, GroupPlan, SwitchDelivery, SwitchTree, TreeEnd};
use wormcast_routing::structure::Edge;
use wormcast_wire::tree_route::{branches, decode_tree};
use wormcast_wire::{HostId, PortId};

/// A message and how it is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    pub bytes: u64,
    /// Packets it is cut into, all of one size but the last; 1 at least.
    pub packets: u64,
}

impl Message {
    /// Bytes of every packet but the last.
    pub fn payload_bytes(self) -> u64 {
        self.bytes.div_ceil(self.packets.max(1))
    }

    /// Bytes of the last packet.
    pub fn last_payload_bytes(self) -> u64 {
        let before = self.payload_bytes() * (self.packets.max(1) - 1);
        self.bytes.saturating_sub(before)
    }
}

/// What a plan sends: stations that hold packets, their sends, and the channels that each
/// send crosses.
#[derive(Clone, Debug)]
pub struct Traffic {
    pub(crate) scheme: &'static str,
    pub(crate) stations: Vec<Station>,
    pub(crate) sends: Vec<Send>,
    pub(crate) crossings: Vec<Crossing>,
    /// Stations that the sends bring packets to, send after send.
    pub(crate) targets: Vec<u32>,
    /// Channels in use, by their number in the model; crossings name places in here.
    pub(crate) channels: Vec<u32>,
    /// Hosts in use, by index in the topology; stations name places in here.
    pub(crate) hosts: Vec<u32>,
}

/// A host in one role. The source is the first; it has a second one if its message comes
/// back to it.
#[derive(Clone, Debug)]
pub(crate) struct Station {
    pub host: u32,
    pub sends: Range<u32>,
    /// The send that brings packets here; `NONE` at the source.
    pub fed_by: u32,
    /// Whether the message is complete only when it is complete here.
    pub counts: bool,
}

/// What a station does with every packet.
#[derive(Clone, Debug)]
pub(crate) struct Send {
    pub station: u32,
    pub first: u32,
    pub targets: Range<u32>,
}

/// A packet on a channel, and where its copies go from there. The crossings of a send
/// follow each other, children after parents.
#[derive(Clone, Debug)]
pub(crate) struct Crossing {
    pub channel: u32,
    pub route_bytes: u32,
    /// From having crossed the channel before until this one can be entered.
    pub delay_ps: u64,
    pub children: Range<u32>,
    /// The station at its end, or `NONE`.
    pub station: u32,
}

pub(crate) const NONE: u32 = u32::MAX;

/// Picoseconds.
pub(crate) fn ps(ns: f64) -> u64 {
    (ns * 1e3).round() as u64
}

impl Traffic {
    /// Lays out a plan.
    ///
    /// # Errors
    /// A route that is missing, and edges in no order of causes.
    pub fn new(model: &CostModel<'_, '_>, plan: &GroupPlan) -> Result<Traffic, CostError> {
        let mut layout = Layout::new(model, plan.request.scheme.name(), plan.request.source)?;
        match &plan.delivery {
            Delivery::Hosts { edges } => layout.host_sends(edges)?,
            Delivery::Switches(delivery) => {
                layout.members = Some(&plan.request.members);
                layout.switch_sends(plan.request.source, delivery)?;
            }
        }
        Ok(layout.traffic)
    }

    /// Lays out edges as [`wormcast_routing::group::plan_group`] gives them: in order of steps,
    /// those of a host in the order it sends. An edge back to the source brings it its
    /// own message; then only its first edge comes before that.
    ///
    /// # Errors
    /// As [`Traffic::new`].
    pub fn from_edges(
        model: &CostModel<'_, '_>,
        scheme: &'static str,
        source: HostId,
        edges: &[Edge],
    ) -> Result<Traffic, CostError> {
        let mut layout = Layout::new(model, scheme, source)?;
        layout.host_sends(edges)?;
        Ok(layout.traffic)
    }

    /// Members that the message must reach.
    pub fn receivers(&self) -> usize {
        self.stations
            .iter()
            .filter(|station| station.counts)
            .count()
    }

    /// Places of the crossings of a send.
    pub(crate) fn crossings_of(&self, send: usize) -> Range<usize> {
        let end = self
            .sends
            .get(send + 1)
            .map_or(self.crossings.len(), |next| next.first as usize);
        self.sends[send].first as usize..end
    }

    pub(crate) fn targets_of(&self, send: u32) -> &[u32] {
        let range = &self.sends[send as usize].targets;
        &self.targets[range.start as usize..range.end as usize]
    }
}

struct Layout<'f, 'r, 't> {
    model: &'f CostModel<'r, 't>,
    traffic: Traffic,
    source: u32,
    /// Hosts that count; all if not given.
    members: Option<&'f [HostId]>,
    /// Place of each channel and host of the topology among those in use.
    channel_place: Vec<u32>,
    host_place: Vec<u32>,
    hop_ps: u64,
    copy_ps: u64,
    wire_ps: u64,
}

impl<'f, 'r, 't> Layout<'f, 'r, 't> {
    fn new(
        model: &'f CostModel<'r, 't>,
        scheme: &'static str,
        source: HostId,
    ) -> Result<Layout<'f, 'r, 't>, CostError> {
        let source = model.topology().host_index(source)?;
        let costs = model.costs();
        let mut layout = Layout {
            model,
            traffic: Traffic {
                scheme,
                stations: Vec::new(),
                sends: Vec::new(),
                crossings: Vec::new(),
                targets: Vec::new(),
                channels: Vec::new(),
                hosts: Vec::new(),
            },
            source,
            members: None,
            channel_place: vec![NONE; model.channel_count()],
            host_place: vec![NONE; model.topology().hosts().len()],
            hop_ps: ps(costs.switch_hop_ns),
            copy_ps: ps(costs.switch_copy_ns),
            wire_ps: ps(costs.wire_ns),
        };
        layout.station(source, NONE);
        Ok(layout)
    }

    fn station(&mut self, host: u32, fed_by: u32) -> u32 {
        if self.host_place[host as usize] == NONE {
            self.host_place[host as usize] = self.traffic.hosts.len() as u32;
            self.traffic.hosts.push(host);
        }
        let id = self.model.topology().hosts()[host as usize].id;
        let is_member = self.members.is_none_or(|members| members.contains(&id));
        self.traffic.stations.push(Station {
            host: self.host_place[host as usize],
            sends: 0..0,
            fed_by,
            counts: host != self.source && is_member,
        });
        self.traffic.stations.len() as u32 - 1
    }

    fn channel(&mut self, channel: u32) -> u32 {
        let place = &mut self.channel_place[channel as usize];
        if *place == NONE {
            *place = self.traffic.channels.len() as u32;
            self.traffic.channels.push(channel);
        }
        *place
    }

    fn host_sends(&mut self, edges: &[Edge]) -> Result<(), CostError> {
        let topology = self.model.topology();
        // Who sends, and the edge it sends along.
        let mut planned: Vec<(u32, u32, &Edge)> = Vec::with_capacity(edges.len());
        let mut holder = vec![NONE; topology.hosts().len()];
        holder[self.source as usize] = 0;
        let comes_back = edges
            .iter()
            .any(|edge| topology.host_index(edge.to) == Ok(self.source));
        let mut submitted = false;
        for edge in edges {
            let (from, to) = (
                topology.host_index(edge.from)?,
                topology.host_index(edge.to)?,
            );
            let by = holder[from as usize];
            if by == NONE {
                return Err(CostError::NoSchedule { host: edge.from });
            }
            if from == self.source && comes_back && by == 0 {
                if submitted {
                    return Err(CostError::NoSchedule { host: edge.from });
                }
                submitted = true;
            }
            let station = self.station(to, NONE);
            holder[to as usize] = station;
            planned.push((by, station, edge));
        }
        // Sends of a station follow each other; stable, so in their order.
        planned.sort_by_key(|(by, ..)| *by);
        for (by, station, edge) in planned {
            let send = self.begin_send(by);
            self.traffic.stations[station as usize].fed_by = send;
            self.traffic.targets.push(station);
            self.path(edge.from, edge.to, station)?;
            self.end_send(send);
        }
        Ok(())
    }

    fn begin_send(&mut self, station: u32) -> u32 {
        let send = self.traffic.sends.len() as u32;
        let sends = &mut self.traffic.stations[station as usize].sends;
        if sends.start == sends.end {
            sends.start = send;
        }
        sends.end = send + 1;
        let targets = self.traffic.targets.len() as u32;
        self.traffic.sends.push(Send {
            station,
            first: self.traffic.crossings.len() as u32,
            targets: targets..targets,
        });
        send
    }

    fn end_send(&mut self, send: u32) {
        self.traffic.sends[send as usize].targets.end = self.traffic.targets.len() as u32;
    }

    fn path(&mut self, from: HostId, to: HostId, station: u32) -> Result<(), CostError> {
        let model = self.model;
        let route = model.paths().route(from, to)?;
        let per_hop = model.costs().route_bytes_per_hop;
        let through_host = ps(model.costs().in_transit_ns);
        let mut ports = route.ports.len() as u32;
        let begin = self.traffic.crossings.len();
        model.walk(&route, |number, through| {
            let delay_ps = match (self.traffic.crossings.len() == begin, through) {
                (true, _) => 0,
                (_, true) => self.wire_ps + through_host,
                (_, false) => self.wire_ps + self.hop_ps,
            };
            let channel = self.channel(number);
            let next = self.traffic.crossings.len() as u32 + 1;
            self.traffic.crossings.push(Crossing {
                channel,
                route_bytes: ports * per_hop,
                delay_ps,
                children: next..next + 1,
                station: NONE,
            });
            // A switch strips the byte of the port it sends by.
            if let End::Switch(_) = model.end_of(number) {
                ports = ports.saturating_sub(1);
            }
        })?;
        let last = self
            .traffic
            .crossings
            .last_mut()
            .expect("a route has channels");
        last.children = 0..0;
        last.station = station;
        Ok(())
    }

    fn switch_sends(&mut self, source: HostId, delivery: &SwitchDelivery) -> Result<(), CostError> {
        for route in &delivery.routes {
            // Checks all of it; what follows relies on that.
            decode_tree(&route.bytes)?;
            self.copies(0, source, Fork::Route(route.bytes.clone()))?;
        }
        if !delivery.routes.is_empty() || delivery.tree.branches.is_empty() {
            return Ok(());
        }
        let (mut sender, mut station) = (source, 0);
        if let Some(relay) = &delivery.relay {
            let send = self.begin_send(0);
            station = self.station(self.model.topology().host_index(relay.host)?, send);
            self.traffic.targets.push(station);
            self.path(source, relay.host, station)?;
            self.end_send(send);
            sender = relay.host;
        }
        self.copies(station, sender, Fork::Table(&delivery.tree))
    }

    /// A send that switches replicate.
    fn copies(&mut self, station: u32, sender: HostId, fork: Fork<'_>) -> Result<(), CostError> {
        let topology = self.model.topology();
        let send = self.begin_send(station);
        let injection = self.model.injection(topology.host_index(sender)?);
        let channel = self.channel(injection);
        let first = self.traffic.crossings.len();
        self.traffic.crossings.push(Crossing {
            channel,
            route_bytes: self.tree_bytes(&fork),
            delay_ps: 0,
            children: 0..0,
            station: NONE,
        });
        let at = topology.switch_index(topology.host(sender)?.switch)?;
        let mut open = vec![(first, at, fork)];
        while let Some((parent, switch, fork)) = open.pop() {
            let children = self.traffic.crossings.len() as u32;
            for (copy, (port, next)) in fork.branches()?.into_iter().enumerate() {
                let leaving = self.model.leaving(switch, port)?;
                let channel = self.channel(leaving);
                let route_bytes = self.tree_bytes(&next);
                let place = self.traffic.crossings.len();
                let mut station = NONE;
                match self.model.end_of(leaving) {
                    End::Switch(switch) => open.push((place, switch, next)),
                    End::Host(host) => {
                        station = self.station(host, send);
                        self.traffic.targets.push(station);
                    }
                }
                self.traffic.crossings.push(Crossing {
                    channel,
                    route_bytes,
                    delay_ps: self.wire_ps + self.hop_ps + copy as u64 * self.copy_ps,
                    children: 0..0,
                    station,
                });
            }
            self.traffic.crossings[parent].children = children..self.traffic.crossings.len() as u32;
        }
        self.end_send(send);
        Ok(())
    }

    /// Bytes of a route as the costs have it. As the model writes it, it has two bytes a
    /// branch and the marker; a table needs none.
    fn tree_bytes(&self, fork: &Fork<'_>) -> u32 {
        let Fork::Route(route) = fork else { return 0 };
        match (route.len() as u32).checked_sub(1) {
            None => 0,
            Some(branches) => branches / 2 * self.model.costs().tree_bytes_per_branch + 1,
        }
    }
}

/// Where a switch learns which copies to make.
enum Fork<'p> {
    /// From the TREE route of the packet.
    Route(Vec<u8>),
    Table(&'p SwitchTree),
    /// A host is there.
    End,
}

impl<'p> Fork<'p> {
    fn branches(&self) -> Result<Vec<(PortId, Fork<'p>)>, CostError> {
        Ok(match self {
            Fork::Route(route) => branches(route)?
                .map(|branch| (branch.port, Fork::Route(branch.copy_route())))
                .collect(),
            Fork::Table(tree) => tree
                .branches
                .iter()
                .map(|(port, end)| match end {
                    TreeEnd::Switch(next) => (*port, Fork::Table(next)),
                    TreeEnd::Host(_) => (*port, Fork::End),
                })
                .collect(),
            Fork::End => Vec::new(),
        })
    }
}
