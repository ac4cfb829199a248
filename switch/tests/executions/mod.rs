//! Every way a packet can take through the pipeline gives the same: queued between ingress
//! and egress or passed through in one go, compiled or interpreted.
//!
//! All programs of the repository, and those of `STF_PROGRAMS`, run on random and on mutated
//! valid packets, with random table entries.

mod modes;
mod programs;
mod variants;

use crate::wire;
use crate::worms;

use modes::{MODES, Mode};
use programs::{Case, cases};
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

fn compare(case: &Case, seed: u64, packets_max: usize) {
    let mut generator = ChaCha8Rng::seed_from_u64(seed ^ 0x5eed);
    let packets: Vec<(u16, Vec<u8>)> = (0..packets_max)
        .map(|_| {
            let port = (generator.next_u32() % 9) as u16;
            (port, programs::packet(case, &mut generator))
        })
        .collect();
    let run = |mode: Mode| {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        let run = mode.run(&case.program, &mut generator, &packets);
        assert_eq!(run.cut_off, 0, "all copies run");
        run.seen
    };
    let expected = run(MODES[0]);
    for mode in &MODES[1..] {
        let seen = run(*mode);
        for (expected, seen) in expected.iter().zip(&seen) {
            assert_eq!(expected, seen, "{}, {mode:?}, seed {seed}", case.name);
        }
    }
}

#[test]
fn all_ways_are_equal() {
    let cases = cases();
    assert!(cases.len() > 8, "the programs of the repository");
    for case in &cases {
        for seed in 0..24 {
            compare(case, seed, 40);
        }
    }
}

#[test]
fn all_ways_are_equal_for_other_expressions() {
    let mut ran = 0;
    // With other conditions, copies of copies could grow without end.
    let copies = |case: &&Case| case.text.contains("clone_") || case.text.contains("recirculate");
    let cases = cases();
    // Hundreds of programs need fewer variants each.
    let seeds = if cases.len() > 40 { 4 } else { 24 };
    for case in cases.iter().filter(|case| !copies(case)) {
        for seed in 0..seeds {
            let mut generator = ChaCha8Rng::seed_from_u64(seed);
            let text = variants::variant(&case.text, &mut generator);
            if let Some(case) = case.with(text) {
                compare(&case, seed, 40);
                ran += 1;
            }
        }
    }
    assert!(ran > 20, "{ran} variants are programs");
}
