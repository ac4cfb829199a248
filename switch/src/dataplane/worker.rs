//! A thread that runs switches.

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::clock::Clock;
use super::control::Command;
use super::engine::Engine;
use super::load::Load;
use super::mailbox::Mailbox;
use crate::ports::readiness::Interest;
use crate::ports::wait;

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

/// Switches that share a thread.
///
/// Switches that have something to do are in a queue and have their turns in order, so a
/// flood at one of them delays the others by no more than a turn each; those that have
/// nothing to do are not looked at.
pub(super) struct Worker {
    clock: Clock,
    members: Vec<Member>,
    /// Positions of `members` that have something to do.
    ready: VecDeque<usize>,
    /// Inputs that nobody announces: interfaces, as (member, input).
    watched: Vec<(usize, usize)>,
    letters: Vec<Letter>,
    mailbox: Arc<Mailbox>,
    commands: mpsc::Receiver<Command>,
    /// The earliest `next_us` of the members, or earlier.
    next_us: u64,
    maintained_us: u64,
    load: Load,
}

/// A switch of the worker.
struct Member {
    engine: Engine,
    is_ready: bool,
    awaits_socket: bool,
    next_us: u64,
}

/// No time: nothing is due.
const NEVER: u64 = u64::MAX;

/// Inputs that are interfaces, as (member, input).
fn watched<'a>(engines: impl Iterator<Item = &'a Engine>) -> Vec<(usize, usize)> {
    let of = |(member, engine): (usize, &'a Engine)| {
        let inputs = engine.inputs.iter().enumerate();
        let inputs = inputs.filter(|(_, input)| input.is_interface());
        inputs.map(move |(input, _)| (member, input))
    };
    engines.enumerate().flat_map(of).collect()
}

impl Worker {
    /// `letters` tells what each letter of the mailbox means.
    pub(super) fn new(
        clock: Clock,
        load: Load,
        engines: Vec<Engine>,
        letters: Vec<Letter>,
        mailbox: Arc<Mailbox>,
        commands: mpsc::Receiver<Command>,
    ) -> Self {
        let watched = watched(engines.iter());
        let member = |engine| Member {
            engine,
            is_ready: false,
            awaits_socket: false,
            next_us: NEVER,
        };
        Self {
            clock,
            members: engines.into_iter().map(member).collect(),
            ready: VecDeque::new(),
            watched,
            letters,
            mailbox,
            commands,
            next_us: NEVER,
            maintained_us: 0,
            load,
        }
    }

    /// Works until it is told to stop, or nobody can tell it anything any more.
    pub(super) fn run(mut self) {
        let mut reachable = true;
        while reachable && !self.mailbox.is_stopping() {
            let ran;
            (ran, reachable) = self.run_commands();
            self.look_for_frames();
            self.read_mailbox();
            let now_us = self.clock.now_us();
            self.wake_due(now_us);
            let frames = self.turns();
            if now_us - self.maintained_us >= MAINTENANCE_US {
                self.maintain();
            }
            self.load.count(frames as u64, now_us);
            let idle = self.ready.is_empty() && ran == 0;
            if idle && self.load.may_sleep(now_us) && self.sleep() {
                self.maintain();
            }
        }
        for member in &mut self.members {
            member.engine.flush_captures();
        }
    }

    /// Gives the number of operations that ran, and whether there can be more.
    fn run_commands(&mut self) -> (usize, bool) {
        for ran in 0..COMMANDS_A_TURN {
            match self.commands.try_recv() {
                Ok(command) => {
                    let engine = &mut self.members[command.engine].engine;
                    engine.traffic.now_us = self.clock.now_us();
                    (command.run)(engine);
                    if std::mem::take(&mut engine.inputs_changed) {
                        let engines = self.members.iter().map(|member| &member.engine);
                        self.watched = watched(engines);
                    }
                    self.make_ready(command.engine);
                }
                Err(mpsc::error::TryRecvError::Empty) => return (ran, true),
                Err(mpsc::error::TryRecvError::Disconnected) => return (ran, false),
            }
        }
        (COMMANDS_A_TURN, true)
    }

    fn look_for_frames(&mut self) {
        for position in 0..self.watched.len() {
            let (member, input) = self.watched[position];
            let engine = &mut self.members[member].engine;
            let input_state = &engine.inputs[input];
            let blocked_us = input_state.blocked_until_us;
            let is_blocked = blocked_us > 0 && blocked_us > self.clock.now_us();
            if !is_blocked && input_state.is_ready() {
                engine.frames_at(input);
                self.make_ready(member);
            }
        }
    }

    fn read_mailbox(&mut self) {
        let mailbox = Arc::clone(&self.mailbox);
        mailbox.take(|letter| match self.letters[letter] {
            Letter::Frames { engine, input } => {
                self.members[engine].engine.frames_at(input);
                self.make_ready(engine);
            }
            Letter::Room { engine, port } => {
                self.members[engine].engine.room_at(port);
                self.make_ready(engine);
            }
        });
    }

    /// Members whose time has come are ready.
    fn wake_due(&mut self, now_us: u64) {
        if now_us < self.next_us {
            return;
        }
        self.next_us = NEVER;
        for member in 0..self.members.len() {
            let due_us = self.members[member].next_us;
            if due_us <= now_us {
                self.make_ready(member);
            } else {
                self.next_us = self.next_us.min(due_us);
            }
        }
    }

    fn make_ready(&mut self, member: usize) {
        if !std::mem::replace(&mut self.members[member].is_ready, true) {
            self.ready.push_back(member);
        }
    }

    /// One turn for each member that is ready; gives the frames they had.
    fn turns(&mut self) -> usize {
        let mut frames = 0;
        for _ in 0..self.ready.len() {
            let Some(position) = self.ready.pop_front() else {
                break;
            };
            let member = &mut self.members[position];
            let turn = member.engine.turn(self.clock.now_us());
            frames += turn.received.max(turn.sent);
            member.is_ready = turn.more;
            member.awaits_socket = turn.awaits_socket;
            member.next_us = turn.next_us.unwrap_or(NEVER);
            self.next_us = self.next_us.min(member.next_us);
            if turn.more {
                self.ready.push_back(position);
            }
        }
        frames
    }

    /// Sleeps until there is something to do; `true` if a socket may have an error.
    fn sleep(&mut self) -> bool {
        for member in &mut self.members {
            member.engine.flush_captures();
        }
        let now_us = self.clock.now_us();
        let lacks = self.lacks_interface();
        let maintenance_us = lacks.then_some(self.maintained_us + MAINTENANCE_US);
        let next_us = (self.next_us != NEVER).then_some(self.next_us);
        let timeout_us = [next_us, maintenance_us]
            .into_iter()
            .flatten()
            .min()
            .map(|at_us| at_us.saturating_sub(now_us));
        if timeout_us == Some(0) || !self.mailbox.fall_asleep() {
            return false;
        }
        if !self.commands.is_empty() || self.commands.is_closed() {
            self.mailbox.wake_up(false);
            return false;
        }
        let mut interests = vec![Interest::Readable(self.mailbox.as_fd())];
        for (member, input) in &self.watched {
            let input = &self.members[*member].engine.inputs[*input];
            if let Some(ring) = input.ring()
                && input.blocked_until_us <= now_us
            {
                interests.push(Interest::Readable(ring.as_fd()));
            }
        }
        let waiting = self.members.iter().filter(|member| member.awaits_socket);
        for transmit in waiting.flat_map(|member| member.engine.awaited()) {
            interests.push(Interest::Writable(transmit.as_fd()));
        }
        let woken = wait(&interests, timeout_us);
        self.mailbox.wake_up(woken.first);
        for member in 0..self.members.len() {
            if self.members[member].awaits_socket {
                self.make_ready(member);
            }
        }
        woken.error
    }

    fn lacks_interface(&self) -> bool {
        self.watched.iter().any(|(member, input)| {
            let input = &self.members[*member].engine.inputs[*input];
            input.ring().is_none()
        })
    }

    /// Looks after the interfaces of all members.
    fn maintain(&mut self) {
        self.maintained_us = self.clock.now_us();
        let mut last = None;
        for position in 0..self.watched.len() {
            let (member, _) = self.watched[position];
            if last.replace(member) != Some(member) {
                self.members[member].engine.maintain();
            }
        }
    }
}
