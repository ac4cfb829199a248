//! The order of switches that directs all links, kept from one network to the next.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use wormcast_routing::topology::Topology;
use wormcast_routing::updown::UpDown;
use wormcast_wire::SwitchId;

/// A total order of switches: every link is up towards the switch that comes first. Worms that
/// keep to one order never wait for each other in a circle, whatever the network each of them was
/// routed on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Order {
    ranks: BTreeMap<SwitchId, u32>,
}

impl Extend<SwitchId> for Order {
    /// Puts them behind; those that it has stay where they are.
    fn extend<I: IntoIterator<Item = SwitchId>>(&mut self, switches: I) {
        switches.into_iter().for_each(|switch| self.push(switch));
    }
}

impl FromIterator<SwitchId> for Order {
    /// The first comes first.
    fn from_iter<I: IntoIterator<Item = SwitchId>>(switches: I) -> Order {
        let mut order = Order::default();
        order.extend(switches);
        order
    }
}

impl Order {
    /// The order that directs all links of a topology as they are.
    pub(crate) fn of(topology: &Topology, updown: &UpDown) -> Order {
        let switches = by_direction(topology, updown).into_iter();
        switches.map(|at| topology.switch_id(at)).collect()
    }

    /// The same with all switches of a topology that it lacks behind: breadth first from those it
    /// has, or from the root that a part would choose.
    #[must_use]
    pub(crate) fn with_all(mut self, topology: &Topology) -> Order {
        let is_known = |order: &Order, at: u32| order.ranks.contains_key(&topology.switch_id(at));
        let mut known: Vec<u32> = (0..topology.switch_count() as u32)
            .filter(|&at| is_known(&self, at))
            .collect();
        if known.len() == topology.switch_count() {
            return self;
        }
        known.sort_by_key(|&at| self.ranks[&topology.switch_id(at)]);
        let mut has_known = vec![false; topology.components()];
        for &at in &known {
            has_known[topology.component_of(at) as usize] = true;
        }
        let own = UpDown::new(topology, None).expect("no root is asked for");
        for root in own.roots(topology) {
            let at = topology.switch_index(root).expect("its root");
            if !has_known[topology.component_of(at) as usize] {
                self.push(root);
                known.push(at);
            }
        }
        let mut next = 0;
        while let Some(&at) = known.get(next) {
            next += 1;
            for arc in topology.arcs_of(at) {
                if !is_known(&self, arc.to) {
                    self.push(topology.switch_id(arc.to));
                    known.push(arc.to);
                }
            }
        }
        self
    }

    /// Switches, the first first.
    pub(crate) fn switches(&self) -> Vec<SwitchId> {
        let mut switches: Vec<SwitchId> = self.ranks.keys().copied().collect();
        switches.sort_by_key(|switch| self.ranks[switch]);
        switches
    }

    /// Place of a switch; those that are not in it come last.
    pub(crate) fn rank(&self, switch: SwitchId) -> u32 {
        self.ranks.get(&switch).copied().unwrap_or(u32::MAX)
    }

    /// Whether a switch is in it.
    pub(crate) fn has(&self, switch: SwitchId) -> bool {
        self.ranks.contains_key(&switch)
    }

    /// Directs the links of a topology, all of whose switches it has.
    pub(crate) fn direct(&self, topology: &Topology) -> UpDown {
        let switches = topology.switches().iter();
        let ranks: Vec<u32> = switches.map(|switch| self.ranks[&switch.id]).collect();
        UpDown::from_ranks(topology, &ranks)
    }

    /// Whether two orders direct all links of a topology alike.
    pub(crate) fn directs_as(&self, other: &Order, topology: &Topology) -> bool {
        let is_up = |order: &Order, a, b| order.rank(b) < order.rank(a);
        let mut links = topology.links().iter();
        links.all(|link| is_up(self, link.a, link.b) == is_up(other, link.a, link.b))
    }

    /// Orders that move as few switches as will do, where several switches of a part have no way
    /// up: one of them stays the root of its part, and all switches that cannot reach it by going
    /// up move behind the others, nearest first. The first order keeps in each part the root with
    /// the most switches below it, the second the next, …
    pub(crate) fn repaired(&self, topology: &Topology) -> Vec<Order> {
        let updown = self.direct(topology);
        let tops = tops(topology, &updown);
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
                // Switches that are not there now keep their places.
                let moves = |switch: &SwitchId| {
                    let at = topology.switch_index(*switch);
                    at.is_ok_and(|at| !stays[at as usize])
                };
                let staying = self.switches().into_iter().filter(|switch| !moves(switch));
                staying.collect::<Order>().with_all(topology)
            })
            .collect()
    }

    fn push(&mut self, switch: SwitchId) {
        let last = self.ranks.len() as u32;
        self.ranks.entry(switch).or_insert(last);
    }
}

/// A switch without a way up: how many are below it, which it is, which these are.
pub(crate) type Top = (Reverse<usize>, u32, Vec<bool>);

/// Switches without a way up, part by part; the one with the most switches below it first.
pub(crate) fn tops(topology: &Topology, updown: &UpDown) -> Vec<Vec<Top>> {
    let mut tops: Vec<Vec<Top>> = vec![Vec::new(); topology.components()];
    for at in 0..topology.switch_count() as u32 {
        let mut arcs =
            topology.arc_first(at)..topology.arc_first(at) + topology.arcs_of(at).len() as u32;
        if !arcs.any(|arc| updown.is_up(arc)) {
            let below = below(topology, updown, at);
            let count = below.iter().filter(|is| **is).count();
            tops[topology.component_of(at) as usize].push((Reverse(count), at, below));
        }
    }
    for tops in &mut tops {
        tops.sort_by_key(|(count, at, _)| (*count, *at));
    }
    tops
}

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
