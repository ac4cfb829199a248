//! Records as JSON, one object each. The members are described in
//! `switch/docs/seeing-inside.md` and are an interface.

use serde_json::{Map, Value, json};

use super::event::{TableLookup, TraceEvent, TraceRecord, Verification};
use super::fields::{hex, match_text, value};
use crate::{EntryAction, Replica};

impl TraceRecord {
    /// The record as an object.
    pub fn json(&self) -> Value {
        let events = self.events.iter().map(|event| self.event_json(event));
        json!({
            "switch": (!self.switch.is_empty()).then(|| self.switch.to_string()),
            "packet": self.packet,
            "copy": self.copy,
            "stage": self.stage.name(),
            "ingress_port": self.ingress_port,
            "time_us": self.time_us,
            "bytes": hex(&self.bytes),
            "events": events.collect::<Vec<Value>>(),
            "events_lost": self.events_lost,
        })
    }

    fn event_json(&self, event: &TraceEvent) -> Value {
        let named = |event: &str, members: Value| {
            let mut object = Map::new();
            object.insert("event".to_owned(), event.into());
            if let Value::Object(members) = members {
                object.extend(members);
            }
            Value::Object(object)
        };
        match event {
            TraceEvent::ParserStarted => named("parser_start", json!({})),
            TraceEvent::State { state } => {
                named("parser_state", json!({"state": self.state_name(*state)}))
            }
            TraceEvent::Extracted {
                header,
                words,
                varbit,
            } => named(
                "extract",
                json!({
                    "header": self.header_name(*header),
                    "fields": object(self.header_fields(*header, words, varbit)),
                }),
            ),
            TraceEvent::Advanced { bits } => named("advance", json!({"bits": bits})),
            TraceEvent::Selected { state, key } => named(
                "select",
                json!({
                    "state": self.state_name(*state),
                    "key": self.select_key(*state, key),
                }),
            ),
            TraceEvent::ParserEnded { error, bytes } => named(
                "parser_end",
                json!({
                    "error": error.map(|error| self.error_name(error)),
                    "bytes_parsed": bytes,
                }),
            ),
            TraceEvent::Verified {
                checksum,
                verification,
            } => {
                let name = self.checksum_name(*checksum, true);
                let (outcome, computed, found) = match *verification {
                    Verification::TargetInvalid => ("target_invalid", None, None),
                    Verification::ConditionFalse => ("condition_false", None, None),
                    Verification::Computed { computed, found } => {
                        let passed = if computed == found {
                            "passed"
                        } else {
                            "failed"
                        };
                        (passed, Some(value(&[computed])), Some(value(&[found])))
                    }
                };
                named(
                    "checksum_verify",
                    json!({
                        "checksum": name,
                        "outcome": outcome,
                        "computed": computed,
                        "found": found,
                    }),
                )
            }
            TraceEvent::Entered(stage) => named("control_start", json!({"control": stage.name()})),
            TraceEvent::Left(stage) => named("control_end", json!({"control": stage.name()})),
            TraceEvent::Called { table } => named(
                "call",
                json!({"table": self.program.tables()[*table as usize].name}),
            ),
            TraceEvent::Table(lookup) => named("table", self.lookup_json(lookup)),
            TraceEvent::Member { member, group } => {
                named("member", json!({"member": member, "group": group}))
            }
            TraceEvent::Action { action, arguments } => named(
                "action",
                json!({
                    "action": self.action_name(*action),
                    "arguments": object(self.action_words(*action, arguments)),
                }),
            ),
            TraceEvent::Condition { stage, node, holds } => {
                let node = self.node(*stage, *node);
                let (name, source) = (node.name, node.source);
                named(
                    "condition",
                    json!({"node": name, "source": source, "holds": holds}),
                )
            }
            TraceEvent::Changed {
                header,
                field,
                before,
                after,
            } => named(
                "change",
                json!({
                    "field": self.field_name(*header, *field),
                    "before": value(before),
                    "after": value(after),
                }),
            ),
            TraceEvent::RegisterRead {
                register,
                index,
                value: read,
            } => {
                let register = &self.program.registers()[*register as usize].name;
                let read = value(read);
                named(
                    "register_read",
                    json!({"register": register, "index": index, "value": read}),
                )
            }
            TraceEvent::RegisterWritten {
                register,
                index,
                value: written,
            } => {
                let name = &self.program.registers()[*register as usize].name;
                let written = value(written);
                named(
                    "register_write",
                    json!({"register": name, "index": index, "value": written}),
                )
            }
            TraceEvent::Counted { counter, index } => {
                let counter = &self.program.counters()[*counter as usize].name;
                named("count", json!({"counter": counter, "index": index}))
            }
            TraceEvent::Metered {
                meter,
                index,
                colour,
            } => {
                let meter = &self.program.meters()[*meter as usize].name;
                named(
                    "meter",
                    json!({"meter": meter, "index": index, "colour": colour}),
                )
            }
            TraceEvent::Message { message, arguments } => {
                named("log", json!({"message": self.message(*message, arguments)}))
            }
            TraceEvent::CloneAsked { session } => named("clone_asked", json!({"session": session})),
            TraceEvent::ResubmitAsked => named("resubmit_asked", json!({})),
            TraceEvent::RecirculateAsked => named("recirculate_asked", json!({})),
            TraceEvent::DigestAsked => named("digest_asked", json!({})),
            TraceEvent::TruncateAsked { bytes } => named("truncate", json!({"bytes": bytes})),
            TraceEvent::ExitAsked => named("exit", json!({})),
            TraceEvent::Happened { event } => named("happened", json!({"name": event.name()})),
            TraceEvent::Cloned {
                session,
                from,
                replicas,
            } => named(
                "clone",
                json!({
                    "session": session,
                    "from": from.name(),
                    "replicas": replicas_json(replicas),
                }),
            ),
            TraceEvent::Digested { digest, fields } => {
                let fields: Vec<String> = fields.iter().map(ToString::to_string).collect();
                let digest = &self.program.digests()[digest.index()].name;
                named("digest", json!({"digest": digest, "fields": fields}))
            }
            TraceEvent::Resubmitted => named("resubmit", json!({})),
            TraceEvent::Recirculated { bytes } => named("recirculate", json!({"bytes": bytes})),
            TraceEvent::Replicated { group, replicas } => named(
                "replicate",
                json!({"group": group, "replicas": replicas_json(replicas)}),
            ),
            TraceEvent::Enqueued {
                copy,
                port,
                priority,
                instance,
            } => named(
                "enqueue",
                json!({"copy": copy, "port": port, "queue": priority, "instance": instance}),
            ),
            TraceEvent::Dropped { cause } => named("drop", json!({"cause": cause.name()})),
            TraceEvent::Updated { checksum, value } => {
                let name = self.checksum_name(*checksum, false);
                let value = value.map(|value| super::fields::value(&[value]));
                named("checksum_update", json!({"checksum": name, "value": value}))
            }
            TraceEvent::Deparsed { header } => {
                named("deparse", json!({"header": self.header_name(*header)}))
            }
            TraceEvent::Transmitted { port, frame } => {
                named("transmit", json!({"port": port, "bytes": hex(frame)}))
            }
        }
    }

    fn lookup_json(&self, lookup: &TableLookup) -> Value {
        let name = &self.program.tables()[lookup.table as usize].name;
        let key = object(self.table_key(lookup.table, &lookup.key));
        let entry = lookup.entry.as_ref().map(|(handle, entry)| {
            let matches: Vec<String> = entry.key.iter().map(match_text).collect();
            let action = match &entry.action {
                EntryAction::Call(call) => json!({
                    "action": self.action_name(call.action.index() as u32),
                    "arguments": object(self.call_arguments(call)),
                }),
                EntryAction::Member(member) => json!({"member": member}),
                EntryAction::Group(group) => json!({"group": group}),
                EntryAction::Set(set) => {
                    let actions = set.actions.iter().map(|one| {
                        json!({
                            "action": self.action_name(one.call.action.index() as u32),
                            "arguments": object(self.call_arguments(&one.call)),
                            "weight": one.weight,
                        })
                    });
                    json!({"set": actions.collect::<Vec<Value>>()})
                }
            };
            json!({
                "handle": handle.to_u32(),
                "matches": matches,
                "priority": entry.priority,
                "leads_to": action,
            })
        });
        json!({"table": name, "key": key, "hit": entry.is_some(), "entry": entry})
    }
}

fn object(members: Vec<(String, String)>) -> Value {
    let members = members.into_iter();
    Value::Object(members.map(|(name, value)| (name, value.into())).collect())
}

fn replicas_json(replicas: &[Replica]) -> Vec<Value> {
    let replicas = replicas.iter();
    replicas
        .map(|replica| json!({"port": replica.port.0, "instance": replica.instance}))
        .collect()
}
