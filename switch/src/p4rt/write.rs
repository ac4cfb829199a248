//! One update of a `Write`.

use tonic::Code;

use super::bytestring;
use super::cookies::{Cookie, CookieKey, Cookies};
use super::digests::Digests;
use super::entry::{ActionUse, parse_action, parse_key};
use super::proto::p4::v1::{
    CounterData, CounterEntry, DirectCounterEntry, Entity, Index, RegisterEntry, TableEntry,
    Update, entity, p4_data, packet_replication_engine_entry as pre, update,
};
use super::rejection::Rejection;
use super::replication::{parse_id, parse_replicas, parse_session};
use super::schema::{CounterUnit, Schema, TableSchema};
use super::{meters, profiles};
use crate::pipeline::{self, CounterValue, EntryAction, Pipeline};

/// What an update is made on.
pub struct Target<'a> {
    /// The P4Info, bound to the program of the pipeline.
    pub schema: &'a Schema,
    /// The tables.
    pub pipeline: &'a mut Pipeline,
    /// What controllers attached.
    pub cookies: &'a mut Cookies,
    /// Digests that controllers want.
    pub digests: &'a mut Digests,
}

impl Target<'_> {
    /// From now on, [`rollback`](Self::rollback) brings back the present state.
    pub fn begin(&mut self) {
        self.pipeline.begin();
        self.cookies.begin();
        self.digests.begin();
    }

    /// Keeps what was changed since [`begin`](Self::begin).
    pub fn commit(&mut self) {
        self.pipeline.commit();
        self.cookies.commit();
        self.digests.commit();
    }

    /// Takes back what was changed since [`begin`](Self::begin).
    pub fn rollback(&mut self) {
        self.pipeline.rollback();
        self.cookies.rollback();
        self.digests.rollback();
    }
}

/// What to do with an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It must not be there yet.
    Insert,
    /// It must be there.
    Modify,
    /// It must be there.
    Delete,
}

/// Applies an update. After a rejection nothing has changed.
pub fn apply(target: &mut Target<'_>, update: &Update) -> Result<(), Rejection> {
    let kind = match update::Type::try_from(update.r#type) {
        Ok(update::Type::Insert) => Kind::Insert,
        Ok(update::Type::Modify) => Kind::Modify,
        Ok(update::Type::Delete) => Kind::Delete,
        Ok(update::Type::Unspecified) | Err(_) => {
            return Err(Rejection::invalid(format!(
                "update type {} is not valid: INSERT, MODIFY or DELETE",
                update.r#type
            )));
        }
    };
    let Some(Entity {
        entity: Some(entity),
    }) = &update.entity
    else {
        return Err(Rejection::invalid("the update has no entity"));
    };
    match entity {
        entity::Entity::TableEntry(entry) => write_entry(target, kind, entry),
        entity::Entity::CounterEntry(entry) => write_counter(target, kind, entry),
        entity::Entity::DirectCounterEntry(entry) => write_direct_counter(target, kind, entry),
        entity::Entity::RegisterEntry(entry) => write_register(target, kind, entry),
        entity::Entity::MeterEntry(entry) => meters::write_meter(target, kind, entry),
        entity::Entity::DirectMeterEntry(entry) => meters::write_direct_meter(target, kind, entry),
        entity::Entity::ActionProfileMember(member) => profiles::write_member(target, kind, member),
        entity::Entity::ActionProfileGroup(group) => profiles::write_group(target, kind, group),
        entity::Entity::PacketReplicationEngineEntry(entry) => match &entry.r#type {
            Some(pre::Type::MulticastGroupEntry(group)) => {
                let id = parse_id("multicast group", group.multicast_group_id)?;
                let what = format!("multicast group {id}");
                match kind {
                    Kind::Delete => target.pipeline.delete_multicast_group(id)?,
                    Kind::Insert | Kind::Modify => {
                        let replicas = parse_replicas(&what, &group.replicas)?;
                        if kind == Kind::Insert {
                            target.pipeline.insert_multicast_group(id, &replicas)?;
                        } else {
                            target.pipeline.modify_multicast_group(id, &replicas)?;
                        }
                    }
                }
                let bytes = if kind == Kind::Delete {
                    Vec::new()
                } else {
                    group.metadata.clone()
                };
                target
                    .cookies
                    .set(CookieKey::Group(id), Cookie { number: 0, bytes });
                Ok(())
            }
            Some(pre::Type::CloneSessionEntry(session)) => {
                let id = parse_id("clone session", session.session_id)?;
                match kind {
                    Kind::Delete => target.pipeline.delete_clone_session(id)?,
                    Kind::Insert => {
                        target
                            .pipeline
                            .insert_clone_session(id, &parse_session(session)?)?;
                    }
                    Kind::Modify => {
                        target
                            .pipeline
                            .modify_clone_session(id, &parse_session(session)?)?;
                    }
                }
                Ok(())
            }
            None => Err(Rejection::invalid(
                "the packet replication entry has no type",
            )),
        },
        entity::Entity::DigestEntry(entry) => target.digests.write(target.schema, kind, entry),
        other => Err(Rejection::unimplemented(format!(
            "writing {} is not supported",
            entity_name(other)
        ))),
    }
}

/// Name of an entity, for messages.
pub fn entity_name(entity: &entity::Entity) -> &'static str {
    match entity {
        entity::Entity::ExternEntry(_) => "extern entries",
        entity::Entity::TableEntry(_) => "table entries",
        entity::Entity::ActionProfileMember(_) => "action profile members",
        entity::Entity::ActionProfileGroup(_) => "action profile groups",
        entity::Entity::MeterEntry(_) => "meters",
        entity::Entity::DirectMeterEntry(_) => "direct meters",
        entity::Entity::CounterEntry(_) => "counters",
        entity::Entity::DirectCounterEntry(_) => "direct counters",
        entity::Entity::PacketReplicationEngineEntry(_) => "packet replication entries",
        entity::Entity::ValueSetEntry(_) => "value sets",
        entity::Entity::RegisterEntry(_) => "registers",
        entity::Entity::DigestEntry(_) => "digests",
    }
}

/// The table a message names.
pub fn find_table(schema: &Schema, id: u32) -> Result<&TableSchema, Rejection> {
    schema
        .table(id)
        .ok_or_else(|| Rejection::not_found(format!("there is no table with the id {id}")))
}

fn write_entry(target: &mut Target<'_>, kind: Kind, entry: &TableEntry) -> Result<(), Rejection> {
    let schema = target.schema;
    let table = find_table(schema, entry.table_id)?;
    if entry.is_default_action {
        return write_default(target, table, kind, entry);
    }
    if table.fields.is_empty() {
        return Err(Rejection::invalid(format!(
            "table `{}` has no key, so no entries but the default one",
            table.name
        )));
    }
    let key = parse_key(table, &entry.r#match)?;
    let priority = parse_priority(table, entry.priority)?;
    let cookie_key = CookieKey::Entry(table.table, key.clone(), priority);
    if kind == Kind::Delete {
        target.pipeline.delete_entry(table.table, &key, priority)?;
        target.cookies.set(cookie_key, Cookie::default());
        return Ok(());
    }
    check_extras(table, entry)?;
    let counter = parse_entry_counter(table, entry)?;
    let rates = meters::parse_rates(entry.meter_config.as_ref())
        .map_err(|rejection| rejection.within(format_args!("table `{}`", table.name)))?;
    let action = entry
        .action
        .as_ref()
        .map(|action| parse_action(table, action, ActionUse::Entry))
        .transpose()?;
    match (kind, action) {
        (Kind::Insert, None) => {
            return Err(Rejection::invalid(format!(
                "table `{}`: the entry has no action",
                table.name
            )));
        }
        (Kind::Insert, Some(action)) => {
            let key = key.clone();
            target.pipeline.insert_entry(
                table.table,
                &pipeline::TableEntry {
                    key,
                    priority,
                    action,
                },
            )?;
        }
        (_, Some(action)) => {
            let key = key.clone();
            target.pipeline.modify_entry(
                table.table,
                &pipeline::TableEntry {
                    key,
                    priority,
                    action,
                },
            )?;
        }
        (_, None) => {
            // The action stays as it is; the entry must be there all the same.
            target.pipeline.entry(table.table, &key, priority)?;
        }
    }
    if table.ages {
        let timeout_ns = u64::try_from(entry.idle_timeout_ns).unwrap_or(0);
        target
            .pipeline
            .set_idle_timeout(table.table, &key, priority, timeout_ns)?;
    }
    if table.has_direct_meter {
        target
            .pipeline
            .set_direct_meter(table.table, &key, priority, rates)?;
    }
    if let Some(counter) = counter {
        target
            .pipeline
            .write_direct_counter(table.table, &key, priority, counter)?;
    }
    #[allow(deprecated, reason = "controllers still set it")]
    let number = entry.controller_metadata;
    let bytes = entry.metadata.clone();
    target.cookies.set(cookie_key, Cookie { number, bytes });
    Ok(())
}

fn write_default(
    target: &mut Target<'_>,
    table: &TableSchema,
    kind: Kind,
    entry: &TableEntry,
) -> Result<(), Rejection> {
    let refuse = |what: &str| {
        Err(Rejection::invalid(format!(
            "table `{}`: the default entry {what}",
            table.name
        )))
    };
    if kind != Kind::Modify {
        return refuse("can only be modified");
    }
    if !entry.r#match.is_empty() {
        return refuse("has no match fields");
    }
    if entry.priority != 0 {
        return refuse("has no priority");
    }
    check_extras(table, entry)?;
    if entry.counter_data.is_some() {
        return Err(Rejection::unimplemented(format!(
            "table `{}`: the counter of the default entry is not supported",
            table.name
        )));
    }
    let call = match &entry.action {
        None => None,
        Some(action) => match parse_action(table, action, ActionUse::Default)? {
            EntryAction::Call(call) => Some(call),
            EntryAction::Member(_) | EntryAction::Group(_) => {
                return refuse("calls an action, not a member or group");
            }
        },
    };
    target.pipeline.set_default(table.table, call.as_ref())?;
    let cookie = match call {
        None => Cookie::default(),
        #[allow(deprecated, reason = "controllers still set it")]
        Some(_) => Cookie {
            number: entry.controller_metadata,
            bytes: entry.metadata.clone(),
        },
    };
    target.cookies.set(CookieKey::Default(table.table), cookie);
    Ok(())
}

/// Priority of an entry: at least 1 where there are priorities, else 0.
pub fn parse_priority(table: &TableSchema, priority: i32) -> Result<i32, Rejection> {
    let valid = if table.has_priority {
        priority > 0
    } else {
        priority == 0
    };
    if valid {
        return Ok(priority);
    }
    let bound = if table.has_priority {
        "at least 1, because the key has a ternary, range or optional field"
    } else {
        "0, because the key has no ternary, range or optional field"
    };
    Err(Rejection::invalid(format!(
        "table `{}`: priority {priority} is not valid: {bound}",
        table.name
    )))
}

/// Fields of a written entry that this switch has no use for.
fn check_extras(table: &TableSchema, entry: &TableEntry) -> Result<(), Rejection> {
    let refuse = |code, what: &str| {
        Err(Rejection::new(
            code,
            format!("table `{}`: {what}", table.name),
        ))
    };
    if entry.is_const {
        return refuse(Code::InvalidArgument, "is_const cannot be written");
    }
    if entry.time_since_last_hit.is_some() {
        return refuse(
            Code::InvalidArgument,
            "time_since_last_hit cannot be written",
        );
    }
    if entry.idle_timeout_ns != 0 && (!table.ages || entry.is_default_action) {
        return Err(no_ages(table));
    }
    if entry.idle_timeout_ns < 0 {
        return refuse(Code::InvalidArgument, "idle_timeout_ns is below 0");
    }
    if entry.meter_config.is_some() && (!table.has_direct_meter || entry.is_default_action) {
        return refuse(Code::InvalidArgument, "the entry has no meter");
    }
    if entry.meter_counter_data.is_some() {
        return refuse(Code::Unimplemented, "counts of colours are not supported");
    }
    Ok(())
}

fn parse_entry_counter(
    table: &TableSchema,
    entry: &TableEntry,
) -> Result<Option<CounterValue>, Rejection> {
    match (&entry.counter_data, table.direct_counter) {
        (None, _) => Ok(None),
        (Some(data), Some(unit)) => parse_counter(data, unit).map(Some),
        (Some(_), None) => Err(no_direct_counter(table)),
    }
}

/// The rejection for an idle timeout of entries that have none.
pub fn no_ages(table: &TableSchema) -> Rejection {
    Rejection::invalid(format!(
        "table `{}`: there are idle timeouts only for entries, and only where the P4Info has \
         them",
        table.name
    ))
}

/// The rejection for a counter of entries that have none.
pub fn no_direct_counter(table: &TableSchema) -> Rejection {
    Rejection::invalid(format!("table `{}`: entries have no counter", table.name))
}

fn parse_counter(data: &CounterData, unit: CounterUnit) -> Result<CounterValue, Rejection> {
    let parse = |counted: bool, value: i64, what: &str| {
        if !counted && value != 0 {
            return Err(Rejection::invalid(format!(
                "this counter does not count {what}"
            )));
        }
        u64::try_from(value)
            .map_err(|_| Rejection::invalid(format!("a count of {value} {what} is below 0")))
    };
    Ok(CounterValue {
        packets: parse(unit.packets, data.packet_count, "packets")?,
        bytes: parse(unit.bytes, data.byte_count, "bytes")?,
    })
}

/// An index into an array; `None` stands for all of it.
pub fn parse_index(
    what: &str,
    index: Option<Index>,
    size: usize,
) -> Result<std::ops::Range<usize>, Rejection> {
    let Some(Index { index }) = index else {
        return Ok(0..size);
    };
    if index < 0 {
        return Err(Rejection::invalid(format!(
            "{what}: index {index} is below 0"
        )));
    }
    match usize::try_from(index) {
        Ok(index) if index < size => Ok(index..index + 1),
        Ok(_) | Err(_) => Err(Rejection::out_of_range(format!(
            "{what}: index {index} is not valid: 0 to {}",
            size as i64 - 1
        ))),
    }
}

/// Refuses to insert or delete what is always there.
pub fn only_modify(what: &str, kind: Kind) -> Result<(), Rejection> {
    if kind == Kind::Modify {
        return Ok(());
    }
    Err(Rejection::invalid(format!("{what} can only be modified")))
}

fn write_counter(
    target: &mut Target<'_>,
    kind: Kind,
    entry: &CounterEntry,
) -> Result<(), Rejection> {
    let Some(counter) = target.schema.counter(entry.counter_id) else {
        return Err(Rejection::not_found(format!(
            "there is no counter with the id {}",
            entry.counter_id
        )));
    };
    let what = format!("counter `{}`", counter.name);
    only_modify(&what, kind)?;
    let cells = parse_index(&what, entry.index, counter.size)?;
    let Some(data) = &entry.data else {
        return Ok(());
    };
    let value = parse_counter(data, counter.unit).map_err(|rejection| rejection.within(&what))?;
    for index in cells {
        target
            .pipeline
            .write_counter(counter.counter, index, value)?;
    }
    Ok(())
}

fn write_direct_counter(
    target: &mut Target<'_>,
    kind: Kind,
    entry: &DirectCounterEntry,
) -> Result<(), Rejection> {
    let Some(of_entry) = &entry.table_entry else {
        return Err(Rejection::invalid(
            "the direct counter names no table entry",
        ));
    };
    let table = find_table(target.schema, of_entry.table_id)?;
    let what = format!("the counter of an entry of table `{}`", table.name);
    only_modify(&what, kind)?;
    let unit = table
        .direct_counter
        .ok_or_else(|| no_direct_counter(table))?;
    if of_entry.is_default_action {
        return Err(Rejection::unimplemented(format!(
            "table `{}`: the counter of the default entry is not supported",
            table.name
        )));
    }
    let key = parse_key(table, &of_entry.r#match)?;
    let priority = parse_priority(table, of_entry.priority)?;
    match &entry.data {
        None => {
            target.pipeline.entry(table.table, &key, priority)?;
        }
        Some(data) => {
            let value = parse_counter(data, unit).map_err(|rejection| rejection.within(&what))?;
            target
                .pipeline
                .write_direct_counter(table.table, &key, priority, value)?;
        }
    }
    Ok(())
}

fn write_register(
    target: &mut Target<'_>,
    kind: Kind,
    entry: &RegisterEntry,
) -> Result<(), Rejection> {
    let Some(register) = target.schema.register(entry.register_id) else {
        return Err(Rejection::not_found(format!(
            "there is no register with the id {}",
            entry.register_id
        )));
    };
    let what = format!("register `{}`", register.name);
    only_modify(&what, kind)?;
    let cells = parse_index(&what, entry.index, register.size)?;
    let value = match entry.data.as_ref().and_then(|data| data.data.as_ref()) {
        Some(p4_data::Data::Bitstring(bytes)) => bytestring::parse(bytes, register.width_bits)
            .map_err(|rejection| rejection.within(&what))?,
        Some(_) | None => {
            return Err(Rejection::invalid(format!(
                "{what}: its data must be a bit string of {} bits",
                register.width_bits
            )));
        }
    };
    for index in cells {
        target
            .pipeline
            .write_register(register.register, index, &value)?;
    }
    Ok(())
}
