//! Packet trace: what the pipeline does with chosen packets, step by step.
//!
//! A [`Filter`] chooses packets when they arrive. For these the pipeline runs its
//! interpreter and records a typed event for each step; names are looked up only when a
//! [`TraceRecord`] is written as [text](TraceRecord::lines) or [JSON](TraceRecord::json),
//! on the thread of whoever reads it. Packets that no filter chooses pay one branch.
//!
//! Records go to a [`TraceSink`] that never waits: a reader that is too slow loses records,
//! which are counted.

mod channel;
mod event;
mod fields;
mod filter;
mod json;
mod logged;
mod recorder;
mod text;
mod tracing;
mod writer;

pub use channel::{RECORDS_MAX, TraceReader, trace_channel};
pub use event::{Stage, TraceRecord};
pub use filter::{Filter, Format, MATCH_BYTES_MAX, MATCHES_MAX};
pub use logged::PacketData;
pub use tracing::{Delivery, TRACES_MAX, TraceSink, TracesFull, Tracing};

pub use writer::{write_messages_to_log, write_record, write_to, write_to_log};

pub(crate) use event::{TableLookup, TraceEvent, Verification};
pub(crate) use recorder::Recorder;
pub(crate) use tracing::Mark;
