//! What a member says for switches to gather, and what the origin has heard.

use crate::time::Instant;
use crate::window::path::Path;
use wormcast_wire::gather::flags;

/// Packets after which a member speaks at once. All count by sequence numbers, and so alike: the least of all moves
/// once in so many.
pub(crate) const EVERY_PACKETS: u64 = 8;
/// Time until a member says again what is not known to be stable, µs. It doubles.
const REPEAT_US: u64 = 25_000;
const REPEAT_US_MAX: u64 = 32_000_000;
/// From this interval on switches are to pass on what is repeated, µs. Each such ACK comes to the origin, while one
/// without REFRESH goes no further than it says anything new.
const REFRESH_US: u64 = 200_000;
/// Time without a sign that gathered ACKs come after which ACKs to the parent are as frequent as without, µs.
const PROOF_US: u64 = 500_000;
/// How long they are so at the beginning, µs: the window of the origin opens by them.
const FIRST_US: u64 = 200_000;
/// How long they are so when no sign came, µs, before another attempt. It doubles while none succeeds.
const USUAL_US: u64 = 1_000_000;
const USUAL_US_MAX: u64 = 8_000_000;

/// At a member: what it says for switches to gather, and whether that comes to the origin.
#[derive(Debug)]
pub(crate) struct Gathering {
    /// Of the plan's branches and members.
    pub(crate) epoch: u32,
    /// `cumulative` and `stable` as acknowledged last.
    advertised: (u64, u64),
    pub(crate) due: bool,
    refresh: bool,
    deadline: Option<Instant>,
    repeat_at: Option<Instant>,
    repeat_us: u64,
    /// The most that ACKs to other hosts have acknowledged as stable here.
    host_advertised: u64,
    /// Since when something said is neither known to be stable nor was any sign seen.
    unproved_since: Option<Instant>,
    /// ACKs to the parent are as frequent as without, until then.
    usual_until: Instant,
    usual_us: u64,
}

impl Gathering {
    pub(crate) fn new(epoch: u32, now: Instant) -> Gathering {
        Gathering {
            epoch,
            advertised: (0, 0),
            due: false,
            refresh: false,
            deadline: None,
            repeat_at: None,
            repeat_us: REPEAT_US,
            host_advertised: 0,
            unproved_since: None,
            usual_until: now.plus_us(FIRST_US),
            usual_us: USUAL_US,
        }
    }

    /// This host holds everything before `cumulative`, and has confirmed all before `stable`; whole messages are here up to
    /// `message_end`.
    pub(crate) fn note(
        &mut self,
        (cumulative, stable): (u64, u64),
        message_end: u64,
        delay_us: u64,
        now: Instant,
    ) {
        if cumulative <= self.advertised.0 && stable <= self.advertised.1 {
            return;
        }
        let is_far = cumulative / EVERY_PACKETS > self.advertised.0 / EVERY_PACKETS;
        let is_whole = stable >= message_end && message_end > self.advertised.1;
        if is_far || is_whole {
            self.due = true;
        } else {
            self.deadline.get_or_insert(now.plus_us(delay_us));
        }
    }

    /// An ACK leaves for another host that says `stable`.
    pub fn note_host_ack(&mut self, stable: u64) {
        self.host_advertised = self.host_advertised.max(stable);
    }

    /// All members have everything before `stable`. That counts this host, so if no ACK to a host has said so much, a
    /// gathered one has.
    pub(crate) fn note_known(&mut self, stable: u64) {
        if stable > self.host_advertised {
            self.unproved_since = None;
            self.usual_us = USUAL_US;
        }
        if stable >= self.advertised.0 {
            self.repeat_at = None;
            self.repeat_us = REPEAT_US;
        }
    }

    /// It is sent now; gives the flags. Everything before `known` is known to be stable.
    pub(crate) fn take(&mut self, word: (u64, u64), known: u64, now: Instant) -> u8 {
        if word > self.advertised {
            self.repeat_us = REPEAT_US;
        }
        let is_again = core::mem::take(&mut self.refresh);
        self.due = false;
        self.deadline = None;
        self.advertised = word;
        self.repeat_at = (word.0 > known).then(|| now.plus_us(self.repeat_us));
        if word.1 > known && now >= self.usual_until {
            self.unproved_since.get_or_insert(now);
        }
        if is_again { flags::REFRESH } else { 0 }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.deadline.is_some_and(|at| at <= now) {
            self.deadline = None;
            self.due = true;
        }
        if self.repeat_at.is_some_and(|at| at <= now) {
            self.repeat_at = None;
            self.refresh = self.repeat_us >= REFRESH_US;
            self.repeat_us = (2 * self.repeat_us).min(REPEAT_US_MAX);
            self.due = true;
        }
        if self.has_no_sign(now) {
            self.usual_until = now.plus_us(self.usual_us);
            self.usual_us = (2 * self.usual_us).min(USUAL_US_MAX);
            self.unproved_since = None;
        }
    }

    fn has_no_sign(&self, now: Instant) -> bool {
        self.unproved_since
            .is_some_and(|since| now.since_us(since) >= PROOF_US)
    }

    /// Whether gathered ACKs are taken to come, so that ACKs to the parent may be rare.
    pub(crate) fn comes(&self, now: Instant) -> bool {
        now >= self.usual_until && !self.has_no_sign(now)
    }

    /// When there is something to do.
    pub fn timeout(&self, now: Instant) -> Option<Instant> {
        let due = self.due.then_some(now);
        let silent = self.unproved_since.map(|since| since.plus_us(PROOF_US));
        let all = [due, self.deadline, self.repeat_at, silent];
        all.into_iter().flatten().min()
    }
}

/// At the origin: what has come of the plan's epoch and this stream.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) epoch: u32,
    pub(crate) has_come: bool,
    /// Round trips of packets to the last member and back.
    pub(crate) path: Path,
}

impl Heard {
    pub(crate) fn new(epoch: u32) -> Heard {
        Heard {
            epoch,
            has_come: false,
            path: Path::new(),
        }
    }
}
