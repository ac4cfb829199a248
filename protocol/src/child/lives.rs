//! Which memory of the stream a child answers by, and what it has said that counts.

use super::{Child, Memory};
use crate::config::Timing;
use crate::failure::{Failure, Report};
use crate::reject::Reject;
use crate::time::Instant;
use crate::window::unproven::{self, Unproven};
use wormcast_wire::{FailReason, Seq};

impl Child {
    /// By which memory of the stream the child answers, in an ACK that can be.
    pub fn judge_receiver(
        &mut self,
        receiver: u32,
        timing: &Timing,
        now: Instant,
    ) -> Result<Memory, Reject> {
        let Some(known) = self.receiver else {
            return Ok(Memory::First);
        };
        if known == receiver {
            self.unproven = None;
            return Ok(Memory::Known);
        }
        let (least_us, reject) = if Seq(receiver).is_after(Seq(known)) {
            (unproven::forward_us(timing), Reject::ReceiverUnproven)
        } else {
            (unproven::back_us(timing), Reject::StaleIncarnation)
        };
        if Unproven::note(&mut self.unproven, receiver, least_us, now) {
            Ok(Memory::Lost)
        } else {
            Err(reject)
        }
    }

    /// The child lost its memory: forget what it had.
    pub fn reset(&mut self, receiver: u32, cumulative: u64, stable: u64) {
        self.receiver = Some(receiver);
        self.unproven = None;
        self.board.restart(cumulative);
        self.forget_report(stable);
        self.probe = None;
        self.repair_at = None;
        self.seen_packets = 0;
        self.seen_duplicates = 0;
        self.seen_congestion = 0;
        self.gathered.distrust();
    }

    /// What it has said of `stable` and of failed members is no more than what all know: everything before `stable`.
    /// Nothing more becomes stable until it has said both again.
    pub fn forget_report(&mut self, stable: u64) {
        self.stable = stable;
        self.stable_current = false;
        self.report = Report::new(stable);
    }

    /// The child says by the present epoch that it and all below it have confirmed everything before `stable`, except
    /// by those who have failed. Whether that goes as far as what it said before.
    pub fn take_report(&mut self, stable: u64, failed: impl Iterator<Item = Failure>) -> bool {
        self.stable = self.stable.max(stable);
        self.stable_current = true;
        self.report.take(stable, failed)
    }

    /// Members at and below the child that will not have a message which begins before `stable`, or none at all, as
    /// far as this host knows.
    pub fn failures(&self) -> Vec<Failure> {
        if !self.excluded {
            return self.report.failed().to_vec();
        }
        let failure = |host, reason| Failure {
            host,
            reason,
            at: self.stable,
        };
        let own = failure(self.host, self.reported.unwrap_or(FailReason::Silent));
        let below = self.below.iter();
        let below = below.map(|host| failure(*host, FailReason::Orphaned));
        core::iter::once(own).chain(below).collect()
    }
}
