//! Runs one script.

use std::fmt;
use std::sync::Arc;

use super::clock::{Clock, PACKET_INTERVAL_US};
use super::expectations::{Expectations, hex};
use super::failure::Failure;
use super::keys::{key_matches, number_bits, parse_number};
use super::names;
use super::script::parse;
use super::state::Replication;
use super::statement::{Call, Comparison, CountKind, Line, Statement};
use super::wire::Wire;
use wormcast_switch_pipeline::LoadedProgram;
use wormcast_switch_pipeline::trace::{Filter, TraceSink};
use wormcast_switch_pipeline::{
    CounterValue, DropCause, EntryAction, GroupMember, MeterRates, Pipeline, PipelineConfig,
    TableEntry,
};
use wormcast_switch_program::{ActionCall, Bits, FieldMatch};
use wormcast_switch_program::{ActionId, DigestId, TableId};

/// What a script that passed has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Packets sent in.
    pub packets: usize,
    /// Things that were compared: packets, counters, registers, digests.
    pub checks: usize,
}

/// Runs a script on a program. `trace` is shown every packet.
///
/// # Errors
/// The first statement that cannot be carried out or does not hold, or the first packet
/// that is not the one expected.
pub fn run_script(
    program: Arc<LoadedProgram>,
    config: PipelineConfig,
    script: &str,
    trace: Option<Box<dyn TraceSink>>,
) -> Result<Passed, Failure> {
    let lines = parse(script).map_err(|(line, message)| Failure {
        line: Some(line),
        message,
    })?;
    let mut runner = Runner {
        pipeline: Pipeline::new(Arc::clone(&program), config),
        program,
        wire: Wire::default(),
        expected: Expectations::default(),
        replication: Replication::default(),
        entries: Vec::new(),
        sent_before: 0,
        digests_seen: 0,
        clock: Clock::start(),
        passed: Passed::default(),
    };
    if let Some(sink) = trace {
        let added = runner.pipeline.tracing().add(Filter::default(), sink);
        added.map_err(|full| Failure {
            line: None,
            message: full.to_string(),
        })?;
    }
    for Line { number, statement } in &lines {
        runner
            .execute(*number, statement)
            .map_err(|message| Failure {
                line: Some(*number),
                message,
            })?;
    }
    runner.compare()?;
    Ok(runner.passed)
}

/// An entry that was added.
struct Added {
    handle: Option<String>,
    table: TableId,
    key: Vec<FieldMatch>,
    priority: i32,
}

struct Runner {
    program: Arc<LoadedProgram>,
    pipeline: Pipeline,
    wire: Wire,
    expected: Expectations,
    replication: Replication,
    entries: Vec<Added>,
    /// Frames there were before the last packet.
    sent_before: usize,
    digests_seen: usize,
    clock: Clock,
    passed: Passed,
}

fn text(error: impl fmt::Display) -> String {
    error.to_string()
}

impl Runner {
    fn execute(&mut self, line: usize, statement: &Statement) -> Result<(), String> {
        if self.replication.execute(&mut self.pipeline, statement)? {
            return Ok(());
        }
        match statement {
            Statement::Packet { port, bytes } => {
                self.clock.pass(PACKET_INTERVAL_US)?;
                let now_us = self.clock.now_us();
                self.sent_before = self.wire.sent.len();
                self.wire.forward(&mut self.pipeline, *port, bytes, now_us);
                self.passed.packets += 1;
            }
            Statement::Expect { port, pattern } => self.expected.add(*port, line, pattern.clone()),
            Statement::NoPacket => {
                self.passed.checks += 1;
                if let Some((port, frame)) = self.wire.sent.get(self.sent_before) {
                    return Err(format!("a packet by port {port}: {}", hex(frame)));
                }
            }
            Statement::Wait { us } => self.clock.pass(*us)?,
            Statement::Add { .. } | Statement::Remove { .. } | Statement::SetDefault { .. } => {
                self.change_table(statement)?;
            }
            Statement::Member { .. } | Statement::Group { .. } => {
                self.change_profile(statement)?;
            }
            Statement::ExpectDigest { digest, values } => self.expect_digest(digest, values)?,
            Statement::CheckDrops {
                cause,
                comparison,
                packets,
            } => {
                let all = DropCause::ALL.iter();
                let names: Vec<&str> = all.map(|cause| cause.name()).collect();
                let known = DropCause::ALL.iter().find(|known| known.name() == cause);
                let known = known.ok_or_else(|| {
                    format!(
                        "there is no cause `{cause}`; there are {}",
                        names.join(", ")
                    )
                })?;
                let found = self.pipeline.statistics().dropped(*known);
                self.check(*comparison, &found, packets)?;
            }
            other => self.access_cells(other)?,
        }
        Ok(())
    }

    fn check<T: PartialOrd + fmt::Display>(
        &mut self,
        comparison: Comparison,
        found: &T,
        wanted: &T,
    ) -> Result<(), String> {
        self.passed.checks += 1;
        if comparison.holds(found, wanted) {
            return Ok(());
        }
        Err(format!(
            "{found}, which is not {} {wanted}",
            comparison.symbol()
        ))
    }

    fn change_table(&mut self, statement: &Statement) -> Result<(), String> {
        match statement {
            Statement::Add {
                table,
                priority,
                key,
                call,
                handle,
            } => {
                let table = names::table(&self.program, table)?;
                let info = &self.program.tables()[table.index()];
                let entry = TableEntry {
                    key: key_matches(&info.key, key)?,
                    priority: if info.has_priority {
                        // The highest number wins; 0 is the least a script may say.
                        priority.unwrap_or(0).max(0).saturating_add(1)
                    } else {
                        0
                    },
                    action: self.entry_action(table, call)?,
                };
                self.pipeline.insert_entry(table, &entry).map_err(text)?;
                self.entries.push(Added {
                    handle: handle.clone(),
                    table,
                    key: entry.key,
                    priority: entry.priority,
                });
            }
            Statement::Remove { handle } => {
                let gone = names::take_named(&mut self.entries, handle, |added| &added.handle)?;
                for added in gone {
                    let (table, key) = (added.table, &added.key);
                    let deleted = self.pipeline.delete_entry(table, key, added.priority);
                    deleted.map_err(text)?;
                }
            }
            Statement::SetDefault { table, call } => {
                let table = names::table(&self.program, table)?;
                let call = self.call(&self.program.tables()[table.index()].actions, call)?;
                self.pipeline
                    .set_default(table, Some(&call))
                    .map_err(text)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// An action, or `member(id:N)` or `group(id:N)` of the table's action profile.
    fn entry_action(&self, table: TableId, call: &Call) -> Result<EntryAction, String> {
        let info = &self.program.tables()[table.index()];
        if info.action_profile.is_some() {
            let id = call.1.iter().find(|(name, _)| name == "id");
            let id = id.and_then(|(_, value)| parse_number(value));
            return match (call.0.as_str(), id) {
                ("member", Some(id)) => Ok(EntryAction::Member(id as u32)),
                ("group", Some(id)) => Ok(EntryAction::Group(id as u32)),
                _ => Err(format!(
                    "table {} has an action profile: its entries are member(id:N) or group(id:N)",
                    info.name
                )),
            };
        }
        self.call(&info.actions, call).map(EntryAction::Call)
    }

    fn call(&self, among: &[ActionId], call: &Call) -> Result<ActionCall, String> {
        let (name, given) = call;
        let action = names::action(&self.program, among, name)?;
        let parameters = &self.program.actions()[action.index()].parameters;
        if let Some((name, _)) = given
            .iter()
            .find(|(name, _)| !parameters.iter().any(|known| known.name == *name))
        {
            let names: Vec<&str> = parameters.iter().map(|known| known.name.as_str()).collect();
            let names = names.join(", ");
            return Err(format!("there is no argument `{name}`; there are {names}"));
        }
        let arguments = parameters.iter().map(|parameter| {
            let argument = given.iter().find(|(name, _)| *name == parameter.name);
            let missing = || format!("argument `{}` is missing", parameter.name);
            number_bits(&argument.ok_or_else(missing)?.1)
        });
        Ok(ActionCall {
            action,
            arguments: arguments.collect::<Result<_, String>>()?,
        })
    }

    fn change_profile(&mut self, statement: &Statement) -> Result<(), String> {
        match statement {
            Statement::Member {
                profile,
                member,
                call,
            } => {
                let profile = names::profile(&self.program, profile)?;
                let users = self.program.tables().iter();
                let users = users.filter(|table| table.action_profile == Some(profile));
                let among: Vec<ActionId> = users
                    .flat_map(|table| table.actions.iter().copied())
                    .collect();
                let call = self.call(&among, call)?;
                self.pipeline
                    .insert_member(profile, *member, &call)
                    .map_err(text)
            }
            Statement::Group {
                profile,
                group,
                members,
            } => {
                let profile = names::profile(&self.program, profile)?;
                let members: Vec<GroupMember> = members
                    .iter()
                    .map(|&member| GroupMember::new(member))
                    .collect();
                self.pipeline
                    .insert_group(profile, *group, &members, 0)
                    .map_err(text)
            }
            _ => Ok(()),
        }
    }

    fn access_cells(&mut self, statement: &Statement) -> Result<(), String> {
        match statement {
            Statement::RegisterWrite {
                register,
                index,
                value,
            } => {
                let register = names::register(&self.program, register)?;
                let value = number_bits(value)?;
                self.pipeline
                    .write_register(register, *index, &value)
                    .map_err(text)
            }
            Statement::RegisterRead {
                register,
                index,
                check,
            } => {
                let register = names::register(&self.program, register)?;
                let width = self.program.registers()[register.index()].width_bits;
                let found = self
                    .pipeline
                    .read_register(register, *index)
                    .map_err(text)?;
                let Some((comparison, wanted)) = check else {
                    return Ok(());
                };
                let wanted = number_bits(wanted)?;
                let ordered = |bits: &Bits| Number(bits.to_padded_bytes(width));
                self.check(*comparison, &ordered(&found), &ordered(&wanted))
            }
            Statement::RegisterReset { register } => {
                let register = names::register(&self.program, register)?;
                let size = self.program.registers()[register.index()].size;
                (0..size).try_for_each(|index| {
                    let written = self
                        .pipeline
                        .write_register(register, index, &Bits::default());
                    written.map_err(text)
                })
            }
            Statement::CounterWrite {
                counter,
                index,
                packets,
                bytes,
            } => {
                let counter = names::counter(&self.program, counter)?;
                let value = CounterValue {
                    packets: *packets,
                    bytes: *bytes,
                };
                self.pipeline
                    .write_counter(counter, *index, value)
                    .map_err(text)
            }
            Statement::CounterRead { counter, index } => {
                let counter = names::counter(&self.program, counter)?;
                self.pipeline.read_counter(counter, *index).map_err(text)?;
                Ok(())
            }
            Statement::CheckCounter {
                counter,
                cell,
                check,
            } => {
                let found = self.count(counter, cell)?;
                let (kind, comparison, wanted) =
                    check.unwrap_or((CountKind::Packets, Comparison::Equal, 0));
                let found = match kind {
                    CountKind::Packets => found.packets,
                    CountKind::Bytes => found.bytes,
                };
                self.check(comparison, &found, &wanted)
            }
            Statement::MeterSetRates {
                meter,
                index,
                rates: [committed, peak],
            } => {
                let meter = names::meter(&self.program, meter)?;
                let size = self.program.meters()[meter.index()].size;
                let rates = MeterRates {
                    committed_rate: committed.0,
                    committed_burst: committed.1,
                    peak_rate: peak.0,
                    peak_burst: peak.1,
                    ..MeterRates::default()
                };
                let cells = match index {
                    Some(index) => *index..*index + 1,
                    None => 0..size,
                };
                for index in cells {
                    let set = self.pipeline.set_meter(meter, index, Some(rates));
                    set.map_err(text)?;
                }
                Ok(())
            }
            Statement::MeterGetRates { meter, index } => {
                let meter = names::meter(&self.program, meter)?;
                self.pipeline.meter(meter, *index).map_err(text)?;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A cell by its index, or that of an entry by its handle.
    fn count(&self, counter: &str, cell: &str) -> Result<CounterValue, String> {
        let counter = names::counter(&self.program, counter)?;
        if let Some(index) = parse_number(cell) {
            return self
                .pipeline
                .read_counter(counter, index as usize)
                .map_err(text);
        }
        let handle = Some(cell.to_owned());
        let added = self.entries.iter().find(|added| added.handle == handle);
        let added = added.ok_or_else(|| format!("there is no entry `{cell}`"))?;
        self.pipeline
            .read_direct_counter(added.table, &added.key, added.priority)
            .map_err(text)
    }

    fn expect_digest(&mut self, name: &str, values: &[String]) -> Result<(), String> {
        let wanted = names::digest(&self.program, name)?;
        let values = values.iter().map(|value| number_bits(value));
        let values = values.collect::<Result<Vec<Bits>, String>>()?;
        self.passed.checks += 1;
        let Some((digest, fields)) = self.wire.digests.get(self.digests_seen) else {
            return Err("no digest has come, or none since the last one".to_owned());
        };
        self.digests_seen += 1;
        // p4c makes a list for each call; those of one struct have one name.
        let (name, wanted) = (self.digest_name(*digest), self.digest_name(wanted));
        if name == wanted && *fields == values {
            return Ok(());
        }
        let fields: Vec<String> = fields.iter().map(Bits::to_string).collect();
        Err(format!("digest {name} {} instead", fields.join(" ")))
    }

    fn digest_name(&self, digest: DigestId) -> &str {
        &self.program.digests()[digest.index()].name
    }

    fn compare(&mut self) -> Result<(), Failure> {
        let compared = self.expected.compare(&self.wire.sent);
        self.passed.checks += compared.map_err(|failure| match failure.line {
            // A packet that did not come may have been dropped.
            Some(_) => Failure {
                message: format!("{}; drops: {}", failure.message, self.drops()),
                ..failure
            },
            None => failure,
        })?;
        Ok(())
    }

    fn drops(&self) -> String {
        let statistics = self.pipeline.statistics();
        let causes = DropCause::ALL.iter();
        let causes = causes.map(|cause| (cause.name(), statistics.dropped(*cause)));
        let causes = causes.filter(|(_, packets)| *packets != 0);
        let causes = causes.map(|(name, packets)| format!("{name} {packets}"));
        match causes.collect::<Vec<String>>() {
            none if none.is_empty() => "none".to_owned(),
            causes => causes.join(", "),
        }
    }
}

/// Bytes that compare as the number they are.
#[derive(PartialEq, PartialOrd)]
struct Number(Vec<u8>);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Bits::from_bytes(&self.0).fmt(f)
    }
}
