//! M_d-torus and M_u-torus (TORUS §3): the source sends to the head of each part of the
//! members, and each part is a chain.

use super::sends::{Place, Send, Sends};
use wormcast_wire::BufferClass;

/// Chains that together hold every member but the source, the longest first, so that the
/// one that takes longest starts first; of chains as long, the earlier.
#[derive(Clone, Debug)]
pub(super) struct Chains {
    /// Places of all chains, one chain after the other.
    places: Vec<usize>,
    /// For every chain, where it starts in `places`; then where the last one ends.
    first: Vec<usize>,
}

impl Chains {
    /// One chain for each ring of members; `rings` holds how many members each has, in
    /// their order. The head of a ring is its first member: a chain that began elsewhere
    /// and went round would have to turn back once more, and the source may have turned
    /// back already to reach it. On the ring of the source, the source is the head.
    pub(super) fn along_rings(source: usize, rings: &[usize]) -> Chains {
        let mut chains = Vec::with_capacity(rings.len());
        let mut first = 0;
        for &size in rings {
            let ring = first..first + size;
            first = ring.end;
            chains.push(if ring.contains(&source) {
                (source + 1..ring.end).chain(ring.start..source).collect()
            } else {
                ring.collect::<Vec<_>>()
            });
        }
        Chains::new(chains)
    }

    /// Chains of `length`, the last one shorter, over the order turned so that the source
    /// comes first.
    pub(super) fn of_length(members: usize, source: usize, length: usize) -> Chains {
        let others: Vec<usize> = (source + 1..members).chain(0..source).collect();
        Chains::new(others.chunks(length).map(<[usize]>::to_vec).collect())
    }

    fn new(mut chains: Vec<Vec<usize>>) -> Chains {
        chains.retain(|chain| !chain.is_empty());
        chains.sort_by_key(|chain| std::cmp::Reverse(chain.len()));
        let mut first = vec![0];
        for chain in &chains {
            first.push(first[first.len() - 1] + chain.len());
        }
        Chains {
            places: chains.concat(),
            first,
        }
    }

    fn chains(&self) -> impl Iterator<Item = &[usize]> {
        self.first
            .windows(2)
            .map(|ends| &self.places[ends[0]..ends[1]])
    }

    pub(super) fn place(&self, source: usize, at: usize) -> Place {
        if at == source {
            let head = |chain: &[usize]| (chain[0], class(source, BufferClass::One, chain[0]));
            return Place {
                parent: None,
                class: BufferClass::One,
                children: self.chains().map(head).collect(),
                submit: None,
            };
        }
        let found = self.places.iter().position(|&place| place == at);
        let found = found.expect("every member but the source is in a chain");
        let start = self.first[self.first.partition_point(|&first| first <= found) - 1];
        let end = self.first[self.first.partition_point(|&first| first <= found)];
        let (mut parent, mut held) = (source, BufferClass::One);
        for &next in &self.places[start..found] {
            held = class(parent, held, next);
            parent = next;
        }
        let own = class(parent, held, at);
        Place {
            parent: Some(parent),
            class: own,
            children: self.places[found + 1..end]
                .first()
                .map(|&next| (next, class(at, own, next)))
                .into_iter()
                .collect(),
            submit: None,
        }
    }

    pub(super) fn sends(&self, source: usize) -> Sends {
        let mut sends = Vec::with_capacity(self.places.len());
        for chain in self.chains() {
            sends.push(Send {
                from: source,
                to: chain[0],
                class: class(source, BufferClass::One, chain[0]),
            });
        }
        for (number, chain) in self.chains().enumerate() {
            let mut held = sends[number].class;
            for pair in chain.windows(2) {
                held = class(pair[0], held, pair[1]);
                sends.push(Send {
                    from: pair[0],
                    to: pair[1],
                    class: held,
                });
            }
        }
        Sends {
            submission: None,
            sends,
        }
    }
}

/// The second class once the order has been reversed.
fn class(from: usize, held: BufferClass, to: usize) -> BufferClass {
    if to < from { BufferClass::Two } else { held }
}
