//! What names lead to, no part of a path being a link; and by what a change of it is seen.

use crate::list::Attribute;
use crate::unix::enter;
use rustix::fs::{AtFlags, Dir, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Bytes of all names of extended attributes of a file, and of a value: Linux allows no more.
const ATTRIBUTE_BYTES_MAX: usize = 64 << 10;

/// By what a change of a file or directory is seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    pub(crate) bytes: u64,
    /// Seconds and nanoseconds since 1970: of its content, and of all else.
    times: [i64; 4],
}

impl Stamp {
    pub(crate) fn of(about: &Stat) -> Self {
        Self {
            device: about.st_dev,
            inode: about.st_ino,
            bytes: about.st_size as u64,
            times: [
                about.st_mtime,
                about.st_mtime_nsec as i64,
                about.st_ctime,
                about.st_ctime_nsec as i64,
            ],
        }
    }

    /// Two names of one file.
    pub(crate) fn is_file_of(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// The directory that something is in, and its name there.
pub(crate) fn parent<'a>(
    start: BorrowedFd<'_>,
    names: &[&'a [u8]],
) -> io::Result<(OwnedFd, &'a [u8])> {
    let (last, path) = names.split_last().ok_or(Errno::INVAL)?;
    let mut within = start.try_clone_to_owned()?;
    for name in path {
        within = enter(within.as_fd(), name)?;
    }
    Ok((within, last))
}

pub(crate) fn open_file(start: BorrowedFd<'_>, names: &[&[u8]]) -> io::Result<File> {
    let file = open(start, names)?;
    if !file.metadata()?.is_file() {
        return Err(Errno::INVAL.into());
    }
    Ok(file)
}

pub(crate) fn look_at(start: BorrowedFd<'_>, names: &[&[u8]]) -> io::Result<Stat> {
    let (within, name) = parent(start, names)?;
    let about = rustix::fs::statat(&within, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(about)
}

pub(crate) fn read_link(start: BorrowedFd<'_>, names: &[&[u8]]) -> io::Result<CString> {
    let (within, name) = parent(start, names)?;
    Ok(rustix::fs::readlinkat(&within, name, Vec::new())?)
}

/// How many names a directory has.
pub(crate) fn count_in(start: BorrowedFd<'_>, names: &[&[u8]]) -> io::Result<usize> {
    let (within, name) = parent(start, names)?;
    let mut count = 0;
    for entry in Dir::read_from(enter(within.as_fd(), name)?)? {
        let name = entry?;
        count += usize::from(![c".", c".."].contains(&name.file_name()));
    }
    Ok(count)
}

pub(crate) fn attributes_at(start: BorrowedFd<'_>, names: &[&[u8]]) -> io::Result<Vec<Attribute>> {
    attributes(&open(start, names)?)
}

/// Extended attributes of the class `user` of a file or directory.
pub(crate) fn attributes(file: &File) -> io::Result<Vec<Attribute>> {
    let mut names = vec![0; ATTRIBUTE_BYTES_MAX];
    let length = match rustix::fs::flistxattr(file, &mut names) {
        Ok(length) => length,
        Err(Errno::OPNOTSUPP) => 0,
        Err(error) => return Err(error.into()),
    };
    let mut found = Vec::new();
    let names = names[..length].split(|&byte| byte == 0);
    for name in names.filter(|name| name.starts_with(b"user.")) {
        let mut value = vec![0; ATTRIBUTE_BYTES_MAX];
        let length = rustix::fs::fgetxattr(file, name, &mut value)?;
        value.truncate(length);
        let name = name.to_vec();
        found.push(Attribute { name, value });
    }
    Ok(found)
}

fn open(start: BorrowedFd<'_>, names: &[&[u8]]) -> io::Result<File> {
    let (within, name) = parent(start, names)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(&within, name, flags, Mode::empty())?;
    Ok(File::from(opened))
}
