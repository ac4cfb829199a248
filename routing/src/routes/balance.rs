//! A choice of roots and paths that lowers the load of the busiest channel.
//!
//! up\*/down\* crowds the links near the root. A root in the middle draws yet more traffic
//! past it: in irregular networks the eighth of the switches that is most remote makes
//! better roots than the most central eighth, by 10 to 20 % on average, with paths no
//! longer on the whole. So candidates are the most remote switches; each is tried by
//! planning all routes, and the best few are refined until nothing moves ([`refine`]).
//! The plain root stays among these, so that the choice is never worse than the plain
//! one. Parts of a split fabric choose independently, and are tried side by side.

use std::cmp::Reverse;

use serde_json::{Value, json};

use super::loads::{ChannelLoads, is_legal};
use super::ranks::Ranks;
use super::refine::refine;
use super::{Algorithm, Kept, RouteError, Routes};
use crate::topology::Topology;
use crate::topology::remoteness::Remoteness;
use crate::updown::UpDown;
use wormcast_wire::SwitchId;

/// Most sweeps that refine one finalist; most of what can be gained comes with the first.
const SWEEPS_MAX: usize = 16;
/// Pairs of switches, summed over all candidates, for which routes are planned: all roots
/// of 256 switches, 16 of 1,024. It bounds the time to some seconds.
const TRIED_PAIRS_MAX: usize = 1 << 24;
/// Fewest candidates, however large the network.
const CANDIDATES_MIN: usize = 2;
/// Most candidates that are refined, the plain root besides.
const FINALISTS_MAX: usize = 4;
/// Pairs of switches, summed over all finalists, that a sweep refines.
const FINALIST_PAIRS_MAX: usize = 1 << 22;
/// Pairs of switches, summed over all sweeps, that are refined for one finalist.
const REFINED_PAIRS_MAX: usize = 1 << 24;

/// The plain routes and the balanced ones.
#[derive(Clone, Debug)]
pub struct Balance<'t> {
    /// As [`Routes::plan`] gives them.
    pub plain: Routes<'t>,
    pub chosen: Routes<'t>,
    /// How many roots were tried in the part where most were.
    pub candidates: usize,
}

/// One root for each part, and what came of it there.
struct Trial<'t> {
    routes: Routes<'t>,
    roots: Vec<u32>,
    /// For each part: largest load, total load.
    loads: Vec<(u32, u64)>,
}

impl<'t> Balance<'t> {
    /// Plans routes with the plain root, or `root` if one is given, and looks for better
    /// ones. A given root stays; then only paths are chosen anew. For `tree-only` only
    /// the root can be chosen.
    ///
    /// # Errors
    /// As [`Routes::plan`], and [`RouteError::NoBalance`] for algorithms other than
    /// `osud` and `tree-only`.
    pub fn find(
        topology: &'t Topology,
        algorithm: Algorithm,
        root: Option<SwitchId>,
    ) -> Result<Balance<'t>, RouteError> {
        if !is_legal(algorithm) {
            return Err(RouteError::NoBalance { algorithm });
        }
        let plain = Routes::plan(topology, algorithm, root)?;
        let roots = plain.updown().root_indices();
        let candidates = candidates(topology, roots, root.is_some());
        let most = candidates.iter().map(Vec::len).max().unwrap_or(0);
        // For each part: (largest load, total load, place among the candidates), to sort.
        let mut results: Vec<Vec<(u32, u64, usize)>> = vec![Vec::new(); candidates.len()];
        for place in 0..most {
            let trial = Trial::plan(&plain, take(&candidates, |_| place))?;
            for (part, results) in results.iter_mut().enumerate() {
                if place < candidates[part].len() {
                    let (largest, total) = trial.loads[part];
                    results.push((largest, total, place));
                }
            }
        }
        for results in &mut results {
            results.sort_unstable();
        }
        let pairs = pairs(topology);
        let finalists = (FINALIST_PAIRS_MAX / pairs)
            .clamp(1, FINALISTS_MAX)
            .min(most);
        let mut best = Trial::plan(&plain, roots.to_vec())?.refined();
        let (mut best_roots, mut best_loads) = (best.roots.clone(), best.loads.clone());
        for rank in 0..finalists {
            let roots = take(&candidates, |part| {
                results[part].get(rank).map_or(0, |&(_, _, place)| place)
            });
            let trial = Trial::plan(&plain, roots)?.refined();
            for part in 0..best_roots.len() {
                if trial.loads[part] < best_loads[part] {
                    best_loads[part] = trial.loads[part];
                    best_roots[part] = trial.roots[part];
                }
            }
            if trial.roots == best_roots {
                best = trial;
            }
        }
        if best.roots != best_roots {
            best = Trial::plan(&plain, best_roots)?.refined();
        }
        Ok(Balance {
            plain,
            chosen: best.routes,
            candidates: most,
        })
    }

    /// Routes that keep to directions that are there already, with paths chosen as
    /// [`Balance::find`] chooses them.
    ///
    /// # Errors
    /// As [`Balance::find`].
    pub fn along(
        topology: &'t Topology,
        algorithm: Algorithm,
        updown: UpDown,
    ) -> Result<Routes<'t>, RouteError> {
        if !is_legal(algorithm) {
            return Err(RouteError::NoBalance { algorithm });
        }
        let roots = updown.root_indices().to_vec();
        let routes = Routes::plan_along(topology, algorithm, updown)?;
        let loads = Vec::new();
        let trial = Trial {
            routes,
            roots,
            loads,
        };
        Ok(trial.refined().routes)
    }

    /// `{"algorithm", "candidates", "gain", "plain": FIGURES, "chosen": FIGURES, "links":
    /// [{"a", "a_port", "b", "b_port", "plain": [a to b, b to a], "chosen": […]}]}`, where
    /// FIGURES are "root", "roots", "largest", "mean", "p99", "gini", "total", "idle" and
    /// "channels". Loads are in pairs of hosts; "gain" is the share by which the largest
    /// load is lower.
    pub fn to_json(&self) -> String {
        let topology = self.plain.topology();
        let loads = |routes: &Routes<'_>| routes.channel_loads().expect("paths are legal");
        let (plain, chosen) = (loads(&self.plain), loads(&self.chosen));
        let gain = match plain.largest() {
            0 => 0.0,
            largest => 1.0 - f64::from(chosen.largest()) / f64::from(largest),
        };
        let head = json!({
            "algorithm": self.plain.algorithm().name(),
            "candidates": self.candidates,
            "gain": gain,
            "plain": figures(&self.plain, &plain),
            "chosen": figures(&self.chosen, &chosen),
        });
        let links: Vec<String> = plain
            .links(topology)
            .iter()
            .zip(chosen.links(topology))
            .map(|(plain, chosen)| {
                let link = plain.link;
                json!({"a": link.a.0, "a_port": link.a_port.get(),
                       "b": link.b.0, "b_port": link.b_port.get(),
                       "plain": [plain.a_to_b, plain.b_to_a],
                       "chosen": [chosen.a_to_b, chosen.b_to_a]})
                .to_string()
            })
            .collect();
        let head = head.to_string();
        let head = head.strip_suffix('}').expect("an object");
        if links.is_empty() {
            format!("{head},\n \"links\":[]}}\n")
        } else {
            format!("{head},\n \"links\":[\n  {}]}}\n", links.join(",\n  "))
        }
    }
}

fn figures(routes: &Routes<'_>, loads: &ChannelLoads) -> Value {
    let topology = routes.topology();
    let roots = routes.updown().roots(topology);
    json!({
        "root": routes.updown().root(topology).0,
        "roots": roots.iter().map(|root| root.0).collect::<Vec<u16>>(),
        "largest": loads.largest(),
        "mean": loads.mean(),
        "p99": loads.percentile(99),
        "gini": loads.gini(),
        "total": loads.total(),
        "idle": loads.idle(),
        "channels": 2 * topology.links().len(),
    })
}

impl<'t> Trial<'t> {
    /// Plans as the plain routes were, with other roots.
    fn plan(plain: &Routes<'t>, roots: Vec<u32>) -> Result<Trial<'t>, RouteError> {
        let topology = plain.topology();
        let updown = plain.updown().with_roots(topology, roots.clone());
        let routes = Routes::plan_along(topology, plain.algorithm(), updown)?;
        let loads = routes.channel_loads()?.by_part(topology);
        Ok(Trial {
            routes,
            roots,
            loads,
        })
    }

    /// Refined until nothing moves, or as long as the bounds allow.
    fn refined(mut self) -> Trial<'t> {
        let topology = self.routes.topology();
        let ranks = Ranks::new(topology, self.routes.updown());
        if let (Kept::NextHops(tables), Algorithm::Osud) =
            (&mut self.routes.kept, self.routes.algorithm)
        {
            let sweeps = (REFINED_PAIRS_MAX / pairs(topology)).clamp(1, SWEEPS_MAX);
            refine(&ranks, tables, sweeps);
            self.loads = ChannelLoads::of(topology, &self.routes.updown, tables).by_part(topology);
        }
        self
    }
}

fn pairs(topology: &Topology) -> usize {
    topology.switch_count().pow(2).max(1)
}

/// Roots to try in each part: the plain one, then the others by falling sum of distances,
/// those with more links first, then by rising id.
fn candidates(topology: &Topology, plain: &[u32], keep: bool) -> Vec<Vec<u32>> {
    let mut parts: Vec<Vec<u32>> = plain.iter().map(|&root| vec![root]).collect();
    if keep {
        return parts;
    }
    let remoteness = Remoteness::of(topology);
    let mut order: Vec<u32> = (0..topology.switch_count() as u32).collect();
    order.sort_by_key(|&switch| {
        let links = topology.arcs_of(switch).len();
        (
            Reverse(remoteness.sum[switch as usize]),
            Reverse(links),
            switch,
        )
    });
    let most = (TRIED_PAIRS_MAX / pairs(topology)).max(CANDIDATES_MIN);
    for switch in order {
        let part = topology.component_of(switch) as usize;
        if parts[part].len() < most && parts[part][0] != switch {
            parts[part].push(switch);
        }
    }
    parts
}

/// One root for each part; the plain one where there are not so many.
fn take(candidates: &[Vec<u32>], place: impl Fn(usize) -> usize) -> Vec<u32> {
    let root = |(part, roots): (usize, &Vec<u32>)| *roots.get(place(part)).unwrap_or(&roots[0]);
    candidates.iter().enumerate().map(root).collect()
}
