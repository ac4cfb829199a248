//! The switches of a thread, or of a few threads that share one.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::clock::Clock;
use super::control::Command;
use super::input::Input;
use super::layout::Event;
use super::mailbox::Mailbox;
use super::spread::spread;
use super::switch::Switch;
use super::thread_work::{Sleep, ThreadWork};
use wormcast_switch_ports::readiness::Woken;
use wormcast_switch_ports::{ReadableSet, ReceiveRing, TransmitQueue};

/// Operations that run before packets have their turn again.
const COMMANDS_A_TURN: usize = 16;

/// How often interfaces are looked after.
const MAINTENANCE_US: u64 = 250_000;

/// How often a thread looks for frames while the kernel does not watch all of its sockets.
const UNWATCHED_LOOK_US: u64 = 1_000;

/// Switches that share a thread, or one switch whose threads share it ([`ThreadWork`]).
///
/// Switches that have something to do are in a queue and have their turns in order, so a
/// flood at one of them delays the others by no more than a turn each; those that have
/// nothing to do are not looked at.
pub(super) struct Worker {
    clock: Clock,
    members: Vec<Member>,
    /// Inputs that nobody announces: interfaces.
    watched: Vec<Watched>,
    events: Vec<Event>,
    mailbox: Arc<Mailbox>,
    /// Of the threads but the first, which has the mailbox.
    helper_mailboxes: Vec<Arc<Mailbox>>,
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
    switch: Switch,
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
    pub(super) now_us: u64,
    pub(super) frames: usize,
    /// There is nothing more to do.
    pub(super) is_idle: bool,
    /// There may be further commands.
    pub(super) reachable: bool,
}

/// No time: nothing is due.
const NEVER: u64 = u64::MAX;

/// Inputs that are interfaces.
fn watched<'a>(switches: impl Iterator<Item = &'a Switch>) -> Vec<Watched> {
    let of = |(member, switch): (usize, &'a Switch)| {
        let inputs = switch.inputs.iter().enumerate();
        let inputs = inputs.filter(|(_, input)| input.is_interface());
        inputs.map(move |(input, state)| Watched {
            member,
            input,
            frames_before: state.ring_frames(),
        })
    };
    switches.enumerate().flat_map(of).collect()
}

impl Worker {
    /// `events` tells what each event of the mailbox means; `helper_mailboxes` are those of further
    /// threads, which only a worker of a single switch has.
    pub(super) fn new(
        clock: Clock,
        switches: Vec<Switch>,
        events: Vec<Event>,
        mailbox: Arc<Mailbox>,
        helper_mailboxes: Vec<Arc<Mailbox>>,
        commands: mpsc::Receiver<Command>,
    ) -> Self {
        let member = |switch| Member {
            switch,
            awaits_socket: false,
            next_us: NEVER,
        };
        let watched = watched(switches.iter());
        let mut worker = Self {
            clock,
            members: switches.into_iter().map(member).collect(),
            watched,
            events,
            mailbox,
            helper_mailboxes,
            commands,
            next_us: NEVER,
            leader_wakes_us: 0,
            maintained_us: 0,
            has_error: false,
        };
        let threads = worker.helper_mailboxes.len() + 1;
        let places = (0..worker.watched.len()).map(|number| number % threads);
        worker.give_out(&places.collect::<Vec<usize>>());
        worker
    }

    /// What there is to do for a thread: one turn for each switch that is ready.
    pub(super) fn round(&mut self, work: &mut ThreadWork) -> Round {
        self.complete(work);
        if work.leads() && self.has_error {
            self.maintain();
        }
        let (mut ran, mut reachable) = (0, true);
        if work.leads() {
            (ran, reachable) = self.run_commands(work);
        }
        self.look_for_frames(work);
        let now_us = self.clock.now_us();
        if work.leads() {
            self.read_mailbox(work);
            self.wake_due(work, now_us);
        }
        let frames = self.turns(work, now_us);
        if work.leads() && now_us - self.maintained_us >= MAINTENANCE_US {
            self.maintain();
        }
        Round {
            now_us,
            frames,
            is_idle: work.ready() == 0 && ran == 0,
            reachable,
        }
    }

    /// Takes back the ports that the thread has sent for.
    fn complete(&mut self, work: &mut ThreadWork) {
        let now_us = self.clock.now_us();
        let mut departures = std::mem::take(&mut work.departures);
        for departed in departures.drain(..) {
            let switch = &mut self.members[departed.member].switch;
            switch.complete(departed.port, departed.departure, now_us);
            work.make_ready(departed.member);
        }
        work.departures = departures;
    }

    /// Gives the number of operations that ran, and whether there can be more.
    fn run_commands(&mut self, work: &mut ThreadWork) -> (usize, bool) {
        for ran in 0..COMMANDS_A_TURN {
            match self.commands.try_recv() {
                Ok(command) => {
                    let switch = &mut self.members[command.switch].switch;
                    switch.traffic.now_us = self.clock.now_us();
                    (command.run)(switch);
                    if std::mem::take(&mut switch.inputs_changed) {
                        let switches = self.members.iter().map(|member| &member.switch);
                        self.watched = watched(switches);
                        self.helper_mailboxes
                            .iter()
                            .for_each(|mailbox| mailbox.wake());
                    }
                    work.make_ready(command.switch);
                }
                Err(mpsc::error::TryRecvError::Empty) => return (ran, true),
                Err(mpsc::error::TryRecvError::Disconnected) => return (ran, false),
            }
        }
        (COMMANDS_A_TURN, true)
    }

    fn look_for_frames(&mut self, work: &mut ThreadWork) {
        for &Watched { member, input, .. } in &self.watched {
            let switch = &mut self.members[member].switch;
            let input_state = &switch.inputs[input];
            if input_state.thread != work.number {
                continue;
            }
            let blocked_us = input_state.blocked_until_us;
            let is_blocked = blocked_us > 0 && blocked_us > self.clock.now_us();
            if !is_blocked && input_state.is_ready() {
                switch.frames_at(input);
                work.make_ready(member);
            }
        }
    }

    fn read_mailbox(&mut self, work: &mut ThreadWork) {
        let mailbox = Arc::clone(&self.mailbox);
        mailbox.take(|event| match self.events[event] {
            Event::Frames { switch, input } => {
                self.members[switch].switch.frames_at(input);
                work.make_ready(switch);
            }
            Event::Room { switch, port } => {
                self.members[switch].switch.room_at(port);
                work.make_ready(switch);
            }
        });
    }

    /// Members whose time has come are ready.
    fn wake_due(&mut self, work: &mut ThreadWork, now_us: u64) {
        if now_us < self.next_us {
            return;
        }
        self.next_us = NEVER;
        for member in 0..self.members.len() {
            let due_us = self.members[member].next_us;
            if due_us <= now_us {
                work.make_ready(member);
            } else {
                self.next_us = self.next_us.min(due_us);
            }
        }
    }

    /// One turn for each member that is ready; gives the frames they had.
    fn turns(&mut self, work: &mut ThreadWork, now_us: u64) -> usize {
        let (mut frames, mut now_us) = (0, now_us);
        for number in 0..work.ready() {
            let Some(position) = work.next_ready() else {
                break;
            };
            if number > 0 {
                now_us = self.clock.now_us();
            }
            let member = &mut self.members[position];
            let turn = member.switch.turn_of(now_us, position, work);
            frames += turn.received.max(turn.sent);
            let awaits_now = turn.awaits_socket && !member.awaits_socket;
            member.awaits_socket = turn.awaits_socket;
            member.next_us = turn.next_us.unwrap_or(NEVER);
            self.next_us = self.next_us.min(member.next_us);
            if turn.more {
                work.make_ready(position);
            }
            if !work.leads() && (awaits_now || member.next_us < self.leader_wakes_us) {
                self.mailbox.wake();
            }
        }
        frames
    }

    /// What a thread without anything to do waits for; none if it had better go on.
    /// `readable` has the sockets that bring frames for it watched.
    pub(super) fn fall_asleep(
        &mut self,
        work: &ThreadWork,
        mailbox: &Mailbox,
        readable: &mut ReadableSet,
    ) -> Option<Sleep> {
        let now_us = self.clock.now_us();
        let mut wakes_us = NEVER;
        for member in &mut self.members {
            member.switch.flush_captures();
        }
        if work.leads() {
            let waits = self
                .members
                .iter()
                .any(|member| member.switch.renewal_waits);
            if waits || self.lacks_interface() {
                wakes_us = self.maintained_us + MAINTENANCE_US;
            }
            wakes_us = wakes_us.min(self.next_us);
        }
        if wakes_us <= now_us || !mailbox.fall_asleep() {
            return None;
        }
        if work.leads() {
            if !self.commands.is_empty() || self.commands.is_closed() {
                mailbox.wake_up(false);
                return None;
            }
            self.leader_wakes_us = wakes_us;
        }
        readable.watch(self.received_by(work, now_us));
        if !readable.is_whole() {
            wakes_us = wakes_us.min(now_us + UNWATCHED_LOOK_US);
        }
        Some(Sleep {
            writable: self.awaited_by(work),
            timeout_us: (wakes_us != NEVER).then(|| wakes_us - now_us),
        })
    }

    /// Sockets that bring frames for a thread.
    fn received_by(
        &self,
        work: &ThreadWork,
        now_us: u64,
    ) -> impl Iterator<Item = Option<&Arc<OwnedFd>>> {
        let inputs = self.watched.iter().map(|watched| self.input(watched));
        let (number, brings) = (work.number, move |input: &&Input| {
            input.blocked_until_us <= now_us
        });
        inputs.map(move |input| {
            let input = Some(input).filter(|input| input.thread == number);
            let ring = input.filter(brings).and_then(Input::ring);
            ring.map(ReceiveRing::socket)
        })
    }

    /// Sockets that are to take frames again.
    fn awaited_by(&self, work: &ThreadWork) -> Vec<Arc<OwnedFd>> {
        if !work.leads() {
            return Vec::new();
        }
        let waiting = self.members.iter().filter(|member| member.awaits_socket);
        let awaited = waiting.flat_map(|member| member.switch.awaited());
        awaited.map(TransmitQueue::socket).collect()
    }

    /// A thread is awake again.
    pub(super) fn awake(&mut self, work: &mut ThreadWork, woken: Woken) {
        self.has_error |= woken.error;
        if !work.leads() {
            if woken.error {
                self.mailbox.wake();
            }
            return;
        }
        self.leader_wakes_us = 0;
        for member in 0..self.members.len() {
            if self.members[member].awaits_socket {
                work.make_ready(member);
            }
        }
    }

    /// The first thread ends, and with it all others.
    pub(super) fn end(&mut self) {
        for member in &mut self.members {
            member.switch.flush_captures();
        }
        self.helper_mailboxes
            .iter()
            .for_each(|mailbox| mailbox.stop());
    }

    fn input(&self, watched: &Watched) -> &Input {
        &self.members[watched.member].switch.inputs[watched.input]
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
                renewed |= self.members[member].switch.maintain();
            }
        }
        if !self.helper_mailboxes.is_empty() && (self.spread() || renewed) {
            self.helper_mailboxes
                .iter()
                .for_each(|mailbox| mailbox.wake());
        }
    }

    /// Spreads the inputs over the threads by what they had of late; whether one moved.
    fn spread(&mut self) -> bool {
        let now: Vec<u64> = self
            .watched
            .iter()
            .map(|watched| self.input(watched).ring_frames())
            .collect();
        let threads: Vec<usize> = self
            .watched
            .iter()
            .map(|watched| self.input(watched).thread)
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
        let better = spread(&loads, &threads, self.helper_mailboxes.len() + 1);
        better.is_some_and(|threads| {
            self.give_out(&threads);
            true
        })
    }

    /// Gives each input that is an interface to a thread.
    fn give_out(&mut self, threads: &[usize]) {
        for (watched, thread) in self.watched.iter().zip(threads) {
            self.members[watched.member].switch.inputs[watched.input].thread = *thread;
        }
    }
}
