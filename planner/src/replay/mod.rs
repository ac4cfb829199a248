//! Every packet over every channel, event by event.

mod event_loop;
mod found;
mod json;
mod network;
mod recurrence;

pub use found::{ChannelUse, Replay};

use crate::cost::{CostModel, Message, Traffic};
use event_loop::EventLoop;

/// Replays a message. The source has it all at time 0. Exact for the model of
/// [`crate::cost`]: channels and processors serve in order of arrival, ties by the order
/// of the sends in the plan.
pub fn replay(model: &CostModel<'_, '_>, traffic: &Traffic, message: Message) -> Replay {
    let mut replay = EventLoop::new(model, traffic, message);
    replay.run();
    replay.finish(model)
}

/// As [`replay`], but never skips: every packet is gone through, however many there are.
pub fn replay_in_full(model: &CostModel<'_, '_>, traffic: &Traffic, message: Message) -> Replay {
    let mut replay = EventLoop::new(model, traffic, message);
    replay.never_skip();
    replay.run();
    replay.finish(model)
}

/// Completion in nanoseconds as [`replay`] finds it, if so many events do: all there are,
/// or as many as it takes until the state of the network recurs. If they do not, packets
/// that are still to come are taken to keep the pace of the second half of these events.
/// `None` if no pace can be determined. The flag says whether the time is exact.
pub fn replay_briefly(
    model: &CostModel<'_, '_>,
    traffic: &Traffic,
    message: Message,
    events: u64,
) -> Option<(f64, bool)> {
    let mut replay = EventLoop::new(model, traffic, message);
    if replay.run_within(events / 2) {
        return Some((replay.completion_ps() as f64 / 1e3, true));
    }
    let (before, then) = replay.standing();
    if replay.run_within(events) {
        return Some((replay.completion_ps() as f64 / 1e3, true));
    }
    let (after, now) = replay.standing();
    if after <= before {
        return None;
    }
    let pace = (now - then) as f64 / f64::from(after - before);
    let left = message.packets.saturating_sub(after.into()) as f64;
    let received = now as f64 + left * pace + 1e3 * model.costs().message_receive_ns;
    Some((replay.complete(received as u64) as f64 / 1e3, false))
}
