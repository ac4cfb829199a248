//! Descriptors that come with the bytes of a Unix socket (`unix(7)`, SCM_RIGHTS).

use bytes::{BufMut, BytesMut};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg};
use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use tokio::io::Interest;
use tokio::net::UnixStream;
use wormcast_agent_core::api::{ApiError, ErrorCode};
use wormcast_agent_core::clients::limits::DESCRIPTORS_MAX;

const READ_BYTES: usize = 64 << 10;

/// Descriptors that have come, and which of them came with the frame at hand.
///
/// The kernel ends a read behind the bytes that a descriptor came with. So it belongs to the last frame that begins in
/// that read; whoever sends one sends the request in one piece.
#[derive(Debug, Default)]
pub(in crate::local) struct Descriptors {
    /// Each with the bytes of the stream that had come with it, and before.
    waiting: VecDeque<(u64, Descriptor)>,
    /// Those of the frame at hand.
    own: Vec<Descriptor>,
    /// Bytes of the stream that have come, and those of frames taken out of it.
    come: u64,
    taken: u64,
    fault: Option<String>,
}

impl Descriptors {
    /// Appends what the socket has to `buffer`; 0: the client is gone.
    ///
    /// # Errors
    /// Those of the socket.
    pub(in crate::local) async fn read(
        &mut self,
        stream: &UnixStream,
        buffer: &mut BytesMut,
    ) -> io::Result<usize> {
        loop {
            stream.readable().await?;
            match stream.try_io(Interest::READABLE, || self.take(stream, buffer)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }

    fn take(&mut self, stream: &UnixStream, buffer: &mut BytesMut) -> io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let filled = buffer.len();
        buffer.put_bytes(0, READ_BYTES);
        let received = recvmsg(
            stream,
            &mut [IoSliceMut::new(&mut buffer[filled..])],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT,
        );
        buffer.truncate(filled + received.as_ref().map_or(0, |it| it.bytes));
        let received = received?;
        self.come += received.bytes as u64;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                let come = self.come;
                self.waiting
                    .extend(descriptors.map(|one| (come, Descriptor(Some(one)))));
            }
        }
        if received.flags.contains(ReturnFlags::CTRUNC) || self.waiting.len() > DESCRIPTORS_MAX {
            self.fault = Some(format!(
                "a descriptor did not come through: at most {DESCRIPTORS_MAX} at once, and this agent \
                 may have no more files open"
            ));
        }
        Ok(received.bytes)
    }

    /// A frame of so many bytes is the next.
    pub(in crate::local) fn begin_frame(&mut self, length: usize) {
        self.taken += length as u64;
        let own = self
            .waiting
            .partition_point(|(come, _)| *come <= self.taken);
        let own = self.waiting.drain(..own);
        self.own.extend(own.map(|(_, descriptor)| descriptor));
    }

    /// The one that came with the frame at hand.
    ///
    /// # Errors
    /// If there is none, or more.
    pub(in crate::local) fn take_own(&mut self) -> Result<Descriptor, ApiError> {
        let refused = |why: &str| Err(ApiError::new(ErrorCode::BadRequest, why));
        match (self.own.pop(), self.own.is_empty()) {
            (Some(descriptor), true) => Ok(descriptor),
            (None, _) => refused("no descriptor came with the request (SCM_RIGHTS)"),
            (Some(one), false) => {
                self.own.push(one);
                refused("more than one descriptor came with the request")
            }
        }
    }

    /// Why the connection cannot go on.
    pub(in crate::local) fn fault(&mut self) -> Option<String> {
        if !self.own.is_empty() {
            self.fault = Some("a descriptor came with a frame that needs none".to_owned());
        }
        self.fault.take()
    }
}

/// One that a client has handed over. It is closed apart from all else: on a file system that hangs that may take
/// for ever.
#[derive(Debug)]
pub(in crate::local) struct Descriptor(Option<OwnedFd>);

impl Descriptor {
    /// For a thread that may wait.
    pub(super) fn open(mut self) -> Option<OwnedFd> {
        self.0.take()
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        if let Some(descriptor) = self.0.take() {
            // Without a thread it is closed here.
            let _ = std::thread::Builder::new().spawn(move || drop(descriptor));
        }
    }
}
