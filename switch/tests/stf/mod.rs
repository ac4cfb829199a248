//! Runs STF scripts, the packet test format of p4c (`tools/stf` and `bmv2stf.py` there),
//! against the pure pipeline.

pub mod script;

use std::collections::BTreeMap;
use std::sync::Arc;

use script::{KeyMatch, Statement};
use wormcast_switch::pipeline::{
    ActionCall, Bits, CloneSession, CounterValue, EntryAction, FieldMatch, Pipeline,
    PipelineConfig, PortId, Replica, TableEntry,
};
use wormcast_switch::program::{ActionId, KeyField, MatchKind, Program, TableId};

use crate::hexadecimal::hex;
use crate::wire::{Wire, forward};

/// Runs a script on a program; the error says what differs.
pub fn run(json: &str, stf: &str) -> Result<(), String> {
    let program = Program::from_json(json).map_err(|error| error.to_string())?;
    let mut runner = Runner {
        pipeline: Pipeline::new(Arc::new(program), PipelineConfig::default()),
        wire: Wire::default(),
        expected: Vec::new(),
        groups: BTreeMap::new(),
        nodes: Vec::new(),
        now_us: 1000,
    };
    for statement in script::parse(stf)? {
        runner.execute(&statement)?;
    }
    runner.compare()
}

struct Runner {
    pipeline: Pipeline,
    wire: Wire,
    expected: Vec<(u16, Option<String>)>,
    groups: BTreeMap<u16, Vec<Replica>>,
    nodes: Vec<(u16, Vec<u16>)>,
    now_us: u64,
}

impl Runner {
    fn execute(&mut self, statement: &Statement) -> Result<(), String> {
        match statement {
            Statement::Packet { port, bytes } => {
                self.now_us += 1000;
                forward(
                    &mut self.pipeline,
                    &mut self.wire,
                    *port,
                    bytes,
                    self.now_us,
                    0,
                );
            }
            Statement::Expect { port, pattern } => {
                if let Some(port) = port {
                    self.expected.push((*port, pattern.clone()));
                }
            }
            Statement::Add {
                table,
                priority,
                key,
                action,
                arguments,
            } => {
                let table = self.table(table)?;
                let call = self.call(table, action, arguments)?;
                let info = &self.pipeline.program().tables()[table.index()];
                let entry = TableEntry {
                    key: key_matches(&info.key, key)?,
                    priority: if info.has_priority {
                        priority.unwrap_or(0) + 1
                    } else {
                        0
                    },
                    action: EntryAction::Call(call),
                };
                self.pipeline
                    .insert_entry(table, &entry)
                    .map_err(|error| error.to_string())?;
            }
            Statement::SetDefault {
                table,
                action,
                arguments,
            } => {
                let table = self.table(table)?;
                let call = self.call(table, action, arguments)?;
                self.pipeline
                    .set_default(table, Some(&call))
                    .map_err(|error| error.to_string())?;
            }
            other => self.execute_replication(other)?,
        }
        Ok(())
    }

    fn execute_replication(&mut self, statement: &Statement) -> Result<(), String> {
        match statement {
            Statement::MirroringAdd { session, port } => {
                let replicas = vec![Replica {
                    port: PortId(*port),
                    instance: 0,
                }];
                self.add_session(*session, replicas)?;
            }
            Statement::MirroringAddGroup { session, group } => {
                let replicas = self.groups.get(group).cloned().unwrap_or_default();
                self.add_session(*session, replicas)?;
            }
            Statement::GroupCreate { group } => {
                self.groups.insert(*group, Vec::new());
                self.pipeline
                    .insert_multicast_group(u32::from(*group), &[])
                    .map_err(|error| error.to_string())?;
            }
            Statement::NodeCreate { instance, ports } => {
                self.nodes.push((*instance, ports.clone()));
            }
            Statement::NodeAssociate { group, node } => {
                let (instance, ports) = self.nodes.get(*node).ok_or("no such node")?;
                let replicas = self.groups.get_mut(group).ok_or("no such group")?;
                replicas.extend(ports.iter().map(|&port| Replica {
                    port: PortId(port),
                    instance: *instance,
                }));
                let replicas = replicas.clone();
                self.pipeline
                    .modify_multicast_group(u32::from(*group), &replicas)
                    .map_err(|error| error.to_string())?;
            }
            Statement::RegisterWrite {
                register,
                index,
                value,
            } => {
                let program = self.pipeline.program();
                let register = program.register(register).ok_or("no such register")?;
                self.pipeline
                    .write_register(register, *index, &Bits::from_u64(*value))
                    .map_err(|error| error.to_string())?;
            }
            Statement::RegisterReset { register } => {
                let program = self.pipeline.program();
                let register = program.register(register).ok_or("no such register")?;
                let size = self.pipeline.program().registers()[register.index()].size;
                for index in 0..size {
                    self.pipeline
                        .write_register(register, index, &Bits::default())
                        .map_err(|error| error.to_string())?;
                }
            }
            Statement::CounterWrite { counter, index } => {
                let counter = self.pipeline.program().counter(counter);
                self.pipeline
                    .write_counter(
                        counter.ok_or("no such counter")?,
                        *index,
                        CounterValue::default(),
                    )
                    .map_err(|error| error.to_string())?;
            }
            _ => {}
        }
        Ok(())
    }

    fn add_session(&mut self, session: u16, replicas: Vec<Replica>) -> Result<(), String> {
        let session_value = CloneSession {
            replicas,
            packet_length_bytes: 0,
            ..CloneSession::default()
        };
        self.pipeline
            .insert_clone_session(u32::from(session), &session_value)
            .map_err(|error| error.to_string())
    }

    /// The table with a name, or the only one whose name ends so.
    fn table(&self, name: &str) -> Result<TableId, String> {
        let program = self.pipeline.program();
        if let Some(table) = program.table(name) {
            return Ok(table);
        }
        let tables = program.tables().iter();
        let names: Vec<&str> = tables
            .map(|table| table.name.as_str())
            .filter(|candidate| candidate.ends_with(name))
            .collect();
        match names.as_slice() {
            [only] => program.table(only).ok_or("unreachable".to_string()),
            _ => Err(format!("{} tables end in {name}", names.len())),
        }
    }

    fn call(
        &self,
        table: TableId,
        name: &str,
        arguments: &[(String, String)],
    ) -> Result<ActionCall, String> {
        let program = self.pipeline.program();
        let exact = program.table_action(table, name);
        let mut suffix = program.tables()[table.index()].actions.iter().copied();
        let action: ActionId = exact
            .or_else(|| suffix.find(|id| program.actions()[id.index()].name.ends_with(name)))
            .ok_or_else(|| format!("no action {name}"))?;
        let parameters = &program.actions()[action.index()].parameters;
        let arguments = parameters
            .iter()
            .map(|parameter| {
                let argument = arguments.iter().find(|(name, _)| *name == parameter.name);
                let (_, value) = argument.ok_or(format!("no argument {}", parameter.name))?;
                number_bits(value)
            })
            .collect::<Result<_, String>>()?;
        Ok(ActionCall { action, arguments })
    }

    fn compare(&self) -> Result<(), String> {
        let mut sent: BTreeMap<u16, Vec<&[u8]>> = BTreeMap::new();
        for (port, frame) in &self.wire.sent {
            sent.entry(port.0).or_default().push(frame);
        }
        let mut expected: BTreeMap<u16, Vec<&Option<String>>> = BTreeMap::new();
        for (port, pattern) in &self.expected {
            expected.entry(*port).or_default().push(pattern);
        }
        for (port, patterns) in &expected {
            let frames = sent.remove(port).unwrap_or_default();
            if frames.len() != patterns.len() {
                return Err(format!(
                    "port {port}: {} packets instead of {}; {:?}",
                    frames.len(),
                    patterns.len(),
                    self.pipeline.statistics()
                ));
            }
            for (index, (frame, pattern)) in frames.iter().zip(patterns).enumerate() {
                if let Some(pattern) = pattern
                    && !matches_pattern(frame, pattern)
                {
                    return Err(format!(
                        "port {port}, packet {index}: {} instead of {pattern}",
                        hex(frame)
                    ));
                }
            }
        }
        match sent.first_key_value() {
            Some((port, frames)) => Err(format!(
                "port {port}: {} packets instead of none: {}",
                frames.len(),
                hex(frames[0])
            )),
            None => Ok(()),
        }
    }
}

fn matches_pattern(frame: &[u8], pattern: &str) -> bool {
    let (pattern, exact) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let frame = hex(frame);
    let pattern = pattern.to_ascii_lowercase();
    let length_fits = if exact {
        frame.len() == pattern.len()
    } else {
        frame.len() >= pattern.len()
    };
    length_fits
        && pattern
            .chars()
            .zip(frame.chars())
            .all(|(wanted, got)| wanted == '*' || wanted == got)
}

fn number_bits(text: &str) -> Result<Bits, String> {
    let lower = text.to_ascii_lowercase();
    if let Some(digits) = lower.strip_prefix("0x") {
        let padded = format!("{}{digits}", if digits.len() % 2 == 0 { "" } else { "0" });
        let bytes = (0..padded.len() / 2)
            .map(|index| u8::from_str_radix(&padded[index * 2..index * 2 + 2], 16))
            .collect::<Result<Vec<u8>, _>>()
            .map_err(|_| format!("{text} is not a number"))?;
        return Ok(Bits::from_bytes(&bytes));
    }
    script::parse_number(text)
        .map(Bits::from_u64)
        .ok_or_else(|| format!("{text} is not a number"))
}

/// Value and mask of a number whose digits may be `*`.
fn masked_bits(text: &str, width: u32) -> Result<(Bits, Bits), String> {
    let lower = text.to_ascii_lowercase();
    let (prefix, ones) = match lower.get(..2) {
        Some("0x") => ("0x", 'f'),
        Some("0b") => ("0b", '1'),
        _ => return Ok((number_bits(text)?, Bits::ones(width))),
    };
    let digits = &lower[2..];
    if !digits.contains('*') {
        return Ok((number_bits(text)?, Bits::ones(width)));
    }
    let value: String = digits.replace('*', "0");
    let mask: String = digits
        .chars()
        .map(|digit| if digit == '*' { '0' } else { ones })
        .collect();
    let mask = number_bits(&format!("{prefix}{mask}"))?.and(&Bits::ones(width));
    Ok((number_bits(&format!("{prefix}{value}"))?.and(&mask), mask))
}

fn key_matches(fields: &[KeyField], key: &[KeyMatch]) -> Result<Vec<FieldMatch>, String> {
    let mut matches: Vec<FieldMatch> = fields
        .iter()
        .map(|field| match field.kind {
            MatchKind::Exact | MatchKind::Valid => FieldMatch::Exact(Bits::default()),
            _ => FieldMatch::Any,
        })
        .collect();
    for part in key {
        let index = find_field(fields, &part.field)?;
        let width = fields[index].width_bits;
        matches[index] = match fields[index].kind {
            MatchKind::Exact | MatchKind::Valid | MatchKind::Optional => {
                FieldMatch::Exact(number_bits(&part.value)?)
            }
            MatchKind::Ternary => {
                let (value, mask) = masked_bits(&part.value, width)?;
                FieldMatch::Ternary { value, mask }
            }
            MatchKind::Lpm => {
                let (value, prefix_len) = match part.value.split_once('/') {
                    Some((value, length)) => (
                        number_bits(value)?,
                        length.parse().map_err(|_| "a bad prefix length")?,
                    ),
                    None => (number_bits(&part.value)?, width),
                };
                FieldMatch::Lpm {
                    value: value.and(&Bits::prefix_mask(width, prefix_len)),
                    prefix_len,
                }
            }
            MatchKind::Range => return Err("ranges are not part of STF".to_string()),
        };
    }
    Ok(matches)
}

/// The key field a name means: itself, with brackets written as `$`, or a suffix.
fn find_field(fields: &[KeyField], name: &str) -> Result<usize, String> {
    let mut name = name.to_string();
    if let Some(dollar) = name.find('$') {
        let digits: String = name[dollar + 1..]
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        if !digits.is_empty() {
            let rest = name[dollar + 1 + digits.len()..].to_string();
            name = format!("{}[{digits}]{rest}", &name[..dollar]);
        }
    }
    let position =
        |wanted: &dyn Fn(&str) -> bool| fields.iter().position(|field| wanted(&field.name));
    position(&|field| field == name)
        .or_else(|| position(&|field| field == format!("{name}$")))
        .or_else(|| position(&|field| field == format!("{name}.$valid$")))
        .or_else(|| {
            let stem = name.strip_suffix("valid")?;
            position(&|field| field == format!("{stem}$valid$"))
        })
        .or_else(|| position(&|field| field.ends_with(&format!(".{name}"))))
        .or_else(|| position(&|field| field.ends_with(&format!(".{name}$"))))
        .ok_or_else(|| format!("no key field {name}"))
}
