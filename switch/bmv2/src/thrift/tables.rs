//! Methods for tables: entries, default entries, direct counters and meters.

use super::arguments::{Arguments, integer};
use super::arrays::{counter_value, read_counter_value, read_rates, write_rates};
use super::context::{Context, Table};
use super::failure::{Failure, Outcome, TableError};
use super::keys::{read_call, read_key, read_priority, write_call, write_key, write_priority};
use super::profiles::{group_id, handle_of, member_id, own_call};
use super::wire::{Type, Value};
use wormcast_switch_pipeline::{CounterValue, EntryAction, EntryHandle, TableEntry};
use wormcast_switch_program::ActionCall;

/// Nanoseconds of the millisecond that timeouts of Thrift are in.
const NANOSECONDS: u64 = 1_000_000;

/// How a table finds its action.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// An entry has an action.
    Simple,
    /// An entry has a member of an action profile.
    Indirect,
    /// An entry has a member or a group.
    IndirectWithSelector,
}

fn kind(table: &Table<'_>) -> Kind {
    match table.info().action_profile {
        None => Kind::Simple,
        Some(profile) => {
            if table.program.action_profiles()[profile.index()].has_selector {
                Kind::IndirectWithSelector
            } else {
                Kind::Indirect
            }
        }
    }
}

/// The table of a call if it is of a suitable kind.
fn table_of<'a>(
    context: &'a mut Context<'_>,
    arguments: &Arguments,
    suitable: impl Fn(Kind) -> bool,
) -> Result<Table<'a>, Failure> {
    let table = context.table(arguments.text(1))?;
    if suitable(kind(&table)) {
        return Ok(table);
    }
    let name = &table.info().name;
    Err(TableError::WrongTableType.because(match kind(&table) {
        Kind::Simple => format!("table {name} has no action profile"),
        Kind::Indirect => format!("table {name} has an action profile without a selector"),
        Kind::IndirectWithSelector => format!("table {name} has an action profile"),
    }))
}

fn any_table<'a>(context: &'a mut Context<'_>, call: &Arguments) -> Result<Table<'a>, Failure> {
    table_of(context, call, |_| true)
}

fn simple<'a>(context: &'a mut Context<'_>, call: &Arguments) -> Result<Table<'a>, Failure> {
    table_of(context, call, |kind| kind == Kind::Simple)
}

fn indirect<'a>(context: &'a mut Context<'_>, call: &Arguments) -> Result<Table<'a>, Failure> {
    table_of(context, call, |kind| kind != Kind::Simple)
}

fn selecting<'a>(context: &'a mut Context<'_>, call: &Arguments) -> Result<Table<'a>, Failure> {
    table_of(context, call, |kind| kind == Kind::IndirectWithSelector)
}

fn write_handle(handle: EntryHandle) -> Value {
    Value::I32(handle.to_u32() as i32)
}

fn find(table: &Table<'_>, handle: i64) -> Result<(EntryHandle, TableEntry), Failure> {
    let (found, entry) = find_number(table, handle)?;
    if u32::from(found.generation) != handle as i32 as u32 >> 24 {
        let name = &table.info().name;
        let why = format!("the entry {handle} of table {name} is gone");
        return Err(TableError::ExpiredHandle.because(why));
    }
    Ok((found, entry))
}

/// The entry with the number of a handle, whichever it is now: what BMv2 asks of a handle
/// where counters, meters and timeouts are concerned, so that the numbers from 0 on will do.
fn find_number(table: &Table<'_>, handle: i64) -> Result<(EntryHandle, TableEntry), Failure> {
    let number = handle as i32 as u32 & 0x00ff_ffff;
    match table.pipeline.entry_with_number(table.id, number) {
        Some((found, entry)) => Ok((found, entry.clone())),
        None => {
            let name = &table.info().name;
            Err(TableError::InvalidHandle.because(format!("table {name} has no entry {handle}")))
        }
    }
}

fn named_call(table: &Table<'_>, name: &str, data: &[Value]) -> Result<ActionCall, Failure> {
    let action = table.program.table_action(table.id, name);
    let action = action.ok_or_else(|| {
        let table = &table.info().name;
        TableError::InvalidActionName.because(format!("table {table} has no action {name:?}"))
    })?;
    read_call(&table.program, action, data)
}

fn check_mutable(table: &Table<'_>) -> Result<(), Failure> {
    if table.info().const_entries {
        let name = &table.info().name;
        return Err(TableError::ImmutableTableEntries
            .because(format!("the program fixes the entries of table {name}")));
    }
    Ok(())
}

/// `bm_mt_get_num_entries`.
pub fn count(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let table = any_table(context, call)?;
    let count = table.pipeline.entry_count(table.id);
    Ok(Some(Value::I64(count as i64)))
}

/// `bm_mt_clear_entries`.
pub fn clear(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let table = any_table(context, call)?;
    check_mutable(&table)?;
    for entry in table.pipeline.entries(table.id) {
        table
            .pipeline
            .delete_entry(table.id, &entry.key, entry.priority)?;
    }
    table.pipeline.restart_handles(table.id);
    if call.bool(2) && !table.info().const_default {
        table.pipeline.set_default(table.id, None)?;
        table.state.default_members.remove(&table.id);
    }
    Ok(None)
}

fn insert(table: Table<'_>, key: &[Value], priority: i64, action: EntryAction) -> Outcome {
    check_mutable(&table)?;
    if table.info().key.is_empty() {
        let name = &table.info().name;
        let why = format!("table {name} has no key, so no entries but the default one");
        return Err(TableError::NoTableKey.because(why));
    }
    let key = read_key(table.info(), key)?;
    let priority = read_priority(table.info(), priority)?;
    let entry = TableEntry {
        key,
        priority,
        action,
    };
    table.pipeline.insert_entry(table.id, entry.clone())?;
    let handle = table.pipeline.handle(table.id, &entry.key, priority)?;
    Ok(Some(write_handle(handle)))
}

fn modify(table: Table<'_>, handle: i64, action: EntryAction) -> Outcome {
    check_mutable(&table)?;
    let (_, mut entry) = find(&table, handle)?;
    entry.action = action;
    table.pipeline.modify_entry(table.id, entry)?;
    Ok(None)
}

fn priority_of(call: &Arguments, position: usize) -> i64 {
    call.field(position, 1).map_or(0, integer)
}

/// `bm_mt_add_entry`.
pub fn add(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let table = simple(context, call)?;
    let action = named_call(&table, call.text(3), call.items(4))?;
    let priority = priority_of(call, 5);
    insert(table, call.items(2), priority, EntryAction::Call(action))
}

/// `bm_mt_modify_entry`.
pub fn modify_call(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let table = simple(context, call)?;
    let action = named_call(&table, call.text(3), call.items(4))?;
    modify(table, call.integer(2), EntryAction::Call(action))
}

fn remove(table: Table<'_>, handle: i64) -> Outcome {
    check_mutable(&table)?;
    let (_, entry) = find(&table, handle)?;
    table
        .pipeline
        .delete_entry(table.id, &entry.key, entry.priority)?;
    Ok(None)
}

/// `bm_mt_delete_entry`.
pub fn delete(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    remove(simple(context, call)?, call.integer(2))
}

/// `bm_mt_indirect_delete_entry`.
pub fn delete_indirect(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    remove(indirect(context, call)?, call.integer(2))
}

fn existing_member(table: &Table<'_>, handle: i64) -> Result<u32, Failure> {
    let profile = table.info().action_profile;
    let id = member_id(handle);
    let found = profile.is_some_and(|profile| {
        let mut members = table.pipeline.members(profile);
        members.any(|(candidate, _)| candidate == id)
    });
    if found {
        return Ok(id);
    }
    Err(TableError::InvalidMemberHandle.because(format!("there is no member {handle}")))
}

fn existing_group(table: &Table<'_>, handle: i64) -> Result<u32, Failure> {
    let profile = table.info().action_profile;
    let id = group_id(handle);
    let found = profile.and_then(|profile| {
        let mut groups = table.pipeline.groups(profile);
        groups.find(|(candidate, ..)| *candidate == id)
    });
    match found {
        None => Err(TableError::InvalidGroupHandle.because(format!("there is no group {handle}"))),
        // Over P4Runtime an entry may refer to one.
        Some((_, [], _)) => {
            Err(TableError::EmptyGroup.because(format!("group {handle} has no members")))
        }
        Some(_) => Ok(id),
    }
}

/// `bm_mt_indirect_add_entry`.
pub fn add_member(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let table = indirect(context, call)?;
    let member = existing_member(&table, call.integer(3))?;
    let priority = priority_of(call, 4);
    insert(table, call.items(2), priority, EntryAction::Member(member))
}

/// `bm_mt_indirect_modify_entry`.
pub fn modify_member(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let table = indirect(context, call)?;
    find(&table, call.integer(2))?;
    let member = existing_member(&table, call.integer(3))?;
    modify(table, call.integer(2), EntryAction::Member(member))
}

/// `bm_mt_indirect_ws_add_entry`.
pub fn add_group(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let table = selecting(context, call)?;
    let group = existing_group(&table, call.integer(3))?;
    let priority = priority_of(call, 4);
    insert(table, call.items(2), priority, EntryAction::Group(group))
}

/// `bm_mt_indirect_ws_modify_entry`.
pub fn modify_group(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let table = selecting(context, call)?;
    find(&table, call.integer(2))?;
    let group = existing_group(&table, call.integer(3))?;
    modify(table, call.integer(2), EntryAction::Group(group))
}

fn put_default(table: &mut Table<'_>, action: Option<&ActionCall>) -> Result<(), Failure> {
    if action.is_some() && table.info().const_default {
        let name = &table.info().name;
        return Err(TableError::DefaultEntryIsConst
            .because(format!("the program fixes the default of table {name}")));
    }
    table.pipeline.set_default(table.id, action)?;
    table.state.default_members.remove(&table.id);
    Ok(())
}

/// `bm_mt_set_default_action`.
pub fn set_default(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let mut table = simple(context, call)?;
    let action = named_call(&table, call.text(2), call.items(3))?;
    put_default(&mut table, Some(&action))?;
    Ok(None)
}

/// `bm_mt_reset_default_entry` and `bm_mt_indirect_reset_default_entry`.
pub fn reset_default(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let mut table = any_table(context, call)?;
    if !table.info().const_default {
        put_default(&mut table, None)?;
    }
    Ok(None)
}

/// `bm_mt_indirect_set_default_member`. The default follows what the member is changed to.
pub fn set_default_member(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let mut table = indirect(context, call)?;
    let handle = call.integer(2);
    let member = existing_member(&table, handle)?;
    let profile = table.info().action_profile;
    let action = profile.and_then(|profile| {
        let mut members = table.pipeline.members(profile);
        members.find(|(id, _)| *id == member)
    });
    let action = action.map(|(_, action)| own_call(&table.program, table.id, action));
    put_default(&mut table, action.as_ref())?;
    table.state.default_members.insert(table.id, handle as i32);
    Ok(None)
}

/// `bm_mt_indirect_ws_set_default_group`: a default is one action here.
pub fn set_default_group(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let table = selecting(context, call)?;
    existing_group(&table, call.integer(2))?;
    Err(TableError::Error.because("a group cannot be a default; a member can"))
}

fn action_entry(table: &Table<'_>, action: &EntryAction) -> Value {
    let fields = match action {
        EntryAction::Call(action) => {
            let (name, data) = write_call(&table.program, action);
            vec![(1, Value::I32(1)), (2, name), (3, data)]
        }
        EntryAction::Member(id) => vec![(1, Value::I32(2)), (4, handle_of(*id))],
        EntryAction::Group(id) => vec![(1, Value::I32(3)), (5, handle_of(*id))],
        // A set of actions that came with its entry over P4Runtime; it has no handle.
        EntryAction::Set(_) => vec![(1, Value::I32(3)), (5, Value::I32(-1))],
    };
    Value::Struct(fields)
}

fn write_entry(table: &Table<'_>, handle: EntryHandle, entry: &TableEntry) -> Value {
    let priority = write_priority(table.info(), entry.priority);
    let mut fields = vec![
        (1, write_key(table.info(), &entry.key)),
        (2, Value::Struct(vec![(1, priority)])),
        (3, write_handle(handle)),
        (4, action_entry(table, &entry.action)),
    ];
    let idle = table.pipeline.idle(table.id, &entry.key, entry.priority);
    if let Ok(idle) = idle
        && idle.timeout_ns > 0
    {
        let milliseconds = |count: u64| Value::I32(i32::try_from(count).unwrap_or(i32::MAX));
        let life = vec![
            (1, milliseconds(idle.timeout_ns / NANOSECONDS)),
            (2, milliseconds(idle.since_hit_us / 1_000)),
        ];
        fields.push((5, Value::Struct(life)));
    }
    Value::Struct(fields)
}

/// `bm_mt_get_entries`.
pub fn entries(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let table = any_table(context, call)?;
    let entries = table.pipeline.entries_by_number(table.id);
    let entries = entries.map(|(handle, entry)| write_entry(&table, handle, entry));
    Ok(Some(Value::List(Type::Struct, entries.collect())))
}

/// `bm_mt_get_entry`.
pub fn entry(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let table = any_table(context, call)?;
    let (handle, entry) = find(&table, call.integer(2))?;
    Ok(Some(write_entry(&table, handle, &entry)))
}

fn default_entry(table: &Table<'_>) -> Value {
    let none = || Value::Struct(vec![(1, Value::I32(0))]);
    if kind(table) != Kind::Simple {
        let member = table.state.default_members.get(&table.id);
        return member.map_or_else(none, |handle| {
            Value::Struct(vec![(1, Value::I32(2)), (4, Value::I32(*handle))])
        });
    }
    match table.pipeline.default_action(table.id) {
        Some(action) => action_entry(table, &EntryAction::Call(action)),
        None => none(),
    }
}

/// `bm_mt_get_default_entry`.
pub fn default(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let table = any_table(context, call)?;
    Ok(Some(default_entry(&table)))
}

/// `bm_mt_get_entry_from_key`; without a key the default entry.
pub fn entry_with_key(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let table = any_table(context, call)?;
    if call.items(2).is_empty() {
        return Ok(Some(Value::Struct(vec![
            (1, Value::List(Type::Struct, Vec::new())),
            (2, Value::Struct(Vec::new())),
            (3, Value::I32(0)),
            (4, default_entry(&table)),
        ])));
    }
    let key = read_key(table.info(), call.items(2))?;
    let priority = read_priority(table.info(), priority_of(call, 3))?;
    let handle = table.pipeline.handle(table.id, &key, priority);
    let handle = handle.map_err(|error| TableError::BadMatchKey.because(error.to_string()))?;
    let entry = table.pipeline.entry(table.id, &key, priority)?;
    Ok(Some(write_entry(&table, handle, &entry)))
}

/// `bm_mt_set_entry_ttl` and `bm_mt_indirect_set_entry_ttl`.
pub fn set_timeout(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let table = any_table(context, call)?;
    if !table.info().supports_timeout {
        let name = &table.info().name;
        let why = format!("entries of table {name} do not age");
        return Err(TableError::AgeingDisabled.because(why));
    }
    let (_, entry) = find_number(&table, call.integer(2))?;
    let timeout_ms = u64::try_from(call.integer(3));
    let timeout_ms =
        timeout_ms.map_err(|_| TableError::Error.because("a timeout cannot be below 0"))?;
    let (key, priority) = (&entry.key, entry.priority);
    table
        .pipeline
        .set_idle_timeout(table.id, key, priority, timeout_ms * NANOSECONDS)?;
    Ok(None)
}

fn counted<'a>(context: &'a mut Context<'_>, call: &Arguments) -> Result<Table<'a>, Failure> {
    let table = any_table(context, call)?;
    if table.info().direct_counter.is_none() {
        let name = &table.info().name;
        let why = format!("table {name} has no direct counter");
        return Err(TableError::CountersDisabled.because(why));
    }
    Ok(table)
}

fn metered<'a>(context: &'a mut Context<'_>, call: &Arguments) -> Result<Table<'a>, Failure> {
    let table = any_table(context, call)?;
    if table.info().direct_meter.is_none() {
        let name = &table.info().name;
        let why = format!("table {name} has no direct meter");
        return Err(TableError::MetersDisabled.because(why));
    }
    Ok(table)
}

/// `bm_mt_read_counter`.
pub fn read_counter(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let table = counted(context, call)?;
    let (_, entry) = find_number(&table, call.integer(2))?;
    let value = table
        .pipeline
        .read_direct_counter(table.id, &entry.key, entry.priority)?;
    Ok(Some(counter_value(value)))
}

/// `bm_mt_write_counter`.
pub fn write_counter(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let table = counted(context, call)?;
    let (_, entry) = find_number(&table, call.integer(2))?;
    let value = read_counter_value(call, 3);
    table
        .pipeline
        .write_direct_counter(table.id, &entry.key, entry.priority, value)?;
    Ok(None)
}

/// `bm_mt_reset_counters`.
pub fn reset_counters(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let table = counted(context, call)?;
    let zero = CounterValue::default();
    for entry in table.pipeline.entries(table.id) {
        table
            .pipeline
            .write_direct_counter(table.id, &entry.key, entry.priority, zero)?;
    }
    Ok(None)
}

/// `bm_mt_set_meter_rates`.
pub fn set_meter(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let table = metered(context, call)?;
    let (_, entry) = find_number(&table, call.integer(2))?;
    let rates = read_rates(call.items(3))
        .map_err(|(_, why)| TableError::InvalidMeterOperation.because(why))?;
    table
        .pipeline
        .set_direct_meter(table.id, &entry.key, entry.priority, Some(rates))?;
    Ok(None)
}

/// `bm_mt_get_meter_rates`.
pub fn meter(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let table = metered(context, call)?;
    let (_, entry) = find_number(&table, call.integer(2))?;
    let rates = table
        .pipeline
        .direct_meter(table.id, &entry.key, entry.priority)?;
    Ok(Some(write_rates(rates)))
}
