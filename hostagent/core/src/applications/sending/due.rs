//! What senders are told at a time: that a wait is over, and how far they are.

use super::Sending;
use super::turn::Active;
use crate::api::{ApiError, ErrorCode, Notice};
use crate::clients::{Connections, Outbound, reply, send};
use wormcast_protocol::Instant;
use wormcast_wire::GroupId;

impl Sending {
    /// Answers waits that are over and sends progress that is due. Returns when to call
    /// again.
    pub(crate) fn handle_timeout(
        &mut self,
        connections: &mut Connections,
        now: Instant,
        progress_of: impl Fn(GroupId) -> crate::api::StreamProgress,
    ) -> Option<Instant> {
        let mut next: Option<Instant> = None;
        let mut sooner = |at: Instant| next = Some(next.map_or(at, |other| other.min(at)));
        for (&key, sender) in &mut self.senders {
            sender.waiting.retain(|wait| {
                let over = wait.deadline.is_some_and(|deadline| deadline <= now);
                if over {
                    let text = format!("message {} is not stable yet", wait.message);
                    reply(
                        connections,
                        key,
                        wait.request,
                        Err(ApiError::new(ErrorCode::Timeout, text)),
                    );
                }
                !over
            });
            for deadline in sender.waiting.iter().filter_map(|wait| wait.deadline) {
                sooner(deadline);
            }
            if let Some(progress) = &mut sender.progress {
                if progress.due <= now {
                    progress.due = now.plus_us(progress.interval_us);
                    let notice = Notice::Progress {
                        handle: key.number,
                        progress: progress_of(sender.group),
                    };
                    send(connections, key.connection, Outbound::Notice(notice));
                }
                sooner(progress.due);
            }
        }
        for turn in self.turns.values() {
            let active = turn.active.as_ref();
            active.and_then(Active::stall_deadline).map(&mut sooner);
            let sender = active.and_then(|active| self.senders.get(&active.key));
            let open_at = sender.filter(|it| it.pending_bytes > 0);
            let open_at = open_at.map(|it| self.rates.open_at(it.group, &it.pacing));
            open_at.filter(|at| *at > now).map(&mut sooner);
        }
        next
    }
}
