//! Hidden directories: of what is not whole yet, and of what a broken transfer has left for the next one.

use crate::list::SHA256_BYTES;
use crate::read::{UnpackError, check_room};
use crate::unix::{enter, remove};
use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, Timespec, Timestamps, UTIME_NOW,
};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::fs::Permissions;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Names of what is not whole begin with this; locked as long as its program lives.
pub const PARTIAL_PREFIX: &str = ".wormcast-partial-";
/// The same of what stays when its transfer breaks. What follows says which list it is of.
pub const KEPT_PREFIX: &str = ".wormcast-kept-";
/// Lists of which something is kept in a directory; the oldest go.
pub const KEPT_MAX: usize = 4;
/// Directories that are kept of one list: each has what no newer one has.
pub const KEPT_TRIES_MAX: usize = 16;
/// They stay no longer.
pub const KEPT_AGE: Duration = Duration::from_secs(7 * 86_400);
/// Hidden names that are tried, should others take them for left behind.
const HIDE_TRIES: usize = 64;
/// `st_blocks` counts these.
const STAT_BLOCK_BYTES: u64 = 512;

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
        if self.is_kept {
            // Its age is that of the break. Where times cannot be set it is that of the transfer.
            let now = Timespec {
                tv_sec: 0,
                tv_nsec: UTIME_NOW,
            };
            let times = Timestamps {
                last_access: now,
                last_modification: now,
            };
            let _ = rustix::fs::futimens(&self.descriptor, &times);
        } else {
            // What cannot be removed now is by whoever finds it.
            let _ = remove(self.parent.as_fd(), &self.name);
        }
    }
}

/// `kept_of`: it stays for the next transfer of this list, until somebody says otherwise.
pub(crate) fn hide(
    directory: &Path,
    parent: OwnedFd,
    kept_of: Option<&[u8; SHA256_BYTES]>,
) -> io::Result<Hidden> {
    let prefix = kept_of.map_or_else(|| PARTIAL_PREFIX.to_owned(), prefix_of);
    for _ in 0..HIDE_TRIES {
        let made = tempfile::Builder::new()
            .prefix(&prefix)
            .rand_bytes(8)
            .permissions(Permissions::from_mode(0o700))
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
                    is_kept: kept_of.is_some(),
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

/// What a broken transfer has left. As long as this is there no other program removes it, or goes on with it.
#[derive(Debug)]
pub(crate) struct Left {
    name: CString,
    pub(crate) descriptor: OwnedFd,
    /// When something was put into it last, in seconds since 1970.
    changed: u64,
}

impl Left {
    pub(crate) fn is_of(&self, identity: &[u8; SHA256_BYTES]) -> bool {
        self.list() == prefix_of(identity).as_bytes()
    }

    /// All tries of one list have the same.
    fn list(&self) -> &[u8] {
        let name = self.name.to_bytes();
        let length = KEPT_PREFIX.len() + 2 * SHA256_BYTES + 1;
        name.get(..length).unwrap_or(name)
    }

    /// Has it for this program alone. False: others use it.
    pub(crate) fn take(&self) -> bool {
        let lock = |operation| rustix::fs::flock(&self.descriptor, operation);
        let is_taken = lock(FlockOperation::NonBlockingLockExclusive) != Err(Errno::WOULDBLOCK);
        if !is_taken {
            // Those that failed to get it alone may have nothing of it.
            let _ = lock(FlockOperation::NonBlockingLockShared);
        }
        is_taken
    }

    /// False: others use it.
    pub(crate) fn remove(&self, parent: BorrowedFd<'_>) -> io::Result<bool> {
        let is_taken = self.take();
        if is_taken {
            remove(parent, &self.name)?;
        }
        Ok(is_taken)
    }
}

fn prefix_of(identity: &[u8; SHA256_BYTES]) -> String {
    let identity = identity.iter().map(|byte| format!("{byte:02x}"));
    format!("{KEPT_PREFIX}{}-", identity.collect::<String>())
}

/// What broken transfers of this user have left in a directory, the newest first. What is locked is none: its program
/// lives.
pub(crate) fn kept(directory: BorrowedFd<'_>) -> io::Result<Vec<Left>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if !name.to_bytes().starts_with(KEPT_PREFIX.as_bytes()) {
            continue;
        }
        let Ok(descriptor) = enter(directory, name.to_bytes()) else {
            continue;
        };
        let about = rustix::fs::fstat(&descriptor)?;
        // Nobody else can have put anything there.
        if about.st_uid != own_user() || about.st_mode & 0o7777 != 0o700 {
            continue;
        }
        let locked = rustix::fs::flock(&descriptor, FlockOperation::NonBlockingLockShared);
        if locked != Err(Errno::WOULDBLOCK) {
            found.push(Left {
                name: name.to_owned(),
                descriptor,
                changed: about.st_mtime.max(0) as u64,
            });
        }
    }
    found.sort_by(|one, other| (other.changed, &other.name).cmp(&(one.changed, &one.name)));
    Ok(found)
}

/// Removes what broken transfers have left in a directory, but for those of the last [`KEPT_MAX`] lists, the last
/// [`KEPT_TRIES_MAX`] of each, that are no older than [`KEPT_AGE`]; and but for what is in use. How many are gone.
///
/// # Errors
/// What the operating system says.
pub fn trim_kept(directory: &Path, now: SystemTime) -> io::Result<usize> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = rustix::fs::open(directory, flags, Mode::empty())?;
    trim(parent.as_fd(), now, None)
}

/// The same; what is of the list `wanted` stays, however old it is.
pub(crate) fn trim(
    parent: BorrowedFd<'_>,
    now: SystemTime,
    wanted: Option<&[u8; SHA256_BYTES]>,
) -> io::Result<usize> {
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let all = kept(parent)?;
    let mut lists: Vec<(&[u8], usize)> = Vec::new();
    let mut gone = 0;
    for left in &all {
        let is_wanted = wanted.is_some_and(|identity| left.is_of(identity));
        let found = lists.iter().position(|(list, _)| *list == left.list());
        let at = found.unwrap_or_else(|| {
            lists.push((left.list(), 0));
            lists.len() - 1
        });
        lists[at].1 += 1;
        let is_old = now > Duration::from_secs(left.changed) + KEPT_AGE;
        let is_too_much = lists[at].1 > KEPT_TRIES_MAX || (!is_wanted && at >= KEPT_MAX);
        if (is_too_much || (!is_wanted && is_old)) && left.remove(parent)? {
            gone += 1;
        }
    }
    Ok(gone)
}

/// Has room for so much, if need be by removing what broken transfers of other lists than `wanted` have left, the oldest
/// first; nothing of that if it would not do.
pub(crate) fn make_room(
    directory: &OwnedFd,
    bytes: u64,
    entries: u64,
    wanted: Option<&[u8; SHA256_BYTES]>,
) -> Result<(), UnpackError> {
    let Err(short) = check_room(directory, bytes, entries) else {
        return Ok(());
    };
    let mut all = kept(directory.as_fd()).unwrap_or_default();
    all.retain(|left| !wanted.is_some_and(|identity| left.is_of(identity)));
    let (mut more_bytes, mut more_entries) = (0, 0);
    for left in &all {
        // What cannot be looked at is not counted on.
        let _ = count(left.descriptor.as_fd(), &mut more_bytes, &mut more_entries);
    }
    let (bytes_then, entries_then) = (
        bytes.saturating_sub(more_bytes),
        entries.saturating_sub(more_entries),
    );
    if check_room(directory, bytes_then, entries_then).is_err() {
        return Err(short);
    }
    for left in all.iter().rev() {
        let is_gone = left.remove(directory.as_fd()).unwrap_or(false);
        if is_gone && check_room(directory, bytes, entries).is_ok() {
            return Ok(());
        }
    }
    Err(short)
}

/// Bytes and entries that are free once a directory is gone.
fn count(directory: BorrowedFd<'_>, bytes: &mut u64, entries: &mut u64) -> io::Result<()> {
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if [c".", c".."].contains(&name) {
            continue;
        }
        let about = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        *entries += 1;
        match FileType::from_raw_mode(about.st_mode) {
            FileType::Directory => {
                count(enter(directory, name.to_bytes())?.as_fd(), bytes, entries)?;
            }
            _ if about.st_nlink == 1 => *bytes += about.st_blocks as u64 * STAT_BLOCK_BYTES,
            _ => {}
        }
    }
    Ok(())
}

pub(crate) fn own_user() -> u32 {
    // SAFETY: it takes nothing, and cannot fail.
    unsafe { libc::geteuid() }
}
