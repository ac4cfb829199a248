//! The switches of a thread, or of a few threads that share one.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::clock::Clock;
use super::control::Command;
use super::engine::Engine;
use super::input::Input;
use super::lane::{Lane, Sleep, spread};
use super::mailbox::Mailbox;
use wormcast_switch_ports::readiness::Woken;
use wormcast_switch_ports::{ReceiveRing, TransmitQueue};

/// Operations that run before packets have their turn again.
const COMMANDS_A_TURN: usize = 16;

/// How often interfaces are looked after.
const MAINTENANCE_US: u64 = 250_000;

/// What a letter in the mailbox of a worker means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Letter {
    /// An input of a switch has frames.
    Frames { engine: usize, input: usize },
    /// The link of a port has room again.
    Room { engine: usize, port: usize },
}

/// Switches that share a thread, or one switch whose threads share it ([`Lane`]).
///
/// Switches that have something to do are in a queue and have their turns in order, so a
/// flood at one of them delays the others by no more than a turn each; those that have
/// nothing to do are not looked at.
pub(super) struct Worker {
    clock: Clock,
    members: Vec<Member>,
    /// Inputs that nobody announces: interfaces.
    watched: Vec<Watched>,
    letters: Vec<Letter>,
    mailbox: Arc<Mailbox>,
    /// Of the threads but the first, which has the mailbox.
    bells: Vec<Arc<Mailbox>>,
    commands: mpsc::Receiver<Command>,
    /// The earliest `next_us` of the members, or earlier.
    next_us: u64,
    /// When the first thread wakes by itself, if it sleeps.
    leader_wakes_us: u64,
    maintained_us: u64,
    /// A socket may have an error.
    has_error: bool,
}

/// A switch of the worker.
struct Member {
    engine: Engine,
    awaits_socket: bool,
    next_us: u64,
}

/// An input that is an interface.
struct Watched {
    member: usize,
    input: usize,
    /// Frames when inputs were last spread over the threads.
    frames_before: u64,
}

/// What a thread has done in one round.
pub(super) struct Round {
    /// Time of its turns.
    pub(super) now_us: u64,
    /// Frames they had.
    pub(super) frames: usize,
    /// There is nothing more to do.
    pub(super) is_idle: bool,
    /// There may be further commands.
    pub(super) reachable: bool,
}

/// No time: nothing is due.
const NEVER: u64 = u64::MAX;

/// Inputs that are interfaces.
fn watched<'a>(engines: impl Iterator<Item = &'a Engine>) -> Vec<Watched> {
    let of = |(member, engine): (usize, &'a Engine)| {
        let inputs = engine.inputs.iter().enumerate();
        let inputs = inputs.filter(|(_, input)| input.is_interface());
        inputs.map(move |(input, state)| Watched {
            member,
            input,
            frames_before: state.ring_frames(),
        })
    };
    engines.enumerate().flat_map(of).collect()
}

impl Worker {
    /// `letters` tells what each letter of the mailbox means; `bells` are those of further
    /// threads, which only a worker of a single switch has.
    pub(super) fn new(
        clock: Clock,
        engines: Vec<Engine>,
        letters: Vec<Letter>,
        mailbox: Arc<Mailbox>,
        bells: Vec<Arc<Mailbox>>,
        commands: mpsc::Receiver<Command>,
    ) -> Self {
        let member = |engine| Member {
            engine,
            awaits_socket: false,
            next_us: NEVER,
        };
        let watched = watched(engines.iter());
        let mut worker = Self {
            clock,
            members: engines.into_iter().map(member).collect(),
            watched,
            letters,
            mailbox,
            bells,
            commands,
            next_us: NEVER,
            leader_wakes_us: 0,
            maintained_us: 0,
            has_error: false,
        };
        let lanes = worker.bells.len() + 1;
        let places = (0..worker.watched.len()).map(|number| number % lanes);
        worker.give_out(&places.collect::<Vec<usize>>());
        worker
    }

    /// What there is to do for a thread: one turn for each switch that is ready.
    pub(super) fn round(&mut self, lane: &mut Lane) -> Round {
        self.land(lane);
        if lane.leads() && self.has_error {
            self.maintain();
        }
        let (mut ran, mut reachable) = (0, true);
        if lane.leads() {
            (ran, reachable) = self.run_commands(lane);
        }
        self.look_for_frames(lane);
        let now_us = self.clock.now_us();
        if lane.leads() {
            self.read_mailbox(lane);
            self.wake_due(lane, now_us);
        }
        let frames = self.turns(lane, now_us);
        if lane.leads() && now_us - self.maintained_us >= MAINTENANCE_US {
            self.maintain();
        }
        Round {
            now_us,
            frames,
            is_idle: lane.ready() == 0 && ran == 0,
            reachable,
        }
    }

    /// Takes back the ports that the thread has sent for.
    fn land(&mut self, lane: &mut Lane) {
        let now_us = self.clock.now_us();
        let mut departures = std::mem::take(&mut lane.departures);
        for departed in departures.drain(..) {
            let engine = &mut self.members[departed.member].engine;
            engine.land(departed.port, departed.departure, now_us);
            lane.make_ready(departed.member);
        }
        lane.departures = departures;
    }

    /// Gives the number of operations that ran, and whether there can be more.
    fn run_commands(&mut self, lane: &mut Lane) -> (usize, bool) {
        for ran in 0..COMMANDS_A_TURN {
            match self.commands.try_recv() {
                Ok(command) => {
                    let engine = &mut self.members[command.engine].engine;
                    engine.traffic.now_us = self.clock.now_us();
                    (command.run)(engine);
                    if std::mem::take(&mut engine.inputs_changed) {
                        let engines = self.members.iter().map(|member| &member.engine);
                        self.watched = watched(engines);
                        self.bells.iter().for_each(|bell| bell.ring());
                    }
                    lane.make_ready(command.engine);
                }
                Err(mpsc::error::TryRecvError::Empty) => return (ran, true),
                Err(mpsc::error::TryRecvError::Disconnected) => return (ran, false),
            }
        }
        (COMMANDS_A_TURN, true)
    }

    fn look_for_frames(&mut self, lane: &mut Lane) {
        for &Watched { member, input, .. } in &self.watched {
            let engine = &mut self.members[member].engine;
            let input_state = &engine.inputs[input];
            if input_state.lane != lane.number {
                continue;
            }
            let blocked_us = input_state.blocked_until_us;
            let is_blocked = blocked_us > 0 && blocked_us > self.clock.now_us();
            if !is_blocked && input_state.is_ready() {
                engine.frames_at(input);
                lane.make_ready(member);
            }
        }
    }

    fn read_mailbox(&mut self, lane: &mut Lane) {
        let mailbox = Arc::clone(&self.mailbox);
        mailbox.take(|letter| match self.letters[letter] {
            Letter::Frames { engine, input } => {
                self.members[engine].engine.frames_at(input);
                lane.make_ready(engine);
            }
            Letter::Room { engine, port } => {
                self.members[engine].engine.room_at(port);
                lane.make_ready(engine);
            }
        });
    }

    /// Members whose time has come are ready.
    fn wake_due(&mut self, lane: &mut Lane, now_us: u64) {
        if now_us < self.next_us {
            return;
        }
        self.next_us = NEVER;
        for member in 0..self.members.len() {
            let due_us = self.members[member].next_us;
            if due_us <= now_us {
                lane.make_ready(member);
            } else {
                self.next_us = self.next_us.min(due_us);
            }
        }
    }

    /// One turn for each member that is ready; gives the frames they had.
    fn turns(&mut self, lane: &mut Lane, now_us: u64) -> usize {
        let (mut frames, mut now_us) = (0, now_us);
        for number in 0..lane.ready() {
            let Some(position) = lane.next_ready() else {
                break;
            };
            if number > 0 {
                now_us = self.clock.now_us();
            }
            let member = &mut self.members[position];
            let turn = member.engine.turn_of(now_us, position, lane);
            frames += turn.received.max(turn.sent);
            let awaits_now = turn.awaits_socket && !member.awaits_socket;
            member.awaits_socket = turn.awaits_socket;
            member.next_us = turn.next_us.unwrap_or(NEVER);
            self.next_us = self.next_us.min(member.next_us);
            if turn.more {
                lane.make_ready(position);
            }
            if !lane.leads() && (awaits_now || member.next_us < self.leader_wakes_us) {
                self.mailbox.ring();
            }
        }
        frames
    }

    /// What a thread without anything to do waits for; none if it had better go on.
    pub(super) fn fall_asleep(&mut self, lane: &Lane, bell: &Mailbox) -> Option<Sleep> {
        let now_us = self.clock.now_us();
        let mut wakes_us = NEVER;
        for member in &mut self.members {
            member.engine.flush_captures();
        }
        if lane.leads() {
            let waits = self
                .members
                .iter()
                .any(|member| member.engine.renewal_waits);
            if waits || self.lacks_interface() {
                wakes_us = self.maintained_us + MAINTENANCE_US;
            }
            wakes_us = wakes_us.min(self.next_us);
        }
        if wakes_us <= now_us || !bell.fall_asleep() {
            return None;
        }
        if lane.leads() {
            if !self.commands.is_empty() || self.commands.is_closed() {
                bell.wake_up(false);
                return None;
            }
            self.leader_wakes_us = wakes_us;
        }
        Some(Sleep {
            readable: self.received_by(lane, now_us),
            writable: self.awaited_by(lane),
            timeout_us: (wakes_us != NEVER).then(|| wakes_us - now_us),
        })
    }

    /// Sockets that bring frames for a thread.
    fn received_by(&self, lane: &Lane, now_us: u64) -> Vec<Arc<OwnedFd>> {
        let inputs = self.watched.iter();
        let inputs = inputs.map(|watched| self.input(watched));
        let inputs = inputs.filter(|input| input.lane == lane.number);
        let inputs = inputs.filter(|input| input.blocked_until_us <= now_us);
        let rings = inputs.filter_map(Input::ring);
        rings.map(ReceiveRing::socket).collect()
    }

    /// Sockets that are to take frames again.
    fn awaited_by(&self, lane: &Lane) -> Vec<Arc<OwnedFd>> {
        if !lane.leads() {
            return Vec::new();
        }
        let waiting = self.members.iter().filter(|member| member.awaits_socket);
        let awaited = waiting.flat_map(|member| member.engine.awaited());
        awaited.map(TransmitQueue::socket).collect()
    }

    /// A thread is awake again.
    pub(super) fn awake(&mut self, lane: &mut Lane, woken: Woken) {
        self.has_error |= woken.error;
        if !lane.leads() {
            if woken.error {
                self.mailbox.ring();
            }
            return;
        }
        self.leader_wakes_us = 0;
        for member in 0..self.members.len() {
            if self.members[member].awaits_socket {
                lane.make_ready(member);
            }
        }
    }

    /// The first thread ends, and with it all others.
    pub(super) fn end(&mut self) {
        for member in &mut self.members {
            member.engine.flush_captures();
        }
        self.bells.iter().for_each(|bell| bell.stop());
    }

    fn input(&self, watched: &Watched) -> &Input {
        &self.members[watched.member].engine.inputs[watched.input]
    }

    fn lacks_interface(&self) -> bool {
        let mut inputs = self.watched.iter();
        inputs.any(|watched| self.input(watched).ring().is_none())
    }

    /// Looks after the interfaces of all members.
    fn maintain(&mut self) {
        self.maintained_us = self.clock.now_us();
        self.has_error = false;
        let mut last = None;
        let mut renewed = false;
        for position in 0..self.watched.len() {
            let member = self.watched[position].member;
            if last.replace(member) != Some(member) {
                renewed |= self.members[member].engine.maintain();
            }
        }
        if !self.bells.is_empty() && (self.spread() || renewed) {
            self.bells.iter().for_each(|bell| bell.ring());
        }
    }

    /// Spreads the inputs over the threads by what they had of late; whether one moved.
    fn spread(&mut self) -> bool {
        let now: Vec<u64> = self
            .watched
            .iter()
            .map(|watched| self.input(watched).ring_frames())
            .collect();
        let lanes: Vec<usize> = self
            .watched
            .iter()
            .map(|watched| self.input(watched).lane)
            .collect();
        let before = self.watched.iter().map(|watched| watched.frames_before);
        // A ring that was opened again begins where the last one ended, an interface of
        // another port at 0.
        let loads: Vec<u64> = now
            .iter()
            .zip(before)
            .map(|(now, before)| now.saturating_sub(before))
            .collect();
        for (watched, frames) in self.watched.iter_mut().zip(now) {
            watched.frames_before = frames;
        }
        let better = spread(&loads, &lanes, self.bells.len() + 1);
        better.is_some_and(|lanes| {
            self.give_out(&lanes);
            true
        })
    }

    /// Gives each input that is an interface to a thread.
    fn give_out(&mut self, lanes: &[usize]) {
        for (watched, lane) in self.watched.iter().zip(lanes) {
            self.members[watched.member].engine.inputs[watched.input].lane = *lane;
        }
    }
}
