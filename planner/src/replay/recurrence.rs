//! Where the state of the network recurs, whole periods can be skipped.
//!
//! A replay is deterministic and depends on times and packet numbers through their
//! differences alone. So if, seen from a packet that the source begins, everything is as
//! it was seen from an earlier one, then what follows is what followed, later by the time
//! between. The first packet of a message costs more than others, so the search waits
//! until every station has passed it on; the last one is shorter, so it is not skipped.
//! Bounded buffers at the hosts bound the state, hence it recurs. The state that is
//! compared against is renewed at powers of two (Brent's search).

use super::event_loop::EventLoop;

#[derive(Default)]
pub(super) struct Recurrence {
    saved: Option<Saved>,
    renew_at: u32,
    over: bool,
    pub skipped_ps: u64,
}

struct Saved {
    packet: u32,
    at: u64,
    fingerprint: u64,
    state: Vec<u64>,
    busy: Vec<u64>,
}

/// Shorter messages are replayed as they are.
const PACKETS_LEAST: u32 = 8;

impl Recurrence {
    /// Whether the rest of the message is short.
    pub(super) fn has_skipped(&self) -> bool {
        self.saved.is_some() && self.over
    }

    /// No skipping from here on.
    pub(super) fn give_up(&mut self) {
        self.over = true;
    }

    /// Called when the source begins a packet. May shorten the message by whole periods.
    pub(super) fn look(&mut self, replay: &mut EventLoop<'_>, packet: u32, now: u64) {
        let warm = || replay.stations.iter().all(|station| station.passed > 0);
        if self.over || replay.packets < PACKETS_LEAST || packet < 2 || !warm() {
            return;
        }
        let fingerprint = fingerprint(replay, packet);
        let same = |saved: &&Saved| {
            saved.fingerprint == fingerprint && saved.state == state(replay, packet, now)
        };
        if let Some(saved) = self.saved.as_ref().filter(same) {
            self.skipped_ps = skip(replay, saved, packet, now);
            self.over = true;
            return;
        }
        if packet >= self.renew_at {
            self.renew_at = packet.saturating_mul(2);
            self.saved = Some(Saved {
                packet,
                at: now,
                fingerprint,
                state: state(replay, packet, now),
                busy: replay.busy.clone(),
            });
        }
    }
}

fn skip(replay: &mut EventLoop<'_>, saved: &Saved, packet: u32, now: u64) -> u64 {
    let period = packet - saved.packet;
    // This packet and one after it stay, so that the last one is still to come.
    let periods = replay.packets.saturating_sub(packet + 2) / period;
    replay.packets -= periods * period;
    replay.stations[0].held = replay.packets;
    for (busy, before) in replay.busy.iter_mut().zip(&saved.busy) {
        *busy += u64::from(periods) * (*busy - before);
    }
    u64::from(periods) * (now - saved.at)
}

/// Of equal states equal, and cheap.
fn fingerprint(replay: &EventLoop<'_>, packet: u32) -> u64 {
    replay.stations[1..]
        .iter()
        .fold(replay.pending().len() as u64, |sum, station| {
            let ahead = packet.wrapping_sub(station.held);
            let behind = packet.wrapping_sub(station.passed);
            sum.rotate_left(7)
                .wrapping_add(u64::from(ahead) << 32 | u64::from(behind ^ station.send << 16))
        })
}

/// All that the future depends on, seen from now and this packet.
fn state(replay: &EventLoop<'_>, packet: u32, now: u64) -> Vec<u64> {
    let mut state = Vec::with_capacity(512);
    let free = replay
        .free
        .iter()
        .chain(&replay.processor)
        .chain(&replay.gap_over);
    state.extend(free.map(|until| until.saturating_sub(now)));
    state.extend(&replay.burst);
    for (place, station) in replay.stations.iter().enumerate() {
        // The source holds all there are; who passes nothing on never begins a packet.
        let held = if place == 0 { packet } else { station.held };
        let passes_on = !replay.traffic.stations[place].sends.is_empty();
        let next = if passes_on { station.next } else { packet };
        for count in [held, next, station.passed] {
            state.push(count.wrapping_sub(packet).into());
        }
        state.push(u64::from(station.send) << 1 | u64::from(station.sending));
    }
    let mut events: Vec<[u64; 4]> = replay
        .pending()
        .map(|event| {
            [
                event.at - now,
                (event.kind as u64) << 32 | u64::from(event.place),
                event.packet.wrapping_sub(packet).into(),
                event.tail.saturating_sub(now),
            ]
        })
        .collect();
    events.sort_unstable();
    state.extend(events.iter().flatten());
    state
}
