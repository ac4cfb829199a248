//! The end of a pair that is bound: it has one other end at a time.

use std::io::{self, ErrorKind};

use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::listener::{Listener, Stream, greet};
use super::{Address, IPC_MESSAGE, MESSAGE_BYTES_MAX, SocketType, message_head};
use wormcast_switch_listen::socket_file::SocketFile;

/// Messages that were read and wait to be taken; then no more are read.
const QUEUE_MESSAGES_MAX: usize = 64;

/// A socket that is bound. Its file goes with the value.
#[derive(Debug)]
pub struct Pair {
    listener: Listener,
    address: Address,
    _file: Option<SocketFile>,
}

/// The other end of a pair, as long as it is there.
#[derive(Debug)]
pub struct Connection {
    messages: mpsc::Receiver<Vec<u8>>,
    reading: JoinHandle<()>,
    to: WriteHalf<Box<dyn Stream>>,
    is_ipc: bool,
}

impl Pair {
    /// Listens, on the present runtime.
    ///
    /// # Errors
    /// Those of the system; `AddrInUse` if another process listens there.
    pub async fn bind(address: &Address) -> io::Result<Self> {
        let (listener, address, file) = Listener::bind(address).await?;
        Ok(Self {
            listener,
            address,
            _file: file,
        })
    }

    /// Where it listens, with the port it got.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The next other end. Those that are no pair are passed over; those that come before
    /// the one has gone wait.
    pub async fn accept(&self) -> Connection {
        loop {
            let stream = self.listener.accept().await;
            let (mut from, mut to) = tokio::io::split(stream);
            if greet(SocketType::Pair, &mut from, &mut to).await.is_err() {
                continue;
            }
            let is_ipc = self.address.is_ipc();
            let (queue, messages) = mpsc::channel(QUEUE_MESSAGES_MAX);
            let reading = tokio::spawn(async move {
                while let Ok(message) = read_message(&mut from, is_ipc).await {
                    if queue.send(message).await.is_err() {
                        return;
                    }
                }
            });
            return Connection {
                messages,
                reading,
                to,
                is_ipc,
            };
        }
    }
}

impl Connection {
    /// The next message; `None` when the other end has gone or has sent what is no message.
    /// May be given up at any time.
    pub async fn receive(&mut self) -> Option<Vec<u8>> {
        self.messages.recv().await
    }

    /// Sends a message.
    ///
    /// # Errors
    /// Those of the system.
    pub async fn send(&mut self, body: &[u8]) -> io::Result<()> {
        let mut message = message_head(self.is_ipc, body.len());
        message.extend_from_slice(body);
        self.to.write_all(&message).await
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

async fn read_message(from: &mut ReadHalf<Box<dyn Stream>>, is_ipc: bool) -> io::Result<Vec<u8>> {
    if is_ipc && from.read_u8().await? != IPC_MESSAGE {
        return Err(ErrorKind::InvalidData.into());
    }
    let length = usize::try_from(from.read_u64().await?).unwrap_or(usize::MAX);
    if length > MESSAGE_BYTES_MAX {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body).await?;
    Ok(body)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::Duration;

    use super::*;
    use crate::nanomsg::Client;

    const PATIENCE: Duration = Duration::from_secs(10);

    async fn connect(address: &Address, kind: SocketType) -> io::Result<Client> {
        let address = address.clone();
        let connect = move || Client::connect(&address, kind, PATIENCE);
        tokio::task::spawn_blocking(connect).await.unwrap()
    }

    /// What a client hears next.
    async fn hear(client: &mut Client) -> Vec<u8> {
        loop {
            if let Some(message) = client.receive().unwrap() {
                return message;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn messages_go_both_ways_with_one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        for address in [
            Address::Ipc(folder.path().join("socket")),
            "tcp://127.0.0.1:0".parse().unwrap(),
        ] {
            let pair = Pair::bind(&address).await.unwrap();
            let address = pair.address().clone();
            for byte in [1, 2] {
                // Who is no pair does not take its place.
                let (connection, client) = tokio::join!(pair.accept(), async {
                    assert!(connect(&address, SocketType::Subscriber).await.is_err());
                    connect(&address, SocketType::Pair).await
                });
                let (mut connection, mut client) = (connection, client.unwrap());
                client.send(&[byte; 3]).unwrap();
                client.send(&[]).unwrap();
                assert_eq!(connection.receive().await, Some(vec![byte; 3]));
                assert_eq!(connection.receive().await, Some(vec![]));
                connection.send(&[7, byte]).await.unwrap();
                assert_eq!(hear(&mut client).await, [7, byte]);
                drop(client);
                assert_eq!(connection.receive().await, None);
            }
        }
        assert!(!folder.path().join("socket").exists());
    }

    #[tokio::test]
    async fn what_is_no_message_ends_the_connection() {
        let anywhere = "tcp://127.0.0.1:0".parse().unwrap();
        let pair = Pair::bind(&anywhere).await.unwrap();
        let Address::Tcp(address) = *pair.address() else {
            panic!("{:?}", pair.address());
        };
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.write_all(&SocketType::Pair.header()).unwrap();
        let mut connection = pair.accept().await;
        let length = MESSAGE_BYTES_MAX as u64 + 1;
        stream.write_all(&length.to_be_bytes()).unwrap();
        assert_eq!(connection.receive().await, None);
    }
}
