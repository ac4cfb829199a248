//! What a log has of a record.

use crate::log::Level;
use wormcast_switch_pipeline::PortId;
use wormcast_switch_pipeline::trace::{TraceEvent, TraceRecord, hex};
use wormcast_switch_program::Stage;

/// What a log has of the data of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketData {
    /// Most bytes of a packet; 0: it is not even said that it comes or goes.
    pub bytes: usize,
    /// Port of the switch that leads to the controller.
    pub cpu_port: Option<PortId>,
}

/// Lines for a log, without line feeds: the steps at level `trace` if it has them, else
/// what the program says with `log_msg` at level `info`; before and after them the packet as
/// it comes and as it goes, at level `info` and in the words of BMv2's `--dump-packet-data`.
pub fn log_lines(record: &TraceRecord, has_steps: bool, data: PacketData) -> Vec<(Level, String)> {
    let mut lines = Vec::new();
    if record.stage == Stage::Ingress && data.bytes != 0 {
        let line = data_line(
            record,
            "Received packet",
            record.ingress_port,
            &record.bytes,
            data,
        );
        lines.push((Level::Info, line));
    }
    if has_steps {
        let steps = record.lines().into_iter();
        lines.extend(steps.map(|line| (Level::Trace, line)));
    } else {
        lines.extend(record.messages().map(|message| (Level::Info, message)));
    }
    if data.bytes != 0 {
        for event in &record.events {
            if let TraceEvent::Transmitted { port, frame } = event {
                let what = if data.cpu_port == Some(PortId(*port)) {
                    "Sending packet-in"
                } else {
                    "Sending packet"
                };
                let line = data_line(record, what, *port, frame, data);
                lines.push((Level::Info, line));
            }
        }
    }
    lines
}

fn data_line(
    record: &TraceRecord,
    what: &str,
    port: u16,
    bytes: &[u8],
    data: PacketData,
) -> String {
    let of = match &*record.switch {
        "" => String::new(),
        name => format!(" of {name}"),
    };
    let (length, shown) = (bytes.len(), hex(&bytes[..data.bytes.min(bytes.len())]));
    format!("{what} of length {length} on port {port}{of}: {shown}")
}
