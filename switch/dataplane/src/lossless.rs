//! Flow control in the data plane: what [`FlowControl`] decides, done.

use std::collections::{BTreeMap, VecDeque};

use super::flow_control::{Lossless, LosslessSnapshot, PauseReport, QueueReport, StormReport};
use super::port::HeldPacket;
use super::switch::{Switch, Turn};
use super::traffic::TrafficManager;
use crate::log::Level;
use wormcast_switch_flow::cycle::Waits;
use wormcast_switch_flow::watchdog::Finding;
use wormcast_switch_flow::{
    Arrival, FlowControl, FlowEvent, FrameHold, PRIORITIES, PrioritySet, QueueSettings,
    WatchdogAction,
};
use wormcast_switch_pipeline::{PortId, Queued};

/// Storms that are remembered for reports; the oldest is forgotten.
const STORMS_MAX: usize = 64;

impl TrafficManager {
    /// Sets how queues behave; says what cannot be.
    pub(super) fn set_queueing(
        &mut self,
        queueing: &QueueSettings,
        priorities: u8,
    ) -> Result<(), String> {
        self.ecn_threshold = queueing.ecn_threshold.unwrap_or(u32::MAX);
        let Some(settings) = &queueing.lossless else {
            return Ok(());
        };
        let highest = settings.map.used().with(settings.priorities).iter().max();
        if highest >= Some(priorities) {
            return Err(format!(
                "--lossless needs a queue for each priority up to {}: --priority-queues is {priorities}",
                highest.unwrap_or(0)
            ));
        }
        let ports: Vec<(u16, bool)> = self
            .ports
            .iter()
            .map(|port| (port.number.0, port.has_neighbour()))
            .collect();
        let flow = FlowControl::new(settings, &ports).map_err(|error| error.to_string())?;
        self.lossless = Some(Box::new(Lossless {
            flow,
            storms: VecDeque::new(),
        }));
        Ok(())
    }

    /// Frames that may be taken in at a port.
    #[inline]
    pub(super) fn room_frames(&self, position: usize) -> usize {
        match &self.lossless {
            Some(lossless) => lossless.flow.room_frames(position),
            None => usize::MAX,
        }
    }

    /// Frames were left in front of a port.
    pub(super) fn count_held_back(&mut self, position: usize) {
        if let Some(lossless) = &mut self.lossless {
            lossless.flow.count_held_back(position);
        }
    }

    /// A frame waits: a pause counts at once, whatever waits before it, for what waits may
    /// be kept from coming in by the very queues it lets go.
    #[inline]
    pub(super) fn take_control(&mut self, position: usize, frame: &[u8]) -> bool {
        let now_us = self.now_us;
        match &mut self.lossless {
            None => false,
            Some(lossless) => lossless.flow.take_control(position, frame, now_us),
        }
    }

    /// A frame has arrived; `false` if it goes no further.
    #[inline]
    pub(super) fn arrive(&mut self, position: usize, frame: &[u8]) -> bool {
        let now_us = self.now_us;
        match &mut self.lossless {
            None => true,
            Some(lossless) => lossless.flow.arrive(position, frame, now_us) == Arrival::Accepted,
        }
    }

    /// A frame of the controller; `false` if there is no room for it.
    pub(super) fn accept(&mut self, cpu_port: PortId, frame: &[u8]) -> bool {
        let position = self.position(cpu_port);
        match &mut self.lossless {
            None => true,
            Some(lossless) => lossless.flow.accept(position, frame) == Arrival::Accepted,
        }
    }

    /// A packet has come out of its queue.
    #[inline]
    pub(super) fn resume(&mut self, hold: Option<FrameHold>) {
        if let Some(lossless) = &mut self.lossless {
            lossless.flow.resume(hold);
        }
    }

    /// The frame in the pipeline is done with.
    #[inline]
    pub(super) fn done(&mut self) {
        if let Some(lossless) = &mut self.lossless {
            lossless.flow.done();
        }
    }

    /// A packet was thrown away.
    pub(super) fn release(&mut self, hold: Option<FrameHold>) {
        if let (Some(lossless), Some(hold)) = (&mut self.lossless, hold) {
            lossless.flow.release(hold);
        }
    }

    /// The neighbour at a port may be another one.
    pub(super) fn forget_neighbour(&mut self, position: usize) {
        let now_us = self.now_us;
        if let Some(lossless) = &mut self.lossless {
            lossless.flow.forget_neighbour(position, now_us);
        }
    }

    /// Queues of a port that may send.
    #[inline]
    pub(super) fn allowed(&self, position: usize) -> PrioritySet {
        let allowed = match &self.lossless {
            None => PrioritySet::ALL,
            Some(lossless) => lossless.flow.allowed(position, self.now_us),
        };
        match &self.ports[position].pace {
            None => allowed,
            Some(pace) => allowed.without(pace.held(self.now_us)),
        }
    }

    /// Queues a packet of the frame in the pipeline.
    pub(super) fn enqueue_held(&mut self, packet: Queued) -> Result<(), Queued> {
        let (now_us, bytes) = (self.now_us, packet.length_bytes());
        let position = self.position(packet.port());
        let Some(lossless) = &mut self.lossless else {
            return Err(packet);
        };
        let flow = &mut lossless.flow;
        let priority = flow.queue(packet.priority());
        if flow.dropping(position).contains(priority) {
            flow.count_storm_drop(position);
            return Err(packet);
        }
        let hold = flow.copy();
        self.active.insert(position);
        let queue = &mut self.ports[position].queue;
        let pushed = queue.push(priority, HeldPacket { packet, hold }, bytes, now_us);
        pushed.map_err(|held| {
            self.release(held.hold);
            held.packet
        })
    }
}

impl Switch {
    /// Sends the pause frames that are due.
    pub(super) fn send_pauses(&mut self, turn: &mut Turn) {
        let now_us = self.traffic.now_us;
        let unix_us = self.traffic.unix_us();
        let Some(lossless) = &mut self.traffic.lossless else {
            return;
        };
        for (position, port) in self.traffic.ports.iter_mut().enumerate() {
            if !lossless.flow.has_pause(position, now_us) {
                continue;
            }
            if !port.has_room(now_us) {
                // It is notified when there is room, or tries again.
                self.traffic.active.insert(position);
                turn.wake_at(port.next_us(PrioritySet::ALL));
                continue;
            }
            if let Some(frame) = lossless.flow.poll_pause(position, now_us) {
                port.send_first(&frame, now_us, unix_us);
            }
        }
    }

    /// Lets the watchdogs look, does what they say, and finds out when flow control wants
    /// the next turn.
    pub(super) fn watch(&mut self, turn: &mut Turn) {
        let now_us = self.traffic.now_us;
        let Some(lossless) = &mut self.traffic.lossless else {
            return;
        };
        let ports = &self.traffic.ports;
        let events = lossless.flow.watch(now_us, |position, priority| {
            let counts = ports[position].queue.counts(priority);
            (counts.frames, counts.frames_out)
        });
        for event in events {
            self.handle_storm(&event);
        }
        let Some(lossless) = &self.traffic.lossless else {
            return;
        };
        for (position, port) in self.traffic.ports.iter().enumerate() {
            let waiting = port.queue.filled();
            turn.wake_at(lossless.flow.next_us(position, waiting, now_us));
        }
        if lossless.flow.needs_watch(now_us) {
            turn.wake_at(lossless.flow.next_watch_us());
        }
    }

    fn handle_storm(&mut self, event: &FlowEvent) {
        let FlowEvent { port, priority, .. } = *event;
        let now_us = self.traffic.now_us;
        if event.finding == Finding::Recovered {
            let name = self.port_name(port);
            let text = format_args!("{name} priority {priority}: the pause storm is over");
            self.log.write(Level::Warn, text);
            if let Some(lossless) = &mut self.traffic.lossless {
                let of_queue = |storm: &&mut StormReport| {
                    storm.port == port && storm.priority == priority && storm.recovered_us.is_none()
                };
                if let Some(storm) = lossless.storms.iter_mut().rev().find(of_queue) {
                    storm.recovered_us = Some(now_us);
                }
            }
            return;
        }
        let behind = self.behind(event.position, priority);
        let waiting = self.traffic.ports[event.position]
            .queue
            .counts(priority)
            .frames;
        let names: Vec<String> = behind.iter().map(u16::to_string).collect();
        self.log.write(
            Level::Warn,
            format_args!(
                "{} priority {priority}: paused by its neighbour for too long, a pause \
                 storm or a deadlock: {waiting} packets wait, from ports {}; action: {}",
                self.port_name(port),
                names.join(", "),
                event.action
            ),
        );
        let report = StormReport {
            found_us: now_us,
            recovered_us: None,
            port,
            priority,
            waiting,
            behind,
            action: event.action.to_string(),
        };
        if let Some(lossless) = &mut self.traffic.lossless {
            if lossless.storms.len() == STORMS_MAX {
                lossless.storms.pop_front();
            }
            lossless.storms.push_back(report);
        }
        if event.action == WatchdogAction::Drop {
            self.drop_queue(event.position, priority);
        }
        self.traffic.active.insert(event.position);
    }

    /// Throws away what waits in a queue.
    fn drop_queue(&mut self, position: usize, priority: u8) {
        let queue = PrioritySet::of(priority);
        while let Some(waiting) = self.traffic.ports[position].queue.pop_of(queue) {
            self.traffic.release(waiting.item.hold);
            if let Some(lossless) = &mut self.traffic.lossless {
                lossless.flow.count_storm_drop(position);
            }
            if let Some(pipeline) = &mut self.pipeline {
                pipeline.recycle(waiting.item.packet);
            }
        }
    }

    /// Ports by which the packets of a queue came in.
    fn behind(&self, position: usize, priority: u8) -> Vec<u16> {
        let Some(lossless) = &self.traffic.lossless else {
            return Vec::new();
        };
        let waiting = self.traffic.ports[position].queue.waiting();
        let mut ports: Vec<u16> = waiting
            .filter(|(queue, _)| *queue == priority)
            .filter_map(|(_, held)| held.hold)
            .map(|hold| usize::from(lossless.flow.buffer().origin(hold).port))
            .map(|position| self.traffic.ports[position].number.0)
            .collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// What this switch waits for; nothing if it is not lossless.
    pub fn waits(&self) -> Waits {
        let Some(lossless) = &self.traffic.lossless else {
            return Waits::default();
        };
        let queued = self
            .traffic
            .ports
            .iter()
            .enumerate()
            .flat_map(|(position, port)| {
                let waiting = port.queue.waiting();
                waiting.filter_map(move |(priority, held)| Some((position, priority, held.hold?)))
            });
        lossless.flow.waits(self.traffic.now_us, queued)
    }

    pub(super) fn lossless_snapshot(&self) -> Option<LosslessSnapshot> {
        let Lossless { flow, storms } = &**self.traffic.lossless.as_ref()?;
        let now_us = self.traffic.now_us;
        let mut snapshot = LosslessSnapshot {
            buffer_bytes: flow.buffer_bytes(),
            held_bytes: flow.buffer().held_bytes(),
            held_bytes_max: flow.buffer().held_bytes_max(),
            copies_max: flow.buffer().copies_max(),
            storms: storms.iter().cloned().collect(),
            ..LosslessSnapshot::default()
        };
        let mut queues = BTreeMap::new();
        for (position, port) in self.traffic.ports.iter().enumerate() {
            if !port.has_neighbour() {
                continue;
            }
            let number = port.number.0;
            snapshot.ports.push(PauseReport {
                port: number,
                counts: flow.counts(position),
            });
            let (paused, storm) = flow.paused(position, now_us);
            for priority in 0..PRIORITIES as u8 {
                let ingress = flow.buffer().ingress(position, priority);
                let Some(thresholds) = ingress.thresholds() else {
                    continue;
                };
                let report = QueueReport {
                    port: number,
                    priority,
                    held_bytes: ingress.held_bytes(),
                    held_bytes_max: ingress.held_bytes_max(),
                    limit_bytes: thresholds.limit(),
                    stopped: ingress.is_stopped(),
                    paused: paused.contains(priority),
                    storm: storm.contains(priority),
                    headroom_full: ingress.refused(),
                };
                queues.insert((number, priority), report);
            }
        }
        snapshot.ports.sort_by_key(|port| port.port);
        snapshot.queues = queues.into_values().collect();
        Some(snapshot)
    }
}
