//! Looks for what of an offered list a receiver has: in the files of those names, and in what broken transfers have left.

use crate::find::Stamp;
use crate::kept::{kept, make_room, own_user, trim};
use crate::list::{Content, Entry, List, SHA256_BYTES, top_of};
use crate::offer::{Unit, encode_answer, identity, units};
use crate::options::Options;
use crate::plan::{Piece, Plan, Roots};
use crate::read::{Announced, UnpackError, cut_short, open_directory, read_list, storage};
use crate::same::{Comparison, Unchanged};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

/// Read at once.
const PIECE_BYTES: usize = 256 << 10;
/// So many tops of a list may be looked for under one name here: each time its file is read.
const LOOKS_MAX: usize = 4;

/// A list that is offered.
#[derive(Debug)]
pub struct Offered {
    list: List,
    units: Vec<Unit>,
    is_over: AtomicBool,
}

impl Offered {
    /// # Errors
    /// [`UnpackError`], if it is none.
    pub fn read(read: &mut impl Read, announced: Announced) -> Result<Self, UnpackError> {
        let list = read_list(read, announced)?;
        let mut more = Vec::new();
        read.take(1).read_to_end(&mut more).map_err(cut_short)?;
        if !more.is_empty() {
            let text = "more content than a list".to_owned();
            return Err(UnpackError::Damaged(text));
        }
        list.check().map_err(UnpackError::Damaged)?;
        let units = units(&list).map_err(UnpackError::Damaged)?;
        let is_over = AtomicBool::new(false);
        Ok(Self {
            list,
            units,
            is_over,
        })
    }

    /// Names of the tops, as the sender has them.
    pub fn tops(&self) -> impl Iterator<Item = &[u8]> {
        let tops = self.list.tops();
        tops.map(|place| self.list.entries[place].name.as_slice())
    }

    /// Which list it is.
    pub fn identity(&self) -> [u8; SHA256_BYTES] {
        identity(&self.list)
    }

    /// What is compared is for nobody any more: [`Self::compare`] ends, now or when it is called.
    pub fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Looks for what of it is in a directory. `names`: those that each top may have there, the likeliest first. What has
    /// another mode or time than the options ask for is not as it is to be, if `exact`.
    ///
    /// # Errors
    /// [`UnpackError`], as of no space for what is to come.
    pub fn compare(
        &self,
        directory: &Path,
        names: Vec<Vec<Vec<u8>>>,
        options: &Options,
        exact: bool,
    ) -> Result<Plan, UnpackError> {
        let opened = open_directory(directory)?;
        let identity = self.identity();
        // What cannot be removed is no reason not to look.
        let _ = trim(opened.as_fd(), SystemTime::now(), Some(&identity));
        let left = kept(opened.as_fd()).map_err(|error| storage(directory, error))?;
        let mut looking = Looking {
            offered: self,
            directory: opened.as_fd(),
            options,
            roots: Roots {
                names: self.bounded(names),
                left: left.into_iter().map(Arc::new).map(Some).collect(),
            },
            pieces: BTreeMap::new(),
            lacking: vec![true; self.units.len()],
            read: BTreeMap::new(),
            piece: vec![0; PIECE_BYTES],
        };
        looking.look();
        if self.is_over.load(Ordering::Relaxed) {
            return Err(UnpackError::Damaged("it was given up".to_owned()));
        }
        looking.leave_unused(&identity);
        let comparison = Comparison {
            list: &self.list,
            directory: opened.as_fd(),
            options,
            exact,
            read: &looking.read,
        };
        let unchanged = Unchanged::find(&comparison, &looking.roots.names);
        let plan = Plan {
            identity,
            answer: encode_answer(&identity, &looking.lacking),
            pieces: looking.pieces,
            roots: looking.roots,
            unchanged: Arc::new(unchanged),
        };
        let (bytes, entries) = plan.room(&self.list);
        make_room(&opened, bytes, entries, Some(&identity))?;
        Ok(plan)
    }

    /// Names of each top, none of them more than [`LOOKS_MAX`] times.
    fn bounded(&self, mut names: Vec<Vec<Vec<u8>>>) -> Vec<Vec<Vec<u8>>> {
        names.resize(self.list.tops().count(), Vec::new());
        let mut looks: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
        for names in &mut names {
            names.retain(|name| {
                let looks = looks.entry(name.clone()).or_default();
                *looks += 1;
                *looks <= LOOKS_MAX
            });
        }
        names
    }
}

struct Looking<'a> {
    offered: &'a Offered,
    directory: BorrowedFd<'a>,
    options: &'a Options,
    roots: Roots,
    pieces: BTreeMap<usize, Vec<Piece>>,
    lacking: Vec<bool>,
    /// Files that are whole where they are likeliest to be.
    read: BTreeMap<usize, Stamp>,
    piece: Vec<u8>,
}

impl Looking<'_> {
    /// Finds all pieces.
    fn look(&mut self) {
        let Offered { list, units, .. } = self.offered;
        let mut next = 0;
        for (top, place, entry) in top_of(list) {
            let Some(content) = entry.content() else {
                continue;
            };
            let first = next;
            while units.get(next).is_some_and(|unit| unit.place == place) {
                next += 1;
            }
            for root in 0..self.roots.count(top) {
                if !self.lacking[first..next].contains(&true) {
                    break;
                }
                let entry = (top, place, entry);
                let stamp = self.look_in(entry, content, first..next, root);
                let is_whole = !self.lacking[first..next].contains(&true);
                if let Some(stamp) = stamp
                    && is_whole
                    && root == 0
                    && !self.roots.names[top].is_empty()
                {
                    self.read.insert(place, stamp);
                }
            }
        }
    }

    /// Looks in one file; what it was known by before and after that, if that is the same.
    fn look_in(
        &mut self,
        (top, place, entry): (usize, usize, &Entry),
        content: &Content,
        range: Range<usize>,
        root: usize,
    ) -> Option<Stamp> {
        let Offered { list, units, .. } = self.offered;
        let opened = self.roots.open(list, self.directory, (top, place), root);
        let file = opened.ok()?;
        let before = Stamp::of(&rustix::fs::fstat(&file).ok()?);
        if self.roots.left(top, root).is_some() {
            let user = file.metadata().ok()?.uid();
            let given = entry.owner.filter(|_| self.options.owners);
            if user != own_user() && given.map(|owner| owner.user) != Some(user) {
                return None;
            }
        }
        let hashes = match content.blocks.as_slice() {
            [] => content.sha256.as_slice(),
            blocks => blocks,
        };
        let hashes = hashes.chunks(SHA256_BYTES);
        for ((at, unit), wanted) in range.clone().zip(&units[range]).zip(hashes) {
            let fits = unit.start + unit.bytes <= before.bytes;
            // Without blocks the whole file is asked for.
            let fits = fits && (!content.blocks.is_empty() || before.bytes == content.bytes);
            if !self.lacking[at] || !fits {
                continue;
            }
            // What cannot be read is not there.
            if self.hash(&file, unit).is_ok_and(|hash| hash == wanted) {
                self.lacking[at] = false;
                let pieces = self.pieces.entry(place).or_default();
                let (start, bytes) = (unit.start, unit.bytes);
                match pieces.last_mut() {
                    Some(last) if last.root == root && last.end() == start => last.bytes += bytes,
                    _ => pieces.push(Piece { start, bytes, root }),
                }
            }
        }
        if let Some(pieces) = self.pieces.get_mut(&place) {
            pieces.sort_by_key(|piece| piece.start);
        }
        let after = Stamp::of(&rustix::fs::fstat(&file).ok()?);
        (before == after).then_some(before)
    }

    fn hash(&mut self, file: &File, unit: &Unit) -> io::Result<[u8; SHA256_BYTES]> {
        let mut hash = Sha256::new();
        let (mut place, end) = (unit.start, unit.start + unit.bytes);
        while place < end {
            if self.offered.is_over.load(Ordering::Relaxed) {
                return Err(io::Error::other("it was given up"));
            }
            let wanted = self.piece.len().min((end - place) as usize);
            let piece = &mut self.piece[..wanted];
            file.read_exact_at(piece, place)?;
            hash.update(&*piece);
            place += wanted as u64;
        }
        Ok(hash.finalize().into())
    }

    /// What broken transfers have left and is of no use is left to others; of this list it is of no use to anybody.
    fn leave_unused(&mut self, identity: &[u8; SHA256_BYTES]) {
        let mut is_used = vec![false; self.roots.left.len()];
        for (top, place, _) in top_of(&self.offered.list) {
            for piece in self.pieces.get(&place).into_iter().flatten() {
                if let Some(at) = piece.root.checked_sub(self.roots.names[top].len()) {
                    is_used[at] = true;
                }
            }
        }
        for (left, is_used) in self.roots.left.iter_mut().zip(is_used) {
            if let Some(unused) = left.take_if(|_| !is_used)
                && unused.is_of(identity)
            {
                let _ = unused.remove(self.directory);
            }
        }
    }
}
