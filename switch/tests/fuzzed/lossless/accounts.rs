//! Flow control of one switch beside a model of it: bytes are held by who brought them, no
//! limit is exceeded, the neighbour knows what it shall stop, and in the end nothing is held.

use std::collections::BTreeMap;

use super::super::draws::Draws;
use wormcast_switch_flow::buffer::Origin;
use wormcast_switch_flow::cycle::{FabricPort, find_rings};
use wormcast_switch_flow::{
    Arrival, FlowControl, FrameHold, GivenThresholds, LosslessSettings, PRIORITIES, PauseFrame,
    PauseMode, PausedQueues, PrioritySet, WatchdogAction, WatchdogSettings,
};

/// Numbers of the ports; the last one has no link.
const PORTS: [(u16, bool); 3] = [(1, true), (2, true), (9, false)];

/// Frames that are held at most; then they go.
const FRAMES_MAX: usize = 256;

struct Queued {
    position: usize,
    queue: u8,
    hold: FrameHold,
}

struct Model {
    settings: LosslessSettings,
    flow: FlowControl,
    now_us: u64,
    queued: Vec<Queued>,
    /// Frames in the buffer, with their copies.
    frames: BTreeMap<u32, (Origin, u32)>,
    /// Frames that have left each queue.
    taken: BTreeMap<(usize, u8), u64>,
    neighbours: Vec<PausedQueues>,
}

pub fn run(draws: &mut Draws<'_>) {
    let settings = settings(draws);
    let flow = match FlowControl::new(&settings, &PORTS) {
        Ok(flow) => flow,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let neighbour = || PausedQueues::new(settings.link.rate, PrioritySet::ALL);
    let mut model = Model {
        neighbours: PORTS.map(|_| neighbour()).into(),
        settings,
        flow,
        now_us: 1,
        queued: Vec::new(),
        frames: BTreeMap::new(),
        taken: BTreeMap::new(),
    };
    while !draws.is_empty() {
        model.step(draws);
        model.check();
    }
    model.end();
}

fn settings(draws: &mut Draws<'_>) -> LosslessSettings {
    let mut settings = super::settings(draws, &["1gbit", "500mbit", "100mbit", "10gbit"]);
    if draws.one_in(2) {
        settings.priorities = PrioritySet(draws.byte());
    }
    settings.frame_bytes_max = 64 + u32::from(draws.half() % 4_096);
    settings.quanta = draws.half().max(1);
    settings.response_us = draws.one_in(2).then(|| u64::from(draws.byte()));
    let given = |draws: &mut Draws<'_>| (!draws.one_in(3)).then(|| u64::from(draws.half()));
    settings.thresholds = GivenThresholds {
        xoff: given(draws),
        xon: given(draws),
        headroom: given(draws),
    };
    settings.buffer_bytes = draws
        .one_in(3)
        .then(|| 65_536 + 16 * u64::from(draws.half()));
    settings.watchdog = draws.one_in(2).then(|| WatchdogSettings {
        detect_us: 1_000 + u64::from(draws.half()),
        action: if draws.one_in(2) {
            WatchdogAction::Drop
        } else {
            WatchdogAction::Forward
        },
        recover_us: u64::from(draws.half()),
    });
    settings
}

/// A frame of a priority, by its tag (IEEE 802.1Q clause 9.6), or any bytes.
fn frame(draws: &mut Draws<'_>) -> Vec<u8> {
    if draws.one_in(4) {
        return draws.block(80).to_vec();
    }
    let mut frame = vec![2; 12];
    frame.extend([0x81, 0x00, draws.byte() << 5, 1, 0x08, 0x00]);
    frame.resize(60 + usize::from(draws.half() % 2_000), 0xa5);
    frame
}

impl Model {
    fn step(&mut self, draws: &mut Draws<'_>) {
        let kind = draws.below(16);
        let position = draws.below(PORTS.len());
        match kind {
            0..=5 => self.arrive(position, draws),
            6..=9 => self.leave(draws),
            10 => self.hear(position, draws),
            11 => {
                self.flow.forget_neighbour(position, self.now_us);
                let rate = self.settings.link.rate;
                self.neighbours[position] = PausedQueues::new(rate, PrioritySet::ALL);
                assert_eq!(self.flow.allowed(position, self.now_us), PrioritySet::ALL);
            }
            12 => self.drop_one(draws),
            13 => self.now_us += u64::from(draws.half()),
            14 => self.watch(),
            _ => self.now_us += u64::from(draws.byte()),
        }
        self.tell();
    }

    fn arrive(&mut self, position: usize, draws: &mut Draws<'_>) {
        let frame = frame(draws);
        if self.queued.len() >= FRAMES_MAX {
            return;
        }
        let before = self.flow.buffer().clone();
        match self.flow.arrive(position, &frame, self.now_us) {
            Arrival::Control => assert_eq!(frame[12..14], [0x88, 0x08]),
            Arrival::Refused => self.check_refused(&before, position, frame.len() as u64),
            Arrival::Accepted => {
                let copies = draws.below(4);
                self.process(copies, draws);
                self.flow.done();
            }
        }
    }

    /// A frame is refused only if the bytes it would be held by have no room for it.
    fn check_refused(
        &self,
        before: &wormcast_switch_flow::SharedBuffer,
        position: usize,
        bytes: u64,
    ) {
        let counts = (0..PRIORITIES as u8).filter(|priority| {
            let now = self.flow.buffer().ingress(position, *priority);
            now.refused() > before.ingress(position, *priority).refused()
        });
        let refused: Vec<u8> = counts.collect();
        let [priority] = refused[..] else {
            panic!("one priority counts a frame that is refused: {refused:?}");
        };
        let ingress = before.ingress(position, priority);
        match ingress.thresholds() {
            Some(thresholds) => {
                assert!(ingress.held_bytes() + bytes > thresholds.limit());
                let short = bytes <= thresholds.headroom;
                assert!(!short || ingress.is_stopped(), "stopped before it is full");
            }
            None => assert!(bytes > 0),
        }
    }

    /// Puts copies of the frame that is being processed into queues.
    fn process(&mut self, copies: usize, draws: &mut Draws<'_>) {
        for _ in 0..copies {
            let hold = self.flow.copy().expect("a frame is being processed");
            let origin = self.flow.buffer().origin(hold);
            self.frames.entry(hold.number()).or_insert((origin, 0)).1 += 1;
            self.queued.push(Queued {
                position: draws.below(PORTS.len()),
                queue: self.flow.queue(draws.byte() % 8),
                hold,
            });
        }
    }

    /// The copy has left its queue.
    fn gone(&mut self, hold: FrameHold) {
        let (_, copies) = self.frames.get_mut(&hold.number()).expect("it was held");
        *copies -= 1;
        if *copies == 0 {
            self.frames.remove(&hold.number());
        }
    }

    /// A queue that may send sends a frame, which may come round again.
    fn leave(&mut self, draws: &mut Draws<'_>) {
        let now_us = self.now_us;
        let flow = &self.flow;
        let may = |queued: &Queued| flow.allowed(queued.position, now_us).contains(queued.queue);
        let Some(at) = self.queued.iter().position(may) else {
            return;
        };
        let queued = self.queued.remove(at);
        *self
            .taken
            .entry((queued.position, queued.queue))
            .or_default() += 1;
        self.flow.resume(Some(queued.hold));
        if draws.one_in(8) {
            self.process(1, draws);
        }
        self.flow.done();
        self.gone(queued.hold);
    }

    fn drop_one(&mut self, draws: &mut Draws<'_>) {
        if self.queued.is_empty() {
            return;
        }
        let queued = self
            .queued
            .swap_remove(draws.below(self.queued.len().min(256)));
        self.flow.release(queued.hold);
        self.gone(queued.hold);
    }

    /// The neighbour says something.
    fn hear(&mut self, position: usize, draws: &mut Draws<'_>) {
        let priorities = PrioritySet(draws.byte());
        let frame = if draws.one_in(4) {
            PauseFrame::Pause {
                quanta: draws.half(),
            }
        } else {
            PauseFrame::Pfc {
                priorities,
                quanta: std::array::from_fn(|_| draws.half()),
            }
        };
        let frame = frame.to_bytes([2, 0, 0, 0, 0, 7]);
        assert!(self.flow.take_control(position, &frame, self.now_us));
    }

    /// Pause frames that are due are sent; afterwards the neighbour knows.
    fn tell(&mut self) {
        let short = self.short_pause();
        for (position, neighbour) in self.neighbours.iter_mut().enumerate() {
            let due = self.flow.has_pause(position, self.now_us);
            let frame = self.flow.poll_pause(position, self.now_us);
            assert_eq!(frame.is_some(), due);
            if let Some(frame) = frame {
                let pause = PauseFrame::parse(&frame).expect("a pause frame");
                neighbour.receive(&pause, self.now_us);
            }
            assert!(!self.flow.has_pause(position, self.now_us) || short);
            let stopped = self.flow.stopped(position);
            let expected = match self.settings.pause {
                _ if !PORTS[position].1 => PrioritySet::NONE,
                PauseMode::Pause if !stopped.is_empty() => PrioritySet::ALL,
                _ => stopped,
            };
            assert_eq!(
                neighbour.paused(self.now_us),
                expected,
                "position {position}"
            );
            let next_us = self.flow.next_us(position, PrioritySet::ALL, self.now_us);
            assert!(next_us.is_none_or(|next_us| next_us > self.now_us));
        }
    }

    /// Pauses of one microsecond are refreshed at once.
    fn short_pause(&self) -> bool {
        wormcast_switch_flow::pause::quanta_us(self.settings.quanta, self.settings.link.rate) < 2
    }

    fn watch(&mut self) {
        let mut waiting: BTreeMap<(usize, u8), usize> = BTreeMap::new();
        for queued in &self.queued {
            *waiting.entry((queued.position, queued.queue)).or_default() += 1;
        }
        let (queued, taken) = (&self.queued, &self.taken);
        let events = self.flow.watch(self.now_us, |position, priority| {
            let place = (position, priority);
            let count = |of: &BTreeMap<_, u64>| of.get(&place).copied().unwrap_or(0);
            (waiting.get(&place).copied().unwrap_or(0), count(taken))
        });
        for event in events {
            assert!(self.settings.watchdog.is_some());
            assert_eq!(PORTS[event.position].0, event.port);
        }
        let held = queued.iter().map(|one| (one.position, one.queue, one.hold));
        let waits = self.flow.waits(self.now_us, held);
        let end = |port| FabricPort { switch: 1, port };
        let rings = find_rings(&[(1, waits)].into(), &[(end(1), end(2))]);
        assert!(rings.iter().all(|ring| !ring.is_empty()));
    }

    fn check(&self) {
        let mut held = BTreeMap::new();
        for (origin, _) in self.frames.values() {
            *held
                .entry((usize::from(origin.port), origin.priority))
                .or_insert(0) += u64::from(origin.bytes);
        }
        let buffer = self.flow.buffer();
        for position in 0..PORTS.len() {
            for priority in 0..PRIORITIES as u8 {
                let ingress = buffer.ingress(position, priority);
                let expected = held.get(&(position, priority)).copied().unwrap_or(0);
                assert_eq!(ingress.held_bytes(), expected);
                let stopped = self.flow.stopped(position).contains(priority);
                assert_eq!(ingress.is_stopped(), stopped);
                let Some(thresholds) = ingress.thresholds() else {
                    assert!(!stopped, "nobody stops a lossy priority");
                    continue;
                };
                assert!(ingress.held_bytes() <= thresholds.limit());
                if stopped {
                    assert!(ingress.held_bytes() > thresholds.xon)
                } else {
                    assert!(ingress.held_bytes() <= thresholds.xoff)
                }
            }
            let _ = (self.flow.room_frames(position), self.flow.counts(position));
        }
        assert_eq!(buffer.held_bytes(), held.values().sum::<u64>());
        assert!(buffer.held_bytes_max() <= self.flow.buffer_bytes());
    }

    /// When everything has left nobody is stopped any more.
    fn end(mut self) {
        for queued in std::mem::take(&mut self.queued) {
            self.flow.release(queued.hold);
            self.gone(queued.hold);
        }
        self.tell();
        self.check();
        assert_eq!(self.flow.buffer().held_bytes(), 0);
        for (position, neighbour) in self.neighbours.iter().enumerate() {
            assert!(self.flow.stopped(position).is_empty());
            assert!(neighbour.paused(self.now_us).is_empty());
        }
    }
}
