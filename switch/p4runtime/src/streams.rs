//! Stream channels that are open, and what goes out by them.

use std::collections::BTreeMap;
use std::convert::Infallible;

use tokio::sync::{mpsc, oneshot};
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

/// Of these, kept free for who is primary.
const STREAM_MESSAGES_RESERVED: usize = 256;

/// Streams that may be open, whether they have introduced themselves or not.
pub const STREAMS_OPEN_MAX: usize = 1_024;

/// Where messages for one controller go.
pub type Outgoing = mpsc::Sender<Result<StreamMessageResponse, Status>>;

/// Is ready when a stream is cut off.
pub type CutOff = oneshot::Receiver<Infallible>;

#[derive(Debug)]
struct OpenStream {
    outgoing: Outgoing,
    /// Dropped with it.
    _while_open: oneshot::Sender<Infallible>,
}

#[derive(Debug)]
pub struct Streams {
    /// Who is primary of which role.
    pub arbitration: Arbitration,
    open: BTreeMap<StreamId, OpenStream>,
    next: u64,
    /// Packet-ins, digests and idle entries that were for no primary.
    pub no_primary: u64,
    /// Packet-ins, digests, idle entries and errors of packet-outs that found a controller's queue full.
    pub queue_full: u64,
    /// Packet-ins that were shorter than the header in front of them.
    pub too_short: u64,
    /// Messages of controllers that were refused.
    pub refusals: Refusals,
}

impl Streams {
    pub fn new(device_id: u64) -> Self {
        Self {
            arbitration: Arbitration::new(device_id),
            open: BTreeMap::new(),
            next: 0,
            no_primary: 0,
            queue_full: 0,
            too_short: 0,
            refusals: Refusals::default(),
        }
    }

    /// A new stream, which has not introduced itself yet.
    pub fn open(&mut self, outgoing: Outgoing) -> Result<(StreamId, CutOff), Rejection> {
        if self.open.len() >= STREAMS_OPEN_MAX {
            return Err(Rejection::new(
                Code::ResourceExhausted,
                format!("{STREAMS_OPEN_MAX} streams are open, which is the most"),
            ));
        }
        self.next += 1;
        let stream = StreamId(self.next);
        let (while_open, cut_off) = oneshot::channel();
        let opened = OpenStream {
            outgoing,
            _while_open: while_open,
        };
        self.open.insert(stream, opened);
        Ok((stream, cut_off))
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
        self.open.remove(&stream);
        self.arbitration.disconnect(stream)
    }

    /// Sends notifications. A controller that does not read them is cut off: it would
    /// go on believing what is no longer so.
    pub fn notify(&mut self, notifications: Vec<Notification>) {
        for (stream, update) in notifications {
            let message = StreamMessageResponse {
                update: Some(response::Update::Arbitration(update)),
            };
            let is_full = match self.open.get(&stream) {
                Some(open) => open.outgoing.try_send(Ok(message)).is_err(),
                None => false,
            };
            if is_full {
                self.open.remove(&stream);
            }
        }
    }

    /// Sends one controller what was wrong with a message, if it has room for it.
    pub fn send(&mut self, stream: StreamId, update: response::Update) {
        let message = StreamMessageResponse {
            update: Some(update),
        };
        if let Some(open) = self.open.get(&stream)
            && !takes_it(&open.outgoing, message)
        {
            self.queue_full += 1;
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
            let Some(open) = self.open.get(&stream).filter(|_| takes(access)) else {
                continue;
            };
            is_for_none = false;
            let message = StreamMessageResponse {
                update: Some(update.clone()),
            };
            if !takes_it(&open.outgoing, message) {
                self.queue_full += 1;
            }
        }
        if is_for_none {
            self.no_primary += 1;
        }
    }

    /// Ends a stream with an error.
    pub fn refuse(&mut self, stream: StreamId, rejection: Rejection) {
        if let Some(open) = self.open.remove(&stream) {
            // A full queue ends the stream too, without the reason.
            let _ = open.outgoing.try_send(Err(rejection.into()));
        }
    }
}

/// Whether a message that may be lost was taken.
fn takes_it(outgoing: &Outgoing, message: StreamMessageResponse) -> bool {
    outgoing.capacity() > STREAM_MESSAGES_RESERVED && outgoing.try_send(Ok(message)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error() -> response::Update {
        response::Update::Error(super::super::proto::p4::v1::StreamError::default())
    }

    #[test]
    fn errors_leave_room_for_who_is_primary() {
        let mut streams = Streams::new(1);
        let (outgoing, mut heard) = mpsc::channel(STREAM_MESSAGES_MAX);
        let (stream, mut cut_off) = streams.open(outgoing).expect("room");
        let too_many = STREAM_MESSAGES_MAX + 10;
        for _ in 0..too_many {
            streams.send(stream, error());
        }
        streams.notify(vec![(stream, MasterArbitrationUpdate::default())]);
        assert!(
            cut_off
                .try_recv()
                .is_err_and(|why| why == oneshot::error::TryRecvError::Empty)
        );
        assert_eq!(
            streams.queue_full,
            (too_many - (STREAM_MESSAGES_MAX - STREAM_MESSAGES_RESERVED)) as u64
        );
        let mut last = None;
        while let Ok(message) = heard.try_recv() {
            last = message.expect("a message").update;
        }
        assert!(matches!(last, Some(response::Update::Arbitration(_))));
    }

    #[test]
    fn a_controller_that_does_not_hear_who_is_primary_is_cut_off() {
        let mut streams = Streams::new(1);
        let (outgoing, heard) = mpsc::channel(1);
        let (stream, mut cut_off) = streams.open(outgoing).expect("room");
        for may_be_cut_off in [false, true] {
            streams.notify(vec![(stream, MasterArbitrationUpdate::default())]);
            let is_cut_off = cut_off.try_recv() == Err(oneshot::error::TryRecvError::Closed);
            assert_eq!(is_cut_off, may_be_cut_off);
        }
        drop(heard);
    }
}
