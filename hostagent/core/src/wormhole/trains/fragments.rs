//! Multicasts that arrive in trains, in fragments where they are interrupted (wire/SPEC.md §3.1): whether each comes
//! whole, and in the order that the root gave them.
//!
//! Every frame holds a packet, so it goes on at once, whatever heads and ends come between; the stream puts packets
//! together, and what is missing is repaired as any loss. A link carries one multicast at a time, so one is known at a
//! time.

use super::TRAIN_SILENT_US;
use wormcast_protocol::Instant;
use wormcast_wire::HostId;
use wormcast_wire::worm::{Header, flags};
use wormcast_wire::wormhole::train::Train;

/// Numbers that the root gives: 1 to this.
const NUMBERS: u32 = 65_535;

/// What came since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FragmentCounters {
    /// Multicasts in trains.
    pub multicasts: u64,
    /// Those of them with a number of the root.
    pub numbered: u64,
    /// Fragments after the first of a multicast.
    pub resumed: u64,
    /// Multicasts that did not come whole.
    pub broken: u64,
    /// Those whose number does not come after that of the one before: out of the root's order, or it counts anew.
    pub out_of_order: u64,
    /// The last number; 0: none.
    pub number: u16,
}

/// The multicast that came last.
#[derive(Debug)]
struct Multicast {
    source: HostId,
    sequence: u16,
    order: u16,
    /// Position of the frame that is to come.
    next: u16,
    heard: Instant,
    /// Its last frame has come.
    is_over: bool,
    is_broken: bool,
}

/// What is known of multicasts that arrive.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    current: Option<Multicast>,
    pub(super) counters: FragmentCounters,
}

impl Fragments {
    /// Takes a frame of a multicast. Whether it holds a packet; what ends a fragment does not.
    pub(super) fn take(&mut self, header: &Header, train: &Train, now: Instant) -> bool {
        let has = |flag| header.flags & flag != 0;
        let is_end = has(flags::TAIL) && has(flags::RESUMED) && !has(flags::HEAD);
        let key = (header.source, header.sequence, train.order);
        let mut current = match self.current.take() {
            Some(known) if known.goes_on(key, now) => known,
            before => {
                if let Some(mut before) = before.filter(|before| !before.is_over) {
                    before.miss(&mut self.counters);
                }
                self.begin(key, now)
            }
        };
        let counters = &mut self.counters;
        current.heard = now;
        if train.position > current.next {
            current.miss(counters);
        }
        if !is_end && train.position >= current.next {
            counters.resumed += u64::from(has(flags::HEAD) && has(flags::RESUMED));
            current.next = train.position.saturating_add(1);
            current.is_over = has(flags::TAIL);
            if has(flags::ABORT) {
                current.miss(counters);
            }
        }
        self.current = Some(current);
        !is_end
    }

    fn begin(&mut self, (source, sequence, order): (HostId, u16, u16), now: Instant) -> Multicast {
        let counters = &mut self.counters;
        counters.multicasts += 1;
        if order != 0 {
            counters.numbered += 1;
            let before = counters.number;
            counters.out_of_order += u64::from(before != 0 && !is_after(before, order));
            counters.number = order;
        }
        Multicast {
            source,
            sequence,
            order,
            next: 0,
            heard: now,
            is_over: false,
            is_broken: false,
        }
    }
}

impl Multicast {
    /// Whether a frame is of it. One that is over may come twice; much later, another has its sequence.
    fn goes_on(&self, key: (HostId, u16, u16), now: Instant) -> bool {
        let is_late = self.is_over && now.since_us(self.heard) >= TRAIN_SILENT_US;
        key == (self.source, self.sequence, self.order) && !is_late
    }

    fn miss(&mut self, counters: &mut FragmentCounters) {
        counters.broken += u64::from(!self.is_broken);
        self.is_broken = true;
    }
}

/// Whether a number is one of the half of all that come after another.
fn is_after(before: u16, number: u16) -> bool {
    let beyond = (u32::from(number) + NUMBERS - u32::from(before)) % NUMBERS;
    (1..=NUMBERS / 2).contains(&beyond)
}

#[cfg(test)]
mod tests;
