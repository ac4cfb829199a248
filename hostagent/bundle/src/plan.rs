//! What of an offered list was found here, until the bundle comes.

use crate::find::{open_file, parent};
use crate::kept::Left;
use crate::list::{List, SHA256_BYTES, top_of};
use crate::same::Unchanged;
use rustix::fs::{FileType, Mode, OFlags};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Bytes of a file that are there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    /// In which of the places where its top may be.
    pub(crate) root: usize,
}

impl Piece {
    pub(crate) fn end(&self) -> u64 {
        self.start + self.bytes
    }
}

/// Where tops may be: under names of each, then in what broken transfers have left, all there under their own.
#[derive(Debug)]
pub(crate) struct Roots {
    pub(crate) names: Vec<Vec<Vec<u8>>>,
    pub(crate) left: Vec<Option<Arc<Left>>>,
}

impl Roots {
    /// Of a top.
    pub(crate) fn count(&self, top: usize) -> usize {
        self.names[top].len() + self.left.len()
    }

    pub(crate) fn left(&self, top: usize, root: usize) -> Option<&Arc<Left>> {
        let at = root.checked_sub(self.names[top].len())?;
        self.left.get(at)?.as_ref()
    }

    /// The names that lead to an entry there, and from where.
    fn way<'a>(
        &'a self,
        list: &'a List,
        directory: BorrowedFd<'a>,
        (top, place): (usize, usize),
        root: usize,
    ) -> Option<(BorrowedFd<'a>, Vec<&'a [u8]>)> {
        if let Some(name) = self.names[top].get(root) {
            return Some((directory, list.names_from(place, name)));
        }
        let left = self.left(top, root)?;
        Some((left.descriptor.as_fd(), list.names(place)))
    }

    /// Opens a file there.
    pub(crate) fn open(
        &self,
        list: &List,
        directory: BorrowedFd<'_>,
        entry: (usize, usize),
        root: usize,
    ) -> io::Result<File> {
        let way = self.way(list, directory, entry, root);
        let (start, names) = way.ok_or(io::ErrorKind::NotFound)?;
        open_file(start, &names)
    }
}

/// What is there of a list, as it was found.
#[derive(Debug)]
pub struct Plan {
    /// Of which list it is.
    pub identity: [u8; SHA256_BYTES],
    /// What is lacking, for whoever offered.
    pub answer: Vec<u8>,
    /// Of files that are there in part, by their places in the list.
    pub(crate) pieces: BTreeMap<usize, Vec<Piece>>,
    pub(crate) roots: Roots,
    pub(crate) unchanged: Arc<Unchanged>,
}

impl Plan {
    /// What of a file is there, in order.
    pub(crate) fn pieces(&self, place: usize) -> &[Piece] {
        self.pieces.get(&place).map_or(&[], Vec::as_slice)
    }

    /// Opens the file that has a piece.
    pub(crate) fn open(
        &self,
        list: &List,
        directory: BorrowedFd<'_>,
        entry: (usize, usize),
        piece: &Piece,
    ) -> io::Result<File> {
        self.roots.open(list, directory, entry, piece.root)
    }

    /// What a broken transfer of the same list has left, if all that is there of a file is in that.
    fn left_of(&self, (top, place): (usize, usize)) -> Option<&Arc<Left>> {
        let [first, rest @ ..] = self.pieces(place) else {
            return None;
        };
        let left = self.roots.left(top, first.root)?;
        let is_all = rest.iter().all(|piece| piece.root == first.root);
        (is_all && left.is_of(&self.identity)).then_some(left)
    }

    /// A file that a broken transfer of the same list has left and nobody else uses, to go on with: the directory that it
    /// is in, and it.
    pub(crate) fn left(&self, list: &List, entry: (usize, usize)) -> Option<(OwnedFd, File)> {
        let left = self.left_of(entry)?;
        let names = list.names(entry.1);
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let (within, name) = parent(left.descriptor.as_fd(), &names).ok()?;
        let file = File::from(rustix::fs::openat(&within, name, flags, Mode::empty()).ok()?);
        let about = rustix::fs::fstat(&file).ok()?;
        let is_file = FileType::from_raw_mode(about.st_mode) == FileType::RegularFile;
        (is_file && about.st_nlink == 1 && left.take()).then_some((within, file))
    }

    /// All that broken transfers of the same list have left, as far as there is something of use in it.
    pub(crate) fn all_left(&self) -> Vec<Arc<Left>> {
        let all = self.roots.left.iter().flatten();
        all.filter(|left| left.is_of(&self.identity))
            .cloned()
            .collect()
    }

    /// Bytes and entries that are to be made: not what is there and stays, nor what is gone on with.
    pub(crate) fn room(&self, list: &List) -> (u64, u64) {
        let (mut bytes, mut entries) = (0_u64, 0);
        for (top, place, entry) in top_of(list) {
            if self.unchanged.has(top) {
                continue;
            }
            entries += 1;
            let Some(content) = entry.content() else {
                continue;
            };
            let is_left = !content.sparse && self.left_of((top, place)).is_some();
            let pieces = self.pieces(place).iter().filter(|_| is_left);
            let there: u64 = pieces.map(|piece| piece.bytes).sum();
            bytes = content
                .there_bytes()
                .saturating_sub(there)
                .saturating_add(bytes);
        }
        (bytes, entries)
    }
}
