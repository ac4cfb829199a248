//! Where the state of the network recurs, whole periods can be skipped.
//!
//! A replay is deterministic and depends on times and packet numbers through their
//! differences alone. So if, seen from a packet that the source begins, everything is as
//! it was seen from an earlier one, then what follows is what followed, later by the time
//! between. The first packet of a message costs more than others, so the search waits
//! until every station has passed it on; the last one is shorter, so it is not skipped.
//! Bounded buffers at the hosts bound the state, hence it recurs. The state that is
//! compared against is renewed at powers of two (Brent's search).

use super::network::Network;

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
    pub(super) fn look(&mut self, network: &mut Network<'_>, packet: u32, now: u64) {
        let warm = || network.stations.iter().all(|station| station.passed > 0);
        if self.over || network.packets < PACKETS_LEAST || packet < 2 || !warm() {
            return;
        }
        let fingerprint = fingerprint(network, packet);
        let same = |saved: &&Saved| {
            saved.fingerprint == fingerprint && saved.state == state(network, packet, now)
        };
        if let Some(saved) = self.saved.as_ref().filter(same) {
            self.skipped_ps = skip(network, saved, packet, now);
            self.over = true;
            return;
        }
        if packet >= self.renew_at {
            self.renew_at = packet.saturating_mul(2);
            self.saved = Some(Saved {
                packet,
                at: now,
                fingerprint,
                state: state(network, packet, now),
                busy: network.busy.clone(),
            });
        }
    }
}

fn skip(network: &mut Network<'_>, saved: &Saved, packet: u32, now: u64) -> u64 {
    let period = packet - saved.packet;
    // This packet and one after it stay, so that the last one is still to come.
    let periods = network.packets.saturating_sub(packet + 2) / period;
    network.packets -= periods * period;
    network.stations[0].held = network.packets;
    for (busy, before) in network.busy.iter_mut().zip(&saved.busy) {
        *busy += u64::from(periods) * (*busy - before);
    }
    u64::from(periods) * (now - saved.at)
}

/// Of equal states equal, and cheap.
fn fingerprint(network: &Network<'_>, packet: u32) -> u64 {
    network.stations[1..]
        .iter()
        .fold(network.pending().len() as u64, |sum, station| {
            let ahead = packet.wrapping_sub(station.held);
            let behind = packet.wrapping_sub(station.passed);
            sum.rotate_left(7)
                .wrapping_add(u64::from(ahead) << 32 | u64::from(behind ^ station.send << 16))
        })
}

/// All that the future depends on, seen from now and this packet.
fn state(network: &Network<'_>, packet: u32, now: u64) -> Vec<u64> {
    let mut state = Vec::with_capacity(512);
    let free = network
        .free
        .iter()
        .chain(&network.processor)
        .chain(&network.gap_over);
    state.extend(free.map(|until| until.saturating_sub(now)));
    state.extend(&network.burst);
    for (place, station) in network.stations.iter().enumerate() {
        // The source holds all there are; who passes nothing on never begins a packet.
        let held = if place == 0 { packet } else { station.held };
        let passes_on = !network.traffic.stations[place].sends.is_empty();
        let next = if passes_on { station.next } else { packet };
        for count in [held, next, station.passed] {
            state.push(count.wrapping_sub(packet).into());
        }
        state.push(u64::from(station.send) << 1 | u64::from(station.sending));
    }
    let mut events: Vec<[u64; 4]> = network
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
