//! Which idle entries are published: pure.

use std::collections::{BTreeMap, BTreeSet};

use super::message::Notification;

/// What was published in the last sweep.
///
/// An entry that stays idle is published in every second sweep, since BMv2 remembers only
/// what it published in the sweep before (`AgeingMonitor::do_sweep` of `ageing.cpp`).
#[derive(Debug, Default)]
pub struct Ageing {
    /// Handles that were published in the last sweep, by table.
    told: BTreeMap<i32, BTreeSet<u32>>,
    buffers: u64,
}

impl Ageing {
    /// Takes the entries of a table that are idle now, by ascending number; gives what to
    /// tell. To be called for each table in every sweep.
    pub fn sweep(&mut self, table: i32, idle: &[u32]) -> Option<Notification> {
        let before = self.told.remove(&table).unwrap_or_default();
        let news = idle.iter().filter(|handle| !before.contains(handle));
        let news: Vec<u32> = news.copied().collect();
        if news.is_empty() {
            return None;
        }
        self.told.insert(table, news.iter().copied().collect());
        let buffer = self.buffers;
        self.buffers += 1;
        Some(Notification::Aged {
            table,
            buffer,
            entries: news,
        })
    }

    /// Forgets what was published, for nobody heard it.
    pub fn forget(&mut self) {
        self.told.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(ageing: &mut Ageing, table: i32, idle: &[u32]) -> Option<(u64, Vec<u32>)> {
        let notification = ageing.sweep(table, idle)?;
        let Notification::Aged {
            table: found,
            buffer,
            entries,
        } = notification
        else {
            panic!("{notification:?}");
        };
        assert_eq!(found, table);
        Some((buffer, entries))
    }

    #[test]
    fn every_second_sweep_tells_about_an_entry_that_stays_idle() {
        let mut ageing = Ageing::default();
        assert_eq!(told(&mut ageing, 3, &[]), None);
        assert_eq!(told(&mut ageing, 3, &[1, 2]), Some((0, vec![1, 2])));
        assert_eq!(told(&mut ageing, 3, &[1, 2, 4]), Some((1, vec![4])));
        assert_eq!(told(&mut ageing, 3, &[1, 2, 4]), Some((2, vec![1, 2])));
        assert_eq!(told(&mut ageing, 3, &[1]), None);
        assert_eq!(told(&mut ageing, 3, &[1]), Some((3, vec![1])));
    }

    #[test]
    fn tables_count_together_and_are_told_about_alone() {
        let mut ageing = Ageing::default();
        assert_eq!(told(&mut ageing, 3, &[1]), Some((0, vec![1])));
        assert_eq!(told(&mut ageing, 9, &[1]), Some((1, vec![1])));
        assert_eq!(told(&mut ageing, 3, &[1]), None);
        ageing.forget();
        assert_eq!(told(&mut ageing, 9, &[1]), Some((2, vec![1])));
    }
}
