//! What was made under a hidden name gets its names.

use crate::kept::{Hidden, Left, PARTIAL_PREFIX};
use crate::list::{Entry, List, SHA256_BYTES};
use crate::options::Options;
use crate::read::UnpackError;
use crate::same::Unchanged;
use crate::unix::enter;
use rustix::fs::{AtFlags, FileType, Mode, RenameFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// All of a bundle, under a hidden name. Dropped: removed, but for what was placed.
#[derive(Debug)]
pub struct Unpacked {
    pub(crate) list: List,
    /// Places in the list of the entries to be named.
    pub(crate) tops: Vec<usize>,
    /// Those that were there already, as they are to be.
    pub(crate) unchanged: Arc<Unchanged>,
    /// What broken transfers of its list had left.
    pub(crate) left: Vec<Arc<Left>>,
    /// Of its list, if there was a plan of that.
    pub(crate) planned: Option<[u8; SHA256_BYTES]>,
    pub(crate) hidden: Hidden,
    pub(crate) options: Options,
}

impl Unpacked {
    /// Names of the entries to be placed, as the sender has them.
    pub fn tops(&self) -> impl Iterator<Item = &[u8]> {
        let entries = self.tops.iter().map(|&place| &self.list.entries[place]);
        entries.map(|entry| entry.name.as_slice())
    }

    /// Names of what is there already, and stays: to be asked before the rest is placed, none of which may take these.
    ///
    /// # Errors
    /// If something of it is not as it was when the list came.
    pub fn unchanged(&self) -> Result<Vec<&[u8]>, UnpackError> {
        let directory = self.hidden.parent.as_fd();
        self.unchanged.check(&self.list, directory)?;
        Ok(self.unchanged.names().collect())
    }

    /// Of which list the plan was by which it was made; `None`: by none.
    pub fn planned(&self) -> Option<&[u8; SHA256_BYTES]> {
        self.planned.as_ref()
    }

    /// All has its names: what broken transfers have left of it is for nobody. What cannot be removed now is too old
    /// one day.
    pub fn done(&mut self) {
        self.hidden.is_kept = false;
        for left in self.left.drain(..) {
            let _ = left.remove(self.hidden.parent.as_fd());
        }
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
