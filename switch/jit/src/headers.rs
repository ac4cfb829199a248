//! Instructions on headers and header stacks to machine code.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{Block, InstBuilder, MemFlags, Value};

use super::lower::{Known, Lower, Register, common};
use wormcast_switch_program::Slot;
use wormcast_switch_program::code::Op;

impl Lower<'_, '_> {
    /// Instructions on headers and stacks; `false` for all others.
    pub(super) fn lower_header_op(&mut self, op: Op) -> bool {
        match op {
            Op::MakeValid { header } => self.make_valid(header),
            Op::MakeInvalid { header } => self.make_invalid(header),
            Op::CopyHeader { to, from } => self.copy_header(to, from),
            Op::ValidUnion { to, union } => {
                let mut any = self.constant(0);
                for &header in &self.program.layout.unions[union as usize].headers {
                    let base = self.program.layout.headers[header as usize].base;
                    let validity = self.read(base);
                    let valid = self.builder.ins().icmp_imm(IntCC::Equal, validity, 1);
                    let valid = self.truth(valid);
                    any = self.builder.ins().bor(any, valid);
                }
                self.write(to, any);
            }
            Op::LastIndex { to, fill } => {
                let fill = self.read(fill);
                let last = self.builder.ins().iadd_imm(fill, -1);
                self.write(to, last);
            }
            Op::LoadStack { to, access, index } => {
                let index = self.read(index);
                self.load_element(to, access, index);
            }
            Op::LoadLast { to, access } => {
                let index = self.last_index(access);
                self.load_element(to, access, index);
            }
            Op::StoreStack {
                from,
                access,
                index,
            } => {
                let index = self.read(index);
                self.store_element(op, from, access, index);
            }
            Op::StoreLast { from, access } => {
                let index = self.last_index(access);
                self.store_element(op, from, access, index);
            }
            _ => return false,
        }
        true
    }

    /// Branches on a condition to a rare or common part and to what follows both.
    fn fork(&mut self, condition: Value) -> (Block, Block, Known) {
        let part = self.builder.create_block();
        let join = self.builder.create_block();
        self.builder.ins().brif(condition, part, &[], join, &[]);
        let before = self.known.clone();
        self.continue_in(part);
        (part, join, before)
    }

    fn join(&mut self, (_, join, before): (Block, Block, Known)) {
        self.builder.ins().jump(join, &[]);
        let known = common(&before, &self.known);
        self.start_with(join, known);
    }

    pub(super) fn invalidate_others(&mut self, union: u32, keep: Slot) {
        for &header in &self.program.layout.unions[union as usize].headers {
            let base = self.program.layout.headers[header as usize].base;
            if base != keep {
                let zero = self.constant(0);
                self.write(base, zero);
            }
        }
    }

    fn make_valid(&mut self, header: u32) {
        let program = self.program;
        let instance = &program.layout.headers[header as usize];
        let kind = &program.layout.types[instance.kind as usize];
        let validity = self.read(instance.base);
        let invalid = self.builder.ins().icmp_imm(IntCC::NotEqual, validity, 1);
        let fork = self.fork(invalid);
        for slot in instance.base + 1..instance.base + kind.words {
            let zero = self.constant(0);
            self.write(slot, zero);
        }
        let one = self.constant(1);
        self.write(instance.base, one);
        if let Some(union) = instance.union {
            self.invalidate_others(union, instance.base);
        }
        let length = self.register(Register::Length);
        let bytes = i64::from(kind.fixed_bits / 8);
        let length = self.builder.ins().iadd_imm(length, bytes);
        self.set_register(Register::Length, length);
        self.join(fork);
        let one = self.constant(1);
        self.known.insert(instance.base, one);
    }

    fn make_invalid(&mut self, header: u32) {
        let program = self.program;
        let instance = &program.layout.headers[header as usize];
        if instance.metadata {
            return;
        }
        let kind = &program.layout.types[instance.kind as usize];
        let validity = self.read(instance.base);
        let fork = self.fork(validity);
        let bits = self.constant(u64::from(kind.fixed_bits));
        let bits = match instance.varbit {
            None => bits,
            Some(slot) => {
                let varbit = self.read(slot);
                self.builder.ins().iadd(bits, varbit)
            }
        };
        let bytes = self.builder.ins().ushr_imm(bits, 3);
        let length = self.register(Register::Length);
        let length = self.builder.ins().isub(length, bytes);
        self.set_register(Register::Length, length);
        let zero = self.constant(0);
        self.write(instance.base, zero);
        self.join(fork);
        let zero = self.constant(0);
        self.known.insert(instance.base, zero);
    }

    /// Assignment of headers; the fields of an invalid source are not copied.
    fn copy_header(&mut self, to: u32, from: u32) {
        let program = self.program;
        let source = &program.layout.headers[from as usize];
        let target = &program.layout.headers[to as usize];
        let words = program.layout.types[source.kind as usize].words;
        let validity = self.read(source.base);
        let copy = self.builder.create_block();
        let clear = self.builder.create_block();
        let join = self.builder.create_block();
        self.builder.ins().brif(validity, copy, &[], clear, &[]);
        let before = self.known.clone();
        self.continue_in(copy);
        let values: Vec<Value> = (0..words)
            .map(|word| self.read(source.base + word))
            .collect();
        for (word, value) in values.into_iter().enumerate() {
            self.write(target.base + word as u32, value);
        }
        if let Some(union) = target.union {
            self.invalidate_others(union, target.base);
        }
        self.builder.ins().jump(join, &[]);
        let copied = std::mem::replace(&mut self.known, before);
        self.continue_in(clear);
        let zero = self.constant(0);
        self.write(target.base, zero);
        self.builder.ins().jump(join, &[]);
        let known = common(&copied, &self.known);
        self.start_with(join, known);
    }

    fn last_index(&mut self, access: u32) -> Value {
        let stack = self.program.code.stack_fields[access as usize].stack;
        let fill = self.read(self.program.layout.stacks[stack as usize].fill);
        self.builder.ins().iadd_imm(fill, -1)
    }

    /// Address of the first word of an element of a stack.
    pub(super) fn element(&mut self, stack: u32, index: Value) -> Value {
        let program = self.program;
        let stack = &program.layout.stacks[stack as usize];
        let words = program.layout.types[stack.kind as usize].words;
        let base = program.layout.headers[stack.first_header as usize].base;
        let offset = self.builder.ins().imul_imm(index, i64::from(words));
        let slot = self.builder.ins().iadd_imm(offset, i64::from(base));
        self.address(slot)
    }

    /// Whether an index is past the end of the stack of a field.
    fn outside(&mut self, access: u32, index: Value) -> Value {
        let stack = self.program.code.stack_fields[access as usize].stack;
        let size = i64::from(self.program.layout.stacks[stack as usize].size);
        let past = IntCC::UnsignedGreaterThanOrEqual;
        self.builder.ins().icmp_imm(past, index, size)
    }

    fn load_element(&mut self, to: Slot, access: u32, index: Value) {
        let field = self.program.code.stack_fields[access as usize];
        let outside = self.outside(access, index);
        let missing = self.builder.create_block();
        let there = self.builder.create_block();
        let join = self.builder.create_block();
        for _ in 0..field.limbs {
            self.builder.append_block_param(join, I64);
        }
        self.builder.set_cold_block(missing);
        self.builder.ins().brif(outside, missing, &[], there, &[]);
        self.continue_in(missing);
        self.count_event(self.numbers.stack_index_out_of_bounds);
        let zero = self.constant(0);
        let zeros = vec![zero.into(); field.limbs as usize];
        self.builder.ins().jump(join, &zeros);
        self.continue_in(there);
        let element = self.element(field.stack, index);
        let mut loaded = Vec::new();
        for limb in 0..field.limbs {
            let offset = ((field.offset + limb) * 8).cast_signed();
            let flags = MemFlags::trusted();
            let value = self.builder.ins().load(I64, flags, element, offset);
            loaded.push(value.into());
        }
        self.builder.ins().jump(join, &loaded);
        self.continue_in(join);
        let values = self.builder.block_params(join).to_vec();
        for (limb, value) in values.into_iter().enumerate() {
            self.write(to + limb as u32, value);
        }
    }

    fn store_element(&mut self, op: Op, from: Slot, access: u32, index: Value) {
        let field = self.program.code.stack_fields[access as usize];
        let values: Vec<Value> = (0..field.limbs)
            .map(|limb| self.read(from + limb))
            .collect();
        let outside = self.outside(access, index);
        let missing = self.builder.create_block();
        let there = self.builder.create_block();
        let join = self.builder.create_block();
        self.builder.set_cold_block(missing);
        self.builder.ins().brif(outside, missing, &[], there, &[]);
        self.continue_in(missing);
        self.count_event(self.numbers.stack_index_out_of_bounds);
        self.builder.ins().jump(join, &[]);
        self.continue_in(there);
        let element = self.element(field.stack, index);
        for (limb, value) in values.into_iter().enumerate() {
            let offset = ((field.offset + limb as u32) * 8).cast_signed();
            let flags = MemFlags::trusted();
            self.builder.ins().store(flags, value, element, offset);
        }
        self.builder.ins().jump(join, &[]);
        self.continue_in(join);
        self.forget_effects(op);
    }
}
