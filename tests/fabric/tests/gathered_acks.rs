//! ACKs that switches gather, in whole fabrics: fewer ACKs, as much throughput, and nothing lost.

use wormcast_fabric_tests::controller::{BROADCAST, SWITCH, TABLE};
use wormcast_fabric_tests::fabric::Place;
use wormcast_fabric_tests::link::Damage;
use wormcast_fabric_tests::program::ReaderPolicy;
use wormcast_fabric_tests::random::Random;
use wormcast_fabric_tests::scenario::{Large, Scenario};
use wormcast_routing::group::Scheme;

const SECOND_US: u64 = 1_000_000;
const ORIGIN: u16 = Large::ORIGIN;

fn large(scheme: Scheme, members: u64, gather: bool, damage: Damage, seed: u64) -> Scenario {
    let mut large = Large::new(scheme, members, damage, seed);
    large.gather = gather;
    large.scenario()
}

/// ACK frames that the origin handles for a message: of hosts and gathered; and how long it took, µs.
#[derive(Debug)]
struct Acks {
    hosts: u64,
    gathered: u64,
    took_us: u64,
}

fn handled(scenario: &Scenario) -> (u64, u64) {
    let of = |name| scenario.counted(ORIGIN, name)[&ORIGIN];
    (of("acks_received"), of("gathered_received"))
}

/// Of one message to members that have seen others before.
fn acks(scheme: Scheme, members: u64, gather: bool, bytes: u64) -> Acks {
    let mut scenario = large(scheme, members, gather, Damage::default(), members);
    for message in 0..3 {
        scenario.write(ORIGIN, &[bytes]);
        scenario.finish(ORIGIN, 60 * SECOND_US);
        scenario.run_for(300_000 + message);
    }
    let before = handled(&scenario);
    scenario.write(ORIGIN, &[bytes]);
    let took_us = scenario.finish(ORIGIN, 60 * SECOND_US);
    scenario.run_for(SECOND_US);
    scenario.check_delivered(ORIGIN, 4, &[]);
    let after = handled(&scenario);
    Acks {
        hosts: after.0 - before.0,
        gathered: after.1 - before.1,
        took_us,
    }
}

#[test]
fn an_origin_handles_far_fewer_acks_and_no_more_of_many_members() {
    for scheme in [SWITCH, TABLE, BROADCAST] {
        for bytes in [16, 20_000, 200_000, 2_000_000] {
            let packets = bytes / 1_400 + 1;
            // Many packets to many members take minutes, and show what fewer of either do.
            let counts: &[u64] = match bytes {
                ..100_000 => &[8, 64, 250],
                100_000..1_000_000 => &[8, 64],
                _ => &[8],
            };
            for &members in counts {
                let usual = acks(scheme, members, false, bytes);
                let gathered = acks(scheme, members, true, bytes);
                println!(
                    "{} {bytes} bytes to {members} members: by hosts {usual:?}, gathered {gathered:?}",
                    scheme.name()
                );
                let all = gathered.hosts + gathered.gathered;
                assert!(usual.gathered == 0 && gathered.gathered > 0);
                assert!(3 * all <= usual.hosts + 2, "{all}; {usual:?}");
                assert!(gathered.gathered <= packets / 3 + 3, "{gathered:?}");
                assert!(gathered.took_us <= usual.took_us + usual.took_us / 10 + 1_000);
            }
        }
    }
}

/// Time for a message that follows a short one, µs.
fn time(gather: bool, bytes: u64, spoil: impl Fn(&mut Scenario), damage: Damage) -> u64 {
    let mut scenario = large(SWITCH, 64, gather, damage, 5);
    spoil(&mut scenario);
    scenario.write(ORIGIN, &[16]);
    scenario.finish(ORIGIN, 60 * SECOND_US);
    scenario.run_for(SECOND_US);
    scenario.write(ORIGIN, &[bytes]);
    let took_us = scenario.finish(ORIGIN, 120 * SECOND_US);
    scenario.check_delivered(ORIGIN, 2, &[]);
    took_us
}

fn slow_member(scenario: &mut Scenario) {
    let members = &scenario.controller.groups[0].members;
    let at = scenario.fabric.topology.host(members[40]).expect("a host");
    let place = Place::Switch(at.switch.0, at.port.get());
    let slow = scenario.fabric.links.get_mut(&place).expect("its link");
    slow.config.rate_bps /= 10;
}

#[test]
fn a_long_message_is_as_fast() {
    type Spoil = fn(&mut Scenario);
    let cases: [(&str, Spoil, Damage); 3] = [
        ("clean", |_| (), Damage::default()),
        ("a slow member", slow_member, Damage::default()),
        ("rough", |_| (), Damage::rough()),
    ];
    for (name, spoil, damage) in cases {
        let bytes = 4_000_000;
        let usual_us = time(false, bytes, spoil, damage);
        let gathered_us = time(true, bytes, spoil, damage);
        println!("{name}: {usual_us} µs by hosts, {gathered_us} µs gathered");
        assert!(
            gathered_us <= usual_us + usual_us / 10,
            "{name}: {gathered_us} µs gathered, {usual_us} µs by hosts"
        );
    }
}

#[test]
fn whatever_is_lost_and_whichever_switch_starts_anew_all_comes_once_and_in_order() {
    for (scheme, damage) in [
        (SWITCH, Damage::default()),
        (SWITCH, Damage::rough()),
        (TABLE, Damage::rough()),
        (BROADCAST, Damage::default()),
    ] {
        let mut scenario = large(scheme, 64, true, damage, 29);
        let mut random = Random::new(3);
        let switches: Vec<u16> = scenario.fabric.switches.keys().copied().collect();
        for _ in 0..8 {
            scenario.write(ORIGIN, &[16, 150_000, 3_000]);
            for _ in 0..4 {
                scenario.run_for(4_000);
                let id = *random.pick(&switches);
                let switch = scenario.fabric.switches.get_mut(&id).expect("a switch");
                switch.restart(7);
            }
        }
        scenario.finish(ORIGIN, 120 * SECOND_US);
        scenario.check_delivered(ORIGIN, 24, &[]);
        let (_, gathered) = handled(&scenario);
        assert!(gathered > 50, "{gathered}");
        scenario.check_quiet();
        scenario.check_empty();
    }
}

/// One that reads late holds up what is stable, and nobody is lost for it.
#[test]
fn a_member_that_reads_late_or_stands_still_delays_and_fails_nobody() {
    let mut scenario = large(SWITCH, 30, true, Damage::default(), 9);
    let members = scenario.controller.groups[0].members.clone();
    scenario.write(ORIGIN, &[16]);
    scenario.finish(ORIGIN, SECOND_US);
    let late = members[20].0;
    scenario.fabric.host(late).program.policy = ReaderPolicy {
        asleep_until_us: 9 * SECOND_US,
        ..ReaderPolicy::default()
    };
    scenario.write(ORIGIN, &[3_000_000, 16]);
    scenario.run_for(100_000);
    for (member, seconds) in [(5, 7), (11, 3)] {
        scenario
            .fabric
            .freeze(members[member].0, seconds * SECOND_US);
        scenario.run_for(SECOND_US);
    }
    scenario.finish(ORIGIN, 120 * SECOND_US);
    scenario.check_delivered(ORIGIN, 3, &[]);
    assert!(scenario.reported(false).is_empty());
    let outcomes = scenario.outcomes(ORIGIN);
    assert!(outcomes.iter().all(|(_, failed)| failed.is_empty()));
}
