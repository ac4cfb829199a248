//! One update of a `Write`.

use tonic::Code;

use super::actions::parse_action;
use super::calls::ActionUse;
use super::cells::{no_direct_counter, parse_counter};
use super::cookies::{Cookie, CookieKey};
use super::entry::parse_key;
use super::kind::Kind;
use super::proto::p4::v1::{Entity, TableEntry, Update, entity, update};
use super::rejection::Rejection;
use super::schema::TableSchema;
use super::tables::{find_table, no_ages, no_extern, parse_priority};
use super::target::Target;
use super::{cells, meters, profiles, replication, value_sets};
use wormcast_switch_pipeline::{ColourCounts, CounterValue, EntryAction, MeterRates};

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
        entity::Entity::CounterEntry(entry) => cells::write_counter(target, kind, entry),
        entity::Entity::DirectCounterEntry(entry) => {
            cells::write_direct_counter(target, kind, entry)
        }
        entity::Entity::RegisterEntry(entry) => cells::write_register(target, kind, entry),
        entity::Entity::MeterEntry(entry) => meters::write_meter(target, kind, entry),
        entity::Entity::DirectMeterEntry(entry) => meters::write_direct_meter(target, kind, entry),
        entity::Entity::ActionProfileMember(member) => profiles::write_member(target, kind, member),
        entity::Entity::ActionProfileGroup(group) => profiles::write_group(target, kind, group),
        entity::Entity::PacketReplicationEngineEntry(entry) => {
            replication::write_replication(target, kind, entry)
        }
        entity::Entity::ValueSetEntry(entry) => value_sets::write_value_set(target, kind, entry),
        entity::Entity::DigestEntry(entry) => target.digests.write(target.schema, kind, entry),
        entity::Entity::ExternEntry(entry) => Err(no_extern(entry.extern_type_id)),
    }
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
    if entry.is_const {
        return Err(const_written(table));
    }
    if kind == Kind::Delete {
        target.pipeline.delete_entry(table.table, &key, priority)?;
        if !target.cookies.is_empty() {
            let of_entry = CookieKey::Entry(table.table, key, priority);
            target.cookies.set(of_entry, Cookie::default());
        }
        return Ok(());
    }
    if table.const_entries && (kind == Kind::Insert || entry.action.is_some()) {
        return Err(Rejection::new(
            Code::PermissionDenied,
            format!(
                "table `{}`: its entries are constant; only their counters and meters can be \
                 modified, without an action",
                table.name
            ),
        ));
    }
    check_extras(table, entry)?;
    let resources = Resources::parse(table, entry)?;
    let action = entry
        .action
        .as_ref()
        .map(|action| parse_action(schema, table, action, ActionUse::Entry))
        .transpose()?;
    let cookie = cookie_of(entry);
    // Most entries are but a key and an action; for them the key need not be kept.
    let is_plain = kind == Kind::Insert
        && entry.idle_timeout_ns == 0
        && resources.is_empty()
        && cookie == Cookie::default()
        && target.cookies.is_empty();
    let kept_key = if is_plain { Vec::new() } else { key.clone() };
    let of_pipeline = |action| wormcast_switch_pipeline::TableEntry {
        key,
        priority,
        action,
    };
    match (kind, action) {
        (Kind::Insert, None) => {
            return Err(Rejection::invalid(format!(
                "table `{}`: the entry has no action",
                table.name
            )));
        }
        (Kind::Insert, Some(action)) => {
            let entry = of_pipeline(action);
            target.pipeline.insert_entry(table.table, entry)?;
        }
        (_, Some(action)) => {
            let entry = of_pipeline(action);
            target.pipeline.modify_entry(table.table, entry)?;
        }
        (_, None) => {
            // The action stays as it is; the entry must be there all the same.
            target.pipeline.entry(table.table, &kept_key, priority)?;
        }
    }
    if is_plain {
        return Ok(());
    }
    let key = kept_key;
    let pipeline = &mut target.pipeline;
    if table.has_idle_timeout {
        let timeout_ns = u64::try_from(entry.idle_timeout_ns).unwrap_or(0);
        pipeline.set_idle_timeout(table.table, &key, priority, timeout_ns)?;
    }
    if table.direct_meter.is_some() {
        pipeline.set_direct_meter(table.table, &key, priority, resources.rates)?;
        if resources.clear_counts {
            let of_entry = Some((key.as_slice(), priority));
            pipeline.set_direct_meter_counts(table.table, of_entry, ColourCounts::default())?;
        }
    }
    if let Some(counter) = resources.counter {
        pipeline.write_direct_counter(table.table, &key, priority, counter)?;
    }
    let of_entry = CookieKey::Entry(table.table, key, priority);
    target.cookies.set(of_entry, cookie);
    Ok(())
}

fn cookie_of(entry: &TableEntry) -> Cookie {
    #[allow(deprecated, reason = "controllers still set it")]
    let number = entry.controller_metadata;
    Cookie {
        number,
        bytes: entry.metadata.clone(),
        ports_by_number: profiles::watches_by_number(entry.action.as_ref()),
    }
}

fn const_written(table: &TableSchema) -> Rejection {
    Rejection::invalid(format!(
        "table `{}`: is_const cannot be written",
        table.name
    ))
}

/// What an entry says of its counter and meter (§"Direct Resources").
struct Resources {
    counter: Option<CounterValue>,
    rates: Option<MeterRates>,
    clear_counts: bool,
}

impl Resources {
    fn is_empty(&self) -> bool {
        self.counter.is_none() && self.rates.is_none() && !self.clear_counts
    }

    fn parse(table: &TableSchema, entry: &TableEntry) -> Result<Self, Rejection> {
        let within =
            |rejection: Rejection| rejection.within(format_args!("table `{}`", table.name));
        let counter = match (&entry.counter_data, table.direct_counter) {
            (None, _) => None,
            (Some(data), Some(unit)) => Some(parse_counter(data, unit).map_err(within)?),
            (Some(_), None) => return Err(no_direct_counter(table)),
        };
        let Some(kind) = table.direct_meter else {
            if entry.meter_config.is_some() || entry.meter_counter_data.is_some() {
                return Err(within(Rejection::invalid("the entry has no meter")));
            }
            return Ok(Self {
                counter,
                rates: None,
                clear_counts: false,
            });
        };
        let rates = meters::parse_rates(kind, entry.meter_config.as_ref());
        let clear = meters::parse_clear(entry.meter_counter_data.as_ref());
        Ok(Self {
            counter,
            rates: rates.map_err(within)?,
            clear_counts: clear.map_err(within)?,
        })
    }
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
    if entry.is_const {
        return Err(const_written(table));
    }
    if table.const_default {
        return Err(Rejection::new(
            Code::PermissionDenied,
            format!(
                "fixed by the program: the default action of table {}",
                table.name
            ),
        ));
    }
    check_extras(table, entry)?;
    let resources = Resources::parse(table, entry)?;
    let call = match &entry.action {
        None => None,
        Some(action) => match parse_action(target.schema, table, action, ActionUse::Default)? {
            EntryAction::Call(call) => Some(call),
            EntryAction::Member(_) | EntryAction::Group(_) | EntryAction::Set(_) => {
                return refuse("calls an action, not a member or group");
            }
        },
    };
    let pipeline = &mut target.pipeline;
    pipeline.set_default(table.table, call.as_ref())?;
    // Without an action the default entry is what the program makes it, with nothing
    // attached (§"Default Entry").
    let reset = call.is_none();
    if table.direct_meter.is_some() {
        pipeline.set_default_meter(table.table, resources.rates.filter(|_| !reset))?;
        if resources.clear_counts || reset {
            pipeline.set_direct_meter_counts(table.table, None, ColourCounts::default())?;
        }
    }
    if table.direct_counter.is_some() {
        let counter = if reset {
            Some(CounterValue::default())
        } else {
            resources.counter
        };
        if let Some(counter) = counter {
            pipeline.write_default_counter(table.table, counter)?;
        }
    }
    let cookie = if reset {
        Cookie::default()
    } else {
        cookie_of(entry)
    };
    target.cookies.set(CookieKey::Default(table.table), cookie);
    Ok(())
}

/// Fields of a written entry that say something only when they are read.
fn check_extras(table: &TableSchema, entry: &TableEntry) -> Result<(), Rejection> {
    let refuse = |what: &str| {
        Err(Rejection::invalid(format!(
            "table `{}`: {what}",
            table.name
        )))
    };
    if entry.time_since_last_hit.is_some() {
        return refuse("time_since_last_hit cannot be written");
    }
    if entry.idle_timeout_ns != 0 && (!table.has_idle_timeout || entry.is_default_action) {
        return Err(no_ages(table));
    }
    if entry.idle_timeout_ns < 0 {
        return refuse("idle_timeout_ns is below 0");
    }
    Ok(())
}
