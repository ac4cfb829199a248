//! Whether what comes from above is believed at once.

use super::Session;
use super::judgement::{Claim, Judgement};
use crate::config::Timing;
use crate::reject::Reject;
use crate::time::Instant;
use crate::window::unproven::{self, Unproven};
use wormcast_wire::{HostId, Seq};

impl Session {
    /// Whether a member may say what is stable and which life the stream has.
    pub fn is_authority(&self, sender: HostId) -> bool {
        sender == self.origin || Some(sender) == self.parent
    }

    /// Whether a PDU from above is to be believed. `told`: its sender may say what is stable and which life the stream has.
    pub fn judge(
        &mut self,
        stream: u32,
        stable: Seq,
        is_authority: bool,
        timing: &Timing,
        now: Instant,
    ) -> Result<Judgement, Reject> {
        if self.detached {
            return Err(Reject::NotMember);
        }
        let forward_us = unproven::forward_us(timing);
        if stream != self.stream {
            let is_newer = Seq(stream).is_after(Seq(self.stream));
            let (least_us, reject) = if is_newer {
                // An idle one has nothing to lose.
                let least_us = if self.is_idle() { 0 } else { forward_us };
                (least_us, Reject::StreamUnproven)
            } else {
                let least_us = if self.proven {
                    unproven::proven_back_us(timing)
                } else {
                    unproven::back_us(timing)
                };
                (least_us, Reject::StaleIncarnation)
            };
            if !is_authority {
                return Err(if is_newer { Reject::NotParent } else { reject });
            }
            if Unproven::note(&mut self.unproven, Claim::Stream(stream), least_us, now) {
                return Ok(Judgement::OpenAnew);
            }
            // What waits here would wait until it is repeated.
            if let Some(reception) = self.reception.as_mut().filter(|_| is_newer) {
                reception.ask_origin_in(least_us, now);
            }
            return Err(reject);
        }
        if !is_authority {
            return Ok(Judgement::Taken {
                stable_counts: false,
            });
        }
        let stable = stable.expand(self.stable);
        let claim = if stable > self.cumulative {
            Claim::Ahead
        } else if stable < self.stable && !self.proven {
            Claim::Behind
        } else {
            self.unproven = None;
            return Ok(Judgement::Taken {
                stable_counts: true,
            });
        };
        if !Unproven::note(&mut self.unproven, claim, forward_us, now) {
            // It is sent once to one that has all that its parent knew of, and then with the next message only.
            if let Some(reception) = self.reception.as_mut().filter(|_| claim == Claim::Ahead) {
                reception.ask_origin_in(forward_us, now);
            }
            return Err(Reject::StableUnproven);
        }
        self.unproven = None;
        match claim {
            Claim::Behind => Ok(Judgement::OpenAnew),
            _ => Ok(Judgement::Taken {
                stable_counts: true,
            }),
        }
    }
}
