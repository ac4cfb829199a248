//! Children that are silent, or to which no route leads: they are reported, and given up.

use super::Session;
use super::shared::Shared;
use crate::event::Event;
use crate::time::Instant;
use wormcast_wire::FailReason;

impl Session {
    /// A child silent for long is reported; one silent for longer, no plan having
    /// come, is given up. Whether it is.
    pub(super) fn judge_silence(
        &mut self,
        index: usize,
        shared: &mut Shared,
        now: Instant,
    ) -> bool {
        let timing = &shared.config.timing;
        let (report_us, exclude_us) = (timing.member_timeout_us, timing.member_exclude_us);
        let (group, origin) = (self.group, self.origin);
        let child = &mut self.children[index];
        let silent_us = child.silent_us(now);
        if silent_us >= report_us && child.reported.is_none() {
            child.reported = Some(FailReason::Silent);
            shared.emit(Event::MemberSilent {
                group,
                origin,
                host: child.host,
                silent_ms: silent_us / 1_000,
            });
        }
        let is_over = silent_us >= exclude_us && !child.excluded;
        if is_over {
            child.too_long = None;
            let reason = *child.reported.get_or_insert(FailReason::Silent);
            self.give_up(index, (reason, silent_us), shared);
        }
        is_over
    }

    /// A child and all below it are waited for no more. Until it answers each ACK from here, and each outcome, names them as failed.
    pub fn give_up(
        &mut self,
        index: usize,
        (reason, silent_us): (FailReason, u64),
        shared: &mut Shared,
    ) {
        let child = &mut self.children[index];
        child.excluded = true;
        shared.emit(Event::MemberFailed {
            group: self.group,
            origin: self.origin,
            host: child.host,
            reason,
            silent_ms: silent_us / 1_000,
        });
    }

    pub(super) fn report_unroutable(&mut self, index: usize, shared: &mut Shared) {
        let (group, origin) = (self.group, self.origin);
        let child = &mut self.children[index];
        if child.reported.is_none() {
            child.reported = Some(FailReason::NoRoute);
            let (host, reason) = (child.host, FailReason::NoRoute);
            shared.emit(Event::MemberFailed {
                group,
                origin,
                host,
                reason,
                silent_ms: 0,
            });
        }
    }
}
