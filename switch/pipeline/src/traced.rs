//! What packets that are traced go through beside the pipeline: their recorder is put in
//! place, shown what happens, and its record handed out.

use super::Pipeline;
use super::config::PortId;
use super::event::TraceEvent;
use super::machine::{Flow, Machine};
use super::packet::{DequeueInfo, Queued};
use super::sink::EmitSink;
use super::statistics::{DropCause, Event};
use super::tracing::Tracing;
use wormcast_switch_program::Program;
use wormcast_switch_program::Stage;
use wormcast_switch_program::code::Op;

impl Pipeline {
    /// The traces of this switch.
    pub fn tracing(&mut self) -> &mut Tracing {
        &mut self.tracing
    }

    /// Takes over the traces of the switch, from the pipeline before or from before there
    /// was one.
    pub fn set_tracing(&mut self, mut tracing: Tracing) {
        tracing.begin_program(&self.program);
        self.tracing = tracing;
    }

    #[cold]
    pub(super) fn ingress_traced<S: EmitSink>(
        &mut self,
        packet: &[u8],
        port: PortId,
        now_us: u64,
        sink: &mut S,
    ) {
        let Some(mark) = self.tracing.choose(packet, port.0) else {
            return self.ingress_packet(packet, port, now_us, sink);
        };
        let mut recorder = self.tracing.recorder(mark);
        recorder.arrived(packet);
        self.machine.recorder = Some(recorder);
        self.ingress_packet(packet, port, now_us, sink);
        self.finish_trace(Stage::Ingress, port, now_us);
    }

    #[cold]
    pub(super) fn egress_traced<S: EmitSink>(
        &mut self,
        packet: Queued,
        dequeue: &DequeueInfo,
        sink: &mut S,
    ) {
        let (mark, port) = (packet.body.trace, packet.body.ingress_port);
        let mut recorder = self.tracing.recorder(mark);
        recorder.arrived(&packet.body.packet);
        self.machine.recorder = Some(recorder);
        self.egress_packet(packet, dequeue, sink);
        self.finish_trace(Stage::Egress, port, dequeue.dequeued_us);
        self.tracing.copy_ended(mark);
    }

    fn finish_trace(&mut self, stage: Stage, port: PortId, now_us: u64) {
        if let Some(recorder) = self.machine.recorder.take() {
            let program = &self.program;
            self.tracing
                .finish(recorder, program, stage, port.0, now_us);
        }
    }
}

impl Machine {
    /// Records an event if the packet is traced.
    #[inline]
    pub(super) fn record(&mut self, event: impl FnOnce() -> TraceEvent) {
        if let Some(recorder) = &mut self.recorder {
            recorder.push(event());
        }
    }

    /// Counts that the packet in work, or a copy of it, ends here.
    #[inline]
    pub(super) fn end_packet(&mut self, cause: DropCause) {
        self.statistics.count_drop(cause);
        self.record(|| TraceEvent::Dropped { cause });
    }

    /// Counts an event outside of code; what happens in code is recorded when it ends.
    #[inline]
    pub(super) fn note_event(&mut self, event: Event) {
        self.statistics.count_event(event);
        self.record(|| TraceEvent::Happened { event });
    }

    #[cold]
    pub(super) fn run_recorded(&mut self, program: &Program, packet: &[u8], start: u32) -> Flow {
        if let Some(recorder) = &mut self.recorder {
            recorder.code_begins(program, start, &self.words, &self.statistics);
        }
        let flow = self.run_ops::<true>(program, packet, start);
        let whole = !matches!(flow, Flow::Error(_));
        let (words, statistics) = (&self.words, &self.statistics);
        if let Some(recorder) = &mut self.recorder {
            recorder.code_ended(program, start, words, packet, statistics, whole);
        }
        flow
    }

    pub(super) fn observe(&mut self, program: &Program, packet: &[u8], op: Op) {
        if let Some(recorder) = &mut self.recorder {
            recorder.observe(program, op, &self.words, packet);
        }
    }
}
