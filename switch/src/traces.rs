//! The traces that run from the start on: that of `--trace`, and the log's.

use std::error::Error;
use std::fs::File;
use std::io;

use crate::command_line::Settings;
use wormcast_switch_dataplane::log::{Level, Log};
use wormcast_switch_dataplane::trace::{PacketData, write_messages_to_log, write_to, write_to_log};
use wormcast_switch_pipeline::PortId;
use wormcast_switch_pipeline::trace::{Filter, TraceSink};

/// Where `--trace` goes.
enum Output {
    Console,
    File(File),
}

/// The traces of every switch. All of them write to one file.
pub struct Traces<'s> {
    settings: &'s Settings,
    log: Log,
    output: Output,
}

impl<'s> Traces<'s> {
    /// Creates the file, if one is asked for.
    pub fn new(settings: &'s Settings, log: Log) -> Result<Self, Box<dyn Error>> {
        let file = settings
            .trace
            .as_ref()
            .and_then(|trace| trace.file.as_ref());
        let output = match file {
            None => Output::Console,
            Some(path) => {
                let file = File::create(path);
                let file =
                    file.map_err(|error| format!("--trace-file {}: {error}", path.display()))?;
                Output::File(file)
            }
        };
        Ok(Self {
            settings,
            log,
            output,
        })
    }

    /// Those of one more switch, whose port to the controller this is.
    pub fn of_switch(
        &self,
        cpu_port: Option<PortId>,
    ) -> io::Result<Vec<(Filter, Box<dyn TraceSink>)>> {
        let mut traces = Vec::new();
        if let Some(trace) = &self.settings.trace {
            let sink = match &self.output {
                Output::Console => write_to(io::stdout(), trace.format)?,
                Output::File(file) => write_to(file.try_clone()?, trace.format)?,
            };
            traces.push((trace.filter.clone(), sink));
        }
        let bytes = self.settings.packet_data_bytes;
        let has_data = bytes != 0 && self.log.enabled(Level::Info);
        if self.log.enabled(Level::Trace) || has_data {
            let sink = write_to_log(self.log.clone(), PacketData { bytes, cpu_port })?;
            traces.push((Filter::default(), sink));
        } else if self.log.enabled(Level::Info) {
            let sink = write_messages_to_log(self.log.clone())?;
            traces.push((Filter::messages(), sink));
        }
        Ok(traces)
    }
}
