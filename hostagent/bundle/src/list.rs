//! The list at the beginning of a bundle, a Protocol Buffers message.

use prost::Message;
use std::collections::BTreeSet;

/// Files, directories and links in a bundle.
pub const ENTRIES_MAX: usize = 1 << 20;
/// Length of an encoded list.
pub const LIST_BYTES_MAX: u64 = 64 << 20;
/// Runs and extended attributes of all entries together.
pub const PARTS_MAX: usize = 1 << 20;
/// Directories in each other. A receiver has so many open at once.
pub const DEPTH_MAX: usize = 128;
/// As long as a name may be (`limits.h`, NAME_MAX).
pub const NAME_BYTES_MAX: usize = 255;
/// The bits of a mode that travel. No file gives the rights of its owner.
pub const MODE_MAX: u32 = 0o777;
/// Files of so many bytes and more are compared by blocks.
pub const BLOCKED_FROM_BYTES: u64 = 1 << 20;
/// Bytes of a block at least.
pub const BLOCK_BYTES_MIN: u64 = 256 << 10;
/// Blocks of all files of a list together, beyond the first of each; blocks are as long as that takes.
pub const BLOCKS_MAX: u64 = 1 << 18;
/// Bytes of all sparse files of an offered list together, holes and all: so many zeros are hashed.
pub const SPARSE_BYTES_MAX: u64 = 1 << 40;
pub const SHA256_BYTES: usize = 32;

/// What a bundle has. The entries of a directory come behind it, before whatever is beside it.
#[derive(Clone, PartialEq, Message)]
pub struct List {
    #[prost(message, repeated, tag = "1")]
    pub entries: Vec<Entry>,
    /// Bytes of a block, in a list that is offered; a power of two.
    #[prost(uint64, tag = "2")]
    pub block_bytes: u64,
}

/// A file, directory or link.
#[derive(Clone, PartialEq, Message)]
pub struct Entry {
    /// Any bytes but `/` and 0.
    #[prost(bytes = "vec", tag = "1")]
    pub name: Vec<u8>,
    /// The directory that it is in, by its number: the first entry is 1. 0: in none of this list.
    #[prost(uint32, tag = "2")]
    pub directory: u32,
    /// Permissions, up to [`MODE_MAX`].
    #[prost(uint32, tag = "3")]
    pub mode: u32,
    /// When it was changed last: seconds since 1970, and nanoseconds.
    #[prost(sint64, tag = "4")]
    pub seconds: i64,
    #[prost(uint32, tag = "5")]
    pub nanoseconds: u32,
    #[prost(message, optional, tag = "6")]
    pub owner: Option<Owner>,
    #[prost(message, repeated, tag = "7")]
    pub attributes: Vec<Attribute>,
    #[prost(oneof = "Kind", tags = "8, 9, 10, 11")]
    pub kind: Option<Kind>,
}

/// What an entry is.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Kind {
    #[prost(message, tag = "8")]
    Directory(Directory),
    #[prost(message, tag = "9")]
    File(Content),
    /// A symbolic link: its text.
    #[prost(bytes, tag = "10")]
    Symbolic(Vec<u8>),
    /// Another name of a file before it, by that one's number.
    #[prost(uint32, tag = "11")]
    Hard(u32),
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct Directory {}

/// How long a file is, and what of it comes.
#[derive(Clone, PartialEq, Message)]
pub struct Content {
    #[prost(uint64, tag = "1")]
    pub bytes: u64,
    /// All but the runs are holes.
    #[prost(bool, tag = "2")]
    pub sparse: bool,
    /// One behind the other.
    #[prost(message, repeated, tag = "3")]
    pub runs: Vec<Run>,
    /// Of the whole file, in a list that is offered, and where only a part comes.
    #[prost(bytes = "vec", tag = "4")]
    pub sha256: Vec<u8>,
    /// SHA-256 of each block, in a list that is offered, of files from [`BLOCKED_FROM_BYTES`] on.
    #[prost(bytes = "vec", tag = "5")]
    pub blocks: Vec<u8>,
    /// Only the runs in `sent` come; receivers have the rest.
    #[prost(bool, tag = "6")]
    pub partial: bool,
    /// One behind the other, each in one of the runs that are there.
    #[prost(message, repeated, tag = "7")]
    pub sent: Vec<Run>,
}

/// Bytes of a sparse file that are there.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Run {
    #[prost(uint64, tag = "1")]
    pub start: u64,
    #[prost(uint64, tag = "2")]
    pub bytes: u64,
}

/// Numbers of user and group.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Owner {
    #[prost(uint32, tag = "1")]
    pub user: u32,
    #[prost(uint32, tag = "2")]
    pub group: u32,
}

/// An extended attribute (`xattr(7)`) of the class `user`.
#[derive(Clone, PartialEq, Message)]
pub struct Attribute {
    #[prost(bytes = "vec", tag = "1")]
    pub name: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

impl Content {
    /// Pieces of the file that come, in order.
    pub fn coming(&self) -> impl Iterator<Item = Run> + '_ {
        let whole = (!self.partial).then(|| self.runs());
        let sent = self.partial.then(|| self.sent.iter().copied());
        whole
            .into_iter()
            .flatten()
            .chain(sent.into_iter().flatten())
    }

    /// Pieces of the file that are there, in order.
    pub fn runs(&self) -> impl Iterator<Item = Run> + '_ {
        let whole = Run {
            start: 0,
            bytes: self.bytes,
        };
        let whole = (!self.sparse).then_some(whole);
        whole.into_iter().chain(self.runs.iter().copied())
    }
}

impl Entry {
    pub fn is_directory(&self) -> bool {
        matches!(self.kind, Some(Kind::Directory(_)))
    }

    /// What comes of it behind the list.
    pub fn content(&self) -> Option<&Content> {
        match &self.kind {
            Some(Kind::File(content)) => Some(content),
            _ => None,
        }
    }
}

impl List {
    /// Bytes of all contents that come.
    ///
    /// # Errors
    /// What of the list is wrong, so that nothing can be made of it.
    pub fn check(&self) -> Result<u64, String> {
        let parts = |entry: &Entry| {
            let runs = entry.content().map_or(0, |content| content.runs.len());
            let sent = entry.content().map_or(0, |content| content.sent.len());
            entry.attributes.len() + runs + sent
        };
        check_counts(self.entries.len(), self.entries.iter().map(parts).sum())?;
        let mut open: Vec<u32> = Vec::new();
        let mut bytes: u64 = 0;
        let mut names = BTreeSet::new();
        for (number, entry) in (1..).zip(&self.entries) {
            let wrong = |what: &str| Err(format!("entry {number} {what}"));
            check_name(&entry.name).map_err(|what| format!("entry {number} {what}"))?;
            // Directories that are done are left for good.
            while open.last().is_some_and(|&last| last != entry.directory) {
                open.pop();
            }
            if open.last().copied().unwrap_or_default() != entry.directory {
                return wrong("is in a directory that is none, or was left before");
            }
            if !names.insert((entry.directory, entry.name.as_slice())) {
                let name = crate::unix::plain(&entry.name);
                return wrong(&format!(
                    "has the name '{name}' of another in its directory"
                ));
            }
            if entry.mode > MODE_MAX {
                return wrong("has a mode beyond 0777");
            }
            if entry.nanoseconds >= 1_000_000_000 {
                return wrong("has a second of more than 999,999,999 nanoseconds");
            }
            let user = |it: &Attribute| it.name.starts_with(b"user.") && !it.name.contains(&0);
            if !entry.attributes.iter().all(user) {
                return wrong("has an extended attribute that is not of the class user");
            }
            match &entry.kind {
                Some(Kind::Directory(_)) if open.len() == DEPTH_MAX => {
                    return wrong(&format!(
                        "is in more than {DEPTH_MAX} directories in each other"
                    ));
                }
                Some(Kind::Directory(_)) => open.push(number),
                Some(Kind::File(content)) => {
                    let Some(sum) = content.check().and_then(|more| bytes.checked_add(more)) else {
                        return wrong("has content out of bounds");
                    };
                    bytes = sum;
                }
                // What a path leads to is sent. A name that leads elsewhere would have whoever uses it go there.
                Some(Kind::Symbolic(_)) if entry.directory == 0 => {
                    return wrong("is a symbolic link that is in no directory");
                }
                Some(Kind::Symbolic(text)) => {
                    if text.is_empty() || text.contains(&0) {
                        return wrong("is a symbolic link to nowhere");
                    }
                }
                Some(Kind::Hard(to)) => {
                    let at = (*to as usize).checked_sub(1);
                    let before = at.filter(|_| *to < number);
                    if before.and_then(|at| self.entries[at].content()).is_none() {
                        return wrong("is another name of no file before it");
                    }
                }
                None => return wrong("is of an unknown kind"),
            }
        }
        Ok(bytes)
    }

    /// Entries that are in no directory of the list, by their places.
    pub fn tops(&self) -> impl Iterator<Item = usize> + '_ {
        let entries = self.entries.iter().enumerate();
        entries
            .filter(|(_, entry)| entry.directory == 0)
            .map(|(place, _)| place)
    }

    /// The names that lead to an entry, from its top.
    pub fn names(&self, place: usize) -> Vec<&[u8]> {
        let mut names = vec![self.entries[place].name.as_slice()];
        let mut directory = self.entries[place].directory;
        while let Some(at) = (directory as usize).checked_sub(1) {
            names.push(&self.entries[at].name);
            directory = self.entries[at].directory;
        }
        names.reverse();
        names
    }

    /// The same, where its top has another name.
    pub(crate) fn names_from<'a>(&'a self, place: usize, top: &'a [u8]) -> Vec<&'a [u8]> {
        let mut names = self.names(place);
        names[0] = top;
        names
    }
}

/// All entries, each with the number of the top that it is in and its own place.
pub(crate) fn top_of(list: &List) -> impl Iterator<Item = (usize, usize, &Entry)> {
    let mut top = 0;
    let entries = list.entries.iter().enumerate();
    entries.map(move |(place, entry)| {
        top += usize::from(entry.directory == 0);
        (top - 1, place, entry)
    })
}

impl Content {
    /// Bytes that come; `None` if its runs are not in it, or not in order.
    fn check(&self) -> Option<u64> {
        let there = if self.sparse {
            sum_runs(&self.runs, self.bytes)?
        } else {
            self.runs.is_empty().then_some(self.bytes)?
        };
        if !self.partial {
            return self.sent.is_empty().then_some(there);
        }
        let sum = sum_runs(&self.sent, self.bytes)?;
        let mut there = self.runs().peekable();
        for sent in &self.sent {
            while there.next_if(|run| run.end() <= sent.start).is_some() {}
            let within = there.peek().filter(|run| run.start <= sent.start);
            within.filter(|run| sent.end() <= run.end())?;
        }
        (self.sha256.len() == SHA256_BYTES).then_some(sum)
    }

    /// Bytes that are there once all of it is.
    pub fn there_bytes(&self) -> u64 {
        let bytes = self.runs().map(|run| run.bytes);
        bytes.fold(0, u64::saturating_add)
    }
}

impl Run {
    /// Behind its last byte.
    pub fn end(&self) -> u64 {
        self.start + self.bytes
    }
}

/// Bytes of runs; `None` if they are not in a file of so many bytes, or not in order.
fn sum_runs(runs: &[Run], bytes: u64) -> Option<u64> {
    let (mut end, mut sum) = (0, 0);
    for run in runs {
        if run.start < end || run.bytes == 0 {
            return None;
        }
        end = run.start.checked_add(run.bytes)?;
        sum += run.bytes;
    }
    (end <= bytes).then_some(sum)
}

fn check_counts(entries: usize, parts: usize) -> Result<(), String> {
    if entries == 0 {
        return Err("nothing is in it".to_owned());
    }
    if entries > ENTRIES_MAX {
        return Err(format!(
            "{entries} files and directories; at most {ENTRIES_MAX}"
        ));
    }
    if parts > PARTS_MAX {
        return Err(format!(
            "{parts} runs of sparse files and extended attributes; at most {PARTS_MAX}"
        ));
    }
    Ok(())
}

/// Looks at an encoded list before it is decoded: what is small there may be large in memory.
///
/// # Errors
/// If it has more, or fewer, than so many entries, or too many parts.
pub fn check_encoded(encoded: &[u8], announced: u64) -> Result<(), String> {
    let none = || "its list is none".to_owned();
    let (mut entries, mut parts) = (0, 0);
    let mut rest = encoded;
    while !rest.is_empty() {
        let (tag, entry) = field(&mut rest).ok_or_else(none)?;
        let Some(mut entry) = entry.filter(|_| tag == 1) else {
            continue;
        };
        entries += 1;
        while !entry.is_empty() {
            let (tag, inner) = field(&mut entry).ok_or_else(none)?;
            parts += usize::from(tag == 7);
            let Some(mut content) = inner.filter(|_| tag == 9) else {
                continue;
            };
            while !content.is_empty() {
                let (tag, _) = field(&mut content).ok_or_else(none)?;
                parts += usize::from(tag == 3 || tag == 7);
            }
        }
    }
    check_counts(entries, parts)?;
    if entries as u64 != announced {
        return Err(format!(
            "its list has {entries} entries, {announced} announced"
        ));
    }
    Ok(())
}

/// The next field of a message: its number, and its bytes if it has a length.
fn field<'a>(rest: &mut &'a [u8]) -> Option<(u64, Option<&'a [u8]>)> {
    let key = varint(rest)?;
    let length = match key & 7 {
        0 => {
            varint(rest)?;
            return Some((key >> 3, None));
        }
        1 => 8,
        2 => usize::try_from(varint(rest)?).ok()?,
        5 => 4,
        _ => return None,
    };
    let (bytes, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some((key >> 3, (key & 7 == 2).then_some(bytes)))
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    prost::encoding::decode_varint(rest).ok()
}

/// Whether a name is one, and stays in its directory.
pub fn check_name(name: &[u8]) -> Result<(), String> {
    let shown = crate::unix::plain(name);
    if name.is_empty() || name == b"." || name == b".." {
        return Err(format!("has the name '{shown}', which is none"));
    }
    if name.contains(&b'/') || name.contains(&0) {
        return Err(format!("has the name '{shown}', with a slash or a 0 in it"));
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(format!(
            "has a name of {} bytes; at most {NAME_BYTES_MAX}",
            name.len()
        ));
    }
    Ok(())
}
