//! How long frames of a group may be, where not all links carry the same.

use std::collections::BTreeMap;

use wormcast_routing::group::Scheme;
use wormcast_wire::{HostId, MTU_MAX, MTU_MIN, PortId, SchemeName, SwitchId};

use crate::agent_plan::wholes::Whole;
use crate::model::agent::{AgentGroup, HostRoutes, RouteTable};
use crate::model::groups::{Group, GroupScheme};
use crate::order::parts::Part;
use crate::order::wiring::Wiring;
use crate::switch_plan::table_numbers::Along;
use crate::switch_plan::trees::own_ports;

/// Links that carry less than the longest frames that hosts send, by both of their ends: bytes of a
/// frame after its Ethernet header. Empty where all links carry the same.
pub type MtuLimits = BTreeMap<(SwitchId, PortId), u16>;

/// One connected part, made ready to follow routes.
#[derive(Debug)]
struct Widths {
    wiring: Wiring,
    /// What the link at a port carries: 256 places a switch, by its index.
    carries: Vec<u16>,
}

impl Widths {
    fn new(whole: &Whole, links: &MtuLimits) -> Widths {
        let switches = whole.topology.switches();
        let mut carries = vec![u16::MAX; switches.len() << 8];
        for (&(switch, port), &bytes) in links {
            if let Ok(at) = whole.topology.switch_index(switch) {
                carries[(at as usize) << 8 | usize::from(port.get())] = bytes;
            }
        }
        Widths {
            wiring: Wiring::new(&whole.topology),
            carries,
        }
    }

    /// What the narrowest link of a route from a host carries, that of the host included.
    fn of_route(&self, from: HostId, ports: &[u8]) -> u16 {
        let Some((at, port)) = self.wiring.place_of(from) else {
            return u16::MAX;
        };
        let own = self.carries[(at as usize) << 8 | usize::from(port)];
        let crossed = self.wiring.crossed(at, ports);
        crossed.fold(own, |least, place| least.min(self.carries[place]))
    }
}

/// Finds how long frames of groups may be.
pub(crate) struct LimitedMtus<'n> {
    links: &'n MtuLimits,
    widths: Vec<Widths>,
    /// By host: the narrowest of all routes to each other host.
    routes: BTreeMap<HostId, BTreeMap<HostId, u16>>,
}

impl<'n> LimitedMtus<'n> {
    pub(crate) fn new(wholes: &[Whole], links: &'n MtuLimits) -> LimitedMtus<'n> {
        let widths = if links.is_empty() {
            Vec::new()
        } else {
            wholes
                .iter()
                .map(|whole| Widths::new(whole, links))
                .collect()
        };
        LimitedMtus {
            links,
            widths,
            routes: BTreeMap::new(),
        }
    }

    /// Whether all links carry the same.
    pub(crate) fn is_nowhere(&self) -> bool {
        self.links.is_empty()
    }

    /// What the routes between members in the part `whole` carry; `None`: what hosts send.
    pub(crate) fn of_routes<'r>(
        &mut self,
        whole: usize,
        members: &[HostId],
        routes: impl Fn(HostId) -> Option<&'r HostRoutes>,
    ) -> Option<u16> {
        let widths = self.widths.get(whole)?;
        let mut least = u16::MAX;
        for &from in members {
            // A lone member has no route, and a link all the same.
            least = least.min(widths.of_route(from, &[]));
            let Some((unicast, tree)) = routes(from) else {
                continue;
            };
            let table = self.routes.entry(from).or_insert_with(|| {
                let mut table: BTreeMap<HostId, u16> = BTreeMap::new();
                for RouteTable(routes) in [&**unicast, &**tree] {
                    for route in routes {
                        let carries = widths.of_route(from, &route.ports);
                        let least = table.entry(route.to).or_insert(u16::MAX);
                        *least = carries.min(*least);
                    }
                }
                table
            });
            let to_members = members.iter().filter_map(|to| table.get(to));
            least = to_members.fold(least, |least, &carries| least.min(carries));
        }
        bounded(least)
    }

    /// What worms of a group carry that switches copy by other ways than routes between its members:
    /// over the root, along trees of the group's own.
    pub(crate) fn of_copies<'r>(
        &self,
        whole: usize,
        (group, advertised): (&Group, &AgentGroup),
        parts: &[Part],
        to_root: impl Fn(HostId) -> Option<&'r [u8]>,
    ) -> Option<u16> {
        let widths = self.widths.get(whole)?;
        let mut least = u16::MAX;
        let mut structures = advertised.structures.iter();
        if structures.any(|structure| structure.scheme == SchemeName::Broadcast) {
            let roots = advertised
                .members
                .iter()
                .filter_map(|&host| Some((host, to_root(host)?)));
            for (host, ports) in roots {
                least = least.min(widths.of_route(host, ports));
            }
        }
        let at = |end: (SwitchId, PortId)| self.links.get(&end).copied().unwrap_or(u16::MAX);
        let trees = advertised.trees.iter().flat_map(|trees| &trees.trees);
        for link in trees.flatten() {
            least = least.min(at((link.a, link.a_port)));
        }
        if let (Some(number), GroupScheme::One(Scheme::Switch(how))) =
            (advertised.number, group.scheme)
            && let Along::Own(tree) = Along::of(how)
        {
            for part in parts {
                for (switch, ports) in own_ports(part, &group.members, tree, number) {
                    let carried = ports.iter().map(|port| at((switch, port)));
                    least = carried.fold(least, u16::min);
                }
            }
        }
        bounded(least)
    }
}

/// Frames that an agent can make: a link that carries less is named by the controller, and loses them.
fn bounded(least: u16) -> Option<u16> {
    (least < u16::MAX).then(|| least.clamp(MTU_MIN as u16, MTU_MAX as u16))
}
