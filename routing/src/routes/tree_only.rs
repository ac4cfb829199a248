//! Paths over links of the spanning tree alone (WORM §3, scheme A): up to the lowest
//! switch above both, then down.

use super::{NextHops, Phase};
use crate::topology::Topology;
use crate::updown::UpDown;

pub(super) fn plan(topology: &Topology, updown: &UpDown) -> NextHops {
    let switches = topology.switch_count();
    let mut tables = NextHops::new(switches);
    let mut seen = vec![u32::MAX; switches];
    for dst in 0..switches as u32 {
        // Down along the branch that holds the destination …
        let mut at = dst;
        seen[dst as usize] = dst;
        while let Some(arc) = updown.parent_arc(at) {
            let arc = topology.arcs()[arc as usize];
            let slot = (arc.reverse - topology.arc_first(arc.to)) as u8;
            for phase in [Phase::Up, Phase::Down] {
                tables.set(dst, arc.to, phase, slot);
            }
            seen[arc.to as usize] = dst;
            at = arc.to;
        }
        // … and up everywhere else.
        for &at in updown.breadth_first() {
            let same_part = topology.component_of(at) == topology.component_of(dst);
            let up = updown.parent_arc(at);
            if let Some(arc) = up.filter(|_| same_part && seen[at as usize] != dst) {
                tables.set(dst, at, Phase::Up, (arc - topology.arc_first(at)) as u8);
            }
        }
    }
    tables
}
