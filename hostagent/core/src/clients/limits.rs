//! Every bound of what applications may ask for (API.md §7).

/// Local connections at once. More: the newest is told so and closed.
pub const CONNECTIONS_MAX: usize = 32;
/// Time a connection has for its hello. Longer: it is told so and closed.
pub const HELLO_PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);
/// Senders, receivers and arriving messages of one connection. More: opening is refused;
/// an arriving message waits for another to go; if none arrives it is as where nobody receives.
pub const HANDLES_MAX: usize = 32;
/// Requests of one connection without an answer yet. More: its frames wait.
pub const REQUESTS_MAX: usize = 64;
/// Bytes written to a sender that the engine has not taken yet. More: the connection ends.
pub const SENDER_WINDOW_BYTES: u32 = 1 << 20;
/// Bytes taken from a sender that make a window update worth its while.
pub const GRANT_BYTES_MIN: u32 = 128 << 10;
/// Bytes of an arriving message that the application has not acknowledged yet.
pub const MESSAGE_WINDOW_BYTES: u32 = 512 << 10;
/// Finished messages of a sender whose outcome is kept for `wait_stable`; the oldest go, and to ask for one that is
/// gone is an error.
pub const OUTCOMES_MAX: usize = 64;
/// Bytes of an answer to a message. A longer one is refused.
pub const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Bytes of answers that wait for one client; what comes beyond is dropped and counted.
pub const ANSWERS_WAITING_BYTES_MAX: usize = 4 << 20;
/// Descriptors that come with a frame. More: the connection ends.
pub const DESCRIPTORS_MAX: usize = 16;
/// Time between two notices of how much of a file is written.
pub const FILE_PROGRESS_INTERVAL: std::time::Duration = std::time::Duration::from_millis(100);
/// Least and greatest interval of progress events, ms.
pub const PROGRESS_MS: std::ops::RangeInclusive<u32> = 50..=60_000;
/// Longest time a message being written may rest while another sender of the group waits, µs.
pub const SENDER_STALL_US: u64 = 60_000_000;
/// Time between two reads of a busy stream, µs: applications get runs of packets, not
/// single ones. The end of a message is read at once.
pub const READ_INTERVAL_US: u64 = 4_000;
/// Bytes of one data frame to an application at most.
pub const READ_BYTES_MAX: usize = 128 << 10;
/// Messages waiting in a connection's outbound queue above which progress events are left out.
pub const OUTBOUND_BUSY: usize = 16;
/// Bytes that an answer spends on groups at most, roughly; the rest is left out and counted.
pub const GROUPS_BYTES_MAX: usize = 512 << 10;
/// Choices that an error names at most; of more it says how many there are.
pub const CHOICES_MAX: usize = 32;
/// Time a message is here without a receiver until its origin is told, µs: one that opens
/// meanwhile is no news.
pub const UNCLAIMED_FIRST_US: u64 = 200_000;
/// Time until it is told again, in case that was lost, µs.
pub const UNCLAIMED_INTERVAL_US: u64 = 500_000;
/// A receiver is slow while so many bytes of a message wait for it.
pub const SLOW_BYTES: u64 = 256 << 10;
/// Time that they wait until the origin is told, µs.
pub const SLOW_FIRST_US: u64 = 400_000;
/// Time until it is told again, in case that was lost, µs.
pub const SLOW_INTERVAL_US: u64 = 500_000;
/// Time between two looks at what waits for a receiver whose window is closed, µs.
pub const SLOW_LOOK_US: u64 = 20_000;
/// Looks in a row at which more bytes wait for a receiver than its sender allows, until it loses the message.
pub const LAG_LOOKS: u32 = 12;
/// A sender lets others wait for at least so many bytes.
pub const LAG_BYTES_MIN: u64 = 64 << 10;
