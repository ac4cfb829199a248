//! Calculations: their input, gathered from headers and payload.

use super::codec::{self, BitWriter};
use super::hash;
use super::machine::Machine;
use wormcast_switch_program::{InputPart, Program, Slot};

impl Machine {
    /// The result of a calculation over the current headers and payload.
    pub(super) fn calculate(&mut self, program: &Program, packet: &[u8], calculation: u32) -> u64 {
        let custom = self.custom_crcs[calculation as usize].as_deref();
        let calculation = &program.calculations[calculation as usize];
        self.input.clear();
        let words = &self.words;
        let mut out = BitWriter::new(&mut self.input);
        let is_valid = |slot: Slot| words[slot as usize] != 0;
        for part in &calculation.input {
            match part {
                InputPart::Field { slot, width, valid } => {
                    if valid.is_none_or(is_valid) {
                        let first = *slot as usize;
                        if *width <= 64 {
                            out.put(words[first], *width);
                        } else {
                            let limbs = width.div_ceil(64) as usize;
                            out.put_words(&words[first..first + limbs], *width);
                        }
                    }
                }
                InputPart::Varbit { slot, valid } => {
                    if is_valid(*valid) {
                        out.put_bytes(codec::varbit_bytes(words, *slot, packet));
                    }
                }
                InputPart::Constant { bytes, width } => put_constant(&mut out, bytes, *width),
                InputPart::Header(header) => {
                    let header = &program.layout.headers[*header as usize];
                    if is_valid(header.base) {
                        let kind = &program.layout.types[header.kind as usize];
                        let base = header.base as usize;
                        codec::deparse(&kind.pieces, words, base, header.varbit, packet, &mut out);
                    }
                }
                InputPart::Payload => {
                    out.align();
                    out.put_bytes(&packet[self.cursor..]);
                }
            }
        }
        match custom {
            Some(crc) => crc.compute(&self.input),
            None => hash::compute(calculation.algorithm, &self.input),
        }
    }
}

/// Bytes hold `width` bits, aligned at the end.
fn put_constant(out: &mut BitWriter<'_>, bytes: &[u8], width: u32) {
    let mut left = width;
    for byte in bytes {
        let take = if left.is_multiple_of(8) { 8 } else { left % 8 };
        out.put(u64::from(*byte), take);
        left -= take;
    }
}
