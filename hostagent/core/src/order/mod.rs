//! Ordered groups: all members get the messages of all origins in one order.
//!
//! Messages travel by the scheme of the group, each in its origin's stream. One member, the
//! *sequencer*, says in its own stream in which order they come: as soon as a message begins to arrive
//! there. The others hold each message back until it is its turn. (A fixed sequencer, as the BB
//! method of Amoeba: Kaashoek, Tanenbaum, ICDCS 1991. WORM §5 and §6 send the messages themselves
//! to the lowest host or to the root first, which serializes them.)
//!
//! Pure: who has what of which stream is asked of a [`Streams`].

mod leading;
mod sequencer;

use sequencer::Leading;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wormcast_protocol::{Instant, Unbroken};
use wormcast_wire::order::{OrderMessage, Run};
use wormcast_wire::{HostId, Seq};

/// Runs that wait until all members have begun to read their messages, at most. More: the
/// sequencer orders no further message until some have.
pub const RUNS_MAX: usize = 4_096;
/// Time that something of the order is missing until the sequencer is asked, µs.
pub const ASK_FIRST_US: u64 = 200_000;
/// Time until it is asked again, µs.
pub const ASK_INTERVAL_US: u64 = 500_000;
/// Bytes of an order message at most.
pub const ORDER_BYTES_MAX: usize = 128 << 10;

/// Who says in which order messages come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequencer {
    pub host: HostId,
    /// Grows whenever one is chosen anew.
    pub epoch: u64,
}

/// How far a stream has come at this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamState {
    /// Which life of it.
    pub stream: u32,
    /// The first packet of the message that is being read, or that is read next.
    pub next: Seq,
    /// All members have begun to read what begins before.
    pub stable: Seq,
    /// Another one where this host has passed something over.
    pub unbroken: Unbroken,
}

/// Whether it is the turn of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It may be read.
    Now,
    /// Others come before it.
    Later,
    /// Nothing is known of its place.
    Unknown,
    /// It may come before what has been read here. This member goes without it.
    Never,
}

/// What this host has of the streams of a group.
pub trait Streams {
    /// The stream of an origin; none if nothing of it is known.
    fn state(&self, origin: HostId) -> Option<StreamState>;
    /// Those of which something is known.
    fn origins(&self) -> Vec<HostId>;
    /// The first packets of messages that have come in order, from a number on, ascending.
    fn starts(&mut self, origin: HostId, from: Seq, most: usize) -> Vec<Seq>;
}

/// A message, by its origin, the life of the stream and its first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageId {
    pub origin: HostId,
    /// Life of the stream.
    pub stream: u32,
    /// First packet.
    pub start: Seq,
}

impl MessageId {
    /// As the engine names it.
    pub fn named(self) -> (HostId, u32, Seq) {
        (self.origin, self.stream, self.start)
    }
}

/// A sequencer, and in which part of its stream something was taken.
type Follows = (HostId, Option<(u32, Unbroken)>);

/// One ordered group as one member knows it.
#[derive(Debug)]
pub struct Order {
    own: HostId,
    members: BTreeSet<HostId>,
    sequencer: Sequencer,
    /// The first of the epochs that it has had one after another, as far as this host knows.
    first_epoch: u64,
    /// In which life of its stream it has said something, since it has been the sequencer.
    heard: Option<u32>,
    /// In their order: those that not all members have begun to read.
    live: VecDeque<Run>,
    done: usize,
    /// Since the last snapshot all that was said has been taken: of whom, in which life of its stream and part without a gap.
    follows: Option<Follows>,
    /// Something that was said since then found no room.
    has_lost: bool,
    /// When the sequencer is asked to say all.
    ask_at: Option<Instant>,
    /// A message of the sequencer has been read since, and what is missing may come before it.
    read_ahead: bool,
    /// Where those end that may come before what was read ahead, by origin and life of the stream.
    barred: BTreeMap<HostId, (u32, Seq)>,
    /// The sequencer has said that all have begun to read what comes before it.
    next: Option<MessageId>,
    /// Where messages begin that have not been read here.
    read: BTreeMap<HostId, (u32, Seq)>,
    leading: Option<Leading>,
    /// Order messages that were none, or had too many runs.
    pub refused: u64,
}

impl Order {
    /// The group as a plan has it.
    pub fn new(own: HostId, members: &[HostId], sequencer: Sequencer) -> Order {
        let mut order = Order {
            own,
            members: members.iter().copied().collect(),
            sequencer,
            first_epoch: sequencer.epoch,
            heard: None,
            live: VecDeque::new(),
            done: 0,
            follows: None,
            has_lost: false,
            ask_at: None,
            read_ahead: false,
            barred: BTreeMap::new(),
            next: None,
            read: BTreeMap::new(),
            leading: None,
            refused: 0,
        };
        order.lead();
        order
    }

    pub fn plan(&mut self, members: &[HostId], sequencer: Sequencer) {
        let members: BTreeSet<HostId> = members.iter().copied().collect();
        if self.members != members || self.sequencer.epoch < sequencer.epoch {
            if let Some(leading) = &mut self.leading {
                leading.plan_changed = true;
            }
            self.members = members;
        }
        // One that was in a later order message than the plan stays.
        if self.sequencer.epoch < sequencer.epoch {
            // The same host goes on with what it has said, if it goes on with its stream.
            if self.sequencer.host != sequencer.host {
                self.heard = None;
                self.first_epoch = sequencer.epoch;
            }
            self.sequencer = sequencer;
        }
        self.lead();
    }

    /// A message has been read to its end, or will not be.
    pub fn note_read(&mut self, message: MessageId) {
        let after = Seq(message.start.0.wrapping_add(1));
        self.read.insert(message.origin, (message.stream, after));
    }

    /// Takes what the sequencer says; `from` is whose stream it was in, `reading` are the messages that
    /// are being read here. False if something is missing: the sequencer has to say all again.
    pub fn take(
        &mut self,
        from: HostId,
        bytes: &[u8],
        reading: &[MessageId],
        streams: &impl Streams,
    ) -> bool {
        let Some(message) = OrderMessage::decode(bytes) else {
            self.refused += 1;
            self.has_lost |= from == self.sequencer.host;
            return !self.has_lost;
        };
        let known = self.sequencer;
        // One that is chosen again goes on with what it has said, though the plan that says so came here first.
        let believed = if from == known.host {
            self.first_epoch
        } else {
            known.epoch
        };
        if message.epoch < believed {
            return true;
        }
        if from != known.host {
            if message.epoch == known.epoch {
                self.refused += 1;
                return true;
            }
            (self.first_epoch, self.heard) = (message.epoch, None);
        }
        // The plan that says so may still be on its way.
        self.sequencer = Sequencer {
            host: from,
            epoch: message.epoch.max(known.epoch),
        };
        self.lead();
        let state = streams.state(from);
        let follows = (from, state.map(|state| (state.stream, state.unbroken)));
        if !message.snapshot && self.has_gap(follows) {
            return false;
        }
        let heard = state.map(|state| state.stream);
        let goes_on = from == known.host && heard.is_some() && heard == self.heard;
        self.heard = heard;
        if message.snapshot {
            (self.follows, self.has_lost) = (Some(follows), false);
            if std::mem::take(&mut self.read_ahead) && goes_on {
                self.bar(&message.runs);
            }
            self.live.clear();
            self.done = 0;
            // The sequencer forgets what all have begun to read; here it still comes first. Where another
            // has spoken before, what is being read goes on beside what comes now.
            let begun = reading.iter().filter(|_| goes_on).map(|message| Run {
                origin: message.origin,
                stream: message.stream,
                from: message.start,
                to: Seq(message.start.0.wrapping_add(1)),
            });
            let is_announced = |run: &Run| {
                let covers = |announced: &Run| {
                    let of_stream =
                        (announced.origin, announced.stream) == (run.origin, run.stream);
                    of_stream
                        && !announced.from.is_after(run.from)
                        && announced.to.is_after(run.from)
                };
                message.runs.iter().any(covers)
            };
            self.live.extend(begun.filter(|run| !is_announced(run)));
        }
        self.trim(streams);
        self.pass_done(streams);
        // The sequencer knows of no more, since all have begun to read those before.
        while self.done > 0 && self.live.len() + message.runs.len() > RUNS_MAX {
            self.live.pop_front();
            self.done -= 1;
        }
        // A snapshot is bounded by its bytes.
        if !message.snapshot && self.live.len() + message.runs.len() > 2 * RUNS_MAX {
            self.refused += 1;
            self.has_lost = true;
            return false;
        }
        for run in message.runs {
            self.append(run);
        }
        true
    }

    /// None of these is read here any more.
    fn bar(&mut self, runs: &[Run]) {
        for run in runs {
            self.barred.insert(run.origin, (run.stream, run.to));
        }
    }

    fn pass_done(&mut self, streams: &impl Streams) {
        while let Some(run) = self.live.get(self.done)
            && self.is_done(run, streams)
        {
            self.done += 1;
        }
    }

    fn append(&mut self, run: Run) {
        // What has been announced, and what is done, stays as it was.
        let unannounced = self
            .leading
            .as_ref()
            .map_or(0, |leading| leading.unannounced);
        let may_grow = self.live.len() > self.done.max(unannounced);
        match self.live.back_mut().filter(|_| may_grow) {
            Some(last) if (last.origin, last.stream) == (run.origin, run.stream) => {
                if run.to.is_after(last.to) {
                    last.to = run.to;
                }
            }
            _ => self.live.push_back(run),
        }
    }

    /// Forgets runs whose messages all members have begun to read.
    fn trim(&mut self, streams: &impl Streams) {
        while let Some(run) = self.live.front() {
            let leading = self.leading.as_ref();
            let is_announced = leading.is_none_or(|leading| leading.unannounced > 0);
            let passed = match streams.state(run.origin) {
                Some(state) if state.stream == run.stream => !run.to.is_after(state.stable),
                Some(state) => Seq(state.stream).is_after(Seq(run.stream)),
                // Its stream was given up here because all was stable, or with its origin. A member that asks for it all the
                // same has to be announced.
                None => !self.members.contains(&run.origin) || self.is_read(run) && is_announced,
            };
            if !passed || (self.done == 0 && !self.is_done(run, streams)) {
                return;
            }
            self.live.pop_front();
            self.done = self.done.saturating_sub(1);
            if let Some(leading) = &mut self.leading {
                leading.forget_first();
            }
        }
    }

    fn is_read(&self, run: &Run) -> bool {
        let read = self.read.get(&run.origin);
        read.is_some_and(|(stream, at)| *stream == run.stream && !run.to.is_after(*at))
    }

    /// None of its messages will be read here any more.
    fn is_done(&self, run: &Run, streams: &impl Streams) -> bool {
        if run.origin == self.own || self.is_read(run) {
            return true;
        }
        match streams.state(run.origin) {
            Some(state) if state.stream == run.stream => !run.to.is_after(state.next),
            Some(state) => Seq(state.stream).is_after(Seq(run.stream)),
            None => !self.members.contains(&run.origin),
        }
    }

    /// A message is said to be next. Whether it counts.
    pub fn note_next(&mut self, from: HostId, message: MessageId) -> bool {
        let counts = from == self.sequencer.host;
        if counts {
            self.next = Some(message);
        }
        counts
    }

    /// Whether something may be missing of what the sequencer has said, after something was not: what is said after
    /// that must not come before it.
    fn has_gap(&self, now: Follows) -> bool {
        self.has_lost || self.follows.is_some_and(|follows| follows != now)
    }

    /// Where something may be missing of what the sequencer has said: asks for all again, by the message of its stream that
    /// comes next here; at once if nothing was missing before, then from time to time.
    pub fn poll_question(&mut self, streams: &impl Streams, now: Instant) -> Option<MessageId> {
        let origin = self.sequencer.host;
        let state = streams.state(origin);
        let follows = state.map(|state| (origin, Some((state.stream, state.unbroken))));
        let has_gap = follows.map_or(self.has_lost, |follows| self.has_gap(follows));
        if self.leads() || !has_gap && self.follows.is_some() {
            self.ask_at = None;
            return None;
        }
        // What another says first may be on its way.
        let is_known = self.follows.is_some_and(|(host, _)| host == origin);
        let first_us = if is_known { 0 } else { ASK_FIRST_US };
        let at = self.ask_at.get_or_insert(now.plus_us(first_us));
        if *at > now {
            return None;
        }
        *at = now.plus_us(ASK_INTERVAL_US);
        let (stream, start) = state.map_or((0, Seq(0)), |state| (state.stream, state.next));
        Some(MessageId {
            origin,
            stream,
            start,
        })
    }

    /// When to call [`poll_question`](Self::poll_question) again.
    pub fn question_timeout(&self) -> Option<Instant> {
        self.ask_at
    }

    /// Whether a sequencer has said all that counts here.
    pub fn follows_any(&self) -> bool {
        self.follows.is_some()
    }

    pub fn sequencer(&self) -> HostId {
        self.sequencer.host
    }

    /// Whether it is the turn of a message that can be read. Messages that have no place in the
    /// order may be read at any time: those of hosts that are members no longer, and those that the
    /// sequencer passed over.
    pub fn turn(&mut self, message: MessageId, streams: &impl Streams) -> Turn {
        self.trim(streams);
        self.pass_done(streams);
        let MessageId {
            origin,
            stream,
            start,
        } = message;
        if !self.members.contains(&origin) {
            return Turn::Now;
        }
        if let Some((of, to)) = self.barred.get(&origin) {
            if *of == stream && to.is_after(start) {
                return Turn::Never;
            }
            self.barred.remove(&origin);
        }
        if origin == self.sequencer.host {
            // Its own come between what it says, in the order of its stream. One that it began before
            // its epoch waits for nothing: what it says comes behind it.
            let announced = self.heard == Some(stream);
            if announced && self.done < self.live.len() {
                return Turn::Later;
            }
            let unbroken = streams.state(origin).map(|state| (stream, state.unbroken));
            // What is missing may come before it. That can be heard only behind it.
            self.read_ahead |= announced && self.has_gap((origin, unbroken));
            return Turn::Now;
        }
        let of_stream = |run: &&Run| run.origin == origin && run.stream == stream;
        let mut waiting = self.live.range(self.done..);
        let next = self.live.get(self.done).filter(of_stream);
        if next.is_some_and(|run| run.to.is_after(start)) {
            // One from before it was passed over.
            return Turn::Now;
        }
        if let Some(run) = waiting.find(|run| of_stream(run) && run.to.is_after(start)) {
            return if run.from.is_after(start) {
                Turn::Now
            } else {
                Turn::Later
            };
        }
        // All others have begun to read it while this host counted as gone: nobody keeps its place any more.
        let state = streams.state(origin);
        let is_stable =
            state.is_some_and(|state| state.stream == stream && state.stable.is_after(start));
        if is_stable || self.next == Some(message) {
            Turn::Now
        } else {
            Turn::Unknown
        }
    }

    /// The first message that all others wait for here: its origin may have forgotten it, or all may have had it
    /// before this host was a member, or it rests.
    pub fn waited_for(&self, streams: &impl Streams) -> Option<MessageId> {
        let run = self.live.get(self.done)?;
        let state = streams.state(run.origin);
        let state = state.filter(|state| state.stream == run.stream);
        let next = state.map(|state| state.next);
        let next = next.filter(|next| next.is_after(run.from));
        Some(MessageId {
            origin: run.origin,
            stream: run.stream,
            start: next.unwrap_or(run.from),
        })
    }
}

#[cfg(test)]
mod tests;
