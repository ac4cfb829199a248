//! Makes files and directories of a bundle, under a hidden name until all is whole.
//!
//! Nothing is written outside of the hidden directory, whatever the list says: names have no slash, each entry is made
//! by the descriptor of its directory, and no link is followed.

use crate::list::{Attribute, Content, Entry, Kind, LIST_BYTES_MAX, List, check_encoded};
use crate::unix::{is_full, path, remove, told};
use prost::Message;
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Gid, Mode, OFlags, RenameFlags, Timespec, Timestamps,
    UTIME_OMIT, Uid, XattrFlags,
};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use wormcast_words::why;

/// Names of what is not whole begin with this; locked as long as its program lives.
pub const PARTIAL_PREFIX: &str = ".wormcast-partial-";
/// Read and written at once.
const PIECE_BYTES: usize = 256 << 10;
/// Hidden names that are tried, should others take them for left behind.
const HIDE_TRIES: usize = 64;

/// What the entries get of what the list says.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The process's, which no permissions go beyond.
    pub umask: u32,
    /// Permissions and times are those of the list.
    pub preserve: bool,
    /// Owners are those of the list.
    pub owners: bool,
    /// Extended attributes are those of the list.
    pub attributes: bool,
    /// All is on the disk before it gets its names.
    pub sync: bool,
}

/// Why nothing was made of it.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// There is less room than it needs.
    #[error("no space left on device{0}")]
    NoSpace(String),
    /// The file system refuses.
    #[error("{}: {}", told(.path), why(.source))]
    Storage { path: PathBuf, source: io::Error },
    /// It is no bundle, or not whole.
    #[error("{0}")]
    Damaged(String),
}

/// All of a bundle, under a hidden name. Dropped: removed, but for what was placed.
#[derive(Debug)]
pub struct Unpacked {
    list: List,
    /// Places in the list of the entries to be named.
    tops: Vec<usize>,
    hidden: Hidden,
    options: Options,
}

/// A directory under a hidden name, in the one that its entries go to; removed when dropped.
#[derive(Debug)]
struct Hidden {
    parent: OwnedFd,
    name: CString,
    descriptor: OwnedFd,
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // What cannot be removed now is by whoever finds it.
        let _ = remove(self.parent.as_fd(), &self.name);
    }
}

/// What a sender says of a bundle before it comes.
#[derive(Clone, Copy, Debug)]
pub struct Announced {
    pub entries: u64,
    /// Of the list.
    pub list_bytes: u64,
    /// Of the list and all contents.
    pub bytes: u64,
}

/// Reads a bundle to its end.
///
/// # Errors
/// [`UnpackError`]; nothing is left behind. What there is no room for is refused once the list is there.
pub fn unpack(
    read: &mut impl Read,
    announced: Announced,
    directory: &Path,
    options: Options,
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
    let refused = |error: io::Error| storage(directory, error);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(directory, flags, Mode::empty());
    let opened = opened.map_err(|error| refused(error.into()))?;
    check_room(&opened, content_bytes, list.entries.len() as u64)?;
    let hidden = hide(directory, opened).map_err(refused)?;
    let mut maker = Maker {
        list: &list,
        options,
        hidden: hidden.descriptor.as_fd(),
        open: Vec::new(),
        piece: vec![0; PIECE_BYTES],
    };
    maker.make(&mut io::BufReader::with_capacity(PIECE_BYTES, read))?;
    if options.sync {
        let synced = rustix::fs::syncfs(&hidden.descriptor);
        synced.map_err(|error| refused(error.into()))?;
    }
    Ok(Unpacked {
        tops: list.tops().collect(),
        list,
        hidden,
        options,
    })
}

impl Unpacked {
    /// Names of the entries to be placed, as the sender has them.
    pub fn tops(&self) -> impl Iterator<Item = &[u8]> {
        let entries = self.tops.iter().map(|&place| &self.list.entries[place]);
        entries.map(|entry| entry.name.as_slice())
    }

    /// How many files, directories and links there are.
    pub fn entries(&self) -> usize {
        self.list.entries.len()
    }

    /// Moves top `index` to its place under `name`. False: the name is taken, and it stays where it is. With
    /// `overwrite` it takes the place of what has that name, if both are directories, or neither is.
    ///
    /// # Errors
    /// What the operating system says; it stays where it is.
    pub fn place(&self, index: usize, name: &Path, overwrite: bool) -> io::Result<bool> {
        let entry = &self.list.entries[self.tops[index]];
        let name = name.as_os_str().as_bytes();
        let taken = self.kind_of(name)?;
        if let (true, Some(is_directory)) = (overwrite, taken) {
            if is_directory != entry.is_directory() {
                let error = if is_directory {
                    Errno::ISDIR
                } else {
                    Errno::NOTDIR
                };
                return Err(error.into());
            }
            return self.replace(entry, name).map(|()| true);
        }
        if taken.is_some() || !self.rename(&entry.name, name)? {
            return Ok(false);
        }
        let finished = self.finish(entry, name);
        if finished.is_err() {
            // Nobody is to find it under its name and take it for whole.
            let (from, to) = (&self.hidden.parent, &self.hidden.descriptor);
            rustix::fs::renameat(from, name, to, entry.name.as_slice())?;
        }
        finished.map(|()| true)
    }

    /// Whether what has a name is a directory; `None`: the name is free.
    fn kind_of(&self, name: &[u8]) -> io::Result<Option<bool>> {
        match rustix::fs::statat(&self.hidden.parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(about) => Ok(Some(
                FileType::from_raw_mode(about.st_mode) == FileType::Directory,
            )),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// False: the name is taken.
    fn rename(&self, from: &[u8], name: &[u8]) -> io::Result<bool> {
        let (hidden, parent) = (&self.hidden.descriptor, &self.hidden.parent);
        match rustix::fs::renameat_with(hidden, from, parent, name, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            // File systems such as NFS know no flags. That the name is free was seen a moment ago.
            Err(Errno::INVAL | Errno::NOSYS) => {
                rustix::fs::renameat(hidden, from, parent, name)?;
                Ok(true)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// What was there goes with the hidden directory.
    fn replace(&self, entry: &Entry, name: &[u8]) -> io::Result<()> {
        if !entry.is_directory() {
            return self.exchange(entry, name);
        }
        // A directory that may not be written cannot be moved.
        let old = enter(self.hidden.parent.as_fd(), name)?;
        let mode = Mode::from_raw_mode(rustix::fs::fstat(&old)?.st_mode);
        let opened = rustix::fs::fchmod(&old, mode | Mode::RWXU);
        let exchanged = self.exchange(entry, name);
        if exchanged.is_err() && opened.is_ok() {
            rustix::fs::fchmod(&old, mode)?;
        }
        exchanged?;
        self.finish(entry, name)
    }

    fn exchange(&self, entry: &Entry, name: &[u8]) -> io::Result<()> {
        let (hidden, parent) = (&self.hidden.descriptor, &self.hidden.parent);
        let from = entry.name.as_slice();
        match rustix::fs::renameat_with(hidden, from, parent, name, RenameFlags::EXCHANGE) {
            Ok(()) => {}
            Err(Errno::INVAL | Errno::NOSYS) => {
                let old = self.free_name()?;
                rustix::fs::renameat(parent, name, hidden, old.as_slice())?;
                if let Err(error) = rustix::fs::renameat(hidden, from, parent, name) {
                    rustix::fs::renameat(hidden, old.as_slice(), parent, name)?;
                    return Err(error.into());
                }
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// A name that nothing in the hidden directory has.
    fn free_name(&self) -> io::Result<Vec<u8>> {
        for number in 0_u64.. {
            let name = format!("{PARTIAL_PREFIX}{number}").into_bytes();
            match rustix::fs::statat(&self.hidden.descriptor, &*name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => return Ok(name),
                found => drop(found?),
            }
        }
        Err(Errno::EXIST.into())
    }

    /// Of a directory: what would have kept it from being moved.
    fn finish(&self, entry: &Entry, name: &[u8]) -> io::Result<()> {
        if !entry.is_directory() {
            return Ok(());
        }
        let directory = enter(self.hidden.parent.as_fd(), name)?;
        self.options.finish_directory(&directory, entry)?;
        if self.options.sync {
            rustix::fs::fsync(&directory)?;
        }
        Ok(())
    }

    /// The names given are on the disk.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn sync(&self) -> io::Result<()> {
        rustix::fs::fsync(&self.hidden.parent)?;
        Ok(())
    }
}

fn read_list(read: &mut impl Read, announced: Announced) -> Result<List, UnpackError> {
    let list_bytes = announced.list_bytes;
    if list_bytes > LIST_BYTES_MAX {
        let text = format!("a list of {list_bytes} bytes; at most {LIST_BYTES_MAX}");
        return Err(UnpackError::Damaged(text));
    }
    let mut encoded = Vec::new();
    read.take(list_bytes)
        .read_to_end(&mut encoded)
        .map_err(cut_short)?;
    if (encoded.len() as u64) < list_bytes {
        return Err(cut_short(io::ErrorKind::UnexpectedEof.into()));
    }
    check_encoded(&encoded, announced.entries).map_err(UnpackError::Damaged)?;
    List::decode(encoded.as_slice())
        .map_err(|error| UnpackError::Damaged(format!("its list is none: {error}")))
}

fn check_room(directory: &OwnedFd, bytes: u64, entries: u64) -> Result<(), UnpackError> {
    let Ok(system) = rustix::fs::fstatvfs(directory) else {
        return Ok(());
    };
    let room = system.f_bavail.saturating_mul(system.f_frsize);
    // Some file systems count neither blocks nor inodes.
    if system.f_blocks > 0 && room < bytes {
        let text = format!(": {bytes} bytes are to come, there is room for {room}");
        return Err(UnpackError::NoSpace(text));
    }
    if system.f_files > 0 && system.f_favail < entries {
        let text = format!(
            ": {entries} files and directories are to come, there is room for {}",
            system.f_favail
        );
        return Err(UnpackError::NoSpace(text));
    }
    Ok(())
}

fn hide(directory: &Path, parent: OwnedFd) -> io::Result<Hidden> {
    for _ in 0..HIDE_TRIES {
        let made = tempfile::Builder::new()
            .prefix(PARTIAL_PREFIX)
            .rand_bytes(8)
            .tempdir_in(directory)?;
        let path = made.keep();
        let name = path.file_name().unwrap_or_default();
        let name = CString::new(name.as_bytes())?;
        let descriptor = enter(parent.as_fd(), name.to_bytes());
        let locked = descriptor.and_then(|descriptor| {
            // Where there are no locks nobody takes it for left behind.
            let locked = rustix::fs::flock(&descriptor, FlockOperation::NonBlockingLockExclusive);
            let is_there = rustix::fs::fstat(&descriptor)?.st_nlink > 0;
            Ok((locked != Err(Errno::WOULDBLOCK) && is_there).then_some(descriptor))
        });
        match locked {
            Ok(Some(descriptor)) => {
                return Ok(Hidden {
                    parent,
                    name,
                    descriptor,
                });
            }
            // Another program has just taken it for one that was left behind.
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Err(Errno::EXIST.into())
}

/// Removes what a program that was killed has left in a directory. False: it lives.
///
/// # Errors
/// What the operating system says.
pub fn remove_left_behind(directory: &Path, name: &CStr) -> io::Result<bool> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = rustix::fs::open(directory, flags, Mode::empty())?;
    let left = enter(parent.as_fd(), name.to_bytes())?;
    let locked = rustix::fs::flock(&left, FlockOperation::NonBlockingLockExclusive);
    if locked == Err(Errno::WOULDBLOCK) {
        return Ok(false);
    }
    locked?;
    remove(parent.as_fd(), name)?;
    Ok(true)
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
    /// Those in each other that lead to what is made now.
    open: Vec<Open>,
    piece: Vec<u8>,
}

impl Maker<'_> {
    fn make(&mut self, read: &mut impl Read) -> Result<(), UnpackError> {
        for (place, entry) in self.list.entries.iter().enumerate() {
            while self
                .open
                .last()
                .is_some_and(|it| it.number != entry.directory)
            {
                self.open.pop();
            }
            let number = place as u32 + 1;
            let made = match &entry.kind {
                Some(Kind::Directory(_)) => self.make_directory(entry, number),
                Some(Kind::File(content)) => self.make_file(entry, content, read)?,
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
        for (place, entry) in self.list.entries.iter().enumerate().rev() {
            if !entry.is_directory() {
                continue;
            }
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
        entry: &Entry,
        content: &Content,
        read: &mut impl Read,
    ) -> Result<io::Result<()>, UnpackError> {
        let mode = if self.options.preserve {
            entry.mode
        } else {
            0o666
        };
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Attributes and owners are set by who may write it.
        let later = self.options.attributes && !entry.attributes.is_empty() || self.options.owners;
        let first = if later { 0o600 } else { mode };
        let name = entry.name.as_slice();
        // The kernel takes the umask off.
        let opened = rustix::fs::openat(self.here(), name, flags, Mode::from_raw_mode(first));
        let file = match opened {
            Ok(descriptor) => File::from(descriptor),
            Err(error) => return Ok(Err(error.into())),
        };
        for run in content.runs() {
            let (mut place, end) = (run.start, run.start + run.bytes);
            while place < end {
                let wanted = self.piece.len().min((end - place) as usize);
                let piece = &mut self.piece[..wanted];
                read.read_exact(piece).map_err(cut_short)?;
                if let Err(error) = file.write_all_at(piece, place) {
                    return Ok(Err(error));
                }
                place += wanted as u64;
            }
        }
        Ok(self.finish_file(&file, entry, content, later.then_some(mode)))
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

impl Options {
    fn finish_directory(&self, directory: &OwnedFd, entry: &Entry) -> io::Result<()> {
        let mode = if self.preserve { entry.mode } else { 0o777 };
        rustix::fs::fchmod(directory, self.masked(mode))?;
        if self.preserve {
            rustix::fs::futimens(directory, &times(entry))?;
        }
        Ok(())
    }

    fn set_attributes(&self, file: BorrowedFd<'_>, attributes: &[Attribute]) -> io::Result<()> {
        if self.attributes {
            for it in attributes {
                let flags = XattrFlags::empty();
                rustix::fs::fsetxattr(file, it.name.as_slice(), &it.value, flags)?;
            }
        }
        Ok(())
    }

    fn set_owner(&self, file: BorrowedFd<'_>, entry: &Entry) -> io::Result<()> {
        if let Some(owner) = entry.owner.filter(|_| self.owners) {
            let (user, group) = (Uid::from_raw(owner.user), Gid::from_raw(owner.group));
            rustix::fs::fchown(file, Some(user), Some(group))?;
        }
        Ok(())
    }

    fn masked(&self, mode: u32) -> Mode {
        Mode::from_raw_mode(mode & !self.umask)
    }
}

fn enter(directory: BorrowedFd<'_>, name: &[u8]) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(directory, name, flags, Mode::empty())?)
}

fn times(entry: &Entry) -> Timestamps {
    let omit = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_OMIT,
    };
    Timestamps {
        last_access: omit,
        last_modification: Timespec {
            tv_sec: entry.seconds,
            tv_nsec: entry.nanoseconds.into(),
        },
    }
}

fn storage(path: &Path, source: io::Error) -> UnpackError {
    if is_full(&source) {
        return UnpackError::NoSpace(String::new());
    }
    let path = path.to_owned();
    UnpackError::Storage { path, source }
}

fn cut_short(error: io::Error) -> UnpackError {
    UnpackError::Damaged(format!("it ends before its list says so ({})", why(&error)))
}
