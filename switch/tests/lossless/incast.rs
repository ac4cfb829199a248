//! Many senders at full rate, one receiver.

use super::network::{Network, rate};

const SENDERS: u16 = 7;

/// Seven senders at switch 0, one receiver at switch 1, whose link is half as fast.
fn incast(change: impl Fn(usize, &mut wormcast_switch_flow::LosslessSettings)) -> Network {
    let mut hosts: Vec<(usize, u16)> = (0..SENDERS).map(|port| (0, port)).collect();
    hosts.push((1, 0));
    let slow = |number: usize, settings: &mut wormcast_switch_flow::LosslessSettings| {
        if number == 1 {
            let link = wormcast_switch_flow::LinkSettings {
                rate: rate("500mbit"),
                ..settings.link
            };
            settings.links.insert(0, link);
        }
        change(number, settings);
    };
    Network::new(2, &[((0, 15), (1, 15))], &hosts, slow)
}

/// Frames each sender got through, from the receiver's view.
fn shares(network: &Network) -> Vec<u64> {
    let receiver = &network.hosts[usize::from(SENDERS)].1;
    receiver
        .arrived
        .values()
        .map(|arrived| arrived.frames)
        .collect()
}

#[test]
fn seven_to_one_lose_nothing_and_share() {
    let mut network = incast(|_, _| ());
    for sender in 0..SENDERS {
        network.add_flow(usize::from(sender), &[15, 0], false, 1_500);
    }
    network.run(300_000);
    let shares = shares(&network);
    let mean = shares.iter().sum::<u64>() as f64 / f64::from(SENDERS);
    // 500 Mbit/s are 41 frames of 1524 bytes on the wire in a millisecond.
    let expected = 300.0 * 500_000.0 / (1_524.0 * 8.0);
    assert!(
        (mean * 7.0 / expected - 1.0).abs() < 0.05,
        "{mean} {expected}"
    );
    for share in &shares {
        assert!((*share as f64 / mean - 1.0).abs() <= 0.1, "{shares:?}");
    }
    assert!(
        network
            .lossless(1)
            .ports
            .iter()
            .any(|port| port.port == 15 && port.counts.pauses_sent > 0)
    );
    assert!(
        network
            .lossless(0)
            .ports
            .iter()
            .all(|port| port.port == 15 || port.counts.pauses_sent > 0 || port.port > 6)
    );
    network.stop();
    network.run(400_000);
    assert_eq!(network.assert_lossless(2), 0);
}

/// Short frames, hosts that read late, switches that are kept from running: the headroom
/// is made for that.
#[test]
fn late_readers_lose_nothing() {
    let response_us = 2_000;
    let mut network = incast(|_, settings| settings.response_us = Some(response_us));
    for sender in 0..SENDERS {
        network.add_flow(
            usize::from(sender),
            &[15, 0],
            sender % 2 == 0,
            90 + 200 * usize::from(sender),
        );
        network.hosts[usize::from(sender)].1.reaction_us = response_us - 20;
    }
    network.fabric.slow_down(0, response_us);
    network.fabric.slow_down(1, response_us);
    network.run(100_000);
    network.stop();
    network.run(700_000);
    assert_eq!(network.assert_lossless(2), 0);
}

/// Without headroom the same frames find no room: it is the headroom that has it. They
/// are left in front of the switch, so that nothing is lost before that is full too.
#[test]
fn without_headroom_frames_find_no_room() {
    let mut network = incast(|_, settings| {
        settings.thresholds.headroom = Some(0);
        settings.response_us = Some(2_000);
    });
    for sender in 0..SENDERS {
        network.add_flow(usize::from(sender), &[15, 0], false, 1_500);
        network.hosts[usize::from(sender)].1.reaction_us = 1_980;
    }
    network.run(50_000);
    network.stop();
    network.run(700_000);
    assert!(network.assert_lossless(2) > 0);
}

/// Lossless frames of class 1 go to a receiver that is slow; class 2 goes elsewhere, at
/// its full rate, over the same link.
#[test]
fn a_paused_priority_slows_no_other() {
    let mut network = Network::new(
        2,
        &[((0, 15), (1, 15))],
        &[(0, 0), (1, 0), (1, 1)],
        |number, settings| {
            if number == 1 {
                let link = wormcast_switch_flow::LinkSettings {
                    rate: rate("10mbit"),
                    ..settings.link
                };
                settings.links.insert(0, link);
            }
        },
    );
    network.add_flow(0, &[15, 0], false, 1_500);
    network.add_flow(0, &[15, 1], true, 1_500);
    network.run(300_000);
    let slow = network.hosts[1].1.received();
    let fast = network.hosts[2].1.received();
    let full = 300.0 * 1e6 / (1_524.0 * 8.0);
    assert!(slow < 300, "{slow}");
    assert!(fast as f64 > 0.9 * full, "{fast} of {full}");
    let queues = network.lossless(0).queues;
    assert!(
        queues
            .iter()
            .any(|queue| queue.port == 15 && queue.priority == 3 && queue.paused)
    );
    assert!(
        queues
            .iter()
            .all(|queue| queue.priority != 4 || !queue.paused)
    );
}
