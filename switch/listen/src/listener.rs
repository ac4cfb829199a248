//! Where the server listens.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;
use tokio_stream::{Stream, StreamExt};

use super::patience::{Greeting, Patience, PatientStream};
use super::socket_file::SocketFile;

/// How often a silent client is asked whether it is there.
pub const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// How long it has to answer.
pub const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of a connection that a server takes without having looked at them. A controller may have one connection to
/// many switches, and a process that stood still finds all that was sent meanwhile. h2 ends a connection whose
/// unread small frames come to more than half of this (`data_frame_budget`): with its own window of a megabyte
/// 12,000 packet-outs did.
pub const CONNECTION_WINDOW: u32 = 64 << 20;

/// Connections served at a time; one more waits until one of them ends.
pub const CONNECTIONS_MAX: usize = 256;

/// How long clients may take. One that speaks HTTP/2 says something whenever it is asked whether it
/// is there; the greeting is the first that HTTP/2 or TLS sends.
const PATIENCE: Patience = Patience {
    greeting: Some(Greeting {
        bytes: 24,
        within: Duration::from_secs(10),
    }),
    silence: Some(Duration::from_secs(60)),
    unread: Duration::from_secs(60),
};

/// An address for `--grpc-server-addr`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Host or IP address, and port.
    Tcp(String),
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = String;

    /// `ADDRESS:PORT` or `unix:/path`.
    fn from_str(text: &str) -> Result<Self, String> {
        let error = || {
            format!(
                "`{text}` is not an address: ADDRESS:PORT (like 127.0.0.1:9559 or [::]:9559) \
                 or unix:/path"
            )
        };
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.is_empty() {
                Err(error())
            } else {
                Ok(Self::Unix(path.into()))
            };
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(error)?;
        let is_bare_v6 = host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
        if host.is_empty() || is_bare_v6 || port.parse::<u16>().is_err() {
            return Err(error());
        }
        Ok(Self::Tcp(text.to_owned()))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => f.write_str(address),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A server that listens but does not answer yet.
pub enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

impl Listener {
    /// Starts to listen. The file of a Unix socket that nobody listens on is replaced.
    pub async fn bind(address: &Address) -> io::Result<Self> {
        match address {
            Address::Tcp(address) => Ok(Self::Tcp(TcpListener::bind(address.as_str()).await?)),
            Address::Unix(path) => {
                let (listener, file) = SocketFile::bind(path)?;
                Ok(Self::Unix(UnixListener::from_std(listener)?, file))
            }
        }
    }

    /// The TCP address it got.
    pub fn local_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok(),
            Self::Unix(..) => None,
        }
    }
}

/// Connections, so many at a time, each only as long as its client does something.
pub fn bounded<S>(
    incoming: impl Stream<Item = io::Result<S>>,
) -> impl Stream<Item = io::Result<PatientStream<S>>> {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    incoming.then(move |accepted| {
        let places = Arc::clone(&places);
        async move {
            let accepted = accepted?;
            // Whoever waits for a place waits in the kernel's queue, which is bounded too.
            let place = places.acquire_owned().await.map_err(io::Error::other)?;
            Ok(PatientStream::new(accepted, PATIENCE, place))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for good in [
            "0.0.0.0:9559",
            "localhost:50051",
            "[::]:9559",
            "unix:/run/a.sock",
        ] {
            assert_eq!(good.parse::<Address>().unwrap().to_string(), good);
        }
        assert_eq!(
            "unix:///a".parse::<Address>().unwrap().to_string(),
            "unix:/a"
        );
        for bad in [
            "",
            "9559",
            ":9559",
            "::1:9559",
            "host:70000",
            "host:",
            "unix:",
        ] {
            let error = bad.parse::<Address>().unwrap_err();
            assert!(
                error.starts_with(&format!("`{bad}` is not an address")),
                "{error}"
            );
        }
    }

    #[tokio::test]
    async fn a_stale_socket_is_replaced_a_live_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let address = Address::Unix(directory.path().join("socket"));
        let first = Listener::bind(&address).await.unwrap();
        let Err(error) = Listener::bind(&address).await else {
            panic!("bound twice")
        };
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        drop(first);
        assert!(Listener::bind(&address).await.is_ok());
    }
}
