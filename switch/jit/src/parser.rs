//! Parsers to machine code: what states extract, and where they go next.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{Block, InstBuilder, MemFlags, Value};
use cranelift_frontend::Switch;

use super::lower::{Exits, Lower, Register};
use wormcast_switch_pipeline::abi::status;
use wormcast_switch_program::code::Op;
use wormcast_switch_program::{Case, HeaderType, Next, Piece, ones};

/// Where a header is read to: a fixed place, or an element of a stack.
#[derive(Clone, Copy)]
enum Place {
    Fixed(u32),
    Element(Value),
}

impl Lower<'_, '_> {
    /// The whole parser; ends with a jump to `done`.
    pub(super) fn lower_parser(&mut self, done: Block, exits: Exits) {
        let program = self.program;
        let parser = &program.parser;
        let blocks: Vec<Block> = parser
            .states
            .iter()
            .map(|_| self.builder.create_block())
            .collect();
        let to = |next: Next| next.map_or(done, |state| blocks[state as usize]);
        let visited = self.builder.declare_var(I64);
        let none = self.constant(0);
        self.builder.def_var(visited, none);
        self.builder.ins().jump(to(parser.start), &[]);
        for (number, state) in parser.states.iter().enumerate() {
            self.start(blocks[number]);
            let count = self.builder.use_var(visited);
            let count = self.builder.ins().iadd_imm(count, 1);
            self.builder.def_var(visited, count);
            let limit = self.numbers.parser_states_max.cast_signed();
            let over = self
                .builder
                .ins()
                .icmp_imm(IntCC::UnsignedGreaterThan, count, limit);
            self.stop_if(over, exits, status::DROP + self.numbers.parser_loop);
            self.lower_piece(state.code, exits);
            self.lower_select(number, &to);
        }
    }

    fn lower_select(&mut self, number: usize, to: &dyn Fn(Next) -> Block) {
        let program = self.program;
        let state = &program.parser.states[number];
        let mut key = Vec::new();
        for part in &state.key {
            for limb in 0..part.width.div_ceil(64).max(1) {
                key.push(self.read(part.slot + limb));
            }
        }
        if key.is_empty() {
            // Without a key only the default is left.
            self.builder.ins().jump(to(state.default), &[]);
            return;
        }
        let exact = |case: &Case| match case {
            Case::Value { value, mask } if mask.iter().all(|&mask| mask == u64::MAX) => {
                value.first().copied()
            }
            _ => None,
        };
        let values: Option<Vec<u64>> = state.cases.iter().map(|(case, _)| exact(case)).collect();
        if let (1, Some(values)) = (key.len(), values) {
            let mut switch = Switch::new();
            for (value, (_, next)) in values.into_iter().zip(&state.cases) {
                let value = u128::from(value);
                // Of two equal cases the first one counts.
                if !switch.entries().contains_key(&value) {
                    switch.set_entry(value, to(*next));
                }
            }
            return switch.emit(&mut self.builder, key[0], to(state.default));
        }
        let with_sets = state
            .cases
            .iter()
            .any(|(case, _)| matches!(case, Case::Set { .. }));
        if with_sets {
            for (position, &value) in key.iter().enumerate() {
                self.write_key(position, value);
            }
        }
        for (index, (case, next)) in state.cases.iter().enumerate() {
            let holds = match case {
                Case::Value { value, mask } => self.masked_equal(&key, value, mask),
                Case::Set { .. } => {
                    let state = self.constant(number as u64);
                    let case = self.constant(index as u64);
                    let function = self.calls.case_holds as *const u8;
                    self.call(function, &[state, case], true)
                        .expect("a function that gives a value")
                }
            };
            let on = self.builder.create_block();
            self.builder.ins().brif(holds, to(*next), &[], on, &[]);
            self.continue_in(on);
        }
        self.builder.ins().jump(to(state.default), &[]);
    }

    fn masked_equal(&mut self, key: &[Value], values: &[u64], masks: &[u64]) -> Value {
        let mut differences = self.constant(0);
        for ((&key, &value), &mask) in key.iter().zip(values).zip(masks) {
            let key = self.mask(key, mask);
            let wanted = self.constant(value & mask);
            let difference = self.builder.ins().bxor(key, wanted);
            differences = self.builder.ins().bor(differences, difference);
        }
        self.is_zero(differences)
    }

    /// Instructions of parsers; `false` for all others.
    pub(super) fn lower_parser_op(&mut self, op: Op, exits: Exits) -> bool {
        let program = self.program;
        let errors = program.errors;
        match op {
            Op::Extract { header } => self.extract(header, None, exits),
            Op::ExtractVarbit { header, bits } => {
                let bits = self.read(bits);
                self.extract(header, Some(bits), exits);
            }
            Op::ExtractNext { stack } => self.extract_next(op, stack, None, exits),
            Op::ExtractVarbitNext { stack, bits } => {
                let bits = self.read(bits);
                self.extract_next(op, stack, Some(bits), exits);
            }
            Op::Advance { bits } => {
                let bits = self.read(bits);
                let bytes = self.whole_bytes(bits, exits);
                let cursor = self.register(Register::Cursor);
                let left = self.builder.ins().isub(self.packet_bytes, cursor);
                let past = IntCC::UnsignedGreaterThan;
                let short = self.builder.ins().icmp(past, bytes, left);
                self.raise_if(short, exits, errors.packet_too_short);
                let cursor = self.builder.ins().iadd(cursor, bytes);
                self.set_register(Register::Cursor, cursor);
            }
            Op::Lookahead { to, index } => {
                let lookahead = program.code.lookaheads[index as usize];
                let end = (lookahead.offset + lookahead.width).div_ceil(8);
                let cursor = self.need(end, None, exits);
                let address = self.builder.ins().iadd(self.packet, cursor);
                let words = self.load_bits(address, lookahead.offset, lookahead.width);
                for (limb, value) in words.into_iter().enumerate() {
                    self.write(to + limb as u32, value);
                }
            }
            _ => return false,
        }
        true
    }

    /// Bytes that bits make; an error of the parser unless they are whole.
    fn whole_bytes(&mut self, bits: Value, exits: Exits) -> Value {
        let rest = self.builder.ins().band_imm(bits, 7);
        self.raise_if(rest, exits, self.program.errors.parser_invalid_argument);
        self.builder.ins().ushr_imm(bits, 3)
    }

    /// Ends parsing unless so many bytes are left. Gives the cursor.
    fn need(&mut self, bytes: u32, more: Option<Value>, exits: Exits) -> Value {
        let cursor = self.register(Register::Cursor);
        let left = self.builder.ins().isub(self.packet_bytes, cursor);
        let mut needed = self.constant(u64::from(bytes));
        if let Some(more) = more {
            needed = self.builder.ins().iadd(needed, more);
        }
        let past = IntCC::UnsignedGreaterThan;
        let short = self.builder.ins().icmp(past, needed, left);
        self.raise_if(short, exits, self.program.errors.packet_too_short);
        cursor
    }

    fn extract(&mut self, header: u32, varbit_bits: Option<Value>, exits: Exits) {
        let program = self.program;
        let instance = &program.layout.headers[header as usize];
        let place = Place::Fixed(instance.base);
        let end = self.read_header(instance.kind, place, varbit_bits, exits);
        if let Some(union) = instance.union {
            self.invalidate_others(union, instance.base);
        }
        self.set_register(Register::Cursor, end);
    }

    /// Into the next element of a stack that is no part of unions.
    fn extract_next(&mut self, op: Op, number: u32, varbit_bits: Option<Value>, exits: Exits) {
        let program = self.program;
        let stack = &program.layout.stacks[number as usize];
        let fill = self.read(stack.fill);
        let size = i64::from(stack.size);
        let past = IntCC::UnsignedGreaterThanOrEqual;
        let full = self.builder.ins().icmp_imm(past, fill, size);
        self.raise_if(full, exits, program.errors.stack_out_of_bounds);
        let element = self.element(number, fill);
        let place = Place::Element(element);
        let end = self.read_header(stack.kind, place, varbit_bits, exits);
        self.forget_effects(op);
        let filled = self.builder.ins().iadd_imm(fill, 1);
        self.write(stack.fill, filled);
        self.set_register(Register::Cursor, end);
    }

    /// Reads a header at the cursor and makes it valid. Gives where it ends.
    fn read_header(
        &mut self,
        kind: u32,
        place: Place,
        varbit_bits: Option<Value>,
        exits: Exits,
    ) -> Value {
        let program = self.program;
        let kind = &program.layout.types[kind as usize];
        let fixed = kind.fixed_bits / 8;
        let varbit_bytes = varbit_bits.map(|bits| self.whole_bytes(bits, exits));
        let cursor = self.need(fixed, varbit_bytes, exits);
        if let Some(bytes) = varbit_bytes {
            let most = i64::from(kind.varbit_bytes_max);
            let past = IntCC::UnsignedGreaterThan;
            let long = self.builder.ins().icmp_imm(past, bytes, most);
            self.raise_if(long, exits, program.errors.header_too_short);
        }
        let varbit = match (varbit_bits, varbit_bytes) {
            (Some(bits), Some(bytes)) => Some((bits, bytes)),
            _ => None,
        };
        self.read_pieces(kind, place, cursor, varbit);
        let one = self.constant(1);
        self.put(place, 0, one);
        let end = self.builder.ins().iadd_imm(cursor, i64::from(fixed));
        match varbit_bytes {
            Some(bytes) => self.builder.ins().iadd(end, bytes),
            None => end,
        }
    }

    /// Writes a word of a header.
    fn put(&mut self, place: Place, offset: u32, value: Value) {
        match place {
            Place::Fixed(base) => self.write(base + offset, value),
            Place::Element(address) => {
                let offset = (offset * 8).cast_signed();
                let flags = MemFlags::trusted();
                self.builder.ins().store(flags, value, address, offset);
            }
        }
    }

    /// Reads the fields of a header whose bytes are there. `varbit`: bits and bytes of the
    /// variable field.
    fn read_pieces(
        &mut self,
        kind: &HeaderType,
        place: Place,
        cursor: Value,
        varbit: Option<(Value, Value)>,
    ) {
        let mut address = self.builder.ins().iadd(self.packet, cursor);
        let mut start = cursor;
        let mut bit = 0;
        for piece in &kind.pieces {
            match piece {
                Piece::Chunk { bytes: 0, .. } => {}
                Piece::Chunk { bytes, fields } => {
                    let chunk = self.load_big_endian(address, bit / 8, *bytes);
                    for field in fields {
                        let shift = i64::from(field.shift);
                        let value = self.builder.ins().ushr_imm(chunk, shift);
                        let above = ones(bytes * 8) >> field.shift;
                        let value = if above == field.mask {
                            value
                        } else {
                            self.mask(value, field.mask)
                        };
                        self.put(place, field.offset, value);
                    }
                    bit += bytes * 8;
                }
                Piece::Wide { offset, width } => {
                    let words = self.load_bits(address, bit, *width);
                    for (limb, value) in words.into_iter().enumerate() {
                        self.put(place, offset + limb as u32, value);
                    }
                    bit += width;
                }
                Piece::Varbit => {
                    let (Some((bits, bytes)), Some(field)) = (varbit, kind.varbit) else {
                        continue;
                    };
                    let offset = kind.fields[field].offset;
                    let at = i64::from(bit / 8);
                    let position = self.builder.ins().iadd_imm(start, at);
                    self.put(place, offset, bits);
                    self.put(place, offset + 1, position);
                    address = self.builder.ins().iadd(address, bytes);
                    start = self.builder.ins().iadd(start, bytes);
                }
            }
        }
    }

    /// Bits from an address on as words, least significant first.
    fn load_bits(&mut self, address: Value, bit: u32, width: u32) -> Vec<Value> {
        let mut words = Vec::new();
        let mut left = width;
        for _ in 0..width.div_ceil(64).max(1) {
            let take = left.min(64);
            left -= take;
            words.push(self.load_up_to_64(address, bit + left, take));
        }
        words
    }

    fn load_up_to_64(&mut self, address: Value, bit: u32, width: u32) -> Value {
        if width == 0 {
            return self.constant(0);
        }
        let bits = bit % 8 + width;
        let bytes = bits.div_ceil(8);
        let unused = i64::from(bytes * 8 - bits);
        let value = if bytes <= 8 {
            let value = self.load_big_endian(address, bit / 8, bytes);
            self.builder.ins().ushr_imm(value, unused)
        } else {
            let high = self.load_big_endian(address, bit / 8, 8);
            let low = self.load_big_endian(address, bit / 8 + 8, 1);
            let high = self.builder.ins().ishl_imm(high, 8 - unused);
            let low = self.builder.ins().ushr_imm(low, unused);
            self.builder.ins().bor(high, low)
        };
        self.mask(value, ones(width))
    }
}
