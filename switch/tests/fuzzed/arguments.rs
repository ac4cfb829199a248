//! Texts of the command line and of small files: trace filters, addresses, impairments,
//! classes, options of queues, translations. What can be written again means the same then,
//! and buffers are planned for whatever is taken.
//!
//! Input: which of them, then the text.

use std::fmt::Display;
use std::str::FromStr;

use super::draws::Draws;
use wormcast_switch::lossless_arguments::LosslessArguments;
use wormcast_switch_flow::{BitRate, Duration, Probability};
use wormcast_switch_flow::{ClassMap, QueueSettings, SchedulerKind};
use wormcast_switch_listen::Address;
use wormcast_switch_p4runtime::TranslationTables;
use wormcast_switch_pipeline::trace::Filter;
use wormcast_switch_ports::{ImpairmentTable, ReceiveMode};

/// Ports that impairments are asked for.
const PORTS: [u16; 4] = [0, 1, 2, 511];

fn reads<T: FromStr>(text: &str)
where
    T::Err: Display,
{
    if let Err(error) = text.parse::<T>() {
        assert!(!error.to_string().is_empty());
    }
}

/// What is read is the same when it has been written and read again.
fn written_again<T: FromStr + Display + PartialEq + std::fmt::Debug>(text: &str)
where
    T::Err: Display + std::fmt::Debug,
{
    let Ok(value) = text.parse::<T>() else {
        return reads::<T>(text);
    };
    let written = value.to_string();
    assert_eq!(written.parse::<T>().expect("what was written"), value);
}

/// Whatever is said of queues, there is a plan for their buffers or a reason why not.
pub fn plan(queueing: &QueueSettings, ports: &[u16]) {
    let Some(lossless) = &queueing.lossless else {
        return;
    };
    match lossless.plan(ports) {
        Ok(plan) => {
            assert!(plan.lossless_bytes + plan.lossy_bytes <= plan.buffer_bytes);
            for port in plan.ports.values() {
                assert!(port.thresholds.xon < port.thresholds.xoff);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

pub fn run(data: &[u8]) {
    let mut draws = Draws::new(data);
    let kind = draws.byte() % 10;
    let text = String::from_utf8_lossy(draws.rest());
    match kind {
        0 => written_again::<Filter>(&text),
        1 => written_again::<Address>(&text),
        2 => written_again::<ReceiveMode>(&text),
        3 => {
            reads::<Probability>(&text);
            reads::<Duration>(&text);
            reads::<BitRate>(&text);
        }
        4 => {
            let mut table = ImpairmentTable::default();
            for line in text.lines() {
                if let Err(error) = table.add(line) {
                    assert!(!error.to_string().is_empty());
                }
            }
            let _ = PORTS.map(|port| table.settings(port).leaves_frames_alone());
            assert!(table.named_ports().all(|port| port <= 511));
        }
        5 => reads::<ClassMap>(&text),
        6 => reads::<SchedulerKind>(&text),
        7 | 8 => {
            let options: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            match LosslessArguments::read(&options) {
                Ok(queueing) => plan(&queueing, &PORTS),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
        _ => {
            if let Err(error) = TranslationTables::from_json(&text) {
                assert!(!error.to_string().is_empty());
            }
        }
    }
}

pub fn seeds() -> Vec<Vec<u8>> {
    let texts: [(u8, &str); 18] = [
        (
            0,
            "port=1,ethertype=0x0800,match=0:0a0b/ff0f,every=2,count=5",
        ),
        (0, "all"),
        (1, "[::]:9559"),
        (1, "unix://tmp/socket"),
        (2, "v3"),
        (3, "50%"),
        (3, "1.5ms"),
        (3, "2.5gbit"),
        (
            4,
            "1:loss=0.01,delay=2ms,rate=100mbit\nall:corrupt=1%,reorder=0.1,duplicate=1",
        ),
        (5, "worm1=3,worm2=4,pcp0=1"),
        (6, "weighted:3=4,4=2"),
        (
            7,
            "--lossless=3,4 --link-rate=10gbit --link-rate=2:1gbit --link-delay=5us",
        ),
        (
            7,
            "--lossless --response-time=1ms --watchdog=detect=200ms,action=drop,recover=1s",
        ),
        (
            7,
            "--lossless --pause-quanta=100 --buffer-bytes=100MiB --scheduler=weighted:3=4,4=2",
        ),
        (
            7,
            "--lossless --lossless-map=pcp0=3 --pause-frames=pause --frame-max=9000",
        ),
        (
            7,
            "--lossless --pfc-thresholds=xoff=9000,xon=100,headroom=1MiB --ecn-threshold=7",
        ),
        (9, r#"{"port_t": {"Ethernet0": 1, "0x7": 2}}"#),
        (5, "dscp24-31=3,other=0"),
    ];
    let seed = |(kind, text): (u8, &str)| [&[kind][..], text.as_bytes()].concat();
    texts.into_iter().map(seed).collect()
}
