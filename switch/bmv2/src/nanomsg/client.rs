//! A socket that connects to one which is bound.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use socket2::Socket;

use super::{Address, HEADER_BYTES, IPC_MESSAGE, MESSAGE_BYTES_MAX, SocketType, message_head};

/// A connection. What is waited for is waited for on the present thread.
#[derive(Debug)]
pub struct Client {
    socket: Socket,
    is_ipc: bool,
    /// What was read and is not a whole message yet.
    unread: Vec<u8>,
}

impl Client {
    /// Connects to a socket that is bound; `kind` is the type of this end.
    ///
    /// # Errors
    /// Those of the system; `InvalidData` if the other end is no such socket, and after
    /// `patience` without its header.
    pub fn connect(address: &Address, kind: SocketType, patience: Duration) -> io::Result<Self> {
        let mut socket: Socket = match address {
            Address::Ipc(path) => UnixStream::connect(path)?.into(),
            Address::Tcp(address) => TcpStream::connect_timeout(address, patience)?.into(),
        };
        socket.set_read_timeout(Some(patience))?;
        socket.write_all(&kind.header())?;
        let mut theirs = [0; HEADER_BYTES];
        socket.read_exact(&mut theirs)?;
        let invalid = |why| io::Error::new(ErrorKind::InvalidData, why);
        kind.check_peer(theirs).map_err(invalid)?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            is_ipc: address.is_ipc(),
            unread: Vec::new(),
        })
    }

    /// Sends a message.
    ///
    /// # Errors
    /// Those of the system.
    pub fn send(&mut self, body: &[u8]) -> io::Result<()> {
        let mut message = message_head(self.is_ipc, body.len());
        message.extend(body);
        self.socket.set_nonblocking(false)?;
        self.socket.write_all(&message)?;
        self.socket.set_nonblocking(true)
    }

    /// The next message, if one is there.
    ///
    /// # Errors
    /// Those of the system; `UnexpectedEof` at the end, `InvalidData` for what is no
    /// message.
    pub fn receive(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(message) = self.take()? {
                return Ok(Some(message));
            }
            let mut bytes = [0; 4_096];
            match self.socket.read(&mut bytes) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.unread.extend(&bytes[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The first whole message of what was read.
    fn take(&mut self) -> io::Result<Option<Vec<u8>>> {
        let (kind, rest) = match self.unread.split_first() {
            Some((kind, rest)) if self.is_ipc => (*kind, rest),
            _ => (IPC_MESSAGE, self.unread.as_slice()),
        };
        let Some((length, rest)) = rest.split_first_chunk::<8>() else {
            return Ok(None);
        };
        let length = usize::try_from(u64::from_be_bytes(*length)).unwrap_or(usize::MAX);
        if kind != IPC_MESSAGE || length > MESSAGE_BYTES_MAX {
            let said = format!("a message of type {kind} and {length} bytes");
            return Err(io::Error::new(ErrorKind::InvalidData, said));
        }
        if rest.len() < length {
            return Ok(None);
        }
        let body = rest[..length].to_vec();
        let taken = self.unread.len() - rest.len() + length;
        self.unread.drain(..taken);
        Ok(Some(body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    const PATIENCE: Duration = Duration::from_secs(10);

    #[test]
    fn messages_in_pieces_and_together() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let theirs = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"\0SP\0\0\x10\0\0").unwrap();
            let mut header = [0; 8];
            stream.read_exact(&mut header).unwrap();
            (stream, header)
        });
        let address = Address::Ipc(path);
        let mut socket = Client::connect(&address, SocketType::Pair, PATIENCE).unwrap();
        let (mut stream, header) = theirs.join().unwrap();
        assert_eq!(&header, b"\0SP\0\0\x10\0\0");
        assert_eq!(socket.receive().unwrap(), None);
        stream.write_all(&[1, 0, 0, 0, 0, 0]).unwrap();
        assert_eq!(socket.receive().unwrap(), None, "half a message");
        stream.write_all(&[0, 0, 2, 7, 8, 1, 0, 0, 0]).unwrap();
        stream.write_all(&[0, 0, 0, 0, 1, 9]).unwrap();
        assert_eq!(socket.receive().unwrap(), Some(vec![7, 8]));
        assert_eq!(socket.receive().unwrap(), Some(vec![9]));
        socket.send(&[5]).unwrap();
        let mut sent = [0; 10];
        stream.read_exact(&mut sent).unwrap();
        assert_eq!(sent, [1, 0, 0, 0, 0, 0, 0, 0, 1, 5]);
        stream.write_all(&[2; 9]).unwrap();
        assert!(socket.receive().is_err(), "no message");
    }

    #[test]
    fn over_tcp_nothing_is_before_the_length() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap());
        let theirs = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"\0SP\0\0\x20\0\0").unwrap();
            stream.write_all(&[0, 0, 0, 0, 0, 0, 0, 2, 3, 4]).unwrap();
            stream
        });
        let mut socket = Client::connect(&address, SocketType::Subscriber, PATIENCE).unwrap();
        let _stream = theirs.join().unwrap();
        let start = std::time::Instant::now();
        let mut heard = None;
        while heard.is_none() && start.elapsed() < PATIENCE {
            heard = socket.receive().unwrap();
        }
        assert_eq!(heard, Some(vec![3, 4]));
    }

    fn refusal(said: &'static [u8]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let theirs = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(said).unwrap();
            stream
        });
        let connected = Client::connect(&Address::Ipc(path), SocketType::Pair, PATIENCE);
        drop(theirs.join());
        connected.unwrap_err().to_string()
    }

    #[test]
    fn what_is_no_nanomsg_is_refused() {
        let why = refusal(b"HTTP/1.1");
        assert!(why.ends_with("is no header of nanomsg"), "{why}");
        let why = refusal(b"\0SP\0\0\x20\0\0");
        assert!(why.contains("type 32, not 16 (Pair)"), "{why}");
    }
}
