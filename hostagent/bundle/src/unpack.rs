//! Makes files and directories of a bundle, under a hidden name until all is whole.
//!
//! Nothing is written outside of the hidden directory, whatever the list says: names have no slash, each entry is made
//! by the descriptor of its directory, and no link is followed.

use crate::list::{Attribute, Content, Entry, Kind, LIST_BYTES_MAX, List};
use crate::unix::{is_full, path};
use prost::Message;
use rustix::fs::{
    AtFlags, FlockOperation, Gid, Mode, OFlags, RenameFlags, Timespec, Timestamps, UTIME_OMIT, Uid,
    XattrFlags,
};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Names of what is not whole begin with this; locked as long as its program lives.
pub const PARTIAL_PREFIX: &str = ".wormcast-partial-";
/// Read and written at once.
const PIECE_BYTES: usize = 256 << 10;

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
    #[error("{path}: {source}", path = .path.display())]
    Storage { path: PathBuf, source: io::Error },
    /// It is no bundle, or not whole.
    #[error("{0}")]
    Damaged(String),
}

/// All of a bundle, under a hidden name. Dropped: removed.
#[derive(Debug)]
pub struct Unpacked {
    list: List,
    /// Places in the list of the entries to be named.
    tops: Vec<usize>,
    directory: OwnedFd,
    hidden: OwnedFd,
    options: Options,
    /// Removed at last, with whatever was not placed.
    _kept: TempDir,
}

/// Reads a bundle to its end. `list_bytes`: of its list; `bytes`: of all, as its sender said.
///
/// # Errors
/// [`UnpackError`]; nothing is left behind. What there is no room for is refused once the list is there.
pub fn unpack(
    read: &mut impl Read,
    list_bytes: u64,
    bytes: u64,
    directory: &Path,
    options: Options,
) -> Result<Unpacked, UnpackError> {
    let list = read_list(read, list_bytes)?;
    let content_bytes = list.check().map_err(UnpackError::Damaged)?;
    if list_bytes.checked_add(content_bytes) != Some(bytes) {
        let text = format!(
            "its list speaks of {content_bytes} bytes, {bytes} announced with {list_bytes} of the list"
        );
        return Err(UnpackError::Damaged(text));
    }
    let refused = |error: io::Error| storage(directory, error);
    let opened = rustix::fs::open(
        directory,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(|error| refused(error.into()))?;
    check_room(&opened, content_bytes, list.entries.len() as u64)?;
    let kept = hide(directory).map_err(refused)?;
    let hidden = rustix::fs::open(
        kept.path(),
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(|error| refused(error.into()))?;
    // Where there are no locks nobody takes it for left behind.
    let _ = rustix::fs::flock(&hidden, FlockOperation::NonBlockingLockExclusive);
    let mut maker = Maker {
        list: &list,
        options,
        hidden: hidden.as_fd(),
        open: Vec::new(),
        piece: vec![0; PIECE_BYTES],
    };
    maker.make(&mut io::BufReader::with_capacity(PIECE_BYTES, read))?;
    if options.sync {
        rustix::fs::syncfs(&hidden).map_err(|error| refused(error.into()))?;
    }
    Ok(Unpacked {
        tops: list.tops().collect(),
        list,
        directory: opened,
        hidden,
        options,
        _kept: kept,
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
    /// `overwrite` it takes the place of what has that name.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn place(&self, index: usize, name: &Path, overwrite: bool) -> io::Result<bool> {
        let entry = &self.list.entries[self.tops[index]];
        let placed = self.rename(&entry.name, name, overwrite)?;
        if placed && entry.is_directory() {
            let directory = enter(self.directory.as_fd(), name.as_os_str().as_bytes())?;
            self.options.finish_directory(&directory, entry)?;
        }
        Ok(placed)
    }

    fn rename(&self, from: &[u8], name: &Path, overwrite: bool) -> io::Result<bool> {
        let rename =
            |flags| rustix::fs::renameat_with(&self.hidden, from, &self.directory, name, flags);
        if overwrite {
            // What was there goes with the hidden directory.
            match rename(RenameFlags::EXCHANGE) {
                Ok(()) => return Ok(true),
                Err(rustix::io::Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        match rename(RenameFlags::NOREPLACE) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The names given are on the disk.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn sync(&self) -> io::Result<()> {
        rustix::fs::fsync(&self.directory)?;
        Ok(())
    }
}

fn read_list(read: &mut impl Read, list_bytes: u64) -> Result<List, UnpackError> {
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

fn hide(directory: &Path) -> io::Result<TempDir> {
    tempfile::Builder::new()
        .prefix(PARTIAL_PREFIX)
        .rand_bytes(8)
        .tempdir_in(directory)
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
        let mut more = [0];
        if read.read(&mut more).map_err(cut_short)? > 0 {
            let text = "more content than its list speaks of".to_owned();
            return Err(UnpackError::Damaged(text));
        }
        self.open.clear();
        // Only now: what may not be written, or entered, could not be filled. Nor moved: so tops come last of all.
        for (place, entry) in self.list.entries.iter().enumerate().rev() {
            if entry.is_directory() && entry.directory != 0 {
                let directory = self.open_at(place);
                let finished = directory.and_then(|it| self.options.finish_directory(&it, entry));
                finished.map_err(|error| self.failed(place, error))?;
            }
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
        self.set_attributes(directory.as_fd(), &entry.attributes)?;
        self.set_owner(directory.as_fd(), entry)?;
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
    UnpackError::Damaged(format!("it ends before its list says so ({error})"))
}
