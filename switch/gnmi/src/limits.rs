//! Limits of a client, and the refusals beyond them.

use std::time::Duration;

/// Streams of Subscribe at a time, of all clients; one more is RESOURCE_EXHAUSTED.
pub const STREAMS_MAX: usize = 256;

/// Paths of one request; more are INVALID_ARGUMENT.
pub const PATHS_MAX: usize = 1_024;

/// Elements of a path with its prefix; more are INVALID_ARGUMENT. The longest path there is
/// has five.
pub const PATH_ELEMENTS_MAX: usize = 16;

/// Different pairs of mode and intervals in one subscription; more are RESOURCE_EXHAUSTED.
pub const SCHEDULES_MAX: usize = 16;

/// Leaves in one answer to Get; more are RESOURCE_EXHAUSTED, since an answer is one message.
pub const LEAVES_MAX: usize = 65_536;

/// Shortest time between samples, and between heartbeats. A shorter one is INVALID_ARGUMENT, as
/// the specification has it of what a target cannot do (§3.5.1.5.2); 0 stands for this one.
pub const SAMPLE_INTERVAL_MIN: Duration = Duration::from_millis(10);

/// Longest time between samples, and between heartbeats: a day.
pub const SAMPLE_INTERVAL_MAX: Duration = Duration::from_secs(86_400);

/// Time between samples where the client leaves it to the switch (TARGET_DEFINED).
pub const SAMPLE_INTERVAL_DEFAULT: Duration = Duration::from_secs(10);

/// Longest message of a client, bytes.
pub(crate) const REQUEST_BYTES_MAX: usize = 1 << 20;

/// Longest answer, bytes: one of [`LEAVES_MAX`] leaves has less.
pub(crate) const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Messages of a stream that may wait for a client that reads slowly. Values that change
/// meanwhile are not queued: what is read next is what there is then.
pub(crate) const MESSAGES_WAITING_MAX: usize = 16;
