//! What the operating system refuses, in words, and matching of names.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

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

/// Whether this says that there is no room.
pub(crate) fn is_full(error: &io::Error) -> bool {
    [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded].contains(&error.kind())
}
