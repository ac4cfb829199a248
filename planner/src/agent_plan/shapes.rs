//! The structure of a group over its hosts.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use wormcast_routing::group::{CHAIN_LENGTH_DEFAULT, Scheme, plan_tree};
use wormcast_routing::routes::{Algorithm, RouteError, Routes};
use wormcast_routing::structure::{Recipe, StructureError, ordering};
use wormcast_routing::topology::Topology;
use wormcast_wire::HostId;

use crate::agent_plan::lengths::Trees;
use crate::agent_plan::wholes::Whole;
use crate::auto::{Rung, plan_ladder, typical_switches};
use crate::cost::Costs;
use crate::model::agent::AgentStructure;
use crate::model::groups::{Group, GroupScheme};
use crate::mtu::LimitedMtus;

/// What the structures of a group follow from: the part, the scheme, packets of a message, members.
type Wanted = (usize, GroupScheme, u32, Vec<HostId>);
/// What trees by the length of messages follow from: the part, the kind, packets of a message, how many members.
type Sized = (usize, Trees, u32, usize);

/// Makes structures; many groups have the same members, so they are kept for as long as it is.
pub(crate) struct Shapes<'w> {
    wholes: &'w [Whole],
    distances: Vec<OnceCell<Routes<'w>>>,
    made: BTreeMap<Wanted, Arc<[AgentStructure]>>,
    by_length: BTreeMap<Sized, Vec<(u64, Recipe)>>,
    costs: &'w Costs,
    /// Where links carry less than others.
    pub(crate) mtu_limits: LimitedMtus<'w>,
}

impl<'w> Shapes<'w> {
    pub(crate) fn new(
        wholes: &'w [Whole],
        costs: &'w Costs,
        mtu_limits: LimitedMtus<'w>,
    ) -> Shapes<'w> {
        let distances = wholes.iter().map(|_| OnceCell::new()).collect();
        Shapes {
            wholes,
            distances,
            made: BTreeMap::new(),
            by_length: BTreeMap::new(),
            costs,
            mtu_limits,
        }
    }

    /// The structures of a group over these members, which are hosts of the part `whole`, by ascending length
    /// of messages.
    pub(crate) fn of(
        &mut self,
        whole: usize,
        group: &Group,
        members: &[HostId],
    ) -> Result<Arc<[AgentStructure]>, String> {
        let key = (whole, group.scheme, group.packets, members.to_vec());
        if let Some(made) = self.made.get(&key) {
            return Ok(made.clone());
        }
        let made: Arc<[AgentStructure]> = match group.scheme {
            GroupScheme::One(scheme) => {
                let only = self.make(whole, scheme, members)?;
                let by_length = match scheme {
                    Scheme::KBinomial { k: None } => Some((Trees::KBinomial, group.packets)),
                    Scheme::Postal { lambda: None } => Some((Trees::Postal, 0)),
                    _ => None,
                };
                match by_length {
                    None => [only].into(),
                    Some((trees, packets)) => {
                        let chosen = self.by_length((whole, trees, packets, members.len()))?;
                        let structure = |(bytes_most, recipe): &(u64, Recipe)| AgentStructure {
                            bytes_most: *bytes_most,
                            recipe: recipe.clone(),
                            ..only.clone()
                        };
                        chosen.iter().map(structure).collect()
                    }
                }
            }
            GroupScheme::Auto => self.choices(whole, members)?.into(),
        };
        self.made.insert(key, made.clone());
        Ok(made)
    }

    fn choices(&self, at: usize, members: &[HostId]) -> Result<Vec<AgentStructure>, String> {
        let routes = self.distances(at).map_err(|error| error.to_string())?;
        let rungs = plan_ladder(routes, self.costs, members).map_err(|error| error.to_string())?;
        let structure = |rung: Rung| AgentStructure {
            bytes_most: rung.bytes_most,
            scheme: rung.scheme.in_list(),
            order: rung.order,
            recipe: rung.recipe,
            expected: rung.expected,
        };
        Ok(rungs.into_iter().map(structure).collect())
    }

    /// The trees for messages of every length, or the one for so many packets.
    fn by_length(&mut self, wanted: Sized) -> Result<&[(u64, Recipe)], String> {
        let (at, trees, packets, members) = wanted;
        let made = match self.by_length.entry(wanted) {
            Entry::Occupied(made) => made.into_mut(),
            Entry::Vacant(place) => {
                let switches = typical_switches(&self.wholes[at].topology);
                let made = match packets {
                    0 => trees.by_length(self.costs, switches, members),
                    packets => {
                        let payload = self.costs.packet_payload_bytes;
                        let lambda = self.costs.lambda(payload, switches);
                        let best = trees.best(members, lambda, packets.into());
                        best.map(|best| vec![(u64::MAX, best)])
                    }
                };
                place.insert(made.map_err(|error| error.to_string())?)
            }
        };
        Ok(made)
    }

    /// What is chosen by the length of messages has parameter 1.
    fn make(
        &self,
        at: usize,
        scheme: Scheme,
        members: &[HostId],
    ) -> Result<AgentStructure, String> {
        let grid = self.wholes[at].topology.grid();
        let needs_grid = || {
            let scheme = scheme.name();
            StructureError::SchemeNeedsGrid { scheme }.to_string()
        };
        let order = match scheme {
            Scheme::KBinomial { .. } if grid.is_none() => {
                let ranks = self.wholes[at].ranks();
                let mut order = members.to_vec();
                order.sort_by_key(|host| ranks[host]);
                order
            }
            Scheme::KBinomial { .. } | Scheme::UTorus | Scheme::MdTorus => {
                self.by_grid(at, members, ordering::by_dimension, needs_grid)?
            }
            Scheme::STorus | Scheme::MuTorus { .. } => {
                self.by_grid(at, members, ordering::hamiltonian, needs_grid)?
            }
            Scheme::Repeat
            | Scheme::Circuit(_)
            | Scheme::Tree { .. }
            | Scheme::Postal { .. }
            | Scheme::Switch(_) => members.to_vec(),
        };
        let recipe = match scheme {
            Scheme::Repeat => Recipe::Repeat,
            Scheme::Switch(_) => Recipe::Copied {
                fan_in: self.costs.ack_fan_in(members.len()),
            },
            Scheme::Circuit(variant) => Recipe::Circuit(variant),
            Scheme::Tree { variant, fan_out } => {
                let routes = self.distances(at).map_err(|error| error.to_string())?;
                let tree = plan_tree(routes, members, fan_out);
                Recipe::Tree(tree.map_err(|error| error.to_string())?.into(), variant)
            }
            Scheme::KBinomial { k } => {
                // An agent takes no more children than there are members.
                let most = members.len() as u32;
                Recipe::KBinomial {
                    k: k.unwrap_or(1).min(most),
                }
            }
            Scheme::Postal { lambda } => Recipe::Postal {
                lambda: lambda.unwrap_or(1),
            },
            Scheme::UTorus => Recipe::UTorus,
            Scheme::STorus => Recipe::STorus,
            Scheme::MdTorus => {
                let rings = ordering::rings(&self.wholes[at].topology, &order);
                Recipe::MdTorus {
                    rings: rings.map_err(|error| error.to_string())?,
                }
            }
            Scheme::MuTorus { r } => {
                let ring = grid.and_then(|grid| grid.radix.first());
                let ring = ring.map_or(CHAIN_LENGTH_DEFAULT, |&radix| radix.into());
                Recipe::MuTorus {
                    r: r.unwrap_or(ring),
                }
            }
        };
        Ok(AgentStructure {
            bytes_most: u64::MAX,
            scheme: scheme.in_list(),
            order,
            recipe,
            expected: Vec::new(),
        })
    }

    fn by_grid(
        &self,
        at: usize,
        members: &[HostId],
        order: impl Fn(&Topology, &[HostId]) -> Result<Vec<HostId>, StructureError>,
        needs_grid: impl Fn() -> String,
    ) -> Result<Vec<HostId>, String> {
        order(&self.wholes[at].topology, members).map_err(|error| match error {
            StructureError::NoGrid => needs_grid(),
            error => error.to_string(),
        })
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
