//! Digests on their way to controllers (§"DigestEntry"): which are wanted, lists of them,
//! what was sent but not acknowledged.
//!
//! Pure: time is an argument, lists are results.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tonic::Code;

use super::fit::Object;
use super::kind::Kind;
use super::proto::p4::v1::{DigestEntry, Entity, digest_entry::Config, entity};
use super::rejection::Rejection;
use super::schema::Schema;
use wormcast_switch_program::Bits;

pub use super::digest_data::Shape;

/// Most messages in one list, whatever a controller asks for.
pub const LIST_MESSAGES_MAX: usize = 1_024;

/// Most messages of one digest that may wait for an acknowledgement. With more, the oldest
/// list counts as acknowledged.
pub const UNACKNOWLEDGED_MAX: usize = 65_536;

/// The fields of one digest message.
type Fields = Arc<[Bits]>;

/// A list that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    /// Id of the digest in the P4Info.
    pub digest_id: u32,
    /// Tells it from other lists of this digest; counts from 1.
    pub list_id: u64,
    /// Fields of each message, no two the same.
    pub messages: Vec<Fields>,
}

/// What happened to digest messages that were not sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DigestCounts {
    /// No controller had asked for the digest.
    pub disabled: u64,
    /// The same message waits to be sent or acknowledged.
    pub duplicates: u64,
    /// Messages whose acknowledgement was no longer waited for, for want of room.
    pub forgotten: u64,
}

/// All digests that controllers asked for.
#[derive(Debug, Default)]
pub struct Digests {
    wanted: BTreeMap<u32, Digest>,
    /// Configs as they were when a series of writes began.
    before: Option<BTreeMap<u32, Config>>,
    counts: DigestCounts,
}

#[derive(Debug, Default)]
struct Digest {
    config: Config,
    /// Messages that wait to be sent.
    waiting: Vec<Fields>,
    /// When the first of them came.
    since_us: u64,
    lists: u64,
    /// Lists without acknowledgement by id: when they were sent, and their messages.
    sent: BTreeMap<u64, (u64, Vec<Fields>)>,
    /// All messages that wait, to be sent or to be acknowledged.
    known: BTreeSet<Fields>,
}

impl Digest {
    fn list_messages(&self) -> usize {
        match usize::try_from(self.config.max_list_size) {
            Ok(size @ 1..LIST_MESSAGES_MAX) => size,
            _ => LIST_MESSAGES_MAX,
        }
    }

    fn due_us(&self) -> Option<u64> {
        let timeout_us = microseconds(self.config.max_timeout_ns);
        (!self.waiting.is_empty()).then(|| self.since_us.saturating_add(timeout_us))
    }

    fn send(&mut self, digest_id: u32, now_us: u64) -> List {
        let messages = std::mem::take(&mut self.waiting);
        self.lists += 1;
        if self.config.ack_timeout_ns > 0 {
            self.sent.insert(self.lists, (now_us, messages.clone()));
        } else {
            for fields in &messages {
                self.known.remove(fields);
            }
        }
        List {
            digest_id,
            list_id: self.lists,
            messages,
        }
    }

    /// Gives the number of messages.
    fn forget(&mut self, list_id: u64) -> u64 {
        let (_, messages) = self.sent.remove(&list_id).unwrap_or_default();
        for fields in &messages {
            self.known.remove(fields);
        }
        messages.len() as u64
    }

    fn forget_old(&mut self, now_us: u64) {
        let timeout_us = microseconds(self.config.ack_timeout_ns);
        while let Some((&list_id, &(sent_us, _))) = self.sent.first_key_value()
            && sent_us.saturating_add(timeout_us) <= now_us
        {
            self.forget(list_id);
        }
    }
}

/// Rounded up, so that nothing happens too early; configs are not negative.
fn microseconds(nanoseconds: i64) -> u64 {
    u64::try_from(nanoseconds).unwrap_or(0).div_ceil(1_000)
}

impl Digests {
    pub fn write(
        &mut self,
        schema: &Schema,
        kind: Kind,
        entry: &DigestEntry,
    ) -> Result<(), Rejection> {
        let id = entry.digest_id;
        let digest = schema
            .digest(id)
            .ok_or_else(|| schema.absent.rejection(Object::Digest, id))?;
        let what = format!("digest `{}`", digest.name);
        if let Err(reason) = &digest.shape {
            return Err(Rejection::unimplemented(format!("{what}: {reason}")));
        }
        let config = entry.config.unwrap_or_default();
        let checks = [
            ("max_timeout_ns", config.max_timeout_ns),
            ("max_list_size", i64::from(config.max_list_size)),
            ("ack_timeout_ns", config.ack_timeout_ns),
        ];
        if let Some((name, value)) = checks.into_iter().find(|(_, value)| *value < 0) {
            return Err(Rejection::invalid(format!(
                "{what}: {name} {value} is not valid: at least 0"
            )));
        }
        let is_wanted = self.wanted.contains_key(&id);
        match kind {
            Kind::Insert if is_wanted => Err(Rejection::new(
                Code::AlreadyExists,
                format!("{what} is there already; MODIFY it"),
            )),
            Kind::Modify | Kind::Delete if !is_wanted => Err(Rejection::not_found(format!(
                "{what} is not there; INSERT it first"
            ))),
            Kind::Insert | Kind::Modify => {
                self.wanted.entry(id).or_default().config = config;
                Ok(())
            }
            Kind::Delete => {
                self.wanted.remove(&id);
                Ok(())
            }
        }
    }

    /// Entries that a filter matches.
    pub fn read(&self, schema: &Schema, filter: &DigestEntry) -> Result<Vec<Entity>, Rejection> {
        let id = filter.digest_id;
        if id != 0 && schema.digest(id).is_none() && !schema.absent.has(Object::Digest, id) {
            return Err(schema.absent.rejection(Object::Digest, id));
        }
        let found = self.wanted.iter();
        let found = found.filter(|(digest_id, _)| id == 0 || **digest_id == id);
        let entity = |(digest_id, digest): (&u32, &Digest)| Entity {
            entity: Some(entity::Entity::DigestEntry(DigestEntry {
                digest_id: *digest_id,
                config: Some(digest.config),
            })),
        };
        Ok(found.map(entity).collect())
    }

    /// From now on, [`rollback`](Self::rollback) brings back what is configured now.
    pub fn begin(&mut self) {
        let configs = self.wanted.iter();
        self.before = Some(configs.map(|(id, digest)| (*id, digest.config)).collect());
    }

    /// Keeps what was written since [`begin`](Self::begin).
    pub fn commit(&mut self) {
        self.before = None;
    }

    /// Takes back what was written since [`begin`](Self::begin). Messages of a digest that
    /// was deleted in between are lost.
    pub fn rollback(&mut self) {
        let Some(before) = self.before.take() else {
            return;
        };
        self.wanted.retain(|id, _| before.contains_key(id));
        for (id, config) in before {
            self.wanted.entry(id).or_default().config = config;
        }
    }

    /// Takes a message of the data plane; gives the list that it completes.
    pub fn offer(&mut self, digest_id: u32, fields: &[Bits], now_us: u64) -> Option<List> {
        let Some(digest) = self.wanted.get_mut(&digest_id) else {
            self.counts.disabled += 1;
            return None;
        };
        digest.forget_old(now_us);
        let fields: Fields = fields.into();
        if !digest.known.insert(Arc::clone(&fields)) {
            self.counts.duplicates += 1;
            return None;
        }
        while digest.known.len() > UNACKNOWLEDGED_MAX
            && let Some((&oldest, _)) = digest.sent.first_key_value()
        {
            self.counts.forgotten += digest.forget(oldest);
        }
        if digest.waiting.is_empty() {
            digest.since_us = now_us;
        }
        digest.waiting.push(fields);
        let is_due = digest.waiting.len() >= digest.list_messages()
            || digest.due_us().is_some_and(|due_us| due_us <= now_us);
        is_due.then(|| digest.send(digest_id, now_us))
    }

    /// Lists whose first message has waited long enough.
    pub fn poll(&mut self, now_us: u64) -> Vec<List> {
        let mut lists = Vec::new();
        for (&digest_id, digest) in &mut self.wanted {
            if digest.due_us().is_some_and(|due_us| due_us <= now_us) {
                lists.push(digest.send(digest_id, now_us));
            }
        }
        lists
    }

    /// When to [`poll`](Self::poll) next.
    pub fn due_us(&self) -> Option<u64> {
        self.wanted.values().filter_map(Digest::due_us).min()
    }

    /// An acknowledgement: the messages of the list are news again when they come again.
    pub fn acknowledge(&mut self, digest_id: u32, list_id: u64) {
        if let Some(digest) = self.wanted.get_mut(&digest_id) {
            digest.forget(list_id);
        }
    }

    /// Another controller is primary, which has seen none of the lists.
    pub fn forget_sent(&mut self) {
        for digest in self.wanted.values_mut() {
            while let Some((&list_id, _)) = digest.sent.first_key_value() {
                digest.forget(list_id);
            }
        }
    }

    /// What was not sent, and why.
    pub fn counts(&self) -> DigestCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests;
