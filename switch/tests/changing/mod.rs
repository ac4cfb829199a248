//! Random changes of inputs, as a fuzzer makes them, but the same ones in every run.

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

use super::fuzzed::draws::Draws;
use super::fuzzed::protobuf;

/// Longest input that is made, bytes.
const BYTES_MAX: usize = 65_536;

/// Bytes that one change of a message is drawn from.
const CHOICES: usize = 64;

/// Values that are often at the edge of something.
const EDGES: [u8; 8] = [0, 1, 0x0f, 0x10, 0x7f, 0x80, 0xfe, 0xff];

pub struct Changes {
    inputs: Vec<Vec<u8>>,
    is_protobuf: bool,
    generator: ChaCha8Rng,
}

impl Changes {
    pub fn new(inputs: Vec<Vec<u8>>, is_protobuf: bool) -> Self {
        Self {
            inputs,
            is_protobuf,
            generator: ChaCha8Rng::seed_from_u64(0x77_6f_72_6d),
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.generator.next_u32() as usize % bound.max(1)
    }

    /// A changed input.
    pub fn next(&mut self) -> Vec<u8> {
        let chosen = self.below(self.inputs.len());
        let mut bytes = self.inputs[chosen].clone();
        if self.is_protobuf && self.below(8) != 0 {
            let mut choices = [0; CHOICES];
            self.generator.fill_bytes(&mut choices);
            // The byte in front of a message that has one.
            let plain = usize::from(bytes.first().is_some_and(|first| *first < 8));
            let changed = protobuf::mutate(&bytes[plain..], &mut Draws::new(&choices));
            bytes.truncate(plain);
            bytes.extend(changed);
        } else {
            for _ in 0..1 + self.below(4) {
                self.change(&mut bytes);
            }
        }
        bytes.truncate(BYTES_MAX);
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>) {
        let length = bytes.len();
        let at = self.below(length);
        match self.below(8) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at.min(length), self.generator.next_u32() as u8),
            2 => {
                let end = (at + 1 + self.below(16)).min(length);
                bytes.drain(at.min(end)..end);
            }
            3 => {
                // A piece of another input in place of the rest.
                let other = self.below(self.inputs.len());
                let from = self.below(self.inputs[other].len());
                bytes.truncate(at);
                bytes.extend_from_slice(&self.inputs[other][from..]);
            }
            4 => {
                let end = (at + 1 + self.below(32)).min(length);
                let piece = bytes[at.min(end)..end].to_vec();
                let to = self.below(length);
                bytes.splice(to..to, piece);
            }
            _ if length == 0 => bytes.push(self.generator.next_u32() as u8),
            5 => bytes[at] ^= 1 << self.below(8),
            6 => bytes[at] = EDGES[self.below(EDGES.len())],
            _ => bytes[at] = self.generator.next_u32() as u8,
        }
    }
}
