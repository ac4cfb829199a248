//! Messages of the pair as they are sent.

/// Bytes before a frame or a status.
const HEAD_BYTES: usize = 12;

/// What goes over the pair. As bytes it is a type, a port and a third number of four bytes
/// each, and then what the type has: a frame, whose length the third number is, or a
/// status. Numbers are little-endian, as BMv2 has them on the machines it runs on.
///
/// Source: `packet_hdr_t` of BMv2's `dev_mgr_packet_in.cpp`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortMessage {
    Add {
        port: u32,
    },
    Remove {
        port: u32,
    },
    /// A port is up or down.
    Status {
        port: u32,
        up: bool,
    },
    /// A frame comes to a port.
    In {
        port: u32,
        frame: Vec<u8>,
    },
    /// A frame leaves by a port.
    Out {
        port: u32,
        frame: Vec<u8>,
    },
    /// Something is asked about a port.
    Question {
        port: u32,
        /// What; BMv2 knows no question.
        question: u32,
    },
    /// The answer: that this is not known.
    NotSupported {
        /// The port that was asked about.
        port: u32,
        question: u32,
    },
}

impl PortMessage {
    pub fn to_bytes(&self) -> Vec<u8> {
        let head = |numbers: [u32; 3]| -> Vec<u8> {
            numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
        };
        let with = |kind, port, frame: &[u8]| {
            let mut bytes = head([kind, port, frame.len() as u32]);
            bytes.extend_from_slice(frame);
            bytes
        };
        match self {
            Self::Add { port } => head([0, *port, 0]),
            Self::Remove { port } => head([1, *port, 0]),
            Self::Status { port, up } => head([2, *port, u32::from(*up)]),
            Self::In { port, frame } => with(3, *port, frame),
            Self::Out { port, frame } => with(4, *port, frame),
            Self::Question { port, question } => head([5, *port, *question]),
            Self::NotSupported { port, question } => {
                let mut bytes = head([6, *port, *question]);
                bytes.extend(1u32.to_le_bytes());
                bytes
            }
        }
    }

    /// What a message says.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() else {
            let length = bytes.len();
            return Err(format!(
                "a message of {length} bytes, which begin with {HEAD_BYTES} of three numbers"
            ));
        };
        let number =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (kind, port, more) = (number(0), number(4), number(8));
        let frame = || {
            let wanted = usize::try_from(more).unwrap_or(usize::MAX);
            let frame = rest.get(..wanted).map(<[u8]>::to_vec);
            frame.ok_or_else(|| format!("a frame of {more} bytes of which {} came", rest.len()))
        };
        Ok(match (kind, more) {
            (0, _) => Self::Add { port },
            (1, _) => Self::Remove { port },
            (2, 0 | 1) => Self::Status {
                port,
                up: more == 1,
            },
            (2, status) => return Err(format!("status {status} of port {port}; possible: 0, 1")),
            (3, _) => Self::In {
                port,
                frame: frame()?,
            },
            (4, _) => Self::Out {
                port,
                frame: frame()?,
            },
            (5, question) => Self::Question { port, question },
            (6, question) => Self::NotSupported { port, question },
            (other, _) => return Err(format!("a message of type {other}; possible: 0 to 6")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn as_bmv2_has_them() {
        let frame = vec![0xaa, 0xbb];
        for (message, bytes) in [
            (
                PortMessage::Add { port: 5 },
                b"\0\0\0\0\x05\0\0\0\0\0\0\0".as_slice(),
            ),
            (
                PortMessage::Status { port: 5, up: true },
                b"\x02\0\0\0\x05\0\0\0\x01\0\0\0",
            ),
            (
                PortMessage::In {
                    port: 0x102,
                    frame: frame.clone(),
                },
                b"\x03\0\0\0\x02\x01\0\0\x02\0\0\0\xaa\xbb",
            ),
            (
                PortMessage::Out { port: 1, frame },
                b"\x04\0\0\0\x01\0\0\0\x02\0\0\0\xaa\xbb",
            ),
            (
                PortMessage::NotSupported {
                    port: 1,
                    question: 7,
                },
                b"\x06\0\0\0\x01\0\0\0\x07\0\0\0\x01\0\0\0",
            ),
        ] {
            assert_eq!(message.to_bytes(), bytes);
            assert_eq!(PortMessage::from_bytes(bytes), Ok(message));
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (bytes, problem) in [
            (b"\x03\0\0\0".as_slice(), "a message of 4 bytes"),
            (
                b"\x03\0\0\0\x05\0\0\0\x03\0\0\0\xaa\xbb",
                "a frame of 3 bytes of which 2 came",
            ),
            (
                b"\x02\0\0\0\x05\0\0\0\x02\0\0\0",
                "status 2 of port 5; possible: 0, 1",
            ),
            (
                b"\x07\0\0\0\x05\0\0\0\x02\0\0\0",
                "a message of type 7; possible: 0 to 6",
            ),
        ] {
            let error = PortMessage::from_bytes(bytes).unwrap_err();
            assert!(error.starts_with(problem), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(0..8u8, 0..40)) {
            if let Ok(message) = PortMessage::from_bytes(&bytes) {
                prop_assert_eq!(PortMessage::from_bytes(&message.to_bytes()), Ok(message));
            }
        }
    }
}
