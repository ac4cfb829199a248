//! Records as text. The words are those of BMv2's log, so what searches that log finds the
//! same here; `[packet.copy]` begins each line, the name of the switch
//! before it where there are several.

use std::fmt::Write;

use super::event::{TableLookup, TraceEvent, TraceRecord, Verification};
use super::fields::{hex, match_text, value};
use crate::{EntryAction, Replica};
use wormcast_switch_program::Stage;

impl TraceRecord {
    /// The record as lines without line feeds.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let switch = match &*self.switch {
            "" => String::new(),
            name => format!("{name} "),
        };
        let prefix = format!("[{switch}{}.{}] ", self.packet, self.copy);
        let mut say = |text: String| lines.push(format!("{prefix}{text}"));
        if self.stage == Stage::Ingress {
            let (port, bytes) = (self.ingress_port, &self.bytes);
            say(format!("Processing packet received on port {port}"));
            say(format!("Packet of {} bytes: {}", bytes.len(), hex(bytes)));
        }
        for event in &self.events {
            self.event_lines(event, &mut say);
        }
        if self.events_lost != 0 {
            say(format!(
                "{} more events were not recorded",
                self.events_lost
            ));
        }
        lines
    }

    /// What the program itself said with `log_msg`, without line feeds.
    pub fn messages(&self) -> impl Iterator<Item = String> {
        self.events.iter().filter_map(|event| match event {
            TraceEvent::Message { message, arguments } => Some(self.message(*message, arguments)),
            _ => None,
        })
    }

    fn event_lines(&self, event: &TraceEvent, say: &mut impl FnMut(String)) {
        match event {
            TraceEvent::ParserStarted => say("Parser 'parser': start".to_owned()),
            TraceEvent::State { state } => {
                let state = self.state_name(*state);
                say(format!("Parser 'parser' entering state '{state}'"));
            }
            TraceEvent::Extracted {
                header,
                words,
                varbit,
            } => {
                say(format!("Extracting header '{}'", self.header_name(*header)));
                for (field, value) in self.header_fields(*header, words, varbit) {
                    say(format!("* {}.{field}: {value}", self.header_name(*header)));
                }
            }
            TraceEvent::Advanced { bits } => say(format!("Advancing by {} bytes", bits / 8)),
            TraceEvent::Selected { state, key } => {
                let (state, key) = (self.state_name(*state), self.select_key(*state, key));
                say(if key.is_empty() {
                    format!("Parser state '{state}' has no switch, going to default next state")
                } else {
                    format!("Parser state '{state}': key is {}", key.join(" "))
                });
            }
            TraceEvent::ParserEnded { error, bytes } => {
                if let Some(error) = error {
                    say(format!(
                        "Parser 'parser': error {}",
                        self.error_name(*error)
                    ));
                }
                say(format!("Bytes parsed: {bytes}"));
                say("Parser 'parser': end".to_owned());
            }
            TraceEvent::Verified {
                checksum,
                verification,
            } => self.verification(*checksum, *verification, say),
            TraceEvent::Entered(stage) => say(format!("Pipeline '{}': start", stage.name())),
            TraceEvent::Left(stage) => say(format!("Pipeline '{}': end", stage.name())),
            TraceEvent::Table(lookup) => self.lookup(lookup, say),
            TraceEvent::Member { member, group } => say(match group {
                Some(group) => format!("Choosing member {member} from group {group}"),
                None => format!("Member {member}"),
            }),
            TraceEvent::Action { action, arguments } => {
                let arguments = arguments_text(&self.action_words(*action, arguments));
                say(format!("Action {}{arguments}", self.action_name(*action)));
            }
            TraceEvent::Condition { stage, node, holds } => {
                let node = self.node(*stage, *node);
                let source = node
                    .source
                    .map_or(String::new(), |source| format!(" \"{source}\""));
                say(format!("Condition{source} ({}) is {holds}", node.name));
            }
            TraceEvent::Changed {
                header,
                field,
                before,
                after,
            } => {
                let field = self.field_name(*header, *field);
                say(format!("* {field}: {} -> {}", value(before), value(after)));
            }
            TraceEvent::RegisterRead {
                register,
                index,
                value: read,
            } => {
                let register = &self.program.registers()[*register as usize].name;
                say(format!(
                    "Read register '{register}' at index {index}: {}",
                    value(read)
                ));
            }
            TraceEvent::RegisterWritten {
                register,
                index,
                value: written,
            } => {
                let register = &self.program.registers()[*register as usize].name;
                let written = value(written);
                say(format!(
                    "Wrote register '{register}' at index {index}: {written}"
                ));
            }
            TraceEvent::Counted { counter, index } => {
                let counter = &self.program.counters()[*counter as usize].name;
                say(format!("Updated counter '{counter}' at index {index}"));
            }
            TraceEvent::Metered {
                meter,
                index,
                colour,
            } => {
                let meter = &self.program.meters()[*meter as usize].name;
                say(format!("Executing meter {meter}[{index}]: colour {colour}"));
            }
            TraceEvent::Message { message, arguments } => say(self.message(*message, arguments)),
            other => self.forwarding_lines(other, say),
        }
    }

    /// What becomes of the packet.
    fn forwarding_lines(&self, event: &TraceEvent, say: &mut impl FnMut(String)) {
        match event {
            TraceEvent::CloneAsked { session } => {
                say(format!("Clone asked for with session {session}"));
            }
            TraceEvent::ResubmitAsked => say("Resubmission asked for".to_owned()),
            TraceEvent::RecirculateAsked => say("Recirculation asked for".to_owned()),
            TraceEvent::DigestAsked => say("Digest asked for".to_owned()),
            TraceEvent::TruncateAsked { bytes } => say(format!("Truncating to {bytes} bytes")),
            TraceEvent::ExitAsked => {
                say("Packet is marked for exit, interrupting pipeline".to_owned());
            }
            TraceEvent::Happened { event } => say(format!("Event {}", event.name())),
            TraceEvent::Cloned {
                session,
                from,
                replicas,
            } => {
                say(format!("Cloning packet at {}", from.name()));
                say(format!("Session {session}: {}", replicas_text(replicas)));
            }
            TraceEvent::Digested { digest, fields } => {
                let digest = &self.program.digests()[digest.index()].name;
                let fields: Vec<String> = fields.iter().map(ToString::to_string).collect();
                say(format!("Digest '{digest}': {}", fields.join(" ")));
            }
            TraceEvent::Resubmitted => say("Resubmitting packet".to_owned()),
            TraceEvent::Recirculated { bytes } => {
                say(format!("Recirculating packet of {bytes} bytes"));
            }
            TraceEvent::Replicated { group, replicas } => {
                say("Multicast requested for packet".to_owned());
                say(format!("Group {group}: {}", replicas_text(replicas)));
            }
            TraceEvent::Enqueued {
                copy,
                port,
                priority,
                instance,
            } => {
                say(format!("Egress port is {port}"));
                let packet = self.packet;
                say(format!(
                    "Queued as [{packet}.{copy}] for port {port}, queue {priority}, instance \
                     {instance}"
                ));
            }
            TraceEvent::Dropped { cause } => {
                let name = cause.name();
                say(match name {
                    "ingress_marked" => "Dropping packet at the end of ingress".to_owned(),
                    "egress_marked" => "Dropping packet at the end of egress".to_owned(),
                    _ => format!("Dropping packet: {name}"),
                });
            }
            TraceEvent::Updated { checksum, value } => {
                let name = self.checksum_name(*checksum, false);
                say(match value {
                    Some(value) => format!("Updating checksum '{name}': {value:#x}"),
                    None => {
                        format!("Skipping checksum '{name}' update because condition not met")
                    }
                });
            }
            TraceEvent::Deparsed { header } => {
                say(format!("Deparsing header '{}'", self.header_name(*header)));
            }
            TraceEvent::Transmitted { port, frame } => {
                let bytes = frame.len();
                say(format!(
                    "Transmitting packet of size {bytes} out of port {port}"
                ));
                say(format!("Packet of {bytes} bytes: {}", hex(frame)));
            }
            _ => {}
        }
    }

    fn verification(
        &self,
        checksum: u32,
        verification: Verification,
        say: &mut impl FnMut(String),
    ) {
        let name = self.checksum_name(checksum, true);
        match verification {
            Verification::TargetInvalid => say(format!(
                "Skipping checksum '{name}' verification because target field invalid"
            )),
            Verification::ConditionFalse => say(format!(
                "Skipping checksum '{name}' verification because condition not met"
            )),
            Verification::Computed { computed, found } => {
                say(format!(
                    "Checksum '{name}': computed {computed:#x} - actual {found:#x}"
                ));
                let passed = if computed == found {
                    "passed"
                } else {
                    "failed"
                };
                say(format!("Verified checksum '{name}': {passed}"));
            }
        }
    }

    fn lookup(&self, lookup: &TableLookup, say: &mut impl FnMut(String)) {
        let name = &self.program.tables()[lookup.table as usize].name;
        say(format!("Applying table '{name}'"));
        let key = self.table_key(lookup.table, &lookup.key);
        if !key.is_empty() {
            say("Looking up key:".to_owned());
        }
        for (field, value) in key {
            say(format!("* {field}: {value}"));
        }
        let Some((handle, entry)) = &lookup.entry else {
            say(format!("Table '{name}': miss"));
            return;
        };
        say(format!(
            "Table '{name}': hit with handle {}",
            handle.to_u32()
        ));
        let matches: Vec<String> = entry.key.iter().map(match_text).collect();
        let mut text = format!("Entry is {}", matches.join(", "));
        if entry.priority != 0 {
            let _ = write!(text, " with priority {}", entry.priority);
        }
        say(text);
        say(match &entry.action {
            EntryAction::Call(call) => format!(
                "Action entry is {}{}",
                self.action_name(call.action.index() as u32),
                arguments_text(&self.call_arguments(call))
            ),
            other => format!("Action entry is {other:?}"),
        });
    }
}

fn arguments_text(arguments: &[(String, String)]) -> String {
    let arguments = arguments.iter();
    let arguments: Vec<String> = arguments
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    format!("({})", arguments.join(", "))
}

fn replicas_text(replicas: &[Replica]) -> String {
    let replicas = replicas.iter();
    let replicas: Vec<String> = replicas
        .map(|replica| format!("port {} instance {}", replica.port.0, replica.instance))
        .collect();
    if replicas.is_empty() {
        "no replicas".to_owned()
    } else {
        replicas.join(", ")
    }
}
