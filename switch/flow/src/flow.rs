//! Flow control of one switch: classes, buffer, pauses and watchdogs of all its ports.
//!
//! The switch tells it what happens to frames — they arrive, are copied into queues, come
//! out of queues, are done with — and asks it which queues may send and which pause frames
//! are due.

use std::collections::BTreeMap;

use serde::Serialize;

use super::ClassMap;
use super::buffer::{Crossing, FrameHold, Origin, SharedBuffer};
use super::cycle::{PausedQueue, StoppedIngress, WaitingFrame, Waits};
use super::frame::{self, PAUSE_FRAME_BYTES, PauseFrame};
use super::headroom::{BufferPlan, LosslessSettings, PlanError};
use super::pause::{PauseSender, PausedQueues};
use super::priority::{PRIORITIES, PrioritySet};
use super::watchdog::{Finding, QueueState, Watchdog, WatchdogAction, WatchdogSettings};

/// What becomes of a frame that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It was for the link itself and ends here.
    Control,
    /// There is no room; it is counted.
    Refused,
    /// It is in the buffer: process it, then say [`FlowControl::done`].
    Accepted,
}

/// What a watchdog has found at a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowEvent {
    pub position: usize,
    pub port: u16,
    pub priority: u8,
    pub finding: Finding,
    /// What is done about a storm.
    pub action: WatchdogAction,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FlowCounts {
    /// Frames of the neighbour that paused something.
    pub pauses_received: u64,
    /// Frames of the neighbour that ended a pause.
    pub resumes_received: u64,
    /// MAC control frames that say nothing we know.
    pub control_unknown: u64,
    /// PFC or PAUSE frames made.
    pub pauses_sent: u64,
    /// Of these, those that repeat the one before.
    pub pauses_refreshed: u64,
    /// Lossless frames that found no room: the neighbour did not stop in time.
    pub headroom_full: u64,
    /// Lossy frames that found no room.
    pub lossy_full: u64,
    pub storms: u64,
    /// Frames dropped because of a storm.
    pub storm_drops: u64,
    /// Turns in which frames were left in the receive ring, because there was no room
    /// for another one: the neighbour did not stop in time, and nothing was lost yet.
    pub held_back: u64,
}

struct PortFlow {
    number: u16,
    /// There is a link: PFC is spoken.
    linked: bool,
    paused: PausedQueues,
    sender: PauseSender,
    dogs: [Watchdog; PRIORITIES],
    /// Queues whose pause is ignored.
    ignored: PrioritySet,
    /// Queues whose frames are dropped.
    dropping: PrioritySet,
    storm_drops: u64,
    held_back: u64,
    control_unknown: u64,
}

/// Flow control of one switch.
pub struct FlowControl {
    map: ClassMap,
    lossless: PrioritySet,
    watchdog: Option<WatchdogSettings>,
    watched_us: u64,
    frame_bytes_max: u32,
    buffer_bytes: u64,
    buffer: SharedBuffer,
    ports: Vec<PortFlow>,
    /// The frame that is being processed.
    current: Option<FrameHold>,
}

/// How often a watchdog looks within its detection time.
const LOOKS: u64 = 8;

impl FlowControl {
    /// Flow control of a switch whose ports have these numbers, in the order of their
    /// positions; `true` marks those with a link. Says why if the buffers do not fit.
    pub fn new(settings: &LosslessSettings, ports: &[(u16, bool)]) -> Result<Self, PlanError> {
        let linked: Vec<u16> = ports
            .iter()
            .filter(|port| port.1)
            .map(|port| port.0)
            .collect();
        let plan = settings.plan(&linked)?;
        Ok(Self::with_plan(settings, &plan, ports))
    }

    fn with_plan(settings: &LosslessSettings, plan: &BufferPlan, ports: &[(u16, bool)]) -> Self {
        let planned = |port: &(u16, bool)| port.1.then(|| plan.ports.get(&port.0)).flatten();
        let thresholds = ports.iter().map(|port| {
            let mut thresholds = [None; PRIORITIES];
            for priority in settings.priorities.iter() {
                thresholds[usize::from(priority)] = planned(port).map(|plan| plan.thresholds);
            }
            thresholds
        });
        let buffer = SharedBuffer::new(thresholds, plan.lossy_bytes);
        let flow = |port: &(u16, bool)| {
            let rate = settings.link_of(port.0).rate;
            PortFlow {
                number: port.0,
                linked: port.1,
                paused: PausedQueues::new(rate, settings.priorities),
                sender: PauseSender::new(settings.pause, settings.quanta, rate),
                dogs: [Watchdog::default(); PRIORITIES],
                ignored: PrioritySet::NONE,
                dropping: PrioritySet::NONE,
                storm_drops: 0,
                held_back: 0,
                control_unknown: 0,
            }
        };
        Self {
            map: settings.map.clone(),
            lossless: settings.priorities,
            watchdog: settings.watchdog,
            watched_us: 0,
            frame_bytes_max: settings.frame_bytes_max,
            buffer_bytes: plan.buffer_bytes,
            buffer,
            ports: ports.iter().map(flow).collect(),
            current: None,
        }
    }

    pub fn lossless(&self) -> PrioritySet {
        self.lossless
    }

    /// Reads a frame that is for the link itself; `false` if it is not.
    pub fn take_control(&mut self, position: usize, frame: &[u8], now_us: u64) -> bool {
        if !frame::is_mac_control(frame) {
            return false;
        }
        let port = &mut self.ports[position];
        match PauseFrame::parse(frame) {
            Ok(pause) => port.paused.receive(&pause, now_us),
            Err(_) => port.control_unknown += 1,
        }
        true
    }

    /// A frame has arrived at a port.
    #[inline]
    pub fn arrive(&mut self, position: usize, frame: &[u8], now_us: u64) -> Arrival {
        if self.take_control(position, frame, now_us) {
            return Arrival::Control;
        }
        self.accept(position, frame)
    }

    /// A frame has come in that cannot be for the link: one of the controller.
    #[inline]
    pub fn accept(&mut self, position: usize, frame: &[u8]) -> Arrival {
        let priority = self.map.priority(frame);
        let origin = Origin {
            port: position as u16,
            priority,
            bytes: frame.len() as u32,
        };
        let Some((hold, crossing)) = self.buffer.admit(origin) else {
            return Arrival::Refused;
        };
        if crossing == Some(Crossing::Xoff) {
            self.ports[position].sender.stop(priority);
        }
        self.current = Some(hold);
        Arrival::Accepted
    }

    /// The frame that is being processed goes into a queue, as another copy; to be kept
    /// with it. `None` if no frame is being processed.
    #[inline]
    pub fn copy(&mut self) -> Option<FrameHold> {
        if let Some(hold) = self.current {
            self.buffer.add_copy(hold);
        }
        self.current
    }

    /// Queue of the frame that is being processed: what the program says, or, where it
    /// says 0, the frame's own priority.
    #[inline]
    pub fn queue(&self, program_priority: u8) -> u8 {
        match self.current {
            Some(hold) if program_priority == 0 => self.buffer.origin(hold).priority,
            _ => program_priority,
        }
    }

    /// A frame has come out of a queue and is processed again, until [`done`](Self::done).
    #[inline]
    pub fn resume(&mut self, hold: Option<FrameHold>) {
        debug_assert!(self.current.is_none(), "one frame at a time");
        self.current = hold;
    }

    /// Processing has ended: what it has put into queues stays, the rest has left.
    #[inline]
    pub fn done(&mut self) {
        if let Some(hold) = self.current.take() {
            self.release(hold);
        }
    }

    /// A copy is gone without having been processed.
    pub fn release(&mut self, hold: FrameHold) {
        if let Some((origin, Some(Crossing::Xon))) = self.buffer.remove_copy(hold) {
            self.ports[usize::from(origin.port)]
                .sender
                .start(origin.priority);
        }
    }

    /// Queues of a port that may send.
    #[inline]
    pub fn allowed(&self, position: usize, now_us: u64) -> PrioritySet {
        let port = &self.ports[position];
        PrioritySet::ALL.without(port.paused.paused(now_us).without(port.ignored))
    }

    /// Queues of a port whose frames are dropped, because of a storm.
    #[inline]
    pub fn dropping(&self, position: usize) -> PrioritySet {
        self.ports[position].dropping
    }

    /// Frames that had arrived were left where they were.
    pub fn count_held_back(&mut self, position: usize) {
        self.ports[position].held_back += 1;
    }

    /// A frame was dropped because of a storm.
    pub fn count_storm_drop(&mut self, position: usize) {
        self.ports[position].storm_drops += 1;
    }

    /// How many frames of the greatest length a port has room for, whatever their
    /// priority: what else waits in front of the switch is better left there. Lossy
    /// frames are not asked about; they may be dropped.
    pub fn room_frames(&self, position: usize) -> usize {
        let limit = |priority| {
            let ingress = self.buffer.ingress(position, priority);
            let room = ingress
                .thresholds()?
                .limit()
                .saturating_sub(ingress.held_bytes());
            Some(room / u64::from(self.frame_bytes_max))
        };
        let least = self.lossless.iter().filter_map(limit).min();
        least.map_or(usize::MAX, |frames| {
            usize::try_from(frames).unwrap_or(usize::MAX)
        })
    }

    /// Some queue is paused, or was found in a storm: watchdogs have something to watch.
    pub fn needs_watch(&self, now_us: u64) -> bool {
        let watched = |port: &PortFlow| {
            !port.paused.paused(now_us).is_empty() || port.dogs.iter().any(Watchdog::in_storm)
        };
        self.watchdog.is_some() && self.ports.iter().any(watched)
    }

    /// Whether a pause frame is due at a port.
    #[inline]
    pub fn has_pause(&self, position: usize, now_us: u64) -> bool {
        let port = &self.ports[position];
        port.linked && port.sender.is_due(now_us)
    }

    /// The pause frame that is due at a port, to be sent before anything else.
    pub fn poll_pause(&mut self, position: usize, now_us: u64) -> Option<[u8; PAUSE_FRAME_BYTES]> {
        let port = &mut self.ports[position];
        if !port.linked {
            return None;
        }
        let [high, low] = port.number.to_be_bytes();
        // A locally administered address: no other station answers to it.
        let source = [0x02, 0x57, 0x4f, 0x52, high, low];
        port.sender.poll(now_us).map(|frame| frame.to_bytes(source))
    }

    /// The neighbour at a port may be another one.
    pub fn forget_neighbour(&mut self, position: usize, now_us: u64) {
        let port = &mut self.ports[position];
        port.paused.clear(now_us);
        port.sender.clear();
    }

    /// When a port has to be looked at again, if nothing arrives: to refresh a pause, or
    /// because a queue that holds frames may go on.
    pub fn next_us(&self, position: usize, waiting: PrioritySet, now_us: u64) -> Option<u64> {
        let port = &self.ports[position];
        // What is due already waits for room, not for time.
        let refresh_us = port
            .sender
            .next_us()
            .filter(|at_us| port.linked && *at_us > now_us);
        let resumed_us = port.paused.next_expiry_us(waiting, now_us);
        [refresh_us, resumed_us].into_iter().flatten().min()
    }

    /// When the watchdogs want to look, if any frame waits.
    pub fn next_watch_us(&self) -> Option<u64> {
        let settings = self.watchdog?;
        Some(self.watched_us + settings.detect_us / LOOKS)
    }

    /// Lets the watchdogs look, if it is time. `queue` gives the number of frames that wait
    /// at a position and priority, and of those that have ever left.
    pub fn watch(
        &mut self,
        now_us: u64,
        queue: impl Fn(usize, u8) -> (usize, u64),
    ) -> Vec<FlowEvent> {
        let mut events = Vec::new();
        let (Some(settings), Some(next_us)) = (self.watchdog, self.next_watch_us()) else {
            return events;
        };
        if now_us < next_us {
            return events;
        }
        self.watched_us = now_us;
        for (position, port) in self.ports.iter_mut().enumerate() {
            for priority in 0..PRIORITIES as u8 {
                let (waiting, taken) = queue(position, priority);
                let state = QueueState {
                    paused_since_us: port.paused.paused_since_us(priority, now_us),
                    paused_until_us: port.paused.paused_until_us(priority),
                    waiting,
                    taken,
                };
                let dog = &mut port.dogs[usize::from(priority)];
                let Some(finding) = dog.look(&settings, state, now_us) else {
                    continue;
                };
                let set = match settings.action {
                    WatchdogAction::Drop => &mut port.dropping,
                    WatchdogAction::Forward => &mut port.ignored,
                };
                match finding {
                    Finding::Storm => set.insert(priority),
                    Finding::Recovered => set.remove(priority),
                }
                events.push(FlowEvent {
                    position,
                    port: port.number,
                    priority,
                    finding,
                    action: settings.action,
                });
            }
        }
        events
    }

    /// What this switch waits for: paused queues with what is in them, and stopped
    /// neighbours. `queued` gives position, queue and hold of every frame that waits.
    pub fn waits(
        &self,
        now_us: u64,
        queued: impl Iterator<Item = (usize, u8, FrameHold)>,
    ) -> Waits {
        let mut frames: BTreeMap<(usize, u8), Vec<WaitingFrame>> = BTreeMap::new();
        for (position, queue, hold) in queued {
            if self.allowed(position, now_us).contains(queue) {
                continue;
            }
            let origin = self.buffer.origin(hold);
            frames
                .entry((position, queue))
                .or_default()
                .push(WaitingFrame {
                    ingress_port: self.ports[usize::from(origin.port)].number,
                    ingress_priority: origin.priority,
                    frame: hold.number(),
                    bytes: u64::from(origin.bytes),
                });
        }
        let paused = frames.into_iter().map(|((position, priority), waiting)| {
            let port = &self.ports[position];
            PausedQueue {
                port: port.number,
                priority,
                since_us: port
                    .paused
                    .paused_since_us(priority, now_us)
                    .unwrap_or(now_us),
                waiting,
            }
        });
        let mut stopped = Vec::new();
        for (position, port) in self.ports.iter().enumerate() {
            for priority in self.lossless.iter() {
                let ingress = self.buffer.ingress(position, priority);
                if let (true, Some(thresholds)) = (ingress.is_stopped(), ingress.thresholds()) {
                    stopped.push(StoppedIngress {
                        port: port.number,
                        priority,
                        held_bytes: ingress.held_bytes(),
                        xon_bytes: thresholds.xon,
                    });
                }
            }
        }
        Waits {
            paused: paused.collect(),
            stopped,
        }
    }

    /// Size of the whole buffer.
    pub fn buffer_bytes(&self) -> u64 {
        self.buffer_bytes
    }

    pub fn buffer(&self) -> &SharedBuffer {
        &self.buffer
    }

    /// Queues of a port that are paused now, and those in a storm.
    pub fn paused(&self, position: usize, now_us: u64) -> (PrioritySet, PrioritySet) {
        let port = &self.ports[position];
        let storm =
            (0..PRIORITIES as u8).filter(|priority| port.dogs[usize::from(*priority)].in_storm());
        (port.paused.paused(now_us), storm.collect())
    }

    /// Priorities the neighbour at a port is stopped from sending.
    pub fn stopped(&self, position: usize) -> PrioritySet {
        self.ports[position].sender.stopped()
    }

    pub fn counts(&self, position: usize) -> FlowCounts {
        let port = &self.ports[position];
        let mut counts = FlowCounts {
            pauses_received: port.paused.pauses(),
            resumes_received: port.paused.resumes(),
            control_unknown: port.control_unknown,
            pauses_sent: port.sender.frames(),
            pauses_refreshed: port.sender.refreshes(),
            storms: port.dogs.iter().map(Watchdog::storms).sum(),
            storm_drops: port.storm_drops,
            held_back: port.held_back,
            ..FlowCounts::default()
        };
        for priority in 0..PRIORITIES as u8 {
            let ingress = self.buffer.ingress(position, priority);
            if ingress.thresholds().is_some() {
                counts.headroom_full += ingress.refused();
            } else {
                counts.lossy_full += ingress.refused();
            }
        }
        counts
    }
}
