//! Who wants to see which packets, and how records reach them.

use std::fmt;
use std::sync::Arc;

use super::event::TraceRecord;
use super::filter::Filter;
use super::loaded::LoadedProgram;
use super::recorder::{Mark, Recorder};
use wormcast_switch_program::Program;
use wormcast_switch_program::Stage;

/// Traces that run at a time in one switch.
pub const TRACES_MAX: usize = 8;

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The reader has it.
    Taken,
    /// The reader is too slow; the record is lost.
    Lost,
    Closed,
}

/// Takes records. Runs where the packets run: it must neither wait nor do much.
pub trait TraceSink: fmt::Debug + Send {
    /// Takes a record if there is room.
    fn record(&mut self, record: &Arc<TraceRecord>) -> Delivery;

    /// Whether anybody reads.
    fn is_open(&self) -> bool;
}

/// There are [`TRACES_MAX`] traces already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{TRACES_MAX} traces run already, which is the most")]
pub struct TracesFull;

#[derive(Debug)]
struct Subscription {
    filter: Filter,
    sink: Box<dyn TraceSink>,
    /// Packets that fit the filter so far.
    fitted: u64,
    /// Packets still to be chosen.
    left: Option<u64>,
    /// Copies in the queues.
    waiting: u64,
    /// Packets with lower numbers belong to whoever had this place before.
    first_packet: u64,
}

impl Subscription {
    fn is_done(&self) -> bool {
        self.left == Some(0) && self.waiting == 0
    }
}

/// The traces of one switch. Survives the exchange of the program.
#[derive(Debug, Default)]
pub struct Tracing {
    switch: Arc<str>,
    places: [Option<Subscription>; TRACES_MAX],
    running: usize,
    /// One of them may want a packet that arrives.
    on: bool,
    packets: u64,
    copies: u64,
    records: u64,
    lost: u64,
    has_messages: bool,
    spare: Option<Box<Recorder>>,
}

impl Tracing {
    /// No traces yet. `switch`: its name, empty if it is the only one.
    pub fn of_switch(switch: &str) -> Self {
        Self {
            switch: switch.into(),
            ..Self::default()
        }
    }

    /// Starts a trace.
    ///
    /// # Errors
    /// There are [`TRACES_MAX`] whose readers are still there.
    pub fn add(&mut self, filter: Filter, sink: Box<dyn TraceSink>) -> Result<(), TracesFull> {
        for place in &mut self.places {
            if place.as_ref().is_some_and(|one| !one.sink.is_open()) {
                *place = None;
            }
        }
        self.recount();
        let free = self.places.iter_mut().find(|place| place.is_none());
        let place = free.ok_or(TracesFull)?;
        *place = Some(Subscription {
            left: filter.count(),
            filter,
            sink,
            fitted: 0,
            waiting: 0,
            first_packet: self.packets + 1,
        });
        self.recount();
        Ok(())
    }

    pub fn running(&self) -> usize {
        self.running
    }

    pub fn records(&self) -> u64 {
        self.records
    }

    /// Records that a reader was too slow for, each reader's counted.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Packets of another program follow; none of the old one's wait any more.
    pub fn begin_program(&mut self, program: &Program) {
        self.has_messages = !program.code.log_messages.is_empty();
        for place in self.places.iter_mut().flatten() {
            place.waiting = 0;
        }
        self.remove_done();
    }

    /// Whether any packet may be traced.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Whether a packet that arrives is traced, and by whom.
    pub fn choose(&mut self, packet: &[u8], port: u16) -> Option<Mark> {
        let mut traces = 0;
        for (place, bit) in self.places.iter_mut().zip(0..) {
            let Some(one) = place else { continue };
            let useless = one.filter.is_messages_only() && !self.has_messages;
            if useless || one.left == Some(0) || !one.filter.fits(packet, port) {
                continue;
            }
            let chosen = one.fitted.is_multiple_of(one.filter.every());
            one.fitted += 1;
            if chosen {
                one.left = one.left.map(|left| left - 1);
                traces |= 1 << bit;
            }
        }
        if traces == 0 {
            return None;
        }
        self.packets += 1;
        Some(Mark {
            packet: self.packets,
            copy: 0,
            traces,
        })
    }

    /// A recorder for a packet or copy.
    pub fn recorder(&mut self, mark: Mark) -> Box<Recorder> {
        let mut recorder = self.spare.take().unwrap_or_default();
        recorder.begin(mark);
        recorder
    }

    /// A copy of a traced packet goes into a queue.
    pub fn copy_waits(&mut self, mark: Mark) -> Mark {
        self.copies += 1;
        self.change_waiting(mark, |waiting| waiting + 1);
        Mark {
            copy: self.copies,
            ..mark
        }
    }

    /// A copy has left its queue and the pipeline, one way or another.
    pub fn copy_ended(&mut self, mark: Mark) {
        self.change_waiting(mark, |waiting| waiting.saturating_sub(1));
        self.remove_done();
    }

    /// Hands out what a recorder has recorded.
    pub fn finish(
        &mut self,
        mut recorder: Box<Recorder>,
        program: &Arc<LoadedProgram>,
        stage: Stage,
        ingress_port: u16,
        time_us: u64,
    ) {
        let mark = recorder.mark();
        let (bytes, events, events_lost) = recorder.take();
        let record = Arc::new(TraceRecord {
            program: Arc::clone(program),
            switch: Arc::clone(&self.switch),
            packet: mark.packet,
            copy: mark.copy,
            stage,
            ingress_port,
            time_us,
            bytes,
            events,
            events_lost,
        });
        self.records += 1;
        for (place, bit) in self.places.iter_mut().zip(0..) {
            let Some(one) = place else { continue };
            if mark.traces >> bit & 1 == 0 || mark.packet < one.first_packet {
                continue;
            }
            match one.sink.record(&record) {
                Delivery::Taken => {}
                Delivery::Lost => self.lost += 1,
                Delivery::Closed => *place = None,
            }
        }
        self.spare = Some(recorder);
        self.remove_done();
    }

    fn change_waiting(&mut self, mark: Mark, change: impl Fn(u64) -> u64) {
        for (place, bit) in self.places.iter_mut().zip(0..) {
            if let Some(one) = place
                && mark.traces >> bit & 1 != 0
                && mark.packet >= one.first_packet
            {
                one.waiting = change(one.waiting);
            }
        }
    }

    fn remove_done(&mut self) {
        for place in &mut self.places {
            if place.as_ref().is_some_and(Subscription::is_done) {
                *place = None;
            }
        }
        self.recount();
    }

    fn recount(&mut self) {
        let running = || self.places.iter().flatten();
        self.running = running().count();
        self.on = running().any(|one| {
            let useless = one.filter.is_messages_only() && !self.has_messages;
            !useless && one.left != Some(0)
        });
    }
}
