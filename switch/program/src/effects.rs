//! What words of the frame an instruction reads and writes.

use super::code::{Code, Op, WideKind};
use super::layout::{Layout, Slot};

/// Consecutive words: the first one and how many.
pub type Words = (Slot, u32);

/// Words an instruction may read and write, whatever the packet.
///
/// The fields of a header that are read only while the header is valid do not count as
/// read: whatever makes a header valid has written them.
#[derive(Debug, Default)]
pub struct Effects {
    pub reads: Vec<Words>,
    pub writes: Vec<Words>,
    /// Reads all of a header that is metadata, which is always valid.
    pub reads_metadata: bool,
}

impl Effects {
    fn read(&mut self, slot: Slot) {
        self.reads.push((slot, 1));
    }

    fn write(&mut self, slot: Slot) {
        self.writes.push((slot, 1));
    }

    fn header(&mut self, layout: &Layout, header: u32) {
        let instance = &layout.headers[header as usize];
        let words = layout.types[instance.kind as usize].words;
        self.read(instance.base);
        self.writes.push((instance.base, words));
        if let Some(union) = instance.union {
            for &member in &layout.unions[union as usize].headers {
                self.write(layout.headers[member as usize].base);
            }
        }
    }

    fn stack(&mut self, layout: &Layout, stack: u32) {
        let stack = &layout.stacks[stack as usize];
        for header in stack.first_header..stack.first_header + stack.size {
            self.header(layout, header);
        }
        self.read(stack.fill);
        self.write(stack.fill);
    }

    fn unions(&mut self, layout: &Layout, stack: u32) {
        let stack = &layout.union_stacks[stack as usize];
        for &union in &stack.unions {
            for &header in &layout.unions[union as usize].headers {
                self.header(layout, header);
            }
        }
        self.read(stack.fill);
        self.write(stack.fill);
    }

    /// One field of every element of a stack.
    fn elements(layout: &Layout, code: &Code, access: u32) -> Vec<Words> {
        let access = code.stack_fields[access as usize];
        let stack = &layout.stacks[access.stack as usize];
        (stack.first_header..stack.first_header + stack.size)
            .map(|header| {
                let base = layout.headers[header as usize].base;
                (base + access.offset, access.limbs)
            })
            .collect()
    }

    fn all_headers(&mut self, layout: &Layout) {
        for header in 0..layout.headers.len() as u32 {
            self.header(layout, header);
        }
        self.reads_metadata = true;
    }

    fn wide(&mut self, code: &Code, index: u32) {
        let wide = &code.wide[index as usize];
        let limbs = wide.limbs;
        match wide.kind {
            WideKind::Extend
            | WideKind::ExtendSigned
            | WideKind::ClampUnsigned
            | WideKind::ClampSigned => self.reads.push((wide.a, wide.extra)),
            WideKind::Mask | WideKind::SignExtend | WideKind::Not => {
                self.reads.push((wide.a, limbs));
            }
            WideKind::ShiftLeft | WideKind::ShiftRight | WideKind::ShiftRightSigned => {
                self.reads.push((wide.a, limbs));
                self.read(wide.b);
            }
            _ => self.reads.extend([(wide.a, limbs), (wide.b, limbs)]),
        }
        match wide.kind {
            WideKind::Equal | WideKind::Less | WideKind::LessSigned => self.write(wide.to),
            _ => self.writes.push((wide.to, limbs)),
        }
    }
}

/// The words an instruction may touch. `register_limbs`: words of a cell of each register.
pub fn effects(layout: &Layout, code: &Code, register_limbs: &[u32], op: Op) -> Effects {
    let mut effects = Effects::default();
    match op {
        Op::End | Op::Jump { .. } | Op::Loop { .. } | Op::Exit | Op::Log { .. } => {}
        Op::JumpIfZero { condition, .. }
        | Op::JumpIfNonZero { condition, .. }
        | Op::Assert { condition } => effects.read(condition),
        Op::Add { to, a, b }
        | Op::Subtract { to, a, b }
        | Op::Multiply { to, a, b }
        | Op::And { to, a, b }
        | Op::Or { to, a, b }
        | Op::Xor { to, a, b }
        | Op::ShiftLeft { to, a, b }
        | Op::ShiftRight { to, a, b }
        | Op::ShiftRightSigned { to, a, b }
        | Op::Divide { to, a, b }
        | Op::Modulo { to, a, b }
        | Op::Equal { to, a, b }
        | Op::NotEqual { to, a, b }
        | Op::Less { to, a, b }
        | Op::LessEqual { to, a, b }
        | Op::LessSigned { to, a, b }
        | Op::LessEqualSigned { to, a, b }
        | Op::Fold { to, a, b }
        | Op::Random {
            to,
            low: a,
            high: b,
        } => {
            effects.reads.extend([(a, 1), (b, 1)]);
            effects.write(to);
        }
        Op::Move { to, from: a }
        | Op::Not { to, a }
        | Op::LogicalNot { to, a }
        | Op::SignExtend { to, a, .. } => {
            effects.read(a);
            effects.write(to);
        }
        Op::Wide { index } => effects.wide(code, index),
        Op::MoveWords { to, from, count } => {
            effects.reads.push((from, count));
            effects.writes.push((to, count));
        }
        Op::LoadStack { to, access, index } => {
            effects.reads = Effects::elements(layout, code, access);
            effects.read(index);
            let limbs = code.stack_fields[access as usize].limbs;
            effects.writes.push((to, limbs));
        }
        Op::LoadLast { to, access } => {
            effects.reads = Effects::elements(layout, code, access);
            let field = code.stack_fields[access as usize];
            effects.read(layout.stacks[field.stack as usize].fill);
            effects.writes.push((to, field.limbs));
        }
        Op::StoreStack {
            from,
            access,
            index,
        } => {
            let limbs = code.stack_fields[access as usize].limbs;
            effects.reads.extend([(from, limbs), (index, 1)]);
            effects.writes = Effects::elements(layout, code, access);
        }
        Op::StoreLast { from, access } => {
            let field = code.stack_fields[access as usize];
            effects.reads.push((from, field.limbs));
            effects.read(layout.stacks[field.stack as usize].fill);
            effects.writes = Effects::elements(layout, code, access);
        }
        Op::LastIndex { to, fill } => {
            effects.read(fill);
            effects.write(to);
        }
        Op::LoadLastUnion { to, access } => {
            let field = code.union_fields[access as usize];
            let stack = &layout.union_stacks[field.stack as usize];
            effects.read(stack.fill);
            effects.reads.extend(stack.unions.iter().map(|&union| {
                let header = layout.unions[union as usize].headers[field.member as usize];
                let base = layout.headers[header as usize].base;
                (base + field.offset, field.limbs)
            }));
            effects.writes.push((to, field.limbs));
        }
        Op::FindHeader { to, index, .. } => {
            effects.read(index);
            effects.write(to);
        }
        Op::MakeValid { header } | Op::MakeInvalid { header } => effects.header(layout, header),
        Op::CopyHeader { to, from } => {
            let source = &layout.headers[from as usize];
            effects.read(source.base);
            effects.reads_metadata |= source.metadata;
            effects.header(layout, to);
            // What is copied has the size of the source.
            let words = layout.types[source.kind as usize].words;
            let base = layout.headers[to as usize].base;
            effects.writes.push((base, words));
        }
        Op::MakeValidAt { header } | Op::MakeInvalidAt { header } => {
            effects.read(header);
            effects.all_headers(layout);
        }
        Op::CopyHeaderAt { to, from } => {
            effects.reads.extend([(to, 1), (from, 1)]);
            effects.all_headers(layout);
        }
        Op::ValidAt { to, header } => {
            effects.read(header);
            effects.write(to);
        }
        Op::EqualHeaders { to, a, b } => {
            effects.reads.extend([(a, 1), (b, 1)]);
            effects.reads_metadata = true;
            effects.write(to);
        }
        Op::EqualVarbits { to, a, b } => {
            effects.reads.extend([(a, 2), (b, 2)]);
            effects.write(to);
        }
        // Validities alone, which are never left over from another packet.
        Op::ValidUnion { to, .. } => effects.write(to),
        Op::CopyStack { to, from } => {
            effects.stack(layout, to);
            effects.read(layout.stacks[from as usize].fill);
        }
        Op::Push { stack, count } | Op::Pop { stack, count } => {
            effects.stack(layout, stack);
            effects.read(count);
        }
        Op::CopyUnions { to, from } => {
            effects.unions(layout, to);
            effects.read(layout.union_stacks[from as usize].fill);
        }
        Op::PushUnions { stack, count } | Op::PopUnions { stack, count } => {
            effects.unions(layout, stack);
            effects.read(count);
        }
        Op::Count { index, .. } => effects.read(index),
        Op::ReadRegister {
            to,
            register,
            index,
        } => {
            effects.read(index);
            effects.writes.push((to, register_limbs[register as usize]));
        }
        Op::WriteRegister {
            from,
            register,
            index,
        } => {
            let limbs = register_limbs[register as usize];
            effects.reads.extend([(index, 1), (from, limbs)]);
        }
        Op::ExecuteMeter { to, index, .. } => {
            effects.read(index);
            effects.write(to);
        }
        Op::Hash { to, .. } => effects.write(to),
        Op::Clone { session, list } => effects.reads.extend([(session, 1), (list, 1)]),
        Op::Resubmit { list } | Op::Recirculate { list } | Op::Digest { list } => {
            effects.read(list);
        }
        Op::Truncate { bytes } => effects.read(bytes),
        Op::Extract { header } => effects.header(layout, header),
        Op::ExtractVarbit { header, bits } => {
            effects.header(layout, header);
            effects.read(bits);
        }
        Op::ExtractNext { stack } => effects.stack(layout, stack),
        Op::ExtractVarbitNext { stack, bits } => {
            effects.stack(layout, stack);
            effects.read(bits);
        }
        Op::ExtractUnionNext { stack, .. } | Op::ExtractVarbitUnionNext { stack, .. } => {
            if let Op::ExtractVarbitUnionNext { bits, .. } = op {
                effects.read(bits);
            }
            effects.unions(layout, stack);
        }
        Op::Advance { bits } => effects.read(bits),
        Op::Lookahead { to, index } => {
            let limbs = code.lookaheads[index as usize].width.div_ceil(64).max(1);
            effects.writes.push((to, limbs));
        }
        Op::Raise { error } => effects.read(error),
    }
    effects
}
