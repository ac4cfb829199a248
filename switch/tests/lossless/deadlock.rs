//! Rings of switches that wait for one another.

use super::network::Network;
use wormcast_switch_flow::cycle::RingText;

/// Four switches in a ring: port 1 leads to the next, port 2 to the one before, port 0 to
/// a host.
fn ring() -> Network {
    let links: Vec<_> = (0..4).map(|at| ((at, 1), ((at + 1) % 4, 2))).collect();
    let hosts: Vec<_> = (0..4).map(|at| (at, 0)).collect();
    Network::new(4, &links, &hosts, |_, _| ())
}

/// Everybody sends twice clockwise: every link waits for the next.
#[test]
fn routes_around_a_ring_deadlock_and_the_ring_is_named() {
    let mut network = ring();
    for host in 0..4 {
        network.add_flow(host, &[1, 1, 1, 0], false, 1_500);
    }
    network.run(100_000);
    let received = network.received();
    network.run(100_000);
    assert_eq!(network.received(), received, "nothing moves any more");
    let rings = network.fabric.rings();
    assert_eq!(rings.len(), 1);
    assert_eq!(
        RingText(&rings[0]).to_string(),
        "switch 1 port 1 priority 3 waits for switch 2 port 1 priority 3 waits for switch 3 port 1 \
         priority 3 waits for switch 4 port 1 priority 3 waits for switch 1 port 1 priority 3"
    );
    // No frame was lost; they wait.
    for switch in 0..4 {
        assert!(
            network
                .lossless(switch)
                .ports
                .iter()
                .all(|port| port.counts.headroom_full == 0)
        );
    }
}

/// The same traffic on legal routes: nobody crosses the link from switch 3 to switch 0,
/// so no ring can close (up*/down* with that link left out).
#[test]
fn the_same_traffic_on_legal_routes_goes_through() {
    let mut network = ring();
    network.add_flow(0, &[1, 1, 1, 0], false, 1_500);
    network.add_flow(1, &[2, 0], false, 1_500);
    network.add_flow(2, &[2, 2, 0], false, 1_500);
    network.add_flow(3, &[2, 2, 2, 0], false, 1_500);
    for _ in 0..4 {
        network.run(50_000);
        assert_eq!(network.fabric.rings(), Vec::<Vec<_>>::new());
    }
    network.stop();
    network.run(300_000);
    assert_eq!(network.assert_lossless(4), 0);
}

/// The routes around the ring again, but each is cut where it would close the ring: the
/// host there takes the worm out and sends it on (ITB §III).
#[test]
fn the_same_traffic_with_in_transit_ejection_goes_through() {
    let mut network = ring();
    // Over the host at switch 0, whoever would pass it.
    network.add_flow(0, &[1, 1, 1, 0], false, 1_500);
    network.add_flow(1, &[1, 1, 1, 0], false, 1_500);
    network.add_flow(2, &[1, 1, 0, 1, 0], false, 1_500);
    network.add_flow(3, &[1, 0, 1, 1, 0], false, 1_500);
    for _ in 0..4 {
        network.run(50_000);
        assert_eq!(network.fabric.rings(), Vec::<Vec<_>>::new());
    }
    network.stop();
    network.run(500_000);
    assert_eq!(network.assert_lossless(4), 0);
}
