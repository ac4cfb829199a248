//! How much a sender may have in flight to a child, and how fast it sends.
//!
//! Delay-based, in the manner of FAST TCP and Swift: the window is scaled so that
//! the queueing delay on the route there comes to a target, plus a few packets, which
//! makes flows that share a queue converge to equal windows. After a change the
//! queue has a round trip to settle; then the least delay of a few ACKs counts, so
//! that a busy host's hiccups do not, and the window is set again. ECN
//! marks cut the window in proportion to their share (RFC 8257). Loss by itself
//! does not slow a flow down, unless it is so much that a queue shorter than the
//! target must be overflowing.

use crate::time::Instant;

const WINDOW_INITIAL: f64 = 10.0;
const WINDOW_LEAST: f64 = 2.0;
const WINDOW_MOST: f64 = 32_768.0;
/// Share of losses above which they are taken for congestion. Above what several
/// links with 1 % random loss each amount to.
const LOSS_SHARE: f64 = 0.15;
/// Packets a window grows by in each round, whatever its size: what makes flows that
/// share a queue equal, the faster the more. It costs a little more delay than aimed at.
const GROWTH_PACKETS: f64 = 3.0;
/// Packets over which the share is taken at least.
const LOSS_PACKETS: u32 = 64;
/// Packets that may leave at once.
const BURST_PACKETS: u64 = 4;
/// A burst may also last this long, for shells whose timers are coarse.
const BURST_US: u64 = 500;

/// What a round of measurements says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    pub queue_delay_us: u64,
    pub rtt_us: u64,
}

/// Window and pace towards one child, or of one TREE stream.
#[derive(Clone, Debug)]
pub(crate) struct Congestion {
    target_us: u64,
    window: f64,
    starting: bool,
    /// The window was full since the round began; only then may it grow.
    limited: bool,
    /// Packets sent from here on show the queue that the window makes.
    settled_at: Instant,
    packets: u32,
    marked: u32,
    mark_share: f64,
    sent: u32,
    lost: u32,
    next_send: Instant,
}

impl Congestion {
    pub fn new(target_us: u64) -> Congestion {
        Congestion {
            target_us,
            window: WINDOW_INITIAL,
            starting: true,
            limited: false,
            settled_at: Instant::ZERO,
            packets: 0,
            marked: 0,
            mark_share: 0.0,
            sent: 0,
            lost: 0,
            next_send: Instant::ZERO,
        }
    }

    /// Packets that may be in flight.
    pub fn window(&self) -> u32 {
        self.window as u32
    }

    /// Whether the flow has found its bottleneck, so that it keeps a queue there.
    pub fn keeps_queue(&self) -> bool {
        !self.starting
    }

    /// Whether a round with that delay would double the window, if the window was the limit.
    pub fn may_double(&self, queue_delay_us: u64) -> bool {
        self.starting && queue_delay_us * 2 < self.target_us
    }

    /// Whether so many packets in flight leave room for another; notes that the
    /// window was the limit if not.
    pub fn has_room(&mut self, in_flight: u32) -> bool {
        let room = in_flight < self.window();
        self.limited |= !room;
        room
    }

    /// The time from which the pace allows another packet.
    pub fn next_send(&self) -> Instant {
        self.next_send
    }

    pub fn note_sent(&mut self, rtt_us: u64, now: Instant) {
        self.sent += 1;
        let gain = if self.starting { 2.0 } else { 1.25 };
        let interval_us = (rtt_us as f64 / (self.window * gain)) as u64;
        let credit_us = (BURST_PACKETS * interval_us).max(BURST_US);
        let earliest = Instant::from_micros(now.as_micros().saturating_sub(credit_us));
        self.next_send = self.next_send.max(earliest).plus_us(interval_us);
    }

    /// Packets are taken for lost.
    pub fn note_lost(&mut self, packets: u32) {
        self.lost += packets;
    }

    /// An ACK came that tells of so many packets, so many of them marked.
    pub fn note_ack(&mut self, packets: u32, marked: u32) {
        self.packets += packets;
        self.marked += marked.min(packets);
    }

    /// Delays of packets sent from this time on count for the round.
    pub fn settled_at(&self) -> Instant {
        self.settled_at
    }

    /// Ends a round and sets the window anew.
    pub fn end_round(&mut self, round: Round, now: Instant) {
        let Round {
            queue_delay_us,
            rtt_us,
        } = round;
        self.settled_at = now.plus_us(rtt_us);
        let limited = core::mem::take(&mut self.limited);
        self.heed_marks();
        if self.heed_loss() {
            return;
        }
        if self.starting {
            if self.may_double(queue_delay_us) {
                if limited {
                    self.set_window(self.window * 2.0);
                }
                return;
            }
            self.starting = false;
        }
        let rtt = (rtt_us.max(queue_delay_us).max(1)) as f64;
        let excess = queue_delay_us as f64 - self.target_us as f64;
        let scale = (1.0 - 0.5 * excess / rtt).clamp(0.5, 1.25);
        if scale < 1.0 || limited {
            self.set_window(self.window * scale + GROWTH_PACKETS);
        }
    }

    fn heed_marks(&mut self) {
        if self.packets == 0 {
            return;
        }
        let share = f64::from(self.marked) / f64::from(self.packets);
        self.mark_share += (share - self.mark_share) / 16.0;
        if self.marked > 0 {
            self.starting = false;
            self.set_window(self.window * (1.0 - self.mark_share / 2.0));
        }
        self.packets = 0;
        self.marked = 0;
    }

    fn heed_loss(&mut self) -> bool {
        if self.sent < LOSS_PACKETS {
            return false;
        }
        let share = f64::from(self.lost) / f64::from(self.sent);
        self.sent = 0;
        self.lost = 0;
        if share > LOSS_SHARE {
            self.starting = false;
            self.set_window(self.window * 0.75);
            return true;
        }
        false
    }

    /// Nothing has been heard for several probes: start small when it is again.
    pub fn note_blackout(&mut self) {
        self.starting = true;
        self.sent = 0;
        self.lost = 0;
        self.set_window(WINDOW_INITIAL.min(self.window));
    }

    fn set_window(&mut self, window: f64) {
        self.window = window.clamp(WINDOW_LEAST, WINDOW_MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET_US: u64 = 5_000;
    const BASE_US: u64 = 400;

    /// Flows that share one queue, in a fluid model: windows give the queue, the queue
    /// gives the delay.
    fn settle(flows: &mut [Congestion], packets_per_ms: f64, rounds: u32) -> f64 {
        let mut delay_us = 0.0;
        let mut now = Instant::from_micros(1);
        for _ in 0..rounds {
            let total: f64 = flows.iter().map(|flow| flow.window).sum();
            delay_us = (total / packets_per_ms * 1_000.0 - BASE_US as f64).max(0.0);
            for flow in flows.iter_mut() {
                assert!(!flow.has_room(flow.window()));
                let queue_delay_us = delay_us as u64;
                let round = Round {
                    queue_delay_us,
                    rtt_us: BASE_US + queue_delay_us,
                };
                now = now.plus_us(BASE_US);
                flow.end_round(round, now);
            }
        }
        delay_us
    }

    #[test]
    fn the_queue_comes_near_its_target_at_any_rate() {
        for packets_per_ms in [0.8, 8.0, 80.0, 800.0] {
            let mut flows = [Congestion::new(TARGET_US)];
            let delay_us = settle(&mut flows, packets_per_ms, 200);
            let most = TARGET_US as f64 * if packets_per_ms < 2.0 { 3.0 } else { 1.5 };
            assert!(
                delay_us > 2_000.0 && delay_us < most,
                "{packets_per_ms}: {delay_us}"
            );
        }
    }

    #[test]
    fn flows_that_share_a_queue_become_equal() {
        let mut flows = [Congestion::new(TARGET_US), Congestion::new(TARGET_US)];
        flows[0].window = 60.0;
        flows[0].starting = false;
        flows[1].starting = false;
        settle(&mut flows, 8.0, 60);
        let ratio = flows[0].window / flows[1].window;
        assert!((0.8..1.25).contains(&ratio), "{ratio}");
    }

    #[test]
    fn a_window_not_used_does_not_grow() {
        let mut flow = Congestion::new(TARGET_US);
        for _ in 0..50 {
            assert!(flow.has_room(3));
            let round = Round {
                queue_delay_us: 0,
                rtt_us: BASE_US,
            };
            flow.end_round(round, Instant::from_micros(1));
        }
        assert_eq!(flow.window(), WINDOW_INITIAL as u32);
    }

    #[test]
    fn loss_slows_a_flow_only_when_it_is_heavy() {
        let run = |lost: u32| {
            let mut flow = Congestion::new(TARGET_US);
            flow.starting = false;
            flow.window = 100.0;
            for _ in 0..20 {
                for _ in 0..100 {
                    flow.note_sent(1_000, Instant::from_micros(1));
                }
                flow.note_lost(lost);
                let round = Round {
                    queue_delay_us: TARGET_US,
                    rtt_us: BASE_US + TARGET_US,
                };
                flow.end_round(round, Instant::from_micros(1));
            }
            flow.window()
        };
        assert!(run(8) >= 100, "random loss on several links");
        assert!(run(30) < 30, "a queue shorter than the target overflows");
    }

    #[test]
    fn marks_cut_the_window_in_proportion() {
        let run = |marked: u32| {
            let mut flow = Congestion::new(TARGET_US);
            flow.starting = false;
            flow.window = 200.0;
            for _ in 0..100 {
                assert!(!flow.has_room(flow.window()));
                flow.note_ack(100, marked);
                let round = Round {
                    queue_delay_us: TARGET_US,
                    rtt_us: BASE_US + TARGET_US,
                };
                flow.end_round(round, Instant::from_micros(1));
            }
            flow.window()
        };
        assert!(run(0) > run(10) && run(10) > run(50) && run(50) > run(100));
    }

    #[test]
    fn sends_are_spread_over_the_round_trip() {
        let mut flow = Congestion::new(TARGET_US);
        flow.starting = false;
        flow.window = 50.0;
        let rtt_us = 10_000;
        let mut now = Instant::from_micros(1_000_000);
        let mut sent = 0;
        for _ in 0..rtt_us {
            now = now.plus_us(1);
            while flow.next_send() <= now {
                flow.note_sent(rtt_us, now);
                sent += 1;
            }
        }
        // A quarter more than the window, so that it is the window that limits, and a
        // burst at the start.
        assert!((60..70).contains(&sent), "{sent}");
    }
}
