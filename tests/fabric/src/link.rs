//! One direction of a link: rate, delay, a finite queue, and damage.

use crate::random::Random;

/// What a link is like.
#[derive(Clone, Copy, Debug)]
pub struct LinkConfig {
    pub rate_bps: u64,
    pub delay_ns: u64,
    /// Bytes that wait; a frame that would exceed them is dropped.
    pub queue_bytes: u64,
    pub damage: Damage,
}

/// How a link harms frames, each with its probability.
#[derive(Clone, Copy, Debug, Default)]
pub struct Damage {
    pub loss: f64,
    /// A bit of it is flipped.
    pub corruption: f64,
    pub duplication: f64,
    /// It is held back by up to `reorder_ns`.
    pub reordering: f64,
    /// Longest time by which it is held back.
    pub reorder_ns: u64,
}

impl Damage {
    /// 1 % loss, 0.1 % corruption, 1 % reordering by up to 2 ms, 0.1 % duplication.
    pub fn rough() -> Damage {
        Damage {
            loss: 0.01,
            corruption: 0.001,
            duplication: 0.001,
            reordering: 0.01,
            reorder_ns: 2_000_000,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct LinkStatistics {
    pub frames: u64,
    pub bytes: u64,
    /// Frames that found the queue full.
    pub queue_drops: u64,
    /// Frames that vanished, and frames sent while it was down.
    pub losses: u64,
    pub queue_peak_bytes: u64,
}

/// One direction of a link.
#[derive(Debug)]
pub struct Link {
    pub config: LinkConfig,
    pub statistics: LinkStatistics,
    pub down: bool,
    free_at_ns: u64,
}

/// A frame that will arrive.
#[derive(Debug)]
pub struct Arrival {
    pub at_ns: u64,
    /// The frame as it arrives.
    pub frame: Vec<u8>,
}

impl Link {
    pub fn new(config: LinkConfig) -> Link {
        Link {
            config,
            statistics: LinkStatistics::default(),
            down: false,
            free_at_ns: 0,
        }
    }

    /// Bytes that wait or are being sent.
    pub fn backlog_bytes(&self, now_ns: u64) -> u64 {
        let left_ns = self.free_at_ns.saturating_sub(now_ns);
        (u128::from(left_ns) * u128::from(self.config.rate_bps) / 8_000_000_000) as u64
    }

    /// Puts a frame onto the link; gives what arrives at the other end.
    pub fn send(&mut self, mut frame: Vec<u8>, now_ns: u64, random: &mut Random) -> Vec<Arrival> {
        let length = frame.len() as u64;
        let backlog = self.backlog_bytes(now_ns);
        if backlog + length > self.config.queue_bytes {
            self.statistics.queue_drops += 1;
            return Vec::new();
        }
        self.statistics.frames += 1;
        self.statistics.bytes += length;
        self.statistics.queue_peak_bytes = self.statistics.queue_peak_bytes.max(backlog + length);
        let sending_ns = length * 8_000_000_000 / self.config.rate_bps;
        self.free_at_ns = self.free_at_ns.max(now_ns) + sending_ns;
        let damage = self.config.damage;
        if self.down || random.chance(damage.loss) {
            self.statistics.losses += 1;
            return Vec::new();
        }
        if random.chance(damage.corruption) {
            let bit = random.below(length * 8) as usize;
            frame[bit / 8] ^= 1 << (bit % 8);
        }
        let mut at_ns = self.free_at_ns + self.config.delay_ns;
        if random.chance(damage.reordering) {
            at_ns += random.below(damage.reorder_ns);
        }
        let mut arrivals = Vec::with_capacity(1);
        if random.chance(damage.duplication) {
            let copy_at_ns = at_ns + random.below(damage.reorder_ns.max(1_000));
            arrivals.push(Arrival {
                at_ns: copy_at_ns,
                frame: frame.clone(),
            });
        }
        arrivals.push(Arrival { at_ns, frame });
        arrivals
    }
}
