//! News of interfaces as the messages of gNMI.

use crate::encoding::Encoding;
use crate::proto::gnmi::{Notification, Path, PathElem, TypedValue, Update};
use crate::reading::Value;
use crate::schema::{KEY, LIST, LIST_AT, Leaf, TOP};

/// A change of one interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct News {
    pub(crate) interface: String,
    /// When it was so, microseconds since the start of 1970.
    pub(crate) unix_us: u64,
    pub(crate) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Leaves and their values; none: it has no value any more.
    Leaves(Vec<(Leaf, Option<Value>)>),
    /// There is no such interface any more.
    Gone,
}

/// What the notifications of an answer have in common.
#[derive(Clone, Debug)]
pub(crate) struct Style {
    pub(crate) encoding: Encoding,
    prefix: Option<Path>,
}

impl Style {
    /// Notifications repeat the target that a request names, and its origin. Their paths
    /// are whole ones, whatever the elements of the prefix were.
    pub(crate) fn new(encoding: Encoding, prefix: Option<&Path>) -> Self {
        let repeated = prefix.map(|prefix| Path {
            origin: prefix.origin.clone(),
            target: prefix.target.clone(),
            ..Path::default()
        });
        Self {
            encoding,
            prefix: repeated.filter(|prefix| *prefix != Path::default()),
        }
    }

    pub(crate) fn notification(&self, unix_us: u64, update: Vec<Update>) -> Notification {
        Notification {
            timestamp: nanoseconds(unix_us),
            prefix: self.prefix.clone(),
            update,
            ..Notification::default()
        }
    }

    pub(crate) fn leaf(&self, interface: &str, leaf: Leaf, value: &Value) -> Update {
        update(path_of(interface, leaf.below()), self.encoding.leaf(value))
    }

    pub(crate) fn notification_of(&self, news: &News) -> Notification {
        let interface = &news.interface;
        let leaves = match &news.what {
            What::Leaves(leaves) => leaves.as_slice(),
            What::Gone => &[],
        };
        let updates = leaves.iter().filter_map(|(leaf, value)| {
            let value = value.as_ref()?;
            Some(self.leaf(interface, *leaf, value))
        });
        let mut notification = self.notification(news.unix_us, updates.collect());
        if news.what == What::Gone {
            notification.delete.push(path_of(interface, &[]));
        }
        let lost = leaves.iter().filter(|(_, value)| value.is_none());
        let lost = lost.map(|(leaf, _)| path_of(interface, leaf.below()));
        notification.delete.extend(lost);
        notification
    }
}

/// An update of what a path leads to.
pub(crate) fn update(path: Path, value: TypedValue) -> Update {
    Update {
        path: Some(path),
        val: Some(value),
        ..Update::default()
    }
}

pub(crate) fn path_of(interface: &str, below: &[&str]) -> Path {
    let mut path = path_above(LIST_AT);
    let mut entry = element(LIST);
    entry.key.insert(KEY.to_owned(), interface.to_owned());
    path.elem.push(entry);
    path.elem.extend(below.iter().map(|name| element(name)));
    path
}

/// The path of the root (0 elements) or of the container of the list (1).
pub(crate) fn path_above(elements: usize) -> Path {
    Path {
        elem: [TOP]
            .iter()
            .take(elements)
            .map(|name| element(name))
            .collect(),
        ..Path::default()
    }
}

fn element(name: &str) -> PathElem {
    PathElem {
        name: name.to_owned(),
        ..PathElem::default()
    }
}

fn nanoseconds(unix_us: u64) -> i64 {
    i64::try_from(unix_us.saturating_mul(1_000)).unwrap_or(i64::MAX)
}
