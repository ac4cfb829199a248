//! Meters, indirect and direct.

use super::entry::{parse_key, write_key};
use super::proto::p4::v1::{DirectMeterEntry, Entity, MeterConfig, MeterEntry, TableEntry, entity};
use super::read::{Source, index, of};
use super::rejection::Rejection;
use super::schema::{MeterSchema, Schema, TableSchema};
use super::write::{Kind, Target, find_table, only_modify, parse_index, parse_priority};
use crate::pipeline::MeterRates;

fn find_meter(schema: &Schema, id: u32) -> Result<&MeterSchema, Rejection> {
    schema
        .meter(id)
        .ok_or_else(|| Rejection::not_found(format!("there is no meter with the id {id}")))
}

/// Rates of a config; unset: every packet is green.
pub fn parse_rates(config: Option<&MeterConfig>) -> Result<Option<MeterRates>, Rejection> {
    let Some(config) = config else {
        return Ok(None);
    };
    if config.eburst != 0 {
        return Err(Rejection::invalid(
            "eburst must be 0: these meters have two rates",
        ));
    }
    let parse = |value: i64, what: &str| {
        u64::try_from(value).map_err(|_| Rejection::invalid(format!("{what} {value} is below 0")))
    };
    Ok(Some(MeterRates {
        committed_rate: parse(config.cir, "cir")?,
        committed_burst: parse(config.cburst, "cburst")?,
        peak_rate: parse(config.pir, "pir")?,
        peak_burst: parse(config.pburst, "pburst")?,
    }))
}

/// The config for rates.
pub fn write_rates(rates: Option<MeterRates>) -> Option<MeterConfig> {
    let tell = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    rates.map(|rates| MeterConfig {
        cir: tell(rates.committed_rate),
        cburst: tell(rates.committed_burst),
        pir: tell(rates.peak_rate),
        pburst: tell(rates.peak_burst),
        eburst: 0,
    })
}

/// Writes cells of a meter.
pub fn write_meter(
    target: &mut Target<'_>,
    kind: Kind,
    entry: &MeterEntry,
) -> Result<(), Rejection> {
    let meter = find_meter(target.schema, entry.meter_id)?;
    let what = format!("meter `{}`", meter.name);
    only_modify(&what, kind)?;
    refuse_counts(&what, entry.counter_data.is_some())?;
    let rates = parse_rates(entry.config.as_ref()).map_err(|rejection| rejection.within(&what))?;
    for cell in parse_index(&what, entry.index, meter.size)? {
        target.pipeline.set_meter(meter.meter, cell, rates)?;
    }
    Ok(())
}

/// Writes the meter of an entry.
pub fn write_direct_meter(
    target: &mut Target<'_>,
    kind: Kind,
    entry: &DirectMeterEntry,
) -> Result<(), Rejection> {
    let Some(of_entry) = &entry.table_entry else {
        return Err(Rejection::invalid("the direct meter names no table entry"));
    };
    let table = find_table(target.schema, of_entry.table_id)?;
    let what = format!("the meter of an entry of table `{}`", table.name);
    only_modify(&what, kind)?;
    check_direct(table)?;
    refuse_counts(&what, entry.counter_data.is_some())?;
    let rates = parse_rates(entry.config.as_ref()).map_err(|rejection| rejection.within(&what))?;
    let key = parse_key(table, &of_entry.r#match)?;
    let priority = parse_priority(table, of_entry.priority)?;
    Ok(target
        .pipeline
        .set_direct_meter(table.table, &key, priority, rates)?)
}

/// Cells that a filter matches.
pub fn read_meters(source: &Source<'_>, filter: &MeterEntry) -> Result<Vec<Entity>, Rejection> {
    let meters = match filter.meter_id {
        0 => source.schema.meters().collect(),
        id => vec![find_meter(source.schema, id)?],
    };
    let mut found = Vec::new();
    for meter in meters {
        let what = format!("meter `{}`", meter.name);
        let wanted = if filter.meter_id == 0 {
            None
        } else {
            filter.index
        };
        for cell in parse_index(&what, wanted, meter.size)? {
            found.push(of(entity::Entity::MeterEntry(MeterEntry {
                meter_id: meter.id,
                index: index(cell),
                config: write_rates(source.pipeline.meter(meter.meter, cell)?),
                counter_data: None,
            })));
        }
    }
    Ok(found)
}

/// Meters of entries that a filter matches.
pub fn read_direct_meters(
    source: &Source<'_>,
    filter: &DirectMeterEntry,
) -> Result<Vec<Entity>, Rejection> {
    let everything = TableEntry::default();
    let of_entry = filter.table_entry.as_ref().unwrap_or(&everything);
    let schema = source.schema;
    let tables: Vec<_> = match of_entry.table_id {
        0 => schema
            .tables()
            .filter(|table| table.has_direct_meter)
            .collect(),
        id => vec![find_table(schema, id)?],
    };
    let mut found = Vec::new();
    for table in tables {
        check_direct(table)?;
        let key = match of_entry.r#match.as_slice() {
            [] => None,
            matches => Some(parse_key(table, matches)?),
        };
        for entry in source.pipeline.entries(table.table) {
            if key.as_ref().is_some_and(|key| *key != entry.key)
                || (of_entry.priority != 0 && of_entry.priority != entry.priority)
            {
                continue;
            }
            let rates = source
                .pipeline
                .direct_meter(table.table, &entry.key, entry.priority)?;
            found.push(of(entity::Entity::DirectMeterEntry(DirectMeterEntry {
                table_entry: Some(TableEntry {
                    table_id: table.id,
                    r#match: write_key(table, &entry.key),
                    priority: entry.priority,
                    ..TableEntry::default()
                }),
                config: write_rates(rates),
                counter_data: None,
            })));
        }
    }
    Ok(found)
}

fn check_direct(table: &TableSchema) -> Result<(), Rejection> {
    if table.has_direct_meter {
        return Ok(());
    }
    Err(Rejection::invalid(format!(
        "table `{}`: entries have no meter",
        table.name
    )))
}

fn refuse_counts(what: &str, given: bool) -> Result<(), Rejection> {
    if given {
        return Err(Rejection::unimplemented(format!(
            "{what}: counts of colours are not supported"
        )));
    }
    Ok(())
}
