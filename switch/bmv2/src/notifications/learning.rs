//! Learning lists: samples gathered until they are sent, and held back until what was sent
//! is acknowledged. Pure: time is an argument, buffers are results.
//!
//! Source: `LearnEngine` of BMv2's `learning.cpp`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use wormcast_switch_dataplane::LearnCounts;

use super::message::Notification;
use crate::nanomsg::MESSAGE_BYTES_MAX;

/// Samples in a buffer unless a controller says otherwise.
const BUFFER_SAMPLES: u32 = 16;

/// How long a sample waits for others unless a controller says otherwise, milliseconds.
const TIMEOUT_MS: u32 = 1_000;

/// Bytes of samples in one buffer: with its head, it has to be a message that subscribers
/// take.
const BUFFER_BYTES_MAX: usize = MESSAGE_BYTES_MAX - 32;

/// Samples of one list that may wait for an acknowledgement. With more, the oldest buffer
/// counts as acknowledged.
pub const UNACKNOWLEDGED_MAX: usize = 65_536;

/// A buffer that is due.
pub type Buffer = Notification;

type Sample = Arc<[u8]>;

/// All lists of a program.
#[derive(Debug, Default)]
pub struct LearnLists {
    lists: BTreeMap<u16, LearnList>,
    counts: LearnCounts,
}

#[derive(Debug)]
struct LearnList {
    /// Samples that make a buffer due.
    buffer_samples: u32,
    /// How long the first sample of a buffer waits; 0: until the buffer is full.
    timeout_ms: u32,
    /// Id of the buffer that is being filled.
    buffer: u64,
    /// Fields of the samples in it.
    data: Vec<u8>,
    /// How many there are.
    samples: u32,
    /// When the first of them came.
    since_us: u64,
    /// Samples without acknowledgement by buffer, that which is being filled among them;
    /// `None` where one was acknowledged alone.
    unacknowledged: BTreeMap<u64, Vec<Option<Sample>>>,
    known: BTreeSet<Sample>,
}

impl Default for LearnList {
    fn default() -> Self {
        Self {
            buffer_samples: BUFFER_SAMPLES,
            timeout_ms: TIMEOUT_MS,
            buffer: 0,
            data: Vec::new(),
            samples: 0,
            since_us: 0,
            unacknowledged: BTreeMap::new(),
            known: BTreeSet::new(),
        }
    }
}

impl LearnList {
    fn due_us(&self) -> Option<u64> {
        let is_timed = self.samples > 0 && self.timeout_ms > 0;
        is_timed.then(|| {
            self.since_us
                .saturating_add(u64::from(self.timeout_ms) * 1_000)
        })
    }

    fn is_full(&self) -> bool {
        self.samples > 0 && self.samples >= self.buffer_samples
    }

    fn take(&mut self, list: u16, counts: &mut LearnCounts) -> Buffer {
        let buffer = self.buffer;
        self.buffer += 1;
        let samples = std::mem::take(&mut self.samples);
        counts.sent += u64::from(samples);
        Buffer::Learned {
            list: i32::from(list),
            buffer,
            samples,
            data: std::mem::take(&mut self.data),
        }
    }

    /// Takes all of a buffer for acknowledged; gives how many samples those were.
    fn forget(&mut self, buffer: u64) -> u64 {
        let samples = self.unacknowledged.remove(&buffer).unwrap_or_default();
        let mut count = 0;
        for sample in samples.into_iter().flatten() {
            self.known.remove(&sample);
            count += 1;
        }
        count
    }
}

impl LearnLists {
    /// The lists with these ids, with nothing in them.
    pub fn new(ids: impl IntoIterator<Item = u16>) -> Self {
        let lists = ids.into_iter().map(|id| (id, LearnList::default()));
        Self {
            lists: lists.collect(),
            counts: LearnCounts::default(),
        }
    }

    /// The lists of another program in the place of these; what was counted stays.
    pub fn replace(&mut self, ids: impl IntoIterator<Item = u16>) {
        let counts = self.counts;
        *self = Self {
            counts,
            ..Self::new(ids)
        };
    }

    /// Empties all lists and counts their buffers from 0 again; sizes and timeouts stay.
    pub fn reset(&mut self) {
        for list in self.lists.values_mut() {
            *list = LearnList {
                buffer_samples: list.buffer_samples,
                timeout_ms: list.timeout_ms,
                ..LearnList::default()
            };
        }
    }

    /// Takes a sample; gives the buffers that it completes: one, or two if it is too long
    /// to go with those before it.
    pub fn offer(&mut self, id: u16, sample: &[u8], now_us: u64) -> Vec<Buffer> {
        let counts = &mut self.counts;
        let Some(list) = self.lists.get_mut(&id) else {
            return Vec::new();
        };
        let sample: Sample = sample.into();
        if !list.known.insert(Arc::clone(&sample)) {
            counts.duplicates += 1;
            return Vec::new();
        }
        let mut due = Vec::new();
        if list.samples > 0 && list.data.len() + sample.len() > BUFFER_BYTES_MAX {
            due.push(list.take(id, counts));
        }
        while list.known.len() > UNACKNOWLEDGED_MAX
            && let Some((&oldest, _)) = list.unacknowledged.first_key_value()
        {
            counts.forgotten += list.forget(oldest);
        }
        if list.samples == 0 {
            list.since_us = now_us;
        }
        list.data.extend_from_slice(&sample);
        list.samples += 1;
        let unacknowledged = list.unacknowledged.entry(list.buffer).or_default();
        unacknowledged.push(Some(sample));
        if list.is_full() || list.due_us().is_some_and(|due_us| due_us <= now_us) {
            due.push(list.take(id, counts));
        }
        due
    }

    /// Buffers whose first sample has waited long enough.
    pub fn poll(&mut self, now_us: u64) -> Vec<Buffer> {
        let mut due = Vec::new();
        for (&id, list) in &mut self.lists {
            if list.due_us().is_some_and(|due_us| due_us <= now_us) {
                due.push(list.take(id, &mut self.counts));
            }
        }
        due
    }

    /// When to [`poll`](Self::poll) next.
    pub fn due_us(&self) -> Option<u64> {
        self.lists.values().filter_map(LearnList::due_us).min()
    }

    /// Samples of a buffer, by their places in it, are news again when they come again.
    /// Places and buffers that are not there are passed over.
    pub fn acknowledge(&mut self, id: u16, buffer: u64, samples: &[i32]) {
        let Some(list) = self.lists.get_mut(&id) else {
            return;
        };
        let Some(unacknowledged) = list.unacknowledged.get_mut(&buffer) else {
            return;
        };
        for &place in samples {
            let place = usize::try_from(place).ok();
            let place = place.and_then(|place| unacknowledged.get_mut(place));
            if let Some(sample) = place.and_then(Option::take) {
                list.known.remove(&sample);
            }
        }
        if unacknowledged.iter().all(Option::is_none) {
            list.unacknowledged.remove(&buffer);
        }
    }

    /// All samples of a buffer are news again when they come again.
    pub fn acknowledge_buffer(&mut self, id: u16, buffer: u64) {
        if let Some(list) = self.lists.get_mut(&id) {
            list.forget(buffer);
        }
    }

    /// How long a sample waits for others, milliseconds; 0: until the buffer is full.
    pub fn set_timeout(&mut self, id: u16, timeout_ms: u32) {
        if let Some(list) = self.lists.get_mut(&id) {
            list.timeout_ms = timeout_ms;
        }
    }

    /// Samples that make a buffer due; gives the one that is due with this.
    pub fn set_buffer_samples(&mut self, id: u16, samples: u32) -> Option<Buffer> {
        let list = self.lists.get_mut(&id)?;
        list.buffer_samples = samples;
        list.is_full().then(|| list.take(id, &mut self.counts))
    }

    pub fn counts(&self) -> LearnCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests;
