//! What a controller attaches to an entry for itself.
//!
//! It means nothing to the switch; it is kept beside the pipeline, which does not know
//! it, and given back with the entry (§"TableEntry": `metadata`, `controller_metadata`).

use std::collections::BTreeMap;

use wormcast_switch_program::FieldMatch;
use wormcast_switch_program::{ActionProfileId, TableId};

/// What was attached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cookie {
    /// `controller_metadata`.
    pub number: u64,
    /// `metadata`.
    pub bytes: Vec<u8>,
    /// Ports were given in the deprecated fields that hold numbers, and are given back so.
    pub ports_by_number: bool,
}

/// Which entry it is attached to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CookieKey {
    /// An entry of a table: its key and priority.
    Entry(TableId, Vec<FieldMatch>, i32),
    /// The default entry of a table.
    Default(TableId),
    Group(u32),
    Session(u32),
    ActionGroup(ActionProfileId, u32),
}

/// All that is attached; entries without any are not in it.
#[derive(Debug, Default)]
pub struct Cookies {
    cookies: BTreeMap<CookieKey, Cookie>,
    /// What was attached before each change since [`begin`](Self::begin).
    before: Option<Vec<(CookieKey, Option<Cookie>)>>,
}

impl Cookies {
    /// Attaches; an empty cookie takes off what was there.
    pub fn set(&mut self, key: CookieKey, cookie: Cookie) {
        let of_change = self.before.is_some().then(|| key.clone());
        let before = if cookie == Cookie::default() {
            self.cookies.remove(&key)
        } else {
            self.cookies.insert(key, cookie)
        };
        if let (Some(changes), Some(key)) = (&mut self.before, of_change) {
            changes.push((key, before));
        }
    }

    /// Whether nothing is attached to anything.
    pub fn is_empty(&self) -> bool {
        self.cookies.is_empty()
    }

    /// From now on, [`rollback`](Self::rollback) brings back what is attached now.
    pub fn begin(&mut self) {
        self.before = Some(Vec::new());
    }

    /// Keeps what was changed since [`begin`](Self::begin).
    pub fn commit(&mut self) {
        self.before = None;
    }

    /// Takes back what was changed since [`begin`](Self::begin).
    pub fn rollback(&mut self) {
        for (key, before) in self.before.take().into_iter().flatten().rev() {
            match before {
                Some(cookie) => self.cookies.insert(key, cookie),
                None => self.cookies.remove(&key),
            };
        }
    }

    pub fn get(&self, key: &CookieKey) -> Cookie {
        self.cookies.get(key).cloned().unwrap_or_default()
    }
}
