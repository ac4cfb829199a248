//! Agents as they ship send trains over switches in wormhole mode: every scheme delivers, trains are on the wire, and
//! nothing that befalls them costs a message.

use wormcast_agent_core::figures::Figures;
use wormcast_fabric_tests::controller::{
    self, CIRCUIT, Controller, K_BINOMIAL, SWITCH, TREE, schemes,
};
use wormcast_fabric_tests::link::Damage;
use wormcast_fabric_tests::random::Random;
use wormcast_fabric_tests::scenario::{GROUP, Scenario, engine_config, link};
use wormcast_planner::{Switching, TRAIN_FRAMES, WormholeScheme};
use wormcast_routing::generate;
use wormcast_routing::group::Scheme;
use wormcast_routing::routes::Algorithm;

const SECOND_US: u64 = 1_000_000;
const PLAIN: Switching = Switching::Wormhole(WormholeScheme::Plain);
const FLUSH: Switching = Switching::Wormhole(WormholeScheme::Flush);
const INTERRUPT: Switching = Switching::Wormhole(WormholeScheme::Interrupt);
const UNICAST: Switching = Switching::Wormhole(WormholeScheme::Unicast);
/// Of `train_event_t`.
const HELD: usize = 0;

/// A counter of all agents that run.
fn counted(scenario: &Scenario, name: &str) -> u64 {
    let agents = scenario.fabric.hosts.values();
    let of = |agent: &wormcast_agent_core::agent::Agent| {
        let mut figures = Figures::default();
        let now = wormcast_protocol::Instant::from_micros(u64::MAX / 2);
        agent.fill(&mut figures, false, now);
        let found = figures.figures.iter().find(|figure| figure.name == name);
        found.unwrap_or_else(|| panic!("no counter {name}")).value
    };
    agents.filter_map(|host| host.agent.as_ref().map(of)).sum()
}

/// As the controller brings it out: switches first, then agents.
fn begin(scenario: &mut Scenario, switching: Switching) {
    scenario.controller.switching = switching;
    scenario.replan();
    scenario.controller.trains = true;
    scenario.replan();
}

fn finish(scenario: &mut Scenario, origin: u16, messages: u32) {
    scenario.finish(origin, 120 * SECOND_US);
    scenario.check_delivered(origin, messages, &[]);
    for (message, failed) in scenario.outcomes(origin) {
        assert_eq!(failed, [], "message {message}\n{}", scenario.report());
    }
}

#[test]
fn every_scheme_delivers_by_trains() {
    for switching in [PLAIN, FLUSH, INTERRUPT] {
        for scheme in schemes() {
            let mut scenario = Scenario::new("testbed", scheme, Damage::default(), 1);
            begin(&mut scenario, switching);
            scenario.write(3, &[1_000_000, 16, 1_423, 1_424, 1_425, 50_000]);
            finish(&mut scenario, 3, 6);
            let (trains, frames) = (
                counted(&scenario, "trains.sent"),
                counted(&scenario, "trains.frames"),
            );
            println!("{switching:?} {scheme:?}: {trains} trains of {frames} frames");
            assert!(frames >= 2 * trains && frames <= u64::from(TRAIN_FRAMES) * trains);
            // One child after the other gets a packet, but for these.
            assert!(
                trains > 10 || ![CIRCUIT, SWITCH].contains(&scheme),
                "{scheme:?}"
            );
            for drop in ["drops.train_headless", "drops.train_cut", "flow.resets"] {
                assert_eq!(counted(&scenario, drop), 0, "{scheme:?}: {drop}");
            }
        }
    }
}

#[test]
fn without_trains_in_the_plan_none_is_sent() {
    for switching in [Switching::Packet, PLAIN] {
        let mut scenario = Scenario::new("testbed", SWITCH, Damage::default(), 1);
        scenario.controller.switching = switching;
        scenario.replan();
        scenario.write(3, &[1_000_000]);
        finish(&mut scenario, 3, 1);
        assert_eq!(counted(&scenario, "trains.frames"), 0);
    }
}

/// Where switches hold channels for UNICAST worms alone, they drop all other trains.
#[test]
fn where_unicast_alone_may_be_trains_all_are() {
    let frames = |scheme, switching| {
        let mut scenario = Scenario::new("testbed", scheme, Damage::default(), 1);
        begin(&mut scenario, switching);
        scenario.write(3, &[1_000_000]);
        finish(&mut scenario, 3, 1);
        counted(&scenario, "trains.frames")
    };
    // Circuit sends nothing but UNICAST worms, and scheme switch none that may be trains.
    let all = frames(CIRCUIT, PLAIN);
    assert!(all > 20);
    assert_eq!(frames(CIRCUIT, UNICAST), all);
    assert!(frames(SWITCH, PLAIN) > 20);
    assert_eq!(frames(SWITCH, UNICAST), 0);
}

#[test]
fn losses_in_trains_are_repaired() {
    for switching in [PLAIN, FLUSH] {
        for scheme in [CIRCUIT, TREE, SWITCH] {
            for seed in [1, 2, 3] {
                let mut scenario = Scenario::new("torus:3", scheme, Damage::rough(), seed);
                begin(&mut scenario, switching);
                scenario.write(0, &[500_000, 1_000]);
                finish(&mut scenario, 0, 2);
                assert!(counted(&scenario, "trains.frames") > 0 || scheme == TREE);
            }
        }
    }
}

/// In-transit hosts take trains in whole and send them on.
#[test]
fn trains_go_by_way_of_in_transit_hosts() {
    for scheme in [Scheme::Repeat, CIRCUIT, K_BINOMIAL] {
        for (damage, is_rough) in [(Damage::default(), false), (Damage::rough(), true)] {
            let mut scenario =
                Scenario::routed("irregular:16:2:1", Algorithm::Rrmit, scheme, damage, 5);
            begin(&mut scenario, PLAIN);
            scenario.write(3, &[300_000, 16, 30_000]);
            finish(&mut scenario, 3, 3);
            if scheme == CIRCUIT {
                assert!(counted(&scenario, "transit.frames") > 100);
                assert!(counted(&scenario, "trains.frames") > 100);
            }
            if !is_rough {
                assert_eq!(counted(&scenario, "drops.train_cut"), 0);
                assert_eq!(counted(&scenario, "drops.train_headless"), 0);
            }
        }
    }
}

/// Two multicasts to the same members meet at several switches.
#[test]
fn two_origins_send_trains_to_one_group_at_a_time() {
    for switching in [PLAIN, FLUSH] {
        for scheme in [CIRCUIT, TREE, SWITCH] {
            for seed in 0..6 {
                let mut scenario = Scenario::new("torus:3", scheme, Damage::default(), seed);
                begin(&mut scenario, switching);
                for origin in [0, 4] {
                    scenario.write(origin, &[2_000_000]);
                }
                for origin in [0, 4] {
                    finish(&mut scenario, origin, 1);
                }
            }
        }
    }
}

/// Trains come and go as the controller brings them, and switches change one after another.
#[test]
fn the_mode_changes_in_the_middle_of_a_message() {
    for scheme in [CIRCUIT, SWITCH] {
        for seed in [1, 2, 3] {
            let mut random = Random::new(seed);
            let mut config = engine_config(seed);
            // What was cut before leaves no room for train headers.
            config.limits.origin_window_packets = 128;
            let network = generate::from_spec("torus:3").expect("a known shape");
            let groups = vec![controller::group(GROUP, scheme, 0..9)];
            let controller = Controller::new(groups, Algorithm::Osud);
            let mut scenario =
                Scenario::with(network, controller, link(Damage::default()), config, seed);
            scenario.write(0, &[20_000_000]);
            let steps = [
                (PLAIN, false),
                (PLAIN, true),
                (FLUSH, true),
                (FLUSH, false),
                (Switching::Packet, false),
                (PLAIN, false),
                (PLAIN, true),
                (PLAIN, false),
                (Switching::Packet, false),
            ];
            for (switching, trains) in steps {
                scenario.controller.switching = switching;
                scenario.controller.trains = trains;
                let us = scenario.replan_in_stages(&mut random, 20_000);
                scenario.run_for(us + random.below(50_000));
                assert!(!scenario.is_finished(0), "the message is too short");
            }
            assert!(counted(&scenario, "trains.frames") > 0, "{scheme:?}");
            let frames = counted(&scenario, "trains.frames");
            finish(&mut scenario, 0, 1);
            assert_eq!(
                counted(&scenario, "trains.frames"),
                frames,
                "they have stopped"
            );
        }
    }
}

/// Switches in packet mode drop trains. What was lost once is sent in worms of one frame.
#[test]
fn messages_survive_switches_that_refuse_trains() {
    for scheme in [CIRCUIT, SWITCH] {
        // None is in wormhole mode at all, as by a controller that is gone.
        let mut scenario = Scenario::new("ring:4", scheme, Damage::default(), 1);
        scenario.controller.trains = true;
        scenario.replan();
        scenario.write(0, &[300_000, 16]);
        finish(&mut scenario, 0, 2);
        assert!(counted(&scenario, "trains.frames") > 0, "{scheme:?}");
        // One starts anew in the middle, and it takes a while until the controller has written it.
        let mut scenario = Scenario::new("ring:4", scheme, Damage::default(), 2);
        begin(&mut scenario, PLAIN);
        scenario.write(0, &[3_000_000]);
        for switch in 0..3 {
            scenario.run_for(50_000);
            let at = scenario.fabric.switches.get_mut(&switch);
            at.expect("of the ring").start_empty(7);
            scenario.run_for(300_000);
            scenario.replan();
        }
        assert!(!scenario.is_finished(0), "the message is too short");
        finish(&mut scenario, 0, 1);
    }
}

/// Between head and tail, too.
#[test]
fn agents_that_stand_still_delay_and_end_nothing() {
    for scheme in [CIRCUIT, SWITCH] {
        let mut scenario = Scenario::new("ring:4", scheme, Damage::default(), 1);
        begin(&mut scenario, PLAIN);
        scenario.write(0, &[3_000_000]);
        let mut random = Random::new(9);
        for _ in 0..12 {
            scenario.run_for(10_000 + random.below(5_000));
            let host = [0, 1, 3][random.below(3) as usize];
            scenario.fabric.freeze(host, 1_500_000);
            scenario.run_for(1_600_000);
        }
        finish(&mut scenario, 0, 1);
        assert!(scenario.reported(false).is_empty());
    }
}

/// What bench/p4/README.md says of agents: `cargo test … figures_of_trains -- --ignored --nocapture`.
#[test]
#[ignore = "figures for a document, not a check"]
fn figures_of_trains() {
    for scheme in [CIRCUIT, SWITCH] {
        for (name, switching, trains) in [
            ("packet", Switching::Packet, false),
            ("one frame", PLAIN, false),
            ("trains", PLAIN, true),
        ] {
            let (mut us, mut held, mut frames, mut sent, mut stops) = (0, 0, 0, 0, 0);
            for seed in 0..10 {
                let mut scenario = Scenario::new("torus:3", scheme, Damage::default(), seed);
                scenario.controller.switching = switching;
                scenario.replan();
                scenario.controller.trains = trains;
                scenario.replan();
                scenario.write(0, &[10_000_000]);
                us += scenario.finish(0, 120 * SECOND_US);
                let switches = scenario.fabric.switches.values();
                held += switches
                    .map(|switch| switch.counter("trains", HELD))
                    .sum::<u64>();
                frames += counted(&scenario, "trains.frames");
                sent += counted(&scenario, "trains.sent");
                stops += counted(&scenario, "flow.stops");
            }
            let goodput = 10.0 * 80e6 / us as f64;
            println!(
                "{scheme:?} {name}: {goodput:.1} Mb/s, {held} passes of frames held, {sent} trains of {frames} frames, {stops} STOPs"
            );
        }
    }
}

/// What LIMITATIONS.md says of multicasts of several origins.
#[test]
#[ignore = "figures for a document, not a check"]
fn figures_of_several_origins() {
    for origins in [2, 4, 9] {
        for trains in [false, true] {
            for switching in [PLAIN, FLUSH] {
                let stuck = |seed: &u64| {
                    let mut scenario = Scenario::new("torus:3", SWITCH, Damage::default(), *seed);
                    scenario.controller.switching = switching;
                    scenario.replan();
                    scenario.controller.trains = trains;
                    scenario.replan();
                    for origin in 0..origins {
                        scenario.write(origin, &[500_000]);
                    }
                    let is_done =
                        |scenario: &Scenario| (0..origins).all(|own| scenario.is_finished(own));
                    for _ in 0..60 {
                        if !is_done(&scenario) {
                            scenario.run_for(100_000);
                        }
                    }
                    !is_done(&scenario)
                };
                let stuck = (0..10).filter(stuck).count();
                println!(
                    "{origins} origins, {switching:?}, trains {trains}: {stuck} of 10 not done in 6 s"
                );
            }
        }
    }
}
