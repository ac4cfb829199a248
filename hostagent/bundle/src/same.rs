//! Tops of an offered list that are here as they are to be, and need nothing.

use crate::find::{Stamp, attributes_at, count_in, look_at, read_link};
use crate::list::{Attribute, Entry, Kind, List, top_of};
use crate::options::Options;
use crate::read::UnpackError;
use crate::unix::path;
use rustix::fs::{FileType, Mode, Stat};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;

/// Tops that need nothing, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Unchanged {
    tops: BTreeMap<usize, Same>,
}

#[derive(Debug)]
struct Same {
    /// That it has here.
    name: Vec<u8>,
    /// Of its files and directories, by their places in the list.
    stamps: Vec<(usize, Stamp)>,
}

/// With what a list is compared.
pub(crate) struct Comparison<'a> {
    pub(crate) list: &'a List,
    pub(crate) directory: BorrowedFd<'a>,
    pub(crate) options: &'a Options,
    /// What has another mode or time is not as it is to be.
    pub(crate) exact: bool,
    /// Files whose content is right where they are likeliest to be, as they were before and after they were read.
    pub(crate) read: &'a BTreeMap<usize, Stamp>,
}

impl Unchanged {
    /// `names`: those that each top may have, the likeliest first. No name is that of two.
    pub(crate) fn find(comparison: &Comparison<'_>, names: &[Vec<Vec<u8>>]) -> Self {
        let list = comparison.list;
        let (mut tops, mut stamps) = (BTreeMap::new(), BTreeMap::new());
        let mut taken: BTreeSet<&[u8]> = BTreeSet::new();
        for (top, place) in list.tops().enumerate() {
            let name = names.get(top).and_then(|names| names.first());
            let Some(name) = name.filter(|name| !taken.contains(name.as_slice())) else {
                continue;
            };
            if let Some(found) = comparison.same(place, name, &stamps) {
                taken.insert(name);
                stamps.extend(found.iter().copied());
                let (name, stamps) = (name.clone(), found);
                tops.insert(top, Same { name, stamps });
            }
        }
        drop_linked(list, &mut tops);
        Self { tops }
    }

    pub(crate) fn has(&self, top: usize) -> bool {
        self.tops.contains_key(&top)
    }

    /// Their names here.
    pub(crate) fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.tops.values().map(|same| same.name.as_slice())
    }

    /// # Errors
    /// If something is not as it was found.
    pub(crate) fn check(&self, list: &List, directory: BorrowedFd<'_>) -> Result<(), UnpackError> {
        for same in self.tops.values() {
            for (place, before) in &same.stamps {
                let now = look_at(directory, &list.names_from(*place, &same.name));
                if !now.is_ok_and(|about| Stamp::of(&about) == *before) {
                    return Err(UnpackError::Changed(path(&list.names(*place))));
                }
            }
        }
        Ok(())
    }
}

/// One file with names in several tops is one only if all of these stay, or all are made.
fn drop_linked(list: &List, tops: &mut BTreeMap<usize, Same>) {
    let top_of_each: Vec<usize> = top_of(list).map(|(top, ..)| top).collect();
    let mut linked: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (top, _, entry) in top_of(list) {
        if let Some(Kind::Hard(to)) = entry.kind {
            let of = top_of_each[to as usize - 1];
            if of != top {
                linked.entry(top).or_default().push(of);
                linked.entry(of).or_default().push(top);
            }
        }
    }
    let mut made: Vec<usize> = linked.keys().copied().collect();
    made.retain(|top| !tops.contains_key(top));
    while let Some(top) = made.pop() {
        let others = linked.remove(&top).into_iter().flatten();
        made.extend(others.filter(|other| tops.remove(other).is_some()));
    }
}

impl Comparison<'_> {
    /// What a top is known by, if nothing of it is other than it is to be. `others`: stamps of files in tops before it.
    fn same(
        &self,
        first: usize,
        name: &[u8],
        others: &BTreeMap<usize, Stamp>,
    ) -> Option<Vec<(usize, Stamp)>> {
        let mut stamps: BTreeMap<usize, Stamp> = BTreeMap::new();
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        let entries = self.list.entries.iter().enumerate().skip(first);
        for (place, entry) in entries.take_while(|(place, it)| *place == first || it.directory > 0)
        {
            let names = self.list.names_from(place, name);
            let about = look_at(self.directory, &names).ok()?;
            let (is, stamp) = (FileType::from_raw_mode(about.st_mode), Stamp::of(&about));
            let fits = match &entry.kind {
                Some(Kind::Directory(_)) => is == FileType::Directory,
                // It is the very file that was read, and has not changed since.
                Some(Kind::File(content)) => {
                    self.read.get(&place) == Some(&stamp) && stamp.bytes == content.bytes
                }
                Some(Kind::Symbolic(text)) => {
                    is == FileType::Symlink
                        && read_link(self.directory, &names).ok()?.as_bytes() == text
                }
                Some(Kind::Hard(to)) => {
                    let to = *to as usize - 1;
                    let of = stamps.get(&to).or_else(|| others.get(&to))?;
                    of.is_file_of(&stamp)
                }
                None => false,
            };
            if !fits || !self.is_as_asked(entry, &about, &names)? {
                return None;
            }
            if let Some(directory) = (entry.directory as usize).checked_sub(1) {
                *counts.entry(directory).or_default() += 1;
            }
            if entry.is_directory() {
                counts.entry(place).or_default();
            }
            // A change of a link is one of its directory.
            if is != FileType::Symlink {
                stamps.insert(place, stamp);
            }
        }
        for (place, count) in counts {
            let names = self.list.names_from(place, name);
            if count_in(self.directory, &names).ok()? != count {
                return None;
            }
        }
        Some(stamps.into_iter().collect())
    }

    /// Whether it has the owner, extended attributes, permissions and time that it would get. Other names of a file have
    /// its own; permissions and times of links are never looked at, nor times of directories. `None`: nobody can tell.
    fn is_as_asked(&self, entry: &Entry, about: &Stat, names: &[&[u8]]) -> Option<bool> {
        let options = self.options;
        if let Some(Kind::Hard(_)) = entry.kind {
            return Some(true);
        }
        let owner = entry.owner.filter(|_| options.owners);
        if owner.is_some_and(|it| (it.user, it.group) != (about.st_uid, about.st_gid)) {
            return Some(false);
        }
        if let Some(Kind::Symbolic(_)) = entry.kind {
            return Some(true);
        }
        if options.attributes {
            let by_name = |attributes: &[Attribute]| -> BTreeMap<Vec<u8>, Vec<u8>> {
                let all = attributes.iter();
                all.map(|it| (it.name.clone(), it.value.clone())).collect()
            };
            let there = attributes_at(self.directory, names).ok()?;
            if by_name(&there) != by_name(&entry.attributes) {
                return Some(false);
            }
        }
        if !self.exact || !options.preserve {
            return Some(true);
        }
        let mode = options.masked(entry.mode) == Mode::from_raw_mode(about.st_mode & 0o7777);
        let time = (about.st_mtime, about.st_mtime_nsec as i64);
        let wanted = (entry.seconds, entry.nanoseconds.into());
        Some(mode && (entry.is_directory() || time == wanted))
    }
}
