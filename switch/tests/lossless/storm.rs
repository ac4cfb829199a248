//! A neighbour that never lets go.

use super::lossless_lab::worm::worm;
use super::network::{Network, end, pfc};
use wormcast_switch_flow::{PauseFrame, WatchdogAction, WatchdogSettings};

const STORM_US: u64 = 100_000;

fn network(action: WatchdogAction) -> Network {
    Network::new(1, &[], &[(0, 0), (0, 1), (0, 2)], |_, settings| {
        settings.watchdog = Some(WatchdogSettings {
            detect_us: 20_000,
            action,
            recover_us: 30_000,
        });
    })
}

/// Host 1 pauses priority 3 of its port again and again; host 0 sends to it and, with
/// class 2, to host 2.
fn storm(action: WatchdogAction) -> Network {
    let mut network = network(action);
    network.add_flow(0, &[1], false, 1_500);
    network.add_flow(0, &[2], true, 1_500);
    for _ in 0..STORM_US / 10_000 {
        assert!(network.fabric.send(end(0, 1), &pfc(u16::MAX)));
        network.run(10_000);
    }
    network
}

#[test]
fn a_storm_is_found_dropped_reported_and_got_over() {
    let mut network = storm(WatchdogAction::Drop);
    let snapshot = network.lossless(0);
    let [storm] = &snapshot.storms[..] else {
        panic!("{:?}", snapshot.storms)
    };
    assert_eq!(
        (storm.port, storm.priority, storm.behind.as_slice()),
        (1, 3, [0].as_slice())
    );
    assert_eq!((storm.action.as_str(), storm.recovered_us), ("drop", None));
    assert!((20_000..26_000).contains(&storm.found_us), "{storm:?}");
    assert!(storm.waiting > 10);
    let port = &snapshot.ports[1];
    assert!(
        port.counts.storms == 1 && port.counts.storm_drops > 1_000,
        "{port:?}"
    );
    assert!(
        network.hosts[2].1.received() > 3_000,
        "the other class goes on"
    );
    // The pause ends, the storm is over a while later, and frames go on.
    let before = network.hosts[1].1.received();
    network.run(20_000);
    network.run(100_000);
    let snapshot = network.lossless(0);
    assert!(snapshot.storms[0].recovered_us.is_some());
    assert!(!snapshot.queues.iter().any(|queue| queue.storm));
    assert!(network.hosts[1].1.received() > before + 500);
}

#[test]
fn a_storm_can_be_ignored() {
    let mut network = storm(WatchdogAction::Forward);
    let snapshot = network.lossless(0);
    assert_eq!(snapshot.storms[0].action, "forward");
    assert_eq!(snapshot.ports[1].counts.storm_drops, 0);
    assert!(
        network.hosts[1].1.received() > 2_000,
        "sent although paused"
    );
    network.stop();
    network.run(300_000);
    assert_eq!(network.assert_lossless(1), 0);
}

/// PAUSE of IEEE 802.3x stops everything, and 0 starts it again.
#[test]
fn pause_frames_are_honoured() {
    let mut network = network(WatchdogAction::Drop);
    let pause = |quanta| PauseFrame::Pause { quanta }.to_bytes([0; 6]);
    assert!(network.fabric.send(end(0, 1), &pause(u16::MAX)));
    for class2 in [false, true] {
        assert!(
            network
                .fabric
                .send(end(0, 0), &worm(0, class2, &[1], 0, 100))
        );
    }
    network.run(1_000);
    assert_eq!(network.hosts[1].1.received(), 0);
    assert!(network.fabric.send(end(0, 1), &pause(0)));
    network.run(1_000);
    assert_eq!(network.hosts[1].1.received(), 2);
}
