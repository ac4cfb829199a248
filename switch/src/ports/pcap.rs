//! Captures in pcap format (draft-ietf-opsawg-pcap), microsecond stamps, Ethernet.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

const MAGIC_MICROSECONDS: u32 = 0xa1b2_c3d4;
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

    /// Frames written so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Hands everything to the file.
    pub fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
