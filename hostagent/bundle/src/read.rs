//! Reads the list of a bundle, or of an offer, and refuses what cannot be received.

use crate::list::{LIST_BYTES_MAX, List, check_encoded};
use crate::unix::{is_full, told};
use prost::Message;
use rustix::fs::{Mode, OFlags};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use wormcast_words::why;

/// Why nothing was made of it.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// There is less room than it needs.
    #[error("no space left on device{0}")]
    NoSpace(String),
    /// The file system refuses.
    #[error("{}: {}", told(.path), why(.source))]
    Storage { path: PathBuf, source: io::Error },
    /// What was there when the list was offered is not what is there now.
    #[error("{} changed here since the list came", told(.0))]
    Changed(PathBuf),
    /// It is no bundle, or not whole.
    #[error("{0}")]
    Damaged(String),
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

/// The list, as it is encoded and as what it says.
pub(crate) fn read_list(read: &mut impl Read, announced: Announced) -> Result<List, UnpackError> {
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

pub(crate) fn open_directory(path: &Path) -> Result<OwnedFd, UnpackError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty());
    opened.map_err(|error| storage(path, error.into()))
}

/// Whether a directory has room for so much.
pub(crate) fn check_room(directory: &OwnedFd, bytes: u64, entries: u64) -> Result<(), UnpackError> {
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

pub(crate) fn storage(path: &Path, source: io::Error) -> UnpackError {
    if is_full(&source) {
        return UnpackError::NoSpace(String::new());
    }
    let path = path.to_owned();
    UnpackError::Storage { path, source }
}

pub(crate) fn cut_short(error: io::Error) -> UnpackError {
    UnpackError::Damaged(format!("it ends before its list says so ({})", why(&error)))
}
