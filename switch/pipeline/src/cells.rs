//! The control path: counters, registers, meters.

use super::Pipeline;
use super::entry::{ColourCounts, CounterValue, MeterRates};
use super::error::ControlError;
use wormcast_switch_program::Bits;
use wormcast_switch_program::FieldMatch;
use wormcast_switch_program::{CounterId, MeterId, RegisterId, TableId};

impl Pipeline {
    /// One cell of an indirect counter.
    ///
    /// # Errors
    /// `NotFound` for an unknown counter, `InvalidArgument` for an index past its size or a
    /// direct counter.
    pub fn read_counter(
        &self,
        counter: CounterId,
        index: usize,
    ) -> Result<CounterValue, ControlError> {
        self.check_counter(counter, index)?;
        Ok(self.machine.counters[counter.index()][index])
    }

    /// All cells of an indirect counter; none for a direct or unknown one.
    pub fn counter_cells(&self, counter: CounterId) -> &[CounterValue] {
        let cells = self.machine.counters.get(counter.index());
        cells.map_or(&[], Vec::as_slice)
    }

    /// Sets one cell of an indirect counter.
    ///
    /// # Errors
    /// Those of [`read_counter`](Self::read_counter).
    pub fn write_counter(
        &mut self,
        counter: CounterId,
        index: usize,
        value: CounterValue,
    ) -> Result<(), ControlError> {
        self.check_counter(counter, index)?;
        let cell = &mut self.machine.counters[counter.index()][index];
        let before = std::mem::replace(cell, value);
        self.undo(move |pipeline| {
            pipeline.machine.counters[counter.index()][index] = before;
        });
        Ok(())
    }

    fn check_counter(&self, counter: CounterId, index: usize) -> Result<(), ControlError> {
        let counters = self.program.counters();
        let Some(info) = counters.get(counter.index()) else {
            return Err(ControlError::NotFound {
                what: format!("counter {}", counter.index()),
            });
        };
        if info.table.is_some() {
            return Err(direct("counter", &info.name));
        }
        check_index("counter", &info.name, index, info.size)
    }

    /// The direct counter of an entry.
    ///
    /// # Errors
    /// `NotFound`, `InvalidArgument` for a table without a direct counter.
    pub fn read_direct_counter(
        &self,
        table: TableId,
        key: &[FieldMatch],
        priority: i32,
    ) -> Result<CounterValue, ControlError> {
        self.check_direct_counter(table)?;
        let number = self.find_entry(table, key, priority)?;
        let stored = self.tables[table.index()].entries[number as usize].as_ref();
        Ok(stored.map_or(CounterValue::default(), |stored| stored.counter))
    }

    /// Sets the direct counter of an entry.
    ///
    /// # Errors
    /// Those of [`read_direct_counter`](Self::read_direct_counter).
    pub fn write_direct_counter(
        &mut self,
        table: TableId,
        key: &[FieldMatch],
        priority: i32,
        value: CounterValue,
    ) -> Result<(), ControlError> {
        self.check_direct_counter(table)?;
        let number = self.find_entry(table, key, priority)?;
        if let Some(stored) = self.tables[table.index()].entry_mut(number) {
            let before = std::mem::replace(&mut stored.counter, value);
            self.undo(move |pipeline| {
                if let Some(stored) = pipeline.tables[table.index()].entry_mut(number) {
                    stored.counter = before;
                }
            });
        }
        Ok(())
    }

    /// The counter of the default entry: packets that hit no entry.
    ///
    /// # Errors
    /// `NotFound`, `InvalidArgument` for a table without a direct counter.
    pub fn read_default_counter(&self, table: TableId) -> Result<CounterValue, ControlError> {
        self.check_direct_counter(table)?;
        Ok(self.tables[table.index()].default_counter)
    }

    /// Sets the counter of the default entry.
    ///
    /// # Errors
    /// Those of [`read_default_counter`](Self::read_default_counter).
    pub fn write_default_counter(
        &mut self,
        table: TableId,
        value: CounterValue,
    ) -> Result<(), ControlError> {
        self.check_direct_counter(table)?;
        let counter = &mut self.tables[table.index()].default_counter;
        let before = std::mem::replace(counter, value);
        self.undo(move |pipeline| pipeline.tables[table.index()].default_counter = before);
        Ok(())
    }

    fn check_direct_counter(&self, table: TableId) -> Result<(), ControlError> {
        let info = self.table_info(table)?;
        if info.direct_counter.is_none() {
            return Err(ControlError::InvalidArgument {
                what: "table with a direct counter".to_string(),
                value: info.name.clone(),
                bound: "tables that the program gives one".to_string(),
            });
        }
        Ok(())
    }

    /// One cell of a register array.
    ///
    /// # Errors
    /// `NotFound`, `InvalidArgument` for an index past its size.
    pub fn read_register(&self, register: RegisterId, index: usize) -> Result<Bits, ControlError> {
        self.check_register(register, index)?;
        let array = &self.machine.registers[register.index()];
        let first = index * array.limbs;
        Ok(Bits::from_limbs(&array.words[first..first + array.limbs]))
    }

    /// Sets one cell of a register array.
    ///
    /// # Errors
    /// `NotFound`, `InvalidArgument` for an index past its size or a value that is too wide.
    pub fn write_register(
        &mut self,
        register: RegisterId,
        index: usize,
        value: &Bits,
    ) -> Result<(), ControlError> {
        self.check_register(register, index)?;
        let info = &self.program.registers()[register.index()];
        if value.width_bits() > info.width_bits {
            return Err(ControlError::InvalidArgument {
                what: format!("value of register {}", info.name),
                value: value.to_string(),
                bound: format!("values of at most {} bits", info.width_bits),
            });
        }
        let array = &mut self.machine.registers[register.index()];
        let cell = index * array.limbs..(index + 1) * array.limbs;
        let before = self
            .journal
            .is_open()
            .then(|| array.words[cell.clone()].to_vec());
        value.write_limbs(&mut array.words[cell.clone()]);
        if let Some(before) = before {
            self.undo(move |pipeline| {
                let array = &mut pipeline.machine.registers[register.index()];
                array.words[cell].copy_from_slice(&before);
            });
        }
        Ok(())
    }

    fn check_register(&self, register: RegisterId, index: usize) -> Result<(), ControlError> {
        let registers = self.program.registers();
        match registers.get(register.index()) {
            Some(info) => check_index("register", &info.name, index, info.size),
            None => Err(ControlError::NotFound {
                what: format!("register {}", register.index()),
            }),
        }
    }

    /// The rates of one cell of an indirect meter; `None` when it is not configured.
    ///
    /// # Errors
    /// `NotFound`, `InvalidArgument` for an index past its size or a direct meter.
    pub fn meter(&self, meter: MeterId, index: usize) -> Result<Option<MeterRates>, ControlError> {
        self.check_meter(meter, index)?;
        Ok(self.machine.meters[meter.index()][index].rates())
    }

    /// Sets the rates of one cell of an indirect meter and fills its buckets; `None` makes
    /// all packets green.
    ///
    /// # Errors
    /// Those of [`meter`](Self::meter), and `InvalidArgument` for a peak rate below the
    /// committed one.
    pub fn set_meter(
        &mut self,
        meter: MeterId,
        index: usize,
        rates: Option<MeterRates>,
    ) -> Result<(), ControlError> {
        self.check_meter(meter, index)?;
        check_rates(rates)?;
        let cell = &mut self.machine.meters[meter.index()][index];
        let before = cell.clone();
        cell.set_rates(rates);
        self.undo(move |pipeline| pipeline.machine.meters[meter.index()][index] = before);
        Ok(())
    }

    fn check_meter(&self, meter: MeterId, index: usize) -> Result<(), ControlError> {
        let meters = self.program.meters();
        let Some(info) = meters.get(meter.index()) else {
            return Err(ControlError::NotFound {
                what: format!("meter {}", meter.index()),
            });
        };
        if info.table.is_some() {
            return Err(direct("meter", &info.name));
        }
        check_index("meter", &info.name, index, info.size)
    }

    /// The rates of the direct meter of an entry.
    ///
    /// # Errors
    /// `NotFound`, `InvalidArgument` for a table without a direct meter.
    pub fn direct_meter(
        &self,
        table: TableId,
        key: &[FieldMatch],
        priority: i32,
    ) -> Result<Option<MeterRates>, ControlError> {
        self.check_direct_meter(table)?;
        let number = self.find_entry(table, key, priority)?;
        let stored = self.tables[table.index()].entries[number as usize].as_ref();
        Ok(stored.and_then(|stored| stored.meter.rates()))
    }

    /// Sets the rates of the direct meter of an entry.
    ///
    /// # Errors
    /// Those of [`direct_meter`](Self::direct_meter) and [`set_meter`](Self::set_meter).
    pub fn set_direct_meter(
        &mut self,
        table: TableId,
        key: &[FieldMatch],
        priority: i32,
        rates: Option<MeterRates>,
    ) -> Result<(), ControlError> {
        self.check_direct_meter(table)?;
        check_rates(rates)?;
        let number = self.find_entry(table, key, priority)?;
        if let Some(stored) = self.tables[table.index()].entry_mut(number) {
            let before = stored.meter.clone();
            stored.meter.set_rates(rates);
            self.undo(move |pipeline| {
                if let Some(stored) = pipeline.tables[table.index()].entry_mut(number) {
                    stored.meter = before;
                }
            });
        }
        Ok(())
    }

    /// The rates of the meter of the default entry.
    ///
    /// # Errors
    /// `NotFound`, `InvalidArgument` for a table without a direct meter.
    pub fn default_meter(&self, table: TableId) -> Result<Option<MeterRates>, ControlError> {
        self.check_direct_meter(table)?;
        Ok(self.tables[table.index()].default_meter.rates())
    }

    /// Sets the rates of the meter of the default entry.
    ///
    /// # Errors
    /// Those of [`default_meter`](Self::default_meter) and [`set_meter`](Self::set_meter).
    pub fn set_default_meter(
        &mut self,
        table: TableId,
        rates: Option<MeterRates>,
    ) -> Result<(), ControlError> {
        self.check_direct_meter(table)?;
        check_rates(rates)?;
        let meter = &mut self.tables[table.index()].default_meter;
        let before = meter.clone();
        meter.set_rates(rates);
        self.undo(move |pipeline| pipeline.tables[table.index()].default_meter = before);
        Ok(())
    }

    /// Packets by the colour that one cell of an indirect meter gave them.
    ///
    /// # Errors
    /// Those of [`meter`](Self::meter).
    pub fn meter_counts(&self, meter: MeterId, index: usize) -> Result<ColourCounts, ControlError> {
        self.check_meter(meter, index)?;
        Ok(self.machine.meters[meter.index()][index].counts())
    }

    /// Sets the counts of one cell of an indirect meter.
    ///
    /// # Errors
    /// Those of [`meter`](Self::meter).
    pub fn set_meter_counts(
        &mut self,
        meter: MeterId,
        index: usize,
        counts: ColourCounts,
    ) -> Result<(), ControlError> {
        self.check_meter(meter, index)?;
        let cell = &mut self.machine.meters[meter.index()][index];
        let before = cell.counts();
        cell.set_counts(counts);
        self.undo(move |pipeline| {
            pipeline.machine.meters[meter.index()][index].set_counts(before);
        });
        Ok(())
    }

    /// Packets by the colour that the direct meter of an entry gave them; without a key,
    /// that of the default entry.
    ///
    /// # Errors
    /// Those of [`direct_meter`](Self::direct_meter).
    pub fn direct_meter_counts(
        &self,
        table: TableId,
        entry: Option<(&[FieldMatch], i32)>,
    ) -> Result<ColourCounts, ControlError> {
        self.check_direct_meter(table)?;
        let state = &self.tables[table.index()];
        let Some((key, priority)) = entry else {
            return Ok(state.default_meter.counts());
        };
        let number = self.find_entry(table, key, priority)?;
        let stored = state.entries[number as usize].as_ref();
        Ok(stored.map_or(ColourCounts::default(), |stored| stored.meter.counts()))
    }

    /// Sets the counts of the direct meter of an entry; without a key, of the default entry.
    ///
    /// # Errors
    /// Those of [`direct_meter`](Self::direct_meter).
    pub fn set_direct_meter_counts(
        &mut self,
        table: TableId,
        entry: Option<(&[FieldMatch], i32)>,
        counts: ColourCounts,
    ) -> Result<(), ControlError> {
        self.check_direct_meter(table)?;
        let Some((key, priority)) = entry else {
            let meter = &mut self.tables[table.index()].default_meter;
            let before = meter.counts();
            meter.set_counts(counts);
            self.undo(move |pipeline| {
                pipeline.tables[table.index()]
                    .default_meter
                    .set_counts(before);
            });
            return Ok(());
        };
        let number = self.find_entry(table, key, priority)?;
        if let Some(stored) = self.tables[table.index()].entry_mut(number) {
            let before = stored.meter.counts();
            stored.meter.set_counts(counts);
            self.undo(move |pipeline| {
                if let Some(stored) = pipeline.tables[table.index()].entry_mut(number) {
                    stored.meter.set_counts(before);
                }
            });
        }
        Ok(())
    }

    fn check_direct_meter(&self, table: TableId) -> Result<(), ControlError> {
        let info = self.table_info(table)?;
        if info.direct_meter.is_none() {
            return Err(ControlError::InvalidArgument {
                what: "table with a direct meter".to_string(),
                value: info.name.clone(),
                bound: "tables that the program gives one".to_string(),
            });
        }
        Ok(())
    }
}

fn check_index(what: &str, name: &str, index: usize, size: usize) -> Result<(), ControlError> {
    if index < size {
        return Ok(());
    }
    Err(ControlError::InvalidArgument {
        what: format!("index of {what} {name}"),
        value: index.to_string(),
        bound: if size == 0 {
            "none: it has no cells".to_string()
        } else {
            format!("0 to {}", size - 1)
        },
    })
}

fn direct(what: &str, name: &str) -> ControlError {
    ControlError::InvalidArgument {
        what: format!("indirect {what}"),
        value: name.to_string(),
        bound: format!("{what}s without a table; this one has a cell for each entry"),
    }
}

fn check_rates(rates: Option<MeterRates>) -> Result<(), ControlError> {
    match rates {
        Some(rates) if rates.peak_rate < rates.committed_rate => {
            Err(ControlError::InvalidArgument {
                what: "peak rate".to_string(),
                value: rates.peak_rate.to_string(),
                bound: format!("at least the committed rate, {}", rates.committed_rate),
            })
        }
        _ => Ok(()),
    }
}
