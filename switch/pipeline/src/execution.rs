//! The steps of a packet's way, by compiled code or by the interpreter.

use super::Pipeline;
use super::codec::{self, BitWriter};
use super::event::{TraceEvent, Verification};
use super::machine::Flow;
use super::stages::{applies, run_control, run_parser};
use super::statistics::{DropCause, Event};
use crate::abi::Entries;
use wormcast_switch_program::{Control, Program, ones};

impl Pipeline {
    /// The code that runs the packet in the machine; none: the interpreter does.
    #[inline]
    fn code(&self) -> Option<Entries> {
        match self.machine.recorder {
            None => self.entries,
            Some(_) => None,
        }
    }

    pub(super) fn run_ingress_control(&mut self, packet: &[u8]) -> Result<(), DropCause> {
        match self.code() {
            Some(code) => self.run_code(code.ingress, packet).map(|_| ()),
            None => self.interpret(|program| &program.ingress, packet),
        }
    }

    pub(super) fn run_egress_control(&mut self, packet: &[u8]) -> Result<(), DropCause> {
        match self.code() {
            Some(code) => self.run_code(code.egress, packet).map(|_| ()),
            None => self.interpret(|program| &program.egress, packet),
        }
    }

    fn interpret(
        &mut self,
        control: impl Fn(&Program) -> &Control,
        packet: &[u8],
    ) -> Result<(), DropCause> {
        let flow = run_control(
            &self.program,
            control(&self.program),
            &mut self.tables,
            &self.profiles,
            &mut self.machine,
            packet,
            &mut self.key,
        );
        match flow {
            Flow::Done | Flow::Error(_) => Ok(()),
            Flow::Drop(cause) => Err(cause),
        }
    }

    /// Runs the parser, then verifies checksums.
    pub(super) fn parse(&mut self, packet: &[u8]) -> Result<(), DropCause> {
        self.machine.record(|| TraceEvent::ParserStarted);
        let error = match self.code() {
            Some(code) => self.run_code(code.parser, packet)?.error,
            None => run_parser(&self.program, &mut self.machine, packet, &mut self.key)?,
        };
        let bytes = self.machine.cursor;
        self.machine
            .record(|| TraceEvent::ParserEnded { error, bytes });
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
        for (number, checksum) in (0..).zip(&program.verified) {
            let valid = self.machine.words[checksum.target_valid as usize] != 0;
            let verification = if !valid {
                Verification::TargetInvalid
            } else if applies(program, &mut self.machine, packet, checksum)? {
                let computed = self
                    .machine
                    .calculate(program, packet, checksum.calculation);
                let found = self.machine.words[checksum.target as usize];
                wrong |= computed != found;
                Verification::Computed { computed, found }
            } else {
                Verification::ConditionFalse
            };
            self.machine.record(|| TraceEvent::Verified {
                checksum: number,
                verification,
            });
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
        let cut = usize::try_from(self.machine.cut).unwrap_or(usize::MAX);
        self.frame.truncate(cut);
    }

    /// Cuts the frame as the program wants it sent.
    pub(super) fn truncate_frame(&mut self) {
        if let Some(bytes) = self.machine.truncate {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            self.frame.truncate(bytes);
        }
    }

    fn interpret_deparser(&mut self, packet: &[u8]) {
        let program = &*self.program;
        let machine = &mut self.machine;
        for (number, checksum) in (0..).zip(&program.updated) {
            let applied = applies(program, machine, packet, checksum).unwrap_or(false);
            if applied {
                let value = machine.calculate(program, packet, checksum.calculation);
                machine.words[checksum.target as usize] = value & ones(checksum.target_width);
            }
            let value = applied.then(|| machine.words[checksum.target as usize]);
            machine.record(|| TraceEvent::Updated {
                checksum: number,
                value,
            });
        }
        if let Some(code) = program.deparser_code {
            machine.run(program, packet, code);
        }
        self.frame.clear();
        let mut out = BitWriter::new(&mut self.frame);
        for &number in &program.deparser {
            let header = &program.layout.headers[number as usize];
            let base = header.base as usize;
            if machine.words[base] == 0 {
                continue;
            }
            machine.record(|| TraceEvent::Deparsed { header: number });
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
