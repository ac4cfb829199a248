//! Dependencies between channels that are kept free of cycles while they are added.

/// A directed graph without cycles, with a topological order that is kept up to date
/// (Pearce and Kelly, "A dynamic topological sort algorithm for directed acyclic graphs",
/// JEA 11, 2006): adding what agrees with the order costs nothing.
#[derive(Clone, Debug)]
pub(crate) struct Dependencies {
    next: Vec<Vec<u32>>,
    before: Vec<Vec<u32>>,
    /// Place of each channel in the order.
    place: Vec<u32>,
    /// Channels seen by a search, with the number of the search.
    seen: Vec<u32>,
    searches: u32,
    forward: Vec<u32>,
    backward: Vec<u32>,
}

impl Dependencies {
    pub fn new(channels: usize) -> Dependencies {
        Dependencies {
            next: vec![Vec::new(); channels],
            before: vec![Vec::new(); channels],
            place: (0..channels as u32).collect(),
            seen: vec![0; channels],
            searches: 0,
            forward: Vec::new(),
            backward: Vec::new(),
        }
    }

    /// Whether this dependency is there.
    pub fn contains(&self, held: u32, needed: u32) -> bool {
        self.next[held as usize].contains(&needed)
    }

    /// Adds a dependency; false, and nothing is changed, if it would close a cycle.
    pub fn add(&mut self, held: u32, needed: u32) -> bool {
        if held == needed {
            return false;
        }
        if self.contains(held, needed) {
            return true;
        }
        if self.place[needed as usize] < self.place[held as usize] && !self.reorder(held, needed) {
            return false;
        }
        self.next[held as usize].push(needed);
        self.before[needed as usize].push(held);
        true
    }

    /// Whether a dependency could be added.
    pub fn admits(&mut self, held: u32, needed: u32) -> bool {
        held != needed
            && (self.place[held as usize] < self.place[needed as usize]
                || self.contains(held, needed)
                || self.search_forward(held, needed))
    }

    /// Adds all dependencies; none if one would close a cycle, which is returned by its
    /// place in the list.
    pub fn add_all(&mut self, turns: &[(u32, u32)]) -> Result<(), usize> {
        let mut added = Vec::with_capacity(turns.len());
        for (number, &(held, needed)) in turns.iter().enumerate() {
            if self.contains(held, needed) {
                continue;
            }
            if !self.add(held, needed) {
                for &(held, needed) in added.iter().rev() {
                    self.remove(held, needed);
                }
                return Err(number);
            }
            added.push((held, needed));
        }
        Ok(())
    }

    /// All channels so that every dependency leads onward.
    pub fn order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.place.len() as u32).collect();
        order.sort_unstable_by_key(|&channel| self.place[channel as usize]);
        order
    }

    fn remove(&mut self, held: u32, needed: u32) {
        self.next[held as usize].retain(|known| *known != needed);
        self.before[needed as usize].retain(|known| *known != held);
    }

    /// Moves what follows `needed` behind what comes before `held`; false if `held` is
    /// among what follows.
    fn reorder(&mut self, held: u32, needed: u32) -> bool {
        if !self.search_forward(held, needed) {
            return false;
        }
        self.search_backward(held, needed);
        let place = &mut self.place;
        self.forward
            .sort_unstable_by_key(|&channel| place[channel as usize]);
        self.backward
            .sort_unstable_by_key(|&channel| place[channel as usize]);
        let moved: Vec<u32> = self.backward.iter().chain(&self.forward).copied().collect();
        let mut places: Vec<u32> = moved
            .iter()
            .map(|&channel| place[channel as usize])
            .collect();
        places.sort_unstable();
        for (channel, to) in moved.into_iter().zip(places) {
            place[channel as usize] = to;
        }
        true
    }

    /// Collects what follows `needed` up to the place of `held`; false if that is `held`.
    fn search_forward(&mut self, held: u32, needed: u32) -> bool {
        let last = self.place[held as usize];
        self.searches += 1;
        self.forward.clear();
        self.forward.push(needed);
        self.seen[needed as usize] = self.searches;
        let mut done = 0;
        while let Some(&at) = self.forward.get(done) {
            done += 1;
            for &to in &self.next[at as usize] {
                if to == held {
                    return false;
                }
                if self.seen[to as usize] != self.searches && self.place[to as usize] < last {
                    self.seen[to as usize] = self.searches;
                    self.forward.push(to);
                }
            }
        }
        true
    }

    fn search_backward(&mut self, held: u32, needed: u32) {
        let first = self.place[needed as usize];
        self.searches += 1;
        self.backward.clear();
        self.backward.push(held);
        self.seen[held as usize] = self.searches;
        let mut done = 0;
        while let Some(&at) = self.backward.get(done) {
            done += 1;
            for &from in &self.before[at as usize] {
                if self.seen[from as usize] != self.searches && self.place[from as usize] > first {
                    self.seen[from as usize] = self.searches;
                    self.backward.push(from);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha8Rng;
    use rand_core::{RngCore, SeedableRng};

    use super::Dependencies;

    /// Takes away arcs that begin where none ends, as long as there are any.
    fn has_no_cycle(mut arcs: Vec<(u32, u32)>) -> bool {
        loop {
            let ends: Vec<u32> = arcs.iter().map(|&(_, to)| to).collect();
            let before = arcs.len();
            arcs.retain(|(from, _)| ends.contains(from));
            if arcs.len() == before {
                return arcs.is_empty();
            }
        }
    }

    #[test]
    fn agrees_with_a_search_from_scratch() {
        for seed in 0..60 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut kept = Dependencies::new(12);
            let mut arcs: Vec<(u32, u32)> = Vec::new();
            for _ in 0..60 {
                let pair = (rng.next_u32() % 12, rng.next_u32() % 12);
                let free = has_no_cycle(arcs.iter().copied().chain([pair]).collect());
                assert_eq!(
                    kept.admits(pair.0, pair.1),
                    free,
                    "{seed}: {arcs:?} {pair:?}"
                );
                assert_eq!(kept.add(pair.0, pair.1), free);
                if free {
                    arcs.push(pair);
                }
                let order = kept.order();
                let place = |node| order.iter().position(|at| *at == node);
                assert!(arcs.iter().all(|&(from, to)| place(from) < place(to)));
            }
        }
    }

    #[test]
    fn all_or_nothing() {
        let mut kept = Dependencies::new(4);
        assert_eq!(kept.add_all(&[(0, 1), (1, 2)]), Ok(()));
        assert_eq!(kept.add_all(&[(2, 3), (0, 1), (3, 0)]), Err(2));
        assert!(kept.contains(0, 1) && !kept.contains(2, 3));
        assert_eq!(kept.add_all(&[(3, 0)]), Ok(()));
    }
}
