//! What an agent costs: processor time by frame at link rate, and latency when idle.
//!
//! `cargo test --release --package wormcast-agent --test all measure:: -- --ignored --nocapture`

use crate::support;

use std::time::{Duration, Instant};
use support::{Fabric, group, network, pattern};
use wormcast_agent::client::{Client, Incoming};
use wormcast_agent_core::api::Notice;

const LIMIT: Option<Duration> = Some(Duration::from_secs(600));
const SCHEMES: [&str; 5] = ["repeat", "circuit", "tree", "k-binomial", "switch"];

fn take_messages(client: &mut Client, count: usize) {
    let mut taken = 0;
    while taken < count {
        if let Incoming::Notice(Notice::MessageEnd { handle, .. }) =
            client.receive(LIMIT).unwrap().expect("in time")
        {
            client.confirm(handle).unwrap();
            taken += 1;
        }
    }
}

fn cpu_us(fabric: &Fabric) -> Vec<u64> {
    fabric
        .agents
        .iter()
        .map(support::agent::TestAgent::cpu_us)
        .collect()
}

#[test]
#[ignore = "a measurement, to be run by hand on a quiet machine"]
fn processor_time_by_frame_at_link_rate() {
    let hosts = 4_u16;
    let members: Vec<u32> = (0..hosts.into()).collect();
    let groups: Vec<_> = SCHEMES
        .iter()
        .zip(1..)
        .map(|(scheme, id)| group(id, scheme, &members))
        .collect();
    let options = std::env::var("AGENT_OPTIONS").unwrap_or_default();
    let options: Vec<&str> = options.split_whitespace().collect();
    let Some(fabric) = Fabric::start(hosts, &groups, &options) else {
        return;
    };
    let rate = std::env::var("RATE").unwrap_or_else(|_| "100mbit".to_owned());
    if rate != "none" {
        for host in 0..hosts {
            network::shape(&format!("h{host}"), &rate);
            network::shape(&format!("s{host}"), &rate);
        }
    }
    let content = pattern(16 << 20, 1);
    println!(
        "scheme      Mb/s   agents' CPU each (% of one core)   µs a frame   turns/s  retransmissions"
    );
    for (number, scheme) in (1_u16..).zip(SCHEMES) {
        let receivers: Vec<_> = (1..hosts)
            .map(|host| {
                let mut client = fabric.client(host);
                client.open_receiver(number, None).unwrap();
                std::thread::spawn(move || take_messages(&mut client, 1))
            })
            .collect();
        let frames =
            |name: &str| -> u64 { fabric.agents.iter().map(|agent| agent.counter(name)).sum() };
        let moved = || frames("link.received_frames") + frames("link.sent_frames");
        let (moved_before, turns_before, cpu_before) =
            (moved(), frames("loop.turns"), cpu_us(&fabric));
        let start = Instant::now();
        let mut client = fabric.client(0);
        let sender = client.open_sender(number).unwrap();
        client.write(sender.handle, &content).unwrap();
        let message = client.end_message(sender.handle).unwrap();
        let stable = client.wait_stable(sender.handle, message, LIMIT).unwrap();
        let seconds = start.elapsed().as_secs_f64();
        assert_eq!(stable.failed, 0);
        let cpu: Vec<u64> = cpu_us(&fabric)
            .iter()
            .zip(cpu_before)
            .map(|(now, then)| now - then)
            .collect();
        let shares: Vec<String> = cpu
            .iter()
            .map(|us| format!("{:.1}", *us as f64 / seconds / 1e4))
            .collect();
        let status = fabric.agents[0].status();
        let streams = status["groups"][usize::from(number) - 1]["streams"].clone();
        println!(
            "{scheme:<11} {:5.1}  {:<36} {:6.2}  {:9.0}  {}",
            content.len() as f64 * 8.0 / seconds / 1e6,
            shares.join(" "),
            cpu.iter().sum::<u64>() as f64 / (moved() - moved_before) as f64,
            (frames("loop.turns") - turns_before) as f64 / seconds / f64::from(hosts),
            streams[0]["retransmissions"],
        );
        for receiver in receivers {
            receiver.join().unwrap();
        }
    }
}

#[test]
#[ignore = "a measurement, to be run by hand on a quiet machine"]
fn latency_of_small_messages() {
    let Some(fabric) = Fabric::start(2, &[group(1, "repeat", &[0, 1])], &[]) else {
        return;
    };
    let mut receiver = fabric.client(1);
    receiver.open_receiver(1_u16, None).unwrap();
    let count = 500;
    let thread = std::thread::spawn(move || take_messages(&mut receiver, count));
    let mut client = fabric.client(0);
    let sender = client.open_sender(1_u16).unwrap();
    let mut times: Vec<u128> = (0..count)
        .map(|_| {
            let start = Instant::now();
            client.write(sender.handle, &[7; 100]).unwrap();
            let message = client.end_message(sender.handle).unwrap();
            assert_eq!(
                client
                    .wait_stable(sender.handle, message, LIMIT)
                    .unwrap()
                    .failed,
                0
            );
            start.elapsed().as_micros()
        })
        .collect();
    thread.join().unwrap();
    times.sort_unstable();
    let at = |share: usize| times[times.len() * share / 100];
    println!(
        "100 bytes, sent to confirmed: median {} µs, 90 % {} µs, 99 % {} µs",
        at(50),
        at(90),
        at(99)
    );
    let before = (cpu_us(&fabric), Instant::now());
    std::thread::sleep(Duration::from_secs(3));
    let idle: u64 = cpu_us(&fabric)
        .iter()
        .zip(&before.0)
        .map(|(now, then)| now - then)
        .sum();
    println!(
        "idle: {:.2} % of a core each",
        idle as f64 / before.1.elapsed().as_micros() as f64 * 50.0
    );
}
