//! Where port bytes lead in a network.

use wormcast_routing::topology::Topology;
use wormcast_wire::HostId;

use crate::order::switch_order::Order;

/// No port, or nothing on it.
const NOTHING: u32 = u32::MAX;
/// A host; the low 16 bits are its id.
const HOST: u32 = 1 << 31;
/// A host that re-injects worms of others.
const TRANSIT: u32 = 1 << 30;

/// What is on every port of every switch, made ready to follow many source routes.
#[derive(Clone, Debug)]
pub(crate) struct Wiring {
    /// 256 places a switch: the index of a switch, or a host.
    next: Vec<u32>,
    /// Hosts by id, with the index of their switch and their port.
    hosts: Vec<(HostId, u32, u8)>,
}

impl Wiring {
    pub(crate) fn new(topology: &Topology) -> Wiring {
        let mut next = vec![NOTHING; topology.switch_count() << 8];
        for at in 0..topology.switch_count() as u32 {
            for arc in topology.arcs_of(at) {
                next[(at as usize) << 8 | usize::from(arc.port.get())] = arc.to;
            }
        }
        let mut hosts = Vec::with_capacity(topology.hosts().len());
        for (index, host) in (0..).zip(topology.hosts()) {
            let at = topology.switch_of(index);
            let transit = if host.transit { TRANSIT } else { 0 };
            next[(at as usize) << 8 | usize::from(host.port.get())] =
                HOST | transit | u32::from(host.id.0);
            hosts.push((host.id, at, host.port.get()));
        }
        Wiring { next, hosts }
    }

    /// Index of the switch of a host.
    pub(crate) fn switch_of(&self, host: HostId) -> Option<u32> {
        self.place_of(host).map(|(at, _)| at)
    }

    /// Index of the switch of a host, and the port to it.
    pub(crate) fn place_of(&self, host: HostId) -> Option<(u32, u8)> {
        let found = self.hosts.binary_search_by_key(&host, |host| host.0);
        let (_, at, port) = self.hosts[found.ok()?];
        Some((at, port))
    }

    /// The ports by which a route from a switch leaves the switches it crosses, as far as it leads over
    /// what is there: 256 numbers a switch.
    pub(crate) fn crossed<'r>(
        &'r self,
        from: u32,
        ports: &'r [u8],
    ) -> impl Iterator<Item = usize> + 'r {
        let mut at = from;
        ports.iter().map_while(move |&port| {
            let place = (at as usize) << 8 | usize::from(port);
            let next = self.next[place];
            if next & HOST == 0 {
                at = next;
            }
            (next != NOTHING).then_some(place)
        })
    }

    /// Follows a source route: called with each link as (from, to), and `None` for each in-transit host;
    /// it goes on as long as that answers true. Whether it reached `to` over what is there.
    fn follow(
        &self,
        from: u32,
        to: HostId,
        ports: &[u8],
        mut step: impl FnMut(Option<(u32, u32)>) -> bool,
    ) -> bool {
        let mut at = from;
        for (place, &port) in ports.iter().enumerate() {
            let next = self.next[(at as usize) << 8 | usize::from(port)];
            if next == NOTHING {
                return false;
            }
            if next & HOST != 0 {
                let is_last = place + 1 == ports.len();
                if is_last {
                    return next & 0xffff == u32::from(to.0);
                }
                if next & TRANSIT == 0 || !step(None) {
                    return false;
                }
            } else {
                if !step(Some((at, next))) {
                    return false;
                }
                at = next;
            }
        }
        false
    }

    /// Whether a route from a switch leads to a host over what is there.
    pub(crate) fn leads(&self, from: u32, to: HostId, ports: &[u8]) -> bool {
        self.follow(from, to, ports, |_| true)
    }

    /// Whether it does, and goes up, then down, between hosts that re-inject it, by all of these
    /// orders: ranks of the switches by index.
    pub(crate) fn is_legal<const N: usize>(
        &self,
        from: u32,
        to: HostId,
        ports: &[u8],
        orders: [&[u32]; N],
    ) -> bool {
        let mut may_rise = [true; N];
        self.follow(from, to, ports, |hop| {
            let Some((from, to)) = hop else {
                may_rise = [true; N];
                return true;
            };
            let rises = orders.map(|ranks| ranks[to as usize] < ranks[from as usize]);
            let legal = rises.iter().zip(may_rise).all(|(rises, may)| may || !rises);
            may_rise = rises;
            legal
        })
    }
}

/// Ranks of the switches of a topology by index.
pub(crate) fn ranks(topology: &Topology, order: &Order) -> Vec<u32> {
    let switches = topology.switches().iter();
    switches.map(|switch| order.rank(switch.id)).collect()
}
