//! Arrays of state: counters, meters, registers.

use std::collections::BTreeMap;

use super::description::{CounterInfo, MeterInfo, MeterUnit, RegisterInfo};
use super::error::{Problem, ProgramError};
use super::json::Node;
use super::layout::{Layout, Slot};
use super::named::Objects;
use super::scope::Scope;
use super::unique::unique_name;
use super::width::FIELD_BITS_MAX;

/// Most cells of all counters together, and of one register array.
const CELLS_MAX: usize = 1 << 23;

/// Most cells of all meters together.
const METER_CELLS_MAX: usize = 1 << 20;

/// Most words of all registers together.
const REGISTER_WORDS_MAX: usize = 1 << 26;

/// Arrays of state.
#[derive(Default)]
pub(super) struct Arrays {
    pub(super) counters: Vec<CounterInfo>,
    pub(super) counter_names: Vec<String>,
    pub(super) counter_by_table: BTreeMap<String, u32>,
    pub(super) registers: Vec<RegisterInfo>,
    pub(super) meters: Vec<MeterInfo>,
    pub(super) meter_names: Vec<String>,
    pub(super) direct_meters: BTreeMap<String, (u32, Slot, u32)>,
}

impl Arrays {
    pub(super) fn objects<'o>(
        &'o self,
        layout: &'o Layout,
        calculations: &'o [String],
        arguments: &'o [(Slot, u32)],
    ) -> Objects<'o> {
        Objects {
            scope: Scope {
                layout,
                arguments,
                registers: &self.registers,
            },
            counters: &self.counter_names,
            meters: &self.meter_names,
            calculations,
        }
    }
}

pub(super) fn read(root: &Node<'_>, layout: &Layout) -> Result<Arrays, ProgramError> {
    let mut arrays = Arrays::default();
    for node in root.list("counter_arrays")? {
        let name = unique_name(&node, "counter array", &arrays.counter_names)?;
        let direct = node.flag("is_direct", false)?;
        if direct {
            let table = node.member("binding")?.string()?.to_string();
            let index = arrays.counters.len() as u32;
            arrays.counter_by_table.insert(table, index);
        }
        let size = if direct {
            0
        } else {
            let used: usize = arrays.counters.iter().map(|counter| counter.size).sum();
            cells(&node.member("size")?, used, "cells of counters", CELLS_MAX)?
        };
        arrays.counters.push(CounterInfo {
            name: name.clone(),
            size,
            table: None,
        });
        arrays.counter_names.push(name);
    }
    for node in root.list("meter_arrays")? {
        let name = unique_name(&node, "meter array", &arrays.meter_names)?;
        let unit_node = node.member("type")?;
        let unit = match unit_node.string()? {
            "packets" => MeterUnit::Packets,
            "bytes" => MeterUnit::Bytes,
            _ => return Err(unit_node.invalid("\"packets\" or \"bytes\"")),
        };
        node.member("rate_count")?.integer_in(2, 2)?;
        let direct = node.flag("is_direct", false)?;
        if direct {
            let field = layout.field(&node.member("result_target")?)?;
            if field.limbs != 1 {
                return Err(node
                    .member("result_target")?
                    .invalid("a field of at most 64 bits"));
            }
            let index = arrays.meters.len() as u32;
            arrays
                .direct_meters
                .insert(name.clone(), (index, field.slot, field.width));
        }
        let size = if direct {
            0
        } else {
            let used: usize = arrays.meters.iter().map(|meter| meter.size).sum();
            cells(
                &node.member("size")?,
                used,
                "cells of meters",
                METER_CELLS_MAX,
            )?
        };
        arrays.meters.push(MeterInfo {
            name: name.clone(),
            size,
            unit,
            table: None,
        });
        arrays.meter_names.push(name);
    }
    let mut names = Vec::new();
    let mut words = 0;
    for node in root.list("register_arrays")? {
        let name = unique_name(&node, "register array", &names)?;
        names.push(name.clone());
        let size_node = node.member("size")?;
        let register = RegisterInfo {
            name,
            size: size_node.count(CELLS_MAX)?,
            width_bits: node
                .member("bitwidth")?
                .integer_in(1, FIELD_BITS_MAX as i64)? as u32,
        };
        words += register.size * register.width_bits.div_ceil(64) as usize;
        if words > REGISTER_WORDS_MAX {
            return Err(size_node.error(Problem::LimitExceeded {
                what: "words of registers",
                value: words,
                limit: REGISTER_WORDS_MAX,
            }));
        }
        arrays.registers.push(register);
    }
    Ok(arrays)
}

/// The size of an array, where others have used part of the cells there can be.
fn cells(
    node: &Node<'_>,
    used: usize,
    what: &'static str,
    limit: usize,
) -> Result<usize, ProgramError> {
    let size = node.count(usize::MAX >> 1)?;
    if size > limit - used {
        return Err(node.error(Problem::LimitExceeded {
            what,
            value: size.saturating_add(used),
            limit,
        }));
    }
    Ok(size)
}
