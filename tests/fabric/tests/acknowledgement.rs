//! ACKs of many members, where switches copy: they come up a tree of members.

use wormcast_fabric_tests::controller::{BROADCAST, SWITCH, TABLE};
use wormcast_fabric_tests::fabric::Place;
use wormcast_fabric_tests::link::Damage;
use wormcast_fabric_tests::program::ReaderPolicy;
use wormcast_fabric_tests::random::Random;
use wormcast_fabric_tests::scenario::{Large, Scenario};
use wormcast_routing::group::Scheme;
use wormcast_routing::structure::Structure;
use wormcast_wire::HostId;

const SECOND_US: u64 = 1_000_000;
const ORIGIN: u16 = Large::ORIGIN;

fn large(scheme: Scheme, members: u64, fan_in: Option<u32>, damage: Damage, seed: u64) -> Scenario {
    let mut large = Large::new(scheme, members, damage, seed);
    large.fan_in = fan_in;
    large.scenario()
}

/// Members that take ACKs of others, and a member that takes none and is far from the origin.
fn inner_and_leaf(scenario: &Scenario) -> (Vec<u16>, u16) {
    let members = scenario.controller.groups[0].members.clone();
    let fan_in = scenario.controller.ack_fan_in.expect("chosen") as usize;
    let tree = Structure::acknowledgement(members.clone(), HostId(ORIGIN), fan_in).expect("a tree");
    let parent = |host: HostId| tree.role_of(host).expect("a member").parent;
    let depth = |host: HostId| std::iter::successors(parent(host), |host| parent(*host)).count();
    let takes = |host: &HostId| !tree.role_of(*host).expect("a member").children.is_empty();
    let leaf = members
        .iter()
        .max_by_key(|host| depth(**host))
        .expect("members");
    let inner = members
        .iter()
        .filter(|host| takes(host) && host.0 != ORIGIN);
    (inner.map(|host| host.0).collect(), leaf.0)
}

/// ACK frames for one message.
#[derive(Debug)]
struct Acks {
    /// That the origin handles.
    at_origin: u64,
    /// The most that another member handles.
    at_member: u64,
    /// Time until the origin knows that all have the message.
    took_us: u64,
}

fn acks(scheme: Scheme, members: u64, fan_in: Option<u32>, bytes: u64) -> Acks {
    let mut scenario = large(scheme, members, fan_in, Damage::default(), members);
    scenario.write(ORIGIN, &[bytes]);
    let took_us = scenario.finish(ORIGIN, 60 * SECOND_US);
    scenario.check_delivered(ORIGIN, 1, &[]);
    let mut received = scenario.counted(ORIGIN, "acks_received");
    let at_origin = received.remove(&ORIGIN).expect("the origin has the stream");
    Acks {
        at_origin,
        at_member: received.into_values().max().unwrap_or(0),
        took_us,
    }
}

#[test]
fn the_origin_handles_no_more_acks_of_many_members_than_of_few() {
    for scheme in [SWITCH, TABLE, BROADCAST] {
        for bytes in [16, 20_000, 200_000] {
            let few = acks(scheme, 8, None, bytes);
            for members in [8, 64, 250] {
                let direct = acks(scheme, members, Some(u32::MAX), bytes);
                let many = acks(scheme, members, None, bytes);
                println!(
                    "{} {bytes} bytes to {members} members: directly {direct:?}, by a tree {many:?}",
                    scheme.name()
                );
                assert!(
                    many.at_origin <= few.at_origin,
                    "{members} members: {many:?}; 8 members: {few:?}"
                );
                assert!(
                    many.at_member <= few.at_origin,
                    "{members} members: {many:?}; 8 members: {few:?}"
                );
                assert!(direct.at_origin >= many.at_origin);
                // Nobody waits for an answer that does not come: no probe, after 20 ms, is needed.
                assert!(
                    many.took_us <= direct.took_us + 2_000,
                    "{members} members: {many:?}; directly {direct:?}"
                );
            }
        }
    }
}

/// A parent waits for those below it, so that it answers once; if their readers are late, twice, and
/// nobody takes the waiting for silence.
#[test]
fn members_that_read_late_are_answered_for_once_or_twice() {
    for (late_us, answers) in [(3_000, 1), (15_000, 2)] {
        let mut scenario = large(SWITCH, 64, None, Damage::default(), 23);
        let members = scenario.controller.groups[0].members.clone();
        for member in members.iter().filter(|host| host.0 != ORIGIN) {
            scenario.fabric.host(member.0).program.policy = ReaderPolicy {
                asleep_until_us: late_us,
                ..ReaderPolicy::default()
            };
        }
        scenario.write(ORIGIN, &[16]);
        let took_us = scenario.finish(ORIGIN, 60 * SECOND_US);
        scenario.check_delivered(ORIGIN, 1, &[]);
        let received = scenario.counted(ORIGIN, "acks_received");
        assert!(took_us < late_us + 2_000, "{took_us} µs");
        assert_eq!(received[&ORIGIN], 4 * answers, "{late_us} µs: {received:?}");
    }
}

#[test]
fn a_parent_repairs_what_its_children_miss_from_its_memory() {
    for fan_in in [1, 2, 5] {
        let mut scenario = large(SWITCH, 40, Some(fan_in), Damage::rough(), 7);
        scenario.write(ORIGIN, &[100_000, 16, 30_000]);
        scenario.finish(ORIGIN, 120 * SECOND_US);
        scenario.check_delivered(ORIGIN, 3, &[]);
        let again = scenario.counted(ORIGIN, "retransmissions");
        let members: u64 = again.values().sum::<u64>() - again[&ORIGIN];
        assert!(members > again[&ORIGIN], "fan-in {fan_in}: {again:?}");
        let asked: u64 = scenario.counted(ORIGIN, "repairs_requested").values().sum();
        assert_eq!(asked, 0, "fan-in {fan_in}: the parents hold everything");
        scenario.run_for(10 * SECOND_US);
        scenario.check_quiet();
    }
}

#[test]
fn a_parent_that_stands_still_delays_and_fails_nobody() {
    let mut scenario = large(SWITCH, 30, Some(3), Damage::default(), 9);
    let (inner, leaf) = inner_and_leaf(&scenario);
    scenario.write(ORIGIN, &[3_000_000, 16]);
    scenario.run_for(100_000);
    for (host, seconds) in [(inner[0], 7), (inner[inner.len() - 1], 3), (leaf, 2)] {
        scenario.fabric.freeze(host, seconds * SECOND_US);
        scenario.run_for(SECOND_US);
    }
    scenario.finish(ORIGIN, 120 * SECOND_US);
    scenario.check_delivered(ORIGIN, 2, &[]);
    let failed = scenario.reported(false);
    assert!(failed.is_empty(), "{failed:?}");
    let outcomes = scenario.outcomes(ORIGIN);
    assert!(
        outcomes.iter().all(|(_, failed)| failed.is_empty()),
        "{outcomes:?}"
    );
}

#[test]
fn a_parent_that_dies_is_replaced_and_nothing_is_lost_or_repeated_at_others() {
    for damage in [Damage::default(), Damage::rough()] {
        let mut scenario = large(SWITCH, 30, Some(3), damage, 11);
        let (inner, _) = inner_and_leaf(&scenario);
        let dead = inner[1];
        scenario.write(ORIGIN, &[16, 1_500_000, 40_000]);
        scenario.run_for(60_000);
        scenario.fabric.stop_agent(dead);
        scenario.run_for(2 * SECOND_US);
        assert!(
            !scenario.is_finished(ORIGIN),
            "the dead member is waited for"
        );
        let members = scenario.controller.groups[0].members.clone();
        let left: Vec<u16> = members
            .iter()
            .map(|host| host.0)
            .filter(|host| *host != dead)
            .collect();
        scenario.set_members(&left);
        scenario.replan();
        scenario.finish(ORIGIN, 120 * SECOND_US);
        scenario.check_delivered(ORIGIN, 3, &[]);
        for (message, failed) in scenario.outcomes(ORIGIN) {
            let others = failed.iter().any(|(host, _)| *host != dead);
            assert!(!others, "message {message}: {failed:?}");
        }
    }
}

#[test]
fn a_parent_that_starts_anew_gets_the_next_message_and_its_children_all() {
    let mut scenario = large(SWITCH, 30, Some(2), Damage::default(), 13);
    let (inner, _) = inner_and_leaf(&scenario);
    scenario.write(ORIGIN, &[1_000_000]);
    scenario.run_for(60_000);
    scenario.fabric.stop_agent(inner[0]);
    scenario.run_for(300_000);
    scenario.fabric.start_agent(inner[0]);
    scenario.run_for(SECOND_US);
    scenario.write(ORIGIN, &[50_000]);
    scenario.finish(ORIGIN, 120 * SECOND_US);
    scenario.check_delivered(ORIGIN, 2, &[inner[0]]);
    assert_eq!(scenario.delivered(inner[0], ORIGIN), [1]);
    let (message, failed) = &scenario.outcomes(ORIGIN)[0];
    assert_eq!(
        (*message, failed.len(), failed[0].0),
        (0, 1, inner[0]),
        "named at the origin"
    );
}

#[test]
fn members_come_and_go_while_acks_come_up_the_tree() {
    let mut scenario = large(SWITCH, 40, Some(3), Damage::rough(), 17);
    let all: Vec<u16> = scenario.controller.groups[0]
        .members
        .iter()
        .map(|host| host.0)
        .collect();
    let mut random = Random::new(5);
    let mut stayed = all.clone();
    for _ in 0..6 {
        scenario.write(ORIGIN, &[150_000]);
        scenario.run_for(30_000);
        let mut members = all.clone();
        members.retain(|host| *host == ORIGIN || random.below(4) > 0);
        stayed.retain(|host| members.contains(host));
        scenario.set_members(&members);
        scenario.replan_in_stages(&mut random, 30_000);
        scenario.run_for(200_000);
    }
    scenario.set_members(&all);
    scenario.replan();
    scenario.finish(ORIGIN, 180 * SECOND_US);
    assert!(stayed.len() > 3);
    for member in stayed.into_iter().filter(|host| *host != ORIGIN) {
        assert_eq!(
            scenario.delivered(member, ORIGIN),
            (0..6).collect::<Vec<u32>>()
        );
    }
}

/// Frames dropped at the slow link of a member far down, and the most bytes that waited there.
fn at_slow_link(fan_in: u32) -> (u64, u64) {
    let mut scenario = large(SWITCH, 40, Some(2), Damage::default(), 19);
    let (_, leaf) = inner_and_leaf(&scenario);
    scenario.controller.ack_fan_in = Some(fan_in);
    scenario.replan();
    let at = scenario.fabric.topology.host(HostId(leaf)).expect("a host");
    let place = Place::Switch(at.switch.0, at.port.get());
    let slow = scenario.fabric.links.get_mut(&place).expect("its link");
    slow.config.rate_bps /= 10;
    scenario.write(ORIGIN, &[4_000_000]);
    scenario.finish(ORIGIN, 120 * SECOND_US);
    scenario.check_delivered(ORIGIN, 1, &[]);
    let statistics = scenario.fabric.links[&place].statistics;
    (statistics.queue_drops, statistics.queue_peak_bytes)
}

#[test]
fn the_slowest_member_rules_the_stream_wherever_it_is_in_the_tree() {
    let (direct_drops, direct_peak) = at_slow_link(u32::MAX);
    let (drops, peak) = at_slow_link(2);
    println!(
        "directly {direct_drops} drops, {direct_peak} bytes; by a tree {drops} drops, {peak} bytes"
    );
    assert!(
        drops <= direct_drops + 50,
        "{drops} drops; {direct_drops} if it acknowledges directly"
    );
}
