//! Methods for counters, meters and registers.

use std::sync::Arc;

use super::arguments::{Arguments, field, integer};
use super::context::Context;
use super::failure::{CounterError, Failure, MeterError, Outcome, RegisterError};
use super::wire::{Type, Value};
use wormcast_switch_pipeline::LoadedProgram;
use wormcast_switch_pipeline::{CounterValue, MeterRates, Pipeline};
use wormcast_switch_program::Bits;
use wormcast_switch_program::{CounterId, MeterId, RegisterId};

/// Rates of Thrift are in units a microsecond, those of the pipeline in units a second.
const MICROSECONDS: f64 = 1e6;

/// `BmCounterValue`.
pub fn counter_value(value: CounterValue) -> Value {
    Value::Struct(vec![
        (1, Value::I64(value.bytes as i64)),
        (2, Value::I64(value.packets as i64)),
    ])
}

/// The value of a `BmCounterValue`.
pub fn read_counter_value(call: &Arguments, position: usize) -> CounterValue {
    let part = |number| call.field(position, number).map_or(0, integer) as u64;
    CounterValue {
        bytes: part(1),
        packets: part(2),
    }
}

/// The rates of a list of two `BmMeterRateConfig`, the committed one first.
///
/// # Errors
/// What is wrong, and why.
pub fn read_rates(rates: &[Value]) -> Result<MeterRates, (MeterError, String)> {
    let [committed, peak] = rates else {
        let why = format!("{} rates; a meter has 2", rates.len());
        return Err((MeterError::BadRatesList, why));
    };
    let (committed_rate, committed_burst) = read_rate(committed)?;
    let (peak_rate, peak_burst) = read_rate(peak)?;
    if peak_rate < committed_rate {
        let why = "the second rate is below the first".to_owned();
        return Err((MeterError::InvalidRate, why));
    }
    Ok(MeterRates {
        committed_rate,
        committed_burst,
        peak_rate,
        peak_burst,
        ..MeterRates::default()
    })
}

fn read_rate(config: &Value) -> Result<(u64, u64), (MeterError, String)> {
    let rate = match field(config, 1) {
        Some(Value::Double(rate)) => *rate,
        _ => 0.0,
    };
    // Far above any link, and far below where counting tokens would overflow.
    if !(0.0..=1e9).contains(&rate) {
        let why = format!("a rate of {rate} a microsecond; valid: 0 to 1e9");
        return Err((MeterError::InvalidRate, why));
    }
    let burst = field(config, 2).map_or(0, integer);
    let burst = u64::try_from(burst).map_err(|_| {
        let why = format!("a burst of {burst}; it cannot be below 0");
        (MeterError::InvalidBurst, why)
    })?;
    Ok(((rate * MICROSECONDS).round() as u64, burst))
}

/// The list of `BmMeterRateConfig` of a meter; none where it is not configured.
pub fn write_rates(rates: Option<MeterRates>) -> Value {
    let config = |rate: u64, burst: u64| {
        Value::Struct(vec![
            (1, Value::Double(rate as f64 / MICROSECONDS)),
            (2, Value::I32(i32::try_from(burst).unwrap_or(i32::MAX))),
        ])
    };
    let list = rates.map_or_else(Vec::new, |rates| {
        vec![
            config(rates.committed_rate, rates.committed_burst),
            config(rates.peak_rate, rates.peak_burst),
        ]
    });
    Value::List(Type::Struct, list)
}

/// An index of a call below a bound.
fn index(given: i64, size: usize) -> Result<usize, String> {
    usize::try_from(given)
        .ok()
        .filter(|index| *index < size)
        .ok_or_else(|| format!("index {given} of {size} cells"))
}

fn counter<'a>(
    context: &'a mut Context<'_>,
    call: &Arguments,
) -> Result<(&'a mut Pipeline, CounterId, usize), Failure> {
    let pipeline = context.pipeline()?;
    let name = call.text(1);
    let id = pipeline.program().counter(name);
    let id = id.filter(|id| pipeline.program().counters()[id.index()].table.is_none());
    let id = id.ok_or_else(|| CounterError::InvalidName.because(format!("no counter {name:?}")))?;
    let size = pipeline.program().counters()[id.index()].size;
    Ok((pipeline, id, size))
}

/// `bm_counter_read`.
pub fn read_counter(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let (pipeline, id, size) = counter(context, call)?;
    let index = index(call.integer(2), size).map_err(|why| CounterError::InvalidIndex.because(why));
    let value = pipeline.read_counter(id, index?)?;
    Ok(Some(counter_value(value)))
}

/// `bm_counter_write`.
pub fn write_counter(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let (pipeline, id, size) = counter(context, call)?;
    let index = index(call.integer(2), size).map_err(|why| CounterError::InvalidIndex.because(why));
    pipeline.write_counter(id, index?, read_counter_value(call, 3))?;
    Ok(None)
}

/// `bm_counter_reset_all`.
pub fn reset_counter(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let (pipeline, id, size) = counter(context, call)?;
    for index in 0..size {
        pipeline.write_counter(id, index, CounterValue::default())?;
    }
    Ok(None)
}

fn meter<'a>(
    context: &'a mut Context<'_>,
    call: &Arguments,
) -> Result<(&'a mut Pipeline, MeterId, usize), Failure> {
    let pipeline = context.pipeline()?;
    let name = call.text(1);
    let id = pipeline.program().meter(name);
    let id = id.filter(|id| pipeline.program().meters()[id.index()].table.is_none());
    let id = id.ok_or_else(|| MeterError::InvalidName.because(format!("no meter {name:?}")))?;
    let size = pipeline.program().meters()[id.index()].size;
    Ok((pipeline, id, size))
}

fn rates_of(call: &Arguments, position: usize) -> Result<MeterRates, Failure> {
    read_rates(call.items(position)).map_err(|(error, why)| error.because(why))
}

/// `bm_meter_set_rates`.
pub fn set_meter(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let (pipeline, id, size) = meter(context, call)?;
    let index = index(call.integer(2), size).map_err(|why| MeterError::InvalidIndex.because(why));
    let (index, rates) = (index?, rates_of(call, 3)?);
    pipeline.set_meter(id, index, Some(rates))?;
    Ok(None)
}

/// `bm_meter_array_set_rates`.
pub fn set_meters(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let (pipeline, id, size) = meter(context, call)?;
    let rates = rates_of(call, 2)?;
    for index in 0..size {
        pipeline.set_meter(id, index, Some(rates))?;
    }
    Ok(None)
}

/// `bm_meter_get_rates`.
pub fn read_meter(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let (pipeline, id, size) = meter(context, call)?;
    let index = index(call.integer(2), size).map_err(|why| MeterError::InvalidIndex.because(why));
    Ok(Some(write_rates(pipeline.meter(id, index?)?)))
}

fn register<'a>(
    context: &'a mut Context<'_>,
    call: &Arguments,
) -> Result<(&'a mut Pipeline, RegisterId, Arc<LoadedProgram>), Failure> {
    let pipeline = context.pipeline()?;
    let name = call.text(1);
    let program = Arc::clone(pipeline.program());
    let id = program.register(name);
    let id =
        id.ok_or_else(|| RegisterError::InvalidName.because(format!("no register {name:?}")))?;
    Ok((pipeline, id, program))
}

/// The value of a register cell as Thrift has it: its lowest 64 bits.
fn register_value(value: &Bits) -> Value {
    let tail = value.as_bytes().iter().rev().take(8).rev();
    let low = tail.fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
    Value::I64(low as i64)
}

/// `bm_register_read`.
pub fn read_register(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let (pipeline, id, program) = register(context, call)?;
    let size = program.registers()[id.index()].size;
    let index =
        index(call.integer(2), size).map_err(|why| RegisterError::InvalidIndex.because(why));
    Ok(Some(register_value(&pipeline.read_register(id, index?)?)))
}

/// `bm_register_read_all`.
pub fn read_registers(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let (pipeline, id, program) = register(context, call)?;
    let mut values = Vec::new();
    for index in 0..program.registers()[id.index()].size {
        values.push(register_value(&pipeline.read_register(id, index)?));
    }
    Ok(Some(Value::List(Type::I64, values)))
}

/// Writes a value, cut to the width of the register, into cells.
fn fill(
    context: &mut Context<'_>,
    call: &Arguments,
    cells: impl Fn(usize) -> Result<std::ops::Range<usize>, String>,
    value: i64,
) -> Outcome {
    let (pipeline, id, program) = register(context, call)?;
    let info = &program.registers()[id.index()];
    let cells = cells(info.size).map_err(|why| RegisterError::InvalidIndex.because(why))?;
    let value = Bits::from_u64(value as u64).and(&Bits::ones(info.width_bits));
    for index in cells {
        pipeline.write_register(id, index, &value)?;
    }
    Ok(None)
}

/// `bm_register_write`.
pub fn write_register(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let cell = |size| index(call.integer(2), size).map(|index| index..index + 1);
    fill(context, call, cell, call.integer(3))
}

/// `bm_register_write_range`; the end is not included.
pub fn write_registers(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    let cells = |size: usize| {
        let (start, end) = (call.integer(2), call.integer(3));
        let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
        range
            .filter(|(start, end)| start <= end && *end <= size)
            .map(|(start, end)| start..end)
            .ok_or_else(|| format!("cells {start} to {end} of {size}"))
    };
    fill(context, call, cells, call.integer(4))
}

/// `bm_register_reset`.
pub fn reset_register(context: &mut Context<'_>, call: &Arguments) -> Outcome {
    fill(context, call, |size| Ok(0..size), 0)
}
