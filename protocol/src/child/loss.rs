//! Which packets on the way to a child are lost (RACK, RFC 8985).

use super::{Acked, Child};
use crate::time::Instant;

/// Largest multiple of a quarter round trip by which packets may be reordered
/// before they count as lost.
const REORDER_STEPS_MAX: u64 = 16;
/// Least reordering allowed for, µs: the jitter of a software switch.
const REORDER_US_LEAST: u64 = 500;

impl Child {
    /// After an ACK: finds what must be lost, given that something sent later has
    /// arrived (RFC 8985 §6.2). Gives the packets newly taken for lost.
    pub fn detect_loss(&mut self, acked: &Acked, now: Instant) -> u32 {
        if let Some(send) = acked.latest {
            let rtt_us = now.since_us(send.sent);
            // An answer too early for the second copy is one to the first.
            let plausible = !send.again || rtt_us >= self.path.rtt_least_us();
            if plausible && send.order >= self.rack_order {
                self.rack_order = send.order;
                self.rack_rtt_us = rtt_us;
            }
        }
        self.mark_lost(now)
    }

    fn reorder_us(&self) -> u64 {
        let quarter = (self.path.rtt_least_us() / 4).max(REORDER_US_LEAST);
        (quarter * self.reorder_steps).min(self.path.rtt_us().max(20_000))
    }

    pub(super) fn mark_lost(&mut self, now: Instant) -> u32 {
        // By another route a packet may come so much later than one sent after it.
        let reorder_us = self.reorder_us() + self.path.spread_us();
        let wait_us = self.rack_rtt_us.max(self.path.rtt_least_us()) + reorder_us;
        let until = now.as_micros().checked_sub(wait_us);
        let until = until.map(Instant::from_micros);
        let (lost, next_sent) = self.board.give_up_sent(self.rack_order, until);
        self.reorder_deadline = next_sent.map(|sent| sent.plus_us(wait_us));
        lost
    }

    /// The child says how many duplicates it saw: loss was assumed too early.
    pub fn note_duplicates(&mut self, duplicates: u32) {
        let new = duplicates.wrapping_sub(self.seen_duplicates);
        self.seen_duplicates = duplicates;
        if new > 0 && new < u32::MAX / 2 {
            self.reorder_steps = (self.reorder_steps + 1).min(REORDER_STEPS_MAX);
            self.reorder_calm = 0;
        }
    }

    /// A round trip has passed; without duplicates for long, allow less reordering.
    pub fn note_round(&mut self) {
        self.reorder_calm += 1;
        if self.reorder_calm >= 64 {
            self.reorder_calm = 0;
            self.reorder_steps = (self.reorder_steps - 1).max(1);
        }
    }

    /// After a pause: what was in flight was refused.
    pub(super) fn give_up_flight(&mut self, now: Instant) -> u32 {
        let until = now.as_micros().saturating_sub(self.path.rtt_us());
        self.board
            .give_up_sent(u64::MAX, Some(Instant::from_micros(until)));
        self.refresh_pending();
        // Refusal is not loss on the way; congestion control does not hear of it.
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Timing;
    use crate::plan::ChildRole;
    use crate::window::store::{Packet, Store};
    use wormcast_wire::{BufferClass, HostId};

    const START: u64 = 1 << 32;

    fn sent(packets: u64) -> (Child, Store) {
        let role = ChildRole {
            host: HostId(2),
            class: BufferClass::One,
            below: vec![],
        };
        let now = Instant::from_micros(1);
        let mut child = Child::new(&role, START, &Timing::default(), now);
        let mut store = Store::new(START);
        for offset in 0..packets {
            let packet = Packet {
                payload: vec![],
                first: false,
                last: false,
                cancel: false,
                pool: None,
                came: Instant::ZERO,
            };
            store.insert(START + offset, packet);
            child.note_sent(
                START + offset,
                &store,
                Instant::from_micros(100 + 10 * offset),
            );
        }
        (child, store)
    }

    fn acknowledge(child: &mut Child, store: &Store, runs: &[(u64, u64)], now_us: u64) -> u32 {
        let now = Instant::from_micros(now_us);
        child.path.add(1_000, Some((0, 0)), true, now);
        let mut acked = Acked::default();
        for (start, end) in runs {
            child.acknowledge_run(START + start, START + end, store, &mut acked, now);
        }
        child.detect_loss(&acked, now)
    }

    #[test]
    fn a_gap_is_lost_after_a_round_trip_and_the_reordering_window() {
        let (mut child, store) = sent(10);
        assert_eq!(
            acknowledge(&mut child, &store, &[(0, 3), (5, 10)], 1_190),
            0
        );
        let deadline = child.reorder_deadline.expect("two packets are missing");
        assert_eq!(child.mark_lost(deadline), 1);
        assert_eq!(child.mark_lost(deadline.plus_us(10)), 1);
        let pending: Vec<u64> = child.board.pending().iter().copied().collect();
        assert_eq!(pending, [START + 3, START + 4]);
        assert_eq!(child.in_flight(), 0);
    }

    #[test]
    fn what_was_sent_last_is_not_lost_by_time_alone() {
        let (mut child, store) = sent(10);
        acknowledge(&mut child, &store, &[(0, 5)], 1_190);
        assert_eq!(child.mark_lost(Instant::from_micros(10_000_000)), 0);
        assert_eq!(child.in_flight(), 5);
    }

    #[test]
    fn packets_sent_in_one_microsecond_are_told_apart_by_their_order() {
        let (mut child, store) = sent(0);
        let now = Instant::from_micros(100);
        let mut store = store;
        for offset in 0..2 {
            let packet = Packet {
                payload: vec![],
                first: false,
                last: false,
                cancel: false,
                pool: None,
                came: Instant::ZERO,
            };
            store.insert(START + offset, packet);
            child.note_sent(START + offset, &store, now);
        }
        acknowledge(&mut child, &store, &[(1, 2)], 1_100);
        assert_eq!(child.mark_lost(Instant::from_micros(5_000)), 1);
    }

    #[test]
    fn duplicates_widen_the_window_and_calm_narrows_it() {
        let (mut child, _) = sent(1);
        let before = child.reorder_us();
        child.note_duplicates(3);
        assert!(child.reorder_us() > before);
        child.note_duplicates(3);
        for _ in 0..64 {
            child.note_round();
        }
        assert_eq!(child.reorder_us(), before);
    }

    #[test]
    fn a_packet_that_comes_late_is_passed_on() {
        let (mut child, mut store) = sent(2);
        let packet = || Packet {
            payload: vec![],
            first: false,
            last: false,
            cancel: false,
            pool: None,
            came: Instant::ZERO,
        };
        store.insert(START + 4, packet());
        let now = Instant::from_micros(500);
        assert_eq!(child.next_position(&store, now), Some((START + 4, false)));
        child.note_sent(START + 4, &store, now);
        assert_eq!(child.next_position(&store, now), None);
        store.insert(START + 3, packet());
        child.note_arrived(START + 3);
        assert_eq!(child.next_position(&store, now), Some((START + 3, true)));
        assert!(
            !child.note_sent(START + 3, &store, now),
            "sent for the first time"
        );
    }
}
