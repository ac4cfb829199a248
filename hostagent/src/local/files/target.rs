//! A file that the content of a message is written into.

use super::content::Content;
use super::order::{Order, Progress, Writing};
use super::regular::{Opened, open, storage, target};
use crate::dataplane::{Command, DataPlaneHandle};
use bytes::Bytes;
use rustix::fs::{FallocateFlags, fallocate};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Instant;
use tokio::sync::mpsc as orders;
use wormcast_agent_core::api::{ApiError, Arrival, ErrorCode, Notice, WrittenFile};
use wormcast_agent_core::clients::ConnectionId;
use wormcast_agent_core::clients::limits::{FILE_PROGRESS_INTERVAL, MESSAGE_WINDOW_BYTES};

/// Bytes taken from a message that make a window update worth its while.
const WINDOW_UPDATE_BYTES: u32 = MESSAGE_WINDOW_BYTES / 4;
/// Room that is taken for a file before it is needed.
const ROOM_BYTES_AHEAD: u64 = 64 << 20;

/// What comes for the file.
pub(super) enum Piece {
    Bytes(Bytes),
    End {
        length: u64,
        arrival: Option<Arrival>,
    },
}

/// A thread that writes a file. When this is dropped it ends, with the write that is under way.
pub(super) struct Target {
    /// As many bytes wait in it as the window of a message allows.
    pieces: mpsc::Sender<Piece>,
    given_up: Arc<AtomicBool>,
}

impl Target {
    /// The answer to request `id` says whether the file can be written.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub(super) fn start(
        id: u64,
        writing: Writing,
        connection: ConnectionId,
        handle: u32,
        dataplane: DataPlaneHandle,
        orders: orders::UnboundedSender<Order>,
    ) -> Result<Self, ApiError> {
        let (pieces, received) = mpsc::channel();
        let given_up = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&given_up);
        let work = move || {
            let Writing { descriptor, bytes } = writing;
            let place = open(descriptor).and_then(|opened| match opened {
                Opened::File(file) => target(file).map(Opened::File),
                stream => Ok(stream),
            });
            let (result, place) = match place {
                Ok(place) => (Ok(()), Some(place)),
                Err(error) => (Err(error), None),
            };
            let _ = orders.send(Order::Placed { id, handle, result });
            let Some(place) = place else { return };
            let writer = Writer {
                place,
                given_up: stop,
                bytes,
                connection,
                handle,
                dataplane,
                orders,
                content: Content::default(),
                written: 0,
                room: 0,
                taken: 0,
                told_at: Instant::now(),
                waits: Arc::default(),
            };
            writer.work(&received);
        };
        std::thread::Builder::new()
            .name("file".to_owned())
            .spawn(work)
            .map_err(|error| storage("start a thread for the file", &error))?;
        Ok(Self { pieces, given_up })
    }

    /// After a failure nothing is taken any more.
    pub(super) fn take(&self, piece: Piece) {
        let _ = self.pieces.send(piece);
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.given_up.store(true, Ordering::Relaxed);
    }
}

struct Writer {
    place: Opened,
    given_up: Arc<AtomicBool>,
    /// How much content there will be, if that is known.
    bytes: Option<u64>,
    connection: ConnectionId,
    handle: u32,
    dataplane: DataPlaneHandle,
    orders: orders::UnboundedSender<Order>,
    content: Content,
    written: u64,
    /// As far as there is room for it.
    room: u64,
    /// Bytes of the message taken since the last window update.
    taken: u32,
    told_at: Instant,
    waits: Arc<AtomicBool>,
}

impl Writer {
    fn work(mut self, pieces: &mpsc::Receiver<Piece>) {
        while let Ok(piece) = pieces.recv() {
            if self.given_up.load(Ordering::Relaxed) {
                return;
            }
            match piece {
                Piece::Bytes(bytes) => {
                    if let Err(error) = self.write(bytes) {
                        return self.fail(error);
                    }
                }
                Piece::End { length, arrival } => return self.end(length, arrival),
            }
        }
    }

    fn write(&mut self, mut bytes: Bytes) -> Result<(), ApiError> {
        self.taken += bytes.len() as u32;
        let (first, second) = self.content.feed(&mut bytes);
        for run in [first, second] {
            let end = self.written + run.len() as u64;
            if let Some(announced) = self.bytes.filter(|&most| most < end) {
                let text = format!("more content than the {announced} bytes announced");
                return Err(damaged(text));
            }
            self.take_room(end);
            let written = match &self.place {
                Opened::File(file) => file.write_all_at(&run, self.written),
                // Who has given it up needs no word.
                Opened::Stream(stream) => stream
                    .write_all(&run, || self.given_up.load(Ordering::Relaxed))
                    .map(drop),
            };
            written.map_err(|error| storage("write the file", &error))?;
            self.written = end;
        }
        if self.taken >= WINDOW_UPDATE_BYTES {
            let command = Command::Window {
                connection: self.connection,
                handle: self.handle,
                bytes: std::mem::take(&mut self.taken),
            };
            // If it is gone, so is the connection.
            let _ = self.dataplane.send_blocking(command);
        }
        if self.told_at.elapsed() >= FILE_PROGRESS_INTERVAL
            && !self.waits.swap(true, Ordering::Relaxed)
        {
            self.told_at = Instant::now();
            let _ = self.orders.send(Order::Written(Progress {
                handle: self.handle,
                bytes: self.written,
                waits: Arc::clone(&self.waits),
            }));
        }
        Ok(())
    }

    /// Takes room for what comes next, so that the file is in few pieces; not all at once, as its sender may
    /// announce what it likes. Where that is refused, a write will say whether there is room.
    fn take_room(&mut self, end: u64) {
        let Some(bytes) = self.bytes.filter(|_| end > self.room) else {
            return;
        };
        let Opened::File(file) = &self.place else {
            return;
        };
        let room = bytes.min(end + ROOM_BYTES_AHEAD);
        let length = room - self.room;
        let taken = fallocate(file, FallocateFlags::KEEP_SIZE, self.room, length);
        self.room = if taken.is_ok() { room } else { u64::MAX };
    }

    fn end(self, length: u64, arrival: Option<Arrival>) {
        let (handle, bytes) = (self.handle, self.written);
        let ended = match self.bytes.filter(|&announced| announced != bytes) {
            Some(announced) => {
                let text = format!("{bytes} bytes of content, {announced} announced");
                Err(damaged(text))
            }
            // What was in the file before is no part of it.
            None => self.content.finish().map_err(damaged).and_then(|sha256| {
                let cut = match &self.place {
                    Opened::File(file) => file.set_len(bytes),
                    Opened::Stream(_) => Ok(()),
                };
                match cut {
                    Ok(()) => Ok(sha256),
                    Err(error) => Err(storage("write the file", &error)),
                }
            }),
        };
        if let Opened::Stream(stream) = &self.place {
            stream.finish();
        }
        // Who is told that it is whole may run it: it must not be open here to be written.
        drop(self.place);
        let notice = match ended {
            Ok(sha256) => Notice::MessageEnd {
                handle,
                length,
                arrival,
                file: Some(WrittenFile { bytes, sha256 }),
            },
            Err(error) => failed(handle, error),
        };
        let _ = self.orders.send(Order::Tell { handle, notice });
    }

    fn fail(self, error: ApiError) {
        let (handle, notice) = (self.handle, failed(self.handle, error));
        let _ = self.orders.send(Order::Tell { handle, notice });
    }
}

fn failed(handle: u32, error: ApiError) -> Notice {
    Notice::FileFailed {
        handle,
        code: error.code,
        reason: error.message,
    }
}

fn damaged(reason: String) -> ApiError {
    ApiError::new(ErrorCode::Damaged, reason)
}
