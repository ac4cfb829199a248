//! Nothing that comes from outside makes the pipeline panic: any bytes as packets, any JSON
//! as a program.

use crate::json_mutation;
use crate::wire;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use json_mutation::{Mutation, mutate};
use proptest::prelude::*;
use serde_json::Value;
use wire::{Wire, forward};
use wormcast_switch_jit::compiler_of;
use wormcast_switch_pipeline::LoadedProgram;
use wormcast_switch_pipeline::{
    CloneSession, DropCause, Execution, Pipeline, PipelineConfig, PortId, Replica,
};

fn program_paths() -> Vec<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<PathBuf> = std::fs::read_dir(here.join("tests/programs"))
        .expect("the directory of programs")
        .map(|entry| entry.expect("a directory entry").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect();
    paths.push(here.join("../p4src/compiled/wormcast.json"));
    paths.sort();
    paths
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The programs, read and compiled once.
fn programs() -> &'static [Arc<LoadedProgram>] {
    static PROGRAMS: OnceLock<Vec<Arc<LoadedProgram>>> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        let paths = program_paths();
        let read = |path: &PathBuf| {
            LoadedProgram::from_json(&text(path))
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        paths.iter().map(|path| Arc::new(read(path))).collect()
    })
}

fn pipelines() -> Vec<Pipeline> {
    programs()
        .iter()
        .map(|program| {
            let mut pipeline = Pipeline::new(Arc::clone(program), PipelineConfig::default());
            let replicas = [1, 2, 3].map(|port| Replica {
                port: PortId(port),
                instance: 1,
            });
            for group in [1, 2, 7] {
                pipeline
                    .insert_multicast_group(group, &replicas)
                    .expect("a valid group");
            }
            let session = CloneSession {
                replicas: replicas[..2].to_vec(),
                packet_length_bytes: 9,
                ..CloneSession::default()
            };
            for id in [5, 6] {
                pipeline
                    .insert_clone_session(id, &session)
                    .expect("a valid session");
            }
            pipeline
        })
        .collect()
}

/// Every packet ends: sent, dropped for a named cause, or replaced by copies.
fn assert_accounted(pipeline: &Pipeline) {
    let statistics = pipeline.statistics();
    let dropped: u64 = DropCause::ALL
        .iter()
        .map(|cause| statistics.dropped(*cause))
        .sum();
    assert_eq!(
        statistics.received
            + statistics.replicated
            + statistics.cloned_ingress
            + statistics.cloned_egress,
        statistics.transmitted + dropped + groups_used(pipeline),
        "{statistics:?}"
    );
}

/// Packets that multicast has replaced by their copies: copies come in threes.
fn groups_used(pipeline: &Pipeline) -> u64 {
    pipeline.statistics().replicated / 3
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(
        packets in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 0..200), 0u16..512),
            1..20,
        )
    ) {
        for mut pipeline in pipelines() {
            let mut wire = Wire::default();
            for (index, (packet, port)) in packets.iter().enumerate() {
                forward(&mut pipeline, &mut wire, *port, packet, index as u64, 0);
            }
            assert_accounted(&pipeline);
        }
    }

    /// Worm headers with any route: the parser goes deep.
    #[test]
    fn any_routes(
        kind in 0u8..6,
        route in prop::collection::vec(prop_oneof![0u8..9, Just(0xff), any::<u8>()], 0..80),
        claimed in prop::option::of(any::<u8>()),
    ) {
        let mut packet = vec![3, 0x57, 0x4f, 0x52, 0x4d, 0, 2, 0, 0, 0, 0, 1, 0x88, 0xb5];
        let length = claimed.unwrap_or(route.len() as u8);
        packet.extend_from_slice(&[0x10 | kind, 6, length, 0, 0, 5, 0, 1, 0x88, 0xb6, 0, 0]);
        packet.extend_from_slice(&route);
        let mut sum: u32 = packet[14..]
            .chunks(2)
            .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
            .sum();
        while sum >> 16 != 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        packet[24..26].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        for mut pipeline in pipelines() {
            let mut wire = Wire::default();
            forward(&mut pipeline, &mut wire, 1, &packet, 7, 0);
            assert_accounted(&pipeline);
        }
    }
}

/// What a mutation puts in place of a value.
fn junk() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(Value::Bool(true)),
        (-3i64..70_000).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        Just(Value::from(1.5)),
        "[a-z0-9$.]{0,6}".prop_map(Value::from),
        "(-)?0x[0-9a-f]{0,40}".prop_map(Value::from),
        Just(Value::Array(Vec::new())),
        Just(Value::Object(serde_json::Map::new())),
    ]
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        4 => junk().prop_map(Mutation::Replace),
        1 => Just(Mutation::Remove),
        1 => Just(Mutation::Double),
        1 => Just(Mutation::SwapWithNext),
    ]
}

fn load_and_run(json: &str, execution: Execution) {
    let Ok(program) = LoadedProgram::from_json(json) else {
        return;
    };
    let config = PipelineConfig {
        compiler: compiler_of(execution),
        ..PipelineConfig::default()
    };
    let mut pipeline = Pipeline::new(Arc::new(program), config);
    let mut wire = Wire::default();
    for packet in [&[][..], &[0xff; 64], &[0x11; 40], &[1; 200]] {
        forward(&mut pipeline, &mut wire, 3, packet, 1, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_mutation_of_a_program(
        choice in any::<prop::sample::Index>(),
        mutations in prop::collection::vec(
            (prop::collection::vec(any::<u32>(), 1..14), mutation()),
            1..4,
        ),
        // To compile takes longer than all the rest.
        execution in prop_oneof![
            15 => Just(Execution::Interpreted),
            1 => Just(Execution::Compiled),
        ],
    ) {
        let paths = program_paths();
        let mut document: Value =
            serde_json::from_str(&text(&paths[choice.index(paths.len())])).expect("JSON");
        for (choices, mutation) in &mutations {
            mutate(&mut document, choices, mutation);
        }
        load_and_run(&document.to_string(), execution);
    }

    #[test]
    fn any_text(json in "\\PC{0,200}") {
        load_and_run(&json, Execution::Compiled);
    }

    #[test]
    fn any_cut(choice in any::<prop::sample::Index>(), cut in any::<prop::sample::Index>()) {
        let paths = program_paths();
        let whole = text(&paths[choice.index(paths.len())]);
        let end = cut.index(whole.len());
        load_and_run(whole.get(..end).unwrap_or_default(), Execution::Compiled);
    }
}
