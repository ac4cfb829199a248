//! Entries that age: how long each was not found by a packet, and which ones for too long
//! (P4Runtime specification, "Idle-timeout").

use super::Pipeline;
use super::entry::EntryHandle;
use super::error::ControlError;
use super::timer::{Expired, Idle, Timer};
use wormcast_switch_program::FieldMatch;
use wormcast_switch_program::TableId;

impl Pipeline {
    /// Tells the time to control operations, microseconds of the clock that packets come
    /// with; time that falls back is ignored.
    pub fn advance(&mut self, now_us: u64) {
        self.now_us = self.now_us.max(now_us);
    }

    /// The time of the last call, microseconds.
    pub fn now_us(&self) -> u64 {
        self.now_us
    }

    fn check_ages(&self, table: TableId) -> Result<(), ControlError> {
        let info = self.table_info(table)?;
        if info.supports_timeout {
            return Ok(());
        }
        Err(ControlError::InvalidArgument {
            what: "table with idle timeouts".to_string(),
            value: info.name.clone(),
            bound: "tables that the program gives support_timeout".to_string(),
        })
    }

    /// Sets the idle timeout of an entry and restarts its timer; 0 stops it.
    ///
    /// # Errors
    /// `NotFound`, `InvalidArgument` for a table whose entries do not age.
    pub fn set_idle_timeout(
        &mut self,
        table: TableId,
        key: &[FieldMatch],
        priority: i32,
        timeout_ns: u64,
    ) -> Result<(), ControlError> {
        self.check_ages(table)?;
        let number = self.find_entry(table, key, priority)?;
        let timer = Timer::new(timeout_ns, self.now_us);
        if let Some(before) = self.put_timer(table, number, timer) {
            self.undo(move |pipeline| {
                pipeline.put_timer(table, number, before);
            });
        }
        Ok(())
    }

    fn put_timer(&mut self, table: TableId, number: u32, timer: Timer) -> Option<Timer> {
        let state = &mut self.tables[table.index()];
        let stored = state.entry_mut(number)?;
        let before = std::mem::replace(&mut stored.timer, timer);
        if let Some(look_us) = before.deadline_us() {
            state.deadlines.remove(&(look_us, number));
        }
        if let Some(look_us) = timer.deadline_us() {
            state.deadlines.insert((look_us, number));
        }
        Some(before)
    }

    /// The age of an entry.
    ///
    /// # Errors
    /// Those of [`set_idle_timeout`](Self::set_idle_timeout).
    pub fn idle(
        &self,
        table: TableId,
        key: &[FieldMatch],
        priority: i32,
    ) -> Result<Idle, ControlError> {
        self.check_ages(table)?;
        let number = self.find_entry(table, key, priority)?;
        let stored = self.tables[table.index()].entries[number as usize].as_ref();
        stored
            .map(|stored| Idle {
                timeout_ns: stored.timer.timeout_ns,
                since_hit_us: self.now_us.saturating_sub(stored.last_hit_us),
            })
            .ok_or_else(|| ControlError::NotFound {
                what: format!("entry {number}"),
            })
    }

    /// Entries that no packet has found for their timeout, and restarts their timers. Looks
    /// at no more than `budget` entries; those left over come with the next call.
    pub fn take_expired(&mut self, budget: usize) -> Vec<Expired> {
        let now_us = self.now_us;
        let mut expired = Vec::new();
        let mut left = budget;
        let count = self.tables.len();
        for step in 0..count {
            let id = (self.idle_table + step) % count;
            let state = &mut self.tables[id];
            while let Some(&(look_us, number)) = state.deadlines.first()
                && look_us <= now_us
            {
                if left == 0 {
                    // The next call starts here, so that no table starves.
                    self.idle_table = id;
                    return expired;
                }
                left -= 1;
                state.deadlines.pop_first();
                let Some(stored) = state.entries[number as usize].as_mut() else {
                    continue;
                };
                let timeout_us = stored.timer.timeout_us();
                let since_us = stored.last_hit_us.max(stored.timer.reset_us);
                let mut due_us = since_us.saturating_add(timeout_us);
                if due_us <= now_us {
                    expired.push(Expired {
                        table: TableId(id as u32),
                        entry: stored.entry.clone(),
                        timeout_ns: stored.timer.timeout_ns,
                    });
                    stored.timer.reset_us = now_us;
                    due_us = now_us.saturating_add(timeout_us);
                }
                stored.timer = stored.timer.look_at(due_us);
                state.deadlines.insert((due_us, number));
            }
        }
        self.idle_table = 0;
        expired
    }

    /// Entries of a table that no packet has found for their timeout, whether that was reported
    /// before or not, by ascending number. Looks at `budget` places from `first` on; the
    /// second value is the place to go on from, `None` at the end.
    pub fn idle_entries(
        &self,
        table: TableId,
        first: u32,
        budget: usize,
    ) -> (Vec<EntryHandle>, Option<u32>) {
        let Some(state) = self.tables.get(table.index()) else {
            return (Vec::new(), None);
        };
        if state.deadlines.is_empty() {
            return (Vec::new(), None); // no entry ages
        }
        let places = state.entries.iter().zip(&state.generations).zip(0..);
        let places = places.skip(first as usize).take(budget);
        let mut idle = Vec::new();
        for ((stored, &generation), number) in places {
            let Some(stored) = stored else { continue };
            let since_us = stored.last_hit_us.max(stored.timer.set_us);
            let due_us = since_us.saturating_add(stored.timer.timeout_us());
            if stored.timer.timeout_ns > 0 && due_us <= self.now_us {
                idle.push(EntryHandle { number, generation });
            }
        }
        let next = (first as usize).saturating_add(budget);
        let next = (next < state.entries.len()).then_some(next as u32);
        (idle, next)
    }

    /// When [`take_expired`](Self::take_expired) may next find something; `None` while no
    /// entry ages.
    pub fn next_expiry_us(&self) -> Option<u64> {
        let tables = self.tables.iter();
        let first = tables.filter_map(|state| state.deadlines.first());
        first.map(|&(look_us, _)| look_us).min()
    }
}
