//! What BMv2 tells programs that control it over Thrift: what was learned, entries that
//! are idle, ports that go up and down. Messages go to all that subscribe over nanomsg.
//!
//! What is to be said when is decided by pure parts ([`LearnLists`], [`Ageing`],
//! [`PortWatch`]) that take the time as an argument; [`Notifier`] asks the data plane and
//! publishes. P4Runtime has digests and idle entries of its own beside these, and neither
//! takes anything away from the other.

mod ageing;
mod learning;
mod message;
mod notifier;
mod ports;

pub use ageing::Ageing;
pub use learning::{Buffer, LearnLists, UNACKNOWLEDGED_MAX};
pub use message::Notification;
pub use notifier::{Notifier, Watched};
pub use ports::PortWatch;
