//! The same on real interfaces; needs root, and says so when it is skipped.

use std::path::PathBuf;
use std::time::Duration;

use super::lossless_lab::scenario::Scenario;
use super::lossless_lab::{Lab, Outcome, Processes};
use super::namespace::in_namespace;

/// A machine that is busy otherwise keeps a switch from running for longer than any
/// watchdog should wait.
const PATIENT: &str = "--watchdog off";

/// Runs a scenario for some seconds and hands its outcome over.
fn run(
    scenario: Scenario,
    processes: Processes,
    options: &'static str,
    check: impl FnOnce(Outcome) + Send + 'static,
) {
    in_namespace(move || {
        let lab = Lab {
            switch: PathBuf::from(env!("CARGO_BIN_EXE_wormcast-switch")),
            processes,
            rate: "50mbit".to_owned(),
            length: 1_000,
            time: Duration::from_secs(4),
            options: options.split_whitespace().map(str::to_owned).collect(),
        };
        check(lab.run(&scenario));
    });
}

/// All that was sent has arrived in order, and the switches stayed within their buffers.
fn assert_lossless(outcome: &Outcome) {
    assert!(outcome.sent > 0);
    assert_eq!(
        (outcome.received, outcome.wrong),
        (outcome.sent, 0),
        "{outcome}"
    );
    assert_eq!(outcome.drops(), 0, "{outcome}");
    for switch in &outcome.switches {
        let lossless = &switch["lossless"];
        assert!(lossless["held_bytes_max"].as_u64() <= lossless["buffer_bytes"].as_u64());
        assert_eq!(lossless["held_bytes"], 0);
    }
}

fn incast(processes: Processes) {
    run(Scenario::incast(), processes, PATIENT, |outcome| {
        assert_lossless(&outcome);
        assert_eq!(outcome.shares.len(), 7);
        assert!(outcome.pauses("pauses_sent") > 0, "{outcome}");
    });
}

#[test]
fn seven_to_one_through_two_processes_lose_nothing() {
    incast(Processes::Many);
}

#[test]
fn seven_to_one_through_one_process_lose_nothing() {
    incast(Processes::One);
}

#[test]
fn a_ring_of_waiting_is_named() {
    run(
        Scenario::illegal_ring(),
        Processes::One,
        "--watchdog off",
        |outcome| {
            assert!(outcome.received < outcome.sent, "{outcome}");
            assert!(
                outcome
                    .log
                    .contains("deadlock: switch 0 port 1 priority 3 waits for"),
                "{}",
                outcome.log
            );
            assert_eq!(outcome.pauses("headroom_full"), 0);
        },
    );
}

#[test]
fn a_single_switch_names_its_paused_ports() {
    run(
        Scenario::illegal_ring(),
        Processes::Many,
        "--watchdog detect=300ms,action=drop",
        |outcome| {
            assert!(outcome.pauses("storms") > 0, "{outcome}");
            assert!(
                outcome
                    .log
                    .contains("port 1 priority 3: paused by its neighbour for too long"),
                "{}",
                outcome.log
            );
        },
    );
}

#[test]
fn legal_routes_go_through() {
    run(
        Scenario::legal_ring(),
        Processes::Many,
        PATIENT,
        |outcome| assert_lossless(&outcome),
    );
}

#[test]
fn in_transit_ejection_goes_through() {
    run(
        Scenario::in_transit_ring(),
        Processes::One,
        PATIENT,
        |outcome| assert_lossless(&outcome),
    );
}

/// Settings that would lose frames are refused at the start, with their numbers.
#[test]
fn what_would_lose_frames_is_refused() {
    in_namespace(|| {
        super::namespace::add_link("p1", "p2");
        let error = |options: &str| {
            // One that is not refused would run for ever.
            let mut command = std::process::Command::new("timeout");
            command.args(["10", env!("CARGO_BIN_EXE_wormcast-switch")]);
            command.args("--no-p4 -i 1@p1 -i 2@p2 --lossless".split(' '));
            let output = command.args(options.split(' ')).output().unwrap();
            assert!(!output.status.success(), "{options}");
            String::from_utf8(output.stderr).unwrap()
        };
        let text = error("--buffer-bytes 1MiB");
        assert!(
            text.contains("the buffer is too small: 2 ports with 2 lossless priorities"),
            "{text}"
        );
        let text = error("--link-rate 10gbit --response-time 5ms");
        assert!(
            text.contains("give a shorter --response-time (at most 829 us)"),
            "{text}"
        );
        let text = error("--priority-queues 2");
        assert!(
            text.contains("--lossless needs a queue for each priority up to 4"),
            "{text}"
        );
        let text = error("--frame-max 1000");
        assert!(
            text.contains("port 1 (p1): its MTU of 1500 allows frames of 1518 bytes"),
            "{text}"
        );
        let text = error("--link-rate 7:1gbit");
        assert!(
            text.contains("names port 7, which has no interface"),
            "{text}"
        );
        super::namespace::run("ip link set p1 mtu 9000");
        super::namespace::run("ip link set p2 mtu 9000");
        let text = error("--frame-max 9018 --link-rate 2500mbit");
        assert!(
            text.contains("a receive ring has room for at most 14336"),
            "{text}"
        );
    });
}
