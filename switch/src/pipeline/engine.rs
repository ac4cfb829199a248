//! The steps of a packet's way, by compiled code or by the interpreter.

use super::Pipeline;
use super::codec::{self, BitWriter};
use super::machine::Flow;
use super::stages::{applies, run_control, run_parser};
use super::statistics::{DropCause, Event};
use crate::jit::Entries;
use crate::program::ones;

impl Pipeline {
    /// The code that runs the packet in the machine; none: the interpreter does.
    #[inline]
    fn code(&self) -> Option<Entries> {
        self.entries
    }

    /// Runs the ingress control.
    pub(super) fn run_ingress_control(&mut self, packet: &[u8]) -> Result<(), DropCause> {
        if let Some(code) = self.code() {
            return self.run_code(code.ingress, packet).map(|_| ());
        }
        let flow = run_control(
            &self.program,
            &self.program.ingress,
            &mut self.tables,
            &self.profiles,
            &mut self.machine,
            packet,
            &mut self.key,
        );
        ended(flow)
    }

    /// Runs the egress control.
    pub(super) fn run_egress_control(&mut self, packet: &[u8]) -> Result<(), DropCause> {
        if let Some(code) = self.code() {
            return self.run_code(code.egress, packet).map(|_| ());
        }
        let flow = run_control(
            &self.program,
            &self.program.egress,
            &mut self.tables,
            &self.profiles,
            &mut self.machine,
            packet,
            &mut self.key,
        );
        ended(flow)
    }

    /// Runs the parser, then verifies checksums.
    pub(super) fn parse(&mut self, packet: &[u8]) -> Result<(), DropCause> {
        let error = match self.code() {
            Some(code) => self.run_code(code.parser, packet)?.error,
            None => run_parser(&self.program, &mut self.machine, packet, &mut self.key)?,
        };
        if error.is_some() {
            self.machine.statistics.count_event(Event::ParserError);
        }
        let wrong = self.verify_checksums(packet)?;
        if wrong {
            self.machine.statistics.count_event(Event::ChecksumError);
        }
        let intrinsics = &self.program.intrinsics;
        let error = error.unwrap_or(self.program.errors.no_error);
        self.machine.set_optional(intrinsics.parser_error, error);
        self.machine
            .set_optional(intrinsics.checksum_error, u64::from(wrong));
        Ok(())
    }

    fn verify_checksums(&mut self, packet: &[u8]) -> Result<bool, DropCause> {
        if self.program.verified.is_empty() {
            return Ok(false);
        }
        if let Some(verify) = self.code().and_then(|code| code.verify) {
            return self.run_code(verify, packet).map(|ended| ended.wrong);
        }
        let program = &*self.program;
        let mut wrong = false;
        for checksum in &program.verified {
            let valid = self.machine.words[checksum.target_valid as usize] != 0;
            if valid && applies(program, &mut self.machine, packet, checksum)? {
                let expected = self
                    .machine
                    .calculate(program, packet, checksum.calculation);
                wrong |= expected != self.machine.words[checksum.target as usize];
            }
        }
        Ok(wrong)
    }

    /// Updates checksums and writes the frame: valid headers in order, then the payload.
    pub(super) fn deparse(&mut self, packet: &[u8]) {
        match self.code() {
            Some(code) => self.write_headers(code.deparser, packet),
            None => self.interpret_deparser(packet),
        }
        self.frame.extend_from_slice(&packet[self.machine.cursor..]);
        if let Some(bytes) = self.machine.truncate {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            self.frame.truncate(bytes);
        }
    }

    fn interpret_deparser(&mut self, packet: &[u8]) {
        let program = &*self.program;
        let machine = &mut self.machine;
        for checksum in &program.updated {
            if applies(program, machine, packet, checksum).unwrap_or(false) {
                let value = machine.calculate(program, packet, checksum.calculation);
                machine.words[checksum.target as usize] = value & ones(checksum.target_width);
            }
        }
        if let Some(code) = program.deparser_code {
            machine.run(program, packet, code);
        }
        self.frame.clear();
        let mut out = BitWriter::new(&mut self.frame);
        for &header in &program.deparser {
            let header = &program.layout.headers[header as usize];
            let base = header.base as usize;
            if machine.words[base] == 0 {
                continue;
            }
            let kind = &program.layout.types[header.kind as usize];
            codec::deparse(
                &kind.pieces,
                &machine.words,
                base,
                header.varbit,
                packet,
                &mut out,
            );
            out.align();
        }
    }
}

fn ended(flow: Flow) -> Result<(), DropCause> {
    match flow {
        Flow::Done | Flow::Error(_) => Ok(()),
        Flow::Drop(cause) => Err(cause),
    }
}
