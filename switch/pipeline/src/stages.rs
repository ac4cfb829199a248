//! The programmable stages: parser, controls, tables, conditions of checksums.

use super::config::limits;
use super::entry::EntryHandle;
use super::event::{TableLookup, TraceEvent};
use super::machine::{Flow, Machine};
use super::profile::Profile;
use super::statistics::{DropCause, Event};
use super::table::{Bound, Outcome, TableState, action_position, next_after};
use wormcast_switch_program::{Case, Checksum, Control, ControlNode, Next, Program, Slot, ones};

/// Whether the condition of a checksum holds.
pub(super) fn applies(
    program: &Program,
    machine: &mut Machine,
    packet: &[u8],
    checksum: &Checksum,
) -> Result<bool, DropCause> {
    let Some((code, result)) = checksum.condition else {
        return Ok(true);
    };
    match machine.run(program, packet, code) {
        Flow::Drop(cause) => Err(cause),
        _ => Ok(machine.words[result as usize] != 0),
    }
}

/// Runs the parser on the packet in the machine. Gives the error it stopped with, if any.
pub(super) fn run_parser(
    program: &Program,
    machine: &mut Machine,
    packet: &[u8],
    key: &mut Vec<u64>,
) -> Result<Option<u64>, DropCause> {
    let parser = &program.parser;
    let mut next = parser.start;
    let mut visited = 0;
    while let Some(state) = next {
        visited += 1;
        if visited > limits::PARSER_STATES_MAX {
            return Err(DropCause::ParserLoop);
        }
        let state = &parser.states[state as usize];
        match machine.run(program, packet, state.code) {
            Flow::Done => {}
            Flow::Error(error) => return Ok(Some(error)),
            Flow::Drop(cause) => return Err(cause),
        }
        next = match state.key.as_slice() {
            [] => state.default,
            [part] if part.width <= 64 => {
                let value = machine.words[part.slot as usize];
                choose(&state.cases, &[value], state.default, machine)
            }
            parts => {
                key.clear();
                for part in parts {
                    let first = part.slot as usize;
                    let limbs = part.width.div_ceil(64).max(1) as usize;
                    key.extend_from_slice(&machine.words[first..first + limbs]);
                }
                choose(&state.cases, key, state.default, machine)
            }
        };
    }
    Ok(None)
}

/// The first case that holds.
#[inline]
fn choose(cases: &[(Case, Next)], key: &[u64], default: Next, machine: &Machine) -> Next {
    let first = cases.iter().find(|(case, _)| holds(case, key, machine));
    first.map_or(default, |(_, next)| *next)
}

/// Whether a case holds for a key.
#[inline]
pub(super) fn holds(case: &Case, key: &[u64], machine: &Machine) -> bool {
    let equal = |values: &[u64], masks: &[u64]| {
        key.iter()
            .zip(values)
            .zip(masks)
            .all(|((key, value), mask)| key & mask == value & mask)
    };
    match case {
        Case::Value { value, mask } => equal(value, mask),
        Case::Set { set, mask } => {
            machine.value_sets[*set as usize]
                .iter()
                .any(|(value, member_mask)| match mask {
                    None => equal(value, member_mask),
                    Some(mask) => {
                        key.iter().zip(value).zip(member_mask.iter().zip(mask)).all(
                            |((key, value), (member, mask))| (key ^ value) & member & mask == 0,
                        )
                    }
                })
        }
    }
}

/// Runs a control from its first node to its end.
pub(super) fn run_control(
    program: &Program,
    control: &Control,
    tables: &mut [TableState],
    profiles: &[Profile],
    machine: &mut Machine,
    packet: &[u8],
    key: &mut Vec<u64>,
) -> Flow {
    let mut next = control.start;
    while let Some(node) = next {
        let flow;
        (next, flow) = match &control.nodes[node as usize] {
            ControlNode::Condition {
                code,
                result,
                if_true,
                if_false,
            } => {
                let flow = machine.run(program, packet, *code);
                let next = if machine.words[*result as usize] != 0 {
                    *if_true
                } else {
                    *if_false
                };
                (next, flow)
            }
            ControlNode::Call {
                action,
                table,
                next,
            } => {
                if let (Some(recorder), Some(table)) = (&mut machine.recorder, *table) {
                    recorder.push(TraceEvent::Called { table });
                }
                let flow = machine.run(program, packet, program.action_code[*action as usize]);
                (*next, flow)
            }
            ControlNode::Table(table) => apply(
                program,
                *table as usize,
                tables,
                profiles,
                machine,
                packet,
                key,
            ),
        };
        if let Flow::Drop(_) = flow {
            return flow;
        }
        if machine.marks.exit {
            break;
        }
    }
    Flow::Done
}

/// Applies a table: looks its key up, runs the action, gives the node after it.
#[inline]
fn apply(
    program: &Program,
    table: usize,
    tables: &mut [TableState],
    profiles: &[Profile],
    machine: &mut Machine,
    packet: &[u8],
    key: &mut Vec<u64>,
) -> (Next, Flow) {
    let plan = &program.table_plans[table];
    key.clear();
    for (source, mask) in plan.sources.iter().zip(&plan.masks) {
        let at = key.len();
        let first = source.slot as usize;
        let present = source
            .valid
            .is_none_or(|slot| machine.words[slot as usize] != 0);
        if present && source.limbs == 1 {
            key.push(machine.words[first]);
        } else if present {
            key.extend_from_slice(&machine.words[first..first + source.limbs as usize]);
        } else {
            key.resize(at + source.limbs as usize, 0);
        }
        if let Some(mask) = mask {
            for (word, mask) in key[at..].iter_mut().zip(mask) {
                *word &= mask;
            }
        }
    }
    let found = look_up(program, table, tables, profiles, machine, packet, key);
    let Some(action) = found.action else {
        return (found.next, Flow::Done);
    };
    set_arguments(program.code.arguments, action.arguments, machine);
    (found.next, machine.run(program, packet, action.code))
}

/// What a key leads to.
pub(super) struct Found<'t> {
    /// The action that runs, if any.
    pub(super) action: Option<FoundAction<'t>>,
    /// Whether an entry was found whose action or member is what runs.
    pub(super) hit: bool,
    pub(super) next: Next,
}

/// An action and the arguments that an entry gives it.
pub(super) struct FoundAction<'t> {
    /// Start of its code.
    pub(super) code: u32,
    /// Its position in the list of the table.
    pub(super) position: u32,
    pub(super) arguments: &'t [u64],
}

impl<'t> From<&'t Bound> for FoundAction<'t> {
    fn from(bound: &'t Bound) -> Self {
        Self {
            code: bound.code,
            position: bound.position,
            arguments: &bound.arguments,
        }
    }
}

/// Looks a key up in a table, and counts and meters that.
#[inline]
pub(super) fn look_up<'t>(
    program: &Program,
    table: usize,
    tables: &'t mut [TableState],
    profiles: &'t [Profile],
    machine: &mut Machine,
    packet: &[u8],
    key: &[u64],
) -> Found<'t> {
    let plan = &program.table_plans[table];
    let state = &mut tables[table];
    let hit = state.index.get(key);
    if let Some(recorder) = &mut machine.recorder {
        let entry = hit.and_then(|number| {
            let entry = state.entries[number as usize].as_ref()?;
            let generation = state.generations[number as usize];
            Some((EntryHandle { number, generation }, entry.entry.clone()))
        });
        recorder.push(TraceEvent::Table(Box::new(TableLookup {
            table: table as u32,
            key: key.into(),
            entry,
        })));
    }
    let entry = hit.and_then(|number| state.entries[number as usize].as_mut());
    if let Some(entry) = entry {
        state.hits = state.hits.wrapping_add(1);
        entry.counter.add(machine.ingress_bytes);
        if program.tables()[table].supports_timeout {
            entry.last_hit_us = machine.now_us;
        }
        if let (Some((slot, width)), Some(meter)) =
            (plan.meter_target, program.tables()[table].direct_meter)
        {
            let unit = program.meters()[meter.index()].unit;
            let colour = entry
                .meter
                .execute(unit, machine.ingress_bytes, machine.now_us);
            machine.words[slot as usize] = colour as u64 & ones(width);
        }
        match &entry.outcome {
            Outcome::Call(bound) => {
                return Found {
                    action: Some(bound.into()),
                    hit: true,
                    next: bound.next,
                };
            }
            Outcome::Member(member) => {
                machine.record(|| TraceEvent::Member {
                    member: *member,
                    group: None,
                });
                return find_member(program, table, *member, profiles);
            }
            Outcome::Group(group) => {
                if let Some(member) =
                    choose_member(program, table, *group, profiles, machine, packet)
                {
                    machine.record(|| TraceEvent::Member {
                        member,
                        group: Some(*group),
                    });
                    return find_member(program, table, member, profiles);
                }
                machine.note_event(Event::EmptyGroup);
            }
        }
    }
    if hit.is_none() {
        state.misses = state.misses.wrapping_add(1);
        if program.tables()[table].direct_counter.is_some() {
            state.default_counter.add(machine.ingress_bytes);
        }
        if let (Some((slot, width)), Some(meter)) =
            (plan.meter_target, program.tables()[table].direct_meter)
        {
            let unit = program.meters()[meter.index()].unit;
            let colour = state
                .default_meter
                .execute(unit, machine.ingress_bytes, machine.now_us);
            // v1model meters only what matches an entry; P4Runtime can give the default entry
            // a meter of its own.
            if state.default_meter.rates().is_some() {
                machine.words[slot as usize] = colour as u64 & ones(width);
            }
        }
    }
    Found {
        action: state.default.as_ref().map(FoundAction::from),
        hit: false,
        next: match &state.default {
            Some(bound) => bound.next,
            None => plan.on_miss.unwrap_or(plan.after_none),
        },
    }
}

#[inline]
fn set_arguments(first: Slot, arguments: &[u64], machine: &mut Machine) {
    let first = first as usize;
    let words = &mut machine.words[first..first + arguments.len()];
    for (word, argument) in words.iter_mut().zip(arguments) {
        *word = *argument;
    }
}

/// The action of a member; none when the member is gone.
fn find_member<'t>(
    program: &Program,
    table: usize,
    member: u32,
    profiles: &'t [Profile],
) -> Found<'t> {
    let plan = &program.table_plans[table];
    let profile = program.tables()[table].action_profile;
    let member = profile.and_then(|profile| profiles[profile.index()].member(member));
    let Some(member) = member else {
        return Found {
            action: None,
            hit: true,
            next: plan.after_none,
        };
    };
    let action = member.call.action;
    Found {
        action: Some(FoundAction {
            code: program.action_code[action.index()],
            position: action_position(program, table, action),
            arguments: &member.arguments,
        }),
        hit: true,
        next: plan
            .on_hit
            .unwrap_or_else(|| next_after(program, table, action)),
    }
}

fn choose_member(
    program: &Program,
    table: usize,
    group: u32,
    profiles: &[Profile],
    machine: &mut Machine,
    packet: &[u8],
) -> Option<u32> {
    let profile = program.tables()[table].action_profile?;
    let group = profiles[profile.index()].group(group)?;
    let hash = if group.is_random() {
        machine.random(0, u64::MAX)
    } else {
        let selector = program.selectors[profile.index()].as_ref()?;
        machine.calculate(program, packet, selector.calculation)
    };
    group.choose(hash)
}
