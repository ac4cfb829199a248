//! Frames of the local API (API.md §2): a length, a type, a body. The same codec serves
//! the agent and its clients.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Longest control message, bytes of JSON.
pub const CONTROL_BYTES_MAX: usize = 1 << 20;
/// Longest run of message bytes in one data frame.
pub const DATA_BYTES_MAX: usize = 256 << 10;

const LENGTH_BYTES: usize = 4;
const HANDLE_BYTES: usize = 4;
const TYPE_CONTROL: u8 = 1;
const TYPE_DATA: u8 = 2;
const TYPE_WINDOW: u8 = 3;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frame {
    Control(Bytes),
    Data {
        handle: u32,
        /// 1 to [`DATA_BYTES_MAX`] bytes.
        bytes: Bytes,
    },
    /// The receiver of data frames takes so many bytes more.
    Window {
        handle: u32,
        /// At least 1.
        bytes: u32,
    },
}

/// A peer that does not keep to the framing. The connection cannot go on.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FrameError {
    /// The type byte means nothing.
    #[error("frame type {0}; it must be 1 (control), 2 (data) or 3 (window)")]
    Type(u8),
    /// Length out of bounds for the type.
    #[error("a {kind} frame with a body of {length} bytes; it must have {least} to {most}")]
    Length {
        kind: &'static str,
        /// Bytes of body announced.
        length: usize,
        least: usize,
        most: usize,
    },
    /// A window update of zero bytes.
    #[error("a window update of 0 bytes; it must be 1 or more")]
    EmptyWindow,
    /// A frame without even a type.
    #[error("a frame of length 0; the length counts the type byte")]
    Empty,
}

impl Frame {
    /// Appends the frame as the wire has it.
    ///
    /// # Panics
    /// If the body is longer than its type allows: the caller cuts.
    pub fn encode(&self, out: &mut BytesMut) {
        match self {
            Self::Control(json) => {
                assert!(
                    json.len() <= CONTROL_BYTES_MAX,
                    "control frame of {} bytes",
                    json.len()
                );
                put_header(out, TYPE_CONTROL, json.len());
                out.put_slice(json);
            }
            Self::Data { handle, bytes } => {
                assert!(
                    bytes.len() <= DATA_BYTES_MAX,
                    "data frame of {} bytes",
                    bytes.len()
                );
                put_header(out, TYPE_DATA, HANDLE_BYTES + bytes.len());
                out.put_u32(*handle);
                out.put_slice(bytes);
            }
            Self::Window { handle, bytes } => {
                put_header(out, TYPE_WINDOW, 2 * HANDLE_BYTES);
                out.put_u32(*handle);
                out.put_u32(*bytes);
            }
        }
    }

    /// Takes the first whole frame off `buffer`; `None` if it is not all there yet.
    ///
    /// # Errors
    /// As soon as the header is wrong, so that a bad peer cannot make us buffer more.
    pub fn decode(buffer: &mut BytesMut) -> Result<Option<Self>, FrameError> {
        if buffer.len() < LENGTH_BYTES {
            return Ok(None);
        }
        let length = u32::from_be_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]) as usize;
        if length == 0 {
            return Err(FrameError::Empty);
        }
        let Some(&kind) = buffer.get(LENGTH_BYTES) else {
            return Ok(None);
        };
        let body = length - 1;
        let (name, least, most) = match kind {
            TYPE_CONTROL => ("control", 2, CONTROL_BYTES_MAX),
            TYPE_DATA => ("data", HANDLE_BYTES + 1, HANDLE_BYTES + DATA_BYTES_MAX),
            TYPE_WINDOW => ("window", 2 * HANDLE_BYTES, 2 * HANDLE_BYTES),
            other => return Err(FrameError::Type(other)),
        };
        if !(least..=most).contains(&body) {
            return Err(FrameError::Length {
                kind: name,
                length: body,
                least,
                most,
            });
        }
        if buffer.len() < LENGTH_BYTES + length {
            buffer.reserve(LENGTH_BYTES + length - buffer.len());
            return Ok(None);
        }
        buffer.advance(LENGTH_BYTES + 1);
        let mut body = buffer.split_to(body).freeze();
        Ok(Some(match kind {
            TYPE_CONTROL => Self::Control(body),
            TYPE_DATA => Self::Data {
                handle: body.get_u32(),
                bytes: body,
            },
            _ => {
                let (handle, bytes) = (body.get_u32(), body.get_u32());
                if bytes == 0 {
                    return Err(FrameError::EmptyWindow);
                }
                Self::Window { handle, bytes }
            }
        }))
    }
}

fn put_header(out: &mut BytesMut, kind: u8, body_bytes: usize) {
    out.reserve(LENGTH_BYTES + 1 + body_bytes);
    out.put_u32((body_bytes + 1) as u32);
    out.put_u8(kind);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_frame() -> impl Strategy<Value = Frame> {
        let bytes =
            |least| proptest::collection::vec(any::<u8>(), least..300).prop_map(Bytes::from);
        prop_oneof![
            bytes(2).prop_map(Frame::Control),
            (any::<u32>(), bytes(1)).prop_map(|(handle, bytes)| Frame::Data { handle, bytes }),
            (any::<u32>(), 1..=u32::MAX)
                .prop_map(|(handle, bytes)| Frame::Window { handle, bytes }),
        ]
    }

    proptest! {
        /// Whatever the pieces in which a stream arrives, the same frames come out.
        #[test]
        fn frames_survive_any_cut(frames in proptest::collection::vec(any_frame(), 0..8), step in 1_usize..50) {
            let mut wire = BytesMut::new();
            for frame in &frames {
                frame.encode(&mut wire);
            }
            let mut buffer = BytesMut::new();
            let mut decoded = Vec::new();
            for piece in wire.chunks(step) {
                buffer.extend_from_slice(piece);
                while let Some(frame) = Frame::decode(&mut buffer).unwrap() {
                    decoded.push(frame);
                }
            }
            prop_assert_eq!(decoded, frames);
            prop_assert!(buffer.is_empty());
        }

        /// Arbitrary bytes are frames, an error, or not all there; never a panic, never
        /// more than the largest frame kept.
        #[test]
        fn arbitrary_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut buffer = BytesMut::from(&bytes[..]);
            let mut left = buffer.len();
            while let Ok(Some(_)) = Frame::decode(&mut buffer) {
                prop_assert!(buffer.len() < left);
                left = buffer.len();
            }
            prop_assert!(buffer.capacity() <= 400 + 16 + DATA_BYTES_MAX * 2);
        }
    }

    #[test]
    fn errors_name_value_and_bounds() {
        let decode = |bytes: &[u8]| {
            Frame::decode(&mut BytesMut::from(bytes))
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            decode(&[0, 0, 0, 0]),
            "a frame of length 0; the length counts the type byte"
        );
        assert_eq!(
            decode(&[0, 0, 0, 2, 9]),
            "frame type 9; it must be 1 (control), 2 (data) or 3 (window)"
        );
        assert_eq!(
            decode(&[0xff, 0xff, 0xff, 0xff, 1]),
            "a control frame with a body of 4294967294 bytes; it must have 2 to 1048576"
        );
        assert_eq!(
            decode(&[0, 0, 0, 5, 2]),
            "a data frame with a body of 4 bytes; it must have 5 to 262148"
        );
        assert_eq!(
            decode(&[0, 0, 0, 9, 3, 0, 0, 0, 1, 0, 0, 0, 0]),
            "a window update of 0 bytes; it must be 1 or more"
        );
    }
}
