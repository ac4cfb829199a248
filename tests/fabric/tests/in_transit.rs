//! Transfers over minimal routes that hosts on the way re-inject (ITB §III.B).

use wormcast_agent_core::transit::TransitLimits;
use wormcast_fabric_tests::controller::{CIRCUIT, K_BINOMIAL, TREE};
use wormcast_fabric_tests::host::Host;
use wormcast_fabric_tests::link::Damage;
use wormcast_fabric_tests::scenario::Scenario;
use wormcast_routing::group::Scheme;
use wormcast_routing::routes::Algorithm;

const SECOND_US: u64 = 1_000_000;

/// (frames re-injected, frames dropped for want of room) at all hosts.
fn re_injected(scenario: &Scenario) -> (u64, u64) {
    let agents = scenario.fabric.hosts.values();
    let counters = agents.filter_map(|host| Some(host.agent.as_ref()?.transit().counters()));
    counters.fold((0, 0), |(sent, full), counters| {
        (sent + counters.frames, full + counters.dropped)
    })
}

fn run(unicast: Algorithm, scheme: Scheme, damage: Damage) -> (u64, u64) {
    let mut scenario = Scenario::routed("irregular:16:2:1", unicast, scheme, damage, 5);
    scenario.write(3, &[200_000, 16, 30_000]);
    scenario.finish(3, 60 * SECOND_US);
    scenario.check_delivered(3, 3, &[]);
    re_injected(&scenario)
}

#[test]
fn every_message_arrives_over_in_transit_hosts() {
    for scheme in [Scheme::Repeat, CIRCUIT, TREE, K_BINOMIAL] {
        assert_eq!(run(Algorithm::Osud, scheme, Damage::default()), (0, 0));
        for unicast in Algorithm::ALL
            .into_iter()
            .filter(|one| one.uses_in_transit_hosts())
        {
            let (sent, full) = run(unicast, scheme, Damage::default());
            // A tree leads to neighbours, where there may be nothing to cut.
            let far = [Scheme::Repeat, CIRCUIT].contains(&scheme);
            assert!(
                sent > 0 || !far,
                "{unicast:?} {scheme:?}: no in-transit host"
            );
            assert_eq!(full, 0, "{unicast:?} {scheme:?}");
            run(unicast, scheme, Damage::rough());
        }
    }
}

/// Worms in transit spilled and dropped at all hosts, when hosts have this little memory and the host
/// that re-injects most stands still for a while.
fn with_little_memory(scheme: Scheme, transit: TransitLimits) -> (u64, u64) {
    let damage = Damage::default();
    let mut scenario = Scenario::routed("irregular:16:2:1", Algorithm::Rrmit, scheme, damage, 5);
    scenario.fabric.set_memory(transit, 6_000);
    scenario.write(3, &[400_000, 16, 30_000]);
    scenario.run_for(150_000);
    let sent = |host: &Host| host.agent.as_ref().unwrap().transit().counters().frames;
    let hosts = scenario.fabric.hosts.values().filter(|host| host.id != 3);
    let busiest = hosts.max_by_key(|host| sent(host)).unwrap();
    assert!(sent(busiest) > 0, "{scheme:?}: no in-transit host");
    let busiest = busiest.id;
    scenario.fabric.freeze(busiest, 3 * SECOND_US);
    scenario.write(3, &[100_000]);
    scenario.finish(3, 120 * SECOND_US);
    scenario.check_delivered(3, 4, &[]);
    let failed = scenario.reported(false);
    assert!(failed.is_empty(), "a pause is no failure: {failed:?}");
    let agents = scenario.fabric.hosts.values();
    let counters = agents.map(|host| host.agent.as_ref().unwrap().transit().counters());
    counters.fold((0, 0), |(spilled, dropped), counters| {
        let most = transit.adapter_bytes + transit.spill_bytes;
        assert!(counters.held_bytes_most <= most);
        (spilled + counters.spilled, dropped + counters.dropped)
    })
}

#[test]
fn hosts_in_transit_with_little_memory_delay_or_drop_and_lose_no_message() {
    for scheme in [Scheme::Repeat, CIRCUIT] {
        let one_frame = TransitLimits {
            adapter_bytes: 1_600,
            spill_bytes: 0,
        };
        let (spilled, dropped) = with_little_memory(scheme, one_frame);
        assert!(spilled == 0 && dropped > 0, "{scheme:?}: {dropped}");
        let spilling = TransitLimits {
            adapter_bytes: 2_000,
            ..TransitLimits::default()
        };
        let (spilled, dropped) = with_little_memory(scheme, spilling);
        assert!(spilled > 0, "{scheme:?}");
        assert_eq!(dropped, 0, "{scheme:?}: host memory is the second buffer");
    }
}

/// The origin and a host far from it, and how many messages took each of the routes there.
fn taken(unicast: Algorithm, damage: Damage, messages: u64) -> (Vec<u64>, u64) {
    let mut scenario = Scenario::routed("irregular:16:2:1", unicast, Scheme::Repeat, damage, 5);
    let origin = 3;
    let several = |scenario: &Scenario| {
        let engine = scenario.fabric.hosts[&origin].agent.as_ref().unwrap();
        let taken = engine.engine().unwrap().routes_taken();
        let most = taken.max_by_key(|(_, taken)| taken.len()).unwrap();
        (most.0, most.1.to_vec())
    };
    let (far, _) = several(&scenario);
    scenario.set_members(&[origin, far.0]);
    scenario.replan();
    let sizes: Vec<u64> = (0..messages)
        .map(|message| 16 + 997 * (message % 9))
        .collect();
    scenario.write(origin, &sizes);
    scenario.finish(origin, 600 * SECOND_US);
    scenario.check_delivered(origin, messages as u32, &[]);
    let engine = scenario.fabric.hosts[&origin].agent.as_ref().unwrap();
    let engine = engine.engine().unwrap();
    let again = engine
        .statistics()
        .map(|(_, _, statistics)| statistics.retransmissions);
    (several(&scenario).1, again.sum())
}

#[test]
fn messages_take_the_routes_by_their_shares_and_arrive_in_order() {
    for unicast in [Algorithm::Rrmit, Algorithm::RrmitMin] {
        let (taken, again) = taken(unicast, Damage::default(), 200);
        assert!(taken.len() > 1);
        let (least, most) = (taken.iter().min().unwrap(), taken.iter().max().unwrap());
        assert!(most - least <= 1, "{unicast:?}: {taken:?} are not in turn");
        assert_eq!(taken.iter().sum::<u64>(), 200);
        assert!(
            again <= 20,
            "{unicast:?}: messages that overtake are taken for lost {again} times"
        );
    }
    for unicast in [Algorithm::Rmit, Algorithm::Pit] {
        let (taken, again) = taken(unicast, Damage::default(), 400);
        assert_eq!(taken.iter().sum::<u64>(), 400);
        assert!(
            taken.len() > 1 && taken.iter().all(|&count| count > 0),
            "{unicast:?}: {taken:?}"
        );
        assert!(
            again <= 40,
            "{unicast:?}: messages that overtake are taken for lost {again} times"
        );
    }
    for unicast in [Algorithm::Rrmit, Algorithm::Pit] {
        taken(unicast, Damage::rough(), 200);
    }
}
