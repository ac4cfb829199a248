//! The loop of the data plane.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use tokio::sync::mpsc;

use super::clock::Clock;
use super::control::{COMMANDS_MAX, Command, DataplaneHandle};
use super::port::{Capture, Link, Port};
use super::traffic::{TO_CONTROLLER_MAX, ToController, TrafficManager};
use crate::log::{Level, Log};
use crate::pipeline::{DequeueInfo, Pipeline, PortId};
use crate::ports::readiness::Interest;
use crate::ports::{
    BitRate, EgressQueue, Impairment, ImpairmentTable, Interface, InterfaceError, PcapWriter,
    ReceiveRing, TokenBucket, TransmitQueue, Waker, wait,
};

use crate::trace::Tracing;

/// Frames taken from one ring before the next one has its turn.
const BATCH_FRAMES: usize = 64;

/// Packets that leave one queue before the next one has its turn.
const DRAIN_PACKETS: usize = 128;

/// Operations that run before packets have their turn again.
const COMMANDS_A_TURN: usize = 16;

/// From this rate on the thread looks for more frames for a while before it sleeps: falling
/// asleep and being woken would cost more than the frames themselves.
const BUSY_FRAMES_A_MS: u64 = 64;

/// How long it looks.
const SPIN_US: u64 = 20;

/// Over how long the rate is taken.
const LOAD_WINDOW_US: u64 = 1_000;

/// How often interfaces are looked after.
const MAINTENANCE_US: u64 = 250_000;

/// One `-i PORT@INTERFACE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSettings {
    /// Number in the P4 program.
    pub number: PortId,
    /// Name of the interface.
    pub interface: String,
}

/// What the data plane is told before it starts.
#[derive(Clone, Debug)]
pub struct DataplaneSettings {
    /// Ports with interfaces, no number twice.
    pub ports: Vec<PortSettings>,
    /// Port that leads to the controller.
    pub cpu_port: Option<PortId>,
    /// Egress queues of a port, 1–8.
    pub priorities: u8,
    /// Most packets in one egress queue.
    pub queue_frames: usize,
    /// Frames that may wait to be received, for each port.
    pub ring_frames: usize,
    /// Rate of every port without one of its own among the impairments.
    pub port_rate: Option<BitRate>,
    /// Impairments.
    pub impairments: ImpairmentTable,
    /// Seed of all impairments.
    pub seed: u64,
    /// Directory for captures, if they are wanted.
    pub capture_directory: Option<PathBuf>,
}

/// A running data plane.
pub struct Dataplane {
    handle: DataplaneHandle,
    thread: thread::JoinHandle<()>,
}

impl Dataplane {
    /// Opens all ports and starts the thread. The second value receives what the data
    /// plane has for a controller.
    pub fn start(
        settings: &DataplaneSettings,
        log: Log,
    ) -> Result<(Self, mpsc::Receiver<ToController>), InterfaceError> {
        let (to_controller, from_dataplane) = mpsc::channel(TO_CONTROLLER_MAX);
        let mut engine = Engine::open(settings, to_controller, log)?;
        let (commands, mut waiting) = mpsc::channel(COMMANDS_MAX);
        let handle = DataplaneHandle::new(commands, Arc::clone(&engine.waker));
        let thread = thread::Builder::new()
            .name("dataplane".to_owned())
            .spawn(move || engine.run(&mut waiting))
            .map_err(|error| InterfaceError::Open {
                name: "dataplane".to_owned(),
                step: "starting the thread",
                error,
            })?;
        Ok((Self { handle, thread }, from_dataplane))
    }

    /// Runs operations on it.
    pub fn handle(&self) -> DataplaneHandle {
        self.handle.clone()
    }

    /// Whether its thread has ended, which it does only when told, or by a bug.
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for the thread to end; `false` if it ended by a panic.
    pub fn join(self) -> bool {
        self.thread.join().is_ok()
    }
}

/// The state of the data plane, as operations see it.
pub struct Engine {
    pub(super) clock: Clock,
    log: Log,
    settings: DataplaneSettings,
    running: bool,
    waker: Arc<Waker>,
    pub(super) pipeline: Option<Pipeline>,
    pub(super) traffic: TrafficManager,
    pub(super) receivers: Vec<Receiver>,
    maintained_us: u64,
    pub(super) no_program: u64,
    pub(super) program_replaced: u64,
    pub(super) packet_outs: u64,
    /// Traces that were started before there was a program.
    tracing: Tracing,
}

/// Whether frames come so fast that it is better not to sleep.
#[derive(Debug, Default)]
struct Load {
    window_us: u64,
    frames: u64,
    busy: bool,
    last_frame_us: u64,
}

impl Load {
    /// Takes the frames of one turn.
    fn count(&mut self, frames: u64, now_us: u64) {
        if frames > 0 {
            self.last_frame_us = now_us;
        }
        let elapsed_us = now_us - self.window_us;
        if elapsed_us >= LOAD_WINDOW_US {
            self.busy = self.frames * 1_000 / elapsed_us >= BUSY_FRAMES_A_MS;
            self.window_us = now_us;
            self.frames = 0;
        }
        self.frames += frames;
    }

    fn may_sleep(&self, now_us: u64) -> bool {
        let quiet_us = now_us - self.last_frame_us;
        if self.busy {
            quiet_us >= SPIN_US
        } else {
            quiet_us > 0
        }
    }
}

/// The receiving half of a port.
pub(super) struct Receiver {
    number: PortId,
    pub(super) interface: String,
    index: u32,
    pub(super) ring: Option<ReceiveRing>,
    capture: Option<Capture>,
}

impl Engine {
    fn open(
        settings: &DataplaneSettings,
        to_controller: mpsc::Sender<ToController>,
        log: Log,
    ) -> Result<Self, InterfaceError> {
        let waker = Waker::new().map_err(|error| InterfaceError::Open {
            name: "dataplane".to_owned(),
            step: "making an event descriptor",
            error,
        })?;
        let clock = Clock::start();
        let new_port = |number, link| {
            let queue = EgressQueue::new(settings.priorities, settings.queue_frames);
            Port::new(number, link, queue)
        };
        let mut ports = Vec::new();
        let mut receivers = Vec::new();
        for port_settings in &settings.ports {
            let interface = Interface::find(&port_settings.interface)?;
            let number = port_settings.number;
            let mut port = new_port(number, Link::Interface(TransmitQueue::open(&interface)?));
            let impairment = settings.impairments.settings(number.0);
            let rate = impairment.rate.or(settings.port_rate);
            port.bucket = rate.map(|rate| TokenBucket::new(rate, clock.now_us()));
            port.impairment = (!impairment.leaves_frames_alone())
                .then(|| Impairment::new(impairment, settings.seed, number.0));
            let capture = |direction: &str| -> Result<Option<Capture>, InterfaceError> {
                let Some(directory) = &settings.capture_directory else {
                    return Ok(None);
                };
                let path = directory.join(format!("{}_{direction}.pcap", interface.name()));
                let writer = PcapWriter::create(&path).map_err(|error| InterfaceError::Open {
                    name: interface.name().to_owned(),
                    step: "creating a capture file",
                    error,
                })?;
                Ok(Some(writer))
            };
            port.capture = capture("out")?;
            receivers.push(Receiver {
                number,
                interface: interface.name().to_owned(),
                index: interface.index(),
                ring: Some(ReceiveRing::open(&interface, settings.ring_frames)?),
                capture: capture("in")?,
            });
            ports.push(port);
        }
        if let Some(number) = settings.cpu_port {
            ports.push(new_port(number, Link::Cpu));
        }
        ports.push(new_port(PortId(0), Link::Unattached));
        Ok(Self {
            clock,
            log,
            settings: settings.clone(),
            running: true,
            waker: Arc::new(waker),
            pipeline: None,
            traffic: TrafficManager::new(clock, ports, to_controller),
            receivers,
            maintained_us: 0,
            no_program: 0,
            program_replaced: 0,
            packet_outs: 0,
            tracing: Tracing::default(),
        })
    }

    /// The program that runs, with its tables.
    pub fn pipeline(&mut self) -> Option<&mut Pipeline> {
        if let Some(pipeline) = &mut self.pipeline {
            pipeline.advance(self.traffic.now_us);
        }
        self.pipeline.as_mut()
    }

    /// Puts a pipeline in the place of the one before. Packets that wait between ingress
    /// and egress belong to the old program and are dropped.
    pub fn install(&mut self, mut pipeline: Pipeline) {
        for port in &mut self.traffic.ports {
            while port.queue.pop().is_some() {
                self.program_replaced += 1;
            }
        }
        let tracing = std::mem::take(self.tracing());
        pipeline.set_tracing(tracing);
        self.pipeline = Some(pipeline);
    }

    /// The traces of this switch, with a program or without.
    pub fn tracing(&mut self) -> &mut Tracing {
        match &mut self.pipeline {
            Some(pipeline) => pipeline.tracing(),
            None => &mut self.tracing,
        }
    }

    /// Sends a frame into ingress as if it had come from the controller, its `packet_out`
    /// header in front.
    pub fn inject(&mut self, frame: &[u8]) {
        let Some(cpu_port) = self.settings.cpu_port else {
            return;
        };
        self.packet_outs += 1;
        match &mut self.pipeline {
            Some(pipeline) => {
                pipeline.ingress(frame, cpu_port, self.traffic.now_us, &mut self.traffic);
            }
            None => self.no_program += 1,
        }
    }

    /// Port that leads to the controller.
    pub fn cpu_port(&self) -> Option<PortId> {
        self.settings.cpu_port
    }

    /// Ends the thread after this turn.
    pub fn stop(&mut self) {
        self.running = false;
    }

    fn run(&mut self, commands: &mut mpsc::Receiver<Command>) {
        let mut load = Load::default();
        while self.running {
            self.traffic.now_us = self.clock.now_us();
            let ran = self.run_commands(commands);
            let received = self.receive();
            let sent = self.send();
            let now_us = self.traffic.now_us;
            if now_us - self.maintained_us >= MAINTENANCE_US {
                self.maintain();
            }
            load.count(received.max(sent) as u64, now_us);
            if ran == 0 && load.may_sleep(now_us) && self.sleep(commands) {
                self.maintain();
            }
        }
        self.flush_captures();
    }

    /// Gives the number of operations that ran.
    fn run_commands(&mut self, commands: &mut mpsc::Receiver<Command>) -> usize {
        for ran in 0..COMMANDS_A_TURN {
            match commands.try_recv() {
                Ok(command) => command(self),
                Err(mpsc::error::TryRecvError::Empty) => return ran,
                Err(mpsc::error::TryRecvError::Disconnected) => {
                    self.running = false;
                    return ran;
                }
            }
        }
        COMMANDS_A_TURN
    }

    /// Takes frames from every ring through ingress; gives their number.
    fn receive(&mut self) -> usize {
        let mut received = 0;
        let unix_us = self.traffic.unix_us();
        let now_us = self.traffic.now_us;
        for receiver in &mut self.receivers {
            let Some(ring) = &mut receiver.ring else {
                continue;
            };
            if !ring.is_ready() {
                continue;
            }
            let (number, capture) = (receiver.number, &mut receiver.capture);
            let (pipeline, traffic) = (&mut self.pipeline, &mut self.traffic);
            let no_program = &mut self.no_program;
            received += ring.receive(BATCH_FRAMES, |frame| {
                if let Some(capture) = capture {
                    // A full disk must not stop the switch; the capture ends short.
                    let _ = capture.write(unix_us, frame);
                }
                match pipeline {
                    Some(pipeline) => pipeline.ingress(frame, number, now_us, traffic),
                    None => *no_program += 1,
                }
            });
        }
        received
    }

    /// Takes packets from every queue through egress; gives their number.
    fn send(&mut self) -> usize {
        let mut sent = 0;
        let now_us = self.traffic.now_us;
        for position in 0..self.traffic.ports.len() {
            if let Some(pipeline) = &mut self.pipeline {
                for _ in 0..DRAIN_PACKETS {
                    let port = &mut self.traffic.ports[position];
                    if port.queue.is_empty() || !port.may_send(now_us) {
                        break;
                    }
                    let Some(packet) = port.queue.pop() else {
                        break;
                    };
                    let dequeue = DequeueInfo {
                        enqueued_us: packet.enqueued_us,
                        dequeued_us: now_us,
                        enqueue_depth: packet.enqueue_depth,
                        dequeue_depth: packet.dequeue_depth,
                    };
                    pipeline.egress(packet.item, &dequeue, &mut self.traffic);
                    sent += 1;
                }
            }
            let unix_us = self.traffic.unix_us();
            self.traffic.ports[position].send_due(now_us, unix_us);
        }
        sent
    }

    /// Sleeps until there is something to do; `true` if a socket may have an error.
    fn sleep(&mut self, commands: &mpsc::Receiver<Command>) -> bool {
        self.flush_captures();
        let now_us = self.clock.now_us();
        let next_us = self.traffic.ports.iter().filter_map(Port::next_us).min();
        let missing = self
            .receivers
            .iter()
            .any(|receiver| receiver.ring.is_none());
        let maintenance_us = missing.then_some(self.maintained_us + MAINTENANCE_US);
        let timeout_us = [next_us, maintenance_us]
            .into_iter()
            .flatten()
            .min()
            .map(|at_us| at_us.saturating_sub(now_us));
        if timeout_us == Some(0) || !commands.is_empty() {
            return false;
        }
        let mut interests = vec![Interest::Readable(self.waker.as_fd())];
        for ring in self
            .receivers
            .iter()
            .filter_map(|receiver| receiver.ring.as_ref())
        {
            interests.push(Interest::Readable(ring.as_fd()));
        }
        for transmit in self.traffic.ports.iter().filter_map(Port::awaited) {
            interests.push(Interest::Writable(transmit.as_fd()));
        }
        let woken = wait(&interests, timeout_us);
        self.waker.reset();
        woken.error
    }

    /// Looks after the interfaces: errors the kernel kept, interfaces gone and come back.
    fn maintain(&mut self) {
        self.maintained_us = self.clock.now_us();
        for position in 0..self.receivers.len() {
            let receiver = &mut self.receivers[position];
            let error = receiver.ring.as_ref().and_then(ReceiveRing::take_error);
            if let Link::Interface(transmit) = &self.traffic.ports[position].link {
                transmit.take_error();
            }
            let found = Interface::find(&receiver.interface).ok();
            let (name, number) = (&receiver.interface, receiver.number.0);
            match found {
                Some(interface) if interface.index() == receiver.index => {
                    if let Some(error) = error {
                        let text = format_args!("port {number} ({name}): {error}");
                        self.log.write(Level::Warn, text);
                    }
                    let outgrown = |ring: &mut ReceiveRing| ring.is_outgrown(&interface);
                    if receiver.ring.as_mut().is_none_or(outgrown) {
                        self.attach(position, &interface);
                    }
                }
                Some(interface) => self.attach(position, &interface),
                None if receiver.ring.is_some() => {
                    let text = format_args!("port {number}: interface {name} has gone");
                    self.log.write(Level::Warn, text);
                    receiver.ring = None;
                    self.traffic.ports[position].link = Link::Missing;
                }
                None => {}
            }
        }
    }

    /// Opens a port's interface again.
    fn attach(&mut self, position: usize, interface: &Interface) {
        let receiver = &mut self.receivers[position];
        let opened = ReceiveRing::open(interface, self.settings.ring_frames)
            .and_then(|ring| Ok((ring, TransmitQueue::open(interface)?)));
        let number = receiver.number.0;
        match opened {
            Ok((mut ring, transmit)) => {
                if let Some(old) = &mut receiver.ring {
                    ring.carry_counts(old.counts());
                }
                receiver.index = interface.index();
                receiver.ring = Some(ring);
                self.traffic.ports[position].link = Link::Interface(transmit);
                let text = format_args!(
                    "port {number}: interface {} is open again",
                    interface.name()
                );
                self.log.write(Level::Info, text);
            }
            Err(error) => {
                receiver.ring = None;
                self.traffic.ports[position].link = Link::Missing;
                self.log
                    .write(Level::Warn, format_args!("port {number}: {error}"));
            }
        }
    }

    fn flush_captures(&mut self) {
        let incoming = self
            .receivers
            .iter_mut()
            .filter_map(|receiver| receiver.capture.as_mut());
        let outgoing = self
            .traffic
            .ports
            .iter_mut()
            .filter_map(|port| port.capture.as_mut());
        for capture in incoming.chain(outgoing) {
            // A full disk must not stop the switch; the capture ends short.
            let _ = capture.flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames at a steady interval; whether it may sleep between the last two.
    fn sleeps_at(interval_us: u64) -> bool {
        let mut load = Load::default();
        for number in 0..5_000 {
            load.count(1, number * interval_us);
        }
        load.may_sleep(5_000 * interval_us - 1)
    }

    #[test]
    fn only_a_high_rate_keeps_it_awake_and_not_for_long() {
        assert!(sleeps_at(100));
        assert!(!sleeps_at(10));
        let mut load = Load::default();
        (0..5_000).for_each(|number| load.count(1, number * 5));
        assert!(!load.may_sleep(4_999 * 5 + SPIN_US - 1));
        assert!(load.may_sleep(4_999 * 5 + SPIN_US));
    }
}
