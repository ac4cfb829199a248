//! One entity of a `Read`: a filter, and what it finds.

use super::cookies::{CookieKey, Cookies};
use super::digests::Digests;
use super::entry::{parse_key, write_action, write_key};
use super::proto::p4::v1::table_entry::IdleTimeout as IdleTime;
use super::proto::p4::v1::{
    CounterData, CounterEntry, DirectCounterEntry, Entity, Index, P4Data,
    PacketReplicationEngineEntry, RegisterEntry, TableEntry, entity, p4_data,
    packet_replication_engine_entry as pre, table_action,
};
use super::rejection::Rejection;
use super::replication::{write_group, write_session};
use super::schema::{CounterUnit, Schema, TableSchema};
use super::write::{entity_name, find_table, no_ages, no_direct_counter, parse_index};
use super::{meters, profiles};
use crate::pipeline::{self, CounterValue, EntryAction, Pipeline};

/// What a read looks at.
pub struct Source<'a> {
    /// The P4Info, bound to the program of the pipeline.
    pub schema: &'a Schema,
    /// The tables.
    pub pipeline: &'a mut Pipeline,
    /// What controllers attached.
    pub cookies: &'a Cookies,
    /// Digests that controllers want.
    pub digests: &'a Digests,
}

/// Everything that a filter matches.
pub fn find(source: &mut Source<'_>, filter: &Entity) -> Result<Vec<Entity>, Rejection> {
    let Some(filter) = &filter.entity else {
        return Err(Rejection::invalid("an entity of the read is not set"));
    };
    match filter {
        entity::Entity::TableEntry(filter) => read_tables(source, filter),
        entity::Entity::CounterEntry(filter) => read_counters(source, filter),
        entity::Entity::DirectCounterEntry(filter) => read_direct_counters(source, filter),
        entity::Entity::RegisterEntry(filter) => read_registers(source, filter),
        entity::Entity::MeterEntry(filter) => meters::read_meters(source, filter),
        entity::Entity::DirectMeterEntry(filter) => meters::read_direct_meters(source, filter),
        entity::Entity::ActionProfileMember(filter) => profiles::read_members(source, filter),
        entity::Entity::ActionProfileGroup(filter) => profiles::read_groups(source, filter),
        // Of these there are none here, so a read of all of them finds none.
        entity::Entity::ValueSetEntry(filter) if filter.value_set_id == 0 => Ok(Vec::new()),
        entity::Entity::DigestEntry(filter) => source.digests.read(source.schema, filter),
        entity::Entity::ExternEntry(filter) if filter.extern_type_id == 0 => Ok(Vec::new()),
        entity::Entity::PacketReplicationEngineEntry(filter) => match &filter.r#type {
            Some(pre::Type::MulticastGroupEntry(group)) => {
                read_groups(source, group.multicast_group_id)
            }
            Some(pre::Type::CloneSessionEntry(session)) => {
                read_sessions(source, session.session_id)
            }
            None => Err(Rejection::invalid(
                "the packet replication entry has no type",
            )),
        },
        other => Err(Rejection::unimplemented(format!(
            "reading {} is not supported",
            entity_name(other)
        ))),
    }
}

/// An entity.
pub fn of(entity: entity::Entity) -> Entity {
    Entity {
        entity: Some(entity),
    }
}

fn read_tables(source: &mut Source<'_>, filter: &TableEntry) -> Result<Vec<Entity>, Rejection> {
    let schema = source.schema;
    let mut found = Vec::new();
    if filter.table_id == 0 {
        for table in schema.tables() {
            read_table(source, table, filter, &mut found)?;
        }
    } else {
        read_table(
            source,
            find_table(schema, filter.table_id)?,
            filter,
            &mut found,
        )?;
    }
    Ok(found)
}

fn read_table(
    source: &mut Source<'_>,
    table: &TableSchema,
    filter: &TableEntry,
    found: &mut Vec<Entity>,
) -> Result<(), Rejection> {
    let wanted = Wanted::parse(table, filter)?;
    if filter.is_default_action {
        if let Some(call) = source.pipeline.default_action(table.table) {
            let mut entry = TableEntry {
                table_id: table.id,
                action: write_action(table, &EntryAction::Call(call)),
                is_default_action: true,
                is_const: table.const_default,
                ..TableEntry::default()
            };
            attach(source.cookies, &CookieKey::Default(table.table), &mut entry);
            if wanted.accepts(&entry) {
                found.push(of(entity::Entity::TableEntry(entry)));
            }
        }
        return Ok(());
    }
    let entries = match &wanted.key {
        // A key and, where there are priorities, a priority name one entry.
        Some(key) if !table.has_priority || filter.priority != 0 => {
            let entry = source.pipeline.entry(table.table, key, filter.priority);
            entry.into_iter().collect()
        }
        _ => source.pipeline.entries(table.table),
    };
    for entry in entries {
        if wanted.key.as_ref().is_some_and(|key| *key != entry.key) {
            continue;
        }
        let mut message = describe(source, table, &entry);
        if !wanted.accepts(&message) {
            continue;
        }
        if let Some(unit) = table.direct_counter
            && filter.counter_data.is_some()
        {
            let value =
                source
                    .pipeline
                    .read_direct_counter(table.table, &entry.key, entry.priority)?;
            message.counter_data = Some(write_counter(value, unit));
        }
        if table.ages {
            let idle = source
                .pipeline
                .idle(table.table, &entry.key, entry.priority)?;
            message.idle_timeout_ns = i64::try_from(idle.timeout_ns).unwrap_or(i64::MAX);
            let elapsed_ns = idle.since_hit_us.saturating_mul(1_000);
            message.time_since_last_hit = filter.time_since_last_hit.map(|_| IdleTime {
                elapsed_ns: i64::try_from(elapsed_ns).unwrap_or(i64::MAX),
            });
        }
        if table.has_direct_meter && filter.meter_config.is_some() {
            let rates = source
                .pipeline
                .direct_meter(table.table, &entry.key, entry.priority)?;
            message.meter_config = meters::write_rates(rates);
        }
        found.push(of(entity::Entity::TableEntry(message)));
    }
    Ok(())
}

fn describe(source: &Source<'_>, table: &TableSchema, entry: &pipeline::TableEntry) -> TableEntry {
    let mut message = TableEntry {
        table_id: table.id,
        r#match: write_key(table, &entry.key),
        action: write_action(table, &entry.action),
        priority: entry.priority,
        is_const: table.const_entries,
        ..TableEntry::default()
    };
    let key = CookieKey::Entry(table.table, entry.key.clone(), entry.priority);
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

/// What a filter asks for, beyond the table; what is not set takes anything.
struct Wanted<'a> {
    key: Option<Vec<pipeline::FieldMatch>>,
    action_id: Option<u32>,
    filter: &'a TableEntry,
}

impl<'a> Wanted<'a> {
    fn parse(table: &TableSchema, filter: &'a TableEntry) -> Result<Self, Rejection> {
        let key = if filter.r#match.is_empty() {
            None
        } else {
            Some(parse_key(table, &filter.r#match)?)
        };
        let action_id = match filter
            .action
            .as_ref()
            .and_then(|action| action.r#type.as_ref())
        {
            Some(table_action::Type::Action(action)) => Some(action.action_id),
            _ => None,
        };
        if filter.counter_data.is_some() && filter.table_id != 0 && table.direct_counter.is_none() {
            return Err(no_direct_counter(table));
        }
        if filter.time_since_last_hit.is_some()
            && (filter.is_default_action || filter.table_id != 0 && !table.ages)
        {
            return Err(no_ages(table));
        }
        Ok(Self {
            key,
            action_id,
            filter,
        })
    }

    #[allow(deprecated, reason = "controllers still filter by controller_metadata")]
    fn accepts(&self, entry: &TableEntry) -> bool {
        let filter = self.filter;
        let action_id = match entry
            .action
            .as_ref()
            .and_then(|action| action.r#type.as_ref())
        {
            Some(table_action::Type::Action(action)) => Some(action.action_id),
            _ => None,
        };
        (filter.priority == 0 || filter.priority == entry.priority)
            && (filter.controller_metadata == 0
                || filter.controller_metadata == entry.controller_metadata)
            && (filter.metadata.is_empty() || filter.metadata == entry.metadata)
            && (self.action_id.is_none() || self.action_id == action_id)
    }
}

/// Counts of more than 2^63 − 1 cannot be told; the message says 2^63 − 1.
fn write_counter(value: CounterValue, unit: CounterUnit) -> CounterData {
    let tell = |counted: bool, value: u64| {
        if counted {
            i64::try_from(value).unwrap_or(i64::MAX)
        } else {
            0
        }
    };
    CounterData {
        byte_count: tell(unit.bytes, value.bytes),
        packet_count: tell(unit.packets, value.packets),
    }
}

/// An index into an array.
pub fn index(index: usize) -> Option<Index> {
    Some(Index {
        index: index as i64,
    })
}

fn read_counters(source: &mut Source<'_>, filter: &CounterEntry) -> Result<Vec<Entity>, Rejection> {
    let wanted: Vec<_> = match filter.counter_id {
        0 => source.schema.counters().collect(),
        id => vec![source.schema.counter(id).ok_or_else(|| {
            Rejection::not_found(format!("there is no counter with the id {id}"))
        })?],
    };
    let mut found = Vec::new();
    for counter in wanted {
        let what = format!("counter `{}`", counter.name);
        let index_wanted = if filter.counter_id == 0 {
            None
        } else {
            filter.index
        };
        for cell in parse_index(&what, index_wanted, counter.size)? {
            let value = source.pipeline.read_counter(counter.counter, cell)?;
            found.push(of(entity::Entity::CounterEntry(CounterEntry {
                counter_id: counter.id,
                index: index(cell),
                data: Some(write_counter(value, counter.unit)),
            })));
        }
    }
    Ok(found)
}

fn read_direct_counters(
    source: &mut Source<'_>,
    filter: &DirectCounterEntry,
) -> Result<Vec<Entity>, Rejection> {
    let everything = TableEntry::default();
    let of_entry = filter.table_entry.as_ref().unwrap_or(&everything);
    let schema = source.schema;
    let tables: Vec<_> = match of_entry.table_id {
        0 => schema
            .tables()
            .filter(|table| table.direct_counter.is_some())
            .collect(),
        id => vec![find_table(schema, id)?],
    };
    let mut found = Vec::new();
    for table in tables {
        let unit = table
            .direct_counter
            .ok_or_else(|| no_direct_counter(table))?;
        let wanted = Wanted::parse(table, of_entry)?;
        for entry in source.pipeline.entries(table.table) {
            if wanted.key.as_ref().is_some_and(|key| *key != entry.key)
                || (of_entry.priority != 0 && of_entry.priority != entry.priority)
            {
                continue;
            }
            let value =
                source
                    .pipeline
                    .read_direct_counter(table.table, &entry.key, entry.priority)?;
            let named = TableEntry {
                table_id: table.id,
                r#match: write_key(table, &entry.key),
                priority: entry.priority,
                ..TableEntry::default()
            };
            found.push(of(entity::Entity::DirectCounterEntry(DirectCounterEntry {
                table_entry: Some(named),
                data: Some(write_counter(value, unit)),
            })));
        }
    }
    Ok(found)
}

fn read_registers(
    source: &mut Source<'_>,
    filter: &RegisterEntry,
) -> Result<Vec<Entity>, Rejection> {
    let wanted: Vec<_> = match filter.register_id {
        0 => source.schema.registers().collect(),
        id => vec![source.schema.register(id).ok_or_else(|| {
            Rejection::not_found(format!("there is no register with the id {id}"))
        })?],
    };
    let mut found = Vec::new();
    for register in wanted {
        let what = format!("register `{}`", register.name);
        let index_wanted = if filter.register_id == 0 {
            None
        } else {
            filter.index
        };
        for cell in parse_index(&what, index_wanted, register.size)? {
            let value = source.pipeline.read_register(register.register, cell)?;
            let data = p4_data::Data::Bitstring(value.to_canonical_bytes());
            found.push(of(entity::Entity::RegisterEntry(RegisterEntry {
                register_id: register.id,
                index: index(cell),
                data: Some(P4Data { data: Some(data) }),
            })));
        }
    }
    Ok(found)
}

fn replication(entry: pre::Type) -> Entity {
    let entry = PacketReplicationEngineEntry {
        r#type: Some(entry),
    };
    of(entity::Entity::PacketReplicationEngineEntry(entry))
}

fn read_groups(source: &Source<'_>, id: u32) -> Result<Vec<Entity>, Rejection> {
    let mut found = Vec::new();
    for (group, replicas) in source.pipeline.multicast_groups() {
        if id == 0 || id == u32::from(group) {
            let metadata = source.cookies.get(&CookieKey::Group(group)).bytes;
            let entry = write_group(group, replicas, metadata);
            found.push(replication(pre::Type::MulticastGroupEntry(entry)));
        }
    }
    existing("multicast group", id, found)
}

fn read_sessions(source: &Source<'_>, id: u32) -> Result<Vec<Entity>, Rejection> {
    let mut found = Vec::new();
    for (session, described) in source.pipeline.clone_sessions() {
        if id == 0 || id == u32::from(session) {
            let entry = write_session(session, described);
            found.push(replication(pre::Type::CloneSessionEntry(entry)));
        }
    }
    existing("clone session", id, found)
}

fn existing(what: &str, id: u32, found: Vec<Entity>) -> Result<Vec<Entity>, Rejection> {
    if id != 0 && found.is_empty() {
        return Err(Rejection::not_found(format!("{what} {id} does not exist")));
    }
    Ok(found)
}
