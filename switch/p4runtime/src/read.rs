//! One entity of a `Read`: a filter, and what it finds.

use super::actions::write_action;
use super::cells::{self, write_counter_data};
use super::cookies::{CookieKey, Cookies};
use super::entry::write_key;
use super::fit::Object;
use super::proto::p4::v1::table_entry::IdleTimeout as IdleTime;
use super::proto::p4::v1::{Entity, TableEntry, entity};
use super::rejection::Rejection;
use super::schema::TableSchema;
use super::source::{Source, of};
use super::tables::{find_table, no_extern};
use super::wanted::Wanted;
use super::{meters, profiles, replication, value_sets};
use wormcast_switch_pipeline::EntryAction;
use wormcast_switch_program::FieldMatch;

/// Everything that a filter matches.
pub fn find(source: &mut Source<'_>, filter: &Entity) -> Result<Vec<Entity>, Rejection> {
    let Some(filter) = &filter.entity else {
        return Err(Rejection::invalid("an entity of the read is not set"));
    };
    match filter {
        entity::Entity::TableEntry(filter) => read_tables(source, filter),
        entity::Entity::CounterEntry(filter) => cells::read_counters(source, filter),
        entity::Entity::DirectCounterEntry(filter) => cells::read_direct_counters(source, filter),
        entity::Entity::RegisterEntry(filter) => cells::read_registers(source, filter),
        entity::Entity::MeterEntry(filter) => meters::read_meters(source, filter),
        entity::Entity::DirectMeterEntry(filter) => meters::read_direct_meters(source, filter),
        entity::Entity::ActionProfileMember(filter) => profiles::read_members(source, filter),
        entity::Entity::ActionProfileGroup(filter) => profiles::read_groups(source, filter),
        entity::Entity::PacketReplicationEngineEntry(filter) => {
            replication::read_replication(source, filter)
        }
        entity::Entity::ValueSetEntry(filter) => value_sets::read_value_sets(source, filter),
        // Of these there are none here, so a read of all of them finds none.
        entity::Entity::DigestEntry(filter) => source.digests.read(source.schema, filter),
        entity::Entity::ExternEntry(filter) if filter.extern_type_id == 0 => Ok(Vec::new()),
        entity::Entity::ExternEntry(filter) => Err(no_extern(filter.extern_type_id)),
    }
}

fn read_tables(source: &Source<'_>, filter: &TableEntry) -> Result<Vec<Entity>, Rejection> {
    let schema = source.schema;
    let mut found = Vec::new();
    if filter.table_id == 0 {
        // Ids of fields and actions mean something in one table only.
        if !filter.r#match.is_empty() || filter.action.is_some() {
            return Err(Rejection::invalid(
                "a read of all tables cannot have a match or an action; name a table",
            ));
        }
        for table in schema.tables() {
            read_table(source, table, filter, &mut found)?;
        }
    } else if !schema.absent.has(Object::Table, filter.table_id) {
        let table = find_table(schema, filter.table_id)?;
        read_table(source, table, filter, &mut found)?;
    }
    Ok(found)
}

fn read_table(
    source: &Source<'_>,
    table: &TableSchema,
    filter: &TableEntry,
    found: &mut Vec<Entity>,
) -> Result<(), Rejection> {
    let wanted = Wanted::parse(table, filter)?;
    if filter.is_default_action {
        // Where a miss does nothing, as p4c has it of tables with an action profile, the entry
        // has no action.
        let call = source.pipeline.default_action(table.table);
        let action = call.map(EntryAction::Call);
        let action = action.and_then(|call| write_action(source.schema, table, &call, false));
        let mut entry = TableEntry {
            table_id: table.id,
            action,
            is_default_action: true,
            is_const: table.const_default,
            ..TableEntry::default()
        };
        attach(source.cookies, &CookieKey::Default(table.table), &mut entry);
        if wanted.accepts(&entry) {
            attach_resources(source, table, filter, None, &mut entry)?;
            found.push(of(entity::Entity::TableEntry(entry)));
        }
        return Ok(());
    }
    for entry in wanted.candidates(source) {
        let mut message = describe(source, table, &entry);
        if wanted.accepts(&message) {
            let key = Some((entry.key.as_slice(), entry.priority));
            attach_resources(source, table, filter, key, &mut message)?;
            found.push(of(entity::Entity::TableEntry(message)));
        }
    }
    Ok(())
}

/// Timeout, counter, meter and counts of an entry, without a key of the default entry, as far as
/// the filter asks for them.
fn attach_resources(
    source: &Source<'_>,
    table: &TableSchema,
    filter: &TableEntry,
    key: Option<(&[FieldMatch], i32)>,
    message: &mut TableEntry,
) -> Result<(), Rejection> {
    let (pipeline, id) = (&source.pipeline, table.table);
    if let Some(unit) = table.direct_counter
        && filter.counter_data.is_some()
    {
        let value = match key {
            Some((key, priority)) => pipeline.read_direct_counter(id, key, priority)?,
            None => pipeline.read_default_counter(id)?,
        };
        message.counter_data = Some(write_counter_data(value, unit));
    }
    if let Some((key, priority)) = key.filter(|_| table.has_idle_timeout) {
        let idle = pipeline.idle(id, key, priority)?;
        message.idle_timeout_ns = i64::try_from(idle.timeout_ns).unwrap_or(i64::MAX);
        let elapsed_ns = idle.since_hit_us.saturating_mul(1_000);
        message.time_since_last_hit = filter.time_since_last_hit.map(|_| IdleTime {
            elapsed_ns: i64::try_from(elapsed_ns).unwrap_or(i64::MAX),
        });
    }
    if table.direct_meter.is_some() && filter.meter_config.is_some() {
        let rates = match key {
            Some((key, priority)) => pipeline.direct_meter(id, key, priority)?,
            None => pipeline.default_meter(id)?,
        };
        message.meter_config = meters::write_rates(rates);
    }
    if table.direct_meter.is_some() && filter.meter_counter_data.is_some() {
        let counts = pipeline.direct_meter_counts(id, key)?;
        message.meter_counter_data = Some(meters::write_counts(counts));
    }
    Ok(())
}

fn describe(
    source: &Source<'_>,
    table: &TableSchema,
    entry: &wormcast_switch_pipeline::TableEntry,
) -> TableEntry {
    let key = CookieKey::Entry(table.table, entry.key.clone(), entry.priority);
    let by_number = source.cookies.get(&key).ports_by_number;
    let mut message = TableEntry {
        table_id: table.id,
        r#match: write_key(table, &entry.key),
        action: write_action(source.schema, table, &entry.action, by_number),
        priority: entry.priority,
        is_const: table.const_entries,
        ..TableEntry::default()
    };
    attach(source.cookies, &key, &mut message);
    message
}

/// Adds what a controller attached to an entry.
pub fn attach(cookies: &Cookies, key: &CookieKey, entry: &mut TableEntry) {
    let cookie = cookies.get(key);
    #[allow(deprecated, reason = "controllers still read it")]
    {
        entry.controller_metadata = cookie.number;
    }
    entry.metadata = cookie.bytes;
}
