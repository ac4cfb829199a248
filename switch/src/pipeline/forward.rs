//! The data path: ingress, replication, egress.
//!
//! Order and side effects are those of `simple_switch` (behavioral-model,
//! `targets/simple_switch/simple_switch.cpp`): clone, digest, resubmit, multicast, drop,
//! unicast after ingress; clone, drop, deparse, recirculate, send after egress.

use super::codec::{self, BitWriter};
use super::config::{PortId, limits};
use super::entry::Replica;
use super::machine::{Flow, Machine};
use super::packet::{DequeueInfo, Queued};
use super::profile::Profile;
use super::statistics::{DropCause, Event};
use super::table::{Outcome, TableState, next_after};
use super::{Bits, Pipeline};
use crate::program::{
    Case, Checksum, Control, ControlNode, DigestId, Next, Program, Slot, ones,
};

/// Values of `standard_metadata.instance_type`.
mod instance {
    pub const NORMAL: u64 = 0;
    pub const INGRESS_CLONE: u64 = 1;
    pub const EGRESS_CLONE: u64 = 2;
    pub const RECIRCULATED: u64 = 4;
    pub const REPLICATED: u64 = 5;
    pub const RESUBMITTED: u64 = 6;
}

/// The traffic manager: takes packets that ingress is done with.
pub trait TrafficSink {
    /// Queues a packet for [`Queued::port`] and [`Queued::priority`]. Without room the
    /// packet comes back; it is counted as [`DropCause::QueueFull`].
    #[allow(clippy::result_large_err)]
    fn enqueue(&mut self, packet: Queued) -> Result<(), Queued>;

    /// A digest for the control plane: its fields in order. Rare; the values are copies.
    fn digest(&mut self, digest: DigestId, fields: &[Bits]);
}

/// Takes what egress makes: frames, and packets that go to the traffic manager again.
pub trait EmitSink: TrafficSink {
    /// Sends a frame by a port.
    fn transmit(&mut self, port: PortId, frame: &[u8]);
}

/// The packet that a pass is about.
#[derive(Clone, Copy)]
struct Pass {
    ingress_port: PortId,
    passes: u8,
    clone_depth: u8,
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
        let statistics = &mut self.machine.statistics;
        statistics.received = statistics.received.wrapping_add(1);
        if packet.len() > limits::PACKET_BYTES_MAX {
            statistics.count_drop(DropCause::TooLong);
            return;
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
        let mut body = packet.body;
        let pass = Pass {
            ingress_port: body.ingress_port,
            passes: body.passes,
            clone_depth: body.clone_depth,
        };
        let port = body.port;
        let priority = body.priority;
        body.restore(&mut self.machine);
        self.pool.give(body);
        self.machine.marks = Default::default();
        self.machine.now_us = dequeue.dequeued_us;
        self.set_egress_metadata(port, priority, dequeue);
        match run_control(
            &self.program,
            &self.program.egress,
            &mut self.tables,
            &self.profiles,
            &mut self.machine,
            &mut self.key,
        ) {
            Flow::Done | Flow::Error(_) => {}
            Flow::Drop(cause) => return self.machine.statistics.count_drop(cause),
        }
        self.clone_egress(pass, sink);
        let egress_spec = self.machine.get(self.program.intrinsics.egress_spec);
        if egress_spec == self.drop_spec {
            return self.machine.statistics.count_drop(DropCause::EgressMarked);
        }
        self.deparse();
        if self.frame.len() > limits::PACKET_BYTES_MAX {
            return self.machine.statistics.count_drop(DropCause::TooLong);
        }
        if let Some(list) = self.machine.marks.recirculate {
            return self.recirculate(list, pass, sink);
        }
        let statistics = &mut self.machine.statistics;
        statistics.transmitted = statistics.transmitted.wrapping_add(1);
        sink.transmit(port, &self.frame);
    }

    /// Takes back a packet that was thrown away after it had been queued.
    pub fn recycle(&mut self, packet: Queued) {
        self.pool.give(packet.body);
    }

    /// Parser and ingress for the packet in the machine, as often as it is resubmitted.
    fn run_ingress<S: TrafficSink>(&mut self, mut pass: Pass, sink: &mut S) {
        loop {
            self.machine.length = self.machine.packet.len() as u64;
            match self.parse() {
                Ok(()) => {}
                Err(cause) => return self.machine.statistics.count_drop(cause),
            }
            let flow = run_control(
                &self.program,
                &self.program.ingress,
                &mut self.tables,
                &self.profiles,
                &mut self.machine,
                &mut self.key,
            );
            if let Flow::Drop(cause) = flow {
                return self.machine.statistics.count_drop(cause);
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
                return self.machine.statistics.count_drop(DropCause::PassLimit);
            }
            pass.passes += 1;
            self.restart(list, instance::RESUBMITTED);
            let length = self.machine.packet.len() as u64;
            let intrinsics = &self.program.intrinsics;
            self.machine.set(intrinsics.packet_length, length);
            let statistics = &mut self.machine.statistics;
            statistics.resubmitted = statistics.resubmitted.wrapping_add(1);
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
            let statistics = &mut self.machine.statistics;
            if count == 0 {
                statistics.count_drop(DropCause::MulticastGroupEmpty);
            }
            statistics.replicated = statistics.replicated.wrapping_add(count);
            return;
        }
        let egress_spec = self.machine.get(intrinsics.egress_spec);
        if egress_spec == self.drop_spec {
            return self.machine.statistics.count_drop(DropCause::IngressMarked);
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
        // BMv2 copies without the length to cut to.
        let truncate = self.machine.truncate.take();
        self.copy_to(&replicas, pass, sink);
        self.machine.truncate = truncate;
        let count = replicas.len() as u64;
        self.replicas = replicas;
        count
    }

    fn copy_to<S: TrafficSink>(&mut self, replicas: &[Replica], pass: Pass, sink: &mut S) {
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
            let statistics = &mut self.machine.statistics;
            return statistics.count_drop(DropCause::PriorityOutOfRange);
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
        let statistics = &mut self.machine.statistics;
        match sink.enqueue(Queued { body }) {
            Ok(()) => statistics.enqueued = statistics.enqueued.wrapping_add(1),
            Err(packet) => {
                statistics.count_drop(DropCause::QueueFull);
                self.pool.give(packet.body);
            }
        }
    }

    /// Runs the parser, then verifies checksums.
    fn parse(&mut self) -> Result<(), DropCause> {
        let program = &*self.program;
        let error = run_parser(program, &mut self.machine, &mut self.key)?;
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
        for checksum in &program.verified {
            let valid = self.machine.words[checksum.target_valid as usize] != 0;
            if valid && applies(program, &mut self.machine, checksum)? {
                let expected = self.machine.calculate(program, checksum.calculation);
                wrong |= expected != self.machine.words[checksum.target as usize];
            }
        }
        Ok(wrong)
    }

    /// Starts another pass of the packet in the machine; the fields of the list survive.
    fn restart(&mut self, list: u64, instance_type: u64) {
        self.keep_fields(list);
        self.machine.reset();
        self.return_fields();
        self.machine.truncate = None;
        let field = self.program.intrinsics.instance_type;
        self.machine.set(field, instance_type);
    }

    fn keep_fields(&mut self, list: u64) {
        self.kept.clear();
        let Some(list) = self.program.field_lists.get(&list) else {
            return;
        };
        for &(slot, limbs) in &list.fields {
            for slot in slot..slot + limbs {
                self.kept.push((slot, self.machine.words[slot as usize]));
            }
        }
    }

    fn return_fields(&mut self) {
        for &(slot, word) in &self.kept {
            self.machine.words[slot as usize] = word;
        }
    }

    /// Makes the clones of a session out of the packet in the machine.
    fn send_clones<S: TrafficSink>(&mut self, session: u64, pass: Pass, sink: &mut S) -> bool {
        if pass.clone_depth >= limits::CLONE_DEPTH_MAX {
            let statistics = &mut self.machine.statistics;
            statistics.count_drop(DropCause::CloneDepthLimit);
            return false;
        }
        let Some(session) = self.replication.session(session as u16 & 0x7fff) else {
            let statistics = &mut self.machine.statistics;
            statistics.count_drop(DropCause::CloneSessionUnknown);
            return false;
        };
        let mut replicas = std::mem::take(&mut self.replicas);
        replicas.clear();
        replicas.extend_from_slice(&session.replicas);
        let cut = session.packet_length_bytes;
        let truncate = std::mem::replace(
            &mut self.machine.truncate,
            (cut != 0).then_some(u64::from(cut)),
        );
        let pass = Pass {
            clone_depth: pass.clone_depth + 1,
            ..pass
        };
        self.copy_to(&replicas, pass, sink);
        self.machine.truncate = truncate;
        self.replicas = replicas;
        true
    }

    /// Clones the packet as it arrived: parsed once more, all metadata 0 but the list's.
    fn clone_ingress<S: TrafficSink>(
        &mut self,
        session: u64,
        list: u64,
        pass: Pass,
        sink: &mut S,
    ) {
        let vector_words = self.program.layout.words as usize;
        let mut saved = std::mem::take(&mut self.saved);
        saved.clear();
        saved.extend_from_slice(&self.machine.words[..vector_words]);
        let (cursor, length) = (self.machine.cursor, self.machine.length);
        let marks = self.machine.marks;

        self.keep_fields(list);
        self.machine.reset();
        let intrinsics = &self.program.intrinsics;
        let port = u64::from(pass.ingress_port.0);
        self.machine.set(intrinsics.ingress_port, port);
        let program = &*self.program;
        // The same packet was parsed before; its error is counted already.
        let _ = run_parser(program, &mut self.machine, &mut self.key);
        self.machine.reset_metadata(program);
        self.return_fields();
        let field = self.program.intrinsics.instance_type;
        self.machine.set(field, instance::INGRESS_CLONE);
        self.machine.length = self.machine.packet.len() as u64;
        if self.send_clones(session, pass, sink) {
            let statistics = &mut self.machine.statistics;
            statistics.cloned_ingress = statistics.cloned_ingress.wrapping_add(1);
        }

        self.machine.words[..vector_words].copy_from_slice(&saved);
        self.saved = saved;
        self.machine.cursor = cursor;
        self.machine.length = length;
        self.machine.marks = marks;
    }

    /// Clones the packet as egress has left it, all metadata 0 but the list's.
    fn clone_egress<S: TrafficSink>(&mut self, pass: Pass, sink: &mut S) {
        let Some((session, list)) = self.machine.marks.clone else {
            return;
        };
        let vector_words = self.program.layout.words as usize;
        let mut saved = std::mem::take(&mut self.saved);
        saved.clear();
        saved.extend_from_slice(&self.machine.words[..vector_words]);
        self.keep_fields(list);
        self.machine.reset_metadata(&self.program);
        self.return_fields();
        let field = self.program.intrinsics.instance_type;
        self.machine.set(field, instance::EGRESS_CLONE);
        if self.send_clones(session, pass, sink) {
            let statistics = &mut self.machine.statistics;
            statistics.cloned_egress = statistics.cloned_egress.wrapping_add(1);
        }
        self.machine.words[..vector_words].copy_from_slice(&saved);
        self.saved = saved;
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
        for checksum in &program.updated {
            if applies(program, machine, checksum).unwrap_or(false) {
                let value = machine.calculate(program, checksum.calculation);
                machine.words[checksum.target as usize] = value & ones(checksum.target_width);
            }
        }
        if let Some(code) = program.deparser_code {
            machine.run(program, code);
        }
        self.frame.clear();
        let mut out = BitWriter::new(&mut self.frame);
        for &header in &program.deparser {
            let header = &program.layout.headers[header as usize];
            let base = header.base as usize;
            if machine.words[base] == 0 {
                continue;
            }
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
            return self.machine.statistics.count_drop(DropCause::PassLimit);
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
        self.run_ingress(pass, sink);
    }
}

/// Whether the condition of a checksum holds.
fn applies(
    program: &Program,
    machine: &mut Machine,
    checksum: &Checksum,
) -> Result<bool, DropCause> {
    let Some((code, result)) = checksum.condition else {
        return Ok(true);
    };
    match machine.run(program, code) {
        Flow::Drop(cause) => Err(cause),
        _ => Ok(machine.words[result as usize] != 0),
    }
}

/// Runs the parser on the packet in the machine. Gives the error it stopped with, if any.
fn run_parser(
    program: &Program,
    machine: &mut Machine,
    key: &mut Vec<u64>,
) -> Result<Option<u64>, DropCause> {
    let parser = &program.parser;
    let mut next = parser.start;
    let mut visited = 0;
    while let Some(state) = next {
        visited += 1;
        if visited > limits::PARSER_STATES_MAX {
            return Err(DropCause::ParserLoop);
        }
        let state = &parser.states[state as usize];
        match machine.run(program, state.code) {
            Flow::Done => {}
            Flow::Error(error) => return Ok(Some(error)),
            Flow::Drop(cause) => return Err(cause),
        }
        next = match state.key.as_slice() {
            [] => state.default,
            [part] if part.width <= 64 => {
                let value = machine.words[part.slot as usize];
                choose(&state.cases, &[value], state.default, machine)
            }
            parts => {
                key.clear();
                for part in parts {
                    let first = part.slot as usize;
                    let limbs = part.width.div_ceil(64).max(1) as usize;
                    key.extend_from_slice(&machine.words[first..first + limbs]);
                }
                choose(&state.cases, key, state.default, machine)
            }
        };
    }
    Ok(None)
}

/// The first case that holds.
#[inline]
fn choose(cases: &[(Case, Next)], key: &[u64], default: Next, machine: &Machine) -> Next {
    let equal = |values: &[u64], masks: &[u64]| {
        key.iter()
            .zip(values)
            .zip(masks)
            .all(|((key, value), mask)| key & mask == value & mask)
    };
    for (case, next) in cases {
        let holds = match case {
            Case::Value { value, mask } => equal(value, mask),
            Case::Set { set, mask } => {
                machine.value_sets[*set as usize]
                    .iter()
                    .any(|(value, member_mask)| match mask {
                        None => equal(value, member_mask),
                        Some(mask) => equal(value, mask),
                    })
            }
        };
        if holds {
            return *next;
        }
    }
    default
}

/// Runs a control from its first node to its end.
fn run_control(
    program: &Program,
    control: &Control,
    tables: &mut [TableState],
    profiles: &[Profile],
    machine: &mut Machine,
    key: &mut Vec<u64>,
) -> Flow {
    let mut next = control.start;
    while let Some(node) = next {
        let flow;
        (next, flow) = match &control.nodes[node as usize] {
            ControlNode::Condition {
                code,
                result,
                if_true,
                if_false,
            } => {
                let flow = machine.run(program, *code);
                let next = if machine.words[*result as usize] != 0 {
                    *if_true
                } else {
                    *if_false
                };
                (next, flow)
            }
            ControlNode::Call { action, next } => {
                let flow = machine.run(program, program.action_code[*action as usize]);
                (*next, flow)
            }
            ControlNode::Table(table) => {
                apply(program, *table as usize, tables, profiles, machine, key)
            }
        };
        if let Flow::Drop(_) = flow {
            return flow;
        }
        if machine.marks.exit {
            break;
        }
    }
    Flow::Done
}

/// Applies a table: looks its key up, runs the action, gives the node after it.
#[inline]
fn apply(
    program: &Program,
    table: usize,
    tables: &mut [TableState],
    profiles: &[Profile],
    machine: &mut Machine,
    key: &mut Vec<u64>,
) -> (Next, Flow) {
    let plan = &program.table_plans[table];
    let state = &mut tables[table];
    key.clear();
    for (source, mask) in plan.sources.iter().zip(&plan.masks) {
        let at = key.len();
        if source.valid.is_none_or(|slot| machine.words[slot as usize] != 0) {
            let first = source.slot as usize;
            key.extend_from_slice(&machine.words[first..first + source.limbs as usize]);
        } else {
            key.resize(at + source.limbs as usize, 0);
        }
        if let Some(mask) = mask {
            for (word, mask) in key[at..].iter_mut().zip(mask) {
                *word &= mask;
            }
        }
    }
    let hit = state.index.get(key);
    let entry = hit.and_then(|number| state.entries[number as usize].as_mut());
    if let Some(entry) = entry {
        entry.counter.add(machine.ingress_bytes);
        if let (Some((slot, width)), Some(meter)) =
            (plan.meter_target, program.tables()[table].direct_meter)
        {
            let unit = program.meters()[meter.index()].unit;
            let colour = entry
                .meter
                .execute(unit, machine.ingress_bytes, machine.now_us);
            machine.words[slot as usize] = colour as u64 & ones(width);
        }
        match &entry.outcome {
            Outcome::Call(bound) => {
                set_arguments(program.code.arguments, &bound.arguments, machine);
                return (bound.next, machine.run(program, bound.code));
            }
            Outcome::Member(member) => {
                return run_member(program, table, *member, profiles, machine);
            }
            Outcome::Group(group) => {
                if let Some(member) = choose_member(program, table, *group, profiles, machine) {
                    return run_member(program, table, member, profiles, machine);
                }
                machine.statistics.count_event(Event::EmptyGroup);
            }
        }
    }
    match &state.default {
        Some(bound) => {
            set_arguments(program.code.arguments, &bound.arguments, machine);
            (bound.next, machine.run(program, bound.code))
        }
        None => (plan.on_miss.unwrap_or(plan.after_none), Flow::Done),
    }
}

#[inline]
fn set_arguments(first: Slot, arguments: &[u64], machine: &mut Machine) {
    let first = first as usize;
    machine.words[first..first + arguments.len()].copy_from_slice(arguments);
}

fn run_member(
    program: &Program,
    table: usize,
    member: u32,
    profiles: &[Profile],
    machine: &mut Machine,
) -> (Next, Flow) {
    let plan = &program.table_plans[table];
    let profile = program.tables()[table].action_profile;
    let member = profile.and_then(|profile| profiles[profile.index()].member(member));
    let Some(member) = member else {
        return (plan.after_none, Flow::Done);
    };
    set_arguments(program.code.arguments, &member.arguments, machine);
    let next = plan
        .on_hit
        .unwrap_or_else(|| next_after(program, table, member.call.action));
    let code = program.action_code[member.call.action.index()];
    (next, machine.run(program, code))
}

fn choose_member(
    program: &Program,
    table: usize,
    group: u32,
    profiles: &[Profile],
    machine: &mut Machine,
) -> Option<u32> {
    let profile = program.tables()[table].action_profile?;
    let members = profiles[profile.index()].group(group)?;
    let selector = program.selectors[profile.index()].as_ref()?;
    if members.is_empty() {
        return None;
    }
    let hash = machine.calculate(program, selector.calculation);
    members.get((hash % members.len() as u64) as usize).copied()
}
