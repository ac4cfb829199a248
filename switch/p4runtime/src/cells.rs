//! Cells of counters and registers, and the counters of entries.

use super::bytestring;
use super::entry::{parse_key, write_key};
use super::fit::Object;
use super::kind::{Kind, only_modify};
use super::proto::p4::v1::{
    CounterData, CounterEntry, DirectCounterEntry, Entity, Index, P4Data, RegisterEntry,
    TableEntry, entity, p4_data,
};
use super::rejection::Rejection;
use super::schema::{CounterSchema, CounterUnit, DataForm, RegisterSchema, Schema, TableSchema};
use super::source::{Source, of};
use super::tables::{find_table, parse_priority};
use super::target::Target;
use super::translation::Translation;
use super::wanted::Wanted;
use wormcast_switch_pipeline::CounterValue;
use wormcast_switch_program::{Bits, FieldMatch as KeyMatch};

/// An index into an array, as controllers have it; `None` stands for all of it.
pub fn parse_index(
    what: &str,
    index: Option<Index>,
    translation: Option<&Translation>,
    size: usize,
) -> Result<std::ops::Range<usize>, Rejection> {
    let Some(Index { index }) = index else {
        return Ok(0..size);
    };
    let Ok(number) = u64::try_from(index) else {
        return Err(Rejection::invalid(format!(
            "{what}: index {index} is below 0"
        )));
    };
    let number = match translation {
        None => Some(number),
        Some(translation) => translation
            .parse(&Bits::from_u64(number).to_canonical_bytes())
            .map_err(|rejection| rejection.within(format_args!("{what}: index {index}")))?
            .to_u64(),
    };
    match number.and_then(|number| usize::try_from(number).ok()) {
        Some(index) if index < size => Ok(index..index + 1),
        Some(_) | None => Err(Rejection::out_of_range(format!(
            "{what}: index {index} is not valid: 0 to {}",
            size as i64 - 1
        ))),
    }
}

/// The index of a cell, as controllers have it.
pub fn write_index(translation: Option<&Translation>, cell: usize) -> Option<Index> {
    let written = translation.map(|translation| {
        let bytes = translation.write(&Bits::from_u64(cell as u64));
        Bits::from_bytes(&bytes).to_u64()
    });
    let index = match written {
        None => cell as u64,
        Some(number) => number.unwrap_or(cell as u64),
    };
    Some(Index {
        index: i64::try_from(index).unwrap_or(i64::MAX),
    })
}

/// What a message counts. `within` what it is the counter of.
pub fn parse_counter(data: &CounterData, unit: CounterUnit) -> Result<CounterValue, Rejection> {
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

/// Counts of more than 2^63 − 1 do not fit the message, which has 2^63 − 1.
pub fn write_counter_data(value: CounterValue, unit: CounterUnit) -> CounterData {
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

/// The rejection for a counter of entries that have none.
pub fn no_direct_counter(table: &TableSchema) -> Rejection {
    Rejection::invalid(format!("table `{}`: entries have no counter", table.name))
}

fn find_counter(schema: &Schema, id: u32) -> Result<&CounterSchema, Rejection> {
    schema
        .counter(id)
        .ok_or_else(|| schema.absent.rejection(Object::Counter, id))
}

/// Writes cells of a counter; without data it changes nothing.
pub fn write_counter(
    target: &mut Target<'_>,
    kind: Kind,
    entry: &CounterEntry,
) -> Result<(), Rejection> {
    let counter = find_counter(target.schema, entry.counter_id)?;
    let what = format!("counter `{}`", counter.name);
    only_modify(&what, kind)?;
    let cells = parse_index(&what, entry.index, counter.index.as_deref(), counter.size)?;
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

/// Cells that a filter matches.
pub fn read_counters(source: &Source<'_>, filter: &CounterEntry) -> Result<Vec<Entity>, Rejection> {
    let (wanted, index) = match filter.counter_id {
        0 => (source.schema.counters().collect(), None),
        id if source.schema.absent.has(Object::Counter, id) => (Vec::new(), None),
        id => (vec![find_counter(source.schema, id)?], filter.index),
    };
    let mut found = Vec::new();
    for counter in wanted {
        let what = format!("counter `{}`", counter.name);
        let translation = counter.index.as_deref();
        for cell in parse_index(&what, index, translation, counter.size)? {
            let value = source.pipeline.read_counter(counter.counter, cell)?;
            found.push(of(entity::Entity::CounterEntry(CounterEntry {
                counter_id: counter.id,
                index: write_index(translation, cell),
                data: Some(write_counter_data(value, counter.unit)),
            })));
        }
    }
    Ok(found)
}

/// Writes the counter of an entry, or of the default entry.
pub fn write_direct_counter(
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
    let data = entry.data.as_ref().map(|data| parse_counter(data, unit));
    let value = data
        .transpose()
        .map_err(|rejection| rejection.within(&what))?;
    if of_entry.is_default_action {
        if let Some(value) = value {
            target.pipeline.write_default_counter(table.table, value)?;
        }
        return Ok(());
    }
    let key = parse_key(table, &of_entry.r#match)?;
    let priority = parse_priority(table, of_entry.priority)?;
    match value {
        None => {
            target.pipeline.entry(table.table, &key, priority)?;
        }
        Some(value) => {
            target
                .pipeline
                .write_direct_counter(table.table, &key, priority, value)?;
        }
    }
    Ok(())
}

/// Counters of entries that a filter matches.
pub fn read_direct_counters(
    source: &Source<'_>,
    filter: &DirectCounterEntry,
) -> Result<Vec<Entity>, Rejection> {
    let unit = |table: &TableSchema| table.direct_counter.ok_or_else(|| no_direct_counter(table));
    let filter = filter.table_entry.as_ref();
    entries_of(source, filter, unit, |table, unit, named, key| {
        let value = match key {
            None => source.pipeline.read_default_counter(table.table)?,
            Some((key, priority)) => {
                source
                    .pipeline
                    .read_direct_counter(table.table, key, priority)?
            }
        };
        Ok(entity::Entity::DirectCounterEntry(DirectCounterEntry {
            table_entry: Some(named),
            data: Some(write_counter_data(value, unit)),
        }))
    })
}

/// What there is of the entries that a filter names, or of the default entries: of one table,
/// or of all that have it. `tell` is given what the table has, what names the entry, and its
/// key and priority unless it is the default one.
pub fn entries_of<T: Copy>(
    source: &Source<'_>,
    filter: Option<&TableEntry>,
    has: impl Fn(&TableSchema) -> Result<T, Rejection>,
    tell: impl Fn(
        &TableSchema,
        T,
        TableEntry,
        Option<(&[KeyMatch], i32)>,
    ) -> Result<entity::Entity, Rejection>,
) -> Result<Vec<Entity>, Rejection> {
    let everything = TableEntry::default();
    let filter = filter.unwrap_or(&everything);
    let tables: Vec<_> = match filter.table_id {
        0 => source
            .schema
            .tables()
            .filter(|table| has(table).is_ok())
            .collect(),
        id if source.schema.absent.has(Object::Table, id) => Vec::new(),
        id => vec![find_table(source.schema, id)?],
    };
    let mut found = Vec::new();
    for table in tables {
        let of_table = has(table)?;
        if filter.is_default_action {
            found.push(of(tell(table, of_table, named_default(table), None)?));
            continue;
        }
        for entry in Wanted::parse(table, filter)?.entries(source)? {
            let key = Some((entry.key.as_slice(), entry.priority));
            found.push(of(tell(table, of_table, named(table, &entry), key)?));
        }
    }
    Ok(found)
}

/// What names an entry, and nothing else.
fn named(table: &TableSchema, entry: &wormcast_switch_pipeline::TableEntry) -> TableEntry {
    TableEntry {
        table_id: table.id,
        r#match: write_key(table, &entry.key),
        priority: entry.priority,
        ..TableEntry::default()
    }
}

/// What names the default entry, and nothing else.
fn named_default(table: &TableSchema) -> TableEntry {
    TableEntry {
        table_id: table.id,
        is_default_action: true,
        ..TableEntry::default()
    }
}

fn find_register(schema: &Schema, id: u32) -> Result<&RegisterSchema, Rejection> {
    schema
        .register(id)
        .ok_or_else(|| schema.absent.rejection(Object::Register, id))
}

/// Writes cells of a register.
pub fn write_register(
    target: &mut Target<'_>,
    kind: Kind,
    entry: &RegisterEntry,
) -> Result<(), Rejection> {
    let register = find_register(target.schema, entry.register_id)?;
    let what = format!("register `{}`", register.name);
    only_modify(&what, kind)?;
    let translation = register.index.as_deref();
    let cells = parse_index(&what, entry.index, translation, register.size)?;
    let data = entry.data.as_ref().and_then(|data| data.data.as_ref());
    let value = parse_data(register, data).map_err(|rejection| rejection.within(&what))?;
    for index in cells {
        target
            .pipeline
            .write_register(register.register, index, &value)?;
    }
    Ok(())
}

fn parse_data(register: &RegisterSchema, data: Option<&p4_data::Data>) -> Result<Bits, Rejection> {
    let width_bits = register.value.width_bits;
    match (register.form, data) {
        (DataForm::Unsigned, Some(p4_data::Data::Bitstring(bytes))) => register.value.parse(bytes),
        (DataForm::Enum, Some(p4_data::Data::EnumValue(bytes))) => register.value.parse(bytes),
        (DataForm::Signed, Some(p4_data::Data::Bitstring(bytes))) => {
            bytestring::parse_signed(bytes, width_bits)
        }
        (DataForm::Bool, Some(p4_data::Data::Bool(value))) => Ok(Bits::from_u64(u64::from(*value))),
        (form, _) => Err(Rejection::invalid(format!(
            "its data must be {}",
            match form {
                DataForm::Unsigned => format!("a bit string of {width_bits} bits"),
                DataForm::Signed => format!("a signed bit string of {width_bits} bits"),
                DataForm::Bool => "a bool".to_owned(),
                DataForm::Enum => format!("an enum value of {width_bits} bits"),
            }
        ))),
    }
}

fn write_data(register: &RegisterSchema, value: &Bits) -> p4_data::Data {
    match register.form {
        DataForm::Unsigned => p4_data::Data::Bitstring(register.value.write(value)),
        DataForm::Enum => p4_data::Data::EnumValue(register.value.write(value)),
        DataForm::Signed => {
            p4_data::Data::Bitstring(bytestring::write_signed(value, register.value.width_bits))
        }
        DataForm::Bool => p4_data::Data::Bool(*value != Bits::default()),
    }
}

/// Cells that a filter matches.
pub fn read_registers(
    source: &Source<'_>,
    filter: &RegisterEntry,
) -> Result<Vec<Entity>, Rejection> {
    let (wanted, index) = match filter.register_id {
        0 => (source.schema.registers().collect(), None),
        id if source.schema.absent.has(Object::Register, id) => (Vec::new(), None),
        id => (vec![find_register(source.schema, id)?], filter.index),
    };
    let mut found = Vec::new();
    for register in wanted {
        let what = format!("register `{}`", register.name);
        let translation = register.index.as_deref();
        for cell in parse_index(&what, index, translation, register.size)? {
            let value = source.pipeline.read_register(register.register, cell)?;
            found.push(of(entity::Entity::RegisterEntry(RegisterEntry {
                register_id: register.id,
                index: write_index(translation, cell),
                data: Some(P4Data {
                    data: Some(write_data(register, &value)),
                }),
            })));
        }
    }
    Ok(found)
}
