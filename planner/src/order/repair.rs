//! Repairs of an order that let all worms go on: whatever turn they may take before, they may take after.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use wormcast_routing::topology::Topology;
use wormcast_routing::updown::UpDown;
use wormcast_wire::SwitchId;

use crate::order::switch_order::{Order, tops};

impl Order {
    /// Whether this order allows all turns over links of a topology that another one allows.
    ///
    /// Then routes of both are safe together: they all keep to this order. A turn is forbidden at a
    /// switch from one that comes before it to another one that does. No route goes back to the
    /// switch that it comes from.
    pub(crate) fn allows_turns_of(&self, before: &Order, topology: &Topology) -> bool {
        let earlier = |order: &Order, at: u32| -> BTreeSet<u32> {
            let rank = |at| order.rank(topology.switch_id(at));
            let arcs = topology.arcs_of(at).iter();
            arcs.map(|arc| arc.to)
                .filter(|&to| rank(to) < rank(at))
                .collect()
        };
        (0..topology.switch_count() as u32).all(|at| {
            let now = earlier(self, at);
            now.len() < 2 || now.is_subset(&earlier(before, at))
        })
    }

    /// The order in which every switch of what is up has a way up, but for one root in each part, and
    /// which allows all turns that this one allows there; none if this way finds none.
    ///
    /// A switch that has lost its last way up has another one below it, as a rule: down to a switch
    /// that it leads to, and up from there to the root. The direction of that way is reversed. Links that are only
    /// `known` keep their direction.
    pub(crate) fn repaired_keeping_turns(&self, up: &Topology, known: &Topology) -> Option<Order> {
        let mut order = self.clone();
        loop {
            let updown = order.direct(up);
            let part = tops(up, &updown).into_iter().find(|found| found.len() > 1);
            let Some(part) = part else {
                return Some(order);
            };
            let (_, _, joined) = &part[0];
            let (_, top, _) = part[1];
            order = ways_down(up, &updown, top, joined)
                .iter()
                .filter_map(|way| order.with_reversed(way, known))
                .find(|repaired| repaired.allows_turns_of(&order, up))?;
        }
    }

    /// The same, but for the links along a way, which lead up in its direction; none if links would
    /// lead up in a circle. Where links leave a choice the switch that was earlier comes first.
    fn with_reversed(&self, way: &[SwitchId], known: &Topology) -> Option<Order> {
        let reversed: BTreeSet<(SwitchId, SwitchId)> =
            way.windows(2).map(|ends| (ends[0], ends[1])).collect();
        let mut waits: BTreeMap<SwitchId, usize> = BTreeMap::new();
        let mut below: BTreeMap<SwitchId, Vec<SwitchId>> = BTreeMap::new();
        for link in known.links() {
            let is_above = self.rank(link.a) < self.rank(link.b);
            let (upper, lower) = if is_above {
                (link.a, link.b)
            } else {
                (link.b, link.a)
            };
            let (upper, lower) = if reversed.contains(&(upper, lower)) {
                (lower, upper)
            } else {
                (upper, lower)
            };
            *waits.entry(lower).or_default() += 1;
            below.entry(upper).or_default().push(lower);
        }
        let all = self.switches();
        let key = |switch| Reverse((self.rank(switch), switch));
        let is_free = |switch: &SwitchId| !waits.contains_key(switch);
        let mut free: BinaryHeap<_> = all.iter().copied().filter(is_free).map(key).collect();
        let mut order = Vec::with_capacity(all.len());
        while let Some(Reverse((_, switch))) = free.pop() {
            order.push(switch);
            for &lower in below.get(&switch).into_iter().flatten() {
                let left = waits.get_mut(&lower).expect("it was counted");
                *left -= 1;
                if *left == 0 {
                    free.push(key(lower));
                }
            }
        }
        (order.len() == all.len()).then(|| order.into_iter().collect())
    }
}

/// Ways from a switch down to those that are joined to the root, the shortest first.
fn ways_down(
    topology: &Topology,
    updown: &UpDown,
    top: u32,
    joined: &[bool],
) -> Vec<Vec<SwitchId>> {
    let mut above: BTreeMap<u32, u32> = BTreeMap::from([(top, top)]);
    let mut queue = vec![top];
    let mut ways = Vec::new();
    let mut next = 0;
    while let Some(&at) = queue.get(next) {
        next += 1;
        for (arc, index) in topology.arcs_of(at).iter().zip(topology.arc_first(at)..) {
            if updown.is_up(index) {
                continue;
            }
            if joined[arc.to as usize] {
                let mut way = vec![arc.to, at];
                while way[way.len() - 1] != top {
                    way.push(above[&way[way.len() - 1]]);
                }
                let switches = way.iter().rev();
                ways.push(switches.map(|&at| topology.switch_id(at)).collect());
            } else if let Entry::Vacant(entry) = above.entry(arc.to) {
                entry.insert(at);
                queue.push(arc.to);
            }
        }
    }
    ways
}
