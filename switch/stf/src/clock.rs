//! The time of a script, which goes on only by what the script does.

/// Longest time a script may take, microseconds: timestamps have 48 bits (v1model.p4,
/// `ingress_global_timestamp`).
pub(super) const SCRIPT_US_MAX: u64 = (1 << 48) - 1;

/// Time between two packets, microseconds.
pub(super) const PACKET_INTERVAL_US: u64 = 1_000;

#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    now_us: u64,
}

impl Clock {
    /// One packet's time after 0, which means no time at all in some fields.
    pub(super) fn start() -> Self {
        Self {
            now_us: PACKET_INTERVAL_US,
        }
    }

    pub(super) fn now_us(&self) -> u64 {
        self.now_us
    }

    /// Lets time pass.
    ///
    /// # Errors
    /// If it is more than is left of [`SCRIPT_US_MAX`].
    pub(super) fn pass(&mut self, us: u64) -> Result<(), String> {
        let left_us = SCRIPT_US_MAX - self.now_us;
        if us > left_us {
            return Err(format!(
                "{us} microseconds are too long: {left_us} are left of the {SCRIPT_US_MAX} that a \
                 script may take"
            ));
        }
        self.now_us += us;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_does_not_run_over() {
        let mut clock = Clock::start();
        let left_us = SCRIPT_US_MAX - clock.now_us();
        assert_eq!(
            clock.pass(u64::MAX),
            Err(format!(
                "18446744073709551615 microseconds are too long: {left_us} are left of the \
                 281474976710655 that a script may take"
            ))
        );
        assert!(clock.pass(left_us + 1).is_err());
        clock.pass(left_us).unwrap();
        assert_eq!(clock.now_us(), SCRIPT_US_MAX);
        assert!(clock.pass(1).is_err());
        clock.pass(0).unwrap();
    }
}
