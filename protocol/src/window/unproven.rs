//! What a peer says for the first time, and what would cost this host something if it
//! were false: another life of a stream or of a receiver, or that the group has gone on
//! without this host. It is accepted when it has been repeated after a while, and
//! nothing to the contrary in between. So one forged or astray frame changes nothing; a
//! peer that means it says it again at every probe.

use crate::config::Timing;
use crate::time::Instant;

/// Time beyond the longest between two probes, so that a peer that lives has been heard
/// in between, µs.
const MARGIN_US: u64 = 50_000;

/// Time after which a number that is not higher is believed all the same, µs: the higher
/// one was forged, or a clock went back.
const BACK_US: u64 = 2_000_000;

/// A claim that is not accepted yet. One that another takes the place of is repeated, if it is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unproven<T> {
    claim: T,
    since: Instant,
}

impl<T: PartialEq> Unproven<T> {
    /// Notes the claim; true if it has been made before, for so long at least.
    pub fn note(unproven: &mut Option<Unproven<T>>, claim: T, least_us: u64, now: Instant) -> bool {
        match unproven {
            Some(before) if before.claim == claim => now.since_us(before.since) >= least_us,
            _ => {
                *unproven = Some(Unproven { claim, since: now });
                false
            }
        }
    }
}

/// How long a claim has to be repeated, µs: a higher number, or that the group went on.
pub(crate) fn forward_us(timing: &Timing) -> u64 {
    timing.probe_interval_us_max + MARGIN_US
}

/// How long a number has to be repeated that is not higher, µs.
pub(crate) fn back_us(timing: &Timing) -> u64 {
    timing.probe_interval_us_max + BACK_US
}

/// How long a life of a stream has to be repeated that is not higher, where packets of the higher one have
/// come in order, µs. A parent whose own parent stands still may not have heard of the higher one for
/// as long as that one is not given up.
pub(crate) fn proven_back_us(timing: &Timing) -> u64 {
    timing.probe_interval_us_max + timing.member_exclude_us
}
