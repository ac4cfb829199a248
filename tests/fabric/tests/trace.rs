//! Probes along every scheme: what switches record is the wiring, hop by hop, to exactly those the ways lead to.

use std::collections::{BTreeMap, BTreeSet};
use wormcast_fabric_tests::controller::schemes;
use wormcast_fabric_tests::link::Damage;
use wormcast_fabric_tests::scenario::{GROUP, Scenario};
use wormcast_protocol::{TraceRequest, Traced};
use wormcast_wire::worm::Kind;
use wormcast_wire::{GroupId, HostId};

const SECOND_US: u64 = 1_000_000;

/// Where a worm enters that leaves a switch by a port: a host passes it back to the switch.
type Wiring = BTreeMap<(u16, u8), (u16, u8)>;

#[test]
fn records_are_the_wiring_hop_by_hop() {
    for scheme in schemes() {
        let mut scenario = Scenario::new("torus:3", scheme, Damage::default(), 1);
        scenario.run_for(SECOND_US);
        let topology = scenario.fabric.topology.clone();
        let mut wiring = Wiring::new();
        for link in topology.links() {
            let (a, b) = ((link.a.0, link.a_port.get()), (link.b.0, link.b_port.get()));
            wiring.extend([(a, b), (b, a)]);
        }
        let hosts = topology.hosts().iter();
        let homes: BTreeMap<u16, (u16, u8)> = hosts
            .map(|host| (host.id.0, (host.switch.0, host.port.get())))
            .collect();
        wiring.extend(homes.values().map(|home| (*home, *home)));
        let of = Traced::InGroup {
            group: GroupId(GROUP),
            origin: HostId(0),
            bytes: None,
        };
        let request = TraceRequest {
            trace: 9,
            attempt: 1,
            of,
            route: None,
        };
        let mut expected = BTreeSet::new();
        let mut copied = false;
        for id in homes.keys() {
            let agent = scenario.fabric.host(*id).agent.as_mut().expect("it runs");
            for way in agent.trace(&request).expect("ways") {
                copied |= way.kind != Kind::Unicast;
                expected.extend(way.to.iter().map(|to| (*id, way.number, to.0)));
            }
            scenario.fabric.run_host(*id);
        }
        scenario.run_for(SECOND_US);
        let mut reached = BTreeSet::new();
        let mut entered = BTreeMap::new();
        for (id, home) in &homes {
            let agent = scenario.fabric.host(*id).agent.as_mut().expect("it runs");
            while let Some(seen) = agent.poll_observation() {
                assert_eq!(
                    seen.records.len(),
                    usize::from(seen.hops),
                    "{scheme:?}: no gap"
                );
                let mut at = homes[&seen.sender.0];
                for record in &seen.records {
                    let here = (record.switch.0, record.ingress_port);
                    assert_eq!(here, at, "{scheme:?}: {seen:?}");
                    if copied {
                        // One copy a link: whoever is reached over a link is so by the same way.
                        let out = (seen.way, record.switch.0, record.egress_port);
                        let before = entered.insert(out, (here, record.hop));
                        assert!(before.is_none_or(|before| before == (here, record.hop)));
                    }
                    at = wiring[&(record.switch.0, record.egress_port)];
                }
                assert_eq!(at, *home, "{scheme:?}: it ends at the host");
                reached.insert((seen.sender.0, seen.way, *id));
            }
        }
        assert!(!expected.is_empty());
        assert_eq!(reached, expected, "{scheme:?}");
    }
}
