//! Stream channels that are open, and what goes out by them.

use std::collections::BTreeMap;

use tokio::sync::mpsc;
use tonic::{Code, Status};

use super::arbitration::{Arbitration, Notification, StreamId};
use super::proto::p4::v1::{
    MasterArbitrationUpdate, StreamMessageResponse, stream_message_response as response,
};
use super::refusals::Refusals;
use super::rejection::Rejection;
use super::roles::Access;

/// Messages that may wait for one controller.
pub const STREAM_MESSAGES_MAX: usize = 4_096;

/// Of these, kept free for what is not a packet-in or a digest.
const STREAM_MESSAGES_RESERVED: usize = 256;

/// Streams that may be open, whether they have introduced themselves or not.
pub const STREAMS_OPEN_MAX: usize = 1_024;

/// Where messages for one controller go.
pub type Outgoing = mpsc::Sender<Result<StreamMessageResponse, Status>>;

/// All streams.
#[derive(Debug)]
pub struct Streams {
    /// Who is primary of which role.
    pub arbitration: Arbitration,
    outgoing: BTreeMap<StreamId, Outgoing>,
    next: u64,
    /// Packet-ins, digests and idle entries that were for no primary.
    pub no_primary: u64,
    /// Packet-ins, digests and idle entries that found a primary's queue full.
    pub queue_full: u64,
    /// Packet-ins that were shorter than the header in front of them.
    pub too_short: u64,
    /// Messages of controllers that were refused.
    pub refusals: Refusals,
}

impl Streams {
    /// No stream.
    pub fn new(device_id: u64) -> Self {
        Self {
            arbitration: Arbitration::new(device_id),
            outgoing: BTreeMap::new(),
            next: 0,
            no_primary: 0,
            queue_full: 0,
            too_short: 0,
            refusals: Refusals::default(),
        }
    }

    /// A new stream, which has not introduced itself yet.
    pub fn open(&mut self, outgoing: Outgoing) -> Result<StreamId, Rejection> {
        if self.outgoing.len() >= STREAMS_OPEN_MAX {
            return Err(Rejection::new(
                Code::ResourceExhausted,
                format!("{STREAMS_OPEN_MAX} streams are open, which is the most"),
            ));
        }
        self.next += 1;
        let stream = StreamId(self.next);
        self.outgoing.insert(stream, outgoing);
        Ok(stream)
    }

    /// Takes an arbitration message; gives whom to tell what.
    pub fn arbitrate(
        &mut self,
        stream: StreamId,
        message: &MasterArbitrationUpdate,
    ) -> Result<Vec<Notification>, Rejection> {
        self.arbitration.update(stream, message)
    }

    /// A stream has ended; gives whom to tell what.
    pub fn close(&mut self, stream: StreamId) -> Vec<Notification> {
        self.outgoing.remove(&stream);
        self.arbitration.disconnect(stream)
    }

    /// Sends notifications. A controller that does not read them is cut off: it would
    /// go on believing what is no longer so.
    pub fn notify(&mut self, notifications: Vec<Notification>) {
        for (stream, update) in notifications {
            self.send(stream, response::Update::Arbitration(update));
        }
    }

    /// Sends anything but a packet-in or digest to one controller.
    pub fn send(&mut self, stream: StreamId, update: response::Update) {
        let message = StreamMessageResponse {
            update: Some(update),
        };
        let full = match self.outgoing.get(&stream) {
            Some(outgoing) => outgoing.try_send(Ok(message)).is_err(),
            None => false,
        };
        if full {
            self.outgoing.remove(&stream);
        }
    }

    /// Sends a packet-in, digests or idle entries to the primary of each role that takes
    /// them, if it has room for them.
    pub fn send_to_primaries(
        &mut self,
        takes: impl Fn(&Access) -> bool,
        update: &response::Update,
    ) {
        let mut is_for_none = true;
        for (stream, access) in self.arbitration.primaries() {
            let Some(outgoing) = self.outgoing.get(&stream).filter(|_| takes(access)) else {
                continue;
            };
            is_for_none = false;
            let message = StreamMessageResponse {
                update: Some(update.clone()),
            };
            if outgoing.capacity() <= STREAM_MESSAGES_RESERVED
                || outgoing.try_send(Ok(message)).is_err()
            {
                self.queue_full += 1;
            }
        }
        if is_for_none {
            self.no_primary += 1;
        }
    }

    /// Ends a stream with an error.
    pub fn refuse(&mut self, stream: StreamId, rejection: Rejection) {
        if let Some(outgoing) = self.outgoing.remove(&stream) {
            // A full queue ends the stream too, without the reason.
            let _ = outgoing.try_send(Err(rejection.into()));
        }
    }
}
