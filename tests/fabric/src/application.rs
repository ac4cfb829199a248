//! What runs on a host: it writes messages whose content says what they are, reads
//! and checks those of others, and may run out of disk.

use std::collections::{BTreeMap, VecDeque};
use wormcast_protocol::{Engine, Instant};
use wormcast_wire::{FailReason, GroupId, HostId};

const HEADER_BYTES: usize = 16;
const PATTERN_BYTES: usize = 65_521;

/// Byte `offset` of every message follows from (group, origin, number, size).
fn content(group: u16, origin: u16, number: u32, size: u64, offset: u64, out: &mut [u8]) {
    let mut header = [0; HEADER_BYTES];
    header[..2].copy_from_slice(&group.to_be_bytes());
    header[2..4].copy_from_slice(&origin.to_be_bytes());
    header[4..8].copy_from_slice(&number.to_be_bytes());
    header[8..].copy_from_slice(&size.to_be_bytes());
    let shift = u64::from(number) * 977 + u64::from(origin) * 131 + u64::from(group) * 17;
    for (index, byte) in out.iter_mut().enumerate() {
        let at = offset + index as u64;
        *byte = match header.get(at as usize) {
            Some(byte) => *byte,
            None => {
                let at = ((at + shift) % PATTERN_BYTES as u64) as u32;
                (at.wrapping_mul(2_654_435_761) >> 24) as u8
            }
        };
    }
}

/// A message that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its number at the origin.
    pub number: u32,
    /// Its bytes.
    pub size: u64,
    /// When its end was read, µs.
    pub at_us: u64,
}

/// What a host writes to one group.
#[derive(Debug, Default)]
pub struct Writer {
    /// Sizes of the messages to come, at least 16 bytes each.
    pub sizes: VecDeque<u64>,
    number: u32,
    offset: u64,
    finished: bool,
}

impl Writer {
    /// Writes messages of these sizes, then finishes.
    pub fn new(sizes: impl IntoIterator<Item = u64>) -> Writer {
        Writer {
            sizes: sizes.into_iter().collect(),
            ..Writer::default()
        }
    }

    /// Writes further messages, and finishes again.
    pub fn go_on(&mut self, sizes: &[u64]) {
        self.sizes.extend(sizes);
        self.finished = false;
    }

    /// Goes on as an application whose agent has started anew: the message it was
    /// writing starts again.
    pub fn restart(&mut self) {
        self.offset = 0;
        self.finished = false;
    }

    /// Writes what is accepted.
    pub fn run(&mut self, engine: &mut Engine, group: u16, host: u16, now: Instant) {
        let mut chunk = [0; 16_384];
        while let Some(&size) = self.sizes.front() {
            assert!(
                size >= HEADER_BYTES as u64,
                "a message says what it is in 16 bytes"
            );
            let take = (size - self.offset).min(chunk.len() as u64) as usize;
            content(
                group,
                host,
                self.number,
                size,
                self.offset,
                &mut chunk[..take],
            );
            let last = self.offset + take as u64 == size;
            let Ok(accepted) = engine.write(GroupId(group), &chunk[..take], last, now) else {
                return;
            };
            self.offset += accepted as u64;
            if accepted < take {
                return;
            }
            if last {
                self.sizes.pop_front();
                self.number += 1;
                self.offset = 0;
            }
        }
        if !self.finished {
            self.finished = engine.finish(GroupId(group), now).is_ok();
        }
    }
}

/// How a host reads.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReaderPolicy {
    /// Bytes after which the disk is full, in each message.
    pub disk_bytes: Option<u64>,
    /// Reads nothing before this time, µs.
    pub asleep_until_us: u64,
    /// Bytes read in a millisecond at most.
    pub bytes_per_ms: Option<u64>,
}

/// What a host has read of one origin.
#[derive(Debug, Default)]
pub struct Reader {
    /// Messages read to the end.
    pub messages: Vec<Message>,
    /// Messages that broke off.
    pub lost: u32,
    /// Messages given up for want of disk.
    pub aborted: u32,
    current: Vec<u8>,
    offset: u64,
    read_in_ms: (u64, u64),
}

impl Reader {
    /// The message being read broke off.
    pub fn lose(&mut self) {
        self.lost += 1;
        self.offset = 0;
        self.current.clear();
    }

    /// Reads and checks what there is; gives the time at which to go on, if the
    /// policy holds it back.
    pub fn run(
        &mut self,
        engine: &mut Engine,
        group: u16,
        origin: u16,
        policy: &ReaderPolicy,
        now: Instant,
    ) -> Option<u64> {
        let now_us = now.as_micros();
        if now_us < policy.asleep_until_us {
            return Some(policy.asleep_until_us);
        }
        let mut buf = [0; 16_384];
        loop {
            let mut most = buf.len();
            if let Some(rate) = policy.bytes_per_ms {
                let ms = now_us / 1_000;
                if self.read_in_ms.0 != ms {
                    self.read_in_ms = (ms, 0);
                }
                most = most.min((rate - self.read_in_ms.1.min(rate)) as usize);
                if most == 0 {
                    return Some((ms + 1) * 1_000);
                }
            }
            let Ok(read) = engine.read(GroupId(group), HostId(origin), &mut buf[..most], now)
            else {
                return None;
            };
            self.read_in_ms.1 += read.length as u64;
            self.check(group, origin, &buf[..read.length]);
            if policy.disk_bytes.is_some_and(|disk| self.offset > disk) {
                let reason = FailReason::NoSpace;
                engine
                    .abort(GroupId(group), HostId(origin), reason, now)
                    .expect("being read");
                self.aborted += 1;
                self.offset = 0;
                self.current.clear();
                continue;
            }
            if read.end_of_message {
                self.finish(now_us);
                engine
                    .confirm(GroupId(group), HostId(origin), now)
                    .expect("its end was read");
            } else if read.length == 0 {
                return None;
            }
        }
    }

    fn header(&self) -> (u16, u16, u32, u64) {
        let at = |from: usize, to: usize| &self.current[from..to];
        (
            u16::from_be_bytes(at(0, 2).try_into().expect("two bytes")),
            u16::from_be_bytes(at(2, 4).try_into().expect("two bytes")),
            u32::from_be_bytes(at(4, 8).try_into().expect("four bytes")),
            u64::from_be_bytes(at(8, 16).try_into().expect("eight bytes")),
        )
    }

    fn check(&mut self, group: u16, origin: u16, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let missing = HEADER_BYTES
            .saturating_sub(self.current.len())
            .min(bytes.len());
        self.current.extend_from_slice(&bytes[..missing]);
        if self.current.len() == HEADER_BYTES {
            let (named_group, named_origin, number, size) = self.header();
            assert_eq!(
                (named_group, named_origin),
                (group, origin),
                "a message gone astray"
            );
            let mut expected = vec![0; bytes.len()];
            content(group, origin, number, size, self.offset, &mut expected);
            assert!(
                bytes == expected,
                "message {number} of host {origin} differs near byte {}",
                self.offset
            );
        }
        self.offset += bytes.len() as u64;
    }

    fn finish(&mut self, at_us: u64) {
        assert!(
            self.current.len() == HEADER_BYTES,
            "a message without its header"
        );
        let (.., number, size) = self.header();
        assert_eq!(self.offset, size, "message {number} has another length");
        if let Some(before) = self.messages.last() {
            assert!(
                number > before.number,
                "message {number} after {}",
                before.number
            );
        }
        self.messages.push(Message {
            number,
            size,
            at_us,
        });
        self.current.clear();
        self.offset = 0;
    }
}

/// Everything that runs on a host.
#[derive(Debug, Default)]
pub struct Applications {
    /// By group.
    pub writers: BTreeMap<u16, Writer>,
    /// By group and origin.
    pub readers: BTreeMap<(u16, u16), Reader>,
    /// How this host reads.
    pub policy: ReaderPolicy,
}

impl Reader {
    /// The agent started anew: what was being read is gone.
    pub fn restart(&mut self) {
        self.offset = 0;
        self.current.clear();
    }
}
