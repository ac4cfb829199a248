//! Which arcs lead on along shortest legal paths, for a block of destinations at once.
//!
//! The order of ranks makes a search unnecessary: one sweep from the last rank to the
//! first gives the lengths of the paths that go down only, one sweep back those of the
//! paths that may go up first, and both treat a row of destinations in a few vector
//! instructions. Time O(arcs) for a row.

use std::ops::Range;

use super::Phase;
use super::ranks::{Ranks, is_after_up, state};

/// Destinations of one block: two or four vector registers, and few enough that what is
/// known of two thousand switches stays in a second-level cache.
pub(super) const BLOCK: usize = 32;

/// Slots of one group; a bit of a byte for each.
const GROUP: usize = 8;
/// Slots of one word.
pub(super) const WORD: usize = 64;

/// A length in links; `FAR` where there is no path.
pub(super) trait Length: Copy + Eq + Ord {
    const FAR: Self;
    /// The longest; there may be longer ones, which were taken for `FAR`.
    const LONGEST: Self;
    const ZERO: Self;
    fn one_more(self) -> Self;
}

impl Length for u8 {
    const FAR: u8 = u8::MAX;
    const LONGEST: u8 = u8::MAX - 1;
    const ZERO: u8 = 0;

    fn one_more(self) -> u8 {
        self.saturating_add(1)
    }
}

impl Length for u16 {
    const FAR: u16 = u16::MAX;
    const LONGEST: u16 = u16::MAX - 1;
    const ZERO: u16 = 0;

    fn one_more(self) -> u16 {
        self.saturating_add(1)
    }
}

type LengthRow<L> = [L; BLOCK];
type SlotRow = [u8; BLOCK];

/// Lengths that do not fit the type they are kept in.
#[derive(Clone, Copy, Debug)]
pub(super) struct TooLong;

/// Slots that lead on, for one block of destinations after another.
#[derive(Debug)]
pub(super) struct ShortestArcs<L> {
    /// Length of the shortest path from each state.
    lengths: Vec<LengthRow<L>>,
    /// For each group of slots of a rank: those that lead on from either phase.
    slots: Vec<[SlotRow; 2]>,
    /// First group of each rank, and one past the last.
    group_first: Vec<u32>,
}

impl<L: Length> ShortestArcs<L> {
    pub(super) fn new(ranks: &Ranks) -> ShortestArcs<L> {
        let mut group_first = vec![0];
        for rank in 0..ranks.len() {
            let groups = ranks.arcs_of(rank).len().div_ceil(GROUP) as u32;
            group_first.push(group_first[rank] + groups);
        }
        ShortestArcs {
            lengths: vec![[L::FAR; BLOCK]; 2 * ranks.len()],
            slots: vec![[[0; BLOCK]; 2]; group_first[ranks.len()] as usize],
            group_first,
        }
    }

    /// Finds the arcs that lead to these destinations, switches by index, at most [`BLOCK`].
    ///
    /// # Errors
    /// [`TooLong`] if a path may be longer than `L` can say.
    pub(super) fn find(&mut self, ranks: &Ranks, dsts: Range<usize>) -> Result<(), TooLong> {
        self.lengths.fill([L::FAR; BLOCK]);
        for (column, dst) in dsts.enumerate() {
            self.lengths[state(ranks.rank[dst], Phase::Down) as usize][column] = L::ZERO;
        }
        for rank in (0..ranks.len()).rev() {
            let mut shortest = self.lengths[2 * rank + 1];
            for &next in &ranks.next[ranks.arcs_of(rank)] {
                if !is_after_up(next) {
                    take_shorter(&mut shortest, &self.lengths[next as usize]);
                }
            }
            self.lengths[2 * rank + 1] = shortest;
            self.mark(ranks, rank, Phase::Down);
        }
        for rank in 0..ranks.len() {
            let mut shortest = self.lengths[2 * rank + 1];
            for &next in &ranks.next[ranks.arcs_of(rank)] {
                if is_after_up(next) {
                    take_shorter(&mut shortest, &self.lengths[next as usize]);
                }
            }
            self.lengths[2 * rank] = shortest;
            self.mark(ranks, rank, Phase::Up);
        }
        // A longer path would pass through a state of that length.
        if self.lengths.as_flattened().contains(&L::LONGEST) {
            Err(TooLong)
        } else {
            Ok(())
        }
    }

    /// Marks the slots whose arcs lead to a state that is one link nearer.
    fn mark(&mut self, ranks: &Ranks, rank: usize, phase: Phase) {
        let phase = phase as usize;
        let from = self.lengths[2 * rank + phase];
        let groups = self.group_first[rank] as usize..self.group_first[rank + 1] as usize;
        let arcs = ranks.next[ranks.arcs_of(rank)].chunks(GROUP);
        for (slots, arcs) in self.slots[groups].iter_mut().zip(arcs) {
            let mut row = [0; BLOCK];
            for (slot, &next) in arcs.iter().enumerate() {
                if phase == Phase::Up as usize || !is_after_up(next) {
                    let after = &self.lengths[next as usize];
                    for ((bits, from), after) in row.iter_mut().zip(&from).zip(after) {
                        let leads_on = *from == after.one_more() && *from != L::FAR;
                        *bits |= if leads_on { 1 << slot } else { 0 };
                    }
                }
            }
            slots[phase] = row;
        }
    }

    /// Slots that lead on from a switch to the destination of this column, [`WORD`] a word,
    /// from either phase.
    #[inline]
    pub(super) fn words(&self, rank: usize, column: usize) -> impl Iterator<Item = [u64; 2]> + '_ {
        let groups = self.group_first[rank] as usize..self.group_first[rank + 1] as usize;
        self.slots[groups].chunks(WORD / GROUP).map(move |groups| {
            let mut words = [0; 2];
            for (place, rows) in groups.iter().enumerate() {
                for (word, row) in words.iter_mut().zip(rows) {
                    *word |= u64::from(row[column]) << (GROUP * place);
                }
            }
            words
        })
    }
}

fn take_shorter<L: Length>(shortest: &mut LengthRow<L>, after: &LengthRow<L>) {
    for (shortest, after) in shortest.iter_mut().zip(after) {
        *shortest = (*shortest).min(after.one_more());
    }
}
