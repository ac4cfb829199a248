//! One path for each pair of places, as channels.

use super::channels::Channels;
use super::dependencies::Dependencies;
use crate::order::switch_order::Order;
use wormcast_routing::intransit::is_cut;
use wormcast_routing::routes::{Route, Routes};
use wormcast_wire::{HostId, PortId};

/// Marks an entry of a path as an in-transit host.
const IN_TRANSIT: u32 = 1 << 31;

/// An in-transit host on the switch, whichever.
const ANY_HOST: u32 = IN_TRANSIT | 0xffff;

/// A path: channels, and in-transit hosts between them.
pub(crate) type Path = Box<[u32]>;

/// Whether an entry of a path is an in-transit host, not a channel.
pub(crate) fn is_in_transit(entry: u32) -> bool {
    entry & IN_TRANSIT != 0
}

/// Whether each piece of a path, between in-transit hosts, goes up, then down.
pub(crate) fn is_legal(order: &Order, channels: &Channels, path: &[u32]) -> bool {
    let is_up = |channel: u32| {
        let hop = channels.hop(channel);
        let rank = |switch| order.rank(channels.switch_id(switch));
        rank(hop.to) < rank(hop.from)
    };
    path.split(|&entry| is_in_transit(entry))
        .flat_map(|piece| piece.windows(2))
        .all(|pair| is_up(pair[0]) || !is_up(pair[1]))
}

/// Which of the two topologies a set of paths is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Old,
    New,
}

/// Paths between all places; `None` where there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Paths {
    pub side: Side,
    places: usize,
    paths: Vec<Option<Path>>,
}

impl Paths {
    pub fn none(channels: &Channels, side: Side) -> Paths {
        let places = channels.places.len();
        Paths {
            side,
            places,
            paths: vec![None; places * places],
        }
    }

    /// The paths of planned routes, place by place; those that no worm can go for their
    /// length are left out.
    pub fn of_routes(channels: &Channels, side: Side, routes: &Routes<'_>) -> Paths {
        let mut paths = Paths::none(channels, side);
        let topology = routes.topology();
        let at = |place: &super::channels::Place| {
            let at = match side {
                Side::Old => place.old,
                Side::New => place.new,
            };
            at.map(|number| {
                topology
                    .switch_index(channels.switch_id(number))
                    .expect("it hangs there")
            })
        };
        let at: Vec<Option<u32>> = channels.places.iter().map(at).collect();
        let mut path = Vec::new();
        for (from, start) in at.iter().enumerate() {
            for (to, end) in at.iter().enumerate() {
                let (Some(start), Some(end)) = (*start, *end) else {
                    continue;
                };
                let Ok(found) = routes.paths(start, end) else {
                    continue;
                };
                let arcs = &found[0].arcs;
                path.clear();
                for (place, &arc) in arcs.iter().enumerate() {
                    if place > 0 && is_cut(routes.updown(), arcs[place - 1], arc) {
                        path.push(ANY_HOST);
                    }
                    path.push(match side {
                        Side::Old => channels.of_old_arc(arc),
                        Side::New => channels.of_new_arc(arc),
                    });
                }
                paths.paths[from * paths.places + to] = Some(path.as_slice().into());
            }
        }
        paths
    }

    /// The paths of routes one by one, where every host is a place of its own. Routes of
    /// hosts that are not there are left out, and so is the way after a port that leads
    /// to nothing.
    pub fn of_list<'r>(
        channels: &Channels,
        side: Side,
        routes: impl IntoIterator<Item = &'r Route>,
    ) -> Paths {
        let mut paths = Paths::none(channels, side);
        let leaving = channels.by_port(side == Side::Old);
        let mut places: Vec<(HostId, usize)> = (channels.places.iter().enumerate())
            .flat_map(|(place, of)| of.hosts.iter().map(move |host| (*host, place)))
            .collect();
        places.sort_unstable();
        let place = |host| {
            let found = places.binary_search_by_key(&host, |(host, _)| *host);
            found.ok().map(|found| places[found].1)
        };
        for route in routes {
            let (Some(from), Some(to)) = (place(route.src), place(route.dst)) else {
                continue;
            };
            let mut path = Vec::with_capacity(route.ports.len());
            let mut in_transit = route.in_transit.iter();
            // The last byte leads to the destination.
            for (switch, byte) in route
                .switches
                .iter()
                .zip(&route.ports)
                .take(route.ports.len() - 1)
            {
                let port = PortId::new(*byte);
                match port.and_then(|port| leaving.get(&(*switch, port))) {
                    Some(&channel) => path.push(channel),
                    None => {
                        path.extend(in_transit.next().map(|host| IN_TRANSIT | u32::from(host.0)))
                    }
                }
            }
            paths.paths[from * paths.places + to] = Some(path.into());
        }
        paths
    }

    pub fn get(&self, from: usize, to: usize) -> Option<&Path> {
        self.paths[from * self.places + to].as_ref()
    }

    pub fn set(&mut self, from: usize, to: usize, path: Option<Path>) {
        self.paths[from * self.places + to] = path;
    }

    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let places = self.places;
        (0..places).flat_map(move |from| (0..places).map(move |to| (from, to)))
    }

    /// Whether the path from one place to another survives: all its channels stay, and
    /// the hosts stay where they are.
    pub fn survives(&self, channels: &Channels, from: usize, to: usize) -> bool {
        let steady = |place: usize| channels.places[place].steady;
        steady(from)
            && steady(to)
            && self.get(from, to).is_some_and(|path| {
                let mut at = channels.places[from].old;
                path.iter().all(|&entry| match entry {
                    ANY_HOST => at.is_some_and(|at| channels.keeps_hosts(at)),
                    host if is_in_transit(host) => {
                        channels.re_injects(HostId((host & !IN_TRANSIT) as u16))
                    }
                    channel => {
                        at = Some(channels.hop(channel).to);
                        channels.hop(channel).stays
                    }
                })
            })
    }

    /// What a path makes worms hold and need; a channel that was lost holds nothing, and
    /// what needs it is dropped there, unless `leaving_carry`.
    pub fn turns<'p>(
        channels: &'p Channels,
        path: &'p [u32],
        leaving_carry: bool,
    ) -> impl Iterator<Item = (u32, u32)> + 'p {
        path.windows(2).filter_map(move |pair| {
            let carries =
                |entry: u32| !is_in_transit(entry) && (leaving_carry || channels.hop(entry).stays);
            (carries(pair[0]) && carries(pair[1])).then_some((pair[0], pair[1]))
        })
    }

    /// Adds the dependencies of all paths; false if they close a cycle.
    pub fn add_to(
        &self,
        channels: &Channels,
        leaving_carry: bool,
        graph: &mut Dependencies,
    ) -> bool {
        self.paths.iter().flatten().all(|path| {
            Paths::turns(channels, path, leaving_carry)
                .all(|(held, needed)| graph.add(held, needed))
        })
    }

    /// The route of two hosts along the path between their places. `host_at` gives a
    /// host to re-inject on a switch, the how manieth cut that is; `port_of` the port of a
    /// host.
    pub fn route(
        channels: &Channels,
        path: &[u32],
        start: u32,
        (src, dst): (HostId, HostId),
        host_at: impl Fn(u32, usize) -> HostId,
        port_of: impl Fn(HostId) -> u8,
    ) -> Route {
        let mut route = Route {
            src,
            dst,
            switches: Vec::with_capacity(path.len() + 1),
            ports: Vec::with_capacity(path.len() + 1),
            in_transit: Vec::new(),
        };
        let mut at = start;
        for &entry in path {
            route.switches.push(channels.switch_id(at));
            if is_in_transit(entry) {
                let host = match entry {
                    ANY_HOST => host_at(at, route.in_transit.len()),
                    named => HostId((named & !IN_TRANSIT) as u16),
                };
                route.ports.push(port_of(host));
                route.in_transit.push(host);
            } else {
                route.ports.push(channels.hop(entry).from_port.get());
                at = channels.hop(entry).to;
            }
        }
        route.switches.push(channels.switch_id(at));
        route.ports.push(port_of(dst));
        route
    }
}
