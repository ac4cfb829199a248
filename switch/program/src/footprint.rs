//! Which words of the header vector must be reset for a packet, and which egress changes.
//!
//! Clearing and copying whole vectors would cost more than running most programs. A word
//! that no code can read before it was written keeps what the last packet left there.

use std::ops::Range;

use super::calculation::InputPart;
use super::code::Op;
use super::control::ControlNode;
use super::effects::effects;
use super::layout::Slot;
use super::program::{Footprint, Program};

/// Ranges of words that lie closer together than this are handled as one.
const GAP_WORDS_MAX: usize = 16;

/// Words of the header vector, marked one by one.
struct Marked(Vec<bool>);

impl Marked {
    fn new(program: &Program) -> Self {
        Self(vec![false; program.layout.words as usize])
    }

    /// Marks words; those outside the header vector are left out.
    fn mark(&mut self, first: Slot, count: u32) {
        let end = (first + count).min(self.0.len() as u32);
        for slot in first..end {
            self.0[slot as usize] = true;
        }
    }

    fn mark_header(&mut self, program: &Program, header: usize) {
        let header = &program.layout.headers[header];
        let words = program.layout.types[header.kind as usize].words;
        self.mark(header.base, words);
    }

    fn ranges(&self) -> Vec<Range<usize>> {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for (slot, _) in self.0.iter().enumerate().filter(|(_, marked)| **marked) {
            match ranges.last_mut() {
                Some(last) if slot - last.end < GAP_WORDS_MAX => last.end = slot + 1,
                _ => ranges.push(slot..slot + 1),
            }
        }
        ranges
    }
}

impl Footprint {
    pub(super) fn of(program: &Program) -> Self {
        Self {
            reset: reset(program),
            egress_writes: egress_writes(program),
        }
    }
}

fn register_limbs(program: &Program) -> Vec<u32> {
    let registers = program.registers.iter();
    registers
        .map(|register| register.width_bits.div_ceil(64))
        .collect()
}

fn reset(program: &Program) -> Vec<Range<usize>> {
    let layout = &program.layout;
    let mut marked = Marked::new(program);
    let limbs = register_limbs(program);
    let mut reads_metadata = false;
    let mut written = vec![false; layout.words as usize];
    for &op in &program.code.ops {
        let effects = effects(layout, &program.code, &limbs, op);
        reads_metadata |= effects.reads_metadata;
        for (first, count) in effects.reads {
            marked.mark(first, count);
        }
        // A single word written may be a validity that code sets as if it were a field.
        for (slot, _) in effects.writes.iter().filter(|(_, count)| *count == 1) {
            if let Some(written) = written.get_mut(*slot as usize) {
                *written |= !matters_to_headers(op);
            }
        }
    }
    for header in 0..layout.headers.len() {
        let instance = &layout.headers[header];
        marked.mark(instance.base, 1);
        let whole = instance.metadata && reads_metadata;
        if whole || written[instance.base as usize] {
            marked.mark_header(program, header);
        }
    }
    for stack in &layout.stacks {
        marked.mark(stack.fill, 1);
    }
    for stack in &layout.union_stacks {
        marked.mark(stack.fill, 1);
    }
    mark_other_reads(program, &mut marked);
    spread_over_stacks(program, &mut marked);
    marked.ranges()
}

/// Instructions that set validities together with what belongs to them.
fn matters_to_headers(op: Op) -> bool {
    matches!(
        op,
        Op::MakeValid { .. }
            | Op::MakeInvalid { .. }
            | Op::MakeValidAt { .. }
            | Op::MakeInvalidAt { .. }
            | Op::CopyHeader { .. }
            | Op::CopyHeaderAt { .. }
            | Op::CopyStack { .. }
            | Op::Push { .. }
            | Op::Pop { .. }
            | Op::CopyUnions { .. }
            | Op::PushUnions { .. }
            | Op::PopUnions { .. }
            | Op::Extract { .. }
            | Op::ExtractVarbit { .. }
            | Op::ExtractNext { .. }
            | Op::ExtractVarbitNext { .. }
            | Op::ExtractUnionNext { .. }
            | Op::ExtractVarbitUnionNext { .. }
    )
}

/// What is read by other means than instructions.
fn mark_other_reads(program: &Program, marked: &mut Marked) {
    let intrinsics = &program.intrinsics;
    let fields = [
        Some(intrinsics.egress_spec),
        intrinsics.mcast_grp,
        intrinsics.priority,
    ];
    for field in fields.into_iter().flatten() {
        marked.mark(field.slot, field.limbs);
    }
    for part in program.parser.states.iter().flat_map(|state| &state.key) {
        marked.mark(part.slot, part.width.div_ceil(64).max(1));
    }
    for table in &program.table_plans {
        for source in table.sources.iter().filter(|source| source.valid.is_none()) {
            marked.mark(source.slot, source.limbs);
        }
    }
    for node in program.ingress.nodes.iter().chain(&program.egress.nodes) {
        if let ControlNode::Condition { result, .. } = node {
            marked.mark(*result, 1);
        }
    }
    for list in program.field_lists.values() {
        for &(slot, limbs) in &list.fields {
            marked.mark(slot, limbs);
        }
    }
    for (_, fields) in program.digest_lists.values() {
        for field in fields {
            marked.mark(field.slot, field.limbs);
        }
    }
    for checksum in program.verified.iter().chain(&program.updated) {
        let metadata = program
            .layout
            .headers
            .iter()
            .any(|header| header.metadata && header.base == checksum.target_valid);
        if metadata {
            marked.mark(checksum.target, 1);
        }
        if let Some((_, result)) = checksum.condition {
            marked.mark(result, 1);
        }
    }
    for part in program
        .calculations
        .iter()
        .flat_map(|calculation| &calculation.input)
    {
        match part {
            InputPart::Field {
                slot,
                width,
                valid: None,
            } => marked.mark(*slot, width.div_ceil(64).max(1)),
            InputPart::Header(header) if program.layout.headers[*header as usize].metadata => {
                marked.mark_header(program, *header as usize);
            }
            _ => {}
        }
    }
}

/// Elements of a stack move about: what is read of one of them is reset in all.
fn spread_over_stacks(program: &Program, marked: &mut Marked) {
    let layout = &program.layout;
    for stack in &layout.stacks {
        let elements = stack.first_header..stack.first_header + stack.size;
        spread_over(program, marked, &elements.collect::<Vec<u32>>());
    }
    for stack in &layout.union_stacks {
        for member in 0..stack.members.len() {
            let headers = |&union: &u32| layout.unions[union as usize].headers[member];
            let elements: Vec<u32> = stack.unions.iter().map(headers).collect();
            spread_over(program, marked, &elements);
        }
    }
}

/// The same of headers of one type.
fn spread_over(program: &Program, marked: &mut Marked, headers: &[u32]) {
    let layout = &program.layout;
    let Some(&first) = headers.first() else {
        return;
    };
    let words = layout.types[layout.headers[first as usize].kind as usize].words;
    let bases = headers.iter();
    let bases = bases.map(|&header| layout.headers[header as usize].base);
    let bases: Vec<Slot> = bases.collect();
    for offset in 0..words {
        let read = bases.iter().any(|base| marked.0[(base + offset) as usize]);
        if read {
            bases.iter().for_each(|base| marked.mark(base + offset, 1));
        }
    }
}

fn egress_writes(program: &Program) -> Vec<Range<usize>> {
    let mut marked = Marked::new(program);
    let limbs = register_limbs(program);
    let mut starts: Vec<u32> = program.deparser_code.into_iter().collect();
    let mut run_action = |action: usize| starts.push(program.action_code[action]);
    for node in &program.egress.nodes {
        match node {
            ControlNode::Table(table) => {
                for action in &program.tables[*table as usize].actions {
                    run_action(action.index());
                }
                if let Some((slot, _)) = program.table_plans[*table as usize].meter_target {
                    marked.mark(slot, 1);
                }
            }
            ControlNode::Call { action, .. } => run_action(*action as usize),
            ControlNode::Condition { .. } => {}
        }
    }
    for node in &program.egress.nodes {
        if let ControlNode::Condition { code, .. } = node {
            starts.push(*code);
        }
    }
    for checksum in &program.updated {
        marked.mark(checksum.target, 1);
        starts.extend(checksum.condition.map(|(code, _)| code));
    }
    for start in starts {
        // A piece of code ends with the first `End`; jumps stay inside.
        for &op in &program.code.ops[start as usize..] {
            if matches!(op, Op::End) {
                break;
            }
            let effects = effects(&program.layout, &program.code, &limbs, op);
            for (first, count) in effects.writes {
                marked.mark(first, count);
            }
        }
    }
    let intrinsics = &program.intrinsics;
    let queueing = intrinsics.queueing.iter().flat_map(|queueing| {
        [
            queueing.enq_timestamp,
            queueing.enq_qdepth,
            queueing.deq_timedelta,
            queueing.deq_qdepth,
        ]
    });
    let fields = [
        Some(intrinsics.egress_port),
        Some(intrinsics.egress_spec),
        Some(intrinsics.packet_length),
        intrinsics.egress_global_timestamp,
        intrinsics.qid,
    ];
    for field in fields.into_iter().flatten().chain(queueing) {
        marked.mark(field.slot, field.limbs);
    }
    marked.ranges()
}
