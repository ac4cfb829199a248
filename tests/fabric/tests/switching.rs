//! Agents as they ship, over switches in wormhole mode: every scheme delivers, whatever the mode does meanwhile, and
//! whoever says STOP.

use wormcast_agent_core::wormhole::flow_control::OVERDUE_FRAMES_MAX;
use wormcast_fabric_tests::controller::{self, SWITCH, TREE, schemes};
use wormcast_fabric_tests::link::Damage;
use wormcast_fabric_tests::random::Random;
use wormcast_fabric_tests::scenario::{GROUP, Scenario, engine_config, link};
use wormcast_planner::{Switching, WormholeScheme};
use wormcast_wire::HostId;
use wormcast_wire::worm::{Header, Kind, flags};
use wormcast_wire::wormhole::signal::{NEXT_CONTROL, Signal, encode_signal};

const SECOND_US: u64 = 1_000_000;
const PLAIN: Switching = Switching::Wormhole(WormholeScheme::Plain);
const FLUSH: Switching = Switching::Wormhole(WormholeScheme::Flush);
const INTERRUPT: Switching = Switching::Wormhole(WormholeScheme::Interrupt);
/// Of `train_event_t`.
const HELD: usize = 0;

fn held(scenario: &Scenario) -> u64 {
    let switches = scenario.fabric.switches.values();
    switches.map(|switch| switch.counter("trains", HELD)).sum()
}

/// A counter of an agent.
fn counted(scenario: &Scenario, host: u16, name: &str) -> u64 {
    let mut figures = wormcast_agent_core::figures::Figures::default();
    let agent = scenario.fabric.hosts[&host]
        .agent
        .as_ref()
        .expect("it runs");
    let now = wormcast_protocol::Instant::from_micros(u64::MAX / 2);
    agent.fill(&mut figures, false, now);
    let found = figures.figures.iter().find(|figure| figure.name == name);
    found.unwrap_or_else(|| panic!("no counter {name}")).value
}

/// Whether TREE worms were sent.
fn branches(scenario: &Scenario) -> bool {
    scenario.fabric.data_kinds(3).contains(&Kind::Tree)
}

fn set(scenario: &mut Scenario, switching: Switching) {
    scenario.controller.switching = switching;
    scenario.replan();
}

fn check_none_failed(scenario: &Scenario, origin: u16) {
    for (message, failed) in scenario.outcomes(origin) {
        assert_eq!(failed, [], "message {message}\n{}", scenario.report());
    }
}

#[test]
fn every_scheme_delivers_in_wormhole_mode() {
    for switching in [PLAIN, FLUSH, INTERRUPT] {
        for scheme in schemes() {
            let mut scenario = Scenario::new("testbed", scheme, Damage::default(), 1);
            set(&mut scenario, switching);
            scenario.fabric.count_copies();
            scenario.write(3, &[1_000_000, 16, 1_443, 1_444, 1_445, 50_000]);
            scenario.finish(3, 60 * SECOND_US);
            scenario.check_delivered(3, 6, &[]);
            check_none_failed(&scenario, 3);
            // A worm of one frame that goes one way finds its output free; one that branches claims them one by one.
            assert_eq!(held(&scenario) > 0, branches(&scenario), "{scheme:?}");
        }
    }
}

#[test]
fn in_packet_mode_no_frame_waits() {
    let mut scenario = Scenario::new("testbed", SWITCH, Damage::default(), 1);
    scenario.write(3, &[1_000_000]);
    scenario.finish(3, 60 * SECOND_US);
    assert_eq!(held(&scenario), 0);
}

#[test]
fn losses_are_repaired_in_wormhole_mode() {
    for switching in [PLAIN, FLUSH, INTERRUPT] {
        for scheme in [TREE, SWITCH] {
            for seed in [1, 2] {
                let mut scenario = Scenario::new("torus:3", scheme, Damage::rough(), seed);
                set(&mut scenario, switching);
                scenario.write(0, &[500_000, 1_000]);
                scenario.finish(0, 60 * SECOND_US);
                scenario.check_delivered(0, 2, &[]);
                check_none_failed(&scenario, 0);
            }
        }
    }
}

/// Two multicasts to the same members meet at several switches.
#[test]
fn two_origins_send_to_one_group_at_a_time() {
    for switching in [PLAIN, FLUSH, INTERRUPT] {
        for scheme in [TREE, SWITCH] {
            let mut scenario = Scenario::new("torus:3", scheme, Damage::default(), 5);
            set(&mut scenario, switching);
            for origin in [0, 4] {
                scenario.write(origin, &[2_000_000]);
            }
            for origin in [0, 4] {
                scenario.finish(origin, 60 * SECOND_US);
                scenario.check_delivered(origin, 1, &[]);
                check_none_failed(&scenario, origin);
            }
        }
    }
}

/// Switches change one after another, so worms meet both modes.
#[test]
fn the_mode_changes_in_the_middle_of_a_message() {
    for scheme in [TREE, SWITCH] {
        for seed in [1, 2, 3] {
            let mut random = Random::new(seed);
            let mut scenario = Scenario::new("torus:3", scheme, Damage::default(), seed);
            scenario.write(0, &[20_000_000]);
            for switching in [
                PLAIN,
                Switching::Packet,
                FLUSH,
                INTERRUPT,
                PLAIN,
                INTERRUPT,
                Switching::Packet,
            ] {
                scenario.controller.switching = switching;
                let us = scenario.replan_in_stages(&mut random, 20_000);
                scenario.run_for(us + random.below(50_000));
                assert!(!scenario.is_finished(0), "the message is too short");
            }
            scenario.finish(0, 60 * SECOND_US);
            scenario.check_delivered(0, 1, &[]);
            check_none_failed(&scenario, 0);
            assert_eq!(held(&scenario) > 0, scheme == SWITCH);
        }
    }
}

/// Switches that say STOP as soon as one frame waits. (With two origins their multicasts then wait for each other for ever.)
#[test]
fn agents_obey_stop_of_their_switches() {
    let mut scenario = Scenario::new("torus:3", SWITCH, Damage::default(), 1);
    let ports = scenario.fabric.topology.switches()[0].ports;
    for switch in scenario.fabric.switches.values_mut() {
        let mode = [
            ("scheme", 1),
            ("stop_frames", 1),
            ("go_frames", 0),
            ("held_max", 128),
            ("gap_us", 0),
            ("stop_us", 10_000),
            ("idle_us", 2_000),
            ("silent_us", 1_000_000),
        ];
        switch.set_wormhole(ports, &mode);
    }
    scenario.write(0, &[300_000]);
    scenario.finish(0, 120 * SECOND_US);
    scenario.check_delivered(0, 1, &[]);
    check_none_failed(&scenario, 0);
    assert!(counted(&scenario, 0, "flow.stops") > 0);
    assert!(counted(&scenario, 0, "flow.stopped_us") > 0);
    assert_eq!(counted(&scenario, 0, "drops.signal_refused"), 0);
}

fn stop(stop_us: u32) -> Vec<u8> {
    let header = Header {
        kind: Kind::Control,
        flags: flags::HEAD | flags::TAIL,
        hops: 1,
        source: HostId(0),
        sequence: 0,
        next: NEXT_CONTROL,
    };
    let mut frame = vec![0; 60];
    encode_signal(&mut frame, [2; 6], &header, Signal::Stop(stop_us));
    frame
}

/// A neighbour that never lets go delays a transfer. Nobody takes the host for dead.
#[test]
fn stop_without_end_delays_and_ends_nothing() {
    for (scheme, stopped) in [(TREE, 0), (TREE, 5), (SWITCH, 0), (SWITCH, 5)] {
        let groups = vec![controller::group(GROUP, scheme, 0..8)];
        let mut scenario = Scenario::testbed(groups, link(Damage::default()), engine_config(1), 1);
        scenario.write(0, &[8_000]);
        let start_us = scenario.fabric.now_us();
        while !scenario.is_finished(0) {
            let now_us = scenario.fabric.now_us();
            assert!(now_us < start_us + 200 * SECOND_US, "{}", scenario.report());
            let host = scenario.fabric.host(stopped);
            host.receive(stop(u32::MAX), now_us);
            scenario.run_for(20_000);
        }
        scenario.check_delivered(0, 1, &[]);
        check_none_failed(&scenario, 0);
        let took_us = scenario.fabric.now_us() - start_us;
        println!("{scheme:?}, host {stopped} is stopped: {took_us} µs");
        assert!(took_us > SECOND_US, "it was not held: {took_us} µs");
        let overdue = counted(&scenario, stopped, "flow.overdue");
        let most = u64::from(OVERDUE_FRAMES_MAX) * (took_us / SECOND_US);
        assert!(overdue > 0 && overdue <= most, "{overdue}");
    }
}
