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
        for unicast in [Algorithm::Omit, Algorithm::Rrmit, Algorithm::RrmitMin] {
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
