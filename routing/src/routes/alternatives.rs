//! All routes of a pair of hosts, and of all pairs one after another.

use super::path::{NoPath, Path};
use super::{Route, RouteError, Routes, Unreachable};
use crate::topology::Topology;
use wormcast_wire::{HostId, SHARES_WHOLE};

/// How much of a pair's traffic takes a route. The shares of a pair add up to
/// [`Share::WHOLE`] exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u32);

impl Share {
    pub const WHOLE: Share = Share(SHARES_WHOLE);

    /// How many parts of [`Share::WHOLE`] it is.
    pub const fn parts(self) -> u32 {
        self.0
    }

    /// It as a fraction of 1.
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / f64::from(SHARES_WHOLE)
    }
}

/// One of the routes of a pair of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternative {
    pub route: Route,
    /// How much of the traffic takes it.
    pub share: Share,
    /// Whether no path between the two has fewer links, legal or not.
    pub minimal: bool,
}

/// What there is for a pair of hosts.
pub(super) struct Answer {
    pub(super) pair: Unreachable,
    pub(super) alternatives: Result<Vec<Alternative>, RouteError>,
}

impl Routes<'_> {
    /// All routes from one host to another, one or more, in the order in which they take
    /// turns.
    ///
    /// # Errors
    /// As [`Routes::route`].
    pub fn alternatives(&self, src: HostId, dst: HostId) -> Result<Vec<Alternative>, RouteError> {
        let pair = self.pair(src, dst)?;
        Tour::new(self).alternatives(pair.from, pair.to)
    }

    /// All routes from one host, destination by destination, as [`Routes::alternatives`] gives
    /// them; hosts without a route are left out.
    ///
    /// # Errors
    /// [`RouteError::Topology`] if there is no such host.
    pub fn from_host(
        &self,
        src: HostId,
    ) -> Result<impl Iterator<Item = Vec<Alternative>> + '_, RouteError> {
        let from = self.topology.host_index(src)?;
        let answers = self.answers(Some(from), None);
        Ok(answers.filter_map(|answer| answer.alternatives.ok()))
    }

    /// Answers for all pairs, or those from or to a host (by index), by source and then
    /// destination.
    pub(super) fn answers(
        &self,
        from: Option<u32>,
        to: Option<u32>,
    ) -> impl Iterator<Item = Answer> + '_ {
        let hosts = self.topology.hosts();
        let all = 0..hosts.len() as u32;
        let range = move |only: Option<u32>| only.map_or(all.clone(), |host| host..host + 1);
        let mut tour = Tour::new(self);
        range(from)
            .flat_map(move |src| range(to).map(move |dst| (src, dst)))
            .filter(|(src, dst)| src != dst)
            .map(move |(src, dst)| Answer {
                pair: Unreachable {
                    src: hosts[src as usize].id,
                    dst: hosts[dst as usize].id,
                },
                alternatives: tour.alternatives(src, dst),
            })
    }
}

/// Works out pair after pair; keeps what the next pair is likely to need again.
struct Tour<'a> {
    routes: &'a Routes<'a>,
    hops: Hops,
    /// The two switches, and the paths between them.
    known: Option<(u32, u32, Result<Vec<Path>, NoPath>)>,
}

impl<'a> Tour<'a> {
    fn new(routes: &'a Routes<'a>) -> Tour<'a> {
        Tour {
            routes,
            hops: Hops::new(),
            known: None,
        }
    }

    fn alternatives(&mut self, from: u32, to: u32) -> Result<Vec<Alternative>, RouteError> {
        let routes = self.routes;
        let pair = routes.pair_of(from, to);
        let found = match self.known.take() {
            Some((start, end, found)) if (start, end) == (pair.start, pair.end) => found,
            _ => routes.paths(pair.start, pair.end),
        };
        let (_, _, found) = self.known.insert((pair.start, pair.end, found));
        let hosts = routes.topology.hosts();
        let paths = found.as_ref().map_err(|reason| {
            let [src, dst] = [from, to].map(|host| hosts[host as usize].id);
            reason.between(src, dst)
        })?;
        let hops = self.hops.between(routes.topology, pair.start, pair.end);
        let alternatives = (0..).zip(paths).map(|(number, path)| Alternative {
            route: routes.write_out(pair, number, &path.arcs),
            share: Share(path.share),
            minimal: path.arcs.len() as u32 == hops,
        });
        Ok(alternatives.collect())
    }
}

/// Links between switches by any path, worked out for one start at a time.
pub(super) struct Hops {
    start: Option<u32>,
    hops: Vec<u32>,
    queue: Vec<u32>,
}

impl Hops {
    pub(super) fn new() -> Hops {
        Hops {
            start: None,
            hops: Vec::new(),
            queue: Vec::new(),
        }
    }

    /// Links between two switches; `u32::MAX` if they are not connected.
    pub(super) fn between(&mut self, topology: &Topology, start: u32, end: u32) -> u32 {
        if self.start != Some(start) {
            self.measure(topology, start);
        }
        self.hops[end as usize]
    }

    fn measure(&mut self, topology: &Topology, start: u32) {
        self.start = Some(start);
        self.hops.clear();
        self.hops.resize(topology.switch_count(), u32::MAX);
        self.hops[start as usize] = 0;
        self.queue.clear();
        self.queue.push(start);
        let mut next = 0;
        while let Some(&at) = self.queue.get(next) {
            next += 1;
            let farther = self.hops[at as usize] + 1;
            for arc in topology.arcs_of(at) {
                let hops = &mut self.hops[arc.to as usize];
                if *hops == u32::MAX {
                    *hops = farther;
                    self.queue.push(arc.to);
                }
            }
        }
    }
}
