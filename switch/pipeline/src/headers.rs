//! Instructions on headers and header stacks.

use super::codec;
use super::machine::Machine;
use super::statistics::Event;
use wormcast_switch_program::code::{NO_HEADER, Op};
use wormcast_switch_program::{Program, Slot};

impl Machine {
    /// Instructions on headers and stacks.
    pub(super) fn run_header_op(&mut self, program: &Program, packet: &[u8], op: Op) {
        match op {
            Op::MakeValid { header } => self.make_valid(program, header),
            Op::MakeInvalid { header } => self.make_invalid(program, header),
            Op::CopyHeader { to, from } => self.copy_header(program, to, from),
            Op::MakeValidAt { header } => {
                if let Some(header) = self.header_at(header) {
                    self.make_valid(program, header);
                }
            }
            Op::MakeInvalidAt { header } => {
                if let Some(header) = self.header_at(header) {
                    self.make_invalid(program, header);
                }
            }
            Op::CopyHeaderAt { to, from } => match (self.header_at(to), self.header_at(from)) {
                (Some(to), Some(from)) => self.copy_header(program, to, from),
                (Some(to), None) => self.make_invalid(program, to),
                (None, _) => {}
            },
            Op::ValidAt { to, header } => {
                let valid = self
                    .header_at(header)
                    .map_or(0, |header| self.validity(program, header));
                self.write(to, valid);
            }
            Op::EqualHeaders { to, a, b } => {
                let equal = match (self.header_at(a), self.header_at(b)) {
                    (Some(a), Some(b)) => self.headers_equal(program, packet, a, b),
                    _ => false,
                };
                self.write(to, u64::from(equal));
            }
            Op::EqualVarbits { to, a, b } => {
                let equal = codec::varbit_bytes(&self.words, a, packet)
                    == codec::varbit_bytes(&self.words, b, packet);
                self.write(to, u64::from(equal));
            }
            Op::ValidUnion { to, union } => {
                let headers = &program.layout.unions[union as usize].headers;
                let valid = headers
                    .iter()
                    .any(|&header| self.validity(program, header) == 1);
                self.write(to, u64::from(valid));
            }
            Op::CopyStack { to, from } => {
                let stacks = &program.layout.stacks;
                let (to, from) = (&stacks[to as usize], &stacks[from as usize]);
                self.write(to.fill, self.word(from.fill));
                for index in 0..to.size {
                    let (to, from) = (to.first_header + index, from.first_header + index);
                    self.copy_header(program, to, from);
                }
            }
            Op::Push { stack, count } => self.push(program, stack, self.word(count)),
            Op::Pop { stack, count } => self.pop(program, stack, self.word(count)),
            Op::CopyUnions { .. } | Op::PushUnions { .. } | Op::PopUnions { .. } => {
                self.run_unions_op(program, op);
            }
            Op::FindHeader { to, stack, index } => {
                let stack = &program.layout.stacks[stack as usize];
                let index = self.word(index);
                let header = if index < u64::from(stack.size) {
                    u64::from(stack.first_header) + index
                } else {
                    self.statistics.count_event(Event::StackIndexOutOfBounds);
                    NO_HEADER
                };
                self.write(to, header);
            }
            Op::LoadStack { to, access, index } => {
                let index = self.word(index);
                self.load_element(program, to, access, index);
            }
            Op::StoreStack {
                from,
                access,
                index,
            } => {
                let index = self.word(index);
                self.store_element(program, from, access, index);
            }
            Op::LoadLast { to, access } => {
                let index = self.last_index(program, access);
                self.load_element(program, to, access, index);
            }
            Op::StoreLast { from, access } => {
                let index = self.last_index(program, access);
                self.store_element(program, from, access, index);
            }
            Op::LastIndex { to, fill } => self.write(to, self.word(fill).wrapping_sub(1)),
            Op::LoadLastUnion { to, access } => self.load_last_union(program, to, access),
            other => unreachable!("{other:?} is not an instruction on headers"),
        }
    }

    #[inline]
    fn header_at(&self, slot: Slot) -> Option<u32> {
        u32::try_from(self.word(slot)).ok()
    }

    #[inline]
    fn validity(&self, program: &Program, header: u32) -> u64 {
        self.words[program.layout.headers[header as usize].base as usize]
    }

    pub(super) fn invalidate_others(&mut self, program: &Program, union: u32, keep: Slot) {
        for &other in &program.layout.unions[union as usize].headers {
            let base = program.layout.headers[other as usize].base;
            if base != keep {
                self.words[base as usize] = 0;
            }
        }
    }

    /// Bytes of a header on the wire.
    fn header_bytes(&self, program: &Program, header: u32) -> u64 {
        let header = &program.layout.headers[header as usize];
        let fixed = program.layout.types[header.kind as usize].fixed_bits;
        let varbit = header.varbit.map_or(0, |slot| self.word(slot));
        (u64::from(fixed) + varbit) / 8
    }

    /// `setValid`: an invalid header starts with all fields 0, and the packet grows.
    fn make_valid(&mut self, program: &Program, header: u32) {
        if self.validity(program, header) == 1 {
            return;
        }
        let instance = &program.layout.headers[header as usize];
        let base = instance.base as usize;
        let kind = &program.layout.types[instance.kind as usize];
        self.words[base..base + kind.words as usize].fill(0);
        self.words[base] = 1;
        if let Some(union) = instance.union {
            self.invalidate_others(program, union, instance.base);
        }
        self.length = self.length.wrapping_add(self.header_bytes(program, header));
    }

    /// `setInvalid`: the packet shrinks.
    fn make_invalid(&mut self, program: &Program, header: u32) {
        let instance = &program.layout.headers[header as usize];
        if instance.metadata || self.words[instance.base as usize] == 0 {
            return;
        }
        self.length = self.length.wrapping_sub(self.header_bytes(program, header));
        self.words[instance.base as usize] = 0;
    }

    /// Assignment of headers; the fields of an invalid source are not copied.
    fn copy_header(&mut self, program: &Program, to: u32, from: u32) {
        let layout = &program.layout;
        let to_base = layout.headers[to as usize].base as usize;
        let from_base = layout.headers[from as usize].base as usize;
        if self.words[from_base] == 0 {
            self.words[to_base] = 0;
            return;
        }
        let words = layout.types[layout.headers[from as usize].kind as usize].words as usize;
        self.words
            .copy_within(from_base..from_base + words, to_base);
        if let Some(union) = layout.headers[to as usize].union {
            self.invalidate_others(program, union, to_base as u32);
        }
    }

    fn headers_equal(&self, program: &Program, packet: &[u8], a: u32, b: u32) -> bool {
        let layout = &program.layout;
        let (a, b) = (&layout.headers[a as usize], &layout.headers[b as usize]);
        if a.kind != b.kind || self.words[a.base as usize] == 0 || self.words[b.base as usize] == 0
        {
            return false;
        }
        let kind = &layout.types[a.kind as usize];
        let same_varbit = match (a.varbit, b.varbit) {
            (Some(a), Some(b)) => {
                codec::varbit_bytes(&self.words, a, packet)
                    == codec::varbit_bytes(&self.words, b, packet)
            }
            _ => true,
        };
        same_varbit
            && kind
                .fields
                .iter()
                .filter(|field| !field.varbit)
                .all(|field| {
                    let range = |base: Slot| {
                        let first = (base + field.offset) as usize;
                        first..first + field.limbs as usize
                    };
                    self.words[range(a.base)] == self.words[range(b.base)]
                })
    }

    fn push(&mut self, program: &Program, stack: u32, count: u64) {
        let stack = &program.layout.stacks[stack as usize];
        let words = program.layout.types[stack.kind as usize].words as usize;
        let size = stack.size as usize;
        let count = usize::try_from(count).unwrap_or(size).min(size);
        let base = program.layout.headers[stack.first_header as usize].base as usize;
        self.words
            .copy_within(base..base + (size - count) * words, base + count * words);
        for index in 0..count {
            self.words[base + index * words] = 0;
        }
        let fill = self.word(stack.fill) + count as u64;
        self.write(stack.fill, fill.min(size as u64));
    }

    fn pop(&mut self, program: &Program, stack: u32, count: u64) {
        let stack = &program.layout.stacks[stack as usize];
        let words = program.layout.types[stack.kind as usize].words as usize;
        let size = stack.size as usize;
        let count = usize::try_from(count).unwrap_or(size).min(size);
        let base = program.layout.headers[stack.first_header as usize].base as usize;
        self.words
            .copy_within(base + count * words..base + size * words, base);
        for index in size - count..size {
            self.words[base + index * words] = 0;
        }
        let fill = self.word(stack.fill).saturating_sub(count as u64);
        self.write(stack.fill, fill);
    }

    fn last_index(&self, program: &Program, access: u32) -> u64 {
        let stack = program.code.stack_fields[access as usize].stack;
        self.word(program.layout.stacks[stack as usize].fill)
            .wrapping_sub(1)
    }

    /// First word of a field of a stack element.
    fn element(&mut self, program: &Program, access: u32, index: u64) -> Option<(usize, usize)> {
        let access = program.code.stack_fields[access as usize];
        let stack = &program.layout.stacks[access.stack as usize];
        if index >= u64::from(stack.size) {
            self.statistics.count_event(Event::StackIndexOutOfBounds);
            return None;
        }
        let header = &program.layout.headers[(stack.first_header + index as u32) as usize];
        Some((
            (header.base + access.offset) as usize,
            access.limbs as usize,
        ))
    }

    fn load_element(&mut self, program: &Program, to: Slot, access: u32, index: u64) {
        let limbs = program.code.stack_fields[access as usize].limbs as usize;
        match self.element(program, access, index) {
            Some((first, limbs)) => self.words.copy_within(first..first + limbs, to as usize),
            None => self.words[to as usize..to as usize + limbs].fill(0),
        }
    }

    fn store_element(&mut self, program: &Program, from: Slot, access: u32, index: u64) {
        if let Some((first, limbs)) = self.element(program, access, index) {
            self.words
                .copy_within(from as usize..from as usize + limbs, first);
        }
    }
}
