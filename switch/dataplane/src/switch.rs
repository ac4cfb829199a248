//! One switch: its pipeline, its ports, and a turn of its work.

use std::sync::Arc;

use tokio::sync::watch;

use super::clock::Clock;
use super::input::{Input, Source};
use super::port::{Link, Port};
use super::port_set::PortSet;
use super::settings::SwitchSettings;
use super::thread_work::{Departed, ThreadWork};
use super::traffic::{Installed, TrafficManager};
use crate::log::{Level, Log};
use wormcast_switch_pipeline::trace::Tracing;
use wormcast_switch_pipeline::{DequeueInfo, Pipeline, PortId};
use wormcast_switch_ports::transmit::Departure;
use wormcast_switch_ports::{Asker, Interface, ReceiveRing, TransmitQueue};

/// Frames taken from one input before the next one has its turn.
const BATCH_FRAMES: usize = 64;

/// How long an input that was left alone for want of room is left alone at least: what
/// makes room takes as long.
const HELD_BACK_US: u64 = 100;

/// Packets that leave one port before the next one has its turn.
const DRAIN_PACKETS: usize = 128;

/// How often packets go round that are recirculated until something else happens, when nothing else does.
const ROUND_US: u64 = 20;

/// Turns one replayed frame may take; what is left has later turns.
const REPLAY_TURNS_MAX: usize = 1 << 16;

/// The state of one switch, as operations see it.
pub struct Switch {
    pub(super) clock: Clock,
    pub(super) log: Log,
    pub(super) settings: SwitchSettings,
    pub(super) pipeline: Option<Pipeline>,
    pub(super) traffic: TrafficManager,
    /// In the order of `traffic.ports`, which has more.
    pub(super) inputs: Vec<Input>,
    /// Inputs that have, or may have, frames.
    pub(super) ready: PortSet,
    pub(super) no_program: u64,
    pub(super) program_replaced: u64,
    pub(super) packet_outs: u64,
    /// Traces that were started before there was a program.
    tracing: Tracing,
    /// How often ports have changed.
    pub(super) port_changes: watch::Sender<u64>,
    /// Inputs were added or removed since the worker last looked.
    pub(super) inputs_changed: bool,
    /// An interface is other than before, but frames are being sent by its old socket.
    pub(super) renewal_waits: bool,
    /// How its interfaces are is asked by it.
    pub(super) asker: Asker,
}

/// What a turn has done, and what is left.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turn {
    pub(super) received: usize,
    /// Packets that passed egress.
    pub(super) sent: usize,
    /// There is more to do at once.
    pub(super) more: bool,
    /// When the next turn is due without anything happening before.
    pub(super) next_us: Option<u64>,
    /// A port waits until its socket takes frames again.
    pub(super) awaits_socket: bool,
}

impl Turn {
    /// The next turn is due at this time, or before.
    pub(super) fn wake_at(&mut self, at_us: Option<u64>) {
        self.next_us = [self.next_us, at_us].into_iter().flatten().min();
    }
}

impl Switch {
    /// `traffic.ports` begins with the ports of `inputs`, in order.
    pub(super) fn new(
        settings: SwitchSettings,
        inputs: Vec<Input>,
        traffic: TrafficManager,
        log: Log,
    ) -> Self {
        Self {
            clock: traffic.clock(),
            log,
            tracing: Tracing::of_switch(&settings.name),
            settings,
            pipeline: None,
            traffic,
            ready: PortSet::new(inputs.len()),
            inputs,
            no_program: 0,
            program_replaced: 0,
            packet_outs: 0,
            port_changes: watch::Sender::new(0),
            inputs_changed: false,
            renewal_waits: false,
            asker: Asker::default(),
        }
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
        for position in 0..self.traffic.ports.len() {
            while let Some(waiting) = self.traffic.ports[position].queue.pop() {
                self.traffic.release(waiting.item.hold);
                self.program_replaced += 1;
            }
        }
        if let Some(why) = pipeline.refusal_to_compile() {
            let text = format_args!("packets are interpreted, not compiled: {why}");
            self.log.write(Level::Warn, text);
        }
        let tracing = std::mem::take(self.tracing());
        pipeline.set_tracing(tracing);
        let before = self.traffic.installed.as_ref();
        self.traffic.installed = Some(Installed {
            program: Arc::clone(pipeline.program()),
            number: before.map_or(0, |before| before.number + 1),
        });
        self.pipeline = Some(pipeline);
        self.update_ports();
    }

    /// The program that runs, and which of those it is that were installed.
    pub fn installed(&self) -> Option<Installed> {
        self.traffic.installed.clone()
    }

    /// Tells of ports that have changed: the pipeline, for backup replicas and ports to
    /// watch, and whoever watches them.
    pub(super) fn update_ports(&mut self) {
        self.note_port_changes();
        if let Some(pipeline) = &mut self.pipeline {
            // The last one has no number of its own.
            let (_, ports) = self.traffic.ports.split_last().unzip();
            let ports = ports.unwrap_or_default();
            let is_gone = |port: &&Port| matches!(port.link, Link::Unattached);
            // One that is gone may be there again in another place.
            for port in ports.iter().filter(is_gone) {
                pipeline.set_port_up(port.number, false);
            }
            for port in ports.iter().filter(|port| !is_gone(port)) {
                pipeline.set_port_up(port.number, port.up);
            }
        }
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
        if !self.traffic.accept(cpu_port, frame) {
            return;
        }
        match &mut self.pipeline {
            Some(pipeline) => {
                pipeline.ingress(frame, cpu_port, self.traffic.now_us, &mut self.traffic);
            }
            None => self.no_program += 1,
        }
        self.traffic.done();
    }

    /// Name of a port for the log: with the switch, if that has a name.
    pub(super) fn port_name(&self, port: u16) -> String {
        match self.settings.name.as_str() {
            "" => format!("port {port}"),
            _ => self.settings.port_name(PortId(port)),
        }
    }

    /// Takes a frame that has come to a port through ingress, and what it leads to through
    /// egress, before it returns; only what has to wait for a rate or a delay stays.
    pub fn replay(&mut self, number: PortId, frame: &[u8]) {
        let now_us = self.traffic.now_us;
        let position = self.inputs.iter().position(|input| input.number == number);
        let Some(position) = position else {
            return;
        };
        self.inputs[position].record(self.traffic.unix_us(), frame);
        if self.traffic.arrive(position, frame) {
            match &mut self.pipeline {
                Some(pipeline) => pipeline.ingress(frame, number, now_us, &mut self.traffic),
                None => self.no_program += 1,
            }
            self.traffic.done();
        }
        for _ in 0..REPLAY_TURNS_MAX {
            if !self.turn(now_us).more {
                return;
            }
        }
    }

    /// Device id, as controllers name it.
    pub fn device_id(&self) -> u64 {
        self.settings.device_id
    }

    /// Port that leads to the controller.
    pub fn cpu_port(&self) -> Option<PortId> {
        self.settings.cpu_port
    }

    /// An input may have frames.
    #[inline]
    pub(super) fn frames_at(&mut self, input: usize) {
        self.ready.insert(input);
    }

    /// A port's link has room again.
    pub(super) fn room_at(&mut self, position: usize) {
        self.traffic.active.insert(position);
    }

    /// One batch from every input that has frames, and from every port that has packets.
    pub(super) fn turn(&mut self, now_us: u64) -> Turn {
        self.turn_of(now_us, 0, &mut ThreadWork::sole())
    }

    /// The same for a thread that may share the switch with others: its inputs only. What
    /// it is to send for the switch afterwards is in its departures, for `member`.
    pub(super) fn turn_of(&mut self, now_us: u64, member: usize, work: &mut ThreadWork) -> Turn {
        let mut turn = Turn::default();
        self.traffic.now_us = now_us;
        self.receive(&mut turn, work.number);
        self.send_pauses(&mut turn);
        self.send(&mut turn, member, work);
        self.send_pauses(&mut turn);
        self.watch(&mut turn);
        turn
    }

    /// Takes back a port whose frames a thread has sent.
    pub(super) fn complete(&mut self, position: usize, departure: Departure, now_us: u64) {
        if let Some(port) = self.traffic.ports.get_mut(position) {
            port.complete(departure, now_us);
            self.traffic.active.insert(position);
        }
    }

    /// Takes frames from the inputs of a thread through ingress.
    fn receive(&mut self, turn: &mut Turn, thread: usize) {
        let unix_us = self.traffic.unix_us();
        let now_us = self.traffic.now_us;
        let mut from = 0;
        while let Some(position) = self.ready.next(from) {
            from = position + 1;
            let input = &mut self.inputs[position];
            if input.thread != thread {
                continue;
            }
            let number = input.number;
            let (pipeline, traffic) = (&mut self.pipeline, &mut self.traffic);
            let no_program = &mut self.no_program;
            if traffic.lossless.is_some() {
                input.look_ahead(|frame| traffic.take_control(position, frame));
            }
            let batch = traffic.room_frames(position).min(BATCH_FRAMES);
            turn.received += input.receive(batch, unix_us, |frame| {
                if !traffic.arrive(position, frame) {
                    return;
                }
                match pipeline {
                    Some(pipeline) => pipeline.ingress(frame, number, now_us, traffic),
                    None => *no_program += 1,
                }
                traffic.done();
            });
            if input.is_ready() {
                // Without room, it is for what leaves to go on.
                turn.more |= batch > 0;
                if batch == 0 {
                    input.blocked_until_us = now_us + HELD_BACK_US;
                    turn.wake_at(Some(input.blocked_until_us));
                    self.traffic.count_held_back(position);
                }
            } else {
                self.ready.remove(position);
            }
        }
    }

    /// Takes packets from queues through egress.
    fn send(&mut self, turn: &mut Turn, member: usize, work: &mut ThreadWork) {
        let now_us = self.traffic.now_us;
        let unix_us = self.traffic.unix_us();
        let mut from = 0;
        while let Some(position) = self.traffic.active.next(from) {
            from = position + 1;
            let sent = self.drain(position, now_us);
            turn.sent += sent;
            let allowed = self.traffic.allowed(position);
            let port = &mut self.traffic.ports[position];
            let departure = work.is_shared.then(|| port.depart(now_us)).flatten();
            match departure {
                Some(departure) => work.departures.push(Departed {
                    member,
                    port: position,
                    departure,
                }),
                None => port.send_due(now_us, unix_us),
            }
            if port.is_idle() {
                self.traffic.active.remove(position);
            } else if sent == DRAIN_PACKETS && port.has_packet(allowed) {
                turn.more = true;
            } else {
                turn.wake_at(port.next_us(allowed));
                turn.awaits_socket |= port.awaited().is_some();
            }
        }
        // Egress may have put packets into queues that had had their turn.
        let mut from = 0;
        while let Some(position) = self.traffic.active.next(from) {
            from = position + 1;
            let allowed = self.traffic.allowed(position);
            let port = &mut self.traffic.ports[position];
            if matches!(port.link, Link::Unattached) && port.has_packet(allowed) {
                // It waits for something else to happen, going round.
                turn.wake_at(Some(now_us + ROUND_US));
                continue;
            }
            turn.more |= port.has_packet(allowed) && port.may_send(now_us);
        }
    }

    /// Takes at most [`DRAIN_PACKETS`] packets of one port through egress.
    fn drain(&mut self, position: usize, now_us: u64) -> usize {
        let Some(pipeline) = &mut self.pipeline else {
            return 0;
        };
        let mut allowed = self.traffic.allowed(position);
        let port = &self.traffic.ports[position];
        let mut most = DRAIN_PACKETS;
        if matches!(port.link, Link::Unattached) {
            // What is recirculated there comes back into this queue.
            most = most.min(port.queue.len());
        }
        for sent in 0..most {
            let port = &mut self.traffic.ports[position];
            if !port.has_packet(allowed) || !port.may_send(now_us) {
                return sent;
            }
            let Some(packet) = port.queue.pop_of(allowed) else {
                return sent;
            };
            let dequeue = DequeueInfo {
                enqueued_us: packet.enqueued_us,
                dequeued_us: now_us,
                enqueue_depth: packet.enqueue_depth,
                dequeue_depth: packet.dequeue_depth,
            };
            if let Some(pace) = &mut port.pace {
                pace.sent(packet.priority, now_us);
                allowed = self.traffic.allowed(position);
            }
            self.traffic.left_behind = packet.dequeue_depth;
            self.traffic.resume(packet.item.hold);
            pipeline.egress(packet.item.packet, &dequeue, &mut self.traffic);
            self.traffic.done();
            self.traffic.left_behind = 0;
        }
        most
    }

    /// Looks after the interfaces: errors the kernel kept, interfaces gone and come back.
    /// Whether the sockets of one are others than before.
    pub(super) fn maintain(&mut self) -> bool {
        let mut renewed = false;
        self.renewal_waits = false;
        for position in 0..self.inputs.len() {
            let input = &mut self.inputs[position];
            let Source::Interface { index, ring } = &mut input.source else {
                continue;
            };
            let error = ring.as_ref().and_then(ReceiveRing::take_error);
            if let Link::Interface(transmit) = &self.traffic.ports[position].link {
                transmit.take_error();
            }
            let found = self.asker.find(&input.name);
            let look = found.as_ref().map(|(_, look)| *look).unwrap_or_default();
            self.traffic.ports[position].saw(look);
            let (name, number) = (&input.name, input.number.0);
            match &found {
                Some((interface, _)) if interface.index() == *index => {
                    if let Some(error) = error {
                        let text = format_args!("port {number} ({name}): {error}");
                        self.log.write(Level::Warn, text);
                    }
                    let outgrown = |ring: &ReceiveRing| ring.is_outgrown(look.mtu);
                    if !ring.as_ref().is_none_or(outgrown) {
                        continue;
                    }
                }
                None if ring.is_none() => continue,
                Some(_) | None => {}
            }
            if !self.traffic.ports[position].is_at_hand() {
                self.renewal_waits = true;
                continue;
            }
            renewed = true;
            match found {
                Some((interface, _)) => self.attach(position, &interface),
                None => {
                    let text = format_args!("port {number}: interface {name} has gone");
                    self.log.write(Level::Warn, text);
                    *ring = None;
                    self.traffic.ports[position].lose_link();
                }
            }
        }
        self.update_ports();
        renewed
    }

    /// Opens a port's interface again.
    fn attach(&mut self, position: usize, interface: &Interface) {
        let input = &mut self.inputs[position];
        let number = input.number.0;
        let Source::Interface { index, ring } = &mut input.source else {
            return;
        };
        let opened = (self.settings)
            .open_ring(interface, input.number)
            .and_then(|ring| Ok((ring, TransmitQueue::open(interface)?)));
        match opened {
            Ok((mut opened, transmit)) => {
                if let Some(old) = ring {
                    opened.carry_counts(old.counts());
                }
                *index = interface.index();
                *ring = Some(opened);
                self.traffic.ports[position].renew_link(transmit);
                self.traffic.forget_neighbour(position);
                let text = format_args!(
                    "port {number}: interface {} is open again",
                    interface.name()
                );
                self.log.write(Level::Info, text);
            }
            Err(error) => {
                *ring = None;
                self.traffic.ports[position].lose_link();
                self.log
                    .write(Level::Warn, format_args!("port {number}: {error}"));
            }
        }
    }

    /// Hands what captures hold to their files.
    pub(super) fn flush_captures(&mut self) {
        if self.settings.capture_directory.is_none() {
            return;
        }
        let incoming = self
            .inputs
            .iter_mut()
            .filter_map(|input| input.capture.as_mut());
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

    /// Sockets that are to take frames again before their ports go on.
    pub(super) fn awaited(&self) -> impl Iterator<Item = &TransmitQueue> {
        self.traffic.ports.iter().filter_map(Port::awaited)
    }
}
