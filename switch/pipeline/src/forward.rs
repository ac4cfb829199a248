//! The data path: ingress, replication, egress.
//!
//! Order and side effects are those of `simple_switch` (behavioral-model,
//! `targets/simple_switch/simple_switch.cpp`): clone, digest, resubmit, multicast, drop,
//! unicast after ingress; clone, drop, deparse, recirculate, send after egress.

use super::Pipeline;
use super::config::{PortId, limits};
use super::copies::{Pass, instance};
use super::entry::Replica;
use super::event::TraceEvent;
use super::packet::{DequeueInfo, Queued};
use super::recorder::Mark;
use super::sink::EmitSink;
use super::statistics::DropCause;
use wormcast_switch_program::Stage;

impl Pipeline {
    /// Processes a packet that has arrived: parser, ingress, replication. Copies that live
    /// on are handed to `sink`: queued, or as frames where [`TrafficSink::passes`] allows.
    ///
    /// `now_us`: time in µs since any start, the one `*_timestamp` metadata counts from.
    pub fn ingress<S: EmitSink>(&mut self, packet: &[u8], port: PortId, now_us: u64, sink: &mut S) {
        if self.tracing.is_on() {
            return self.ingress_traced(packet, port, now_us, sink);
        }
        self.ingress_packet(packet, port, now_us, sink);
    }

    pub(super) fn ingress_packet<S: EmitSink>(
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
        machine.reset();
        machine.now_us = now_us;
        machine.truncate = None;
        machine.cut = u64::MAX;
        machine.ingress_bytes = packet.len() as u64;
        let intrinsics = &self.program.intrinsics;
        machine.set(intrinsics.ingress_port, u64::from(port.0));
        machine.set(intrinsics.packet_length, packet.len() as u64);
        machine.set(intrinsics.instance_type, instance::NORMAL);
        machine.set_optional(intrinsics.ingress_global_timestamp, now_us);
        let pass = Pass {
            ingress_port: port,
            passes: 1,
            recirculations: 0,
            clone_depth: 0,
            // A record is of one half of the pipeline.
            direct: self.machine.recorder.is_none(),
        };
        self.run_ingress(packet, pass, sink);
        self.hand_over_deferred(sink);
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
        let body = packet.body;
        let pass = Pass {
            ingress_port: body.ingress_port,
            passes: 1,
            recirculations: body.recirculations,
            clone_depth: body.clone_depth,
            direct: false,
        };
        self.machine.statistics.begin(body.ingress_port.0);
        body.restore(&mut self.machine);
        self.machine.now_us = dequeue.dequeued_us;
        self.run_egress(&body.packet, body.port, body.priority, pass, dequeue, sink);
        self.pool.give(body);
    }

    /// Takes back a packet that was thrown away after it had been queued.
    pub fn recycle(&mut self, packet: Queued) {
        self.tracing.copy_ended(packet.body.trace);
        self.pool.give(packet.body);
    }

    /// Parser and ingress for the packet in the machine, as often as it is resubmitted.
    fn run_ingress<S: EmitSink>(&mut self, packet: &[u8], mut pass: Pass, sink: &mut S) {
        loop {
            self.machine.length = packet.len() as u64;
            match self.parse(packet) {
                Ok(()) => {}
                Err(cause) => return self.machine.end_packet(cause),
            }
            self.machine.record(|| TraceEvent::Entered(Stage::Ingress));
            let ended = self.run_ingress_control(packet);
            self.machine.record(|| TraceEvent::Left(Stage::Ingress));
            if let Err(cause) = ended {
                return self.machine.end_packet(cause);
            }
            let marks = self.machine.marks;
            if let Some((session, list)) = marks.clone {
                self.clone_ingress(packet, session, list, pass, sink);
                // A clone that waits in a queue must not be overtaken.
                pass.direct = false;
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
            let intrinsics = &self.program.intrinsics;
            self.machine
                .set(intrinsics.packet_length, packet.len() as u64);
            let statistics = &mut self.machine.statistics;
            statistics.resubmitted = statistics.resubmitted.wrapping_add(1);
            self.machine.record(|| TraceEvent::Resubmitted);
        }
        self.leave_ingress(packet, pass, sink);
    }

    /// Multicast, drop or unicast.
    fn leave_ingress<S: EmitSink>(&mut self, packet: &[u8], pass: Pass, sink: &mut S) {
        let intrinsics = &self.program.intrinsics;
        let group = intrinsics
            .mcast_grp
            .map_or(0, |field| self.machine.get(field));
        if group != 0 {
            self.machine
                .set(intrinsics.instance_type, instance::REPLICATED);
            let count = self.replicate(packet, group, pass, sink);
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
        let port = PortId(egress_spec as u16);
        let Some(priority) = self.priority() else {
            return;
        };
        if pass.direct && sink.passes(port, priority, self.length_bytes()) {
            self.pass_through(packet, port, priority, pass, sink);
        } else {
            self.enqueue(packet, port, 0, priority, pass, sink);
        }
    }

    /// One copy of the packet for each replica of a group. Gives how many.
    fn replicate<S: EmitSink>(
        &mut self,
        packet: &[u8],
        group: u64,
        pass: Pass,
        sink: &mut S,
    ) -> u64 {
        let mut replicas = std::mem::take(&mut self.replicas);
        replicas.clear();
        replicas.extend_from_slice(self.replication.group(group));
        self.machine.record(|| TraceEvent::Replicated {
            group,
            replicas: replicas.as_slice().into(),
        });
        // BMv2 copies without the length to cut to.
        let truncate = self.machine.truncate.take();
        self.copy_to(packet, &replicas, pass, sink);
        self.machine.truncate = truncate;
        let count = replicas.len() as u64;
        self.replicas = replicas;
        count
    }

    /// Makes copies of the packet in the machine, which stays there.
    pub(super) fn copy_to<S: EmitSink>(
        &mut self,
        packet: &[u8],
        replicas: &[Replica],
        pass: Pass,
        sink: &mut S,
    ) {
        let mut saved = false;
        for (number, replica) in replicas.iter().enumerate() {
            let rid = self.program.intrinsics.egress_rid;
            self.machine.set_optional(rid, u64::from(replica.instance));
            let Some(priority) = self.priority() else {
                continue;
            };
            let (port, instance) = (replica.port, replica.instance);
            if !pass.direct || !sink.passes(port, priority, self.length_bytes()) {
                self.enqueue(packet, port, instance, priority, pass, sink);
                continue;
            }
            // Nothing looks at the header vector behind the last copy.
            let last = number + 1 == replicas.len();
            if !saved && !last {
                self.save_for_egress();
                saved = true;
            }
            let machine = &self.machine;
            let (cursor, length) = (machine.cursor, machine.length);
            let (truncate, cut) = (machine.truncate, machine.cut);
            let ingress_bytes = machine.ingress_bytes;
            self.pass_through(packet, port, priority, pass, sink);
            let machine = &mut self.machine;
            (machine.cursor, machine.length) = (cursor, length);
            (machine.truncate, machine.cut) = (truncate, cut);
            machine.ingress_bytes = ingress_bytes;
            if !last {
                self.restore_after_egress();
            }
        }
    }

    /// Keeps the words that egress may write.
    fn save_for_egress(&mut self) {
        self.vector.clear();
        for range in &self.program.footprint.egress_writes {
            let words = &self.machine.words[range.clone()];
            self.vector.extend_from_slice(words);
        }
    }

    fn restore_after_egress(&mut self) {
        let mut rest = self.vector.as_slice();
        for range in &self.program.footprint.egress_writes {
            let (words, after) = rest.split_at(range.len());
            self.machine.words[range.clone()].copy_from_slice(words);
            rest = after;
        }
    }

    /// Runs egress for the packet in the machine, which is changed, at once.
    fn pass_through<S: EmitSink>(
        &mut self,
        packet: &[u8],
        port: PortId,
        priority: u8,
        pass: Pass,
        sink: &mut S,
    ) {
        let statistics = &mut self.machine.statistics;
        statistics.enqueued = statistics.enqueued.wrapping_add(1);
        let now_us = self.machine.now_us;
        let dequeue = DequeueInfo {
            enqueued_us: now_us,
            dequeued_us: now_us,
            ..DequeueInfo::default()
        };
        let pass = Pass {
            direct: false,
            ..pass
        };
        self.running_direct = true;
        self.run_egress(packet, port, priority, pass, &dequeue, sink);
        self.running_direct = false;
    }

    /// The queue the packet in the machine belongs into; none, and counted, past the last.
    fn priority(&mut self) -> Option<u8> {
        let priority = self.program.intrinsics.priority;
        let priority = priority.map_or(0, |field| self.machine.get(field));
        if priority < u64::from(self.config.priorities) {
            return Some(priority as u8);
        }
        self.machine.end_packet(DropCause::PriorityOutOfRange);
        None
    }

    /// [`Queued::length_bytes`] of the packet in the machine.
    fn length_bytes(&self) -> u32 {
        let cut = self.machine.truncate.unwrap_or(u64::MAX);
        let cut = cut.min(self.machine.cut);
        u32::try_from(self.machine.length.min(cut)).unwrap_or(u32::MAX)
    }

    /// Hands a copy of the packet in the machine to the traffic manager.
    fn enqueue<S: EmitSink>(
        &mut self,
        packet: &[u8],
        port: PortId,
        instance: u16,
        priority: u8,
        pass: Pass,
        sink: &mut S,
    ) {
        let vector_words = self.program.layout.words as usize;
        let mut body = self.pool.take();
        body.copy_from(&self.machine, packet, vector_words);
        body.port = port;
        body.priority = priority;
        body.instance = instance;
        body.ingress_port = pass.ingress_port;
        body.recirculations = pass.recirculations;
        body.clone_depth = pass.clone_depth;
        body.trace = match &self.machine.recorder {
            None => Mark::default(),
            Some(recorder) => self.tracing.copy_waits(recorder.mark()),
        };
        self.machine.record(|| TraceEvent::Enqueued {
            copy: body.trace.copy,
            port: port.0,
            priority,
            instance,
        });
        if self.running_direct {
            if self.deferred.len() >= limits::DEFERRED_PACKETS_MAX {
                self.hand_over_deferred(sink);
            }
            self.deferred.push_back(Queued { body });
        } else {
            self.hand_over(Queued { body }, sink);
        }
    }

    fn hand_over<S: EmitSink>(&mut self, packet: Queued, sink: &mut S) {
        match sink.enqueue(packet) {
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

    /// Hands over what egress has made of packets that ran through it in one go.
    fn hand_over_deferred<S: EmitSink>(&mut self, sink: &mut S) {
        while let Some(packet) = self.deferred.pop_front() {
            self.hand_over(packet, sink);
        }
    }

    /// Egress for the packet in the machine.
    fn run_egress<S: EmitSink>(
        &mut self,
        packet: &[u8],
        port: PortId,
        priority: u8,
        pass: Pass,
        dequeue: &DequeueInfo,
        sink: &mut S,
    ) {
        self.machine.marks = Default::default();
        self.machine.loops = 0;
        self.set_egress_metadata(port, priority, dequeue);
        self.machine.record(|| TraceEvent::Entered(Stage::Egress));
        let ended = self.run_egress_control(packet);
        self.machine.record(|| TraceEvent::Left(Stage::Egress));
        if let Err(cause) = ended {
            return self.machine.end_packet(cause);
        }
        self.clone_egress(packet, pass, sink);
        let egress_spec = self.machine.get(self.program.intrinsics.egress_spec);
        if egress_spec == self.drop_spec {
            return self.machine.end_packet(DropCause::EgressMarked);
        }
        self.deparse(packet);
        if self.frame.len() > limits::PACKET_BYTES_MAX {
            return self.machine.end_packet(DropCause::TooLong);
        }
        if let Some(list) = self.machine.marks.recirculate {
            return self.recirculate(list, pass, sink);
        }
        self.truncate_frame();
        let statistics = &mut self.machine.statistics;
        statistics.transmitted = statistics.transmitted.wrapping_add(1);
        self.machine.record(|| TraceEvent::Transmitted {
            port: port.0,
            frame: self.frame.as_slice().into(),
        });
        sink.transmit(port, &self.frame);
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

    /// Sends the frame that was just made through ingress again.
    fn recirculate<S: EmitSink>(&mut self, list: u64, mut pass: Pass, sink: &mut S) {
        let most = self.config.recirculations_max;
        if most.is_some_and(|most| pass.recirculations >= most) {
            return self.machine.end_packet(DropCause::PassLimit);
        }
        pass.recirculations = pass.recirculations.saturating_add(1);
        let spare = std::mem::take(&mut self.spare_frame);
        let packet = std::mem::replace(&mut self.frame, spare);
        // Other copies of the packet may have to run through egress yet.
        let mut saved = std::mem::take(&mut self.saved);
        if self.running_direct {
            let vector_words = self.program.layout.words as usize;
            saved.clear();
            saved.extend_from_slice(&self.machine.words[..vector_words]);
        }
        self.restart(list, instance::RECIRCULATED);
        let length = packet.len() as u64;
        self.machine.ingress_bytes = length;
        let field = self.program.intrinsics.packet_length;
        self.machine.set(field, length);
        let statistics = &mut self.machine.statistics;
        statistics.recirculated = statistics.recirculated.wrapping_add(1);
        self.machine.record(|| TraceEvent::Recirculated {
            bytes: length as usize,
        });
        self.run_ingress(&packet, pass, sink);
        if self.running_direct {
            self.machine.words[..saved.len()].copy_from_slice(&saved);
        }
        self.saved = saved;
        self.spare_frame = packet;
    }
}
