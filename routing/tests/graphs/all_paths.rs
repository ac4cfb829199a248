//! All paths between two switches, by trying all, and the shortest that can be cut, by
//! relaxing every step until nothing changes.

use std::collections::{BTreeMap, BTreeSet};

use wormcast_routing::routes::{Alternative, Share};
use wormcast_routing::topology::Topology;
use wormcast_wire::SwitchId;

use super::{Plain, distances, follow, neighbours, passed, pieces};

pub type Switches = Vec<SwitchId>;

/// All paths without a switch twice, of at most so many links, by trying all.
struct Walker<'a> {
    neighbours: &'a BTreeMap<SwitchId, BTreeSet<SwitchId>>,
    to_go: BTreeMap<SwitchId, u32>,
    to: SwitchId,
    found: Vec<Switches>,
}

impl Walker<'_> {
    fn walk(&mut self, path: &mut Switches, links: u32) {
        let at = *path.last().unwrap();
        if at == self.to {
            self.found.push(path.clone());
            return;
        }
        for &next in &self.neighbours[&at] {
            if !path.contains(&next) && self.to_go[&next] < links {
                path.push(next);
                self.walk(path, links - 1);
                path.pop();
            }
        }
    }
}

pub struct Oracle {
    pub plain: Plain,
    neighbours: BTreeMap<SwitchId, BTreeSet<SwitchId>>,
    occupied: BTreeSet<SwitchId>,
}

impl Oracle {
    pub fn new(topology: &Topology, root: SwitchId) -> Oracle {
        Oracle {
            plain: Plain::new(topology, root),
            neighbours: neighbours(topology),
            occupied: topology.hosts().iter().map(|host| host.switch).collect(),
        }
    }

    pub fn cuts(&self, path: &[SwitchId]) -> u32 {
        path.windows(3)
            .filter(|at| !self.plain.is_up(at[0], at[1]) && self.plain.is_up(at[1], at[2]))
            .count() as u32
    }

    pub fn paths(
        &self,
        topology: &Topology,
        from: SwitchId,
        to: SwitchId,
        links: u32,
    ) -> Vec<Switches> {
        let mut walker = Walker {
            neighbours: &self.neighbours,
            to_go: distances(topology, to),
            to,
            found: Vec::new(),
        };
        walker.walk(&mut vec![from], links);
        walker.found
    }

    /// Least (links, cuts), or least (links + cuts, 0), relaxing every step until nothing
    /// changes; a cut needs a host.
    pub fn least(&self, from: SwitchId, to: SwitchId, crossings: bool) -> (u32, u32) {
        let mut best = BTreeMap::from([((from, false), (0, 0))]);
        loop {
            let before = best.clone();
            for (&(at, went_down), &(links, cuts)) in &before {
                for &next in &self.neighbours[&at] {
                    let up = self.plain.is_up(at, next);
                    let cut = went_down && up;
                    if cut && !self.occupied.contains(&at) {
                        continue;
                    }
                    let cut = u32::from(cut);
                    let value = if crossings {
                        (links + 1 + cut, 0)
                    } else {
                        (links + 1, cuts + cut)
                    };
                    let known = best.entry((next, !up)).or_insert(value);
                    *known = value.min(*known);
                }
            }
            if best == before {
                break;
            }
        }
        [false, true]
            .into_iter()
            .filter_map(|went_down| best.get(&(to, went_down)))
            .copied()
            .min()
            .unwrap()
    }
}

pub fn check_answer(topology: &Topology, oracle: &Oracle, minimum: u32, all: &[Alternative]) {
    let parts: u32 = all.iter().map(|one| one.share.parts()).sum();
    assert_eq!(parts, Share::WHOLE.parts());
    let distinct: BTreeSet<_> = all.iter().map(|one| &one.route.ports).collect();
    assert_eq!(distinct.len(), all.len(), "no route twice");
    for Alternative { route, minimal, .. } in all {
        follow(topology, route);
        for piece in pieces(route) {
            assert!(oracle.plain.is_legal(&piece), "{route:?}");
        }
        let path = passed(route);
        assert_eq!(route.in_transit.len() as u32, oracle.cuts(&path));
        assert_eq!(*minimal, path.len() as u32 == minimum + 1, "{route:?}");
        assert!(route.switches.len() <= 64);
    }
}

/// Switches passed by each of them.
pub fn paths_of(all: &[Alternative]) -> BTreeSet<Switches> {
    all.iter().map(|one| passed(&one.route)).collect()
}

/// Parts of the whole that take any of these.
pub fn share_of<'a>(all: impl Iterator<Item = &'a Alternative>) -> u32 {
    all.map(|one| one.share.parts()).sum()
}
