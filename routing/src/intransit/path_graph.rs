//! All paths of one length between two switches: counted, and drawn without bias.
//!
//! The states on such paths form a graph without cycles. The number of paths from each
//! state to the end is the sum over its ways on, so that paths can be numbered, and the
//! path with any number be found, without writing them all down. A number drawn evenly
//! is a path drawn evenly. (Numbers past 2^128 are cut off; from there on the draw is
//! spread, not even.)

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use rand_core::RngCore;

use super::Lengths;
use super::search::Measure;
use crate::topology::Topology;
use crate::updown::Phase;
use crate::updown::UpDown;

/// All paths between two switches of the shortest length plus some.
pub(crate) struct PathGraph {
    nodes: Vec<Node>,
    /// Arc, and the node it leads to.
    steps: Vec<(u32, u32)>,
}

#[derive(Clone, Copy)]
struct Node {
    first_step: u32,
    last_step: u32,
    /// How many paths lead on from here to the end.
    paths: u128,
}

/// Switch, whether the worm has gone down, and how many links more than the shortest are
/// still to be spent.
type State = (u32, bool, u32);

impl PathGraph {
    /// The paths that are `longer` than the shortest; none if there is no way at all.
    pub(crate) fn new(
        topology: &Topology,
        updown: &UpDown,
        lengths: &Lengths,
        (from, to): (u32, u32),
        longer: u32,
    ) -> PathGraph {
        let mut graph = PathGraph {
            nodes: Vec::new(),
            steps: Vec::new(),
        };
        if lengths.left(to, from, Phase::Up).is_none() {
            return graph;
        }
        let mut states: Vec<State> = vec![(from, false, longer)];
        let mut known: BTreeMap<State, u32> = BTreeMap::from([(states[0], 0)]);
        let mut next = 0;
        while let Some(&state) = states.get(next) {
            next += 1;
            let first_step = graph.steps.len() as u32;
            visit_steps(topology, updown, lengths, to, state, |arc, state| {
                let node = *known.entry(state).or_insert_with(|| {
                    states.push(state);
                    states.len() as u32 - 1
                });
                graph.steps.push((arc, node));
            });
            graph.nodes.push(Node {
                first_step,
                last_step: graph.steps.len() as u32,
                paths: u128::from(state.0 == to && state.2 == 0),
            });
        }
        // Steps lead nearer to the end, but not always to later nodes: by crossings, a
        // state may be reached over two links and a cut, or three links.
        let mut nearest_first: Vec<u32> = (0..states.len() as u32).collect();
        nearest_first.sort_by_key(|&node| {
            let (at, went_down, spare) = states[node as usize];
            lengths
                .left(to, at, phase(went_down))
                .map(|left| left + spare)
        });
        graph.count_paths(&nearest_first);
        graph
    }

    fn count_paths(&mut self, nearest_first: &[u32]) {
        for &index in nearest_first {
            let index = index as usize;
            let node = self.nodes[index];
            let steps = &self.steps[node.first_step as usize..node.last_step as usize];
            self.nodes[index].paths = steps.iter().fold(node.paths, |sum, &(_, to)| {
                sum.saturating_add(self.nodes[to as usize].paths)
            });
        }
    }

    /// How many paths there are.
    pub(crate) fn count(&self) -> u128 {
        self.nodes.first().map_or(0, |node| node.paths)
    }

    /// The path with this number, below [`PathGraph::count`]: its arcs.
    pub(crate) fn path(&self, mut number: u128) -> Vec<u32> {
        let mut arcs = Vec::new();
        let mut node = self.nodes[0];
        while node.first_step != node.last_step {
            let steps = &self.steps[node.first_step as usize..node.last_step as usize];
            for &(arc, to) in steps {
                let to = self.nodes[to as usize];
                if number < to.paths {
                    arcs.push(arc);
                    node = to;
                    break;
                }
                number -= to.paths;
            }
        }
        arcs
    }

    /// At most so many different paths that will do: all of them where there are no more,
    /// else drawn evenly.
    pub(crate) fn draw(
        &self,
        most: usize,
        rng: &mut ChaCha8Rng,
        mut will_do: impl FnMut(&[u32]) -> bool,
    ) -> Vec<Vec<u32>> {
        let count = self.count();
        if count <= most as u128 {
            let mut all: Vec<Vec<u32>> = (0..count).map(|number| self.path(number)).collect();
            all.retain(|arcs| will_do(arcs));
            return all;
        }
        let mut drawn: Vec<u128> = Vec::with_capacity(most);
        let mut paths = Vec::with_capacity(most);
        // Bounded, for paths of which few will do.
        for _ in 0..TRIES_MAX {
            let number = below(count, rng);
            if drawn.contains(&number) {
                continue;
            }
            drawn.push(number);
            let arcs = self.path(number);
            if will_do(&arcs) {
                paths.push(arcs);
                if paths.len() == most {
                    break;
                }
            }
        }
        paths
    }
}

/// Gives up drawing after so many tries; with eleven paths to choose ten from, about 30
/// do.
const TRIES_MAX: usize = 300;

fn phase(went_down: bool) -> Phase {
    if went_down { Phase::Down } else { Phase::Up }
}

fn visit_steps(
    topology: &Topology,
    updown: &UpDown,
    lengths: &Lengths,
    to: u32,
    (at, went_down, spare): State,
    mut visit: impl FnMut(u32, State),
) {
    if at == to {
        return;
    }
    let left = lengths.left(to, at, phase(went_down));
    let left = left.expect("on a path") + spare;
    let can_cut = topology.can_cut(at);
    for (index, arc) in (topology.arc_first(at)..).zip(topology.arcs_of(at)) {
        let up = updown.is_up(index);
        let cut = went_down && up;
        if cut && !can_cut {
            continue;
        }
        let cost = match lengths.measure() {
            Measure::Links => 1,
            Measure::Crossings => 1 + u32::from(cut),
        };
        let Some(beyond) = lengths.left(to, arc.to, phase(!up)) else {
            continue;
        };
        if let Some(spare) = left.checked_sub(cost + beyond) {
            visit(index, (arc.to, !up, spare));
        }
    }
}

/// Uniform below `bound` (by rejection), which is more than 0.
fn below(bound: u128, rng: &mut ChaCha8Rng) -> u128 {
    let unfair = u128::MAX - u128::MAX % bound;
    loop {
        let drawn = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
        if drawn < unfair {
            return drawn % bound;
        }
    }
}
