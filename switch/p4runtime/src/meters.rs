//! Meters, indirect and direct.

use super::cells::{entries_of, parse_index, write_index};
use super::entry::parse_key;
use super::fit::Object;
use super::kind::{Kind, only_modify};
use super::proto::p4::v1::{
    CounterData, DirectMeterEntry, Entity, MeterConfig, MeterCounterData, MeterEntry, entity,
};
use super::rejection::Rejection;
use super::schema::{MeterKind, MeterSchema, Schema, TableSchema};
use super::source::{Source, of};
use super::tables::{find_table, parse_priority};
use super::target::Target;
use wormcast_switch_pipeline::{ColourCounts, CounterValue, MeterRates};

fn find_meter(schema: &Schema, id: u32) -> Result<&MeterSchema, Rejection> {
    schema
        .meter(id)
        .ok_or_else(|| schema.absent.rejection(Object::Meter, id))
}

/// Rates of a config; unset: every packet is green.
pub fn parse_rates(
    kind: MeterKind,
    config: Option<&MeterConfig>,
) -> Result<Option<MeterRates>, Rejection> {
    let Some(config) = config else {
        return Ok(None);
    };
    if config.eburst != 0 && kind != MeterKind::OneRateThreeColours {
        let has = match kind {
            MeterKind::TwoRates => "two rates",
            _ => "two colours",
        };
        return Err(Rejection::invalid(format!(
            "eburst must be 0: these meters have {has}"
        )));
    }
    let parse = |value: i64, what: &str| {
        u64::try_from(value).map_err(|_| Rejection::invalid(format!("{what} {value} is below 0")))
    };
    let rates = MeterRates {
        committed_rate: parse(config.cir, "cir")?,
        committed_burst: parse(config.cburst, "cburst")?,
        peak_rate: parse(config.pir, "pir")?,
        peak_burst: parse(config.pburst, "pburst")?,
        excess_burst: match kind {
            MeterKind::TwoRates => None,
            _ => Some(parse(config.eburst, "eburst")?),
        },
    };
    if kind != MeterKind::TwoRates {
        let equal = |what: &str, value: u64, committed: u64, of: &str| {
            if value == committed {
                return Ok(());
            }
            Err(Rejection::invalid(format!(
                "{what} {value} must equal {of} {committed}: these meters have one rate"
            )))
        };
        equal("pir", rates.peak_rate, rates.committed_rate, "cir")?;
        equal("pburst", rates.peak_burst, rates.committed_burst, "cburst")?;
    } else if rates.peak_rate < rates.committed_rate {
        return Err(Rejection::invalid(format!(
            "pir {} is below cir {}",
            rates.peak_rate, rates.committed_rate
        )));
    }
    Ok(Some(rates))
}

pub fn write_rates(rates: Option<MeterRates>) -> Option<MeterConfig> {
    let tell = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    rates.map(|rates| MeterConfig {
        cir: tell(rates.committed_rate),
        cburst: tell(rates.committed_burst),
        pir: tell(rates.peak_rate),
        pburst: tell(rates.peak_burst),
        eburst: tell(rates.excess_burst.unwrap_or(0)),
    })
}

/// Whether counts are to be cleared; they can be set to 0 alone (§"MeterCounterData").
pub fn parse_clear(data: Option<&MeterCounterData>) -> Result<bool, Rejection> {
    let Some(data) = data else {
        return Ok(false);
    };
    for (colour, count) in [
        ("green", &data.green),
        ("yellow", &data.yellow),
        ("red", &data.red),
    ] {
        if count.is_some_and(|count| count != CounterData::default()) {
            return Err(Rejection::invalid(format!(
                "the count of {colour} packets can only be set to 0"
            )));
        }
    }
    Ok(true)
}

/// The message for counts by colour.
pub fn write_counts(counts: ColourCounts) -> MeterCounterData {
    let tell = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let data = |value: CounterValue| {
        Some(CounterData {
            byte_count: tell(value.bytes),
            packet_count: tell(value.packets),
        })
    };
    MeterCounterData {
        green: data(counts.green),
        yellow: data(counts.yellow),
        red: data(counts.red),
    }
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
    let rates = parse_rates(meter.kind, entry.config.as_ref());
    let rates = rates.map_err(|rejection| rejection.within(&what))?;
    let clear = parse_clear(entry.counter_data.as_ref());
    let clear = clear.map_err(|rejection| rejection.within(&what))?;
    for cell in parse_index(&what, entry.index, meter.index.as_deref(), meter.size)? {
        target.pipeline.set_meter(meter.meter, cell, rates)?;
        if clear {
            let counts = ColourCounts::default();
            target
                .pipeline
                .set_meter_counts(meter.meter, cell, counts)?;
        }
    }
    Ok(())
}

/// Writes the meter of an entry, or of the default entry.
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
    let meter = check_direct(table)?;
    let rates = parse_rates(meter, entry.config.as_ref());
    let rates = rates.map_err(|rejection| rejection.within(&what))?;
    let clear = parse_clear(entry.counter_data.as_ref());
    let clear = clear.map_err(|rejection| rejection.within(&what))?;
    let key = if of_entry.is_default_action {
        None
    } else {
        let priority = parse_priority(table, of_entry.priority)?;
        Some((parse_key(table, &of_entry.r#match)?, priority))
    };
    let pipeline = &mut target.pipeline;
    match &key {
        None => pipeline.set_default_meter(table.table, rates)?,
        Some((key, priority)) => pipeline.set_direct_meter(table.table, key, *priority, rates)?,
    }
    if clear {
        let of_entry = key
            .as_ref()
            .map(|(key, priority)| (key.as_slice(), *priority));
        pipeline.set_direct_meter_counts(table.table, of_entry, ColourCounts::default())?;
    }
    Ok(())
}

/// Cells that a filter matches.
pub fn read_meters(source: &Source<'_>, filter: &MeterEntry) -> Result<Vec<Entity>, Rejection> {
    let (meters, wanted) = match filter.meter_id {
        0 => (source.schema.meters().collect(), None),
        id if source.schema.absent.has(Object::Meter, id) => (Vec::new(), None),
        id => (vec![find_meter(source.schema, id)?], filter.index),
    };
    let mut found = Vec::new();
    for meter in meters {
        let what = format!("meter `{}`", meter.name);
        let translation = meter.index.as_deref();
        for cell in parse_index(&what, wanted, translation, meter.size)? {
            let counts = source.pipeline.meter_counts(meter.meter, cell)?;
            found.push(of(entity::Entity::MeterEntry(MeterEntry {
                meter_id: meter.id,
                index: write_index(translation, cell),
                config: write_rates(source.pipeline.meter(meter.meter, cell)?),
                counter_data: filter.counter_data.map(|_| write_counts(counts)),
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
    let of_entry = filter.table_entry.as_ref();
    entries_of(source, of_entry, check_direct, |table, _, named, key| {
        let (pipeline, id) = (&source.pipeline, table.table);
        let rates = match key {
            None => pipeline.default_meter(id)?,
            Some((key, priority)) => pipeline.direct_meter(id, key, priority)?,
        };
        let counts = pipeline.direct_meter_counts(id, key)?;
        Ok(entity::Entity::DirectMeterEntry(DirectMeterEntry {
            table_entry: Some(named),
            config: write_rates(rates),
            counter_data: filter.counter_data.map(|_| write_counts(counts)),
        }))
    })
}

fn check_direct(table: &TableSchema) -> Result<MeterKind, Rejection> {
    table
        .direct_meter
        .ok_or_else(|| Rejection::invalid(format!("table `{}`: entries have no meter", table.name)))
}
