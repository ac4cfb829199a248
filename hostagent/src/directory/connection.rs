//! The byte stream below gRPC: TCP or a Unix socket.

use super::ControllerAddress;
use std::io;
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};

/// Silence of an unacknowledged TCP connection after which it counts as broken.
const TCP_SILENCE: Duration = Duration::from_secs(10);

/// A connection to the controller, of either kind.
pub(super) enum Connection {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Connection {
    pub(super) async fn open(address: &ControllerAddress) -> io::Result<Self> {
        match address {
            ControllerAddress::Unix(path) => Ok(Self::Unix(UnixStream::connect(path).await?)),
            ControllerAddress::Tcp { host, port } => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                let socket = socket2::SockRef::from(&stream);
                // Statistics go out each second, so a controller that has vanished without
                // a word is noticed by what is not acknowledged.
                socket.set_tcp_user_timeout(Some(TCP_SILENCE))?;
                Ok(Self::Tcp(stream))
            }
        }
    }
}

macro_rules! either {
    ($self:expr, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            Connection::Tcp($stream) => $call,
            Connection::Unix($stream) => $call,
        }
    };
}

impl tokio::io::AsyncRead for Connection {
    fn poll_read(
        self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        either!(self, stream => std::pin::Pin::new(stream).poll_read(context, buffer))
    }
}

impl tokio::io::AsyncWrite for Connection {
    fn poll_write(
        self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> std::task::Poll<io::Result<usize>> {
        either!(self, stream => std::pin::Pin::new(stream).poll_write(context, bytes))
    }

    fn poll_flush(
        self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        either!(self, stream => std::pin::Pin::new(stream).poll_flush(context))
    }

    fn poll_shutdown(
        self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        either!(self, stream => std::pin::Pin::new(stream).poll_shutdown(context))
    }
}
