//! Files of Unix sockets that this process listens on.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use socket2::{Domain, SockAddr, Socket, Type};

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
        remove_stale(path)?;
        let listener = UnixListener::bind(path)?;
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
    let found = fs::metadata(path);
    if !found.is_ok_and(|found| found.file_type().is_socket()) {
        return Ok(()); // nothing there, or something that binding will complain about
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
        assert!(SocketFile::bind(&path).is_err());
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
