//! Parallel links: switches go on by the others when one fails, and nobody has to plan for that.

use wormcast_fabric_tests::controller::{self, OWN_TABLE, OWN_TREES, schemes};
use wormcast_fabric_tests::link::Damage;
use wormcast_fabric_tests::scenario::{GROUP, Scenario, engine_config, link, with_parallel_links};
use wormcast_routing::generate;
use wormcast_routing::group::Scheme;
use wormcast_routing::routes::Algorithm;

const SECOND_US: u64 = 1_000_000;
const SIZE: u64 = 2_000_000;

/// A transfer in the middle of which all links but one between any two neighbours fail: how long it takes,
/// in µs. The controller never hears of it.
fn transfer(scheme: Scheme, failures: bool) -> u64 {
    let topology = with_parallel_links(&generate::testbed(), 3);
    let links = topology.links().to_vec();
    let members: Vec<u16> = topology.hosts().iter().map(|host| host.id.0).collect();
    let groups = vec![controller::group(GROUP, scheme, members)];
    let controller = controller::Controller::new(groups, Algorithm::Osud);
    let config = engine_config(1);
    let mut scenario = Scenario::with(topology, controller, link(Damage::default()), config, 1);
    scenario.write(2, &[SIZE]);
    scenario.run_for(20_000);
    for (at, link) in links.iter().enumerate().filter(|_| failures) {
        let first = links
            .iter()
            .position(|one| (one.a, one.b) == (link.a, link.b));
        let last = links
            .iter()
            .rposition(|one| (one.a, one.b) == (link.a, link.b));
        assert_ne!(first, last, "links are parallel");
        if Some(at) != last {
            scenario
                .fabric
                .set_link_down(link.a.0, link.a_port.get(), true);
        }
    }
    let took_us = scenario.finish(2, 60 * SECOND_US);
    scenario.check_delivered(2, 1, &[]);
    scenario.check_quiet();
    assert!(
        scenario
            .outcomes(2)
            .iter()
            .all(|(_, failed)| failed.is_empty())
    );
    took_us
}

#[test]
fn every_scheme_goes_on_by_the_links_that_are_left() {
    for scheme in schemes().into_iter().chain([OWN_TREES, OWN_TABLE]) {
        let (whole, failed) = (transfer(scheme, false), transfer(scheme, true));
        println!("{}: {whole} µs, {failed} µs with failures", scheme.name());
        // What was on the links that failed is sent again. Where several streams had links of their own,
        // they share one now.
        let most = 2 * whole + SECOND_US / 10;
        assert!(
            failed < most,
            "{}: {failed} µs, {whole} µs without failures",
            scheme.name()
        );
    }
}
