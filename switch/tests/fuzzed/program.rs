//! BMv2 JSON. Whatever is taken for a program runs, and the same compiled and interpreted;
//! whatever is not has an error that says so.
//!
//! Input: the number of a program of the repository (or [`RAW`], and then the JSON itself),
//! packets drawn by one byte, then changes of its values.

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::draws::Draws;
use super::json_mutation::{Mutation, mutate};
use super::modes::{MODES, Mode};
use super::programs::{self, Case};
use wormcast_switch_pipeline::LoadedProgram;

/// In place of the number of a program: the rest is JSON.
const RAW: u8 = 0xff;

/// Changes of one input that are made.
const MUTATIONS_MAX: usize = 8;

/// Copies of a packet that are run: changed programs copy copies without end.
const COPIES_MAX: usize = 64;

/// Entries and packets of a run are drawn from so many bytes.
const STATE_BYTES: usize = 48;

struct Base {
    case: Case,
    document: Value,
}

fn bases() -> &'static [Base] {
    static BASES: OnceLock<Vec<Base>> = OnceLock::new();
    BASES.get_or_init(|| {
        let base = |case: Case| Base {
            document: serde_json::from_str(&case.text).expect("JSON"),
            case,
        };
        programs::cases().into_iter().map(base).collect()
    })
}

pub fn run(data: &[u8]) {
    let mut draws = Draws::new(data);
    let number = draws.byte();
    let base = &bases()[usize::from(number) % bases().len()];
    let state = draws.take(STATE_BYTES);
    let text = match number {
        RAW => String::from_utf8_lossy(draws.rest()).into_owned(),
        _ => changed(&base.document, &mut draws),
    };
    let program = match LoadedProgram::from_json(&text) {
        Ok(program) => Arc::new(program),
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert_eq!(program.text(), text);
    let mut choices = Draws::new(state);
    let packets: Vec<(u16, Vec<u8>)> = (0..3)
        .map(|_| {
            let port = choices.below(9) as u16;
            (port, programs::packet(&base.case, &mut choices))
        })
        .collect();
    let run = |mode: Mode| {
        let mode = Mode {
            copies_max: Some(COPIES_MAX),
            ..mode
        };
        mode.run(&program, &mut Draws::new(state), &packets)
    };
    // Copies that are thrown away may be others when packets take the short way.
    for passes in [false, true] {
        let mut runs = MODES
            .iter()
            .filter(|mode| mode.passes == passes)
            .map(|mode| run(*mode));
        let (expected, seen) = (runs.next().expect("a mode"), runs.next().expect("another"));
        super::assert_same(&expected.seen, &seen.seen, "compiled and interpreted");
    }
}

fn changed(document: &Value, draws: &mut Draws<'_>) -> String {
    let mut document = document.clone();
    for _ in 0..MUTATIONS_MAX {
        if draws.is_empty() {
            break;
        }
        let kind = draws.byte();
        let depth = 1 + usize::from(kind >> 4) % 14;
        let choices: Vec<u32> = (0..depth).map(|_| u32::from(draws.half())).collect();
        let mutation = match kind & 15 {
            0 => Mutation::Remove,
            1 => Mutation::Double,
            2 => Mutation::SwapWithNext,
            _ => Mutation::Replace(junk(draws)),
        };
        mutate(&mut document, &choices, &mutation);
    }
    document.to_string()
}

/// What a change puts in place of a value.
fn junk(draws: &mut Draws<'_>) -> Value {
    match draws.below(12) {
        0 => Value::Null,
        1 => Value::Bool(draws.one_in(2)),
        2..=4 => Value::from(i64::from(draws.byte()) - 3),
        5 => Value::from(draws.half()),
        6 => Value::from([i64::MIN, i64::MAX, 1 << 31, -1, 1 << 32][draws.below(5)]),
        7 => Value::from(1.5),
        8 => Value::Array(Vec::new()),
        9 => Value::Object(serde_json::Map::new()),
        10 => {
            let digits: String = draws
                .block(40)
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            Value::from(format!("0x{digits}"))
        }
        _ => Value::from(String::from_utf8_lossy(draws.block(12)).into_owned()),
    }
}

pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = (0..bases().len() as u8)
        .map(|number| vec![number])
        .collect();
    let mut smallest: Vec<String> = bases()
        .iter()
        .map(|base| base.document.to_string())
        .collect();
    smallest.sort_by_key(String::len);
    for text in &smallest[..3] {
        let mut seed = vec![RAW];
        seed.extend([0; STATE_BYTES]);
        seed.extend(text.bytes());
        seeds.push(seed);
    }
    seeds
}
