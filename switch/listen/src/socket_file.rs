//! Files of Unix sockets that this process listens on.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};

use socket2::{Domain, SockAddr, Socket, Type};

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

const OWNER_ALONE: u32 = 0o600;

/// Longest path of a socket: Linux keeps it in 108 bytes with a zero at the end.
const PATH_BYTES_MAX: usize = 107;

/// That of the process: who may connect is decided once, for all sockets it makes.
static MODE: AtomicU32 = AtomicU32::new(OWNER_ALONE);

/// Mode of a socket's file: who may connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketMode(u32);

impl SocketMode {
    /// The mode of all Unix sockets that this process makes from now on; before, only the owner
    /// may connect.
    pub fn apply(self) {
        MODE.store(self.0, Ordering::Relaxed);
    }
}

impl FromStr for SocketMode {
    type Err = String;

    /// Three octal digits, with or without a 0 before them; the owner keeps its access.
    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix('0').filter(|rest| rest.len() == 3);
        let digits = digits.unwrap_or(text);
        let is_octal =
            digits.len() == 3 && digits.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
        u32::from_str_radix(digits, 8)
            .ok()
            .filter(|mode| is_octal && mode & OWNER_ALONE == OWNER_ALONE)
            .map(Self)
            .ok_or_else(|| {
                format!(
                    "`{text}` is not usable: 0600 (the owner), 0660 (a group too) or 0666 (everyone)"
                )
            })
    }
}

/// The file of a socket, which goes with the value unless another one has taken its place.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode.
    identity: Option<(u64, u64)>,
}

impl SocketFile {
    /// Listens on a path. A file of a socket that nobody listens on, as processes leave it
    /// that were killed, is replaced; any other file stays where it is.
    ///
    /// # Errors
    /// Those of the system; `AddrInUse` if another process listens there.
    pub fn bind(path: &Path) -> io::Result<(UnixListener, Self)> {
        let length = path.as_os_str().len();
        if length > PATH_BYTES_MAX {
            let text = format!("the path has {length} bytes; a Unix socket takes {PATH_BYTES_MAX}");
            return Err(io::Error::new(ErrorKind::InvalidInput, text));
        }
        remove_stale(path)?;
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.bind(&SockAddr::unix(path)?)?;
        // Nobody can connect before it listens.
        fs::set_permissions(path, Permissions::from_mode(MODE.load(Ordering::Relaxed)))?;
        socket.listen(BACKLOG)?;
        let listener = UnixListener::from(OwnedFd::from(socket));
        listener.set_nonblocking(true)?;
        let file = Self {
            path: path.to_owned(),
            identity: identity(path),
        };
        Ok((listener, file))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.identity.is_some() && self.identity == identity(&self.path) {
            // Somebody else may remove it at this moment.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = fs::symlink_metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

fn remove_stale(path: &Path) -> io::Result<()> {
    let Ok(found) = fs::metadata(path) else {
        return Ok(()); // nothing there, or something that binding will complain about
    };
    if !found.file_type().is_socket() {
        return Err(io::Error::new(
            ErrorKind::AddrInUse,
            "there is a file or directory that is no socket; name one that is not there yet",
        ));
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // One that listens may have more connections waiting than it has room for.
    socket.set_nonblocking(true)?;
    match socket.connect(&SockAddr::unix(path)?) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
        Ok(()) | Err(_) => Err(io::Error::new(
            ErrorKind::AddrInUse,
            "another process listens on this socket",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_nobody_listens_on_is_replaced_and_goes_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "as a process leaves it that was killed");
        let (listener, file) = SocketFile::bind(&path).unwrap();
        let error = SocketFile::bind(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse, "{error}");
        drop(listener);
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn it_is_for_its_owner_unless_others_are_let_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let bound = SocketFile::bind(&path).unwrap();
        let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        drop(bound);
        for good in ["0600", "660", "0666", "777"] {
            assert!(good.parse::<SocketMode>().is_ok(), "{good}");
        }
        for bad in [
            "", "0", "60", "0o600", "0400", "066", "1666", "00600", "68", "rw", "+66",
        ] {
            let error = bad.parse::<SocketMode>().unwrap_err();
            assert!(error.contains("0660 (a group too)"), "{error}");
        }
    }

    #[test]
    fn one_that_is_full_is_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        socket.bind(&SockAddr::unix(&path).unwrap()).unwrap();
        socket.listen(0).unwrap();
        let mut waiting = Vec::new();
        for _ in 0..8 {
            let other = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
            other.set_nonblocking(true).unwrap();
            if other.connect(&SockAddr::unix(&path).unwrap()).is_err() {
                break;
            }
            waiting.push(other);
        }
        assert!(waiting.len() < 8, "the socket is full");
        let error = SocketFile::bind(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse, "{error}");
        assert!(path.exists());
    }

    #[test]
    fn other_files_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes");
        fs::write(&path, "text").unwrap();
        let error = SocketFile::bind(&path).unwrap_err().to_string();
        assert!(error.contains("that is no socket"), "{error}");
        let long = folder.path().join("x".repeat(PATH_BYTES_MAX));
        let error = SocketFile::bind(&long).unwrap_err().to_string();
        assert!(error.ends_with("a Unix socket takes 107"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "text");
    }

    #[test]
    fn what_took_its_place_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let (_listener, file) = SocketFile::bind(&path).unwrap();
        fs::rename(&path, folder.path().join("elsewhere")).unwrap();
        fs::write(&path, "text").unwrap();
        drop(file);
        assert!(path.exists());
    }
}
