//! The data-plane thread: it alone owns the agent and the packet socket.
//!
//! A turn: commands, frames in, timers, frames out, events, applications, then sleep until
//! a frame, a command or the earliest timer. Worms in transit are sent on as they come in. While frames keep coming the thread sleeps
//! for at least the coalescing time, so that a turn serves several frames; an idle agent
//! wakes for the first frame at once.

mod clock;
mod command;
mod crew;
mod discovery;
mod link_state;
mod outbound;
mod refused;
mod serve;
mod settings;
mod sleep;
mod transmit;

pub use command::{Command, DataPlaneGone, DataPlaneHandle, NewPlan};
pub use crew::Crew;
pub use outbound::{OutboundReceiver, OutboundSender, outbound_queue};
pub use settings::{DataPlaneError, DataPlaneSettings, Report, Reports};

use crate::link::{BATCH_FRAMES_MAX, Ready, ReceiveError, Waker};
use clock::Clock;
use discovery::Discovery;
use link_state::LinkState;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use transmit::{Blocked, TransmitBatch};
use wormcast_agent_core::agent::Agent;
use wormcast_agent_core::applications::OpenReceivers;
use wormcast_agent_core::clients::ConnectionId;
use wormcast_agent_core::transit::{TransitLimits, is_in_transit};
use wormcast_protocol::Instant;

/// Batches received before sending has its turn.
const RECEIVE_BATCHES_MAX: usize = 4;
/// Commands taken in one turn.
const COMMANDS_PER_TURN_MAX: usize = 128;
/// Reports to the controller that wait at most; more are dropped and counted. Outcomes of messages do not come from them:
/// senders have these from the protocol.
pub const REPORTS_MAX: usize = 256;
/// Of these, those that files and answers leave to others.
const FILES_LEAVE: usize = REPORTS_MAX / 2;

pub struct DataPlane {
    settings: DataPlaneSettings,
    clock: Clock,
    waker: Waker,
    commands: mpsc::Receiver<Command>,
    reports: mpsc::Sender<Report>,
    receivers: watch::Sender<OpenReceivers>,
    link: LinkState,
    discovery: Discovery,
    agent: Agent,
    /// Queues of the local clients.
    clients: BTreeMap<ConnectionId, OutboundSender>,
    transmit: TransmitBatch,
    counters: Counters,
    /// Commands were left for the next turn.
    more_waits: bool,
    stopping: bool,
}

/// What ends a sleep: frames, if they are waited for, room to send, if that is, or time.
#[derive(Clone, Copy, Default)]
struct Wait {
    sleep_us: u64,
    read: bool,
    write: bool,
}

/// Figures of the loop itself.
#[derive(Default)]
struct Counters {
    received_frames: u64,
    received_bytes: u64,
    receive_batches: u64,
    receive_errors: u64,
    too_long: u64,
    reports_dropped: u64,
    answers_dropped: u64,
    turns: u64,
}

impl DataPlane {
    /// Opens the socket; [`run`](Self::run) does the work. Also returns where reports to
    /// the controller come out.
    ///
    /// # Errors
    /// [`DataPlaneError`].
    pub fn open(
        settings: DataPlaneSettings,
    ) -> Result<(Self, DataPlaneHandle, Reports), DataPlaneError> {
        let waker = Waker::new().map_err(DataPlaneError::Waker)?;
        let (handle, commands) = DataPlaneHandle::new(waker.handle());
        let (reports, events) = mpsc::channel(REPORTS_MAX);
        let (receivers, open) = watch::channel(OpenReceivers::new());
        let link = LinkState::open(settings.interface.clone()).map_err(DataPlaneError::Socket)?;
        let mut dataplane = Self {
            clock: Clock::new(),
            waker,
            commands,
            reports,
            receivers,
            discovery: Discovery::new(&settings.name, settings.interface.mac),
            link,
            agent: Agent::new(settings.agent.patience, TransitLimits::default()),
            clients: BTreeMap::new(),
            transmit: TransmitBatch::new(settings.agent.mtu_bytes as usize + 64),
            counters: Counters::default(),
            more_waits: false,
            stopping: false,
            settings,
        };
        if let Some(host) = dataplane.settings.host {
            dataplane.set_host(host).map_err(DataPlaneError::Engine)?;
        }
        let reports = Reports {
            events,
            receivers: open,
        };
        Ok((dataplane, handle, reports))
    }

    /// Works until stopped.
    ///
    /// # Errors
    /// Only if waiting itself fails, which is a bug or a kernel out of memory.
    pub fn run(mut self) -> io::Result<()> {
        let mut received = 0;
        while let Some(wait) = self.work(received > 0) {
            let timeout = Some(Duration::from_micros(wait.sleep_us));
            let ready = self
                .waker
                .wait(self.socket(), wait.read, wait.write, timeout)?;
            received = self.wake(ready, wait);
        }
        Ok(())
    }

    /// A turn up to its sleep: what to wait for; `None` when stopped. `received`: whether
    /// the last sleep ended with frames.
    fn work(&mut self, received: bool) -> Option<Wait> {
        if self.stopping {
            self.discovery.leave(self.link.socket.as_ref());
            return None;
        }
        self.counters.turns += 1;
        let now = self.clock.read();
        self.agent.begin_turn(now, self.clock.lived.passed_us());
        self.take_commands(now);
        self.advance(now);
        self.speak();
        Some(self.plan_sleep(received))
    }

    /// The sleep is over: takes the frames that wait, and returns how many.
    fn wake(&mut self, ready: Ready, wait: Wait) -> usize {
        self.clock.read_after(wait.sleep_us);
        if ready.writable {
            self.transmit.on_writable();
        }
        self.receive()
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.link.socket.as_ref().map(AsFd::as_fd)
    }

    /// Sends waiting worms in transit on, and hands the other frames to the agent; returns how many
    /// frames there were.
    fn receive(&mut self) -> usize {
        let now = self.clock.read();
        let mut total = 0;
        for _ in 0..RECEIVE_BATCHES_MAX {
            let Some(socket) = &mut self.link.socket else {
                break;
            };
            let count = match socket.receive() {
                Ok(count) => count,
                Err(ReceiveError::Down) => {
                    self.link.on_down(now);
                    break;
                }
                Err(ReceiveError::System(error)) => {
                    if self.counters.receive_errors == 0 {
                        crate::log::warning!(
                            "cannot receive ({error}); more of it is only counted"
                        );
                    }
                    self.counters.receive_errors += 1;
                    break;
                }
            };
            if count == 0 {
                break;
            }
            self.counters.receive_batches += 1;
            let mut in_transit: [[&[u8]; 2]; BATCH_FRAMES_MAX] = [[&[]; 2]; BATCH_FRAMES_MAX];
            let mut worms = 0;
            for index in 0..count {
                let Some(frame) = socket.frame(index) else {
                    self.counters.too_long += 1;
                    continue;
                };
                self.counters.received_bytes += frame.len() as u64;
                if is_in_transit(frame) {
                    in_transit[worms][0] = frame;
                    worms += 1;
                } else {
                    self.agent.handle_frame(frame, now);
                }
            }
            let in_transit = &in_transit[..worms];
            let done = if self.agent.may_send_at_once(now) && self.link.up {
                self.transmit.send_at_once(in_transit, socket, now)
            } else {
                0
            };
            let transit = self.agent.transit_mut();
            in_transit[..done]
                .iter()
                .for_each(|worm| transit.note_sent(worm[0].len()));
            in_transit[done..]
                .iter()
                .for_each(|worm| transit.accept(worm[0], now));
            total += count;
            if count < socket.batch_frames() {
                break;
            }
        }
        self.counters.received_frames += total as u64;
        total
    }

    /// The link, then the agent.
    fn advance(&mut self, now: Instant) {
        if self.link.recheck(&mut self.discovery, now) {
            self.transmit.on_link_up();
        }
        if self.link.up {
            self.discovery
                .handle_timeout(self.link.socket.as_ref(), now);
        }
        let (link, transmit) = (&mut self.link, &mut self.transmit);
        self.agent.advance(now, |outgoing| {
            let Some(socket) = link.socket.as_ref().filter(|_| link.up) else {
                return;
            };
            transmit.flush(outgoing, socket, now);
            if transmit.blocked() == Blocked::LinkDown {
                link.on_down(now);
            } else if transmit.is_starved() {
                link.suspect(now);
            }
        });
    }
}
