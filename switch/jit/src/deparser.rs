//! The deparser to machine code: valid headers in order, before the payload.

use cranelift_codegen::ir::types::{I8, I16, I32, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlags, Value};

use super::lower::{Exits, Lower, Register};
use wormcast_switch_program::Piece;

/// Whether all fields lie on bytes, and none is variable.
fn is_plain(pieces: &[Piece]) -> bool {
    pieces.iter().all(|piece| match piece {
        Piece::Chunk { .. } => true,
        Piece::Wide { width, .. } => width.is_multiple_of(8) && *width > 0,
        Piece::Varbit => false,
    })
}

impl Lower<'_, '_> {
    /// Runs the deparser's own code, then writes the headers.
    pub(super) fn lower_deparser(&mut self) {
        let program = self.program;
        if let Some(code) = program.deparser_code {
            let ended = self.builder.create_block();
            let stop = self.builder.create_block();
            self.builder.append_block_param(stop, I64);
            self.lower_piece(code, Exits { stop });
            self.builder.ins().jump(ended, &[]);
            self.builder.switch_to_block(stop);
            self.builder.ins().jump(ended, &[]);
            self.start(ended);
        }
        let position = self.builder.declare_var(I64);
        let start = self.constant(0);
        self.builder.def_var(position, start);
        for &header in &program.deparser {
            let instance = &program.layout.headers[header as usize];
            let kind = &program.layout.types[instance.kind as usize];
            let valid = self.read(instance.base);
            let write = self.builder.create_block();
            let next = self.builder.create_block();
            self.builder.ins().brif(valid, write, &[], next, &[]);
            let before = self.known.clone();
            self.continue_in(write);
            let at = self.builder.use_var(position);
            let end = if is_plain(&kind.pieces) {
                self.write_pieces(&kind.pieces, instance.base, at);
                let bytes = i64::from(kind.fixed_bits / 8);
                self.builder.ins().iadd_imm(at, bytes)
            } else {
                let header = self.constant(u64::from(header));
                let function = self.calls.write_header as *const u8;
                self.call(function, &[header, at], true)
                    .expect("a function that gives a value")
            };
            self.builder.def_var(position, end);
            self.builder.ins().jump(next, &[]);
            self.start_with(next, before);
        }
        let end = self.builder.use_var(position);
        self.set_register(Register::FrameBytes, end);
    }

    fn write_pieces(&mut self, pieces: &[Piece], base: u32, at: Value) {
        let frame = self.register(Register::Frame);
        let address = self.builder.ins().iadd(frame, at);
        let mut offset = 0;
        for piece in pieces {
            match piece {
                Piece::Chunk { bytes: 0, .. } | Piece::Varbit => {}
                Piece::Chunk { bytes, fields } => {
                    let mut chunk: Option<Value> = None;
                    for field in fields {
                        let value = self.read(base + field.offset);
                        let value = self.mask(value, field.mask);
                        let shift = i64::from(field.shift);
                        let value = self.builder.ins().ishl_imm(value, shift);
                        chunk = Some(match chunk {
                            None => value,
                            Some(chunk) => self.builder.ins().bor(chunk, value),
                        });
                    }
                    let chunk = match chunk {
                        Some(chunk) => chunk,
                        None => self.constant(0),
                    };
                    self.store_big_endian(chunk, address, offset, *bytes);
                    offset += bytes;
                }
                Piece::Wide {
                    offset: word,
                    width,
                } => {
                    for limb in (0..width.div_ceil(64)).rev() {
                        let bytes = (width - limb * 64).min(64) / 8;
                        let value = self.read(base + word + limb);
                        self.store_big_endian(value, address, offset, bytes);
                        offset += bytes;
                    }
                }
            }
        }
    }

    /// Stores the low bytes of a word; may write up to [`SLACK_BYTES`] behind them.
    fn store_big_endian(&mut self, value: Value, address: Value, offset: u32, bytes: u32) {
        let flags = MemFlags::new().with_notrap();
        let kind = match bytes {
            1 => I8,
            2 => I16,
            4 => I32,
            _ => I64,
        };
        let value = if kind == I64 {
            let shift = i64::from(64 - bytes * 8);
            self.builder.ins().ishl_imm(value, shift)
        } else {
            self.builder.ins().ireduce(kind, value)
        };
        let value = if kind == I8 {
            value
        } else {
            self.builder.ins().bswap(value)
        };
        let offset = offset.cast_signed();
        self.builder.ins().store(flags, value, address, offset);
    }
}
