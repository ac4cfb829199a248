//! WORM §8.2, Fig. 12 and 13: all members send along the circuit at once, with buffers so small that they
//! fill. Without buffer classes packets are lost at the hosts; with them none is.

use wormcast_fabric_tests::controller::{self, CIRCUIT};
use wormcast_fabric_tests::link::Damage;
use wormcast_fabric_tests::scenario::{GROUP, Scenario, engine_config, link};
use wormcast_protocol::Reject;

const SECOND_US: u64 = 1_000_000;
const BYTES: u64 = 400_000;
/// Packets for which each buffer class has room.
const PACKETS: usize = 16;

/// What hosts counted, all together.
#[derive(Debug, Default)]
struct Counted {
    /// DATA packets that came, all of them.
    received: u64,
    /// Packets refused, and NACKs that said so.
    refused: u64,
    nacks: u64,
    /// Packets whose payload was dropped for good.
    lost: u64,
    /// Bytes that readers got.
    delivered: u64,
}

/// So many members of the testbed send at once.
fn send_at_once(sources: u16, unclassed: bool) -> Counted {
    let mut group = controller::group(GROUP, CIRCUIT, 0..8);
    // Readers look whether all bytes are there.
    group.sink = unclassed;
    let groups = vec![group];
    let mut config = engine_config(1);
    config.limits.pool_class1_bytes = PACKETS * (config.mtu + 64);
    config.limits.pool_class2_bytes = PACKETS * (config.mtu + 64);
    config.limits.unclassed = unclassed;
    let mut scenario = Scenario::testbed(groups, link(Damage::default()), config, 1);
    for source in 0..sources {
        scenario.write(source, &[BYTES]);
    }
    for source in 0..sources {
        scenario.finish(source, 120 * SECOND_US);
        if !unclassed {
            scenario.check_delivered(source, 1, &[]);
        }
    }
    let mut counted = Counted::default();
    for host in scenario.fabric.hosts.values() {
        let engine = host.agent.as_ref().and_then(|agent| agent.engine());
        let engine = engine.expect("it runs");
        counted.refused += engine.counters().rejected(Reject::NoBuffer);
        counted.lost += engine.counters().rejected(Reject::Overflow);
        for (_, _, statistics) in engine.statistics() {
            counted.received += statistics.data_received_packets;
            counted.nacks += statistics.nacks_sent;
            counted.delivered += statistics.delivered_bytes;
        }
    }
    let dropped: u64 = (scenario.fabric.links.values())
        .map(|link| link.statistics.queue_drops)
        .sum();
    println!("{sources} sources, unclassed {unclassed}: {counted:?}");
    assert_eq!(dropped, 0, "links lose nothing");
    counted
}

#[test]
fn without_buffer_classes_packets_are_lost_and_with_them_none() {
    let all = 8 * 7 * BYTES;
    let without = send_at_once(8, true);
    assert!(without.lost * 10 > without.received, "{without:?}");
    assert_eq!((without.refused, without.nacks), (0, 0), "nobody is told");
    assert!(without.delivered < all, "lost for good: {without:?}");
    let with = send_at_once(8, false);
    assert_eq!((with.lost, with.delivered), (0, all), "{with:?}");
    assert!(with.nacks > 0, "buffers filled: {with:?}");
}

/// As in the paper: loss counts only where hosts originate packets as well as forward them.
#[test]
fn of_one_source_hardly_anything_is_lost_without_buffer_classes_either() {
    let without = send_at_once(1, true);
    assert!(without.lost * 100 < without.received, "{without:?}");
    let with = send_at_once(1, false);
    assert_eq!((with.lost, with.delivered), (0, 7 * BYTES), "{with:?}");
}
