//! A blocking client of the local API (API.md).
//!
//! ```no_run
//! # use wormcast_agent::client::{Client, Incoming};
//! # fn main() -> Result<(), wormcast_agent::client::ClientError> {
//! let mut client = Client::connect("/run/wormcast/agent.sock".as_ref())?;
//! let sender = client.open_sender("images")?;
//! client.write(sender.handle, b"hello")?;
//! let message = client.end_message(sender.handle)?;
//! let stable = client.wait_stable(sender.handle, message, None)?;
//! assert!(stable.outcomes.iter().all(|outcome| outcome.delivered));
//! # Ok(())
//! # }
//! ```

use bytes::{Bytes, BytesMut};
use rustix::io::retry_on_intr;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};
use wormcast_agent_core::api::{
    API_VERSION, AbortReason, ApiError, DATA_BYTES_MAX, Frame, FrameError, GroupSelector,
    MemberOutcome, Notice, Request, WrittenFile,
};

const READ_BYTES: usize = 64 << 10;
/// A quarter of the window of an arriving message (API.md §7).
const WINDOW_UPDATE_BYTES: u32 = 128 << 10;
/// For an agent's last word on a connection that it has ended.
const GOODBYE_WAIT: Duration = Duration::from_millis(200);

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No agent there, or the connection broke.
    #[error("no connection to the agent: {0}")]
    System(io::Error),
    /// The agent refuses a request.
    #[error("{0}")]
    Refused(ApiError),
    /// The agent ends the connection.
    #[error("the agent ended the connection: {0}")]
    Ended(String),
    /// What the agent sent makes no sense.
    #[error("unexpected data from the agent: {0}")]
    Protocol(String),
}

impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl From<FrameError> for ClientError {
    fn from(error: FrameError) -> Self {
        Self::Protocol(error.to_string())
    }
}

impl From<serde_json::Error> for ClientError {
    fn from(error: serde_json::Error) -> Self {
        Self::Protocol(error.to_string())
    }
}

/// A sender or receiver that was opened.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct Opened {
    /// Its handle on this connection.
    pub handle: u32,
    pub group: u16,
    pub name: String,
    pub scheme: String,
    pub members: Vec<u16>,
    #[serde(default)]
    window_bytes: u32,
}

/// What became of a message.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct StableMessage {
    pub message: u64,
    /// Members that have it.
    pub delivered: usize,
    /// Members that do not.
    pub failed: usize,
    pub outcomes: Vec<MemberOutcome>,
}

/// What comes without being asked for.
#[derive(Clone, PartialEq, Debug)]
pub enum Incoming {
    Data { handle: u32, bytes: Bytes },
    Notice(Notice),
}

/// A connection to the agent.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    buffer: BytesMut,
    next_id: u64,
    /// Bytes that may be written to each sender.
    windows: BTreeMap<u32, u64>,
    /// Bytes taken out of each arriving message since its last window update.
    taken: BTreeMap<u32, u32>,
    waiting: VecDeque<Incoming>,
    /// Senders whose files the agent reads, by request.
    sending: BTreeMap<u64, u32>,
    /// Answers that have come before they were asked for.
    answers: BTreeMap<u64, Value>,
    /// The answer to the hello request.
    pub hello: Value,
}

impl Client {
    /// Connects and says hello.
    ///
    /// # Errors
    /// No agent listens at `path`, or it speaks another version.
    pub fn connect(path: &Path) -> Result<Self, ClientError> {
        let mut client = Self {
            stream: UnixStream::connect(path)?,
            buffer: BytesMut::new(),
            next_id: 1,
            windows: BTreeMap::new(),
            taken: BTreeMap::new(),
            waiting: VecDeque::new(),
            sending: BTreeMap::new(),
            answers: BTreeMap::new(),
            hello: Value::Null,
        };
        let hello = Request::Hello {
            version: API_VERSION,
            client: env!("CARGO_PKG_NAME").to_owned(),
        };
        client.hello = client.ask(&hello)?;
        Ok(client)
    }

    /// Everything about the agent.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn status(&mut self) -> Result<Value, ClientError> {
        self.ask(&Request::Status {})
    }

    /// The groups this host is a member of.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn groups(&mut self) -> Result<Value, ClientError> {
        let mut answer = self.ask(&Request::Groups {
            after: None,
            watch: false,
        })?;
        while answer["left_out"].as_u64().unwrap_or_default() > 0 {
            let Some(groups) = answer["groups"].as_array_mut() else {
                break;
            };
            let last = groups.last().and_then(|group| group["group"].as_u64());
            let mut groups = std::mem::take(groups);
            let after = last.and_then(|last| u32::try_from(last).ok());
            answer = self.ask(&Request::Groups {
                after,
                watch: false,
            })?;
            if let Some(more) = answer["groups"].as_array_mut() {
                groups.append(more);
                *more = groups;
            }
        }
        Ok(answer)
    }

    /// Opens a sender.
    ///
    /// # Errors
    /// Refused if this host is not a member of the group.
    pub fn open_sender(&mut self, group: impl Into<GroupSelector>) -> Result<Opened, ClientError> {
        self.open_paced_sender(group, None)
    }

    /// Opens a sender whose messages have at most so many bits a second.
    ///
    /// # Errors
    /// Refused if this host is not a member of the group, or the rate is out of range.
    pub fn open_paced_sender(
        &mut self,
        group: impl Into<GroupSelector>,
        rate_bits: Option<u64>,
    ) -> Result<Opened, ClientError> {
        let request = Request::OpenSender {
            group: group.into(),
            progress_ms: 0,
            rate_bits,
        };
        let opened: Opened = serde_json::from_value(self.ask(&request)?)?;
        self.windows
            .insert(opened.handle, opened.window_bytes.into());
        Ok(opened)
    }

    /// Appends bytes to the sender's current message; waits while its window is full.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn write(&mut self, sender: u32, mut bytes: &[u8]) -> Result<(), ClientError> {
        while !bytes.is_empty() {
            let Some(window) = self.windows.get_mut(&sender) else {
                return Err(ClientError::Protocol(format!(
                    "handle {sender} is not an open sender"
                )));
            };
            let length = bytes
                .len()
                .min(DATA_BYTES_MAX)
                .min(usize::try_from(*window).unwrap_or(usize::MAX));
            if length == 0 {
                let incoming = self.read_incoming(None)?;
                self.waiting.extend(incoming);
                continue;
            }
            *window -= length as u64;
            let (now, later) = bytes.split_at(length);
            bytes = later;
            self.send(&Frame::Data {
                handle: sender,
                bytes: Bytes::copy_from_slice(now),
            })?;
        }
        Ok(())
    }

    /// Appends all of a file to the sender's current message. The agent reads it itself.
    ///
    /// # Errors
    /// Refused if the file cannot be read, changes meanwhile or is no regular file.
    pub fn send_file(&mut self, sender: u32, file: &File) -> Result<WrittenFile, ClientError> {
        self.send_stream(sender, file, file.metadata()?.len())
    }

    /// Appends so many bytes of a stream socket to the sender's current message.
    ///
    /// # Errors
    /// Refused if fewer come, or it is none.
    pub fn send_stream(
        &mut self,
        sender: u32,
        stream: impl AsFd,
        bytes: u64,
    ) -> Result<WrittenFile, ClientError> {
        let handle = sender;
        let request = Request::SendFile { handle, bytes };
        let asked = self.begin(&request, Some(stream.as_fd()))?;
        Ok(serde_json::from_value(self.answer(asked)?)?)
    }

    /// Ends the sender's current message; returns its number.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn end_message(&mut self, sender: u32) -> Result<u64, ClientError> {
        let answer = self.ask(&Request::EndMessage { handle: sender })?;
        answer["message"]
            .as_u64()
            .ok_or_else(|| ClientError::Protocol(answer.to_string()))
    }

    /// Gives up the message being written.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn cancel_message(&mut self, sender: u32) -> Result<(), ClientError> {
        self.ask(&Request::CancelMessage { handle: sender })
            .map(drop)
    }

    /// Waits until every member that will ever have the message has it.
    ///
    /// # Errors
    /// Refused with `timeout` if that takes longer.
    pub fn wait_stable(
        &mut self,
        sender: u32,
        message: u64,
        timeout: Option<Duration>,
    ) -> Result<StableMessage, ClientError> {
        let timeout_ms = timeout.map(|timeout| timeout.as_millis() as u64);
        let answer = self.ask(&Request::WaitStable {
            handle: sender,
            message,
            timeout_ms,
        })?;
        Ok(serde_json::from_value(answer)?)
    }

    /// Opens a receiver for the messages of one origin, or of all.
    ///
    /// # Errors
    /// Refused if this host is not a member, or somebody else has them.
    pub fn open_receiver(
        &mut self,
        group: impl Into<GroupSelector>,
        origin: Option<u16>,
    ) -> Result<Opened, ClientError> {
        self.open(group.into(), origin, false)
    }

    /// As [`Client::open_receiver`]; where a message is a file the agent writes its content, as
    /// [`Client::receive_file`] says.
    ///
    /// # Errors
    /// As [`Client::open_receiver`].
    pub fn open_file_receiver(
        &mut self,
        group: impl Into<GroupSelector>,
        origin: Option<u16>,
    ) -> Result<Opened, ClientError> {
        self.open(group.into(), origin, true)
    }

    fn open(
        &mut self,
        group: GroupSelector,
        origin: Option<u16>,
        files: bool,
    ) -> Result<Opened, ClientError> {
        let origin = origin.map(u32::from);
        let request = Request::OpenReceiver {
            group,
            origin,
            files,
        };
        Ok(serde_json::from_value(self.ask(&request)?)?)
    }

    /// Has the agent write the content of a file that arrives, from the file's beginning, or into a stream socket.
    /// `bytes`: as many as there are to be, if that is known.
    ///
    /// # Errors
    /// Refused if this is neither, the file is not open to be written, or the message was lost meanwhile.
    pub fn receive_file(
        &mut self,
        message: u32,
        file: impl AsFd,
        bytes: Option<u64>,
    ) -> Result<(), ClientError> {
        let request = Request::ReceiveFile {
            handle: message,
            bytes,
        };
        let asked = self.begin(&request, Some(file.as_fd()))?;
        self.answer(asked).map(drop)
    }

    /// Says that the application keeps the message.
    ///
    /// # Errors
    /// Refused if the message was lost meanwhile.
    pub fn confirm(&mut self, message: u32) -> Result<(), ClientError> {
        self.taken.remove(&message);
        self.ask(&Request::Confirm { handle: message }).map(drop)
    }

    /// Says that the application is still at work on a message whose end has come: the agent's time for
    /// [`Client::confirm`] begins anew.
    ///
    /// # Errors
    /// Refused if the message was lost meanwhile.
    pub fn extend(&mut self, message: u32) -> Result<(), ClientError> {
        self.ask(&Request::Extend { handle: message }).map(drop)
    }

    /// Says that the application does not take the message.
    ///
    /// # Errors
    /// Refused if the message was lost meanwhile.
    pub fn abort(&mut self, message: u32, reason: AbortReason) -> Result<(), ClientError> {
        self.taken.remove(&message);
        self.ask(&Request::Abort {
            handle: message,
            reason,
        })
        .map(drop)
    }

    /// Closes a sender or receiver.
    ///
    /// # Errors
    /// Refused if there is none of that handle.
    pub fn close(&mut self, handle: u32) -> Result<(), ClientError> {
        self.windows.remove(&handle);
        self.ask(&Request::Close { handle }).map(drop)
    }

    /// The next thing that comes by itself; `None` after `timeout`. Taking data out makes
    /// room for more of that message.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn receive(&mut self, timeout: Option<Duration>) -> Result<Option<Incoming>, ClientError> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            if let Some(incoming) = self.waiting.pop_front() {
                if let Incoming::Data { handle, bytes } = &incoming {
                    self.make_room(*handle, bytes.len() as u32)?;
                }
                return Ok(Some(incoming));
            }
            let incoming = match self.read_incoming(deadline) {
                Err(ClientError::System(error))
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                    ) =>
                {
                    return Ok(None);
                }
                other => other?,
            };
            self.waiting.extend(incoming);
        }
    }

    /// Lets the agent send on; not for every piece, which would cost both sides time.
    fn make_room(&mut self, message: u32, bytes: u32) -> Result<(), ClientError> {
        let taken = self.taken.entry(message).or_default();
        *taken += bytes;
        if *taken >= WINDOW_UPDATE_BYTES {
            let bytes = std::mem::take(taken);
            self.send(&Frame::Window {
                handle: message,
                bytes,
            })?;
        }
        Ok(())
    }

    /// Asks and waits for the answer; keeps what comes in between.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn ask(&mut self, request: &Request) -> Result<Value, ClientError> {
        let asked = self.begin(request, None)?;
        self.answer(asked)
    }

    /// Asks, with the descriptor of a file if the request needs one, and does not wait; the number for
    /// [`Client::answer`].
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn begin(
        &mut self,
        request: &Request,
        file: Option<BorrowedFd<'_>>,
    ) -> Result<u64, ClientError> {
        let id = self.next_id;
        self.next_id += 1;
        if let Request::SendFile { handle, .. } = request {
            self.sending.insert(id, *handle);
        }
        let mut message = serde_json::to_value(request)?;
        message["id"] = id.into();
        self.send_with(&Frame::Control(Bytes::from(message.to_string())), file)?;
        Ok(id)
    }

    /// Waits for the answer to a request; keeps what comes in between.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn answer(&mut self, asked: u64) -> Result<Value, ClientError> {
        loop {
            if let Some(mut value) = self.answers.remove(&asked) {
                if value.get("error").is_some() {
                    return Err(ClientError::Refused(serde_json::from_value(
                        value["error"].take(),
                    )?));
                }
                return Ok(value["result"].take());
            }
            let incoming = self.read_incoming(None)?;
            self.waiting.extend(incoming);
        }
    }

    fn send(&mut self, frame: &Frame) -> Result<(), ClientError> {
        self.send_with(frame, None)
    }

    fn send_with(
        &mut self,
        frame: &Frame,
        file: Option<BorrowedFd<'_>>,
    ) -> Result<(), ClientError> {
        let mut bytes = BytesMut::new();
        frame.encode(&mut bytes);
        send_all(&mut self.stream, &bytes, file).map_err(|error| self.explain(error))
    }

    /// The agent says why it ends a connection; that is worth more than "broken pipe".
    fn explain(&mut self, error: io::Error) -> ClientError {
        loop {
            match self.read_incoming(Some(Instant::now() + GOODBYE_WAIT)) {
                Ok(_) => {}
                Err(ended @ ClientError::Ended(_)) => return ended,
                Err(_) => return error.into(),
            }
        }
    }

    /// One frame's worth of what comes by itself; a window update is nothing to hand out.
    fn read_incoming(
        &mut self,
        deadline: Option<Instant>,
    ) -> Result<Option<Incoming>, ClientError> {
        match self.take_frame(deadline)? {
            Some(Frame::Control(json)) => {
                let value: Value = serde_json::from_slice(&json)?;
                if let Some(id) = value["id"].as_u64() {
                    let sender = self.sending.remove(&id);
                    if let Some(window) = sender.and_then(|it| self.windows.get_mut(&it)) {
                        // What is left of it comes behind the answer.
                        *window = 0;
                    }
                    self.answers.insert(id, value);
                    return Ok(None);
                }
                self.sort_notice(value).map(Some)
            }
            Some(frame) => self.sort_frame(frame),
            None => Ok(None),
        }
    }

    fn sort_frame(&mut self, frame: Frame) -> Result<Option<Incoming>, ClientError> {
        match frame {
            Frame::Data { handle, bytes } => Ok(Some(Incoming::Data { handle, bytes })),
            Frame::Window { handle, bytes } => {
                if let Some(window) = self.windows.get_mut(&handle) {
                    *window += u64::from(bytes);
                }
                Ok(None)
            }
            Frame::Control(_) => Err(ClientError::Protocol(
                "a control frame out of place".to_owned(),
            )),
        }
    }

    fn sort_notice(&mut self, value: Value) -> Result<Incoming, ClientError> {
        match serde_json::from_value(value)? {
            Notice::Goodbye { reason } => Err(ClientError::Ended(reason)),
            notice => {
                match &notice {
                    Notice::HandleClosed { handle, .. } => drop(self.windows.remove(handle)),
                    Notice::MessageLost { handle, .. } => drop(self.taken.remove(handle)),
                    _ => {}
                }
                Ok(Incoming::Notice(notice))
            }
        }
    }

    /// A whole frame; `None` if only part of one has come.
    fn take_frame(&mut self, deadline: Option<Instant>) -> Result<Option<Frame>, ClientError> {
        if let Some(frame) = Frame::decode(&mut self.buffer)? {
            return Ok(Some(frame));
        }
        let timeout = match deadline {
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(ClientError::System(io::ErrorKind::TimedOut.into()));
                }
                Some(left)
            }
            None => None,
        };
        self.stream.set_read_timeout(timeout)?;
        let filled = self.buffer.len();
        self.buffer.resize(filled + READ_BYTES, 0);
        let result = self.stream.read(&mut self.buffer[filled..]);
        let length = *result.as_ref().unwrap_or(&0);
        self.buffer.truncate(filled + length);
        if let Err(error) = &result
            && error.kind() == io::ErrorKind::Interrupted
        {
            // As after a pause (SIGSTOP): a read with a time limit is not taken up again by itself.
            return Ok(None);
        }
        if result? == 0 {
            return Err(ClientError::Ended("it is gone".to_owned()));
        }
        Ok(Frame::decode(&mut self.buffer)?)
    }
}

fn send_all(stream: &mut UnixStream, bytes: &[u8], file: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut sent = 0;
    if let Some(file) = file {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = [file.as_fd()];
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        let bytes = [IoSlice::new(bytes)];
        sent = retry_on_intr(|| sendmsg(&*stream, &bytes, &mut ancillary, SendFlags::NOSIGNAL))?;
    }
    stream.write_all(&bytes[sent..])
}
