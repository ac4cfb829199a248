//! A file that is read into a message.

use super::content::hex;
use super::order::{Order, Reading};
use super::regular::{Opened, open, source, storage};
use super::stream::Stream;
use super::window::Window;
use crate::dataplane::{Command, DataPlaneHandle};
use bytes::{Bytes, BytesMut};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use tokio::sync::mpsc;
use wormcast_agent_core::api::{ApiError, ErrorCode};
use wormcast_agent_core::clients::ConnectionId;

/// Reads a file in a thread of its own; the writer gets the answer.
pub(super) fn start(
    id: u64,
    reading: Reading,
    connection: ConnectionId,
    dataplane: DataPlaneHandle,
    orders: mpsc::UnboundedSender<Order>,
) {
    let (handle, window, failed) = (reading.handle, Arc::clone(&reading.window), orders.clone());
    let sent = move |result| Order::Sent {
        id,
        handle,
        window,
        result,
    };
    let answer = sent.clone();
    let work = move || {
        let result = read(reading, connection, &dataplane);
        let _ = orders.send(answer(result));
    };
    if let Err(error) = std::thread::Builder::new()
        .name("file".to_owned())
        .spawn(work)
    {
        let _ = failed.send(sent(Err(storage("start a thread for the file", &error))));
    }
}

fn read(
    reading: Reading,
    connection: ConnectionId,
    dataplane: &DataPlaneHandle,
) -> Result<(u64, String), ApiError> {
    let Reading {
        descriptor,
        bytes: wanted,
        handle,
        window,
    } = reading;
    let content = match open(descriptor)? {
        Opened::File(file) => Opened::File(source(file)?),
        stream => stream,
    };
    let mut hash = Sha256::new();
    let mut place = 0;
    while place < wanted {
        let room = window.await_room(wanted - place)?;
        let bytes = match &content {
            Opened::File(file) => {
                let bytes = read_at(file, place, room)?;
                if bytes.len() < room {
                    return Err(changed(file, wanted, 0));
                }
                bytes
            }
            Opened::Stream(stream) => read_some(stream, place, room, &window, wanted)?,
        };
        let length = bytes.len();
        hash.update(&bytes);
        place += length as u64;
        let command = Command::Data {
            connection,
            handle,
            bytes,
        };
        window.pass(length, || {
            // If it is gone, so is the connection.
            let _ = dataplane.send_blocking(command);
        })?;
    }
    if let Opened::File(file) = &content
        && !read_at(file, place, 1)?.is_empty()
    {
        return Err(changed(file, wanted, place + 1));
    }
    Ok((place, hex(&hash.finalize())))
}

/// What a stream has, up to `room`.
fn read_some(
    stream: &Stream,
    place: u64,
    room: usize,
    window: &Window,
    wanted: u64,
) -> Result<Bytes, ApiError> {
    let mut bytes = BytesMut::zeroed(room);
    let read = stream.read(&mut bytes, || window.is_ended());
    match read.map_err(|error| storage("read the stream", &error))? {
        Some(0) => {
            let text = format!("the stream ended after {place} of {wanted} bytes");
            Err(ApiError::new(ErrorCode::Storage, text))
        }
        // Why it has ended is told by whoever asks for more room.
        read => {
            bytes.truncate(read.unwrap_or_default());
            // Who writes little at a time is not to hold much memory.
            if bytes.len() < room / 2 {
                return Ok(Bytes::copy_from_slice(&bytes));
            }
            Ok(bytes.freeze())
        }
    }
}

/// As many bytes as are there, up to `length`.
fn read_at(file: &File, place: u64, length: usize) -> Result<Bytes, ApiError> {
    let mut bytes = BytesMut::zeroed(length);
    let mut filled = 0;
    while filled < length {
        match file.read_at(&mut bytes[filled..], place + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(storage("read the file", &error)),
        }
    }
    bytes.truncate(filled);
    Ok(bytes.freeze())
}

/// The file has another length than was announced, `least` at least.
fn changed(file: &File, announced: u64, least: u64) -> ApiError {
    let found = file.metadata().map_or(0, |about| about.len()).max(least);
    let text =
        format!("the file changed while it was sent: {announced} bytes at first, then {found}");
    ApiError::new(ErrorCode::Storage, text)
}
