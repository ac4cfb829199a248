//! What the sockets that are bound have in common: they listen, and exchange headers.

use std::fmt;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::{TcpListener, UnixListener};

use super::{Address, HEADER_BYTES, SocketType};
use wormcast_switch_listen::socket_file::SocketFile;

/// How long a connection may take for its header.
const HEADER_PATIENCE: Duration = Duration::from_secs(5);

/// How long the socket waits when the system has no connection for it.
const PAUSE: Duration = Duration::from_millis(50);

/// A connection, of whatever kind.
pub(super) trait Stream: AsyncRead + AsyncWrite + fmt::Debug + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + fmt::Debug + Send + Unpin> Stream for S {}

#[derive(Debug)]
pub(super) enum Listener {
    Ipc(UnixListener),
    Tcp(TcpListener),
}

/// What listens, where, with the port it got, and the file of a Unix socket.
pub(super) type Bound = (Listener, Address, Option<SocketFile>);

impl Listener {
    pub(super) async fn bind(address: &Address) -> io::Result<Bound> {
        match address {
            Address::Ipc(path) => {
                let (listener, file) = SocketFile::bind(path)?;
                let listener = Self::Ipc(UnixListener::from_std(listener)?);
                Ok((listener, address.clone(), Some(file)))
            }
            Address::Tcp(wanted) => {
                let listener = TcpListener::bind(wanted).await?;
                let address = Address::Tcp(listener.local_addr()?);
                Ok((Self::Tcp(listener), address, None))
            }
        }
    }

    pub(super) async fn accept(&self) -> Box<dyn Stream> {
        loop {
            let accepted: io::Result<Box<dyn Stream>> = match self {
                Self::Ipc(listener) => {
                    let accepted = listener.accept().await;
                    accepted.map(|(stream, _)| Box::new(stream) as _)
                }
                Self::Tcp(listener) => listener.accept().await.map(|(stream, _)| {
                    // Without this, messages only come a little later.
                    let _ = stream.set_nodelay(true);
                    Box::new(stream) as _
                }),
            };
            match accepted {
                Ok(stream) => return stream,
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}

/// Exchanges headers, as a socket of some type.
///
/// # Errors
/// Those of the system; `InvalidData` if the other end is of a wrong type, `TimedOut` if it
/// says nothing.
pub(super) async fn greet(
    own: SocketType,
    from: &mut ReadHalf<Box<dyn Stream>>,
    to: &mut WriteHalf<Box<dyn Stream>>,
) -> io::Result<()> {
    let exchanged = async {
        to.write_all(&own.header()).await?;
        let mut theirs = [0; HEADER_BYTES];
        from.read_exact(&mut theirs).await?;
        let checked = own.check_peer(theirs);
        checked.map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))
    };
    let exchanged = tokio::time::timeout(HEADER_PATIENCE, exchanged).await;
    exchanged.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
