//! From traces to events.

use twox_hash::XxHash64;

use super::ids::{EventIds, id};
use super::message::{LogEvent, LogMessage};
use wormcast_switch_pipeline::trace::{TraceEvent, TraceRecord};
use wormcast_switch_program::Stage;

/// The messages that tell of a record, in the order of BMv2's. `ids` are those of the
/// program that the record names.
pub(super) fn messages(record: &TraceRecord, ids: &EventIds, device_id: u64) -> Vec<LogMessage> {
    let mut events = Vec::with_capacity(record.events.len() + 2);
    if record.stage == Stage::Ingress {
        events.push(LogEvent::PacketIn(i32::from(record.ingress_port)));
    }
    let mut deparsing = Deparsing::No;
    for event in &record.events {
        deparsing = deparsing.before(event, ids, &mut events);
        events.extend(translate(event, ids));
    }
    deparsing.end(ids, &mut events);
    let signature = XxHash64::oneshot(0, &record.bytes);
    let message = |event| LogMessage {
        device_id,
        signature,
        packet: record.packet,
        copy: record.copy,
        event,
    };
    events.into_iter().map(message).collect()
}

/// Traces have no events for the beginning and the end of a deparser.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Deparsing {
    No,
    /// Egress has ended; the packet may still be dropped.
    Due,
    Begun,
}

impl Deparsing {
    /// Adds what comes before an event.
    fn before(self, event: &TraceEvent, ids: &EventIds, events: &mut Vec<LogEvent>) -> Self {
        match event {
            TraceEvent::Left(Stage::Egress) => Self::Due,
            TraceEvent::Updated { .. } | TraceEvent::Deparsed { .. } => self.begin(ids, events),
            TraceEvent::Transmitted { .. } | TraceEvent::Recirculated { .. }
                if self != Self::No =>
            {
                self.begin(ids, events).end(ids, events);
                Self::No
            }
            _ => self,
        }
    }

    fn begin(self, ids: &EventIds, events: &mut Vec<LogEvent>) -> Self {
        if self != Self::Begun {
            events.push(LogEvent::DeparserStart(ids.deparser));
        }
        Self::Begun
    }

    fn end(self, ids: &EventIds, events: &mut Vec<LogEvent>) {
        if self == Self::Begun {
            events.push(LogEvent::DeparserDone(ids.deparser));
        }
    }
}

/// The event that a step has of its own.
fn translate(event: &TraceEvent, ids: &EventIds) -> Option<LogEvent> {
    Some(match event {
        TraceEvent::ParserStarted => LogEvent::ParserStart(ids.parser),
        TraceEvent::Extracted { header, .. } => LogEvent::ParserExtract(id(&ids.headers, *header)),
        TraceEvent::ParserEnded { .. } => LogEvent::ParserDone(ids.parser),
        TraceEvent::Entered(stage) => LogEvent::PipelineStart(ids.pipeline(*stage)),
        TraceEvent::Left(stage) => LogEvent::PipelineDone(ids.pipeline(*stage)),
        TraceEvent::Table(lookup) => {
            let table = id(&ids.tables, lookup.table);
            match &lookup.entry {
                Some((handle, _)) => LogEvent::TableHit {
                    table,
                    entry: handle.to_u32() as i32,
                },
                None => LogEvent::TableMiss(table),
            }
        }
        TraceEvent::Called { table } => LogEvent::TableMiss(id(&ids.tables, *table)),
        TraceEvent::Action { action, .. } => LogEvent::ActionExecute(id(&ids.actions, *action)),
        TraceEvent::Condition { stage, node, holds } => LogEvent::ConditionEval {
            condition: ids.condition(*stage, *node),
            holds: *holds,
        },
        TraceEvent::Updated { checksum, .. } => {
            LogEvent::ChecksumUpdate(id(&ids.updated, *checksum))
        }
        TraceEvent::Deparsed { header } => LogEvent::DeparserEmit(id(&ids.headers, *header)),
        TraceEvent::Transmitted { port, .. } => LogEvent::PacketOut(i32::from(*port)),
        _ => return None,
    })
}
