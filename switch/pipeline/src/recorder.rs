//! Records what happens to one packet while the pipeline has it.

use super::event::TraceEvent;
use crate::{Event, Statistics};
use wormcast_switch_program::Stage;
use wormcast_switch_program::code::Op;
use wormcast_switch_program::{Program, Slot};

/// What a packet carries through its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    pub packet: u64,
    pub copy: u64,
    /// One bit for each trace that wants it; 0: the packet is not traced.
    pub traces: u8,
}

/// Most events of one record; more are counted.
const EVENTS_MAX: usize = 4096;

/// An instruction whose result is recorded once it has run.
#[derive(Clone, Copy, Debug)]
enum Pending {
    Extract { header: u32 },
    Next { stack: u32 },
    UnionNext { stack: u32, member: u32 },
    ReadRegister { to: Slot, register: u32, index: u64 },
    Meter { to: Slot, meter: u32, index: u64 },
}

/// What happened to one packet or copy so far.
#[derive(Debug, Default)]
pub struct Recorder {
    mark: Mark,
    bytes: Vec<u8>,
    events: Vec<TraceEvent>,
    lost: u64,
    pending: Option<Pending>,
    /// Headers extracted by the piece of code that runs.
    extracted: Vec<u32>,
    /// Header vector and event counts before the piece of code that runs.
    before: Vec<u64>,
    events_before: Vec<u64>,
}

impl Recorder {
    pub(super) fn begin(&mut self, mark: Mark) {
        self.mark = mark;
        self.bytes.clear();
        self.events.clear();
        self.lost = 0;
        self.pending = None;
    }

    pub(super) fn take(&mut self) -> (Box<[u8]>, Vec<TraceEvent>, u64) {
        let events = std::mem::take(&mut self.events);
        (self.bytes.as_slice().into(), events, self.lost)
    }

    pub fn mark(&self) -> Mark {
        self.mark
    }

    pub fn arrived(&mut self, packet: &[u8]) {
        self.bytes.extend_from_slice(packet);
    }

    pub fn push(&mut self, event: TraceEvent) {
        if self.events.len() < EVENTS_MAX {
            self.events.push(event);
        } else {
            self.lost += 1;
        }
    }

    /// A piece of code begins: a parser state, an action, a condition, the deparser.
    pub fn code_begins(
        &mut self,
        program: &Program,
        start: u32,
        words: &[u64],
        statistics: &Statistics,
    ) {
        self.before.clear();
        self.before
            .extend_from_slice(&words[..program.layout.words as usize]);
        self.events_before.clear();
        let counts = Event::ALL.iter().map(|event| statistics.event(*event));
        self.events_before.extend(counts);
        self.extracted.clear();
        if let Some(state) = position(program.parser.states.iter().map(|state| state.code), start) {
            self.push(TraceEvent::State { state });
        } else if let Some(action) = position(program.action_code.iter().copied(), start) {
            let parameters = &program.action_arguments[action as usize];
            let count = parameters
                .iter()
                .map(|(_, width)| width.div_ceil(64).max(1));
            let first = program.code.arguments as usize;
            let last = first + count.sum::<u32>() as usize;
            self.push(TraceEvent::Action {
                action,
                arguments: words[first..last].into(),
            });
        }
    }

    /// It has ended; `whole`: without an error of the parser.
    pub fn code_ended(
        &mut self,
        program: &Program,
        start: u32,
        words: &[u64],
        packet: &[u8],
        statistics: &Statistics,
        whole: bool,
    ) {
        if whole {
            self.settle(program, words, packet);
        }
        self.pending = None;
        for (event, before) in Event::ALL
            .iter()
            .zip(std::mem::take(&mut self.events_before))
        {
            let recorded_already = matches!(event, Event::LogMessage);
            if !recorded_already && statistics.event(*event) != before {
                self.push(TraceEvent::Happened { event: *event });
            }
        }
        self.compare(program, words);
        let state = program.parser.states.iter();
        if let Some(number) = position(state.map(|state| state.code), start)
            && whole
        {
            let state = &program.parser.states[number as usize];
            let mut key = Vec::new();
            for part in &state.key {
                let first = part.slot as usize;
                let limbs = part.width.div_ceil(64).max(1) as usize;
                key.extend_from_slice(&words[first..first + limbs]);
            }
            self.push(TraceEvent::Selected {
                state: number,
                key: key.into(),
            });
        }
        for stage in [Stage::Ingress, Stage::Egress] {
            if let Some((node, result)) = program.condition_at(stage, start) {
                let holds = words[result as usize] != 0;
                self.push(TraceEvent::Condition { stage, node, holds });
            }
        }
    }

    /// An instruction is about to run.
    pub fn observe(&mut self, program: &Program, op: Op, words: &[u64], packet: &[u8]) {
        self.settle(program, words, packet);
        let word = |slot: Slot| words[slot as usize];
        let event = match op {
            Op::Extract { header } | Op::ExtractVarbit { header, .. } => {
                self.pending = Some(Pending::Extract { header });
                return;
            }
            Op::ExtractNext { stack } | Op::ExtractVarbitNext { stack, .. } => {
                self.pending = Some(Pending::Next { stack });
                return;
            }
            Op::ExtractUnionNext { stack, member }
            | Op::ExtractVarbitUnionNext { stack, member, .. } => {
                self.pending = Some(Pending::UnionNext { stack, member });
                return;
            }
            Op::ReadRegister {
                to,
                register,
                index,
            } => {
                let index = word(index);
                self.pending = Some(Pending::ReadRegister {
                    to,
                    register,
                    index,
                });
                return;
            }
            Op::ExecuteMeter { to, meter, index } => {
                let index = word(index);
                self.pending = Some(Pending::Meter { to, meter, index });
                return;
            }
            Op::WriteRegister {
                from,
                register,
                index,
            } => {
                let width = program.registers()[register as usize].width_bits;
                let first = from as usize;
                let limbs = width.div_ceil(64).max(1) as usize;
                TraceEvent::RegisterWritten {
                    register,
                    index: word(index),
                    value: words[first..first + limbs].into(),
                }
            }
            Op::Count { counter, index } => TraceEvent::Counted {
                counter,
                index: word(index),
            },
            Op::Advance { bits } => TraceEvent::Advanced { bits: word(bits) },
            Op::Log { message } => {
                let arguments = &program.code.log_messages[message as usize].arguments;
                let arguments = arguments.iter().map(|argument| {
                    let first = argument.slot as usize;
                    words[first..first + argument.limbs as usize].into()
                });
                TraceEvent::Message {
                    message,
                    arguments: arguments.collect(),
                }
            }
            Op::Clone { session, .. } => TraceEvent::CloneAsked {
                session: word(session),
            },
            Op::Resubmit { .. } => TraceEvent::ResubmitAsked,
            Op::Recirculate { .. } => TraceEvent::RecirculateAsked,
            Op::Digest { .. } => TraceEvent::DigestAsked,
            Op::Truncate { bytes } => TraceEvent::TruncateAsked { bytes: word(bytes) },
            Op::Exit => TraceEvent::ExitAsked,
            _ => return,
        };
        self.push(event);
    }

    /// Records the result of the instruction before.
    fn settle(&mut self, program: &Program, words: &[u64], packet: &[u8]) {
        let layout = &program.layout;
        let header = match self.pending.take() {
            None => return,
            Some(Pending::Extract { header }) => header,
            Some(Pending::Next { stack }) => {
                let stack = &layout.stacks[stack as usize];
                stack.first_header + words[stack.fill as usize] as u32 - 1
            }
            Some(Pending::UnionNext { stack, member }) => {
                let stack = &layout.union_stacks[stack as usize];
                let union = stack.unions[words[stack.fill as usize] as usize - 1];
                layout.unions[union as usize].headers[member as usize]
            }
            Some(Pending::ReadRegister {
                to,
                register,
                index,
            }) => {
                let width = program.registers()[register as usize].width_bits;
                let first = to as usize;
                let limbs = width.div_ceil(64).max(1) as usize;
                return self.push(TraceEvent::RegisterRead {
                    register,
                    index,
                    value: words[first..first + limbs].into(),
                });
            }
            Some(Pending::Meter { to, meter, index }) => {
                let colour = words[to as usize];
                return self.push(TraceEvent::Metered {
                    meter,
                    index,
                    colour,
                });
            }
        };
        let instance = &layout.headers[header as usize];
        let first = instance.base as usize;
        let count = layout.types[instance.kind as usize].words as usize;
        let varbit = instance.varbit.map_or(&[][..], |slot| {
            let length = words[slot as usize] as usize / 8;
            let start = words[slot as usize + 1] as usize;
            packet.get(start..start + length).unwrap_or_default()
        });
        self.extracted.push(header);
        self.push(TraceEvent::Extracted {
            header,
            words: words[first..first + count].into(),
            varbit: varbit.into(),
        });
    }

    /// Fields that the piece of code has changed, extracted headers left out.
    fn compare(&mut self, program: &Program, words: &[u64]) {
        let layout = &program.layout;
        let before = std::mem::take(&mut self.before);
        for (number, header) in (0..).zip(&layout.headers) {
            let base = header.base as usize;
            let kind = &layout.types[header.kind as usize];
            let all = base..base + kind.words as usize;
            if before[all.clone()] == words[all] || self.extracted.contains(&number) {
                continue;
            }
            if before[base] != words[base] {
                self.push(TraceEvent::Changed {
                    header: number,
                    field: None,
                    before: [before[base]].into(),
                    after: [words[base]].into(),
                });
            }
            if words[base] == 0 {
                continue;
            }
            for (index, field) in (0..).zip(&kind.fields) {
                let first = base + field.offset as usize;
                let range = first..first + field.limbs as usize;
                if before[range.clone()] != words[range.clone()] {
                    self.push(TraceEvent::Changed {
                        header: number,
                        field: Some(index),
                        before: before[range.clone()].into(),
                        after: words[range].into(),
                    });
                }
            }
        }
        self.before = before;
    }
}

fn position(starts: impl Iterator<Item = u32>, start: u32) -> Option<u32> {
    (0..)
        .zip(starts)
        .find(|(_, other)| *other == start)
        .map(|(index, _)| index)
}
