//! BMv2's event log: a message over nanomsg for each step of each packet.
//!
//! What is in the messages is made from [traces](wormcast_switch_dataplane::trace) by pure parts
//! ([`LogEvent`], [`LogMessage`], [`EventIds`]); [`EventLog`] traces as long as somebody
//! subscribes, and publishes. With no subscriber nothing is traced, so that scripts that
//! always ask for an event log do not slow the switch down.
//!
//! Source: `event_logger.cpp` of BMv2 and its `nanomsg_client.py`.

mod ids;
mod message;
mod publish;
mod translate;

pub use message::{LogEvent, LogMessage};
pub use publish::EventLog;
