//! Captures in pcap format (draft-ietf-opsawg-pcap), microsecond stamps, Ethernet.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

const MAGIC_MICROSECONDS: u32 = 0xa1b2_c3d4;
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const VERSION_MAJOR: u16 = 2;
const VERSION_MINOR: u16 = 4;
const SNAP_BYTES: u32 = 262_144;
const LINKTYPE_ETHERNET: u32 = 1;

/// Writes frames to one capture file. Writes are buffered; [`flush`](Self::flush) when
/// there is time.
#[derive(Debug)]
pub struct PcapWriter<W: Write> {
    output: W,
    records: u64,
}

impl PcapWriter<BufWriter<File>> {
    /// Creates the file, or empties the one that is there.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::new(BufWriter::with_capacity(1 << 18, File::create(path)?))
    }
}

impl<W: Write> PcapWriter<W> {
    /// Writes the file header.
    pub fn new(mut output: W) -> io::Result<Self> {
        let mut header = Vec::with_capacity(24);
        header.extend(MAGIC_MICROSECONDS.to_ne_bytes());
        header.extend(VERSION_MAJOR.to_ne_bytes());
        header.extend(VERSION_MINOR.to_ne_bytes());
        header.extend([0; 8]);
        header.extend(SNAP_BYTES.to_ne_bytes());
        header.extend(LINKTYPE_ETHERNET.to_ne_bytes());
        output.write_all(&header)?;
        Ok(Self { output, records: 0 })
    }

    /// Adds a frame seen `time_us` microseconds after the start of 1970.
    pub fn write(&mut self, time_us: u64, frame: &[u8]) -> io::Result<()> {
        let seconds = (time_us / 1_000_000) as u32;
        let microseconds = (time_us % 1_000_000) as u32;
        let length = frame.len() as u32;
        let mut header = [0; 16];
        header[0..4].copy_from_slice(&seconds.to_ne_bytes());
        header[4..8].copy_from_slice(&microseconds.to_ne_bytes());
        header[8..12].copy_from_slice(&length.min(SNAP_BYTES).to_ne_bytes());
        header[12..16].copy_from_slice(&length.to_ne_bytes());
        self.output.write_all(&header)?;
        self.output
            .write_all(&frame[..length.min(SNAP_BYTES) as usize])?;
        self.records += 1;
        Ok(())
    }

    pub fn records(&self) -> u64 {
        self.records
    }

    /// Hands everything to the file.
    pub fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedFrame {
    /// When it was seen, nanoseconds after the start of 1970.
    pub time_ns: u64,
    pub frame: Vec<u8>,
}

/// Why a capture cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PcapError {
    #[error(transparent)]
    Io(io::Error),
    /// It does not begin as captures do.
    #[error(
        "not a capture in pcap format: it begins with {magic:02x?} (pcapng is another format; editcap -F \
         pcap converts)"
    )]
    NotPcap {
        /// Its first four bytes.
        magic: [u8; 4],
    },
    /// The file ends within a frame.
    #[error("the file ends within frame {}", frames + 1)]
    Ends {
        /// Frames before it.
        frames: u64,
    },
    /// A frame of which only a part was captured.
    #[error("frame {} has {captured} of its {original} bytes; frames must be whole", frames + 1)]
    Cut {
        /// Frames before it.
        frames: u64,
        /// Bytes that were captured.
        captured: u32,
        /// Bytes it had.
        original: u32,
    },
    /// A frame longer than a capture can have.
    #[error("frame {} has {bytes} bytes; a capture has at most {SNAP_BYTES}", frames + 1)]
    TooLong {
        /// Frames before it.
        frames: u64,
        /// Bytes it would have.
        bytes: u32,
    },
}

/// Reads the frames of one capture, with stamps of microseconds or nanoseconds, written by
/// a machine of either byte order.
#[derive(Debug)]
pub struct PcapReader<R: Read> {
    input: R,
    swapped: bool,
    nanoseconds: bool,
    frames: u64,
}

impl<R: Read> PcapReader<R> {
    /// Reads the file header.
    ///
    /// # Errors
    /// `Io`, `NotPcap`. An empty file is not a capture either.
    pub fn new(mut input: R) -> Result<Self, PcapError> {
        let mut header = [0; 24];
        let mut filled = 0;
        while filled < header.len() {
            match input.read(&mut header[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(PcapError::Io(error)),
            }
        }
        let magic = [header[0], header[1], header[2], header[3]];
        let number = u32::from_ne_bytes(magic);
        let (swapped, number) = match number {
            MAGIC_MICROSECONDS | MAGIC_NANOSECONDS => (false, number),
            _ => (true, number.swap_bytes()),
        };
        let known = matches!(number, MAGIC_MICROSECONDS | MAGIC_NANOSECONDS);
        if !known || filled < header.len() {
            return Err(PcapError::NotPcap { magic });
        }
        Ok(Self {
            input,
            swapped,
            nanoseconds: number == MAGIC_NANOSECONDS,
            frames: 0,
        })
    }

    /// The next frame; `None` after the last one.
    ///
    /// # Errors
    /// See [`PcapError`]; nothing can be read after one.
    pub fn next_frame(&mut self) -> Result<Option<CapturedFrame>, PcapError> {
        let frames = self.frames;
        let mut header = [0; 16];
        let mut filled = 0;
        while filled < header.len() {
            match self.input.read(&mut header[filled..]) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => return Err(PcapError::Ends { frames }),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(PcapError::Io(error)),
            }
        }
        let word = |at: usize| {
            let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
            let word = u32::from_ne_bytes(bytes);
            if self.swapped {
                word.swap_bytes()
            } else {
                word
            }
        };
        let (captured, original) = (word(8), word(12));
        if captured > SNAP_BYTES {
            return Err(PcapError::TooLong {
                frames,
                bytes: captured,
            });
        }
        if captured != original {
            return Err(PcapError::Cut {
                frames,
                captured,
                original,
            });
        }
        let fraction = u64::from(word(4)) * if self.nanoseconds { 1 } else { 1_000 };
        let time_ns = u64::from(word(0)) * 1_000_000_000 + fraction;
        let mut frame = vec![0; captured as usize];
        self.input
            .read_exact(&mut frame)
            .map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => PcapError::Ends { frames },
                _ => PcapError::Io(error),
            })?;
        self.frames += 1;
        Ok(Some(CapturedFrame { time_ns, frame }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            frames in proptest::collection::vec(
                (0..4_000_000_000_000_000u64, proptest::collection::vec(any::<u8>(), 0..50)),
                0..6,
            ),
        ) {
            let mut bytes = Vec::new();
            let mut writer = PcapWriter::new(&mut bytes).unwrap();
            for (time_us, frame) in &frames {
                writer.write(*time_us, frame).unwrap();
            }
            let mut reader = PcapReader::new(bytes.as_slice()).unwrap();
            for (time_us, frame) in frames {
                let time_ns = time_us * 1_000;
                let expected = CapturedFrame { time_ns, frame };
                prop_assert_eq!(reader.next_frame().unwrap(), Some(expected));
            }
            prop_assert_eq!(reader.next_frame().unwrap(), None);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let magic = MAGIC_MICROSECONDS.to_ne_bytes();
            let capture = [&magic[..], &[0; 20], &bytes].concat();
            for bytes in [&bytes, &capture] {
                if let Ok(mut reader) = PcapReader::new(bytes.as_slice()) {
                    while let Ok(Some(_)) = reader.next_frame() {}
                }
            }
        }
    }

    /// A capture of a machine with the other byte order and nanoseconds, with one record.
    fn foreign(captured: u32, original: u32, bytes: &[u8]) -> Vec<u8> {
        let words = |words: &[u32]| -> Vec<u8> {
            let words = words.iter();
            words
                .flat_map(|word| word.swap_bytes().to_ne_bytes())
                .collect()
        };
        let header = words(&[MAGIC_NANOSECONDS, 0, 0, 0, 65_535, 1]);
        let record = words(&[7, 5, captured, original]);
        [header, record, bytes.to_vec()].concat()
    }

    #[test]
    fn the_other_byte_order_and_nanoseconds() {
        let bytes = foreign(2, 2, &[8, 9]);
        let frame = PcapReader::new(bytes.as_slice()).unwrap().next_frame();
        let expected = CapturedFrame {
            time_ns: 7_000_000_005,
            frame: vec![8, 9],
        };
        assert_eq!(frame.unwrap(), Some(expected));
    }

    #[test]
    fn errors_name_the_frame() {
        let error = |bytes: Vec<u8>| {
            let mut reader = PcapReader::new(bytes.as_slice()).unwrap();
            reader.next_frame().unwrap_err().to_string()
        };
        assert_eq!(error(foreign(2, 2, &[8])), "the file ends within frame 1");
        assert_eq!(
            error(foreign(2, 60, &[8, 9])),
            "frame 1 has 2 of its 60 bytes; frames must be whole"
        );
        assert!(error(foreign(300_000, 300_000, &[])).contains("at most 262144"));
        let pcapng = PcapReader::new(&[0x0a, 0x0d, 0x0d, 0x0a][..]).unwrap_err();
        assert!(pcapng.to_string().contains("begins with [0a, 0d, 0d, 0a]"));
    }

    #[test]
    fn file_is_what_readers_expect() {
        let mut bytes = Vec::new();
        let mut writer = PcapWriter::new(&mut bytes).unwrap();
        writer.write(1_700_000_000_123_456, &[1, 2, 3]).unwrap();
        assert_eq!(writer.records(), 1);
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!(word(0), 0xa1b2_c3d4);
        assert_eq!(word(20), 1);
        assert_eq!((word(24), word(28)), (1_700_000_000, 123_456));
        assert_eq!((word(32), word(36)), (3, 3));
        assert_eq!(&bytes[40..], [1, 2, 3]);
    }
}
