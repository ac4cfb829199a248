//! k-binomial tree (PACKET §4): a recursively doubling tree in which no host has more
//! than k children, optimal for messages of several packets.

use super::{BufferClass, Place, Send, Sends};

/// N(s,k): hosts covered in s steps, the source included. Saturates at `u64::MAX`.
///
/// # Panics
/// If `k` is 0.
pub fn hosts_covered(steps: u32, k: u32) -> u64 {
    assert!(k > 0, "k is 0");
    let mut covered = vec![1u64];
    for _ in 0..steps {
        covered.push(next_covered(&covered, k));
    }
    covered[steps as usize]
}

/// T1(n,k): steps until one packet has reached n hosts, the source included.
///
/// # Panics
/// If `k` is 0.
pub fn steps_of_one(hosts: usize, k: u32) -> u32 {
    assert!(k > 0, "k is 0");
    Cover::new(hosts, k).covered.len() as u32 - 1
}

/// T1(n,k) + (m−1)·k: steps until m packets have reached n hosts; 0 if there is nobody
/// to send to, or nothing to send.
///
/// # Panics
/// If `k` is 0.
pub fn steps(hosts: usize, packets: u32, k: u32) -> u64 {
    match (hosts, packets) {
        (0 | 1, _) | (_, 0) => 0,
        _ => u64::from(steps_of_one(hosts, k)) + u64::from(packets - 1) * u64::from(k),
    }
}

/// The k in 1 … ⌈log2 n⌉ that takes the fewest [`steps`], the smaller on a tie; 1 for
/// groups of one or two.
pub fn optimal_k(hosts: usize, packets: u32) -> u32 {
    let most = hosts.max(2).next_power_of_two().trailing_zeros();
    (1..=most)
        .min_by_key(|&k| steps(hosts, packets, k))
        .unwrap_or(1)
}

fn next_covered(covered: &[u64], k: u32) -> u64 {
    let window = covered.len().min(k as usize);
    covered[covered.len() - window..]
        .iter()
        .fold(1u64, |sum, &part| sum.saturating_add(part))
}

/// How the tree divides the hosts, in offsets from the source.
#[derive(Clone, Debug)]
pub(super) struct Cover {
    k: usize,
    /// N(0,k), N(1,k), … up to the first that is no less than the hosts.
    covered: Vec<u64>,
}

/// Hosts from `first` up to but not including `end`, served by the one at `first`.
#[derive(Clone, Copy, Debug)]
struct Segment {
    first: usize,
    end: usize,
}

impl Cover {
    pub(super) fn new(hosts: usize, k: u32) -> Cover {
        let mut covered = vec![1u64];
        while *covered.last().expect("never empty") < hosts as u64 {
            covered.push(next_covered(&covered, k));
        }
        Cover {
            k: k as usize,
            covered,
        }
    }

    /// Parts that the first host of a segment hands to others, in the order of the
    /// sends: the first is N(s−1,k) hosts at the right end, the next N(s−2,k) to the
    /// left of them, and so on; the last may be smaller.
    fn parts(&self, segment: Segment) -> impl Iterator<Item = Segment> + '_ {
        let hosts = (segment.end - segment.first) as u64;
        let steps = self.covered.partition_point(|&covered| covered < hosts);
        let mut end = segment.end;
        self.covered[..steps]
            .iter()
            .rev()
            .take(self.k)
            .map_while(move |&covered| {
                let left = end - segment.first - 1;
                let size = left.min(usize::try_from(covered).unwrap_or(usize::MAX));
                let part = Segment {
                    first: end - size,
                    end,
                };
                end -= size;
                (size > 0).then_some(part)
            })
    }

    pub(super) fn place(&self, members: usize, source: usize, at: usize) -> Place {
        let turn = Turn { members, source };
        let offset = (at + members - source) % members;
        let mut segment = Segment {
            first: 0,
            end: members,
        };
        let mut parent = None;
        while segment.first != offset {
            parent = Some(turn.place(segment.first));
            segment = self
                .parts(segment)
                .find(|part| (part.first..part.end).contains(&offset))
                .expect("the parts cover the segment");
        }
        Place {
            parent,
            class: turn.class(offset),
            children: self
                .parts(segment)
                .map(|part| (turn.place(part.first), turn.class(part.first)))
                .collect(),
            submit: None,
        }
    }

    pub(super) fn sends(&self, members: usize, source: usize) -> Sends {
        let turn = Turn { members, source };
        let mut sends = Vec::with_capacity(members.saturating_sub(1));
        let mut segments = vec![Segment {
            first: 0,
            end: members,
        }];
        let mut next = 0;
        while let Some(&segment) = segments.get(next) {
            next += 1;
            for part in self.parts(segment) {
                let (from, to) = (turn.place(segment.first), turn.place(part.first));
                sends.push(Send {
                    from,
                    to,
                    class: turn.class(part.first),
                });
                segments.push(part);
            }
        }
        Sends {
            submission: None,
            sends,
        }
    }
}

/// The order turned so that the source comes first. Sends go onward in the turned order;
/// whoever is before the source in the order itself is past the one reversal.
#[derive(Clone, Copy)]
struct Turn {
    members: usize,
    source: usize,
}

impl Turn {
    fn place(self, offset: usize) -> usize {
        (self.source + offset) % self.members
    }

    fn class(self, offset: usize) -> BufferClass {
        if self.source + offset >= self.members {
            BufferClass::Two
        } else {
            BufferClass::One
        }
    }
}
