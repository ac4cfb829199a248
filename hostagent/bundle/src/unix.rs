//! Names as text, and matching of them; removal of directories.

use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A path of names.
pub(crate) fn path(names: &[&[u8]]) -> PathBuf {
    names.iter().map(|name| OsStr::from_bytes(name)).collect()
}

/// Whether a path or its last name fits a pattern of the shell (`glob(7)`); `*` and `?` fit no slash.
pub(crate) fn fits(pattern: &CStr, path: &[u8]) -> bool {
    let last = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    [path, last].into_iter().any(|text| {
        CString::new(text).is_ok_and(|text| {
            // SAFETY: both are strings with a 0 at their end, which fnmatch only reads.
            let found =
                unsafe { libc::fnmatch(pattern.as_ptr(), text.as_ptr(), libc::FNM_PATHNAME) };
            found == 0
        })
    })
}

/// Bytes as text that moves no cursor.
pub(crate) fn plain(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    text.chars()
        .map(|it| {
            if it.is_control() {
                char::REPLACEMENT_CHARACTER
            } else {
                it
            }
        })
        .collect()
}

/// A path as text that moves no cursor.
pub(crate) fn told(path: &Path) -> String {
    plain(path.as_os_str().as_bytes())
}

/// Removes a directory with all that is in it, whatever its permissions are. What cannot be removed stays.
pub(crate) fn remove(parent: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(parent, name, flags, Mode::empty()).or_else(|error| {
        if error != Errno::ACCESS {
            return Err(error);
        }
        // The name is that of a directory: opening a link fails otherwise.
        rustix::fs::chmodat(parent, name, Mode::RWXU, AtFlags::empty())?;
        rustix::fs::openat(parent, name, flags, Mode::empty())
    });
    let directory = opened?;
    let _ = rustix::fs::fchmod(&directory, Mode::RWXU);
    let entries = Dir::read_from(&directory)?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        if [c".", c".."].contains(&name) {
            continue;
        }
        let removed = rustix::fs::unlinkat(&directory, name, AtFlags::empty());
        if matches!(removed, Err(Errno::ISDIR | Errno::PERM)) {
            remove(directory.as_fd(), name)?;
        } else {
            removed?;
        }
    }
    rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)?;
    Ok(())
}

/// Whether this says that there is no room.
pub(crate) fn is_full(error: &io::Error) -> bool {
    [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded].contains(&error.kind())
}

/// A directory in another, not by a link.
pub(crate) fn enter(directory: BorrowedFd<'_>, name: &[u8]) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(directory, name, flags, Mode::empty())?)
}
