//! Transfers over minimal routes that hosts on the way re-inject (ITB §III.B).

use wormcast_fabric_tests::link::Damage;
use wormcast_fabric_tests::scenario::Scenario;
use wormcast_protocol::Reject;
use wormcast_routing::routes::Algorithm;
use wormcast_wire::Scheme;

const SECOND_US: u64 = 1_000_000;

/// (frames re-injected, frames refused for want of room) at all hosts.
fn re_injected(scenario: &Scenario) -> (u64, u64) {
    let engines = scenario
        .fabric
        .hosts
        .values()
        .filter_map(|host| host.agent.as_ref()?.engine());
    engines.fold((0, 0), |(sent, full), engine| {
        let counters = engine.counters();
        (
            sent + counters.in_transit_frames,
            full + counters.rejected(Reject::InTransitFull),
        )
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
    for scheme in [
        Scheme::Repeat,
        Scheme::Circuit,
        Scheme::Tree,
        Scheme::KBinomial,
    ] {
        assert_eq!(run(Algorithm::Osud, scheme, Damage::default()), (0, 0));
        for unicast in Algorithm::ALL
            .into_iter()
            .filter(|one| one.uses_in_transit_hosts())
        {
            let (sent, full) = run(unicast, scheme, Damage::default());
            // A tree leads to neighbours, where there may be nothing to cut.
            let far = [Scheme::Repeat, Scheme::Circuit].contains(&scheme);
            assert!(
                sent > 0 || !far,
                "{unicast:?} {scheme:?}: no in-transit host"
            );
            assert_eq!(full, 0, "{unicast:?} {scheme:?}");
            run(unicast, scheme, Damage::rough());
        }
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
