//! As much of nanomsg as the sockets of BMv2 take: the two ends of a pair, those who
//! publish and those who subscribe, over Unix sockets and TCP.
//!
//! A connection begins with a header of eight bytes from each side: zero, `SP`, zero, the
//! socket type in two bytes, and two zeros. A message is its length in eight bytes and its
//! body, over a Unix socket with the byte 1 in front. Numbers are big-endian. Who publishes
//! sends everything to everybody; those who subscribed drop what they did not want. Source:
//! nanomsg, RFC `sp-tcp-mapping-01` and `sp-publish-subscribe-01`, and
//! `src/transports/ipc/sipc.c` for the byte before the length.

mod address;
mod client;
mod listener;
mod pair;
mod publisher;

pub use address::Address;
pub use client::Client;
pub use pair::{Connection, Pair};
pub use publisher::{Publisher, QUEUE_BYTES_MAX, QUEUE_MESSAGES_MAX, SUBSCRIBERS_MAX};

/// Longest message that is sent or taken, bytes: nanomsg's own limit for what is received
/// (`NN_RCVMAXSIZE`).
pub const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// Bytes of the header that a connection begins with.
const HEADER_BYTES: usize = 8;

/// The byte before the length of a message over a Unix socket.
const IPC_MESSAGE: u8 = 1;

/// Type of a socket; each side has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketType {
    /// One of two equal ends.
    Pair = 16,
    /// Says the same to all that listen.
    Publisher = 32,
    /// Hears what another end publishes.
    Subscriber = 33,
}

impl SocketType {
    /// The type of the other end.
    pub fn peer(self) -> Self {
        match self {
            Self::Pair => Self::Pair,
            Self::Publisher => Self::Subscriber,
            Self::Subscriber => Self::Publisher,
        }
    }

    /// What a connection begins with.
    fn header(self) -> [u8; HEADER_BYTES] {
        [0, b'S', b'P', 0, 0, self as u8, 0, 0]
    }

    /// Checks what the other end began with; why it is not what it should be, in words.
    fn check_peer(self, theirs: [u8; HEADER_BYTES]) -> Result<(), String> {
        if theirs[..4] != *b"\0SP\0" {
            return Err(format!("{theirs:02x?} is no header of nanomsg"));
        }
        let [wanted, found] = [self.peer().header(), theirs];
        if wanted == found {
            return Ok(());
        }
        Err(format!(
            "the other end is a socket of type {}, not {} ({:?})",
            u16::from_be_bytes([theirs[4], theirs[5]]),
            self.peer() as u8,
            self.peer(),
        ))
    }
}

/// What goes before the body of a message.
fn message_head(is_ipc: bool, length: usize) -> Vec<u8> {
    let mut head = Vec::with_capacity(9 + length);
    if is_ipc {
        head.push(IPC_MESSAGE);
    }
    head.extend((length as u64).to_be_bytes());
    head
}
