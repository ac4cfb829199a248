//! The data path: ingress, replication, egress.
//!
//! Order and side effects are those of `simple_switch` (behavioral-model,
//! `targets/simple_switch/simple_switch.cpp`): clone, digest, resubmit, multicast, drop,
//! unicast after ingress; clone, drop, deparse, recirculate, send after egress.

use super::codec::{self, BitWriter};
use super::config::{PortId, limits};
use super::copies::{Pass, instance};
use super::entry::Replica;
use super::machine::Flow;
use super::packet::{DequeueInfo, Queued};
use super::stages::{applies, run_control, run_parser};
use super::statistics::{DropCause, Event};
use super::{Bits, Pipeline};
use crate::program::{DigestId, ones};
use crate::trace::{Mark, Stage, TraceEvent, Verification};

/// The traffic manager: takes packets that ingress is done with.
pub trait TrafficSink {
    /// Queues a packet for [`Queued::port`] and [`Queued::priority`]. Without room the
    /// packet comes back; it is counted as [`DropCause::QueueFull`].
    fn enqueue(&mut self, packet: Queued) -> Result<(), Queued>;

    /// A digest for the control plane: its fields in order. Rare; the values are copies.
    fn digest(&mut self, digest: DigestId, fields: &[Bits]);
}

/// Takes what egress makes: frames, and packets that go to the traffic manager again.
pub trait EmitSink: TrafficSink {
    /// Sends a frame by a port.
    fn transmit(&mut self, port: PortId, frame: &[u8]);
}

impl Pipeline {
    /// Processes a packet that has arrived: parser, ingress, replication. Copies that live
    /// on are handed to `sink`.
    ///
    /// `now_us`: time in µs since any start, the one `*_timestamp` metadata counts from.
    pub fn ingress<S: TrafficSink>(
        &mut self,
        packet: &[u8],
        port: PortId,
        now_us: u64,
        sink: &mut S,
    ) {
        if self.tracing.is_on() {
            return self.ingress_traced(packet, port, now_us, sink);
        }
        self.ingress_packet(packet, port, now_us, sink);
    }

    pub(super) fn ingress_packet<S: TrafficSink>(
        &mut self,
        packet: &[u8],
        port: PortId,
        now_us: u64,
        sink: &mut S,
    ) {
        let statistics = &mut self.machine.statistics;
        statistics.received = statistics.received.wrapping_add(1);
        statistics.begin(port.0);
        if packet.len() > limits::PACKET_BYTES_MAX {
            return self.machine.end_packet(DropCause::TooLong);
        }
        let machine = &mut self.machine;
        machine.packet.clear();
        machine.packet.extend_from_slice(packet);
        machine.reset();
        machine.now_us = now_us;
        machine.truncate = None;
        machine.ingress_bytes = packet.len() as u64;
        let intrinsics = &self.program.intrinsics;
        machine.set(intrinsics.ingress_port, u64::from(port.0));
        machine.set(intrinsics.packet_length, packet.len() as u64);
        machine.set(intrinsics.instance_type, instance::NORMAL);
        machine.set_optional(intrinsics.ingress_global_timestamp, now_us);
        let pass = Pass {
            ingress_port: port,
            passes: 1,
            clone_depth: 0,
        };
        self.run_ingress(pass, sink);
    }

    /// Processes a packet that has left its queue: egress, checksums, deparser. Frames and
    /// copies are handed to `sink`; a recirculated packet passes ingress before this
    /// returns.
    pub fn egress<S: EmitSink>(&mut self, packet: Queued, dequeue: &DequeueInfo, sink: &mut S) {
        if packet.body.trace.traces != 0 {
            return self.egress_traced(packet, dequeue, sink);
        }
        self.egress_packet(packet, dequeue, sink);
    }

    pub(super) fn egress_packet<S: EmitSink>(
        &mut self,
        packet: Queued,
        dequeue: &DequeueInfo,
        sink: &mut S,
    ) {
        let mut body = packet.body;
        let pass = Pass {
            ingress_port: body.ingress_port,
            passes: body.passes,
            clone_depth: body.clone_depth,
        };
        let port = body.port;
        let priority = body.priority;
        self.machine.statistics.begin(body.ingress_port.0);
        body.restore(&mut self.machine);
        self.pool.give(body);
        self.machine.marks = Default::default();
        self.machine.now_us = dequeue.dequeued_us;
        self.set_egress_metadata(port, priority, dequeue);
        self.machine.record(|| TraceEvent::Entered(Stage::Egress));
        let flow = run_control(
            &self.program,
            &self.program.egress,
            &mut self.tables,
            &self.profiles,
            &mut self.machine,
            &mut self.key,
        );
        self.machine.record(|| TraceEvent::Left(Stage::Egress));
        match flow {
            Flow::Done | Flow::Error(_) => {}
            Flow::Drop(cause) => return self.machine.end_packet(cause),
        }
        self.clone_egress(pass, sink);
        let egress_spec = self.machine.get(self.program.intrinsics.egress_spec);
        if egress_spec == self.drop_spec {
            return self.machine.end_packet(DropCause::EgressMarked);
        }
        self.deparse();
        if self.frame.len() > limits::PACKET_BYTES_MAX {
            return self.machine.end_packet(DropCause::TooLong);
        }
        if let Some(list) = self.machine.marks.recirculate {
            return self.recirculate(list, pass, sink);
        }
        let statistics = &mut self.machine.statistics;
        statistics.transmitted = statistics.transmitted.wrapping_add(1);
        self.machine.record(|| TraceEvent::Transmitted {
            port: port.0,
            frame: self.frame.as_slice().into(),
        });
        sink.transmit(port, &self.frame);
    }

    /// Takes back a packet that was thrown away after it had been queued.
    pub fn recycle(&mut self, packet: Queued) {
        self.tracing.copy_ended(packet.body.trace);
        self.pool.give(packet.body);
    }

    /// Parser and ingress for the packet in the machine, as often as it is resubmitted.
    fn run_ingress<S: TrafficSink>(&mut self, mut pass: Pass, sink: &mut S) {
        loop {
            self.machine.length = self.machine.packet.len() as u64;
            match self.parse() {
                Ok(()) => {}
                Err(cause) => return self.machine.end_packet(cause),
            }
            self.machine.record(|| TraceEvent::Entered(Stage::Ingress));
            let flow = run_control(
                &self.program,
                &self.program.ingress,
                &mut self.tables,
                &self.profiles,
                &mut self.machine,
                &mut self.key,
            );
            self.machine.record(|| TraceEvent::Left(Stage::Ingress));
            if let Flow::Drop(cause) = flow {
                return self.machine.end_packet(cause);
            }
            let marks = self.machine.marks;
            if let Some((session, list)) = marks.clone {
                self.clone_ingress(session, list, pass, sink);
            }
            if let Some(list) = marks.digest {
                self.send_digest(list, sink);
            }
            let Some(list) = marks.resubmit else { break };
            if pass.passes >= limits::PASSES_MAX {
                return self.machine.end_packet(DropCause::PassLimit);
            }
            pass.passes += 1;
            self.restart(list, instance::RESUBMITTED);
            let length = self.machine.packet.len() as u64;
            let intrinsics = &self.program.intrinsics;
            self.machine.set(intrinsics.packet_length, length);
            let statistics = &mut self.machine.statistics;
            statistics.resubmitted = statistics.resubmitted.wrapping_add(1);
            self.machine.record(|| TraceEvent::Resubmitted);
        }
        self.leave_ingress(pass, sink);
    }

    /// Multicast, drop or unicast.
    fn leave_ingress<S: TrafficSink>(&mut self, pass: Pass, sink: &mut S) {
        let intrinsics = &self.program.intrinsics;
        let group = intrinsics
            .mcast_grp
            .map_or(0, |field| self.machine.get(field));
        if group != 0 {
            self.machine
                .set(intrinsics.instance_type, instance::REPLICATED);
            let count = self.replicate(group, pass, sink);
            if count == 0 {
                self.machine.end_packet(DropCause::MulticastGroupEmpty);
            }
            let statistics = &mut self.machine.statistics;
            statistics.replicated = statistics.replicated.wrapping_add(count);
            return;
        }
        let egress_spec = self.machine.get(intrinsics.egress_spec);
        if egress_spec == self.drop_spec {
            return self.machine.end_packet(DropCause::IngressMarked);
        }
        self.machine.set(intrinsics.instance_type, instance::NORMAL);
        self.enqueue(PortId(egress_spec as u16), 0, pass, true, sink);
    }

    /// One copy of the packet for each replica of a group. Gives how many.
    fn replicate<S: TrafficSink>(&mut self, group: u64, pass: Pass, sink: &mut S) -> u64 {
        let replicas = std::mem::take(&mut self.replicas);
        let mut replicas = replicas;
        replicas.clear();
        replicas.extend_from_slice(self.replication.group(group));
        self.machine.record(|| TraceEvent::Replicated {
            group,
            replicas: replicas.as_slice().into(),
        });
        // BMv2 copies without the length to cut to.
        let truncate = self.machine.truncate.take();
        self.copy_to(&replicas, pass, sink);
        self.machine.truncate = truncate;
        let count = replicas.len() as u64;
        self.replicas = replicas;
        count
    }

    pub(super) fn copy_to<S: TrafficSink>(
        &mut self,
        replicas: &[Replica],
        pass: Pass,
        sink: &mut S,
    ) {
        for replica in replicas {
            let rid = self.program.intrinsics.egress_rid;
            self.machine.set_optional(rid, u64::from(replica.instance));
            self.enqueue(replica.port, replica.instance, pass, false, sink);
        }
    }

    /// Hands the packet in the machine to the traffic manager: itself, or a copy.
    fn enqueue<S: TrafficSink>(
        &mut self,
        port: PortId,
        instance: u16,
        pass: Pass,
        last: bool,
        sink: &mut S,
    ) {
        let priority = self.program.intrinsics.priority;
        let priority = priority.map_or(0, |field| self.machine.get(field));
        if priority >= u64::from(self.config.priorities) {
            return self.machine.end_packet(DropCause::PriorityOutOfRange);
        }
        let vector_words = self.program.layout.words as usize;
        let mut body = self.pool.take();
        if last {
            body.take_from(&mut self.machine, vector_words);
        } else {
            body.copy_from(&self.machine, vector_words);
        }
        body.port = port;
        body.priority = priority as u8;
        body.instance = instance;
        body.ingress_port = pass.ingress_port;
        body.passes = pass.passes;
        body.clone_depth = pass.clone_depth;
        body.trace = match &self.machine.recorder {
            None => Mark::default(),
            Some(recorder) => self.tracing.copy_waits(recorder.mark()),
        };
        self.machine.record(|| TraceEvent::Enqueued {
            copy: body.trace.copy,
            port: port.0,
            priority: body.priority,
            instance,
        });
        match sink.enqueue(Queued { body }) {
            Ok(()) => {
                let statistics = &mut self.machine.statistics;
                statistics.enqueued = statistics.enqueued.wrapping_add(1);
            }
            Err(packet) => {
                self.machine.end_packet(DropCause::QueueFull);
                self.tracing.copy_ended(packet.body.trace);
                self.pool.give(packet.body);
            }
        }
    }

    /// Runs the parser, then verifies checksums.
    fn parse(&mut self) -> Result<(), DropCause> {
        let program = &*self.program;
        self.machine.record(|| TraceEvent::ParserStarted);
        let error = run_parser(program, &mut self.machine, &mut self.key)?;
        let bytes = self.machine.cursor;
        self.machine
            .record(|| TraceEvent::ParserEnded { error, bytes });
        if error.is_some() {
            self.machine.statistics.count_event(Event::ParserError);
        }
        let wrong = self.verify_checksums()?;
        if wrong {
            self.machine.statistics.count_event(Event::ChecksumError);
        }
        let intrinsics = &self.program.intrinsics;
        let error = error.unwrap_or(self.program.errors.no_error);
        self.machine.set_optional(intrinsics.parser_error, error);
        self.machine
            .set_optional(intrinsics.checksum_error, u64::from(wrong));
        Ok(())
    }

    fn verify_checksums(&mut self) -> Result<bool, DropCause> {
        let program = &*self.program;
        let mut wrong = false;
        for (number, checksum) in (0..).zip(&program.verified) {
            let valid = self.machine.words[checksum.target_valid as usize] != 0;
            let verification = if !valid {
                Verification::TargetInvalid
            } else if applies(program, &mut self.machine, checksum)? {
                let computed = self.machine.calculate(program, checksum.calculation);
                let found = self.machine.words[checksum.target as usize];
                wrong |= computed != found;
                Verification::Computed { computed, found }
            } else {
                Verification::ConditionFalse
            };
            self.machine.record(|| TraceEvent::Verified {
                checksum: number,
                verification,
            });
        }
        Ok(wrong)
    }

    fn send_digest<S: TrafficSink>(&mut self, list: u64, sink: &mut S) {
        let Some((digest, fields)) = self.program.digest_lists.get(&list) else {
            return;
        };
        let words = &self.machine.words;
        let values: Vec<Bits> = fields
            .iter()
            .map(|field| {
                let first = field.slot as usize;
                Bits::from_limbs(&words[first..first + field.limbs as usize])
            })
            .collect();
        self.machine.statistics.count_event(Event::Digest);
        self.machine.record(|| TraceEvent::Digested {
            digest: *digest,
            fields: values.as_slice().into(),
        });
        sink.digest(*digest, &values);
    }

    fn set_egress_metadata(&mut self, port: PortId, priority: u8, dequeue: &DequeueInfo) {
        let intrinsics = &self.program.intrinsics;
        let machine = &mut self.machine;
        machine.set_optional(intrinsics.egress_global_timestamp, dequeue.dequeued_us);
        if let Some(queueing) = &intrinsics.queueing {
            machine.set(queueing.enq_timestamp, dequeue.enqueued_us);
            machine.set(queueing.enq_qdepth, u64::from(dequeue.enqueue_depth));
            let waited = dequeue.dequeued_us.saturating_sub(dequeue.enqueued_us);
            machine.set(queueing.deq_timedelta, waited);
            machine.set(queueing.deq_qdepth, u64::from(dequeue.dequeue_depth));
            machine.set_optional(intrinsics.qid, u64::from(priority));
        }
        machine.set(intrinsics.egress_port, u64::from(port.0));
        // Any value but the drop port, which would drop the packet after egress.
        machine.set(
            intrinsics.egress_spec,
            u64::from(self.config.drop_port.0) + 1,
        );
        let length = machine.length;
        machine.set(intrinsics.packet_length, length);
    }

    /// Updates checksums and writes the frame: valid headers in order, then the payload.
    fn deparse(&mut self) {
        let program = &*self.program;
        let machine = &mut self.machine;
        for (number, checksum) in (0..).zip(&program.updated) {
            let applied = applies(program, machine, checksum).unwrap_or(false);
            if applied {
                let value = machine.calculate(program, checksum.calculation);
                machine.words[checksum.target as usize] = value & ones(checksum.target_width);
            }
            let value = applied.then(|| machine.words[checksum.target as usize]);
            machine.record(|| TraceEvent::Updated {
                checksum: number,
                value,
            });
        }
        if let Some(code) = program.deparser_code {
            machine.run(program, code);
        }
        self.frame.clear();
        let mut out = BitWriter::new(&mut self.frame);
        for &number in &program.deparser {
            let header = &program.layout.headers[number as usize];
            let base = header.base as usize;
            if machine.words[base] == 0 {
                continue;
            }
            machine.record(|| TraceEvent::Deparsed { header: number });
            let kind = &program.layout.types[header.kind as usize];
            codec::deparse(
                &kind.pieces,
                &machine.words,
                base,
                header.varbit,
                &machine.packet,
                &mut out,
            );
            out.align();
        }
        out.put_bytes(&machine.packet[machine.cursor..]);
        if let Some(bytes) = machine.truncate {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            self.frame.truncate(bytes);
        }
    }

    fn recirculate<S: EmitSink>(&mut self, list: u64, mut pass: Pass, sink: &mut S) {
        if pass.passes >= limits::PASSES_MAX {
            return self.machine.end_packet(DropCause::PassLimit);
        }
        pass.passes += 1;
        std::mem::swap(&mut self.machine.packet, &mut self.frame);
        self.restart(list, instance::RECIRCULATED);
        let length = self.machine.packet.len() as u64;
        self.machine.ingress_bytes = length;
        let field = self.program.intrinsics.packet_length;
        self.machine.set(field, length);
        let statistics = &mut self.machine.statistics;
        statistics.recirculated = statistics.recirculated.wrapping_add(1);
        self.machine.record(|| TraceEvent::Recirculated {
            bytes: length as usize,
        });
        self.run_ingress(pass, sink);
    }
}
