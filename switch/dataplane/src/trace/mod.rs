//! Records of packets on their way to files, to the log and to whoever else reads them.

mod channel;
mod logged;
mod writer;

pub use channel::{RECORDS_MAX, TraceReader, trace_channel};
pub use logged::{PacketData, log_lines};
pub use writer::{write_messages_to_log, write_record, write_to, write_to_log};
