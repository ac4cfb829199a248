//! Receivers that take a message slower than it comes: the origin is told, and where the sender has said how long others
//! may wait for them, the message is given up here.

use super::{Arriving, Receiving, StreamKey};
use crate::api::{ApiError, ErrorCode};
use crate::clients::limits::{LAG_BYTES_MIN, SLOW_INTERVAL_US, SLOW_LOOK_US};
use crate::clients::{Connections, Key};
use wormcast_protocol::{Engine, Instant};
use wormcast_wire::FailReason;

impl Receiving {
    /// Of a message no more than so many bytes are to wait for its receiver. Gives how many may.
    pub(crate) fn bound_lag(
        &mut self,
        engine: &Engine,
        key: Key,
        bytes: u64,
    ) -> Result<u64, ApiError> {
        if bytes < LAG_BYTES_MIN {
            let text = format!(
                "bytes is {bytes}; so many may wait for a receiver: {LAG_BYTES_MIN} or more"
            );
            return Err(ApiError::new(ErrorCode::OutOfRange, text));
        }
        let stream_key = self.message_stream(key)?;
        let stream = self.streams.get_mut(&stream_key);
        let arriving = stream.and_then(|stream| stream.message.as_mut());
        Ok(arriving.map_or(bytes, |arriving| arriving.lag.bound(engine, bytes)))
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
        let arriving = self.streams.get_mut(&stream_key)?.message.as_mut()?;
        if arriving.ended {
            return None;
        }
        if now < arriving.lag.look_at {
            return arriving.next_look();
        }
        arriving.lag.look_at = now.plus_us(SLOW_LOOK_US);
        let unread = engine.unread_bytes(group, origin);
        if let Some(most) = arriving.lag.most_bytes.filter(|most| unread > *most) {
            let key = arriving.key;
            self.slow_messages += 1;
            let _ = engine.abort(group, origin, FailReason::TooSlow, now);
            let reason = format!(
                "too slow: {unread} bytes waited for the receiver, and the sender lets others wait for {most} at most"
            );
            self.lose(connections, key, &reason);
            return Some(now);
        }
        arriving.lag.note(unread, now);
        if arriving.lag.tell_at.is_some_and(|at| at <= now) {
            arriving.lag.tell_at = Some(now.plus_us(SLOW_INTERVAL_US));
            engine.report_unread(group, origin, true);
        }
        arriving.next_look()
    }
}

impl Arriving {
    fn next_look(&self) -> Option<Instant> {
        let waits = self.window_bytes == 0 || self.lag.tell_at.is_some();
        waits.then_some(self.lag.look_at)
    }
}
