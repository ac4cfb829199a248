//! Trees made by division: a host that has the members to its right to serve hands the
//! rightmost part of them to the first of that part, then the next part to its left, and
//! so on; every recipient does the same with its part. What differs is how large the
//! parts are.

use super::k_binomial;
use super::postal::Postal;
use super::sends::{Place, Send, Sends};
use std::cmp::Ordering;
use wormcast_wire::BufferClass;

/// How large the parts are.
#[derive(Clone, Debug)]
pub(super) enum Division {
    /// k-binomial tree (PACKET §4).
    KBinomial(k_binomial::Cover),
    /// Optimum of the postal model (NIC §5.5).
    Postal(Postal),
    /// Halves: U-torus (TORUS §3).
    Halves,
    /// So many parts, all as large as each other but for one host: as flat as a tree can be in
    /// which no host has more children.
    Even(usize),
}

/// Hosts from `first` up to but not including `end`, served by the one at `first`.
#[derive(Clone, Copy, Debug)]
struct Segment {
    first: usize,
    end: usize,
}

impl Division {
    /// Send times that a host needs to have so many hosts covered, itself included. Halves
    /// and even parts need no clock.
    fn time(&self, hosts: usize) -> usize {
        match self {
            Division::KBinomial(cover) => cover.time(hosts),
            Division::Postal(postal) => postal.time(hosts),
            Division::Halves | Division::Even(_) => 0,
        }
    }

    /// Most hosts of the part given away in send number `send` (from 0), of a host that
    /// has `time` for all, and `hosts` left, itself included.
    fn part(&self, time: usize, send: usize, hosts: usize) -> usize {
        match self {
            Division::KBinomial(cover) => cover.part(time, send),
            Division::Postal(postal) => postal.part(time, send),
            Division::Halves => hosts / 2,
            Division::Even(parts) => match parts.saturating_sub(send) {
                0 => 0,
                left => (hosts - 1).div_ceil(left),
            },
        }
    }

    /// The parts of a segment, in the order of the sends.
    fn parts(&self, segment: Segment) -> impl Iterator<Item = Segment> + '_ {
        let time = self.time(segment.end - segment.first);
        let mut end = segment.end;
        (0..).map_while(move |send| {
            let hosts = end - segment.first;
            let size = self.part(time, send, hosts).min(hosts - 1);
            let part = Segment {
                first: end - size,
                end,
            };
            end -= size;
            (size > 0).then_some(part)
        })
    }

    pub(super) fn place(&self, members: usize, source: usize, at: usize) -> Place {
        let line = self.line(members, source);
        let offset = line.offset(at);
        let mut segment = line.all();
        let mut parent = None;
        let mut class = BufferClass::One;
        while segment.first != offset {
            parent = Some(segment.first);
            segment = self
                .parts(segment)
                .find(|part| (part.first..part.end).contains(&offset))
                .expect("the parts cover the segment");
            class = line.class(parent, class, segment.first);
        }
        Place {
            parent: parent.map(|offset| line.place(offset)),
            class,
            children: self
                .parts(segment)
                .map(|part| {
                    let class = line.class(Some(offset), class, part.first);
                    (line.place(part.first), class)
                })
                .collect(),
            submit: None,
        }
    }

    pub(super) fn sends(&self, members: usize, source: usize) -> Sends {
        let line = self.line(members, source);
        let mut sends = Vec::with_capacity(members.saturating_sub(1));
        let mut segments = Vec::with_capacity(members);
        segments.push((line.all(), BufferClass::One));
        let mut next = 0;
        while let Some(&(segment, held)) = segments.get(next) {
            next += 1;
            for part in self.parts(segment) {
                let class = line.class(Some(segment.first), held, part.first);
                sends.push(Send {
                    from: line.place(segment.first),
                    to: line.place(part.first),
                    class,
                });
                segments.push((part, class));
            }
        }
        Sends {
            submission: None,
            sends,
        }
    }

    /// A tree of the postal model keeps the destinations in their order, whoever sends
    /// (NIC §5.4); the others turn it, so that neighbours in it stay neighbours.
    fn line(&self, members: usize, source: usize) -> Line {
        Line {
            members,
            source,
            turned: !matches!(self, Division::Postal(_)),
        }
    }
}

/// The order with the source put first, by rotating it or by taking the source out.
#[derive(Clone, Copy)]
struct Line {
    members: usize,
    source: usize,
    turned: bool,
}

impl Line {
    fn all(self) -> Segment {
        Segment {
            first: 0,
            end: self.members,
        }
    }

    fn place(self, offset: usize) -> usize {
        match (self.turned, offset) {
            (true, _) => (self.source + offset) % self.members,
            (false, 0) => self.source,
            (false, _) if offset <= self.source => offset - 1,
            (false, _) => offset,
        }
    }

    fn offset(self, place: usize) -> usize {
        if self.turned {
            (place + self.members - self.source) % self.members
        } else {
            match place.cmp(&self.source) {
                Ordering::Less => place + 1,
                Ordering::Equal => 0,
                Ordering::Greater => place,
            }
        }
    }

    /// Class at the host at `to` of a message that its parent holds in class `held`:
    /// the second once the order has been reversed.
    fn class(self, parent: Option<usize>, held: BufferClass, to: usize) -> BufferClass {
        match parent {
            Some(parent) if self.place(to) < self.place(parent) => BufferClass::Two,
            _ => held,
        }
    }
}
