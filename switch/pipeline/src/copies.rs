//! Packets that pass again, and clones.

use super::Pipeline;
use super::config::{PortId, limits};
use super::event::TraceEvent;
use super::sink::{EmitSink, TrafficSink};
use super::stages::run_parser;
use super::statistics::Event;
use wormcast_switch_program::Bits;
use wormcast_switch_program::Stage;

/// Values of `standard_metadata.instance_type`.
pub(super) mod instance {
    pub const NORMAL: u64 = 0;
    pub const INGRESS_CLONE: u64 = 1;
    pub const EGRESS_CLONE: u64 = 2;
    pub const RECIRCULATED: u64 = 4;
    pub const REPLICATED: u64 = 5;
    pub const RESUBMITTED: u64 = 6;
}

/// The packet that a pass is about.
#[derive(Clone, Copy)]
pub(super) struct Pass {
    pub(super) ingress_port: PortId,
    /// Since it came, or left a queue.
    pub(super) passes: u8,
    pub(super) recirculations: u32,
    pub(super) clone_depth: u8,
    /// Copies may run through egress at once, without a queue.
    pub(super) direct: bool,
}

impl Pipeline {
    /// Starts another pass of the packet in the machine; the fields of the list survive.
    pub(super) fn restart(&mut self, list: u64, instance_type: u64) {
        self.keep_fields(list);
        self.machine.reset();
        self.return_fields();
        self.machine.truncate = None;
        self.machine.cut = u64::MAX;
        let field = self.program.intrinsics.instance_type;
        self.machine.set(field, instance_type);
    }

    pub(super) fn keep_fields(&mut self, list: u64) {
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

    pub(super) fn return_fields(&mut self) {
        for &(slot, word) in &self.kept {
            self.machine.words[slot as usize] = word;
        }
    }

    /// Makes the clones of a session out of the packet in the machine. Gives how many.
    pub(super) fn send_clones<S: EmitSink>(
        &mut self,
        packet: &[u8],
        number: u64,
        from: Stage,
        pass: Pass,
        sink: &mut S,
    ) -> u64 {
        if pass.clone_depth >= limits::CLONE_DEPTH_MAX {
            self.machine.note_event(Event::CloneDepthLimit);
            return 0;
        }
        let session = u32::try_from(number).ok();
        let Some(session) = session.and_then(|id| self.replication.session(id)) else {
            self.machine.note_event(Event::CloneSessionUnknown);
            return 0;
        };
        let mut replicas = std::mem::take(&mut self.replicas);
        replicas.clear();
        replicas.extend_from_slice(session.live());
        let session = &session.described;
        if let Some(group) = session.group {
            replicas.extend_from_slice(self.replication.group(u64::from(group)));
        }
        let cut = session.packet_length_bytes;
        self.machine.record(|| TraceEvent::Cloned {
            session: number,
            from,
            replicas: replicas.as_slice().into(),
        });
        let class = u64::from(session.class_of_service);
        let priority = self.program.intrinsics.priority;
        let before = priority.map(|field| self.machine.get(field));
        if class != 0 {
            self.machine.set_optional(priority, class);
        }
        let truncate = self.machine.truncate.take();
        let cut = if cut == 0 { u64::MAX } else { cut.into() };
        let cut = std::mem::replace(&mut self.machine.cut, cut);
        // The packet that is cloned is not done with its control: no copy runs before it.
        let pass = Pass {
            clone_depth: pass.clone_depth + 1,
            direct: false,
            ..pass
        };
        self.copy_to(packet, &replicas, pass, sink);
        (self.machine.truncate, self.machine.cut) = (truncate, cut);
        if let Some(before) = before {
            self.machine.set_optional(priority, before);
        }
        let count = replicas.len() as u64;
        self.replicas = replicas;
        count
    }

    /// Clones the packet as it arrived: parsed once more, all metadata 0 but the list's.
    pub(super) fn clone_ingress<S: EmitSink>(
        &mut self,
        packet: &[u8],
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
        // The same packet was parsed before; its error is counted, its steps are recorded.
        let recorder = self.machine.recorder.take();
        let _ = run_parser(program, &mut self.machine, packet, &mut self.key);
        self.machine.recorder = recorder;
        self.machine.reset_metadata(program);
        self.return_fields();
        let field = self.program.intrinsics.instance_type;
        self.machine.set(field, instance::INGRESS_CLONE);
        self.machine.length = packet.len() as u64;
        let count = self.send_clones(packet, session, Stage::Ingress, pass, sink);
        let statistics = &mut self.machine.statistics;
        statistics.cloned_ingress = statistics.cloned_ingress.wrapping_add(count);

        self.machine.words[..vector_words].copy_from_slice(&saved);
        self.saved = saved;
        self.machine.cursor = cursor;
        self.machine.length = length;
        self.machine.marks = marks;
    }

    /// Clones the packet as egress has left it, all metadata 0 but the list's.
    pub(super) fn clone_egress<S: EmitSink>(&mut self, packet: &[u8], pass: Pass, sink: &mut S) {
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
        let count = self.send_clones(packet, session, Stage::Egress, pass, sink);
        let statistics = &mut self.machine.statistics;
        statistics.cloned_egress = statistics.cloned_egress.wrapping_add(count);
        self.machine.words[..vector_words].copy_from_slice(&saved);
        self.saved = saved;
    }

    /// Tells the sink the fields of a digest.
    pub(super) fn send_digest<S: TrafficSink>(&mut self, list: u64, sink: &mut S) {
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
}
