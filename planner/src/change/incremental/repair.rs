//! What hangs on a link that is lost or back: found, measured and routed anew, for one
//! destination.

use std::cmp::Reverse;

use super::{FAR, Incremental, PHASES, State, Touched, state};
use wormcast_routing::routes::{NO_SLOT, Phase};

impl Incremental<'_> {
    pub(super) fn mark(&mut self, at: State) {
        if !self.work.is_stale[at as usize] {
            self.work.is_stale[at as usize] = true;
            self.work.stale.push(at);
        }
    }

    /// From the states whose way is gone, nearest first: those with another way as short
    /// are stale; those without lose their length too, and what sent to them its way.
    pub(super) fn find_orphans(&mut self, dst: u32) {
        while let Some(Reverse((_, at))) = self.work.queue.pop() {
            if self.work.is_stale[at as usize] {
                continue;
            }
            self.mark(at);
            let first = self.topology.arc_first(at / 2);
            let mut arcs = first..first + self.topology.arcs_of(at / 2).len() as u32;
            let as_short = arcs.any(|arc| {
                self.leads_on(dst, at, arc)
                    && self
                        .after(at, arc)
                        .is_some_and(|next| !self.work.is_orphan[next as usize])
            });
            if !as_short {
                self.work.is_orphan[at as usize] = true;
                let mut queue = std::mem::take(&mut self.work.queue);
                self.before(at, |from, arc| {
                    if self.next_arc(dst, from) == Some(arc) {
                        queue.push(Reverse((self.length(dst, from), from)));
                    }
                });
                self.work.queue = queue;
            }
        }
    }

    /// A state has a way of this length, if that is shorter than it had.
    pub(super) fn shorten(&mut self, dst: u32, at: State, length: u16) {
        if length < self.length(dst, at) {
            self.work.queue.push(Reverse((length, at)));
        }
    }

    /// Hands shorter lengths on to whatever they make shorter.
    pub(super) fn spread(&mut self, dst: u32) {
        while let Some(Reverse((length, at))) = self.work.queue.pop() {
            if length >= self.length(dst, at) {
                continue;
            }
            self.set_length(dst, at, length);
            self.mark(at);
            let mut queue = std::mem::take(&mut self.work.queue);
            self.before(at, |from, _| {
                if length + 1 < self.length(dst, from) {
                    queue.push(Reverse((length + 1, from)));
                }
            });
            self.work.queue = queue;
        }
    }

    /// New lengths for orphans, new ways for all that is stale; loads follow.
    pub(super) fn replan(&mut self, dst: u32, touched: &mut Touched) {
        self.find_sources(dst);
        let sources = std::mem::take(&mut self.work.sources);
        let stale = std::mem::take(&mut self.work.stale);
        let had_way: Vec<bool> = sources
            .iter()
            .map(|&from| self.tables.get(dst, from, Phase::Up) != NO_SLOT)
            .collect();
        for (&from, &had_way) in sources.iter().zip(&had_way) {
            if had_way {
                self.count_old(dst, from);
            }
        }
        self.measure_orphans(dst, &stale);
        let mut entries = Vec::new();
        for &at in &stale {
            let phase = PHASES[(at & 1) as usize];
            let slot = self.choose(dst, at);
            if slot != self.tables.get(dst, at / 2, phase) {
                self.tables.set(dst, at / 2, phase, slot);
                entries.push(at / 2);
            }
        }
        for &at in &stale {
            self.work.is_stale[at as usize] = false;
            self.work.is_orphan[at as usize] = false;
        }
        entries.sort_unstable();
        entries.dedup();
        let id = |at| self.topology.switch_id(at);
        touched
            .entries
            .extend(entries.into_iter().map(|at| (id(dst), id(at))));
        for (&from, &had_way) in sources.iter().zip(&had_way) {
            let has_way = self.length(dst, state(from, Phase::Up)) != FAR;
            if has_way != had_way && self.hosts[from as usize] * self.hosts[dst as usize] > 0 {
                let list = if has_way {
                    &mut touched.found
                } else {
                    &mut touched.lost
                };
                list.push((self.topology.switch_id(from), self.topology.switch_id(dst)));
            }
            self.count(dst, from, true);
        }
        self.work.sources = sources;
        self.work.sources.clear();
        self.work.stale = stale;
        self.work.stale.clear();
    }

    /// Takes the traffic of a switch off its way, whatever the lengths are by now.
    pub(super) fn count_old(&mut self, dst: u32, from: u32) {
        let pairs = self.hosts[from as usize] * self.hosts[dst as usize];
        let mut at = state(from, Phase::Up);
        while at / 2 != dst {
            let arc = self.next_arc(dst, at).expect("it had an arc") as usize;
            self.load[arc] -= pairs;
            at = 2 * self.topology.arcs()[arc].to + u32::from(at & 1 == 1 || !self.up[arc]);
        }
    }

    /// Switches whose way to the destination leads over something stale, or who had none.
    pub(super) fn find_sources(&mut self, dst: u32) {
        let mut work = std::mem::take(&mut self.work);
        work.stack.extend_from_slice(&work.stale);
        while let Some(at) = work.stack.pop() {
            if std::mem::replace(&mut work.seen[at as usize], true) {
                continue;
            }
            work.all_seen.push(at);
            if at & 1 == 0 {
                work.sources.push(at / 2);
            }
            self.before(at, |from, arc| {
                if self.next_arc(dst, from) == Some(arc) {
                    work.stack.push(from);
                }
            });
        }
        for at in work.all_seen.drain(..) {
            work.seen[at as usize] = false;
        }
        self.work = work;
    }

    /// Lengths of orphans, from those next to what has a length outward.
    pub(super) fn measure_orphans(&mut self, dst: u32, stale: &[State]) {
        for &at in stale {
            if self.work.is_orphan[at as usize] {
                self.set_length(dst, at, FAR);
            }
        }
        for &at in stale {
            if self.work.is_orphan[at as usize] {
                let first = self.topology.arc_first(at / 2);
                let length = (first..first + self.topology.arcs_of(at / 2).len() as u32)
                    .filter_map(|arc| self.after(at, arc))
                    .map(|next| self.length(dst, next).saturating_add(1))
                    .min();
                if let Some(length) = length.filter(|length| *length != FAR) {
                    self.work.queue.push(Reverse((length, at)));
                }
            }
        }
        while let Some(Reverse((length, at))) = self.work.queue.pop() {
            if length >= self.length(dst, at) {
                continue;
            }
            self.set_length(dst, at, length);
            let mut queue = std::mem::take(&mut self.work.queue);
            self.before(at, |from, _| {
                if self.work.is_orphan[from as usize] && length + 1 < self.length(dst, from) {
                    queue.push(Reverse((length + 1, from)));
                }
            });
            self.work.queue = queue;
        }
    }
}
