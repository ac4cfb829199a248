//! Traces of a running switch: over HTTP, and in the log.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::metrics::{ask, packet_out, serve};
use super::rig::{PATIENCE, Rig, objects};
use wormcast_switch_dataplane::log::{Level, Log, LogFiles};
use wormcast_switch_dataplane::trace::{PacketData, write_messages_to_log, write_to_log};
use wormcast_switch_p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use wormcast_switch_pipeline::trace::{Filter, TRACES_MAX};

async fn inject(rig: &Rig, ports: &'static [u16]) {
    let injected = rig.dataplane.run(move |switch| {
        for &port in ports {
            switch.inject(&packet_out(port));
        }
    });
    injected.await.unwrap();
}

/// Opens a trace and waits until it runs.
async fn open(address: &str, query: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("GET /trace?{query} HTTP/1.0\r\nHost: switch\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    assert!(head.starts_with("HTTP/1.0 200"), "{head}");
    stream
}

async fn rest(mut stream: TcpStream) -> String {
    let mut body = String::new();
    let read = stream.read_to_string(&mut body);
    let read = tokio::time::timeout(PATIENCE, read).await;
    read.expect("the trace does not end").unwrap();
    body
}

/// A trace ends after the packets it was asked for, with all their copies.
#[tokio::test]
async fn packets_are_traced_over_http() {
    let rig = Rig::start().await;
    let _controller = rig.controller().await;
    let address = serve(&rig).await;
    let json = open(&address, "port=510&count=2&format=json").await;
    let text = open(&address, "count=1&match=0:ff80").await;
    inject(&rig, &[9, 511, 9]).await;
    let records: Vec<Value> = rest(json)
        .await
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let seen: Vec<(u64, &str, &str)> = records
        .iter()
        .map(|record| {
            let events = record["events"].as_array().unwrap();
            let last = events.last().unwrap()["event"].as_str().unwrap();
            let stage = record["stage"].as_str().unwrap();
            (record["packet"].as_u64().unwrap(), stage, last)
        })
        .collect();
    let mut sorted = seen.clone();
    sorted.sort_unstable();
    assert_eq!(
        sorted,
        [
            (1, "egress", "transmit"),
            (1, "ingress", "enqueue"),
            (2, "ingress", "drop"),
        ]
    );
    let text = rest(text).await;
    assert!(
        text.ends_with("Dropping packet at the end of ingress\n"),
        "{text}"
    );
    assert_eq!(text.matches("Processing packet").count(), 1);
    let tracing = |switch: &mut wormcast_switch_dataplane::Switch| switch.tracing().running();
    assert_eq!(rig.dataplane.run(tracing).await.unwrap(), 0);
}

/// A trace goes on when the program is replaced, and starts before there is one.
#[tokio::test]
async fn a_trace_survives_a_new_program() {
    let rig = Rig::start().await;
    let address = serve(&rig).await;
    let stream = open(&address, "count=2").await;
    let mut controller = rig.controller().await;
    inject(&rig, &[511]).await;
    let again = controller.set_config(Action::VerifyAndCommit, objects());
    again.await.unwrap();
    inject(&rig, &[511]).await;
    let text = rest(stream).await;
    assert_eq!(text.matches("Processing packet").count(), 2, "{text}");
}

#[tokio::test]
async fn what_cannot_be_traced_is_said() {
    let rig = Rig::start().await;
    let address = serve(&rig).await;
    for (query, status, expected) in [
        ("speed=1", "400", "`speed` is no condition of a filter"),
        ("device=8", "404", "there is no device 8; there are 7"),
    ] {
        let (head, body) = ask(&address, &format!("GET /trace?{query}")).await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{head}");
        assert!(body.starts_with(expected), "{body}");
    }
    let mut open_traces = Vec::new();
    for _ in 0..TRACES_MAX {
        open_traces.push(open(&address, "port=99").await);
    }
    let (head, body) = ask(&address, "GET /trace").await;
    assert!(head.starts_with("HTTP/1.1 503"), "{head}");
    assert_eq!(body, "8 traces run already, which is the most\n");
}

/// At level trace the log has every step; without it no record is made at all.
#[tokio::test]
async fn the_log_has_packets_at_level_trace_only() {
    let directory = tempfile::tempdir().unwrap();
    for (level, logged) in [(Level::Trace, true), (Level::Info, false)] {
        let rig = Rig::start().await;
        let path = directory.path().join(level.to_string());
        let log = Log::to_file(level, LogFiles::new(&path)).unwrap();
        let (filter, sink) = if logged {
            (
                Filter::default(),
                write_to_log(log, PacketData::default()).unwrap(),
            )
        } else {
            (Filter::messages(), write_messages_to_log(log).unwrap())
        };
        let add = rig
            .dataplane
            .run(|switch| switch.tracing().add(filter, sink));
        add.await.unwrap().unwrap();
        let _controller = rig.controller().await;
        inject(&rig, &[511]).await;
        let snapshot = rig.dataplane.run(|switch| switch.snapshot()).await.unwrap();
        assert_eq!(snapshot.trace_records, u64::from(logged));
        if !logged {
            continue;
        }
        let wanted = "[trace] [1.0] Dropping packet at the end of ingress\n";
        let found = async {
            while !std::fs::read_to_string(&path).unwrap().ends_with(wanted) {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, found)
            .await
            .expect("nothing in the log");
    }
}
