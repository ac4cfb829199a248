//! The order of switches that directs all links, kept from one topology to the next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::channels::Channels;
use super::paths::is_in_transit;
use wormcast_routing::topology::Topology;
use wormcast_routing::updown::UpDown;

/// Not in the order yet.
const NONE: u32 = u32::MAX;

/// A total order of the switches: every link is up towards the lower rank. Worms that
/// keep to one order never wait for each other in a circle, whatever the topology each
/// of them was routed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    /// Rank of every switch of the two topologies, by number; all different.
    ranks: Vec<u32>,
}

impl Order {
    /// The order that directs the links of the old topology as they are, with the new
    /// switches behind: each is nearer to a switch of the old topology, or to the root
    /// its part would choose, than those after it.
    pub fn kept(channels: &Channels, old: &Topology, updown: &UpDown, new: &Topology) -> Order {
        let mut ranks = vec![NONE; channels.switches()];
        let mut rank = 0;
        for at in by_direction(old, updown) {
            ranks[channels.number(old.switch_id(at)) as usize] = rank;
            rank += 1;
        }
        let mut order = Order { ranks };
        order.append(channels, new, rank);
        order
    }

    /// The order with these ranks, all different.
    #[cfg(test)]
    pub fn from_ranks(ranks: Vec<u32>) -> Order {
        Order { ranks }
    }

    /// Whether each piece of a path, between in-transit hosts, goes up, then down.
    pub fn is_legal(&self, channels: &Channels, path: &[u32]) -> bool {
        let is_up = |channel: u32| {
            let hop = channels.hop(channel);
            self.ranks[hop.to as usize] < self.ranks[hop.from as usize]
        };
        path.split(|&entry| is_in_transit(entry))
            .flat_map(|piece| piece.windows(2))
            .all(|pair| is_up(pair[0]) || !is_up(pair[1]))
    }

    /// Directs the links of a topology.
    pub fn direct(&self, channels: &Channels, topology: &Topology) -> UpDown {
        UpDown::from_ranks(topology, &self.ranks_on(channels, topology))
    }

    /// Orders that move as few switches as will do, where several switches of a part have
    /// no way up: one of them stays the root of its part, and all switches that cannot
    /// reach it by going up move behind the others, nearest first. The first order keeps
    /// in each part the root with the most switches below it, the second the next, …
    pub fn repaired(&self, channels: &Channels, topology: &Topology) -> Vec<Order> {
        let updown = self.direct(channels, topology);
        let mut tops: Vec<Vec<Top>> = vec![Vec::new(); topology.components()];
        for at in 0..topology.switch_count() as u32 {
            let mut arcs =
                topology.arc_first(at)..topology.arc_first(at) + topology.arcs_of(at).len() as u32;
            if !arcs.any(|arc| updown.is_up(arc)) {
                let below = below(topology, &updown, at);
                let count = below.iter().filter(|is| **is).count();
                tops[topology.component_of(at) as usize].push((Reverse(count), at, below));
            }
        }
        for tops in &mut tops {
            tops.sort_by_key(|(count, at, _)| (*count, *at));
        }
        let variants = tops.iter().map(Vec::len).max().unwrap_or(0);
        (0..if variants > 1 { variants } else { 0 })
            .map(|variant| {
                let mut stays = vec![false; topology.switch_count()];
                for tops in &tops {
                    let (_, _, below) = &tops[variant.min(tops.len() - 1)];
                    for (stays, below) in stays.iter_mut().zip(below) {
                        *stays |= below;
                    }
                }
                self.with_behind(channels, topology, &stays)
            })
            .collect()
    }

    /// The order with all switches that do not stay moved behind, nearest first.
    fn with_behind(&self, channels: &Channels, topology: &Topology, stays: &[bool]) -> Order {
        let mut ranks = vec![NONE; channels.switches()];
        let mut staying: Vec<u32> = (0..topology.switch_count() as u32)
            .filter(|&at| stays[at as usize])
            .collect();
        staying.sort_by_key(|&at| self.rank(channels, topology, at));
        for (rank, &at) in (0..).zip(&staying) {
            ranks[channels.number(topology.switch_id(at)) as usize] = rank;
        }
        let mut order = Order { ranks };
        order.append(channels, topology, staying.len() as u32);
        order
    }

    /// Ranks the switches of a topology that have none, from `rank` on: breadth first
    /// from those that have one, or from the root that a part would choose; then all
    /// others, which are in no part.
    fn append(&mut self, channels: &Channels, topology: &Topology, mut rank: u32) {
        let number = |at: u32| channels.number(topology.switch_id(at)) as usize;
        let mut known: Vec<u32> = (0..topology.switch_count() as u32)
            .filter(|&at| self.ranks[number(at)] != NONE)
            .collect();
        known.sort_by_key(|&at| self.ranks[number(at)]);
        let mut has_known = vec![false; topology.components()];
        for &at in &known {
            has_known[topology.component_of(at) as usize] = true;
        }
        let own = UpDown::new(topology, None).expect("no root is asked for");
        for root in own.roots(topology) {
            let at = topology.switch_index(root).expect("its root");
            if !has_known[topology.component_of(at) as usize] {
                self.ranks[number(at)] = rank;
                rank += 1;
                known.push(at);
            }
        }
        let mut next = 0;
        while let Some(&at) = known.get(next) {
            next += 1;
            for arc in topology.arcs_of(at) {
                if self.ranks[number(arc.to)] == NONE {
                    self.ranks[number(arc.to)] = rank;
                    rank += 1;
                    known.push(arc.to);
                }
            }
        }
        for place in &mut self.ranks {
            if *place == NONE {
                *place = rank;
                rank += 1;
            }
        }
    }

    fn rank(&self, channels: &Channels, topology: &Topology, at: u32) -> u32 {
        self.ranks[channels.number(topology.switch_id(at)) as usize]
    }

    fn ranks_on(&self, channels: &Channels, topology: &Topology) -> Vec<u32> {
        (0..topology.switch_count() as u32)
            .map(|at| self.rank(channels, topology, at))
            .collect()
    }
}

/// A switch without a way up: how many are below it, which it is, which these are.
type Top = (Reverse<usize>, u32, Vec<bool>);

/// Switches so that every link leads up to an earlier one; where that leaves a choice, by
/// level, then id.
fn by_direction(topology: &Topology, updown: &UpDown) -> Vec<u32> {
    let switches = topology.switch_count() as u32;
    let mut waits = vec![0u32; switches as usize];
    for at in 0..switches {
        for (_, arc) in topology.arcs_of(at).iter().zip(topology.arc_first(at)..) {
            waits[at as usize] += u32::from(updown.is_up(arc));
        }
    }
    let level = |at: u32| {
        updown
            .level(topology, topology.switch_id(at))
            .expect("a switch of it")
    };
    let mut free: BinaryHeap<Reverse<(u32, u32)>> = (0..switches)
        .filter(|&at| waits[at as usize] == 0)
        .map(|at| Reverse((level(at), at)))
        .collect();
    let mut order = Vec::with_capacity(switches as usize);
    while let Some(Reverse((_, at))) = free.pop() {
        order.push(at);
        for (arc, index) in topology.arcs_of(at).iter().zip(topology.arc_first(at)..) {
            if !updown.is_up(index) {
                waits[arc.to as usize] -= 1;
                if waits[arc.to as usize] == 0 {
                    free.push(Reverse((level(arc.to), arc.to)));
                }
            }
        }
    }
    assert_eq!(
        order.len(),
        switches as usize,
        "directions come from an order"
    );
    order
}

/// Switches that reach this one by going up, itself included.
fn below(topology: &Topology, updown: &UpDown, top: u32) -> Vec<bool> {
    let mut below = vec![false; topology.switch_count()];
    below[top as usize] = true;
    let mut queue = vec![top];
    while let Some(at) = queue.pop() {
        for (arc, index) in topology.arcs_of(at).iter().zip(topology.arc_first(at)..) {
            if !updown.is_up(index) && !below[arc.to as usize] {
                below[arc.to as usize] = true;
                queue.push(arc.to);
            }
        }
    }
    below
}
