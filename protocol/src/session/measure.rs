//! What ACKs tell of the way to a child, for its window: round trips, delay, marks and losses.

use super::Session;
use super::shared::Shared;
use crate::child::{Acked, Child};
use crate::config::WINDOW_PACKETS_MAX;
use crate::time::Instant;
use crate::window::congestion::Round;
use wormcast_wire::ack::Ack;

impl Session {
    /// Round trip, delay, marks and losses an ACK tells of.
    pub(super) fn measure(
        &mut self,
        index: usize,
        ack: &Ack<'_>,
        acked: &Acked,
        shared: &Shared,
        now: Instant,
    ) {
        let is_rare = self.hears_gathered();
        let child = &mut self.children[index];
        let settled_at = match &self.broadcast {
            Some(broadcast) => broadcast.congestion.settled_at(),
            None => child.congestion.settled_at(),
        };
        if child.copied {
            child.measure_copied(ack.echo, acked, now);
        } else if let Some(echo) = ack.echo {
            let age_us = now.stamp().wrapping_sub(echo.tx_time);
            let rtt_us = u64::from(age_us.wrapping_sub(echo.delay_us));
            // Half the range: such an echo is no echo of this host's clock.
            if rtt_us < 1 << 31 {
                let settled = settled_at.plus_us(age_us.into()) <= now;
                let sent = now.as_micros().checked_sub(age_us.into());
                let route = sent.and_then(|sent| child.routes.at(Instant::from_micros(sent)));
                let route = match self.broadcast {
                    Some(_) => Some(0),
                    None => route,
                };
                let forward = route.map(|route| (route, echo.forward_delay_us));
                child.path.add(rtt_us.max(1), forward, settled, now);
                if is_rare && settled {
                    let packets = ack.packets.wrapping_sub(child.seen_packets);
                    let every = shared.config.timing.ack_every_packets;
                    child.path.weigh(packets.min(WINDOW_PACKETS_MAX) / every);
                }
            }
        }
        child.note_duplicates(ack.duplicates);
        let packets = ack.packets.wrapping_sub(child.seen_packets);
        let marked = ack.congestion.wrapping_sub(child.seen_congestion);
        if packets < u32::MAX / 2 {
            child.seen_packets = ack.packets;
            child.seen_congestion = ack.congestion;
            child.marked = child.marked.saturating_add(marked.min(packets));
        }
        let lost = child.detect_loss(acked, now);
        let (copied, lost_by_window) = (child.copied, child.lost_by_window(lost));
        self.statistics.losses_detected += u64::from(lost);
        let congestion = match &mut self.broadcast {
            Some(broadcast) => &mut broadcast.congestion,
            None => &mut child.congestion,
        };
        if packets < u32::MAX / 2 && !copied {
            congestion.note_ack(packets, marked);
        }
        congestion.note_lost(lost_by_window);
    }

    /// Ends the round of the child, or of the TREE stream, when it is over.
    pub(super) fn end_round(&mut self, index: usize, shared: &mut Shared, now: Instant) {
        let round = match &self.broadcast {
            Some(broadcast) => {
                // One that is silent does not hold up the others for long.
                let rtt_us = self.children[index].path.rtt_us();
                let patience = broadcast
                    .congestion
                    .settled_at()
                    .plus_us(2 * rtt_us + 10_000);
                let ready = |child: &Child| child.path.has_round() || child.excluded;
                if !self.children.iter().all(ready) && now < patience {
                    return;
                }
                // The slowest branch rules the stream.
                let rounds = self.children.iter_mut().filter_map(|child| {
                    child.note_round();
                    child.path.end_round()
                });
                rounds.fold(None, |slowest: Option<(u64, u64)>, (delay, rtt)| {
                    let (delay_most, rtt_most) = slowest.unwrap_or((0, 0));
                    Some((delay_most.max(delay), rtt_most.max(rtt)))
                })
            }
            None => {
                let child = &mut self.children[index];
                if !child.path.has_round() {
                    return;
                }
                child.note_round();
                child.path.end_round()
            }
        };
        let Some((queue_delay_us, rtt_us)) = round else {
            return;
        };
        let congestion = match &mut self.broadcast {
            Some(broadcast) => &mut broadcast.congestion,
            None => &mut self.children[index].congestion,
        };
        congestion.end_round(
            Round {
                queue_delay_us,
                rtt_us,
            },
            now,
        );
        if congestion.keeps_queue() {
            shared.note_queue(queue_delay_us, now);
        }
    }
}
