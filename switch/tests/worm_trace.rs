//! The packet trace, on the compiled data plane of this repository: what it says of a
//! packet that is forwarded and of one that is dropped, and that it changes nothing.
//!
//! `UPDATE_GOLDEN=1` writes the expected traces anew.

use crate::hexadecimal;
use crate::wire;
use crate::worm_state;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use hexadecimal::hex;
use serde_json::Value;
use wire::{Wire, forward};
use worm_state::{number, packet, pipeline_in_state, read, text};
use wormcast_switch_dataplane::log::Level;
use wormcast_switch_dataplane::trace::{
    PacketData, TraceReader, log_lines, trace_channel, write_record,
};
use wormcast_switch_pipeline::LoadedProgram;
use wormcast_switch_pipeline::trace::{
    Filter, Format, TRACES_MAX, TraceRecord, TracesFull, Tracing,
};
use wormcast_switch_pipeline::{Execution, Pipeline, PortId};

fn program() -> Arc<LoadedProgram> {
    let json = read("p4src/compiled/wormcast.json");
    Arc::new(LoadedProgram::from_json(&json).expect("the program loads"))
}

fn vectors() -> Value {
    serde_json::from_str(&read("wire/vectors/worm_switch.json")).expect("JSON")
}

fn filter(text: &str) -> Filter {
    text.parse().expect("a filter")
}

/// Starts a trace of a pipeline.
fn trace(pipeline: &mut Pipeline, conditions: &str, room: usize) -> TraceReader {
    let (sink, reader) = trace_channel(room);
    let added = pipeline.tracing().add(filter(conditions), sink);
    added.expect("room for a trace");
    reader
}

/// Everything a trace that has ended has to say.
fn written(mut reader: TraceReader, format: Format) -> String {
    let mut all = String::new();
    while let Some((record, lost)) = reader.blocking_read() {
        all.push_str(&write_record(&record, lost, format));
    }
    all
}

fn vector<'v>(vectors: &'v Value, name: &str) -> &'v Value {
    let mut list = vectors["vectors"].as_array().expect("vectors").iter();
    let found = list.find(|vector| text(vector, "name") == name);
    found.unwrap_or_else(|| panic!("no vector {name}"))
}

fn compare(file: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(file);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, found).expect("written");
        return;
    }
    let expected = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let pairs = expected.lines().zip(found.lines()).enumerate();
    for (number, (expected, found)) in pairs {
        assert_eq!(expected, found, "{file}, line {}", number + 1);
    }
    assert_eq!(expected.lines().count(), found.lines().count(), "{file}");
}

fn golden(name: &str, file: &str) {
    let vectors = vectors();
    let vector = vector(&vectors, name);
    for (format, ending) in [(Format::Text, "txt"), (Format::Json, "ndjson")] {
        let state = &vectors["states"][text(vector, "state")];
        let mut pipeline = pipeline_in_state(&program(), state, Execution::Compiled);
        let reader = trace(&mut pipeline, "count=1", 64);
        let (port, packet) = packet(vector);
        let mut wire = Wire::default();
        for now_us in [1000, 2000] {
            // The second one is beyond the count.
            forward(&mut pipeline, &mut wire, port, &packet, now_us, 0);
        }
        let found = written(reader, format);
        if format == Format::Json {
            for line in found.lines() {
                serde_json::from_str::<Value>(line).expect("JSON");
            }
        }
        compare(&format!("{file}.{ending}"), &found);
        assert_eq!(pipeline.tracing().running(), 0);
    }
}

#[test]
fn a_packet_that_is_forwarded() {
    golden("UNICAST: strips the first byte", "trace_unicast");
}

#[test]
fn a_packet_that_is_dropped() {
    golden("UNICAST: empty route", "trace_drop");
}

/// The data of a packet of one switch among several: as many bytes as are asked for, as it
/// comes before its steps and as it goes after them.
#[test]
fn what_a_log_has_of_a_packet() {
    let vectors = vectors();
    let vector = vector(&vectors, "UNICAST: strips the first byte");
    let state = &vectors["states"][text(vector, "state")];
    let mut pipeline = pipeline_in_state(&program(), state, Execution::Compiled);
    pipeline.set_tracing(Tracing::of_switch("s1"));
    let mut reader = trace(&mut pipeline, "all", 64);
    let (port, packet) = packet(vector);
    let mut wire = Wire::default();
    forward(&mut pipeline, &mut wire, port, &packet, 0, 0);
    drop(pipeline);
    let [(out, frame)] = &wire.sent[..] else {
        panic!("{:?}", wire.sent);
    };
    let line = |what: &str, bytes: &[u8], port: u16, data: &[u8]| {
        let (length, data) = (bytes.len(), hex(data));
        let line = format!("{what} of length {length} on port {port} of s1: {data}");
        (Level::Info, line)
    };
    let (ingress, _) = reader.blocking_read().expect("ingress");
    let (egress, _) = reader.blocking_read().expect("egress");
    let data = |bytes, cpu_port| PacketData { bytes, cpu_port };
    let short = [line("Received packet", &packet, port, &packet[..4])];
    assert_eq!(log_lines(&ingress, false, data(4, None)), short);
    let short = [line("Sending packet", frame, out.0, &frame[..4])];
    assert_eq!(
        log_lines(&egress, false, data(4, Some(PortId(port)))),
        short
    );
    let short = [line("Sending packet-in", frame, out.0, &frame[..1])];
    assert_eq!(log_lines(&egress, false, data(1, Some(*out))), short);
    for record in [&ingress, &egress] {
        assert!(log_lines(record, false, data(0, Some(*out))).is_empty());
    }
    let steps = |record: &TraceRecord| {
        let lines = record.lines().into_iter();
        let lines: Vec<(Level, String)> = lines.map(|line| (Level::Trace, line)).collect();
        assert!(!lines.is_empty());
        lines
    };
    let whole = [
        vec![line("Received packet", &packet, port, &packet)],
        steps(&ingress),
    ]
    .concat();
    assert_eq!(log_lines(&ingress, true, data(usize::MAX, None)), whole);
    let whole = [
        steps(&egress),
        vec![line("Sending packet", frame, out.0, frame)],
    ]
    .concat();
    assert_eq!(log_lines(&egress, true, data(usize::MAX, None)), whole);
}

/// Every vector leaves the same frames in the same order and the same counts, traced or not.
#[test]
fn a_trace_changes_nothing() {
    let (program, vectors) = (program(), vectors());
    let states = vectors["states"].as_object().expect("states");
    let mut pipelines: BTreeMap<&str, (Pipeline, Pipeline, TraceReader)> = states
        .iter()
        .map(|(name, state)| {
            let mut traced = pipeline_in_state(&program, state, Execution::Compiled);
            let reader = trace(&mut traced, "all", 4096);
            let plain = pipeline_in_state(&program, state, Execution::Compiled);
            (name.as_str(), (plain, traced, reader))
        })
        .collect();
    let list = vectors["vectors"].as_array().expect("vectors");
    for (index, vector) in list.iter().enumerate() {
        let name = text(vector, "name");
        let state = pipelines.get_mut(text(vector, "state"));
        let (plain, traced, _) = state.expect("a state");
        let (port, packet) = packet(vector);
        let depth = vector["deq_qdepth"].as_u64().unwrap_or(0) as u32;
        let run = |pipeline: &mut Pipeline| {
            let mut wire = Wire::default();
            forward(pipeline, &mut wire, port, &packet, index as u64, depth);
            let frames = wire.sent.iter();
            let frames = frames.map(|(port, frame)| (port.0, hex(frame)));
            frames.collect::<Vec<(u16, String)>>()
        };
        assert_eq!(run(plain), run(traced), "{name}");
        assert_eq!(plain.statistics(), traced.statistics(), "{name}");
        assert!(plain.table_counts().eq(traced.table_counts()), "{name}");
    }
    for (plain, traced, _) in pipelines.values_mut() {
        assert_eq!(plain.tracing().records(), 0);
        assert!(traced.tracing().records() > 0);
    }
}

#[test]
fn one_of_several_and_no_more_than_asked_for() {
    let vectors = vectors();
    let vector = vector(&vectors, "UNICAST: empty route");
    let state = &vectors["states"][text(vector, "state")];
    let mut pipeline = pipeline_in_state(&program(), state, Execution::Compiled);
    let (port, packet) = packet(vector);
    let reader = trace(&mut pipeline, "port=4,every=3,count=2", 64);
    let mut other = trace(&mut pipeline, "port=5", 64);
    let mut wire = Wire::default();
    for now_us in 0..8 {
        forward(&mut pipeline, &mut wire, port, &packet, now_us, 0);
    }
    let json = written(reader, Format::Json);
    let times: Vec<u64> = json
        .lines()
        .map(|line| number(&serde_json::from_str(line).expect("JSON"), "time_us"))
        .collect();
    assert_eq!(times, [0, 3]);
    assert_eq!(pipeline.tracing().running(), 1);
    drop(pipeline);
    assert!(other.blocking_read().is_none());
}

/// Nothing waits for a reader; what it misses is counted, and it is told.
#[test]
fn a_slow_reader_loses_records_and_learns_it() {
    let vectors = vectors();
    let vector = vector(&vectors, "UNICAST: empty route");
    let state = &vectors["states"][text(vector, "state")];
    let mut pipeline = pipeline_in_state(&program(), state, Execution::Compiled);
    let (port, packet) = packet(vector);
    let mut reader = trace(&mut pipeline, "count=7", 2);
    let mut wire = Wire::default();
    let mut send = |pipeline: &mut Pipeline, times| {
        for _ in 0..times {
            forward(pipeline, &mut wire, port, &packet, 0, 0);
        }
    };
    send(&mut pipeline, 6);
    assert_eq!(
        (pipeline.tracing().records(), pipeline.tracing().lost()),
        (6, 4)
    );
    assert_eq!(
        reader
            .blocking_read()
            .map(|(record, lost)| (record.packet, lost)),
        Some((1, 4))
    );
    send(&mut pipeline, 1);
    let rest = written(reader, Format::Text);
    assert!(
        rest.contains("[2.0] Processing packet received on port 4"),
        "{rest}"
    );
    assert!(
        rest.contains("[7.0] Dropping packet at the end of ingress"),
        "{rest}"
    );
}

/// A client that has gone makes room, whether or not packets match.
#[test]
fn traces_are_bounded() {
    let vectors = vectors();
    let mut pipeline =
        pipeline_in_state(&program(), &vectors["states"]["small"], Execution::Compiled);
    let mut readers: Vec<TraceReader> = (0..TRACES_MAX)
        .map(|_| trace(&mut pipeline, "port=99", 1))
        .collect();
    let add = |pipeline: &mut Pipeline| {
        let (sink, reader) = trace_channel(1);
        pipeline
            .tracing()
            .add(Filter::default(), sink)
            .map(|()| reader)
    };
    assert_eq!(add(&mut pipeline).map(|_| ()), Err(TracesFull));
    readers.pop();
    assert!(add(&mut pipeline).is_ok());
}
