//! Counters, registers and meters over Thrift.

use std::fmt;

use super::keys::{number_bits, parse_number};
use super::live_calls::{Calls, call};
use super::names;
use super::statement::{Comparison, CountKind, Statement};
use wormcast_switch_bmv2::thrift::{Client, Type, Value};

impl Calls {
    /// Reads a cell, and compares it if it is to be; how often it compared.
    pub(super) fn read(&self, client: &mut Client, statement: &Statement) -> Result<usize, String> {
        match statement {
            Statement::RegisterRead {
                register,
                index,
                check,
            } => {
                let register = names::register(&self.program, register)?;
                let name = &self.program.registers()[register.index()].name;
                let arguments = vec![Value::text(name), number(*index)?];
                let Some(Value::I64(found)) = call(client, "bm_register_read", arguments)? else {
                    return Err("no value of a register".to_owned());
                };
                let Some((comparison, wanted)) = check else {
                    return Ok(0);
                };
                // The most that BMv2 shows of a cell is the highest signed number.
                let wanted = number_bits(wanted)?.to_u64();
                let wanted = wanted.and_then(|wanted| i64::try_from(wanted).ok());
                compare(*comparison, found, wanted.unwrap_or(i64::MAX))
            }
            Statement::CounterRead { counter, index } => {
                self.count(client, counter, &index.to_string())?;
                Ok(0)
            }
            Statement::CheckCounter {
                counter,
                cell,
                check,
            } => {
                let (bytes, packets) = self.count(client, counter, cell)?;
                let (kind, comparison, wanted) =
                    check.unwrap_or((CountKind::Packets, Comparison::Equal, 0));
                let found = match kind {
                    CountKind::Packets => packets,
                    CountKind::Bytes => bytes,
                };
                compare(comparison, found, wanted)
            }
            _ => Ok(0),
        }
    }

    /// Bytes and packets of a cell, by its index or by the entry that it belongs to.
    fn count(&self, client: &mut Client, name: &str, cell: &str) -> Result<(u64, u64), String> {
        let counter = names::counter(&self.program, name)?;
        let info = &self.program.counters()[counter.index()];
        let value = match parse_number(cell) {
            Some(index) => {
                let index = number(usize::try_from(index).unwrap_or(usize::MAX))?;
                let arguments = vec![Value::text(&info.name), index];
                call(client, "bm_counter_read", arguments)?
            }
            None => {
                let mut entries = self.entries.iter();
                let added = entries.find(|added| added.name.as_deref() == Some(cell));
                let added = added.ok_or_else(|| format!("there is no entry `{cell}`"))?;
                let table = &self.program.tables()[added.table.index()].name;
                let arguments = vec![Value::text(table), Value::I32(added.handle)];
                call(client, "bm_mt_read_counter", arguments)?
            }
        };
        let Some(Value::Struct(fields)) = value else {
            return Err("no value of a counter".to_owned());
        };
        let part = |wanted| {
            let found = fields.iter().find(|(number, _)| *number == wanted);
            match found {
                Some((_, Value::I64(value))) => *value as u64,
                _ => 0,
            }
        };
        Ok((part(1), part(2)))
    }

    /// Writes cells, and sets meters.
    pub(super) fn change_cells(
        &self,
        client: &mut Client,
        statement: &Statement,
    ) -> Result<(), String> {
        match statement {
            Statement::RegisterWrite {
                register,
                index,
                value,
            } => {
                let register = names::register(&self.program, register)?;
                let name = &self.program.registers()[register.index()].name;
                let value = number_bits(value)?.to_u64();
                let value = value.ok_or("BMv2 takes values of at most 64 bits")?;
                let value = Value::I64(value as i64);
                let arguments = vec![Value::text(name), number(*index)?, value];
                call(client, "bm_register_write", arguments)?;
            }
            Statement::RegisterReset { register } => {
                let register = names::register(&self.program, register)?;
                let name = &self.program.registers()[register.index()].name;
                let arguments = vec![Value::text(name)];
                call(client, "bm_register_reset", arguments)?;
            }
            Statement::CounterWrite {
                counter,
                index,
                packets,
                bytes,
            } => {
                let counter = names::counter(&self.program, counter)?;
                let name = &self.program.counters()[counter.index()].name;
                let value = [(1, *bytes), (2, *packets)];
                let value = value.map(|(field, count)| (field, Value::I64(count as i64)));
                let value = Value::Struct(value.to_vec());
                let arguments = vec![Value::text(name), number(*index)?, value];
                call(client, "bm_counter_write", arguments)?;
            }
            Statement::MeterSetRates {
                meter,
                index,
                rates,
            } => {
                let meter = names::meter(&self.program, meter)?;
                let name = &self.program.meters()[meter.index()].name;
                let rates = rates.map(|(rate, burst)| {
                    let burst = i32::try_from(burst).unwrap_or(i32::MAX);
                    let rate = Value::Double(rate as f64 / 1e6);
                    Value::Struct(vec![(1, rate), (2, Value::I32(burst))])
                });
                let rates = Value::List(Type::Struct, rates.to_vec());
                let mut arguments = vec![Value::text(name)];
                let method = match index {
                    Some(index) => {
                        arguments.push(number(*index)?);
                        "bm_meter_set_rates"
                    }
                    None => "bm_meter_array_set_rates",
                };
                arguments.push(rates);
                call(client, method, arguments)?;
            }
            Statement::MeterGetRates { meter, index } => {
                let meter = names::meter(&self.program, meter)?;
                let name = &self.program.meters()[meter.index()].name;
                let arguments = vec![Value::text(name), number(*index)?];
                call(client, "bm_meter_get_rates", arguments)?;
            }
            _ => {}
        }
        Ok(())
    }
}

fn number(index: usize) -> Result<Value, String> {
    let index = i32::try_from(index).map_err(|_| format!("index {index} is above 2147483647"))?;
    Ok(Value::I32(index))
}

fn compare<T: PartialOrd + fmt::Display>(
    comparison: Comparison,
    found: T,
    wanted: T,
) -> Result<usize, String> {
    if comparison.holds(&found, &wanted) {
        return Ok(1);
    }
    let symbol = comparison.symbol();
    Err(format!("{found}, which is not {symbol} {wanted}"))
}
