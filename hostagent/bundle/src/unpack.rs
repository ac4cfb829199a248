//! Makes files and directories of a bundle, under a hidden name until all is whole.
//!
//! Nothing is written outside of the hidden directory, whatever the list says: names have no slash, each entry is made
//! by the descriptor of its directory, and no link is followed.

use crate::kept::{hide, make_room, trim};
use crate::list::{Content, Entry, Kind, List, Run, top_of};
use crate::offer::{check_sparse, identity};
pub use crate::options::Options;
use crate::options::times;
pub use crate::place::Unpacked;
use crate::plan::{Piece, Plan};
pub use crate::read::{Announced, UnpackError};
use crate::read::{cut_short, open_directory, read_list, storage};
use crate::same::Unchanged;
use crate::unix::{enter, path, told};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// Read and written at once.
const PIECE_BYTES: usize = 256 << 10;

/// Reads a bundle to its end. `plans`: what was found here of lists that were offered by its sender; `None`: it has offered
/// none, and nothing is kept.
///
/// # Errors
/// [`UnpackError`]; nothing is left behind, but for the next transfer what came of a list that was offered, if there is
/// room. What there is no room for is refused once the list is there.
pub fn unpack(
    read: &mut impl Read,
    announced: Announced,
    directory: &Path,
    options: Options,
    plans: Option<&[&Plan]>,
) -> Result<Unpacked, UnpackError> {
    let Announced {
        list_bytes, bytes, ..
    } = announced;
    let list = read_list(read, announced)?;
    let content_bytes = list.check().map_err(UnpackError::Damaged)?;
    if list_bytes.checked_add(content_bytes) != Some(bytes) {
        let text = format!(
            "its list speaks of {content_bytes} bytes, {bytes} announced with {list_bytes} of the list"
        );
        return Err(UnpackError::Damaged(text));
    }
    let contents = || list.entries.iter().filter_map(Entry::content);
    let is_offered = plans.is_some() && contents().any(|content| !content.sha256.is_empty());
    let kept_of = is_offered.then(|| identity(&list));
    let mut all = plans.unwrap_or_default().iter();
    let plan = all.find(|plan| Some(plan.identity) == kept_of).copied();
    if plan.is_none() && contents().any(|content| content.partial) {
        let text = "only a part of it comes, and its list was not offered to this receiver";
        return Err(UnpackError::Damaged(text.to_owned()));
    }
    let hashed = contents().filter(|content| content.sparse && !content.sha256.is_empty());
    let hashed = hashed.map(|content| content.bytes);
    check_sparse(hashed.fold(0, u64::saturating_add)).map_err(UnpackError::Damaged)?;
    let refused = |error: io::Error| storage(directory, error);
    let opened = open_directory(directory)?;
    let unchanged = plan.map_or_else(Arc::default, |plan| plan.unchanged.clone());
    // Again before anything is placed: but much may come until then in vain.
    unchanged.check(&list, opened.as_fd())?;
    let whole = || (content_bytes, list.entries.len() as u64);
    let (room, entries) = plan.map_or_else(whole, |plan| plan.room(&list));
    if kept_of.is_some() {
        // What cannot be removed is no reason to keep less.
        let _ = trim(opened.as_fd(), SystemTime::now(), kept_of.as_ref());
    }
    make_room(&opened, room, entries, kept_of.as_ref())?;
    let mut hidden = hide(directory, opened, kept_of.as_ref()).map_err(refused)?;
    let mut maker = Maker {
        list: &list,
        options,
        hidden: hidden.descriptor.as_fd(),
        directory: hidden.parent.as_fd(),
        plan,
        unchanged: &unchanged,
        open: Vec::new(),
        piece: vec![0; PIECE_BYTES],
    };
    let made = maker.make(&mut io::BufReader::with_capacity(PIECE_BYTES, read));
    let synced = made.and_then(|()| {
        let synced = options.sync.then(|| rustix::fs::syncfs(&hidden.descriptor));
        synced
            .unwrap_or(Ok(()))
            .map_err(|error| refused(error.into()))
    });
    if let Err(error) = synced {
        hidden.is_kept &= !matches!(error, UnpackError::NoSpace(_));
        return Err(error);
    }
    let tops = list.tops().enumerate();
    let tops = tops.filter(|(top, _)| !unchanged.has(*top));
    Ok(Unpacked {
        tops: tops.map(|(_, place)| place).collect(),
        list,
        unchanged,
        left: plan.map_or_else(Vec::new, Plan::all_left),
        planned: plan.map(|plan| plan.identity),
        hidden,
        options,
    })
}

/// A directory that is being filled.
struct Open {
    number: u32,
    descriptor: OwnedFd,
}

struct Maker<'a> {
    list: &'a List,
    options: Options,
    hidden: BorrowedFd<'a>,
    /// That the hidden one is in.
    directory: BorrowedFd<'a>,
    plan: Option<&'a Plan>,
    /// Tops that are there already.
    unchanged: &'a Unchanged,
    /// Those in each other that lead to what is made now.
    open: Vec<Open>,
    piece: Vec<u8>,
}

impl Maker<'_> {
    fn make(&mut self, read: &mut impl Read) -> Result<(), UnpackError> {
        let list = self.list;
        for (top, place, entry) in top_of(list) {
            while self
                .open
                .last()
                .is_some_and(|it| it.number != entry.directory)
            {
                self.open.pop();
            }
            if self.unchanged.has(top) {
                self.skip(entry, read)?;
                continue;
            }
            let number = place as u32 + 1;
            let made = match &entry.kind {
                Some(Kind::Directory(_)) => self.make_directory(entry, number),
                Some(Kind::File(content)) => self.make_file((top, place), entry, content, read)?,
                Some(Kind::Symbolic(text)) => self.make_link(entry, text),
                Some(Kind::Hard(to)) => self.make_name(entry, *to as usize - 1),
                None => Ok(()),
            };
            made.map_err(|error| self.failed(place, error))?;
        }
        let mut more = Vec::new();
        read.take(1).read_to_end(&mut more).map_err(cut_short)?;
        if !more.is_empty() {
            let text = "more content than its list speaks of".to_owned();
            return Err(UnpackError::Damaged(text));
        }
        self.open.clear();
        // Only now: what may not be written, or entered, could not be filled. Nor moved: so permissions of tops come
        // last of all.
        let mut directories: Vec<_> = top_of(list).collect();
        directories.retain(|(top, _, it)| it.is_directory() && !self.unchanged.has(*top));
        for (_, place, entry) in directories.into_iter().rev() {
            let finished = self.open_at(place).and_then(|directory| {
                let options = self.options;
                options.set_attributes(directory.as_fd(), &entry.attributes)?;
                options.set_owner(directory.as_fd(), entry)?;
                if entry.directory != 0 {
                    options.finish_directory(&directory, entry)?;
                }
                Ok(())
            });
            finished.map_err(|error| self.failed(place, error))?;
        }
        Ok(())
    }

    /// What others lack comes here too.
    fn skip(&mut self, entry: &Entry, read: &mut impl Read) -> Result<(), UnpackError> {
        let runs = entry.content().into_iter().flat_map(Content::coming);
        let mut left: u64 = runs.map(|run| run.bytes).sum();
        while left > 0 {
            let wanted = self.piece.len().min(left as usize);
            let piece = &mut self.piece[..wanted];
            read.read_exact(piece).map_err(cut_short)?;
            left -= wanted as u64;
        }
        Ok(())
    }

    /// The directory that the next entry is in.
    fn here(&self) -> BorrowedFd<'_> {
        self.open
            .last()
            .map_or(self.hidden, |it| it.descriptor.as_fd())
    }

    fn make_directory(&mut self, entry: &Entry, number: u32) -> io::Result<()> {
        rustix::fs::mkdirat(self.here(), entry.name.as_slice(), Mode::RWXU)?;
        let descriptor = enter(self.here(), &entry.name)?;
        self.open.push(Open { number, descriptor });
        Ok(())
    }

    /// Opens a directory by its names, none of them a link.
    fn open_at(&self, place: usize) -> io::Result<OwnedFd> {
        let mut names = self.list.names(place).into_iter();
        let mut directory = enter(self.hidden, names.next().unwrap_or_default())?;
        for name in names {
            directory = enter(directory.as_fd(), name)?;
        }
        Ok(directory)
    }

    /// The outer error is that of what is read, the inner that of the file system.
    fn make_file(
        &mut self,
        (top, place): (usize, usize),
        entry: &Entry,
        content: &Content,
        read: &mut impl Read,
    ) -> Result<io::Result<()>, UnpackError> {
        let mode = if self.options.preserve {
            entry.mode
        } else {
            0o666
        };
        let opened = self.open_file((top, place), entry, content, mode);
        let (file, is_left, later) = match opened {
            Ok(opened) => opened,
            Err(error) => return Ok(Err(error)),
        };
        let written = if content.partial {
            self.compose((top, place), &file, is_left, content, read)?
        } else {
            self.write_runs(place, &file, content, read)?
        };
        if written.is_err() {
            return Ok(written);
        }
        Ok(self.finish_file(&file, entry, content, later.then_some(mode)))
    }

    /// A new file, or the one that a broken transfer has left; whether it is that, and whether its permissions come later.
    fn open_file(
        &self,
        (top, place): (usize, usize),
        entry: &Entry,
        content: &Content,
        mode: u32,
    ) -> io::Result<(File, bool, bool)> {
        let name = entry.name.as_slice();
        let plan = self.plan.filter(|_| {
            // What was a hole may have bytes there, and attributes nobody knows of.
            content.partial && !content.sparse && !self.options.attributes
        });
        let left = plan.and_then(|plan| plan.left(self.list, (top, place)));
        if let Some((within, file)) = left {
            // What cannot be moved, as out of a directory that may not be written, is copied.
            let moved = file.set_len(content.bytes);
            let moved =
                moved.is_ok() && rustix::fs::renameat(&within, name, self.here(), name).is_ok();
            if moved {
                return Ok((file, true, true));
            }
        }
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Attributes and owners are set by who may write it.
        let later = self.options.attributes && !entry.attributes.is_empty() || self.options.owners;
        let first = if later { 0o600 } else { mode };
        // The kernel takes the umask off.
        let opened = rustix::fs::openat(self.here(), name, flags, Mode::from_raw_mode(first))?;
        Ok((File::from(opened), false, later))
    }

    /// All of a file comes. If its list was offered others have it by the hash there, and nobody has it otherwise.
    fn write_runs(
        &mut self,
        place_in_list: usize,
        file: &File,
        content: &Content,
        read: &mut impl Read,
    ) -> Result<io::Result<()>, UnpackError> {
        let mut hash = (!content.sha256.is_empty()).then(Sha256::new);
        let mut done = 0;
        for run in content.runs() {
            if let Some(hash) = &mut hash {
                add_zeros(hash, run.start - done);
            }
            done = run.end();
            let (mut place, end) = (run.start, run.end());
            while place < end {
                let wanted = self.piece.len().min((end - place) as usize);
                let piece = &mut self.piece[..wanted];
                read.read_exact(piece).map_err(cut_short)?;
                if let Some(hash) = &mut hash {
                    hash.update(&*piece);
                }
                if let Err(error) = file.write_all_at(piece, place) {
                    return Ok(Err(error));
                }
                place += wanted as u64;
            }
        }
        if let Some(mut hash) = hash {
            add_zeros(&mut hash, content.bytes - done);
            if hash.finalize()[..] != content.sha256[..] {
                let path = told(&path(&self.list.names(place_in_list)));
                let text = format!("{path} changed at its sender since its list was made");
                return Err(UnpackError::Damaged(text));
            }
        }
        Ok(Ok(()))
    }

    /// A part of a file comes, the rest is here. Its SHA-256 says whether the whole is right.
    fn compose(
        &mut self,
        (top, place): (usize, usize),
        file: &File,
        is_left: bool,
        content: &Content,
        read: &mut impl Read,
    ) -> Result<io::Result<()>, UnpackError> {
        let changed = || UnpackError::Changed(path(&self.list.names(place)));
        let mut hash = Sha256::new();
        let mut base: Option<(usize, File)> = None;
        let mut done = 0;
        let pieces = self.plan.map_or(&[][..], |plan| plan.pieces(place));
        for run in content.runs() {
            add_zeros(&mut hash, run.start - done);
            let mut at = run.start;
            while at < run.end() {
                let part = next_part(content, pieces, at, run.end()).ok_or_else(changed)?;
                let (is_coming, end) = match part {
                    Part::Coming(end) => (true, end),
                    Part::Here(piece, end) => {
                        let is_open = base.as_ref().is_some_and(|(root, _)| *root == piece.root);
                        if !is_left && !is_open {
                            let plan = self.plan.ok_or_else(changed)?;
                            let opened = plan.open(self.list, self.directory, (top, place), piece);
                            base = Some((piece.root, opened.map_err(|_| changed())?));
                        }
                        (false, end)
                    }
                };
                while at < end {
                    let wanted = self.piece.len().min((end - at) as usize);
                    let piece = &mut self.piece[..wanted];
                    if is_coming {
                        read.read_exact(piece).map_err(cut_short)?;
                    } else {
                        let from = base.as_ref().map_or(file, |(_, base)| base);
                        let found = from.read_exact_at(piece, at);
                        found.map_err(|_| UnpackError::Changed(path(&self.list.names(place))))?;
                    }
                    hash.update(&*piece);
                    if (is_coming || !is_left)
                        && let Err(error) = file.write_all_at(piece, at)
                    {
                        return Ok(Err(error));
                    }
                    at += wanted as u64;
                }
            }
            done = run.end();
        }
        add_zeros(&mut hash, content.bytes - done);
        if hash.finalize()[..] != content.sha256[..] {
            return Err(UnpackError::Changed(path(&self.list.names(place))));
        }
        Ok(Ok(()))
    }

    fn finish_file(
        &self,
        file: &File,
        entry: &Entry,
        content: &Content,
        mode: Option<u32>,
    ) -> io::Result<()> {
        if content.sparse {
            file.set_len(content.bytes)?;
        }
        self.options
            .set_attributes(file.as_fd(), &entry.attributes)?;
        self.options.set_owner(file.as_fd(), entry)?;
        if let Some(mode) = mode {
            rustix::fs::fchmod(file, self.options.masked(mode))?;
        }
        if self.options.preserve {
            rustix::fs::futimens(file, &times(entry))?;
        }
        Ok(())
    }

    fn make_link(&self, entry: &Entry, text: &[u8]) -> io::Result<()> {
        let name = entry.name.as_slice();
        rustix::fs::symlinkat(text, self.here(), name)?;
        if let Some(owner) = entry.owner.filter(|_| self.options.owners) {
            let (user, group) = (Uid::from_raw(owner.user), Gid::from_raw(owner.group));
            let no_follow = AtFlags::SYMLINK_NOFOLLOW;
            rustix::fs::chownat(self.here(), name, Some(user), Some(group), no_follow)?;
        }
        if self.options.preserve {
            let no_follow = AtFlags::SYMLINK_NOFOLLOW;
            rustix::fs::utimensat(self.here(), name, &times(entry), no_follow)?;
        }
        Ok(())
    }

    /// Another name of a file.
    fn make_name(&self, entry: &Entry, to: usize) -> io::Result<()> {
        let of = &self.list.entries[to];
        let directory = match (of.directory as usize).checked_sub(1) {
            Some(place) => Some(self.open_at(place)?),
            None => None,
        };
        let from = directory.as_ref().map_or(self.hidden, AsFd::as_fd);
        let name = entry.name.as_slice();
        rustix::fs::linkat(
            from,
            of.name.as_slice(),
            self.here(),
            name,
            AtFlags::empty(),
        )?;
        Ok(())
    }

    fn failed(&self, place: usize, error: io::Error) -> UnpackError {
        storage(&path(&self.list.names(place)), error)
    }
}

/// Bytes of a file, up to where they end: they come, or are here.
enum Part<'a> {
    Coming(u64),
    Here(&'a Piece, u64),
}

/// From where its bytes at a place are; `None`: from nowhere.
fn next_part<'a>(content: &Content, pieces: &'a [Piece], at: u64, end: u64) -> Option<Part<'a>> {
    let next = content.sent.partition_point(|run| run.end() <= at);
    let next: Option<&Run> = content.sent.get(next);
    if let Some(run) = next.filter(|run| run.start <= at) {
        return Some(Part::Coming(run.end().min(end)));
    }
    let piece = pieces.get(pieces.partition_point(|piece| piece.end() <= at))?;
    let end = next.map_or(end, |run| run.start.min(end));
    (piece.start <= at).then_some(Part::Here(piece, piece.end().min(end)))
}

/// Holes read as zeros.
fn add_zeros(hash: &mut Sha256, mut bytes: u64) {
    const ZEROS: [u8; 4096] = [0; 4096];
    while bytes > 0 {
        let now = (ZEROS.len() as u64).min(bytes);
        hash.update(&ZEROS[..now as usize]);
        bytes -= now;
    }
}
