//! The steps written out as routes, each with its certificate.

use std::collections::BTreeMap;

use super::dependencies::Dependencies;
use super::paths::Paths;
use super::planner::{Candidate, Planner};
use super::steps::{ChangeSteps, Method, Step};
use wormcast_routing::routes::Unreachable;
use wormcast_verify::deadlock::Channel;
use wormcast_wire::HostId;

impl Planner<'_> {
    /// Writes the steps out: what each changes, and why it is safe.
    pub(super) fn write(&self, states: Vec<Candidate>, drained: &[(usize, usize)]) -> ChangeSteps {
        let channels = &self.channels;
        let ports: BTreeMap<HostId, u8> = (self.change.new.hosts().iter())
            .map(|host| (host.id, host.port.get()))
            .collect();
        let last = &states.last().expect("one step at least").paths;
        let mut plan = ChangeSteps {
            steps: Vec::new(),
            unreachable: Vec::new(),
            broken: 0,
            routes: 0,
            links_crossed: 0,
        };
        for (from, to) in last.pairs() {
            let pairs = || self.host_pairs(from, to);
            let is_broken =
                self.old.get(from, to).is_some() && !self.old.survives(channels, from, to);
            plan.broken += if is_broken { pairs().count() } else { 0 };
            match last.get(from, to) {
                Some(path) => {
                    plan.routes += pairs().count();
                    plan.links_crossed += path.len() as u64 * pairs().count() as u64;
                }
                None => plan.unreachable.extend(pairs()),
            }
        }
        plan.unreachable.sort_unstable();
        for step in 0..states.len() {
            let state = &states[step];
            let before = step
                .checked_sub(1)
                .map_or(&self.old, |before| &states[before].paths);
            let mut written = Step {
                method: state.method,
                root: state.root,
                changed: Vec::new(),
                drained: Vec::new(),
                waiting: 0,
                order: self.certificate(before, &state.paths),
            };
            for (from, to) in last.pairs() {
                let path = state.paths.get(from, to);
                let same = path == before.get(from, to)
                    && (step > 0 || before.survives(channels, from, to));
                match path {
                    Some(path) if !same => {
                        let start = channels.places[from].new.expect("it has a path there");
                        written
                            .changed
                            .extend(self.host_pairs(from, to).map(|pair| {
                                let ends = (pair.src, pair.dst);
                                let turn = usize::from(pair.src.0) + usize::from(pair.dst.0);
                                let host_at = |at, cut| self.host_in_turn(at, turn + cut);
                                let port_of = |host| ports[&host];
                                Paths::route(channels, path, start, ends, host_at, port_of)
                            }));
                    }
                    None if last.get(from, to).is_some() => {
                        written.waiting += self.host_pairs(from, to).count();
                    }
                    _ => {}
                }
            }
            if state.method == Method::Drain {
                let stopped = drained
                    .iter()
                    .flat_map(|&(from, to)| self.host_pairs(from, to));
                written.drained.extend(stopped);
                written.drained.sort_unstable();
            }
            written.changed.sort_unstable();
            plan.steps.push(written);
        }
        plan.steps
            .retain(|step| !step.changed.is_empty() || !step.drained.is_empty());
        plan
    }

    /// Pairs of hosts of the new topology at two places.
    fn host_pairs(&self, from: usize, to: usize) -> impl Iterator<Item = Unreachable> + '_ {
        let hosts = move |place: usize| {
            let place = &self.channels.places[place];
            let there = place.new.is_some();
            place.hosts.iter().copied().filter(move |_| there)
        };
        hosts(from).flat_map(move |src| {
            let pair = move |dst| Unreachable { src, dst };
            hosts(to).filter(move |dst| *dst != src).map(pair)
        })
    }

    /// A host of the new topology on a switch that may re-inject; they take turns.
    fn host_in_turn(&self, at: u32, turn: usize) -> HostId {
        let new = self.change.new;
        let at = new
            .switch_index(self.channels.switch_id(at))
            .expect("a path leads there");
        let mut hosts = new.transit_at(at);
        let number = turn % hosts.len();
        new.hosts()[hosts.nth(number).expect("a cut has a host") as usize].id
    }

    fn certificate(&self, before: &Paths, after: &Paths) -> Vec<Channel> {
        let mut graph = Dependencies::new(self.channels.len());
        let free = before.add_to(&self.channels, self.change.planned, &mut graph)
            && after.add_to(&self.channels, self.change.planned, &mut graph);
        assert!(free, "each step is safe with the one before");
        let carries = |channel: &u32| self.change.planned || self.channels.hop(*channel).stays;
        graph
            .order()
            .into_iter()
            .filter(carries)
            .map(|channel| self.channel(channel))
            .collect()
    }

    fn channel(&self, channel: u32) -> Channel {
        let hop = self.channels.hop(channel);
        Channel::Link {
            from: self.channels.switch_id(hop.from),
            from_port: hop.from_port,
            to: self.channels.switch_id(hop.to),
            to_port: hop.to_port,
        }
    }
}
