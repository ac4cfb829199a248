//! Captures. Whatever is read is read again as it was when it has been written, and a frame
//! is as long as the format allows at most.
//!
//! Input: the file.

use wormcast_switch_ports::{CapturedFrame, PcapError, PcapReader, PcapWriter};

/// Longest frame of a capture, bytes.
const FRAME_BYTES_MAX: usize = 262_144;

fn read(file: &[u8]) -> (Vec<CapturedFrame>, Option<PcapError>) {
    let mut frames = Vec::new();
    let mut reader = match PcapReader::new(file) {
        Ok(reader) => reader,
        Err(error) => return (frames, Some(error)),
    };
    loop {
        match reader.next_frame() {
            Ok(Some(frame)) => frames.push(frame),
            Ok(None) => return (frames, None),
            Err(error) => return (frames, Some(error)),
        }
    }
}

pub fn run(data: &[u8]) {
    let (frames, error) = read(data);
    if let Some(error) = error {
        assert!(!error.to_string().is_empty());
    }
    let mut bytes = 24;
    let mut written = Vec::new();
    let mut writer = PcapWriter::new(&mut written).expect("memory takes all");
    for CapturedFrame { time_ns, frame } in &frames {
        assert!(frame.len() <= FRAME_BYTES_MAX);
        bytes += 16 + frame.len();
        writer
            .write(time_ns / 1_000, frame)
            .expect("memory takes all");
    }
    assert!(bytes <= data.len().max(24), "every byte is read once");
    assert_eq!(writer.records(), frames.len() as u64);
    for file in [other_order(&written), written] {
        let (again, error) = read(&file);
        assert!(error.is_none(), "{error:?}");
        assert_eq!(again.len(), frames.len());
        for (before, after) in frames.iter().zip(&again) {
            assert_eq!(before.frame, after.frame);
            // A stamp has 32 bits of seconds.
            let expected_us = before.time_ns / 1_000 % (1_000_000 << 32);
            assert_eq!(after.time_ns, expected_us * 1_000);
        }
    }
}

/// A capture of this machine as one of the other byte order has it.
fn other_order(file: &[u8]) -> Vec<u8> {
    let mut other = file.to_vec();
    let reverse = |other: &mut [u8], at: usize, bytes: usize| other[at..at + bytes].reverse();
    for (at, bytes) in [(0, 4), (4, 2), (6, 2), (8, 4), (12, 4), (16, 4), (20, 4)] {
        reverse(&mut other, at, bytes);
    }
    let mut record = 24;
    while record < file.len() {
        let length = file[record + 8..record + 12]
            .try_into()
            .expect("four bytes");
        for word in 0..4 {
            reverse(&mut other, record + 4 * word, 4);
        }
        record += 16 + u32::from_ne_bytes(length) as usize;
    }
    other
}

pub fn seeds() -> Vec<Vec<u8>> {
    let mut native = Vec::new();
    let mut writer = PcapWriter::new(&mut native).expect("memory takes all");
    for (time_us, frame) in [
        (1_000_000, &[0xa5; 60][..]),
        (1_000_007, &[]),
        (7, &[1; 14]),
    ] {
        writer.write(time_us, frame).expect("memory takes all");
    }
    let swapped = other_order(&native);
    let mut nanoseconds = native.clone();
    nanoseconds[..4].copy_from_slice(&0xa1b2_3c4d_u32.to_ne_bytes());
    vec![native, swapped, nanoseconds, Vec::new()]
}
