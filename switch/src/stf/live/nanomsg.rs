//! As much of nanomsg as it takes to talk to BMv2 over a Unix socket.
//!
//! A connection begins with a header of eight bytes from each side: zero, `SP`, zero, the
//! socket type in two bytes, and two zeros. A message is the byte 1, its length in eight
//! bytes, and its body. Numbers are big-endian. Source: nanomsg, RFC `sp-tcp-mapping-01`,
//! and `src/transports/ipc/sipc.c` for the byte before the length.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Longest message taken, bytes: more than any packet or digest.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// Type of a socket; each side has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SocketType {
    /// One of two equal ends.
    Pair = 16,
    /// Hears what another end publishes.
    Subscriber = 33,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Socket {
    stream: UnixStream,
    /// What was read and is not a whole message yet.
    unread: Vec<u8>,
}

impl Socket {
    /// Connects to the socket that a switch has bound.
    pub(super) fn connect(path: &Path, kind: SocketType, patience: Duration) -> io::Result<Self> {
        let mut stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(patience))?;
        stream.write_all(&[0, b'S', b'P', 0, 0, kind as u8, 0, 0])?;
        let mut theirs = [0; 8];
        stream.read_exact(&mut theirs)?;
        if theirs[..4] != *b"\0SP\0" {
            let said = format!("{theirs:02x?} is no header of nanomsg");
            return Err(io::Error::new(ErrorKind::InvalidData, said));
        }
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            unread: Vec::new(),
        })
    }

    /// Sends a message.
    pub(super) fn send(&mut self, body: &[u8]) -> io::Result<()> {
        let mut message = vec![1];
        message.extend((body.len() as u64).to_be_bytes());
        message.extend(body);
        self.stream.set_nonblocking(false)?;
        self.stream.write_all(&message)?;
        self.stream.set_nonblocking(true)
    }

    /// The next message, if one is there.
    pub(super) fn receive(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(message) = self.take()? {
                return Ok(Some(message));
            }
            let mut bytes = [0; 4_096];
            match self.stream.read(&mut bytes) {
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
        let Some((head, rest)) = self.unread.split_first_chunk::<9>() else {
            return Ok(None);
        };
        let [kind, length @ ..] = *head;
        let length = usize::try_from(u64::from_be_bytes(length)).unwrap_or(usize::MAX);
        if kind != 1 || length > MESSAGE_BYTES_MAX {
            let said = format!("a message of type {kind} and {length} bytes");
            return Err(io::Error::new(ErrorKind::InvalidData, said));
        }
        if rest.len() < length {
            return Ok(None);
        }
        let body = rest[..length].to_vec();
        self.unread.drain(..9 + length);
        Ok(Some(body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

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
        let patience = Duration::from_secs(10);
        let mut socket = Socket::connect(&path, SocketType::Pair, patience).unwrap();
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
    fn what_is_no_nanomsg_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let theirs = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"HTTP/1.1").unwrap();
            stream
        });
        let connected = Socket::connect(&path, SocketType::Pair, Duration::from_secs(10));
        let why = connected.unwrap_err().to_string();
        assert!(why.ends_with("is no header of nanomsg"), "{why}");
        drop(theirs.join());
    }
}
