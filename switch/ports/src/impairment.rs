//! Faults of a link, made on purpose: loss, duplication, corruption, reordering, delay.
//!
//! Everything follows from the seed, the port and the frames; time is an argument.

use std::collections::{BTreeMap, VecDeque};

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

use wormcast_switch_flow::{BitRate, Duration, Probability, UnitError};

/// Frames that one port may hold back; more are dropped and counted.
pub const HELD_FRAMES_MAX: usize = 16_384;
/// Bytes of these; more are dropped and counted.
pub const HELD_BYTES_MAX: usize = 256 << 20;

/// A reordered frame is overtaken by 1 to this many frames.
const OVERTAKEN_BY_MAX: u32 = 3;

/// A reordered frame that nothing overtakes goes after this time.
const REORDER_HOLD_US_MAX: u64 = 10_000;

/// What happens to the frames that leave by a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImpairmentSettings {
    pub loss: Probability,
    /// A frame is sent twice.
    pub duplicate: Probability,
    /// One bit of a frame, anywhere in it, is flipped.
    pub corrupt: Probability,
    /// A frame is held until up to three later ones have gone, at most 10 ms.
    pub reorder: Probability,
    /// Every frame is sent this much later.
    pub delay: Duration,
    /// The port sends no faster; frames wait in its egress queue.
    pub rate: Option<BitRate>,
}

impl ImpairmentSettings {
    /// Frames need not pass through an [`Impairment`] at all; the rate is the queue's.
    pub fn leaves_frames_alone(&self) -> bool {
        self.loss.is_zero()
            && self.duplicate.is_zero()
            && self.corrupt.is_zero()
            && self.reorder.is_zero()
            && self.delay.as_us() == 0
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), ImpairmentError> {
        match key {
            "loss" => self.loss = value.parse()?,
            "duplicate" => self.duplicate = value.parse()?,
            "corrupt" => self.corrupt = value.parse()?,
            "reorder" => self.reorder = value.parse()?,
            "delay" => self.delay = value.parse()?,
            "rate" => self.rate = Some(value.parse()?),
            _ => return Err(ImpairmentError::Key(key.to_owned())),
        }
        Ok(())
    }
}

/// Impairments of all ports, as the command line gives them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImpairmentTable {
    all: ImpairmentSettings,
    ports: BTreeMap<u16, Vec<(String, String)>>,
}

impl ImpairmentTable {
    /// Adds one argument of `--impair`: `PORT:key=value,…` or `all:key=value,…`.
    /// What is set for a port goes before what is set for all, in whichever order.
    pub fn add(&mut self, argument: &str) -> Result<(), ImpairmentError> {
        let (port, settings) = argument
            .split_once(':')
            .ok_or_else(|| ImpairmentError::Shape(argument.to_owned()))?;
        let mut pairs = Vec::new();
        let mut check = ImpairmentSettings::default();
        for pair in settings.split(',') {
            let (key, value) = pair
                .split_once('=')
                .ok_or_else(|| ImpairmentError::Shape(argument.to_owned()))?;
            check.set(key.trim(), value.trim())?;
            pairs.push((key.trim().to_owned(), value.trim().to_owned()));
        }
        if port == "all" {
            for (key, value) in &pairs {
                self.all.set(key, value)?;
            }
            return Ok(());
        }
        let number = port
            .parse::<u16>()
            .ok()
            .filter(|number| *number <= 511)
            .ok_or_else(|| ImpairmentError::Port(port.to_owned()))?;
        self.ports.entry(number).or_default().extend(pairs);
        Ok(())
    }

    pub fn settings(&self, port: u16) -> ImpairmentSettings {
        let mut settings = self.all;
        for (key, value) in self.ports.get(&port).into_iter().flatten() {
            let set = settings.set(key, value);
            debug_assert!(set.is_ok(), "checked when it was added");
        }
        settings
    }

    pub fn named_ports(&self) -> impl Iterator<Item = u16> + '_ {
        self.ports.keys().copied()
    }
}

/// An argument of `--impair` that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImpairmentError {
    /// Not of the form PORT:key=value,….
    #[error("`{0}` is not of the form PORT:key=value[,key=value…] (like all:loss=0.01,delay=2ms)")]
    Shape(String),
    /// Neither a port nor `all`.
    #[error("`{0}` is not a port: 0 to 511, or all")]
    Port(String),
    #[error("`{0}` is not an impairment: loss, duplicate, corrupt, reorder, delay or rate")]
    Key(String),
    /// The value of a key.
    #[error(transparent)]
    Value(#[from] UnitError),
}

/// What has been done to frames so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImpairmentCounts {
    pub lost: u64,
    pub duplicated: u64,
    /// Frames with a bit flipped.
    pub corrupted: u64,
    /// Frames held back to be overtaken.
    pub reordered: u64,
    /// Frames dropped because [`HELD_FRAMES_MAX`] or [`HELD_BYTES_MAX`] were held.
    pub overflowed: u64,
}

/// The faulty link behind one port.
#[derive(Debug)]
pub struct Impairment {
    settings: ImpairmentSettings,
    random: ChaCha8Rng,
    counts: ImpairmentCounts,
    delayed: VecDeque<Delayed>,
    overtaken: Vec<Overtaken>,
    held_bytes: usize,
}

#[derive(Debug)]
struct Delayed {
    due_us: u64,
    frame: Vec<u8>,
}

#[derive(Debug)]
struct Overtaken {
    by: u32,
    deadline_us: u64,
    frame: Vec<u8>,
}

impl Impairment {
    /// A link with these settings. Ports with one seed draw different numbers.
    pub fn new(settings: ImpairmentSettings, seed: u64, port: u16) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(u64::from(port));
        Self {
            settings,
            random,
            counts: ImpairmentCounts::default(),
            delayed: VecDeque::new(),
            overtaken: Vec::new(),
            held_bytes: 0,
        }
    }

    /// Takes a frame that leaves the switch; it comes out of [`poll`](Self::poll).
    pub fn offer(&mut self, frame: &[u8], now_us: u64) {
        // Every frame draws the same numbers, whatever happens to it, so that changing
        // one probability does not change what else happens.
        let [lost, twice, flipped, where_flipped, held, held_by] =
            std::array::from_fn(|_| self.random.next_u32());
        if self.settings.loss.happens(lost) {
            self.counts.lost += 1;
            return;
        }
        let mut frame = frame.to_vec();
        let copy = self
            .settings
            .duplicate
            .happens(twice)
            .then(|| frame.clone());
        if self.settings.corrupt.happens(flipped) && !frame.is_empty() {
            self.counts.corrupted += 1;
            let bit = where_flipped as usize % (frame.len() * 8);
            frame[bit / 8] ^= 1 << (bit % 8);
        }
        if self.held() >= HELD_FRAMES_MAX || self.held_bytes + frame.len() > HELD_BYTES_MAX {
            self.counts.overflowed += 1;
            return;
        }
        self.held_bytes += frame.len() * (1 + usize::from(copy.is_some()));
        if self.settings.reorder.happens(held) {
            self.counts.reordered += 1;
            self.overtaken.push(Overtaken {
                by: held_by % OVERTAKEN_BY_MAX + 1,
                deadline_us: now_us.saturating_add(REORDER_HOLD_US_MAX),
                frame,
            });
        } else {
            self.delay(frame, now_us);
            self.let_go_overtaken(now_us);
        }
        if let Some(copy) = copy {
            self.counts.duplicated += 1;
            self.delay(copy, now_us);
        }
    }

    /// The next frame whose time has come.
    pub fn poll(&mut self, now_us: u64) -> Option<Vec<u8>> {
        self.let_go_expired(now_us);
        match self.delayed.front() {
            Some(first) if first.due_us <= now_us => {
                let frame = self.delayed.pop_front().map(|first| first.frame);
                self.held_bytes -= frame.as_ref().map_or(0, Vec::len);
                frame
            }
            _ => None,
        }
    }

    /// When the next frame's time comes, if one is held.
    pub fn next_us(&self) -> Option<u64> {
        let expiry = self.overtaken.iter().map(|held| held.deadline_us).min();
        let due = self.delayed.front().map(|first| first.due_us);
        match (expiry, due) {
            (Some(expiry), Some(due)) => Some(expiry.min(due)),
            (expiry, due) => expiry.or(due),
        }
    }

    /// Frames held back now.
    pub fn held(&self) -> usize {
        self.delayed.len() + self.overtaken.len()
    }

    /// What has been done so far.
    pub fn counts(&self) -> ImpairmentCounts {
        self.counts
    }

    fn delay(&mut self, frame: Vec<u8>, now_us: u64) {
        let due_us = now_us.saturating_add(self.settings.delay.as_us());
        self.delayed.push_back(Delayed { due_us, frame });
    }

    fn let_go_overtaken(&mut self, now_us: u64) {
        if self.overtaken.is_empty() {
            return;
        }
        for held in &mut self.overtaken {
            held.by -= 1;
        }
        for gone in take_where(&mut self.overtaken, |held| held.by == 0) {
            self.delay(gone.frame, now_us);
        }
    }

    fn let_go_expired(&mut self, now_us: u64) {
        for gone in take_where(&mut self.overtaken, |held| held.deadline_us <= now_us) {
            self.delay(gone.frame, now_us);
        }
    }
}

/// Removes those for which it holds; both parts keep their order.
fn take_where<T>(items: &mut Vec<T>, holds: impl Fn(&T) -> bool) -> Vec<T> {
    if !items.iter().any(&holds) {
        return Vec::new();
    }
    let (gone, kept) = items.drain(..).partition(holds);
    *items = kept;
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    fn impairment(argument: &str) -> Impairment {
        let mut table = ImpairmentTable::default();
        table.add(argument).unwrap();
        Impairment::new(table.settings(0), 7, 0)
    }

    /// Offers numbered frames of 64 bytes, one each 10 µs; what comes out, with times.
    fn run(link: &mut Impairment, frames: u32) -> Vec<(u64, Vec<u8>)> {
        let mut out = Vec::new();
        let mut now_us = 0;
        for number in 0..frames {
            let mut frame = vec![0; 64];
            frame[..4].copy_from_slice(&number.to_be_bytes());
            link.offer(&frame, now_us);
            out.extend(std::iter::from_fn(|| link.poll(now_us)).map(|frame| (now_us, frame)));
            now_us += 10;
        }
        while let Some(next_us) = link.next_us() {
            now_us = now_us.max(next_us);
            out.extend(std::iter::from_fn(|| link.poll(now_us)).map(|frame| (now_us, frame)));
        }
        out
    }

    fn number(frame: &[u8]) -> u32 {
        u32::from_be_bytes(frame[..4].try_into().unwrap())
    }

    #[test]
    fn loss_has_the_asked_rate_and_is_counted() {
        let mut link = impairment("all:loss=0.1");
        let out = run(&mut link, 100_000);
        let lost = link.counts().lost;
        assert_eq!(out.len() as u64 + lost, 100_000);
        assert!((9_500..10_500).contains(&lost), "{lost}");
    }

    #[test]
    fn corruption_flips_exactly_one_bit() {
        let mut link = impairment("0:corrupt=1");
        link.offer(&[0; 100], 0);
        let frame = link.poll(0).unwrap();
        assert_eq!(frame.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
        assert_eq!(link.counts().corrupted, 1);
        link.offer(&[], 0);
        assert_eq!(link.poll(0), Some(Vec::new()));
    }

    #[test]
    fn duplicates_come_out_twice() {
        let mut link = impairment("all:duplicate=100%");
        let out = run(&mut link, 10);
        let numbers: Vec<u32> = out.iter().map(|(_, frame)| number(frame)).collect();
        assert_eq!(numbers, (0..10).flat_map(|n| [n, n]).collect::<Vec<_>>());
        assert_eq!(link.counts().duplicated, 10);
    }

    #[test]
    fn reordering_loses_nothing_and_moves_frames_little() {
        let mut link = impairment("all:reorder=0.1");
        let out = run(&mut link, 10_000);
        let numbers: Vec<u32> = out.iter().map(|(_, frame)| number(frame)).collect();
        assert!(numbers.windows(2).any(|pair| pair[0] > pair[1]));
        for (position, number) in numbers.iter().enumerate() {
            assert!((position as i64 - i64::from(*number)).abs() <= 6);
        }
        let mut sorted = numbers;
        sorted.sort_unstable();
        assert_eq!(sorted, (0..10_000).collect::<Vec<_>>());
    }

    #[test]
    fn a_lone_reordered_frame_goes_after_a_while() {
        let mut link = impairment("all:reorder=1");
        link.offer(&[1; 60], 5);
        assert_eq!(link.poll(5), None);
        assert_eq!(link.next_us(), Some(5 + REORDER_HOLD_US_MAX));
        assert_eq!(link.poll(5 + REORDER_HOLD_US_MAX), Some(vec![1; 60]));
        assert_eq!(link.next_us(), None);
    }

    #[test]
    fn delay_is_exact() {
        let mut link = impairment("all:delay=2ms");
        for (index, (time_us, frame)) in run(&mut link, 100).iter().enumerate() {
            assert_eq!(number(frame) as usize, index);
            // The clock of `run` stands at 990 when the last frame has been offered.
            assert_eq!(*time_us, (index as u64 * 10 + 2_000).max(1_000));
        }
    }

    #[test]
    fn held_frames_are_bounded() {
        let mut link = impairment("all:delay=1s");
        for _ in 0..HELD_FRAMES_MAX + 5 {
            link.offer(&[0; 60], 0);
        }
        assert_eq!(link.held(), HELD_FRAMES_MAX);
        assert_eq!(link.counts().overflowed, 5);
    }

    #[test]
    fn held_bytes_are_bounded() {
        let mut link = impairment("all:delay=1s,duplicate=0.5");
        for _ in 0..HELD_FRAMES_MAX {
            link.offer(&[0; 65_549], 0);
        }
        let held = link.held();
        assert!(
            (3_900..=HELD_BYTES_MAX / 65_549 + 1).contains(&held),
            "{held}"
        );
        while link.poll(2_000_000).is_some() {}
        assert_eq!((link.held(), link.held_bytes), (0, 0));
    }

    #[test]
    fn one_seed_one_outcome() {
        let settings = "all:loss=0.05,duplicate=0.05,corrupt=0.05,reorder=0.05,delay=50us";
        let first = run(&mut impairment(settings), 2_000);
        assert_eq!(first, run(&mut impairment(settings), 2_000));
        let mut table = ImpairmentTable::default();
        table.add(settings).unwrap();
        let other_port = run(&mut Impairment::new(table.settings(1), 7, 1), 2_000);
        assert_ne!(first, other_port);
    }

    #[test]
    fn more_loss_does_not_change_which_of_the_rest_are_corrupted() {
        let frames = |settings: &str| -> BTreeMap<u32, Vec<u8>> {
            run(&mut impairment(settings), 5_000)
                .into_iter()
                .map(|(_, frame)| (u32::from(frame[2]) << 8 | u32::from(frame[3]), frame))
                .filter(|(_, frame)| frame[4..].iter().any(|byte| *byte != 0))
                .collect()
        };
        let clean = frames("all:corrupt=0.05");
        let lossy = frames("all:corrupt=0.05,loss=0.3");
        assert!(lossy.len() < clean.len());
        assert!(
            lossy
                .iter()
                .all(|(number, frame)| clean.get(number) == Some(frame))
        );
    }

    #[test]
    fn a_port_overrides_all() {
        let mut table = ImpairmentTable::default();
        table.add("3:loss=0,rate=10mbit").unwrap();
        table.add("all:loss=0.5,delay=1ms").unwrap();
        assert!(table.settings(3).loss.is_zero());
        assert_eq!(table.settings(3).delay.as_us(), 1_000);
        assert_eq!(table.settings(3).rate.unwrap().bits_per_s(), 10_000_000);
        assert!(!table.settings(4).loss.is_zero());
        assert!(ImpairmentSettings::default().leaves_frames_alone());
        assert!(!table.settings(4).leaves_frames_alone());
    }

    #[test]
    fn errors_name_value_and_choices() {
        let error = |argument: &str| {
            ImpairmentTable::default()
                .add(argument)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            error("loss=1"),
            "`loss=1` is not of the form PORT:key=value[,key=value…] (like all:loss=0.01,delay=2ms)"
        );
        assert_eq!(
            error("512:loss=0.1"),
            "`512` is not a port: 0 to 511, or all"
        );
        assert_eq!(
            error("1:lost=0.1"),
            "`lost` is not an impairment: loss, duplicate, corrupt, reorder, delay or rate"
        );
        assert_eq!(
            error("1:loss=2"),
            "`2` is not a probability: a number from 0 to 1, or from 0% to 100%"
        );
        assert!(error("1:loss").contains("PORT:key=value"));
    }
}
