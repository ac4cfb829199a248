//! Programs, random entries and random packets.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::worms::{checksum, worm};
use rand_core::RngCore;
use wormcast_switch_pipeline::LoadedProgram;
use wormcast_switch_pipeline::{
    CloneSession, EntryAction, GroupMember, MeterRates, Pipeline, PortId, Replica, TableEntry,
};
use wormcast_switch_program::{ActionCall, Bits, FieldMatch};
use wormcast_switch_program::{KeyField, MatchKind, Program, TableId};

/// Most cells of an array that are looked at.
const CELLS_MAX: usize = 64;

/// A program, and packets it knows.
pub struct Case {
    pub name: String,
    pub program: Arc<LoadedProgram>,
    pub text: String,
    /// Packets it knows.
    pub packets: Vec<Vec<u8>>,
}

/// All programs of the repository and of the directory that `STF_PROGRAMS` names.
pub fn cases() -> Vec<Case> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = vec![
        here.join("../p4src/compiled/wormcast.json"),
        here.join("bench/programs/l2.json"),
    ];
    let mut directories = vec![here.join("tests/programs"), here.join("tests/conformance")];
    directories.extend(std::env::var_os("STF_PROGRAMS").map(PathBuf::from));
    for directory in directories {
        let Ok(entries) = std::fs::read_dir(&directory) else {
            continue;
        };
        let entries = entries.filter_map(|entry| Some(entry.ok()?.path()));
        paths.extend(entries.filter(|path| path.extension().is_some_and(|end| end == "json")));
    }
    paths.sort();
    paths.iter().filter_map(|path| case(path)).collect()
}

fn case(path: &Path) -> Option<Case> {
    let text = std::fs::read_to_string(path).ok()?;
    // Other tools may leave other JSON beside programs.
    let program = LoadedProgram::from_json(&text).ok()?;
    let mut packets = vec![
        worm(0, &[5, 3, 1], 64),
        worm(1, &[1, 2, 0, 0, 4, 0, 6, 2, 1, 0, 0xff], 64),
    ];
    packets.push(worm(2, &[0, 7, 2, 1], 64));
    if let Ok(script) = std::fs::read_to_string(path.with_extension("stf")) {
        packets.extend(script.lines().filter_map(scripted_packet));
    }
    Some(Case {
        name: path.file_stem()?.to_string_lossy().into_owned(),
        program: Arc::new(program),
        text,
        packets,
    })
}

impl Case {
    /// The case with another program, if that is one.
    pub fn with(&self, text: String) -> Option<Case> {
        Some(Case {
            name: format!("a variant of {}", self.name),
            program: Arc::new(LoadedProgram::from_json(&text).ok()?),
            text,
            packets: self.packets.clone(),
        })
    }
}

/// The bytes of a `packet PORT BYTES` line of an STF script.
fn scripted_packet(line: &str) -> Option<Vec<u8>> {
    let line = line.split('#').next()?.trim();
    let (_, digits) = line.strip_prefix("packet")?.trim().split_once(' ')?;
    let digits: Vec<u8> = digits
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    Some(
        digits
            .chunks(2)
            .map(|pair| pair[0] << 4 | pair.get(1).unwrap_or(&0))
            .collect(),
    )
}

/// Puts the checksum of a worm's header and route into it.
fn fix_checksum(frame: &mut [u8]) {
    if frame.len() < 26 {
        return;
    }
    let end = (26 + usize::from(frame[16])).min(frame.len());
    frame[24..26].fill(0);
    let sum = checksum(&frame[14..end]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
}

fn below(generator: &mut impl RngCore, bound: usize) -> usize {
    generator.next_u32() as usize % bound
}

/// Random bytes, or a packet the program knows, as it is or changed in places.
pub fn packet(case: &Case, generator: &mut impl RngCore) -> Vec<u8> {
    let mut packet = if below(generator, 4) == 0 {
        let mut bytes = vec![0; below(generator, 200)];
        generator.fill_bytes(&mut bytes);
        bytes
    } else {
        case.packets[below(generator, case.packets.len())].clone()
    };
    for _ in 0..[0, 0, 1, 1, 2, 8][below(generator, 6)] {
        match below(generator, 5) {
            0 => packet.truncate(below(generator, packet.len() + 1)),
            1 => packet.extend_from_slice(&[below(generator, 256) as u8; 3]),
            _ if packet.is_empty() => {}
            2 => {
                let at = below(generator, packet.len());
                packet[at] = below(generator, 9) as u8;
            }
            _ => {
                let at = below(generator, packet.len());
                packet[at] = generator.next_u32() as u8;
            }
        }
    }
    if below(generator, 2) == 0 {
        fix_checksum(&mut packet);
    }
    packet
}

/// A value of at most `width` bits: often small, so that keys meet packets.
fn value(generator: &mut impl RngCore, width: u32) -> Bits {
    if below(generator, 3) > 0 {
        return Bits::from_u64(below(generator, 9) as u64 & low_ones(width));
    }
    let mut bytes = vec![0; width.div_ceil(8) as usize];
    generator.fill_bytes(&mut bytes);
    if !width.is_multiple_of(8) {
        bytes[0] &= (1 << (width % 8)) - 1;
    }
    Bits::from_bytes(&bytes)
}

fn low_ones(width: u32) -> u64 {
    if width >= 64 {
        u64::MAX
    } else {
        (1 << width) - 1
    }
}

fn field_match(field: &KeyField, generator: &mut impl RngCore) -> FieldMatch {
    let width = field.width_bits;
    let any = below(generator, 4) == 0;
    match field.kind {
        MatchKind::Exact | MatchKind::Valid => FieldMatch::Exact(value(generator, width)),
        _ if any => FieldMatch::Any,
        MatchKind::Optional => FieldMatch::Exact(value(generator, width)),
        MatchKind::Lpm => {
            let prefix_len = below(generator, width as usize + 1) as u32;
            let value = value(generator, width).and(&Bits::prefix_mask(width, prefix_len));
            FieldMatch::Lpm { value, prefix_len }
        }
        MatchKind::Ternary => {
            let mask = value(generator, width);
            FieldMatch::Ternary {
                value: value(generator, width).and(&mask),
                mask,
            }
        }
        MatchKind::Range => {
            let (a, b) = (value(generator, width), value(generator, width));
            let ordered = a.to_padded_bytes(width) <= b.to_padded_bytes(width);
            let (low, high) = if ordered { (a, b) } else { (b, a) };
            FieldMatch::Range { low, high }
        }
    }
}

fn random_call(program: &Program, table: TableId, generator: &mut impl RngCore) -> ActionCall {
    let actions = &program.tables()[table.index()].actions;
    let action = actions[below(generator, actions.len())];
    let parameters = program.actions()[action.index()].parameters.iter();
    ActionCall {
        action,
        arguments: parameters
            .map(|parameter| value(generator, parameter.width_bits))
            .collect(),
    }
}

/// Fills tables, groups, sessions, registers and meters. What does not fit is left out.
pub fn fill(pipeline: &mut Pipeline, generator: &mut impl RngCore) {
    let program = Arc::clone(pipeline.program());
    for info in program.tables() {
        let table = program.table(&info.name).expect("a table");
        if info.actions.is_empty() {
            continue;
        }
        for _ in 0..12 {
            let action = if info.action_profile.is_some() {
                let id = 1 + below(generator, 3) as u32;
                if below(generator, 2) == 0 {
                    EntryAction::Member(id)
                } else {
                    EntryAction::Group(id)
                }
            } else {
                EntryAction::Call(random_call(&program, table, generator))
            };
            if let Some(profile) = info.action_profile {
                for id in 1..4 {
                    let call = random_call(&program, table, generator);
                    let _ = pipeline.insert_member(profile, id, &call);
                    let _ = pipeline.insert_group(profile, id, &[1, 2].map(GroupMember::new), 0);
                }
            }
            let entry = TableEntry {
                key: info
                    .key
                    .iter()
                    .map(|field| field_match(field, generator))
                    .collect(),
                priority: if info.has_priority {
                    1 + below(generator, 9) as i32
                } else {
                    0
                },
                action,
            };
            let _ = pipeline.insert_entry(table, &entry);
        }
        if below(generator, 2) == 0 {
            let call = random_call(&program, table, generator);
            let _ = pipeline.set_default(table, Some(&call));
        }
    }
    let replicas = |ports: &[u16]| -> Vec<Replica> {
        let ports = ports.iter().enumerate();
        ports
            .map(|(number, &port)| Replica {
                port: PortId(port),
                instance: number as u16,
            })
            .collect()
    };
    for group in 1..9 {
        let ports: Vec<u16> = (0..1 + below(generator, 7) as u16).collect();
        let _ = pipeline.insert_multicast_group(group, &replicas(&ports));
    }
    for session in 1..9 {
        let session_value = CloneSession {
            replicas: replicas(&[2, 5]),
            packet_length_bytes: [0, 9, 40][below(generator, 3)],
            ..CloneSession::default()
        };
        let _ = pipeline.insert_clone_session(session, &session_value);
    }
    let rates = MeterRates {
        committed_rate: 1_000,
        committed_burst: 100,
        peak_rate: 10_000,
        peak_burst: 300,
        excess_burst: None,
    };
    for meter in program.meters() {
        let id = program.meter(&meter.name).expect("a meter");
        for cell in 0..meter.size.min(CELLS_MAX) {
            let _ = pipeline.set_meter(id, cell, Some(rates));
        }
    }
}

/// Counters, registers and entries with their counters, as text.
pub fn state(pipeline: &mut Pipeline) -> Vec<String> {
    let program = Arc::clone(pipeline.program());
    let mut seen = Vec::new();
    for counter in program.counters() {
        let id = program.counter(&counter.name).expect("a counter");
        for cell in 0..counter.size.min(CELLS_MAX) {
            let value = pipeline.read_counter(id, cell);
            seen.push(format!("{} {cell}: {value:?}", counter.name));
        }
    }
    for register in program.registers() {
        let id = program.register(&register.name).expect("a register");
        for cell in 0..register.size.min(CELLS_MAX) {
            let value = pipeline.read_register(id, cell);
            seen.push(format!("{} {cell}: {value:?}", register.name));
        }
    }
    for info in program.tables() {
        let table = program.table(&info.name).expect("a table");
        for entry in pipeline.entries(table) {
            let value = pipeline.read_direct_counter(table, &entry.key, entry.priority);
            seen.push(format!("{} {:?}: {value:?}", info.name, entry.key));
        }
    }
    seen
}
