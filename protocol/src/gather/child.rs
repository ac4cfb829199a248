//! What gathered ACKs say of a child: as much as of any other member.

use crate::child::{Acked, Child};
use crate::config::Timing;
use crate::gather::belief::Gathered;
use crate::time::Instant;
use crate::window::unproven;

impl Child {
    /// All members, the child and those below it among them, hold everything before `cumulative`, and have confirmed
    /// everything before `stable`. One that was given up stays so until it speaks itself.
    pub fn take_gathered(&mut self, cumulative: u64, stable: u64, now: Instant) -> Acked {
        let mut acked = Acked::default();
        let before = (self.cumulative(), self.stable);
        if !self.gathered.lost {
            self.gathered.until = self.gathered.until.max(cumulative);
            self.acknowledge_before(cumulative, &mut acked);
        }
        self.stable = self.stable.max(stable);
        self.stable_current = true;
        if acked.packets > 0 || (self.cumulative(), self.stable) != before {
            // It need not be asked yet. That it lives is not said.
            self.probes = 0;
            self.last_probe_basis = now;
        }
        acked
    }

    /// Another plan: what is gathered may be believed again. How far it was believed stays, for a child that says less
    /// has still to be believed.
    pub fn forget_gathered(&mut self) {
        self.gathered = Gathered {
            until: self.gathered.until,
            ..Gathered::default()
        };
    }

    /// The child itself says that it holds everything before `cumulative`. If that is less than gathered ACKs said, and still
    /// is after a while, it has lost its memory, or a switch is wrong: its own word counts.
    pub fn hold_against_gathered(&mut self, cumulative: u64, timing: &Timing, now: Instant) {
        match self.gathered.denied {
            Some((until, since)) if cumulative < until => {
                if now.since_us(since) >= unproven::forward_us(timing) {
                    self.board.restart(cumulative);
                    self.gathered.distrust();
                }
            }
            _ => {
                let until = self.gathered.until;
                self.gathered.denied = (cumulative < until).then_some((until, now));
            }
        }
    }

    /// Whether the child says what has to be passed on before long: marks, and members that lack messages.
    pub fn says_more(&self) -> bool {
        self.excluded || self.marked > 0 || !self.report.failed().is_empty()
    }
}
