//! Records into files and into the log.

use std::io::{self, Write};
use std::thread;

use serde_json::json;

use super::channel::{RECORDS_MAX, TraceReader, trace_channel};
use super::logged::{PacketData, log_lines};
use crate::log::{Level, Log};
use wormcast_switch_pipeline::trace::{Format, TraceRecord, TraceSink};

/// A record as it is written, line feeds included; `lost`: records missing before it.
pub fn write_record(record: &TraceRecord, lost: u64, format: Format) -> String {
    let mut text = String::new();
    match format {
        Format::Text => {
            if lost != 0 {
                text.push_str(&format!("{lost} records were lost: reading is too slow\n"));
            }
            for line in record.lines() {
                text.push_str(&line);
                text.push('\n');
            }
        }
        Format::Json => {
            if lost != 0 {
                text.push_str(&json!({"records_lost": lost}).to_string());
                text.push('\n');
            }
            text.push_str(&record.json().to_string());
            text.push('\n');
        }
    }
    text
}

/// A sink whose records a thread of its own writes, each flushed; the thread ends with the
/// trace, or when nothing can be written any more.
///
/// # Errors
/// The thread cannot be started.
pub fn write_to(
    mut output: impl Write + Send + 'static,
    format: Format,
) -> io::Result<Box<dyn TraceSink>> {
    spawn(move |mut reader| {
        while let Some((record, lost)) = reader.blocking_read() {
            let text = write_record(&record, lost, format);
            let written = output.write_all(text.as_bytes());
            if written.and_then(|()| output.flush()).is_err() {
                return;
            }
        }
    })
}

/// A sink that logs each step of every packet at level `trace` if the log has that, else what
/// programs say; and the data of each packet that comes and goes, at level `info`.
///
/// # Errors
/// The thread cannot be started.
pub fn write_to_log(log: Log, data: PacketData) -> io::Result<Box<dyn TraceSink>> {
    let has_steps = log.enabled(Level::Trace);
    spawn(move |mut reader| {
        while let Some((record, lost)) = reader.blocking_read() {
            if lost != 0 {
                let text = format_args!("{lost} records of packets were lost");
                log.write(Level::Warn, text);
            }
            for (level, line) in log_lines(&record, has_steps, data) {
                log.write(level, format_args!("{line}"));
            }
        }
    })
}

/// A sink that logs what programs say with `log_msg`, at level `info` as BMv2 does.
///
/// # Errors
/// The thread cannot be started.
pub fn write_messages_to_log(log: Log) -> io::Result<Box<dyn TraceSink>> {
    spawn(move |mut reader| {
        while let Some((record, lost)) = reader.blocking_read() {
            if lost != 0 {
                let text = format_args!("messages of {lost} packets were lost");
                log.write(Level::Warn, text);
            }
            for (level, message) in log_lines(&record, false, PacketData::default()) {
                log.write(level, format_args!("{message}"));
            }
        }
    })
}

fn spawn(run: impl FnOnce(TraceReader) + Send + 'static) -> io::Result<Box<dyn TraceSink>> {
    let (sink, reader) = trace_channel(RECORDS_MAX);
    let thread = thread::Builder::new().name("trace".to_owned());
    thread.spawn(move || run(reader))?;
    Ok(sink)
}
