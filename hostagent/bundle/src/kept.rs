//! Hidden directories: of what is not whole yet, and of what a broken transfer has left for the next one.

use crate::unix::{enter, remove};
use rustix::fs::{Dir, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Names of what is not whole begin with this; locked as long as its program lives.
pub const PARTIAL_PREFIX: &str = ".wormcast-partial-";
/// The same of what stays when its transfer breaks.
pub const KEPT_PREFIX: &str = ".wormcast-kept-";
/// Of these in a directory at most; the oldest go.
pub const KEPT_MAX: usize = 4;
/// They stay no longer.
pub const KEPT_AGE: Duration = Duration::from_secs(7 * 86_400);
/// Hidden names that are tried, should others take them for left behind.
const HIDE_TRIES: usize = 64;

/// A directory under a hidden name, in the one that its entries go to; removed when dropped, unless it is kept.
#[derive(Debug)]
pub(crate) struct Hidden {
    pub(crate) parent: OwnedFd,
    name: CString,
    pub(crate) descriptor: OwnedFd,
    pub(crate) is_kept: bool,
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if !self.is_kept {
            // What cannot be removed now is by whoever finds it.
            let _ = remove(self.parent.as_fd(), &self.name);
        }
    }
}

/// `is_kept`: it stays for the next transfer, until somebody says otherwise.
pub(crate) fn hide(directory: &Path, parent: OwnedFd, is_kept: bool) -> io::Result<Hidden> {
    let prefix = if is_kept { KEPT_PREFIX } else { PARTIAL_PREFIX };
    for _ in 0..HIDE_TRIES {
        let made = tempfile::Builder::new()
            .prefix(prefix)
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
                    is_kept,
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

/// Names of what broken transfers have left in a directory, the newest first. What is locked is none: its program lives.
pub(crate) fn kept(directory: BorrowedFd<'_>) -> io::Result<Vec<CString>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if !name.to_bytes().starts_with(KEPT_PREFIX.as_bytes()) {
            continue;
        }
        let Ok(left) = enter(directory, name.to_bytes()) else {
            continue;
        };
        let locked = rustix::fs::flock(&left, FlockOperation::NonBlockingLockExclusive);
        if locked != Err(Errno::WOULDBLOCK) {
            let about = rustix::fs::fstat(&left)?;
            found.push((about.st_mtime, name.to_owned()));
        }
    }
    found.sort();
    Ok(found.into_iter().rev().map(|(_, name)| name).collect())
}

/// Removes what broken transfers have left in a directory, but for the last [`KEPT_MAX`] that are no older than
/// [`KEPT_AGE`]. How many are gone.
///
/// # Errors
/// What the operating system says.
pub fn trim_kept(directory: &Path, now: SystemTime) -> io::Result<usize> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = rustix::fs::open(directory, flags, Mode::empty())?;
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut gone = 0;
    for (place, name) in kept(parent.as_fd())?.iter().enumerate() {
        let changed = rustix::fs::statat(&parent, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
        let changed = changed.map_or(0, |about| about.st_mtime.max(0) as u64);
        let is_old = now > Duration::from_secs(changed) + KEPT_AGE;
        if (is_old || place >= KEPT_MAX) && remove_left_behind(directory, name)? {
            gone += 1;
        }
    }
    Ok(gone)
}
