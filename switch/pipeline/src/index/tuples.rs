//! Ranked patterns by tuple: one hash index for all patterns with the same masks.
//!
//! Srinivasan, Suri and Varghese, Packet classification using tuple space search, SIGCOMM
//! 1999; tuples are searched from the one with the best rank down, and the search ends when
//! none that is left can be better.

use super::hash::HashIndex;
use super::rank::{Ranges, Rank, Ranked};

/// Patterns of any number, in as many indices as there are different masks.
#[derive(Debug)]
pub(super) struct Tuples {
    key_words: usize,
    /// Best first.
    tuples: Vec<Tuple>,
}

#[derive(Debug)]
struct Tuple {
    best: Rank,
    /// 0 in the words of range fields.
    masks: Vec<u64>,
    /// Numbers of lists by masked key.
    index: HashIndex,
    lists: Vec<Vec<Ranked>>,
    free: Vec<u32>,
}

impl Tuples {
    pub(super) fn new(key_words: usize) -> Self {
        Self {
            key_words,
            tuples: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn get(&self, key: &[u64], ranges: &Ranges) -> Option<u32> {
        let mut found: Option<(Rank, u32)> = None;
        for tuple in &self.tuples {
            if found.is_some_and(|(rank, _)| rank <= tuple.best) {
                break;
            }
            let Some(list) = tuple.index.get_masked(key, &tuple.masks) else {
                continue;
            };
            let list = &tuple.lists[list as usize];
            if let Some(first) = list.iter().find(|ranked| ranges.hold(key, ranked))
                && found.is_none_or(|(rank, _)| first.rank < rank)
            {
                found = Some((first.rank, first.entry));
            }
        }
        found.map(|(_, entry)| entry)
    }

    pub(super) fn insert(&mut self, ranked: Ranked, ranges: &Ranges) {
        let (values, masks) = ranges.without(&ranked);
        let position = self.tuples.iter().position(|tuple| tuple.masks == masks);
        let position = position.unwrap_or_else(|| {
            self.tuples.push(Tuple {
                best: ranked.rank,
                masks,
                index: HashIndex::new(self.key_words),
                lists: Vec::new(),
                free: Vec::new(),
            });
            self.tuples.len() - 1
        });
        let tuple = &mut self.tuples[position];
        tuple.best = tuple.best.min(ranked.rank);
        let list = tuple.index.get(&values).unwrap_or_else(|| {
            let list = tuple.free.pop().unwrap_or_else(|| {
                tuple.lists.push(Vec::new());
                tuple.lists.len() as u32 - 1
            });
            tuple.index.insert(&values, list);
            list
        });
        let list = &mut tuple.lists[list as usize];
        let place = list.partition_point(|other| other.rank < ranked.rank);
        list.insert(place, ranked);
        self.settle(position);
    }

    /// Removes a pattern and gives it back.
    pub(super) fn remove(
        &mut self,
        values: &[u64],
        masks: &[u64],
        entry: u32,
        ranges: &Ranges,
    ) -> Option<Ranked> {
        let (values, masks) = ranges.without_words(values, masks);
        let position = self.tuples.iter().position(|tuple| tuple.masks == masks)?;
        let tuple = &mut self.tuples[position];
        let number = tuple.index.get(&values)?;
        let list = &mut tuple.lists[number as usize];
        let place = list.iter().position(|ranked| ranked.entry == entry)?;
        let gone = list.remove(place);
        if list.is_empty() {
            tuple.index.remove(&values);
            tuple.free.push(number);
        }
        if tuple.index.is_empty() {
            self.tuples.remove(position);
        } else if gone.rank == tuple.best {
            let ranks = tuple.lists.iter().flatten().map(|ranked| ranked.rank);
            tuple.best = ranks.min().unwrap_or(gone.rank);
            self.settle(position);
        }
        Some(gone)
    }

    /// All patterns, in no order.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Ranked> {
        std::mem::take(&mut self.tuples)
            .into_iter()
            .flat_map(|tuple| tuple.lists)
            .flatten()
    }

    /// Puts one tuple whose best rank has changed into its place.
    fn settle(&mut self, position: usize) {
        let tuple = self.tuples.remove(position);
        let place = self.tuples.partition_point(|other| other.best < tuple.best);
        self.tuples.insert(place, tuple);
    }
}
