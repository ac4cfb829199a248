//! A second look at an order that shows that routes are free of deadlock.
//!
//! Knows nothing of the graph the order was found in: it walks the ports of each route by
//! the lists of the topology, and sees that every channel comes later than the one before.

use std::collections::BTreeMap;

use super::{Channel, Resource};
use wormcast_routing::routes::Route;
use wormcast_routing::topology::Topology;
use wormcast_wire::{HostId, SwitchId};

/// Why an order shows nothing about a route.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("route from host {} to host {}: {flaw:?}", route.0, route.1)]
pub struct Violation {
    /// The route, by its ends.
    pub route: (HostId, HostId),
    pub flaw: Flaw,
}

/// What is wrong with an order, or with a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The route needs the second channel while it holds the first, which comes later.
    OutOfOrder(Channel, Channel),
    /// The route needs this channel, which is not in the order, or there twice.
    NotOnce(Channel),
    /// After so many ports the topology has no way on, or not the destination.
    NoWay(usize),
}

/// Checks that every route takes its channels in this order. At in-transit hosts, which
/// keep whole worms, a route starts anew.
///
/// # Errors
/// The first thing that is wrong.
pub fn check(
    topology: &Topology,
    routes: impl IntoIterator<Item = Route>,
    order: &[Resource],
) -> Result<(), Violation> {
    let mut places: BTreeMap<Resource, Vec<usize>> = BTreeMap::new();
    for (place, &resource) in order.iter().enumerate() {
        places.entry(resource).or_default().push(place);
    }
    let ports = channels_by_port(topology);
    for route in routes {
        let violation = |flaw| Violation {
            route: (route.src, route.dst),
            flaw,
        };
        let place = |channel: Channel| match places.get(&channel.into()).map(Vec::as_slice) {
            Some(&[place]) => Ok(place),
            _ => Err(violation(Flaw::NotOnce(channel))),
        };
        let inject = |id| {
            let at = topology.hosts().iter().find(|host| host.id == id);
            let at = at.ok_or_else(|| violation(Flaw::NoWay(0)))?;
            let (host, switch, port) = (at.id, at.switch, at.port);
            Ok(Channel::Injection { host, switch, port })
        };
        let mut held = inject(route.src)?;
        for (count, &byte) in route.ports.iter().enumerate() {
            let at = match held {
                Channel::Injection { switch, .. } => switch,
                Channel::Link { to, .. } => to,
                Channel::Ejection { switch, host, .. } => {
                    held = inject(host)?;
                    switch
                }
            };
            let needed = *ports
                .get(&(at, byte))
                .ok_or_else(|| violation(Flaw::NoWay(count)))?;
            if place(held)? >= place(needed)? {
                return Err(violation(Flaw::OutOfOrder(held, needed)));
            }
            held = needed;
        }
        match held {
            Channel::Ejection { host, .. } if host == route.dst => {}
            _ => return Err(violation(Flaw::NoWay(route.ports.len()))),
        }
    }
    Ok(())
}

fn channels_by_port(topology: &Topology) -> BTreeMap<(SwitchId, u8), Channel> {
    let mut channels = BTreeMap::new();
    for link in topology.links() {
        for (from, from_port, to, to_port) in [
            (link.a, link.a_port, link.b, link.b_port),
            (link.b, link.b_port, link.a, link.a_port),
        ] {
            let link = Channel::Link {
                from,
                from_port,
                to,
                to_port,
            };
            channels.insert((from, from_port.get()), link);
        }
    }
    for at in topology.hosts() {
        let (switch, port, host) = (at.switch, at.port, at.id);
        let channel = Channel::Ejection { switch, port, host };
        channels.insert((switch, port.get()), channel);
    }
    channels
}
