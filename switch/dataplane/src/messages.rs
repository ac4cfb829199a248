//! Frames that leave in messages rather than by an interface.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;

use wormcast_switch_pipeline::PortId;

/// Frames that wait until somebody sends them on; more are lost and counted.
pub const SENT_FRAMES_MAX: usize = 4_096;

/// A frame that has left by a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentFrame {
    /// The mark of the frame that led to it; 0: of none.
    pub mark: u64,
    pub port: PortId,
    pub frame: Vec<u8>,
}

/// Where frames go that leave by ports without interfaces.
#[derive(Clone, Debug)]
pub struct MessagePorts {
    frames: mpsc::Sender<SentFrame>,
    /// The mark of the frame that is in the pipeline.
    mark: Arc<AtomicU64>,
}

impl MessagePorts {
    /// These, and where the frames come out.
    pub fn new() -> (Self, mpsc::Receiver<SentFrame>) {
        let (frames, receiver) = mpsc::channel(SENT_FRAMES_MAX);
        let ports = Self {
            frames,
            mark: Arc::new(AtomicU64::new(0)),
        };
        (ports, receiver)
    }

    /// Frames that leave from now on have this mark.
    pub(super) fn set_mark(&self, mark: u64) {
        self.mark.store(mark, Ordering::Relaxed);
    }
}

/// The sending half of a port without an interface, or of all that were not added.
pub(super) struct MessageLink {
    ports: MessagePorts,
    /// It stands for all ports that were not added.
    pub(super) is_for_others: bool,
    pub(super) sent_frames: u64,
    pub(super) sent_bytes: u64,
}

impl MessageLink {
    pub(super) fn new(ports: MessagePorts, is_for_others: bool) -> Self {
        Self {
            ports,
            is_for_others,
            sent_frames: 0,
            sent_bytes: 0,
        }
    }

    /// `false`: there is no room.
    pub(super) fn send(&mut self, port: PortId, frame: &[u8]) -> bool {
        let sent = self.ports.frames.try_send(SentFrame {
            mark: self.ports.mark.load(Ordering::Relaxed),
            port,
            frame: frame.to_vec(),
        });
        self.sent_frames += u64::from(sent.is_ok());
        self.sent_bytes += if sent.is_ok() { frame.len() as u64 } else { 0 };
        sent.is_ok()
    }
}
