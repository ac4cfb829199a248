//! Receivers that take a message slower than it comes: the origin is told, and where the sender has said how long others
//! may wait for them, the message is given up here.

use super::{Arriving, Receiving, StreamKey};
use crate::api::{ApiError, ErrorCode};
use crate::clients::limits::{LAG_BYTES_MIN, SLOW_INTERVAL_US, SLOW_LOOK_US};
use crate::clients::{Connections, Key};
use wormcast_protocol::{Engine, Instant};
use wormcast_wire::{BufferClass, FailReason};

impl Receiving {
    /// Of a message no more than so many bytes are to wait for its receiver.
    pub(crate) fn bound_lag(&mut self, key: Key, bytes: u64) -> Result<(), ApiError> {
        if bytes < LAG_BYTES_MIN {
            let text = format!(
                "bytes is {bytes}; so many may wait for a receiver: {LAG_BYTES_MIN} or more"
            );
            return Err(ApiError::new(ErrorCode::OutOfRange, text));
        }
        let stream_key = self.message_stream(key)?;
        let stream = self.streams.get_mut(&stream_key);
        if let Some(arriving) = stream.and_then(|stream| stream.message.as_mut()) {
            arriving.lag.bound(bytes);
        }
        Ok(())
    }

    /// Tells the origin of a message that its receiver takes it slowly, or gives it up. Returns when to look again.
    pub(super) fn judge_lag(
        &mut self,
        engine: &mut Engine,
        connections: &mut Connections,
        stream_key: StreamKey,
        now: Instant,
    ) -> Option<Instant> {
        let (group, origin) = stream_key;
        let stream = self.streams.get_mut(&stream_key)?;
        let arriving = stream.message.as_mut()?;
        if arriving.ended {
            return None;
        }
        if now < arriving.lag.look_at {
            return arriving.next_look(now);
        }
        // What is left for the next run of packets has not waited for the receiver.
        if arriving.window_bytes > 0 && stream.read_at > now {
            return Some(stream.read_at);
        }
        arriving.lag.look_at = now.plus_us(SLOW_LOOK_US);
        let (unread, buffers) = engine.unread_bytes(group, origin);
        let is_full = buffers > engine.pool_bytes_max(BufferClass::One) / 2;
        if arriving.lag.is_too_far(unread as u64, is_full) {
            let key = arriving.key;
            self.slow_messages += 1;
            let _ = engine.abort(group, origin, FailReason::TooSlow, now);
            let reason = format!(
                "too slow: {unread} bytes waited for the receiver, more than its sender lets others wait for"
            );
            self.lose(connections, key, &reason);
            return Some(now);
        }
        arriving.lag.note(unread as u64, now);
        if arriving.lag.tell_at.is_some_and(|at| at <= now) {
            arriving.lag.tell_at = Some(now.plus_us(SLOW_INTERVAL_US));
            engine.report_unread(group, origin, true);
        }
        arriving.next_look(now)
    }
}

impl Arriving {
    fn next_look(&self, now: Instant) -> Option<Instant> {
        let waits = self.window_bytes == 0 || self.lag.is_behind();
        waits.then(|| self.lag.look_at.max(now))
    }
}
