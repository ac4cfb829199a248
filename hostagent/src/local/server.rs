//! The listening socket of the local API.

use super::connection::serve_connection;
use super::facts::AgentFacts;
use crate::dataplane::DataPlaneHandle;
use crate::directory::SOCKET_PATH_BYTES_MAX;
use socket2::{Domain, SockAddr, Socket, Type};
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::UnixListener;
use wormcast_agent_core::clients::{ConnectionId, limits::CONNECTIONS_MAX};

const LISTEN_BACKLOG: i32 = 64;

/// Mode of the socket's file: who may connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketMode(u32);

impl SocketMode {
    /// The user that runs the agent, and nobody else.
    pub const OWNER_ALONE: Self = Self(0o600);
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
            .filter(|mode| is_octal && mode & Self::OWNER_ALONE.0 == Self::OWNER_ALONE.0)
            .map(Self)
            .ok_or_else(|| {
                format!(
                    "{text:?} is not usable; possible: 0600 (the owner), 0660 (a group too), \
                     0666 (everyone)"
                )
            })
    }
}

/// Why the local API cannot be offered.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The path does not fit into a socket address.
    #[error("socket path {} has {} bytes; at most {SOCKET_PATH_BYTES_MAX}", path.display(), path.as_os_str().len())]
    PathTooLong { path: PathBuf },
    /// Another agent answers there.
    #[error("another agent is serving {}; give this one its own --socket", path.display())]
    InUse { path: PathBuf },
    /// Something that is not a socket is there.
    #[error("{} exists and is not a socket; remove it or choose another --socket", path.display())]
    NotASocket { path: PathBuf },
    #[error("cannot {step} {}: {source}", path.display())]
    System {
        step: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

/// The local API, listening. Dropping it removes the socket file.
#[derive(Debug)]
pub struct LocalServer {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of our file: another agent may have replaced it since.
    identity: Option<(u64, u64)>,
}

impl LocalServer {
    /// Listens at `path`, for those whom `mode` of the file lets in. Its directory is made; a
    /// file left by an agent that died is replaced. Call it inside a tokio runtime.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn bind(path: &Path, mode: SocketMode) -> Result<Self, ServerError> {
        let failed = |step| {
            let path = path.to_owned();
            move |source| ServerError::System { step, path, source }
        };
        if path.as_os_str().len() > SOCKET_PATH_BYTES_MAX {
            return Err(ServerError::PathTooLong {
                path: path.to_owned(),
            });
        }
        if let Some(directory) = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
        {
            std::fs::create_dir_all(directory).map_err(failed("make the directory of"))?;
        }
        remove_stale(path)?;
        let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)
            .map_err(failed("make a socket for"))?;
        let address = SockAddr::unix(path).map_err(failed("form the address"))?;
        socket.bind(&address).map_err(failed("bind"))?;
        // Nobody can connect before it listens.
        std::fs::set_permissions(path, Permissions::from_mode(mode.0))
            .map_err(failed("set the mode of"))?;
        socket.listen(LISTEN_BACKLOG).map_err(failed("listen at"))?;
        let listener = std::os::unix::net::UnixListener::from(std::os::fd::OwnedFd::from(socket));
        let listener = UnixListener::from_std(listener).map_err(failed("listen at"))?;
        let identity = std::fs::symlink_metadata(path)
            .ok()
            .map(|data| (data.dev(), data.ino()));
        Ok(Self {
            listener,
            path: path.to_owned(),
            identity,
        })
    }

    /// Serves clients until dropped.
    pub async fn run(&self, dataplane: DataPlaneHandle, facts: Arc<AgentFacts>) {
        let open = Arc::new(AtomicUsize::new(0));
        let mut next_id = 0;
        loop {
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of descriptors, most likely: it passes when a client goes.
                    crate::log::warning!("cannot accept a local client: {error}");
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                    continue;
                }
            };
            let id = ConnectionId(next_id);
            next_id += 1;
            let admitted = open.fetch_add(1, Ordering::Relaxed) < CONNECTIONS_MAX;
            let (dataplane, facts, open) =
                (dataplane.clone(), Arc::clone(&facts), Arc::clone(&open));
            tokio::spawn(async move {
                serve_connection(stream, id, admitted, dataplane, facts).await;
                open.fetch_sub(1, Ordering::Relaxed);
            });
        }
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        let found = std::fs::symlink_metadata(&self.path)
            .ok()
            .map(|data| (data.dev(), data.ino()));
        if found.is_some() && found == self.identity {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn remove_stale(path: &Path) -> Result<(), ServerError> {
    let failed = |step, source| ServerError::System {
        step,
        path: path.to_owned(),
        source,
    };
    let data = match std::fs::symlink_metadata(path) {
        Ok(data) => data,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed("look at", error)),
    };
    if !data.file_type().is_socket() {
        return Err(ServerError::NotASocket {
            path: path.to_owned(),
        });
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Ok(_) => Err(ServerError::InUse {
            path: path.to_owned(),
        }),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            crate::log::info!(
                "{} was left by an agent that is gone; replacing it",
                path.display()
            );
            std::fs::remove_file(path).map_err(|error| failed("remove the stale", error))
        }
        Err(error) => Err(failed("try", error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stale_file_is_replaced_and_a_live_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/er/agent.sock");
        let first = LocalServer::bind(&path, SocketMode::OWNER_ALONE).unwrap();
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert!(matches!(
            LocalServer::bind(&path, SocketMode::OWNER_ALONE),
            Err(ServerError::InUse { .. })
        ));
        drop(first);
        assert!(!path.exists());
        // What a killed agent leaves: a socket file nobody listens at.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let again = LocalServer::bind(&path, SocketMode::OWNER_ALONE).unwrap();
        // A file that is another agent's by now is not ours to remove.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "x").unwrap();
        drop(again);
        assert!(matches!(
            LocalServer::bind(&path, SocketMode::OWNER_ALONE),
            Err(ServerError::NotASocket { .. })
        ));
    }

    #[tokio::test]
    async fn others_are_let_in_only_by_a_mode_that_keeps_the_owner() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("agent.sock");
        let _server = LocalServer::bind(&path, "0666".parse().unwrap()).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o666);
        for bad in [
            "", "0", "60", "0o600", "0400", "1666", "00600", "68", "rw", "+66",
        ] {
            let error = bad.parse::<SocketMode>().unwrap_err();
            assert!(error.contains("0660 (a group too)"), "{error}");
        }
    }

    #[tokio::test]
    async fn a_path_too_long_names_the_bound() {
        let error = LocalServer::bind(
            Path::new(&format!("/tmp/{}", "x".repeat(200))),
            SocketMode::OWNER_ALONE,
        )
        .unwrap_err();
        assert!(
            error.to_string().ends_with("has 205 bytes; at most 107"),
            "{error}"
        );
    }
}
