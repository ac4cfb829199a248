//! Trains that arrive. Their head says what they are: for this host, or in transit. The frames behind it have no route,
//! so what their head said holds for them.
//!
//! A train in transit is taken in whole and then sent on, so the link never waits in the middle of one. What comes of a
//! train without its tail, or without its head, is dropped, counted and repaired as any loss.
//!
//! Multicasts are never in transit: they are for this host, frame by frame.

use super::TRAIN_FRAMES_MAX;
use super::TRAIN_SILENT_US;
use super::fragments::{FragmentCounters, Fragments};
use wormcast_protocol::Instant;
use wormcast_wire::HostId;
use wormcast_wire::worm::{self, Kind, flags};

/// Trains known at a time. A link carries one at a time; more are those whose tail was lost. What is dropped of them was not
/// acknowledged, so it is sent again.
pub const TRAINS_ARRIVING_MAX: usize = 8;
/// What was dropped since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ArrivalCounters {
    /// Frames of trains whose head was not seen, or that are forgotten.
    pub headless: u64,
    /// Frames in transit of trains whose tail did not come, that had too many frames, or that came twice.
    pub cut: u64,
}

/// What a frame of a train is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Taken {
    /// For this host, or damaged: the engine tells.
    Own,
    /// The last one of a train in transit: all its frames, to be sent on.
    Passes(Vec<Vec<u8>>),
    /// In transit, with more to come; the end of a fragment; or dropped.
    Nothing,
}

#[derive(Debug)]
pub(super) struct Arriving {
    source: HostId,
    sequence: u16,
    heard: Instant,
    /// Of a train in transit.
    pub(super) passing: Option<Passing>,
}

#[derive(Debug)]
pub(super) struct Passing {
    pub(super) frames: Vec<Vec<u8>>,
    /// The least position that may come next.
    next: u16,
}

/// Trains whose tail has not come.
#[derive(Debug, Default)]
pub struct Arrivals {
    pub(super) trains: Vec<Arriving>,
    counters: ArrivalCounters,
    fragments: Fragments,
}

impl Arrivals {
    /// Takes a frame of which [`wormcast_wire::wormhole::train::is_train`] holds.
    pub fn take(&mut self, frame: &[u8], now: Instant) -> Taken {
        let Ok(worm) = worm::decode(frame) else {
            return Taken::Own;
        };
        let Some(train) = worm.train else {
            return Taken::Own;
        };
        // Only UNICAST worms are in transit.
        if worm.header.kind != Kind::Unicast {
            let has_packet =
                !worm.route.is_empty() || self.fragments.take(&worm.header, &train, now);
            return if has_packet {
                Taken::Own
            } else {
                Taken::Nothing
            };
        }
        let (source, sequence) = (worm.header.source, worm.header.sequence);
        let is_tail = worm.header.flags & flags::TAIL != 0;
        let place = self
            .trains
            .iter()
            .position(|known| (known.source, known.sequence) == (source, sequence));
        if worm.header.flags & flags::HEAD != 0 {
            if let Some(place) = place {
                self.forget(place);
            }
            let passes = !worm.route.is_empty();
            if is_tail {
                return if passes {
                    Taken::Passes(vec![frame.to_vec()])
                } else {
                    Taken::Own
                };
            }
            self.make_room(now);
            self.trains.push(Arriving {
                source,
                sequence,
                heard: now,
                passing: passes.then(|| Passing {
                    frames: vec![frame.to_vec()],
                    next: train.position.saturating_add(1),
                }),
            });
            return if passes { Taken::Nothing } else { Taken::Own };
        }
        let Some(place) = place else {
            self.counters.headless += 1;
            return Taken::Nothing;
        };
        let known = &mut self.trains[place];
        known.heard = now;
        let Some(passing) = &mut known.passing else {
            if is_tail {
                self.trains.swap_remove(place);
            }
            return Taken::Own;
        };
        if train.position < passing.next {
            self.counters.cut += 1;
            return Taken::Nothing;
        }
        if passing.frames.len() >= usize::from(TRAIN_FRAMES_MAX) {
            self.counters.cut += 1;
            self.forget(place);
            return Taken::Nothing;
        }
        passing.next = train.position.saturating_add(1);
        passing.frames.push(frame.to_vec());
        if is_tail {
            let whole = self.trains.swap_remove(place).passing;
            whole.map_or(Taken::Nothing, |whole| Taken::Passes(whole.frames))
        } else {
            Taken::Nothing
        }
    }

    /// What was dropped so far.
    pub fn counters(&self) -> ArrivalCounters {
        self.counters
    }

    /// What came of multicasts so far.
    pub fn fragments(&self) -> FragmentCounters {
        self.fragments.counters
    }

    fn forget(&mut self, place: usize) {
        let gone = self.trains.swap_remove(place).passing;
        self.counters.cut += gone.map_or(0, |gone| gone.frames.len() as u64);
    }

    /// Forgets trains that are silent, and the most silent one if there are too many.
    fn make_room(&mut self, now: Instant) {
        while let Some((place, heard)) = (self.trains.iter().map(|known| known.heard).enumerate())
            .min_by_key(|(_, heard)| *heard)
            && (self.trains.len() >= TRAINS_ARRIVING_MAX || now.since_us(heard) >= TRAIN_SILENT_US)
        {
            self.forget(place);
        }
    }
}
