//! Which refusals of stream messages go into the log: some at once, of many only their number.

use std::time::Duration;

/// Lines in each [`INTERVAL`].
const LINES_MAX: u32 = 10;

/// How long those lines are all there is.
const INTERVAL: Duration = Duration::from_secs(10);

/// Refusals so far. Pure: time is an argument.
#[derive(Debug, Default)]
pub struct Refusals {
    pub count: u64,
    since: Duration,
    lines: u32,
    /// Those that the log does not have, since the last that it has.
    silent: u64,
}

impl Refusals {
    /// Takes one; gives how many before it were not logged if this one is to be.
    pub fn take(&mut self, now: Duration) -> Option<u64> {
        self.count += 1;
        if now.saturating_sub(self.since) >= INTERVAL {
            self.since = now;
            self.lines = 0;
        }
        if self.lines == LINES_MAX {
            self.silent += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.silent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_has_ten_lines_an_interval() {
        let mut refusals = Refusals::default();
        let start = Duration::from_secs(100);
        let lines = (0..50).filter_map(|_| refusals.take(start));
        assert_eq!(lines.collect::<Vec<_>>(), [0; 10]);
        assert_eq!(refusals.take(start + Duration::from_secs(9)), None);
        assert_eq!(refusals.take(start + INTERVAL), Some(41));
        assert_eq!(refusals.take(start + INTERVAL), Some(0));
        assert_eq!(refusals.count, 53);
    }
}
