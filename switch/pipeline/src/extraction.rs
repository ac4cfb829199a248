//! What the parser does to a packet.

use super::codec;
use super::machine::Machine;
use wormcast_switch_program::{Program, Slot};

impl Machine {
    fn remaining(&self, packet: &[u8]) -> usize {
        packet.len() - self.cursor
    }

    pub(super) fn advance(
        &mut self,
        program: &Program,
        packet: &[u8],
        bits: u64,
    ) -> Result<(), u64> {
        if !bits.is_multiple_of(8) {
            return Err(program.errors.parser_invalid_argument);
        }
        if bits / 8 > self.remaining(packet) as u64 {
            return Err(program.errors.packet_too_short);
        }
        self.cursor += (bits / 8) as usize;
        Ok(())
    }

    pub(super) fn look_ahead(
        &mut self,
        program: &Program,
        packet: &[u8],
        to: Slot,
        index: u32,
    ) -> Result<(), u64> {
        let lookahead = program.code.lookaheads[index as usize];
        let end = (lookahead.offset + lookahead.width).div_ceil(8) as usize;
        if end > self.remaining(packet) {
            return Err(program.errors.packet_too_short);
        }
        let limbs = lookahead.width.div_ceil(64).max(1) as usize;
        codec::load_bits(
            packet,
            self.cursor * 8 + lookahead.offset as usize,
            lookahead.width,
            &mut self.words[to as usize..to as usize + limbs],
        );
        Ok(())
    }

    pub(super) fn extract(
        &mut self,
        program: &Program,
        packet: &[u8],
        header: u32,
        varbit_bits: Option<u64>,
    ) -> Result<(), u64> {
        let header = &program.layout.headers[header as usize];
        let kind = &program.layout.types[header.kind as usize];
        let bits = varbit_bits.unwrap_or(0);
        if !bits.is_multiple_of(8) {
            return Err(program.errors.parser_invalid_argument);
        }
        let fixed = kind.fixed_bits as usize / 8;
        if fixed as u64 + bits / 8 > self.remaining(packet) as u64 {
            return Err(program.errors.packet_too_short);
        }
        if varbit_bits.is_some() && bits / 8 > u64::from(kind.varbit_bytes_max) {
            return Err(program.errors.header_too_short);
        }
        let varbit = match (varbit_bits, header.varbit) {
            (Some(bits), Some(slot)) => Some((slot as usize, bits)),
            _ => None,
        };
        codec::extract(
            &kind.pieces,
            &mut self.words,
            header.base as usize,
            packet,
            self.cursor,
            varbit,
        );
        self.words[header.base as usize] = 1;
        if let Some(union) = header.union {
            self.invalidate_others(program, union, header.base);
        }
        self.cursor += fixed + (bits / 8) as usize;
        Ok(())
    }

    pub(super) fn extract_next(
        &mut self,
        program: &Program,
        packet: &[u8],
        stack: u32,
        varbit_bits: Option<u64>,
    ) -> Result<(), u64> {
        let stack = &program.layout.stacks[stack as usize];
        let fill = self.word(stack.fill);
        if fill >= u64::from(stack.size) {
            return Err(program.errors.stack_out_of_bounds);
        }
        self.extract(
            program,
            packet,
            stack.first_header + fill as u32,
            varbit_bits,
        )?;
        self.write(stack.fill, fill + 1);
        Ok(())
    }

    pub(super) fn extract_union_next(
        &mut self,
        program: &Program,
        packet: &[u8],
        stack: u32,
        member: u32,
        varbit_bits: Option<u64>,
    ) -> Result<(), u64> {
        let stack = &program.layout.union_stacks[stack as usize];
        let fill = self.word(stack.fill);
        let Some(&union) = stack.unions.get(fill as usize) else {
            return Err(program.errors.stack_out_of_bounds);
        };
        let header = program.layout.unions[union as usize].headers[member as usize];
        self.extract(program, packet, header, varbit_bits)?;
        self.write(stack.fill, fill + 1);
        Ok(())
    }
}
