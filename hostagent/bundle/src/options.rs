//! What entries get of what the list says: permissions, times, owners, extended attributes.

use crate::list::{Attribute, Entry};
use rustix::fs::{Gid, Mode, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

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

impl Options {
    pub(crate) fn finish_directory(&self, directory: &OwnedFd, entry: &Entry) -> io::Result<()> {
        let mode = if self.preserve { entry.mode } else { 0o777 };
        rustix::fs::fchmod(directory, self.masked(mode))?;
        if self.preserve {
            rustix::fs::futimens(directory, &times(entry))?;
        }
        Ok(())
    }

    pub(crate) fn set_attributes(
        &self,
        file: BorrowedFd<'_>,
        attributes: &[Attribute],
    ) -> io::Result<()> {
        if self.attributes {
            for it in attributes {
                let flags = XattrFlags::empty();
                rustix::fs::fsetxattr(file, it.name.as_slice(), &it.value, flags)?;
            }
        }
        Ok(())
    }

    pub(crate) fn set_owner(&self, file: BorrowedFd<'_>, entry: &Entry) -> io::Result<()> {
        if let Some(owner) = entry.owner.filter(|_| self.owners) {
            let (user, group) = (Uid::from_raw(owner.user), Gid::from_raw(owner.group));
            rustix::fs::fchown(file, Some(user), Some(group))?;
        }
        Ok(())
    }

    pub(crate) fn masked(&self, mode: u32) -> Mode {
        Mode::from_raw_mode(mode & !self.umask)
    }
}

pub(crate) fn times(entry: &Entry) -> Timestamps {
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
