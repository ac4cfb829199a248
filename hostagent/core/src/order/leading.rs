//! What the sequencer does besides.

use super::sequencer::Leading;
use super::{MessageId, Order, RUNS_MAX, Streams};
use std::collections::{BTreeMap, VecDeque};
use wormcast_protocol::Instant;
use wormcast_wire::Seq;
use wormcast_wire::order::{OrderMessage, Run};

/// Least time between two times that the sequencer says again all that counts, µs.
pub(super) const SNAPSHOT_US: u64 = 100_000;

/// Time that members ask for a message until it gets a place though it has not come, µs.
pub(super) const ON_ITS_WAY_US: u64 = 2_000_000;

impl Order {
    /// Takes up or gives up the place of the sequencer.
    pub(super) fn lead(&mut self) {
        match (self.sequencer.host == self.own, &self.leading) {
            (true, None) => {
                let mut next = BTreeMap::new();
                for run in &self.live {
                    next.insert(run.origin, (run.stream, run.to));
                }
                self.leading = Some(Leading {
                    next,
                    unannounced: self.live.len(),
                    announced: VecDeque::new(),
                    snapshot_wanted: false,
                    snapshot_at: Instant::ZERO,
                    plan_changed: true,
                    asked: BTreeMap::new(),
                });
            }
            (false, Some(_)) => self.leading = None,
            _ => {}
        }
    }

    /// Whether this host is the sequencer.
    pub fn leads(&self) -> bool {
        self.leading.is_some()
    }

    /// A member knows no place for a message that it could read. It gets one if the sequencer has
    /// nothing of its stream, or is past it, or if it does not come: it came when the sequencer was
    /// another, or had not started anew. If it is among the first, all have begun to read what is ordered before it; once all
    /// have read the order message that says its place too, which is given here, nothing comes before it, and it is next.
    /// The member has to be answered: what is announced in the sequencer's stream may be stuck behind messages that wait, at others,
    /// for this one.
    pub fn want(
        &mut self,
        message: MessageId,
        streams: &impl Streams,
        now: Instant,
    ) -> Option<u64> {
        self.trim(streams);
        self.give_place(message, streams, now);
        let leading = self.leading.as_ref()?;
        let first = self.live.front()?;
        let of_stream = (first.origin, first.stream) == (message.origin, message.stream);
        let is_in = !first.from.is_after(message.start) && first.to.is_after(message.start);
        let (announced_by, _) = leading.announced.front()?;
        (of_stream && is_in).then_some(*announced_by)
    }

    fn give_place(&mut self, message: MessageId, streams: &impl Streams, now: Instant) {
        let MessageId {
            origin,
            stream,
            start,
        } = message;
        let Some(leading) = &mut self.leading else {
            return;
        };
        leading.snapshot_wanted = true;
        let covers = |run: &Run| {
            let of_stream = run.origin == origin && run.stream == stream;
            of_stream && run.to.is_after(start)
        };
        let has_place = self.live.iter().any(covers) || origin == self.own;
        if has_place || !self.members.contains(&origin) || self.live.len() >= RUNS_MAX {
            return;
        }
        let after = Seq(start.0.wrapping_add(1));
        let here = streams.state(origin).map(|state| state.stream);
        let next = leading.next.get(&origin).copied();
        let is_passed = match (here, next) {
            (None, None) => true,
            (None, Some((of, next))) => of != stream || next.is_after(start),
            (Some(here), _) if here != stream => Seq(here).is_after(Seq(stream)),
            (Some(_), next) => next.is_some_and(|(of, next)| of == stream && next.is_after(start)),
        };
        // Members that are at different places ask for different messages of it by turns.
        let asked = leading.asked.entry(origin).or_insert((stream, now));
        if asked.0 != stream {
            *asked = (stream, now);
        }
        // Else it is on its way here; unless this host had it before it started anew.
        if !is_passed && now.since_us(asked.1) < ON_ITS_WAY_US {
            return;
        }
        if next.is_none_or(|(of, next)| of == stream && after.is_after(next)) {
            leading.next.insert(origin, (stream, after));
        }
        self.append(Run {
            origin,
            stream,
            from: start,
            to: after,
        });
    }

    /// The sequencer orders what has begun to arrive.
    pub fn gather(&mut self, streams: &mut impl Streams) {
        if !self.leads() {
            return;
        }
        self.trim(streams);
        for origin in streams.origins() {
            let room = RUNS_MAX.saturating_sub(self.live.len());
            let Some(leading) = &mut self.leading else {
                return;
            };
            if origin == self.own || !self.members.contains(&origin) || room == 0 {
                continue;
            }
            let Some(state) = streams.state(origin) else {
                continue;
            };
            let next = leading
                .next
                .entry(origin)
                .or_insert((state.stream, state.next));
            if next.0 != state.stream {
                *next = (state.stream, state.next);
            }
            let starts = streams.starts(origin, next.1, room);
            let Some(&last) = starts.last() else {
                continue;
            };
            let run = Run {
                origin,
                stream: state.stream,
                from: starts[0],
                to: Seq(last.0.wrapping_add(1)),
            };
            next.1 = run.to;
            leading.asked.remove(&origin);
            self.append(run);
        }
    }

    /// What the sequencer has to tell, if there is anything.
    pub fn poll(&mut self, now: Instant) -> Option<Vec<u8>> {
        let leading = self.leading.as_mut()?;
        let epoch = self.sequencer.epoch;
        if leading.plan_changed || leading.snapshot_wanted && leading.snapshot_at <= now {
            leading.plan_changed = false;
            leading.snapshot_wanted = false;
            leading.snapshot_at = now.plus_us(SNAPSHOT_US);
            leading.unannounced = self.live.len();
            let message = OrderMessage {
                epoch,
                snapshot: true,
                runs: self.live.iter().copied().collect(),
            };
            return Some(message.encode());
        }
        let announced = core::mem::replace(&mut leading.unannounced, self.live.len());
        let new = self.live.range(announced..);
        let message = OrderMessage {
            epoch,
            snapshot: false,
            runs: new.copied().collect(),
        };
        (!message.runs.is_empty()).then(|| message.encode())
    }

    /// What was polled last is said by the order message of that number.
    pub fn note_announced(&mut self, number: u64) {
        if let Some(leading) = &mut self.leading {
            let before: usize = leading.announced.iter().map(|(_, runs)| runs).sum();
            let runs = self.live.len() - before;
            leading
                .announced
                .extend((runs > 0).then_some((number, runs)));
        }
    }

    /// When to [`poll`](Self::poll) again at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let leading = self.leading.as_ref()?;
        if leading.plan_changed {
            Some(Instant::ZERO)
        } else {
            leading.snapshot_wanted.then_some(leading.snapshot_at)
        }
    }
}
