//! What of an offered list a receiver has: in the files of those names, and in what broken transfers have left.

use crate::kept::kept;
use crate::list::{Content, Entry, Kind, List, SHA256_BYTES};
use crate::offer::{Unit, encode_answer, identity, units};
use crate::place::Options;
use crate::read::{Announced, UnpackError, check_room, cut_short, read_list, storage};
use crate::unix::{enter, path};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Read at once.
const PIECE_BYTES: usize = 256 << 10;

/// A list that is offered.
#[derive(Debug)]
pub struct Offered {
    list: List,
    units: Vec<Unit>,
}

/// Where a top may be already.
#[derive(Clone, Debug)]
struct Root {
    /// In this hidden directory, or in none.
    hidden: Option<CString>,
    name: Vec<u8>,
}

/// Bytes of a file that are there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    root: usize,
}

impl Piece {
    /// In which of the places where its top may be.
    pub(crate) fn root(&self) -> usize {
        self.root
    }

    pub(crate) fn end(&self) -> u64 {
        self.start + self.bytes
    }
}

/// By what a change of a file or directory is seen.
type Stamp = (u64, u64, u64, [i64; 4]);

/// What is there of a list, as it was found.
#[derive(Debug)]
pub struct Plan {
    identity: [u8; SHA256_BYTES],
    /// What is lacking, for whoever offered.
    pub answer: Vec<u8>,
    /// Of files that are there in part, by their places in the list.
    pieces: BTreeMap<usize, Vec<Piece>>,
    /// Of each top, where it may be.
    roots: Vec<Vec<Root>>,
    /// Tops that need nothing, with what their files and directories are known by.
    unchanged: BTreeMap<usize, Vec<(usize, Stamp)>>,
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
        Ok(Self { list, units })
    }

    /// Names of the tops, as the sender has them.
    pub fn tops(&self) -> impl Iterator<Item = &[u8]> {
        let tops = self.list.tops();
        tops.map(|place| self.list.entries[place].name.as_slice())
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
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let refused = |error: io::Error| storage(directory, error);
        let opened = rustix::fs::open(directory, flags, Mode::empty());
        let opened = opened.map_err(|error| refused(error.into()))?;
        let left = kept(opened.as_fd()).map_err(refused)?;
        let tops = self.list.tops().map(|place| &self.list.entries[place].name);
        let mut names = names.into_iter();
        let roots = tops.map(|top| {
            let own = names.next().unwrap_or_default().into_iter();
            let own = own.map(|name| Root { hidden: None, name });
            let left = left.iter().map(|hidden| Root {
                hidden: Some(hidden.clone()),
                name: top.clone(),
            });
            own.chain(left).collect()
        });
        let mut looking = Looking {
            list: &self.list,
            directory: opened.as_fd(),
            roots: roots.collect(),
            pieces: BTreeMap::new(),
            lacking: vec![true; self.units.len()],
            piece: vec![0; PIECE_BYTES],
        };
        let whole = looking.look(&self.units);
        let mut unchanged = BTreeMap::new();
        for (top, place) in self.list.tops().enumerate() {
            if whole[top]
                && let Some(stamps) = looking.same(top, place, options, exact)
            {
                unchanged.insert(top, stamps);
            }
        }
        let plan = Plan {
            identity: identity(&self.list),
            answer: encode_answer(&identity(&self.list), &looking.lacking),
            pieces: looking.pieces,
            roots: looking.roots,
            unchanged,
        };
        let (bytes, entries) = plan.room(&self.list);
        check_room(&opened, bytes, entries)?;
        Ok(plan)
    }
}

/// The top that each entry is in, by places.
pub(crate) fn top_of(list: &List) -> impl Iterator<Item = (usize, usize, &Entry)> {
    let mut top = 0;
    let entries = list.entries.iter().enumerate();
    entries.map(move |(place, entry)| {
        top += usize::from(entry.directory == 0);
        (top - 1, place, entry)
    })
}

struct Looking<'a> {
    list: &'a List,
    directory: BorrowedFd<'a>,
    roots: Vec<Vec<Root>>,
    pieces: BTreeMap<usize, Vec<Piece>>,
    lacking: Vec<bool>,
    piece: Vec<u8>,
}

impl Looking<'_> {
    /// Finds all pieces. Of each top, whether all files of it are where it is likeliest to be.
    fn look(&mut self, units: &[Unit]) -> Vec<bool> {
        let mut whole = vec![true; self.roots.len()];
        let list = self.list;
        let mut next = 0;
        for (top, place, entry) in top_of(list) {
            let Some(content) = entry.content() else {
                continue;
            };
            let first = next;
            while units.get(next).is_some_and(|unit| unit.place == place) {
                next += 1;
            }
            let range = first..next;
            for root in 0..self.roots[top].len() {
                if !self.lacking[range.clone()].contains(&true) {
                    break;
                }
                let found = open(
                    self.directory,
                    &self.roots[top][root],
                    &list.names(place)[1..],
                );
                let length = found.and_then(|file| Ok((file.metadata()?.len(), file)));
                if let Ok((length, file)) = length {
                    whole[top] &= root > 0 || length == content.bytes;
                    self.look_in(&file, length, content, &units[range.clone()], first, root);
                }
                whole[top] &= root > 0 || !self.lacking[range.clone()].contains(&true);
            }
            whole[top] &= !self.lacking[range].contains(&true);
        }
        whole
    }

    fn look_in(
        &mut self,
        file: &File,
        length: u64,
        content: &Content,
        units: &[Unit],
        first: usize,
        root: usize,
    ) {
        let hashes = match content.blocks.as_slice() {
            [] => content.sha256.as_slice(),
            blocks => blocks,
        };
        for ((index, unit), wanted) in units.iter().enumerate().zip(hashes.chunks(SHA256_BYTES)) {
            let fits = unit.start + unit.bytes <= length;
            // Without blocks the whole file is asked for.
            let fits = fits && (!content.blocks.is_empty() || length == content.bytes);
            if !self.lacking[first + index] || !fits {
                continue;
            }
            // What cannot be read is not there.
            if hash(file, unit, &mut self.piece).is_ok_and(|hash| hash == wanted) {
                self.lacking[first + index] = false;
                let pieces = self.pieces.entry(unit.place).or_default();
                let (start, bytes) = (unit.start, unit.bytes);
                match pieces.last_mut() {
                    Some(last) if last.root == root && last.end() == start => last.bytes += bytes,
                    _ => pieces.push(Piece { start, bytes, root }),
                }
            }
        }
        if let Some(place) = units.first().map(|unit| unit.place)
            && let Some(pieces) = self.pieces.get_mut(&place)
        {
            pieces.sort_by_key(|piece| piece.start);
        }
    }

    /// What a top is known by, if where it is likeliest to be nothing is other than it is to be.
    fn same(
        &self,
        top: usize,
        first: usize,
        options: &Options,
        exact: bool,
    ) -> Option<Vec<(usize, Stamp)>> {
        if options.owners || options.attributes {
            return None;
        }
        let root = self.roots[top].first()?;
        if root.hidden.is_some() {
            return None;
        }
        let mut stamps: BTreeMap<usize, Stamp> = BTreeMap::new();
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        let entries = self.list.entries.iter().enumerate().skip(first);
        for (place, entry) in entries.take_while(|(place, it)| *place == first || it.directory > 0)
        {
            let names = &self.list.names(place)[1..];
            let about = look_at(self.directory, root, names).ok()?;
            let is = FileType::from_raw_mode(about.st_mode);
            let fits = match &entry.kind {
                Some(Kind::Directory(_)) => is == FileType::Directory,
                Some(Kind::File(_)) => is == FileType::RegularFile,
                Some(Kind::Symbolic(text)) => {
                    is == FileType::Symlink
                        && read_link(self.directory, root, names).ok()?.as_bytes() == text
                }
                Some(Kind::Hard(to)) => {
                    let of = stamps.get(&(*to as usize - 1))?;
                    (of.0, of.1) == (about.st_dev, about.st_ino)
                }
                None => false,
            };
            if !fits || (exact && !is_exact(entry, &about, options)) {
                return None;
            }
            if let Some(directory) = (entry.directory as usize).checked_sub(1) {
                *counts.entry(directory).or_default() += 1;
            }
            if entry.is_directory() {
                counts.entry(place).or_default();
            }
            if entry.is_directory() || entry.content().is_some() {
                stamps.insert(place, stamp(&about));
            }
        }
        for (place, count) in counts {
            let names = &self.list.names(place)[1..];
            if count_in(self.directory, root, names).ok()? != count {
                return None;
            }
        }
        Some(stamps.into_iter().collect())
    }
}

impl Plan {
    /// Whether it is of the list that says what comes.
    pub(crate) fn is_of(&self, list: &List) -> bool {
        self.identity == identity(list)
    }

    /// Names of what needs nothing, by tops.
    ///
    /// # Errors
    /// If it is not as it was found.
    pub(crate) fn unchanged(
        &self,
        list: &List,
        directory: BorrowedFd<'_>,
    ) -> Result<BTreeMap<usize, Vec<u8>>, UnpackError> {
        let mut names = BTreeMap::new();
        for (&top, stamps) in &self.unchanged {
            let Some(root) = self.roots[top].first() else {
                continue;
            };
            for (place, before) in stamps {
                let now = look_at(directory, root, &list.names(*place)[1..]);
                if !now.is_ok_and(|about| stamp(&about) == *before) {
                    return Err(UnpackError::Changed(path(&list.names(*place))));
                }
            }
            names.insert(top, root.name.clone());
        }
        Ok(names)
    }

    /// What of a file is there, in order.
    pub(crate) fn pieces(&self, place: usize) -> &[Piece] {
        self.pieces.get(&place).map_or(&[], Vec::as_slice)
    }

    /// Opens the file that has a piece.
    pub(crate) fn open(
        &self,
        list: &List,
        directory: BorrowedFd<'_>,
        (top, place): (usize, usize),
        piece: &Piece,
    ) -> io::Result<File> {
        let names = list.names(place);
        open(directory, &self.roots[top][piece.root], &names[1..])
    }

    /// A file that broken transfers have left and nobody else has, to go on with: the directory that it is in, and it.
    pub(crate) fn left(
        &self,
        list: &List,
        directory: BorrowedFd<'_>,
        (top, place): (usize, usize),
    ) -> Option<(OwnedFd, File)> {
        let pieces = self.pieces(place);
        let [first, rest @ ..] = pieces else {
            return None;
        };
        let root = &self.roots[top][first.root];
        if root.hidden.is_none() || rest.iter().any(|piece| piece.root != first.root) {
            return None;
        }
        let names = list.names(place);
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let (within, name) = parent(directory, root, &names[1..]).ok()?;
        let file = File::from(rustix::fs::openat(&within, name, flags, Mode::empty()).ok()?);
        let about = rustix::fs::fstat(&file).ok()?;
        let is_file = FileType::from_raw_mode(about.st_mode) == FileType::RegularFile;
        (is_file && about.st_nlink == 1).then_some((within, file))
    }

    /// Hidden directories that it is looked for in.
    pub(crate) fn hidden(&self) -> Vec<CString> {
        let all = self.roots.first().into_iter().flatten();
        all.filter_map(|root| root.hidden.clone()).collect()
    }

    /// Bytes and entries that are to be made: not what is there and stays, nor what is gone on with.
    pub(crate) fn room(&self, list: &List) -> (u64, u64) {
        let (mut bytes, mut entries) = (0_u64, 0);
        for (top, place, entry) in top_of(list) {
            if self.unchanged.contains_key(&top) {
                continue;
            }
            entries += 1;
            let Some(content) = entry.content() else {
                continue;
            };
            let pieces = self.pieces(place);
            let is_left = |piece: &Piece| {
                self.roots[top][piece.root].hidden.is_some() && piece.root == pieces[0].root
            };
            let there: u64 = pieces.iter().map(|piece| piece.bytes).sum();
            let gone_on_with = !content.sparse && pieces.iter().all(is_left);
            let there = if gone_on_with { there } else { 0 };
            bytes = content
                .there_bytes()
                .saturating_sub(there)
                .saturating_add(bytes);
        }
        (bytes, entries)
    }
}

fn hash(file: &File, unit: &Unit, piece: &mut [u8]) -> io::Result<[u8; SHA256_BYTES]> {
    let mut hash = Sha256::new();
    let (mut place, end) = (unit.start, unit.start + unit.bytes);
    while place < end {
        let wanted = piece.len().min((end - place) as usize);
        file.read_exact_at(&mut piece[..wanted], place)?;
        hash.update(&piece[..wanted]);
        place += wanted as u64;
    }
    Ok(hash.finalize().into())
}

/// The directory that something is in, no part of its path being a link, and its name there.
fn parent<'a>(
    directory: BorrowedFd<'_>,
    root: &'a Root,
    names: &[&'a [u8]],
) -> io::Result<(OwnedFd, &'a [u8])> {
    let mut path: Vec<&[u8]> = Vec::new();
    path.extend(root.hidden.as_ref().map(|it| it.to_bytes()));
    path.push(&root.name);
    path.extend(names);
    let last = path.pop().unwrap_or_default();
    let mut within = directory.try_clone_to_owned()?;
    for name in path {
        within = enter(within.as_fd(), name)?;
    }
    Ok((within, last))
}

fn open(directory: BorrowedFd<'_>, root: &Root, names: &[&[u8]]) -> io::Result<File> {
    let (within, name) = parent(directory, root, names)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(&within, name, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(Errno::INVAL.into());
    }
    Ok(file)
}

fn look_at(directory: BorrowedFd<'_>, root: &Root, names: &[&[u8]]) -> io::Result<Stat> {
    let (within, name) = parent(directory, root, names)?;
    let about = rustix::fs::statat(&within, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(about)
}

fn read_link(directory: BorrowedFd<'_>, root: &Root, names: &[&[u8]]) -> io::Result<CString> {
    let (within, name) = parent(directory, root, names)?;
    Ok(rustix::fs::readlinkat(&within, name, Vec::new())?)
}

fn count_in(directory: BorrowedFd<'_>, root: &Root, names: &[&[u8]]) -> io::Result<usize> {
    let (within, name) = parent(directory, root, names)?;
    let mut count = 0;
    for entry in Dir::read_from(enter(within.as_fd(), name)?)? {
        let name = entry?;
        count += usize::from(![c".", c".."].contains(&name.file_name()));
    }
    Ok(count)
}

fn stamp(about: &Stat) -> Stamp {
    let times = [
        about.st_mtime,
        about.st_mtime_nsec as i64,
        about.st_ctime,
        about.st_ctime_nsec as i64,
    ];
    (about.st_dev, about.st_ino, about.st_size as u64, times)
}

/// Whether permissions and time are as they are to be. Those of links are never looked at, nor times of directories.
fn is_exact(entry: &Entry, about: &Stat, options: &Options) -> bool {
    if !options.preserve || matches!(entry.kind, Some(Kind::Symbolic(_) | Kind::Hard(_))) {
        return true;
    }
    let mode = options.masked(entry.mode) == Mode::from_raw_mode(about.st_mode & 0o7777);
    let time = (about.st_mtime, about.st_mtime_nsec as i64);
    mode && (entry.is_directory() || time == (entry.seconds, entry.nanoseconds.into()))
}
