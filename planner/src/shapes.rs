//! Routes between hosts, and the structure of a group over its hosts.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use wormcast_routing::group::plan_tree;
use wormcast_routing::routes::{Algorithm, Alternative, RouteError, Routes, Setting};
use wormcast_routing::structure::{k_binomial, ordering};
use wormcast_routing::topology::Topology;
use wormcast_routing::updown::UpDown;
use wormcast_wire::{HostId, Scheme};

use crate::groups::{Group, Parameters};
use crate::parts::Part;
use crate::state::{PlannedRoute, RouteTable};

/// Unicast routes from a host, and routes along the spanning tree.
pub(crate) type HostRoutes = (Arc<RouteTable>, Arc<RouteTable>);

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
    /// pairs over everything known.
    pub(crate) fn new(whole: Part, up: &[&Part], setting: &Setting) -> (Whole, Option<RouteError>) {
        let found = routes_of_hosts(&whole, up, setting);
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

    fn ranks(&self) -> &BTreeMap<HostId, usize> {
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

fn routes_of_hosts(
    whole: &Part,
    up: &[&Part],
    setting: &Setting,
) -> Result<BTreeMap<HostId, HostRoutes>, RouteError> {
    let everywhere = match up {
        [part] if part.topology == whole.topology => None,
        _ => Some(whole.routes(setting)?),
    };
    let parts = up.iter().map(|part| part.routes(setting));
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    let hosts = whole.topology.hosts().iter().map(|host| host.id);
    let table = |from, kind: usize| {
        let is_here = |routes: &&[Routes<'_>; 2]| routes[kind].topology().host(from).is_ok();
        let own = parts.iter().find(is_here);
        let both = [own, everywhere.as_ref()];
        let found = both.map(|routes| routes.map(|routes| &routes[kind]));
        Arc::new(table(from, found.into_iter().flatten()))
    };
    Ok(hosts
        .map(|host| (host, (table(host, 0), table(host, 1))))
        .collect())
}

/// Routes from a host: to each other one, the first of these that lead there.
fn table<'r, 't: 'r>(from: HostId, all: impl Iterator<Item = &'r Routes<'t>>) -> RouteTable {
    let mut found: BTreeMap<HostId, Vec<Alternative>> = BTreeMap::new();
    for routes in all {
        let own = routes.from_host(from).into_iter().flatten();
        for alternatives in own {
            let to = alternatives[0].route.dst;
            found.entry(to).or_insert(alternatives);
        }
    }
    let planned = found
        .into_values()
        .flatten()
        .map(|alternative| PlannedRoute {
            to: alternative.route.dst,
            share: alternative.share.parts(),
            ports: alternative.route.ports.into_boxed_slice(),
        });
    RouteTable(planned.collect())
}

/// The structure of a group over its hosts.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    pub(crate) order: Vec<HostId>,
    pub(crate) k: u32,
    pub(crate) tree_edges: Vec<(HostId, HostId)>,
}

/// Makes shapes; many groups have the same members, so they are kept for as long as it is.
pub(crate) struct Shapes<'w> {
    wholes: &'w [Whole],
    distances: Vec<OnceCell<Routes<'w>>>,
    made: BTreeMap<(usize, Scheme, Parameters, Vec<HostId>), Arc<Shape>>,
}

impl<'w> Shapes<'w> {
    pub(crate) fn new(wholes: &'w [Whole]) -> Shapes<'w> {
        let distances = wholes.iter().map(|_| OnceCell::new()).collect();
        Shapes {
            wholes,
            distances,
            made: BTreeMap::new(),
        }
    }

    /// Order and edges of a group over these members, which are hosts of the part `whole`.
    pub(crate) fn of(
        &mut self,
        whole: usize,
        group: &Group,
        members: &[HostId],
    ) -> Result<Arc<Shape>, String> {
        let key = (whole, group.scheme, group.parameters, members.to_vec());
        if let Some(made) = self.made.get(&key) {
            return Ok(made.clone());
        }
        let made = Arc::new(self.make(whole, group, members)?);
        self.made.insert(key, made.clone());
        Ok(made)
    }

    fn make(&self, at: usize, group: &Group, members: &[HostId]) -> Result<Shape, String> {
        let mut shape = Shape {
            order: members.to_vec(),
            ..Shape::default()
        };
        let Parameters {
            k,
            fan_out,
            packets,
        } = group.parameters;
        match group.scheme {
            Scheme::KBinomial => {
                let ranks = self.wholes[at].ranks();
                shape.order.sort_by_key(|host| ranks[host]);
                shape.k = if k == 0 && packets > 0 && members.len() > 1 {
                    k_binomial::optimal_k(members.len(), narrow("packets", packets)?)
                } else {
                    narrow("k", k)?
                };
            }
            Scheme::Tree => {
                let routes = self.distances(at).map_err(|error| error.to_string())?;
                let tree = plan_tree(routes, members, narrow("fan_out", fan_out)?);
                shape.tree_edges = tree.map_err(|error| error.to_string())?.edges().collect();
            }
            Scheme::Repeat | Scheme::Circuit | Scheme::Switch => {}
        }
        Ok(shape)
    }

    fn distances(&self, whole: usize) -> Result<&Routes<'w>, RouteError> {
        let kept = &self.distances[whole];
        if let Some(routes) = kept.get() {
            return Ok(routes);
        }
        let routes = Routes::plan(&self.wholes[whole].topology, Algorithm::Osud, None)?;
        Ok(kept.get_or_init(|| routes))
    }
}

fn narrow(name: &str, value: u64) -> Result<u32, String> {
    value
        .try_into()
        .map_err(|_| format!("{name} {value} is outside 1 to {}", u32::MAX))
}
