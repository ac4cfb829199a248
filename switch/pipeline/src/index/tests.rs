//! Every form of index against the plainest one: a list that is searched from its start.

use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

use super::{Index, Pattern};
use wormcast_switch_program::{KeyField, MatchKind};

fn field(kind: MatchKind, width_bits: u32) -> KeyField {
    KeyField {
        name: String::new(),
        kind,
        width_bits,
        mask: None,
    }
}

fn ones(width_bits: u32) -> Vec<u64> {
    let words = width_bits.div_ceil(64).max(1);
    (0..words)
        .map(|word| match (width_bits - word * 64).min(64) {
            64 => u64::MAX,
            bits => (1 << bits) - 1,
        })
        .collect()
}

/// Draws keys and patterns of a table; few different values, so that many match.
struct Draw {
    random: ChaCha8Rng,
    fields: Vec<KeyField>,
}

impl Draw {
    fn value(&mut self, width_bits: u32) -> Vec<u64> {
        let dense = !self.random.next_u32().is_multiple_of(4);
        ones(width_bits)
            .iter()
            .map(|mask| {
                let bits = self.random.next_u64();
                // Sparse values differ in one byte at the low and one at the high end.
                mask & if dense {
                    bits & 0x0300_0003 | bits & 3 << 62
                } else {
                    bits
                }
            })
            .collect()
    }

    fn key(&mut self) -> Vec<u64> {
        let widths: Vec<u32> = self.fields.iter().map(|field| field.width_bits).collect();
        widths
            .into_iter()
            .flat_map(|width| self.value(width))
            .collect()
    }

    fn pattern(&mut self) -> Pattern {
        let mut pattern = Pattern {
            first: Vec::new(),
            second: Vec::new(),
            prefix_len: 0,
        };
        for field in self.fields.clone() {
            let width = field.width_bits;
            let value = self.value(width);
            let any = self.random.next_u32().is_multiple_of(3);
            let mask = match field.kind {
                MatchKind::Lpm => {
                    pattern.prefix_len = self.random.next_u32() % (width + 1);
                    let low = ones(width - pattern.prefix_len);
                    let low = low.into_iter().chain(std::iter::repeat(0));
                    let keep = pattern.prefix_len < width;
                    ones(width)
                        .iter()
                        .zip(low)
                        .map(|(all, low)| if keep { all & !low } else { *all })
                        .collect()
                }
                MatchKind::Ternary if any => vec![0; value.len()],
                MatchKind::Ternary => self.value(width),
                MatchKind::Optional if any => vec![0; value.len()],
                MatchKind::Range => {
                    let other = if any { ones(width) } else { self.value(width) };
                    let low = if any { vec![0; value.len()] } else { value };
                    let swap = low.iter().rev().gt(other.iter().rev());
                    let (low, high) = if swap { (other, low) } else { (low, other) };
                    pattern.first.extend(low);
                    pattern.second.extend(high);
                    continue;
                }
                _ => ones(width),
            };
            let masked = value.iter().zip(&mask).map(|(value, mask)| value & mask);
            pattern.first.extend(masked);
            pattern.second.extend(mask);
        }
        pattern
    }
}

/// The model: entries in the order in which they were added.
struct Model {
    fields: Vec<KeyField>,
    has_priority: bool,
    entries: Vec<(Pattern, i32, u32)>,
}

impl Model {
    fn matches(&self, key: &[u64], pattern: &Pattern) -> bool {
        let mut at = 0;
        self.fields.iter().all(|field| {
            let words = at..at + field.width_bits.div_ceil(64).max(1) as usize;
            at = words.end;
            let key = &key[words.clone()];
            let (first, second) = (&pattern.first[words.clone()], &pattern.second[words]);
            if field.kind == MatchKind::Range {
                key.iter().rev().ge(first.iter().rev()) && key.iter().rev().le(second.iter().rev())
            } else {
                key.iter()
                    .zip(first)
                    .zip(second)
                    .all(|((key, value), mask)| key & mask == *value)
            }
        })
    }

    fn get(&self, key: &[u64]) -> Option<u32> {
        let mut best: Option<(i64, u32)> = None;
        for (pattern, priority, entry) in &self.entries {
            let rank = if self.has_priority {
                i64::from(*priority)
            } else {
                i64::from(pattern.prefix_len)
            };
            if self.matches(key, pattern) && best.is_none_or(|(best, _)| rank > best) {
                best = Some((rank, *entry));
            }
        }
        best.map(|(_, entry)| entry)
    }
}

/// Adds and removes entries at random, `most` at a time at most, and compares.
fn compare(fields: Vec<KeyField>, has_priority: bool, seed: u64, steps: usize, most: usize) {
    let mut index = Index::new(&fields, has_priority);
    let mut model = Model {
        fields: fields.clone(),
        has_priority,
        entries: Vec::new(),
    };
    let mut draw = Draw {
        random: ChaCha8Rng::seed_from_u64(seed),
        fields,
    };
    for step in 0..steps {
        // Grows at first, shrinks at last, so that every form is passed both ways.
        let growing = step < steps * 2 / 3;
        let remove = draw.random.next_u32() % 8 < if growing { 1 } else { 6 };
        let count = model.entries.len();
        if count > 0 && (remove || count == most) {
            let place = draw.random.next_u32() as usize % count;
            let (pattern, _, entry) = model.entries.remove(place);
            index.remove(&pattern, entry);
        } else {
            let pattern = draw.pattern();
            let priority = if has_priority {
                (draw.random.next_u32() % 20) as i32
            } else {
                0
            };
            let same =
                |(other, rank, _): &(Pattern, i32, u32)| *other == pattern && *rank == priority;
            if !model.entries.iter().any(same) {
                index.insert(&pattern, priority, step as u32);
                model.entries.push((pattern, priority, step as u32));
            }
        }
        for _ in 0..4 {
            let mut key = draw.key();
            // Half of the keys are made to match some entry.
            if draw.random.next_u32().is_multiple_of(2) && !model.entries.is_empty() {
                let chosen = draw.random.next_u32() as usize % model.entries.len();
                key.clone_from(&model.entries[chosen].0.first);
            }
            assert_eq!(index.get(&key), model.get(&key), "seed {seed}, step {step}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn exact_keys(seed: u64, width in 1u32..=200) {
        compare(vec![field(MatchKind::Exact, width), field(MatchKind::Exact, 9)], false, seed, 300, 100);
        compare(vec![field(MatchKind::Exact, width)], false, seed, 300, 100);
    }

    #[test]
    fn longest_prefixes(seed: u64, width in 1u32..=140) {
        compare(vec![field(MatchKind::Lpm, width)], false, seed, 400, 200);
        let fields = vec![field(MatchKind::Exact, 2), field(MatchKind::Lpm, width), field(MatchKind::Exact, 1)];
        compare(fields, false, seed, 400, 200);
    }

    #[test]
    fn ternary_keys(seed: u64, width in 1u32..=140) {
        let fields = vec![
            field(MatchKind::Ternary, width),
            field(MatchKind::Exact, 2),
            field(MatchKind::Optional, 9),
        ];
        compare(fields, true, seed, 500, 150);
    }

    #[test]
    fn ranges(seed: u64, width in 1u32..=80) {
        let fields = vec![
            field(MatchKind::Range, width),
            field(MatchKind::Ternary, 16),
            field(MatchKind::Lpm, 32),
            field(MatchKind::Range, 16),
        ];
        compare(fields, true, seed, 500, 150);
    }

    #[test]
    fn keys_too_wide_for_bit_vectors(seed: u64) {
        let mut fields = vec![field(MatchKind::Range, 16)];
        fields.extend((0..9).map(|_| field(MatchKind::Ternary, 128)));
        compare(fields, true, seed, 300, 100);
    }
}

/// Through all forms and back: more patterns than bit vectors take.
#[test]
fn thousands_of_ternary_patterns_and_back() {
    let fields = || vec![field(MatchKind::Ternary, 24), field(MatchKind::Range, 16)];
    let mut index = Index::new(&fields(), true);
    let mut draw = Draw {
        random: ChaCha8Rng::seed_from_u64(5),
        fields: fields(),
    };
    let mut model = Model {
        fields: fields(),
        has_priority: true,
        entries: Vec::new(),
    };
    let check = |index: &Index, model: &Model, draw: &mut Draw| {
        for _ in 0..20 {
            let key = draw.key();
            assert_eq!(index.get(&key), model.get(&key));
        }
    };
    for entry in 0..3_000 {
        let mut pattern = draw.pattern();
        let bits = u64::from(entry) << 4 & 0xff_ffff;
        (pattern.first[0], pattern.second[0]) =
            (bits & 0xff_fff0, 0xff_fff0 | u64::from(entry & 3));
        pattern.first[0] &= pattern.second[0];
        index.insert(&pattern, (entry % 7) as i32, entry);
        model.entries.push((pattern, (entry % 7) as i32, entry));
        if entry % 100 == 0 || (2_040..2_060).contains(&entry) {
            check(&index, &model, &mut draw);
        }
    }
    while let Some((pattern, _, entry)) = model.entries.pop() {
        index.remove(&pattern, entry);
        if entry % 100 == 0 || (1_000..1_050).contains(&entry) || entry < 10 {
            check(&index, &model, &mut draw);
        }
    }
    assert_eq!(index.get(&draw.key()), None);
}

/// All bits of the heads' word are used and more: prefixes of 100 lengths.
#[test]
fn more_lengths_than_a_word_has_bits() {
    let fields = vec![field(MatchKind::Lpm, 128)];
    for seed in 0..3 {
        compare(fields.clone(), false, seed, 1_500, 600);
    }
}
