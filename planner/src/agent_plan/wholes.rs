//! Routes between the hosts of each connected part.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use wormcast_routing::routes::{Alternative, Route, RouteError, Setting};
use wormcast_routing::structure::ordering;
use wormcast_routing::topology::Topology;
use wormcast_routing::updown::UpDown;
use wormcast_wire::{HostId, SHARES_WHOLE};

use crate::model::agent::{HostRoutes, PlannedRoute, RouteTable};
use crate::order::parts::{Kind, Part, PartRoutes};
use crate::order::wiring::Wiring;

/// A connected part of all that is known.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) topology: Topology,
    /// By host; nothing if there are no routes.
    pub(crate) routes: BTreeMap<HostId, HostRoutes>,
    /// Place of each host in the CCO of all; that of some hosts is the same with the others left
    /// out.
    ranks: OnceLock<BTreeMap<HostId, usize>>,
}

impl Whole {
    /// `up` are the connected parts of what is up within it. Routes run there, and for all other
    /// pairs over everything known. Those of `kept` stay where they lead on. `by_root`: those along the spanning tree
    /// go up to its root first.
    pub(crate) fn new(
        whole: Part,
        up: &[&Part],
        setting: &Setting,
        kept: &Kept<'_>,
        by_root: bool,
    ) -> (Whole, Option<RouteError>) {
        let found = routes_of_hosts(&whole, up, setting, kept, by_root);
        let (routes, error) = match found {
            Ok(routes) => (routes, None),
            Err(error) => (BTreeMap::new(), Some(error)),
        };
        let topology = whole.topology;
        (
            Whole {
                topology,
                routes,
                ranks: OnceLock::new(),
            },
            error,
        )
    }

    pub(super) fn ranks(&self) -> &BTreeMap<HostId, usize> {
        self.ranks.get_or_init(|| {
            let hosts: Vec<HostId> = self.topology.hosts().iter().map(|host| host.id).collect();
            let updown = UpDown::new(&self.topology, None).expect("no root is asked for");
            let order = ordering::cco(&self.topology, &updown, &hosts).expect("they are its hosts");
            order
                .into_iter()
                .enumerate()
                .map(|(rank, host)| (host, rank))
                .collect()
        })
    }
}

/// What routes of a plan before need to stay, where things have gone since and none have come: so
/// under the same order no route that is shorter has come either. Under another one there may be a
/// shorter one; that does not make it worth to disturb a pair.
pub(crate) struct Lasting {
    /// What is up now.
    pub(crate) wiring: Wiring,
    /// Ranks of its switches in the order that routes are to keep to.
    pub(crate) ranks: Vec<u32>,
    /// Whether that is the order before.
    pub(crate) same_order: bool,
}

impl Lasting {
    /// Whether a route from a switch may stay. Those along a tree do with its order.
    fn keeps(&self, kind: Kind, at: u32, route: &PlannedRoute) -> bool {
        match (self.same_order, kind) {
            (true, _) => self.wiring.leads(at, route.to, &route.ports),
            (false, Kind::Unicast) => {
                self.wiring
                    .is_legal(at, route.to, &route.ports, [&self.ranks])
            }
            (false, Kind::Tree) => false,
        }
    }
}

/// Routes of the plan before.
pub(crate) struct Kept<'k> {
    /// Which of them may stay; `None`: none.
    pub(crate) lasting: Option<&'k Lasting>,
    pub(crate) wholes: &'k [Whole],
    pub(crate) whole_of: &'k BTreeMap<HostId, usize>,
}

impl Kept<'_> {
    /// What may stay of the routes of a host, the switch of the host, and these routes.
    fn of(&self, host: HostId) -> Option<(&Lasting, u32, &HostRoutes)> {
        let lasting = self.lasting?;
        let at = lasting.wiring.switch_of(host)?;
        let whole = &self.wholes[*self.whole_of.get(&host)?];
        Some((lasting, at, whole.routes.get(&host)?))
    }
}

fn routes_of_hosts(
    whole: &Part,
    up: &[&Part],
    setting: &Setting,
    kept: &Kept<'_>,
    by_root: bool,
) -> Result<BTreeMap<HostId, HostRoutes>, RouteError> {
    let parts: Vec<PartRoutes<'_>> = up
        .iter()
        .map(|part| PartRoutes::new(part, setting))
        .collect();
    let everywhere = match up {
        [part] if part.topology == whole.topology => None,
        _ => Some(PartRoutes::new(whole, setting)),
    };
    let mut part_of: BTreeMap<HostId, &PartRoutes<'_>> = BTreeMap::new();
    for part in &parts {
        let hosts = part.topology().hosts().iter();
        part_of.extend(hosts.map(|host| (host.id, part)));
    }
    let hosts: Vec<HostId> = whole.topology.hosts().iter().map(|host| host.id).collect();
    let mut made = BTreeMap::new();
    for &host in &hosts {
        let ways = Ways {
            from: host,
            own: part_of.get(&host).copied(),
            everywhere: everywhere.as_ref(),
            by_root,
        };
        let routes = match kept.of(host) {
            Some((lasting, at, (unicast, tree))) => {
                let lasts = |kind| move |route: &PlannedRoute| lasting.keeps(kind, at, route);
                (
                    ways.mended(unicast, Kind::Unicast, &hosts, lasts(Kind::Unicast))?,
                    ways.mended(tree, Kind::Tree, &hosts, lasts(Kind::Tree))?,
                )
            }
            None => (
                Arc::new(ways.table(Kind::Unicast)?),
                Arc::new(ways.table(Kind::Tree)?),
            ),
        };
        made.insert(host, routes);
    }
    Ok(made)
}

/// What the routes from one host are taken from: its part of what is up, for other destinations
/// all that is known.
struct Ways<'w, 'p> {
    from: HostId,
    own: Option<&'w PartRoutes<'p>>,
    everywhere: Option<&'w PartRoutes<'p>>,
    /// Whether routes along the spanning tree go up to its root first.
    by_root: bool,
}

impl<'w, 'p> Ways<'w, 'p> {
    fn sources(&self) -> impl Iterator<Item = &'w PartRoutes<'p>> {
        self.own.into_iter().chain(self.everywhere)
    }

    /// From where routes along the spanning tree are taken that go by its root: from one place, since all of them
    /// have to go up by one way.
    fn rooted(&self, kind: Kind) -> Option<&'w PartRoutes<'p>> {
        self.sources()
            .next()
            .filter(|_| self.by_root && kind == Kind::Tree)
    }

    fn table(&self, kind: Kind) -> Result<RouteTable, RouteError> {
        if let Some(rooted) = self.rooted(kind) {
            let hosts = rooted.topology().hosts().iter();
            let routes = hosts.filter_map(|host| rooted.by_root(self.from, host.id));
            return Ok(RouteTable(routes.collect()));
        }
        let mut found: BTreeMap<HostId, Vec<PlannedRoute>> = BTreeMap::new();
        for routes in self.sources() {
            let routes = routes.get(kind)?;
            if !routes.algorithm().has_alternatives() {
                for host in routes.topology().hosts() {
                    if let (to, false) = (host.id, found.contains_key(&host.id))
                        && let Ok(route) = routes.route(self.from, to)
                    {
                        found.insert(to, vec![only(route)]);
                    }
                }
                continue;
            }
            for alternatives in routes.from_host(self.from).into_iter().flatten() {
                let to = alternatives[0].route.dst;
                let own = || alternatives.into_iter().map(planned).collect();
                found.entry(to).or_insert_with(own);
            }
        }
        Ok(RouteTable(found.into_values().flatten().collect()))
    }

    /// Routes of the plan before, anew to hosts to which one of them has broken.
    fn mended(
        &self,
        before: &Arc<RouteTable>,
        kind: Kind,
        hosts: &[HostId],
        lasts: impl Fn(&PlannedRoute) -> bool,
    ) -> Result<Arc<RouteTable>, RouteError> {
        let mut old = before.0.chunk_by(|a, b| a.to == b.to).peekable();
        let mut mended: Option<Vec<PlannedRoute>> = None;
        let mut taken = 0;
        for &to in hosts.iter().filter(|to| **to != self.from) {
            while old.next_if(|own| own[0].to < to).is_some() {
                // The host has gone.
                mended.get_or_insert_with(|| before.0[..taken].to_vec());
            }
            let own = old.next_if(|own| own[0].to == to);
            match own.filter(|own| own.iter().all(&lasts)) {
                Some(own) => match &mut mended {
                    Some(mended) => mended.extend_from_slice(own),
                    None => taken += own.len(),
                },
                None => {
                    let new = self.routes_to(to, kind)?;
                    if own.is_some() || !new.is_empty() {
                        let mended = mended.get_or_insert_with(|| before.0[..taken].to_vec());
                        mended.extend(new);
                    }
                }
            }
        }
        if old.next().is_some() {
            mended.get_or_insert_with(|| before.0[..taken].to_vec());
        }
        Ok(mended.map_or_else(|| before.clone(), |routes| Arc::new(RouteTable(routes))))
    }

    fn routes_to(&self, to: HostId, kind: Kind) -> Result<Vec<PlannedRoute>, RouteError> {
        if let Some(rooted) = self.rooted(kind) {
            return Ok(rooted.by_root(self.from, to).into_iter().collect());
        }
        for routes in self
            .sources()
            .filter(|routes| routes.topology().host(to).is_ok())
        {
            let routes = routes.get(kind)?;
            if !routes.algorithm().has_alternatives() {
                if let Ok(route) = routes.route(self.from, to) {
                    return Ok(vec![only(route)]);
                }
            } else if let Ok(found) = routes.alternatives(self.from, to) {
                return Ok(found.into_iter().map(planned).collect());
            }
        }
        Ok(Vec::new())
    }
}

/// The only route of its pair.
fn only(route: Route) -> PlannedRoute {
    PlannedRoute {
        to: route.dst,
        share: SHARES_WHOLE,
        ports: route.ports.into(),
    }
}

fn planned(alternative: Alternative) -> PlannedRoute {
    PlannedRoute {
        to: alternative.route.dst,
        share: alternative.share.parts(),
        ports: alternative.route.ports.into(),
    }
}
