//! Frames of captures, handed to a switch as if they came to its ports.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::time::Duration;

use super::control::{DataplaneHandle, Stopped};
use super::settings::{Attachment, PortSettings};
use wormcast_switch_pipeline::PortId;
use wormcast_switch_ports::{CapturedFrame, PcapError, PcapReader};

/// Captures of several ports, frame by frame in the order of their stamps; of two frames
/// with one stamp that of the port that was given first comes first.
///
/// A capture may be a named pipe: then reading waits for whoever writes it. A frame is read when the one
/// before has passed, so that none waits for the next one to be written.
#[derive(Debug)]
pub struct Replay {
    tracks: Vec<Track>,
}

#[derive(Debug)]
struct Track {
    port: PortId,
    path: PathBuf,
    reader: PcapReader<BufReader<File>>,
    next: Option<CapturedFrame>,
    ended: bool,
}

/// A capture that cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[error("{}: {error}", path.display())]
pub struct ReplayError {
    pub path: PathBuf,
    /// What is wrong with it.
    pub error: PcapError,
}

/// The capture that the frames of a port come from; `None` for an interface.
fn input_of(port: &PortSettings) -> Option<PathBuf> {
    match &port.attachment {
        Attachment::Files(name) => Some(PathBuf::from(format!("{name}_in.pcap"))),
        Attachment::Interface(_) => None,
    }
}

impl Replay {
    /// Opens the captures of those ports that have some. Waits for named pipes.
    ///
    /// # Errors
    /// The first capture that cannot be read.
    pub fn open(ports: &[PortSettings]) -> Result<Self, ReplayError> {
        let mut tracks = Vec::new();
        for port in ports {
            let Some(path) = input_of(port) else {
                continue;
            };
            let opened = File::open(&path)
                .map_err(PcapError::Io)
                .and_then(|file| PcapReader::new(BufReader::new(file)));
            let reader = opened.map_err(|error| ReplayError {
                path: path.clone(),
                error,
            })?;
            tracks.push(Track {
                port: port.number,
                path,
                reader,
                next: None,
                ended: false,
            });
        }
        Ok(Self { tracks })
    }

    /// The next frame and its port; `None` after the last one. Reads a frame of each capture
    /// first, where there is none from before.
    ///
    /// # Errors
    /// A capture that cannot be read on.
    pub fn next_frame(&mut self) -> Result<Option<(PortId, Vec<u8>)>, ReplayError> {
        self.tracks.iter_mut().try_for_each(Track::fill)?;
        let tracks = self.tracks.iter_mut();
        let waiting = tracks.filter_map(|track| Some((track.next.as_ref()?.time_ns, track)));
        let Some((_, track)) = waiting.min_by_key(|(time_ns, _)| *time_ns) else {
            return Ok(None);
        };
        let port = track.port;
        Ok(track.next.take().map(|frame| (port, frame.frame)))
    }

    /// Waits, then hands every frame to the switch, each when the one before has passed.
    /// Gives how many there were.
    ///
    /// # Errors
    /// A capture that cannot be read; the frames before it have passed.
    pub fn run(
        mut self,
        wait: Duration,
        dataplane: &DataplaneHandle,
        runtime: &tokio::runtime::Handle,
    ) -> Result<u64, ReplayError> {
        std::thread::sleep(wait);
        let mut frames = 0;
        while let Some((port, frame)) = self.next_frame()? {
            let passed = dataplane.run(move |switch| switch.replay(port, &frame));
            if let Err(Stopped) = runtime.block_on(passed) {
                break;
            }
            frames += 1;
        }
        Ok(frames)
    }
}

impl Track {
    fn fill(&mut self) -> Result<(), ReplayError> {
        if self.next.is_some() || self.ended {
            return Ok(());
        }
        self.next = self.reader.next_frame().map_err(|error| ReplayError {
            path: self.path.clone(),
            error,
        })?;
        self.ended = self.next.is_none();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use wormcast_switch_ports::PcapWriter;

    fn port(directory: &tempfile::TempDir, number: u16, stamps: &[u64]) -> PortSettings {
        let name = directory.path().join(format!("port{number}"));
        let name = name.to_str().unwrap().to_owned();
        let path = PathBuf::from(format!("{name}_in.pcap"));
        let mut writer = PcapWriter::create(&path).unwrap();
        for stamp in stamps {
            writer.write(*stamp, &stamp.to_be_bytes()).unwrap();
        }
        writer.flush().unwrap();
        PortSettings {
            number: PortId(number),
            attachment: Attachment::Files(name),
        }
    }

    #[test]
    fn frames_come_in_the_order_of_their_stamps() {
        let directory = tempfile::tempdir().unwrap();
        let ports = [
            port(&directory, 1, &[10, 40, 40]),
            port(&directory, 2, &[10, 20, 90]),
            port(&directory, 3, &[]),
        ];
        let mut replay = Replay::open(&ports).unwrap();
        let mut order = Vec::new();
        while let Some((port, frame)) = replay.next_frame().unwrap() {
            order.push((port.0, u64::from_be_bytes(frame.try_into().unwrap())));
        }
        assert_eq!(
            order,
            [(1, 10), (2, 10), (2, 20), (1, 40), (1, 40), (2, 90)]
        );
    }

    #[test]
    fn a_frame_does_not_wait_for_the_next_one() {
        let directory = tempfile::tempdir().unwrap();
        let ports = [port(&directory, 1, &[10])];
        let mut replay = Replay::open(&ports).unwrap();
        // A second frame that is longer than any: whoever reads on says so.
        let path = directory.path().join("port1_in.pcap");
        let mut capture = std::fs::OpenOptions::new().append(true).open(path).unwrap();
        capture.write_all(&[0xff; 16]).unwrap();
        let (port, frame) = replay.next_frame().unwrap().unwrap();
        assert_eq!((port, frame), (PortId(1), 10u64.to_be_bytes().to_vec()));
        assert!(replay.next_frame().is_err());
    }

    #[test]
    fn a_capture_that_is_not_there_is_named() {
        let ports = [PortSettings {
            number: PortId(1),
            attachment: Attachment::Files("/no/such/port".to_owned()),
        }];
        let error = Replay::open(&ports).unwrap_err().to_string();
        assert!(error.starts_with("/no/such/port_in.pcap: "), "{error}");
    }
}
