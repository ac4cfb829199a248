//! Where the frames of a port come from.

use std::sync::Arc;

use super::mailbox::Mailbox;
use super::port::Capture;
use wormcast_switch_pipeline::PortId;
use wormcast_switch_ports::{LinkReceiver, ReceiveRing};

/// The receiving half of a port.
pub(super) struct Input {
    pub(super) number: PortId,
    /// Name of the interface, or of the port at the other end of the link.
    pub(super) name: String,
    pub(super) source: Source,
    pub(super) capture: Option<Capture>,
    /// It was left alone for want of room, and is until then.
    pub(super) blocked_until_us: u64,
    /// The thread that receives from it, of those that share the switch.
    pub(super) thread: usize,
}

pub(super) enum Source {
    Interface {
        /// Its number in the kernel when it was opened.
        index: u32,
        /// `None` while the interface is not there.
        ring: Option<ReceiveRing>,
    },
    /// A port of a switch in this process.
    Link(LinkInput),
    /// A capture, whose frames are handed over one by one.
    Replayed { frames: u64, bytes: u64 },
    /// Nothing: the port was removed.
    Nothing,
}

/// The receiving end of a link, and whom to tell that there is room on it.
pub(super) struct LinkInput {
    pub(super) receiver: LinkReceiver,
    pub(super) sender_mailbox: Arc<Mailbox>,
    pub(super) sender_event: usize,
}

impl Input {
    /// Whether a frame waits.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        match &self.source {
            Source::Interface { ring, .. } => ring.as_ref().is_some_and(ReceiveRing::is_ready),
            Source::Link(link) => link.receiver.is_ready(),
            Source::Replayed { .. } | Source::Nothing => false,
        }
    }

    /// Hands over at most `limit` frames, oldest first, and gives their number.
    #[inline]
    pub(super) fn receive(
        &mut self,
        limit: usize,
        unix_us: u64,
        mut take: impl FnMut(&[u8]),
    ) -> usize {
        let capture = &mut self.capture;
        let take = |frame: &[u8]| {
            if let Some(capture) = capture {
                // A full disk must not stop the switch; the capture ends short.
                let _ = capture.write(unix_us, frame);
            }
            take(frame);
        };
        match &mut self.source {
            Source::Interface { ring, .. } => match ring {
                Some(ring) => ring.receive(limit, take),
                None => 0,
            },
            Source::Link(link) => {
                let received = link.receiver.receive(limit, take);
                if received > 0 && link.receiver.takes_waiting() {
                    link.sender_mailbox.post(link.sender_event);
                }
                received
            }
            Source::Replayed { .. } | Source::Nothing => 0,
        }
    }

    /// Counts a frame of a replay, and takes it into the capture, if there is one.
    pub(super) fn record(&mut self, unix_us: u64, frame: &[u8]) {
        if let Source::Replayed { frames, bytes } = &mut self.source {
            *frames += 1;
            *bytes += frame.len() as u64;
        }
        if let Some(capture) = &mut self.capture {
            // A full disk must not stop the switch; the capture ends short.
            let _ = capture.write(unix_us, frame);
        }
    }

    /// Shows every frame that waits, once; what is taken is not received.
    #[inline]
    pub(super) fn look_ahead(&mut self, take: impl FnMut(&[u8]) -> bool) {
        match &mut self.source {
            Source::Interface { ring, .. } => {
                if let Some(ring) = ring {
                    ring.look_ahead(take);
                }
            }
            Source::Link(link) => link.receiver.look_ahead(take),
            Source::Replayed { .. } | Source::Nothing => {}
        }
    }

    /// Whether it is an interface, which nobody announces frames of.
    pub(super) fn is_interface(&self) -> bool {
        matches!(self.source, Source::Interface { .. })
    }

    /// Frames that its interface, if it is one that is there, has brought so far.
    pub(super) fn ring_frames(&self) -> u64 {
        self.ring().map_or(0, ReceiveRing::received_frames)
    }

    /// The ring of an interface that is there.
    pub(super) fn ring(&self) -> Option<&ReceiveRing> {
        match &self.source {
            Source::Interface { ring, .. } => ring.as_ref(),
            Source::Link(_) | Source::Replayed { .. } | Source::Nothing => None,
        }
    }
}
