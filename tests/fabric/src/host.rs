//! A host: the engine, and what an agent does with it.

use crate::application::Applications;
use crate::planner::HostPlan;
use wormcast_protocol::{Engine, EngineConfig, Event, Instant};
use wormcast_wire::HostId;

/// A host of the fabric.
pub struct Host {
    /// Its number.
    pub id: u16,
    /// The engine of its agent; none while the agent is not running.
    pub engine: Option<Engine>,
    /// What runs on it.
    pub applications: Applications,
    /// Events the engine gave, with their times, except those a reader or writer acts on.
    pub events: Vec<(u64, Event)>,
    /// Next time to act, µs.
    pub wake_us: Option<u64>,
    /// Incarnation of the next agent.
    pub incarnation: u32,
    plan: Option<HostPlan>,
    buf: Vec<u8>,
}

impl Host {
    /// A host whose agent is not running.
    pub fn new(id: u16, mtu: usize) -> Host {
        Host {
            id,
            engine: None,
            applications: Applications::default(),
            events: Vec::new(),
            wake_us: None,
            incarnation: 1_000,
            plan: None,
            buf: vec![0; mtu + 14],
        }
    }

    /// Starts the agent, which gets its plan anew.
    pub fn start(&mut self, mut config: EngineConfig, now: Instant) {
        config.host = HostId(self.id);
        config.incarnation = self.incarnation;
        self.incarnation += 10;
        self.engine = Some(Engine::new(config).expect("a valid configuration"));
        for writer in self.applications.writers.values_mut() {
            writer.restart();
        }
        for reader in self.applications.readers.values_mut() {
            reader.restart();
        }
        if let Some(plan) = self.plan.clone() {
            self.apply(plan, now);
        }
    }

    /// The agent gets a plan.
    pub fn apply(&mut self, plan: HostPlan, now: Instant) {
        if let Some(engine) = &mut self.engine {
            engine.set_routes(plan.routes.clone(), now).expect("routes");
            engine
                .set_tree_routes(plan.tree_routes.clone(), now)
                .expect("tree routes");
            let gone: Vec<_> = engine
                .groups()
                .map(|group| group.id)
                .filter(|id| !plan.groups.iter().any(|group| group.id == *id))
                .collect();
            for group in gone {
                engine.remove_group(group, now);
                // Its applications are told, and what they have open is closed.
                let readers = &mut self.applications.readers;
                readers.retain(|(of, _), _| *of != group.0);
            }
            for group in plan.groups.clone() {
                engine.set_group(group, now).expect("a group plan");
            }
        }
        self.plan = Some(plan);
    }

    /// Forgets the plan, as an agent does that the controller has not reached.
    pub fn forget_plan(&mut self) {
        self.plan = None;
    }

    /// How often this host, as an origin, has finished.
    pub fn finished_count(&self) -> usize {
        self.events
            .iter()
            .filter(|(_, event)| matches!(event, Event::Finished { .. }))
            .count()
    }

    /// Takes a frame; rejects are counted by the engine.
    pub fn receive(&mut self, frame: &[u8], now: Instant) {
        if let Some(engine) = &mut self.engine {
            let _ = engine.handle_frame(frame, now);
        }
    }

    /// One turn of the agent's loop: timers, applications, frames to send.
    pub fn run(&mut self, now: Instant, mut transmit: impl FnMut(&[u8])) {
        let Some(engine) = &mut self.engine else {
            self.wake_us = None;
            return;
        };
        if engine.poll_timeout().is_some_and(|at| at <= now) {
            engine.handle_timeout(now);
        }
        let mut read_again_us: Option<u64>;
        loop {
            for (group, writer) in &mut self.applications.writers {
                writer.run(engine, *group, self.id, now);
            }
            while let Some(event) = engine.poll_event() {
                match event {
                    Event::Readable { group, origin } => {
                        self.applications
                            .readers
                            .entry((group.0, origin.0))
                            .or_default();
                    }
                    Event::MessageLost { group, origin, .. } => {
                        let readers = &mut self.applications.readers;
                        readers.entry((group.0, origin.0)).or_default().lose();
                        self.events.push((now.as_micros(), event));
                    }
                    Event::Writable { .. } => {}
                    other => self.events.push((now.as_micros(), other)),
                }
            }
            read_again_us = None;
            for ((group, origin), reader) in &mut self.applications.readers {
                let again = reader.run(engine, *group, *origin, &self.applications.policy, now);
                read_again_us = [read_again_us, again].into_iter().flatten().min();
            }
            let mut sent = false;
            while let Some(frame) = engine.poll_transmit(now, &mut self.buf) {
                transmit(&self.buf[..frame.length]);
                sent = true;
            }
            if !sent {
                break;
            }
        }
        let wake = engine.poll_timeout().map(Instant::as_micros);
        self.wake_us = [wake, read_again_us]
            .into_iter()
            .flatten()
            .min()
            .map(|at| at.max(now.as_micros() + 1));
    }
}
