//! ACKs of many members, where switches copy: they come up a tree of members.

use std::collections::BTreeMap;
use wormcast_fabric_tests::controller::{Controller, SWITCH, group};
use wormcast_fabric_tests::link::Damage;
use wormcast_fabric_tests::random::Random;
use wormcast_fabric_tests::scenario::{GROUP, Scenario, engine_config, link};
use wormcast_routing::generate;
use wormcast_routing::routes::Algorithm;
use wormcast_wire::HostId;

const SECOND_US: u64 = 1_000_000;
const ORIGIN: u16 = 3;

/// A network of 256 hosts, of which so many are members; the origin is one.
fn large(members: u64, damage: Damage, seed: u64) -> Scenario {
    let topology = generate::from_spec("irregular:64:1:4:4").expect("a known shape");
    let mut rest: Vec<u16> = topology.hosts().iter().map(|host| host.id.0).collect();
    rest.retain(|host| *host != ORIGIN);
    let mut random = Random::new(seed);
    let mut chosen = vec![ORIGIN];
    for _ in 1..members {
        chosen.push(rest.swap_remove(random.below(rest.len() as u64) as usize));
    }
    chosen.sort_unstable();
    let groups = vec![group(GROUP, SWITCH, chosen)];
    let controller = Controller::new(groups, Algorithm::Osud);
    Scenario::with(
        topology,
        controller,
        link(damage),
        engine_config(seed),
        seed,
    )
}

/// A counter of the group's stream at each host.
fn counted(scenario: &Scenario, name: &str) -> BTreeMap<u16, u64> {
    let hosts = scenario.fabric.hosts.values();
    let streams = hosts.filter_map(|host| {
        let engine = host.agent.as_ref()?.engine()?;
        let mut streams = engine.statistics();
        let (_, _, statistics) = streams.find(|(_, origin, _)| *origin == HostId(ORIGIN))?;
        let (_, value) = statistics
            .entries()
            .into_iter()
            .find(|(entry, _)| *entry == name)?;
        Some((host.id, value))
    });
    streams.collect()
}

/// ACK frames that the origin handles, and the most that a member handles, for one message.
fn acks(members: u64, damage: Damage) -> (u64, u64) {
    let mut scenario = large(members, damage, members);
    scenario.write(ORIGIN, &[200_000]);
    scenario.finish(ORIGIN, 60 * SECOND_US);
    scenario.check_delivered(ORIGIN, 1, &[]);
    let mut received = counted(&scenario, "acks_received");
    let origin = received.remove(&ORIGIN).expect("the origin has the stream");
    (origin, received.into_values().max().unwrap_or(0))
}

#[test]
fn the_origin_handles_no_more_acks_of_many_members_than_of_few() {
    let (few, none) = acks(8, Damage::default());
    println!("8 members: {few}, at a member {none}");
    for members in [64, 250] {
        let (many, at_member) = acks(members, Damage::default());
        println!("{members} members: {many}, at a member {at_member}");
        assert!(
            many <= few,
            "{members} members: {many} ACKs; 8 members: {few}"
        );
        assert!(
            at_member <= few,
            "{members} members: {at_member} ACKs at one; 8 members: {few}"
        );
    }
}
