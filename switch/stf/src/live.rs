//! Runs one script on a switch that is a process of its own: BMv2's `simple_switch`, or
//! what has its options. Packets and digests go over nanomsg (`--packet-in`,
//! `--notifications-addr`), everything else over Thrift.
//!
//! A statement begins when the switch has worked off the one before.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

pub(super) use super::live_process::Process;

use super::expectations::{Expectations, hex};
use super::failure::Failure;
use super::keys::number_bits;
use super::live_calls::Calls;
use super::live_process::PATIENCE;
use super::names;
use super::runner::Passed;
use super::script::parse;
use super::statement::{Line, Statement};
use wormcast_switch_bmv2::notifications::Notification;
use wormcast_switch_pipeline::LoadedProgram;
use wormcast_switch_program::Bits;

/// Types of the messages that carry packets (`PacketInDevMgrImp` of BMv2).
const PACKET_IN: i32 = 3;
const PACKET_OUT: i32 = 4;

/// Runs a script on a switch that was started with a program.
///
/// What only this switch can say (`check_drops`) is passed over.
///
/// # Errors
/// The first statement that cannot be carried out or does not hold, or the first packet
/// that is not the one expected.
pub(super) fn run_live_script(
    process: Process,
    program: Arc<LoadedProgram>,
    script: &str,
) -> Result<Passed, Failure> {
    let lines = parse(script).map_err(|(line, message)| Failure {
        line: Some(line),
        message,
    })?;
    let mut live = Live {
        calls: Calls::new(Arc::clone(&program)),
        program,
        process,
        expected: Expectations::default(),
        sent: Vec::new(),
        sent_before: 0,
        digests: Vec::new(),
        digests_seen: 0,
        passed: Passed::default(),
    };
    for Line { number, statement } in &lines {
        let executed = live.execute(*number, statement);
        executed.map_err(|message| Failure {
            line: Some(*number),
            message,
        })?;
    }
    live.passed.checks += live.expected.compare(&live.sent)?;
    Ok(live.passed)
}

/// A digest: the number of its list, from 1, and its fields one after another.
type Sample = (i32, Vec<u8>);

struct Live {
    program: Arc<LoadedProgram>,
    process: Process,
    calls: Calls,
    expected: Expectations,
    /// Port and frame, in the order in which they came.
    sent: Vec<(u16, Vec<u8>)>,
    /// Frames there were before the last packet.
    sent_before: usize,
    digests: Vec<Sample>,
    digests_seen: usize,
    passed: Passed,
}

impl Live {
    fn execute(&mut self, line: usize, statement: &Statement) -> Result<(), String> {
        match statement {
            Statement::Packet { port, bytes } => {
                self.sent_before = self.sent.len();
                let mut message = PACKET_IN.to_ne_bytes().to_vec();
                message.extend(i32::from(*port).to_ne_bytes());
                message.extend((bytes.len() as i32).to_ne_bytes());
                message.extend(bytes);
                let sent = self.process.packets.send(&message);
                sent.map_err(|error| format!("the switch takes no packet: {error}"))?;
                self.passed.packets += 1;
                self.process.settle()?;
                self.collect()
            }
            Statement::Expect { port, pattern } => {
                self.expected.add(*port, line, pattern.clone());
                Ok(())
            }
            Statement::NoPacket => {
                self.passed.checks += 1;
                match self.sent.get(self.sent_before) {
                    None => Ok(()),
                    Some((port, frame)) => Err(format!("a packet by port {port}: {}", hex(frame))),
                }
            }
            Statement::Wait { us } => {
                thread::sleep(Duration::from_micros(*us));
                Ok(())
            }
            Statement::ExpectDigest { digest, values } => self.expect_digest(digest, values),
            Statement::CheckDrops { .. } => Ok(()),
            other => {
                self.passed.checks += self.calls.carry_out(&mut self.process.calls, other)?;
                Ok(())
            }
        }
    }

    /// Takes what has come out.
    fn collect(&mut self) -> Result<(), String> {
        let gone = |error: std::io::Error| format!("the switch is gone: {error}");
        while let Some(message) = self.process.packets.receive().map_err(gone)? {
            let number = |at: usize| {
                let bytes = message.get(at..at + 4)?.try_into().ok()?;
                Some(i32::from_ne_bytes(bytes))
            };
            if number(0) == Some(PACKET_OUT)
                && let Some(port) = number(4).and_then(|port| u16::try_from(port).ok())
            {
                self.sent.push((port, message[12..].to_vec()));
            }
        }
        while let Some(message) = self.process.digests.receive().map_err(gone)? {
            if let Some((sample, buffer)) = read_sample(&message) {
                // Until a digest is acknowledged, BMv2 sends none like it.
                let list = sample.0;
                self.digests.push(sample);
                self.calls
                    .acknowledge(&mut self.process.calls, list, buffer)?;
            }
        }
        Ok(())
    }

    fn expect_digest(&mut self, name: &str, values: &[String]) -> Result<(), String> {
        let wanted = names::digest(&self.program, name)?;
        let values = values.iter().map(|value| number_bits(value));
        let values = values.collect::<Result<Vec<Bits>, String>>()?;
        self.passed.checks += 1;
        // BMv2 may keep a digest for a second.
        let start = Instant::now();
        while self.digests.len() <= self.digests_seen && start.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(10));
            self.collect()?;
        }
        let Some((list, found)) = self.digests.get(self.digests_seen) else {
            return Err("no digest has come, or none since the last one".to_owned());
        };
        self.digests_seen += 1;
        // p4c makes a list for each call; those of one struct have one name.
        let list = usize::try_from(*list - 1).unwrap_or(usize::MAX);
        let digests = self.program.digests();
        let name = digests.get(list).map_or("?", |digest| digest.name.as_str());
        let info = &digests[wanted.index()];
        let fields = values.iter().zip(&info.fields_bits);
        let fields = fields.flat_map(|(value, &width)| value.to_padded_bytes(width));
        if name == info.name && *found == fields.collect::<Vec<u8>>() {
            return Ok(());
        }
        Err(format!("digest {name} {} instead", hex(found)))
    }
}

/// List, sample and buffer of a notification of one digest.
fn read_sample(message: &[u8]) -> Option<(Sample, i64)> {
    match Notification::from_bytes(message)? {
        (
            _,
            Notification::Learned {
                list, buffer, data, ..
            },
        ) => Some(((list, data), buffer as i64)),
        _ => None,
    }
}
