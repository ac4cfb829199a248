//! The messages of an origin: their bytes that are not cut yet, which are under way, and who has them.

use crate::failure::Failure;
use crate::time::Instant;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wormcast_wire::pdu::CHOICES_MAX;
use wormcast_wire::{BufferClass, FailReason, HostId};

/// Most packets queued at other hosts' REPAIR requests. Of more, who asked asks again: a member that lacks a packet
/// confirms nothing.
const REPAIR_QUEUE_MAX: usize = 256;

/// A message that is not stable yet.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) number: u64,
    pub(super) start: u64,
    /// The position after its last packet, once written.
    pub(super) end: Option<u64>,
    pub(super) cancelled: bool,
    pub(super) failed: BTreeMap<HostId, FailReason>,
}

/// Packets to send at other hosts' REPAIR requests, first come first served.
#[derive(Debug, Default)]
pub(crate) struct Repairs {
    queue: VecDeque<(HostId, u64, BufferClass)>,
    queued: BTreeSet<(HostId, u64)>,
}

impl Repairs {
    /// Queues a packet that is not; false if there is no room.
    pub fn add(&mut self, host: HostId, position: u64, class: BufferClass) -> bool {
        if self.queue.len() >= REPAIR_QUEUE_MAX {
            return false;
        }
        if self.queued.insert((host, position)) {
            self.queue.push_back((host, position, class));
        }
        true
    }

    pub fn take_next(&mut self) -> Option<(HostId, u64, BufferClass)> {
        let next = self.queue.pop_front()?;
        self.queued.remove(&(next.0, next.1));
        Some(next)
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

/// What an origin has done so far in a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Payload bytes accepted from the application.
    pub accepted_bytes: u64,
    /// Payload bytes sent for the first time, to the first child or as TREE worms.
    pub sent_bytes: u64,
    /// Payload bytes all members have confirmed.
    pub stable_bytes: u64,
    /// Messages written to the end.
    pub messages_ended: u64,
    pub messages_stable: u64,
    /// Messages begun, by the choice of the plan that each took.
    pub messages_by_choice: [u64; CHOICES_MAX],
}

/// The writing side of a stream.
#[derive(Debug)]
pub(crate) struct Sending {
    pub members: Vec<HostId>,
    pub(super) messages: VecDeque<Message>,
    messages_begun: u64,
    pub(super) messages_ended: u64,
    pub(super) messages_stable: u64,
    pub draft: Vec<u8>,
    /// The draft is the end of a message and waits for room in the window.
    pub(super) end_waits: bool,
    pub(super) cancel_waits: bool,
    pub(super) in_message: bool,
    pub(super) finish_wanted: bool,
    pub(super) blocked: bool,
    pub(super) accepted_bytes: u64,
    pub(super) messages_by_choice: [u64; CHOICES_MAX],
    pub stable_bytes: u64,
    pub repairs: Repairs,
    pub repair_next: Instant,
    /// Members that are to be sent what is stable.
    pub answers: BTreeSet<HostId>,
    /// Bytes of the message in the draft, or that is begun next, as far as the application has announced it.
    pub announced: Option<u64>,
    /// Of the one after, where the draft is the end of a message.
    pub(super) announced_after: Option<u64>,
    /// The window has been full since a message was begun with nothing under way.
    pub(super) window_was_full: bool,
    /// Routes for which it was computed, and the bytes of the longest TREE route to all.
    pub tree_route_length: Option<(u64, usize)>,
}

impl Sending {
    pub fn new(members: Vec<HostId>) -> Sending {
        Sending {
            members,
            messages: VecDeque::new(),
            messages_begun: 0,
            messages_ended: 0,
            messages_stable: 0,
            draft: Vec::new(),
            end_waits: false,
            cancel_waits: false,
            in_message: false,
            finish_wanted: false,
            blocked: false,
            accepted_bytes: 0,
            messages_by_choice: [0; CHOICES_MAX],
            stable_bytes: 0,
            repairs: Repairs::default(),
            repair_next: Instant::ZERO,
            answers: BTreeSet::new(),
            announced: None,
            announced_after: None,
            window_was_full: false,
            tree_route_length: None,
        }
    }

    /// A message begins with the first byte that is taken, or with an end alone: who leaves after that misses it.
    /// Its first packet will be at `start`.
    pub(super) fn begin_message(&mut self, start: u64) {
        if self.messages.back().is_some_and(|last| last.end.is_none()) {
            return;
        }
        self.window_was_full &= !self.messages.is_empty();
        self.messages.push_back(Message {
            number: self.messages_begun,
            start,
            end: None,
            cancelled: false,
            failed: BTreeMap::new(),
        });
        self.messages_begun += 1;
    }

    /// Nothing of the message that is being written has been sent, and nothing will be.
    pub(super) fn drop_draft(&mut self) {
        self.draft.clear();
        self.announced = None;
        let is_begun = self.messages.back().is_some_and(|last| last.end.is_none());
        if is_begun && !self.in_message {
            self.messages.pop_back();
            self.messages_begun -= 1;
        }
    }

    /// The message that is begun next has so many bytes.
    pub fn announce(&mut self, bytes: u64) {
        if self.end_waits || self.in_message {
            self.announced_after = Some(bytes);
        } else {
            self.announced = Some(bytes);
        }
    }

    /// A message is begun whose first packet is written.
    pub fn is_in_message(&self) -> bool {
        self.in_message
    }

    /// Bytes that are in no packet yet.
    pub fn draft_bytes(&self) -> u64 {
        self.draft.len() as u64
    }

    /// Members no longer in the plan miss what is not stable; of one that is back its ACKs tell.
    pub fn change_members(&mut self, members: &[HostId]) {
        let before = self.members.iter().copied();
        let gone: Vec<HostId> = before.filter(|host| !members.contains(host)).collect();
        for message in &mut self.messages {
            message
                .failed
                .retain(|host, reason| *reason != FailReason::Removed || !members.contains(host));
            for host in &gone {
                message.failed.entry(*host).or_insert(FailReason::Removed);
            }
        }
        self.members = members.to_vec();
        self.tree_route_length = None;
    }

    /// Notes that a living member misses messages, for good; gives those for which that is news.
    pub(super) fn note_failed(&mut self, failure: &Failure) -> Vec<u64> {
        let mut news = Vec::new();
        if !self.members.contains(&failure.host) {
            return news;
        }
        let at = failure.at;
        let concerned = |message: &&mut Message| {
            if failure.is_of_one_message() {
                message.start <= at && message.end.is_none_or(|end| at < end)
            } else {
                message.start < at
            }
        };
        for message in self.messages.iter_mut().filter(concerned) {
            if let Entry::Vacant(place) = message.failed.entry(failure.host) {
                place.insert(failure.reason);
                news.push(message.number);
            }
        }
        news
    }

    /// Of a message that has become stable: who has it, and who does not.
    pub(super) fn outcome(
        &self,
        message: Message,
        host: HostId,
    ) -> (Vec<HostId>, Vec<(HostId, FailReason)>) {
        let others = self
            .members
            .iter()
            .copied()
            .filter(|member| *member != host);
        let confirmed = others.filter(|member| !message.failed.contains_key(member));
        let confirmed = confirmed.collect();
        (confirmed, message.failed.into_iter().collect())
    }

    /// Packets have not come back to this host as they were sent; gives the messages for which that is news.
    pub fn note_unreturned(
        &mut self,
        host: HostId,
        (start, end): (u64, u64),
        reason: FailReason,
    ) -> Vec<u64> {
        let concerned = |message: &&mut Message| {
            message.start < end && message.end.is_none_or(|own| start < own)
        };
        let is_news = |message: &mut Message| {
            let known = message.failed.insert(host, reason);
            known.is_none().then_some(message.number)
        };
        let messages = self.messages.iter_mut().filter(concerned);
        messages.filter_map(is_news).collect()
    }
}
