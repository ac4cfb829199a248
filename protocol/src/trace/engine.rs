//! Probes: traced worms that show which way messages go (`wire/SPEC.md` §2.2, §5.8).

use crate::engine::Engine;
use crate::event::Transmit;
use crate::plan::GroupPlan;
use crate::session::copied::{RouteRoom, copied_worms};
use crate::trace::{
    OBSERVATIONS_MAX, Observation, TraceError, TraceRequest, Traced, WAYS_MAX, Way, choices,
};
use std::collections::VecDeque;
use wormcast_wire::pdu::{self, Body, Common, Probe};
use wormcast_wire::trace::{self, Trace};
use wormcast_wire::worm::{self, Header, Kind, Worm, flags};
use wormcast_wire::{
    BufferClass, ETHERNET_LENGTH, ETHERTYPE_HOST_PDU, GroupId, HostId, ROUTE_LENGTH_MAX,
    Replication, SWITCHES_CROSSED_MAX,
};

impl Engine {
    /// Sends a probe along every way that is asked for, and gives these ways: none, if others send what
    /// is asked for. What has not been sent of a trace before is not sent any more.
    ///
    /// # Errors
    /// [`TraceError`]; nothing is sent then.
    pub fn trace(&mut self, request: &TraceRequest) -> Result<Vec<Way>, TraceError> {
        let (mut ways, group, origin, mtu) = match request.of {
            Traced::ToHost(to) => {
                let ways = self.ways_to(to, request.route)?;
                (
                    ways,
                    GroupId::BROADCAST,
                    self.shared.config.host,
                    self.shared.config.mtu,
                )
            }
            Traced::InGroup {
                group,
                origin,
                bytes,
            } => {
                let plan = self.groups.get(&group).cloned();
                let plan = plan.ok_or_else(|| TraceError::NoGroup {
                    group,
                    groups: choices("group", self.groups.keys().map(|group| group.0)),
                })?;
                let ways = self.ways_in(&plan, origin, bytes, request.route)?;
                (ways, group, origin, plan.mtu_within(self.shared.config.mtu))
            }
        };
        if ways.len() > WAYS_MAX {
            return Err(TraceError::TooMany { count: ways.len() });
        }
        let common = Common {
            group,
            origin,
            stream: request.trace,
        };
        let mut due = VecDeque::with_capacity(ways.len());
        for (way, number) in ways.iter_mut().zip(0..) {
            way.number = number;
            due.push_back(self.probe(way, &common, request.attempt, mtu)?);
        }
        self.probes.due = due;
        Ok(ways)
    }

    /// The UNICAST ways to a host.
    fn ways_to(&self, to: HostId, only: Option<u8>) -> Result<Vec<Way>, TraceError> {
        if to == self.shared.config.host {
            return Err(TraceError::ToItself(to));
        }
        let Some(turns) = self.shared.unicast.get(&to) else {
            let hosts = self.shared.unicast.keys().map(|host| host.0);
            let hosts = choices("host", hosts);
            return Err(TraceError::NoRoute { to, hosts });
        };
        let routes = &turns.alternatives.routes;
        if let Some(route) = only.filter(|route| usize::from(*route) >= routes.len()) {
            let last = routes.len() - 1;
            return Err(TraceError::NoAlternative { to, route, last });
        }
        let ways = (0..)
            .zip(routes)
            .filter(|(place, _)| only.is_none_or(|only| only == *place));
        let way = |(place, route): (u8, &crate::routes::Alternative)| Way {
            number: 0,
            kind: Kind::Unicast,
            route: route.ports.clone(),
            to: vec![to],
            alternative: Some((place, route.share)),
            tree: None,
        };
        Ok(ways.map(way).collect())
    }

    /// What this host sends of an origin's messages to a group.
    fn ways_in(
        &self,
        plan: &GroupPlan,
        origin: HostId,
        bytes: Option<u64>,
        only: Option<u8>,
    ) -> Result<Vec<Way>, TraceError> {
        let choice = plan.choice_for(bytes);
        let no_origin = || TraceError::NoOrigin {
            origin,
            group: plan.id,
            members: choices("host", plan.members.iter().map(|host| host.0)),
        };
        let host = self.shared.config.host;
        let role = plan
            .structures
            .role(origin, choice)
            .filter(|_| plan.members.contains(&origin));
        let role = role.ok_or_else(no_origin)?;
        if plan.choice(choice).replication == Replication::Hosts {
            let mut ways = Vec::new();
            for child in &role.children {
                // Routes may be fewer to one child than to another.
                let count = self
                    .shared
                    .unicast
                    .get(&child.host)
                    .map_or(0, |turns| turns.alternatives.routes.len());
                let only = only.map(|route| route.min(count.saturating_sub(1) as u8));
                ways.extend(self.ways_to(child.host, only)?);
            }
            return Ok(ways);
        }
        if origin != host {
            return Ok(Vec::new());
        }
        let others = plan.members.iter().filter(|member| **member != origin);
        let others: Vec<(HostId, HostId)> = others.map(|host| (*host, *host)).collect();
        let room = RouteRoom {
            root: ROUTE_LENGTH_MAX,
            tree: (self.shared).tree_room(plan.mtu_within(self.shared.config.mtu)),
        };
        let trees = copied_worms(plan.structures.copies(choice), &others, room, &self.shared);
        let several = trees.len() > 1;
        let ways = (0..).zip(trees).flat_map(|(tree, worms)| {
            worms.into_iter().map(move |worm| Way {
                number: 0,
                kind: worm.kind,
                route: worm.route,
                to: worm.to,
                alternative: None,
                tree: several.then_some(tree),
            })
        });
        Ok(ways.collect())
    }

    /// The frame of a probe.
    fn probe(
        &mut self,
        way: &Way,
        common: &Common,
        attempt: u16,
        mtu: usize,
    ) -> Result<Vec<u8>, TraceError> {
        let host = self.shared.config.host;
        let body = Body::Probe(Probe {
            way: way.number,
            attempt,
        });
        let length = worm::HEADER_LENGTH
            + way.route.len()
            + trace::HEADER_LENGTH
            + pdu::length_of(common, host, &body);
        let left = mtu.saturating_sub(length) / trace::RECORD_LENGTH;
        if left == 0 {
            let length = way.route.len();
            return Err(TraceError::NoRoom { length, mtu });
        }
        let header = Header {
            kind: way.kind,
            flags: flags::HEAD | flags::TAIL | flags::TRACE,
            hops: 0,
            source: host,
            sequence: self.shared.next_worm(),
            next: ETHERTYPE_HOST_PDU,
        };
        let mut frame = vec![0; ETHERNET_LENGTH + length];
        let at = worm::encode(&mut frame, self.shared.config.mac, &header, &way.route);
        Trace::begin(&mut frame[at..], left.min(SWITCHES_CROSSED_MAX) as u8);
        pdu::encode(&mut frame[at + trace::HEADER_LENGTH..], host, common, &body);
        Ok(frame)
    }

    pub(crate) fn send_probe(&mut self, buf: &mut [u8]) -> Option<Transmit> {
        let frame = self.probes.due.pop_front()?;
        let length = frame.len();
        buf[..length].copy_from_slice(&frame);
        self.shared.counters.sent_frames += 1;
        self.shared.counters.sent_bytes += length as u64;
        let class = BufferClass::One;
        Some(Transmit {
            length,
            class,
            train_bytes_max: 0,
        })
    }

    /// Notes a probe that came. Copies of this host's own are no news.
    pub(crate) fn take_probe(&mut self, worm: &Worm<'_>, common: Common, probe: Probe) {
        let header = &worm.header;
        if header.source == self.shared.config.host {
            self.shared.counters.filtered += 1;
            return;
        }
        if self.probes.seen.len() >= OBSERVATIONS_MAX {
            self.shared.counters.observations_dropped += 1;
            return;
        }
        self.probes.seen.push_back(Observation {
            trace: common.stream,
            way: probe.way,
            attempt: probe.attempt,
            sender: header.source,
            hops: header.hops,
            room: worm.trace.map_or(0, |trace| trace.room),
            count: worm.trace.map_or(0, |trace| trace.count() as u8),
            marked: header.flags & flags::CE != 0,
            records: worm
                .trace
                .map_or(Vec::new(), |trace| trace.believed(header.hops)),
        });
    }

    /// The next probe that came, oldest first.
    pub fn poll_observation(&mut self) -> Option<Observation> {
        self.probes.seen.pop_front()
    }
}
