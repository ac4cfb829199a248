//! Replicated frames, lossy frames, marks of congestion.

use super::lossless_lab::worm::worm;
use super::network::{Network, end, pfc, rate};
use wormcast_switch_flow::PrioritySet;
use wormcast_switch_pipeline::{PortId, Replica};

const WORM_CE: u8 = 1 << 4;

/// The same worm as a BROADCAST that has reached the root.
fn broadcast(mut frame: Vec<u8>) -> Vec<u8> {
    frame[14] = 0x12;
    // The header's sum has grown by 0x0200, so its complement has shrunk by it.
    let checksum = u16::from_be_bytes([frame[24], frame[25]]);
    let (mut less, borrow) = checksum.overflowing_sub(0x0200);
    less -= u16::from(borrow);
    frame[24..26].copy_from_slice(&less.to_be_bytes());
    frame
}

/// A frame counts until its last copy has left, and once.
#[test]
fn a_replicated_frame_is_held_until_its_last_copy_leaves() {
    let mut network = Network::new(1, &[], &[(0, 0), (0, 1), (0, 2)], |_, _| ());
    let group: Vec<Replica> = [1, 2]
        .map(|port| Replica {
            port: PortId(port),
            instance: 1,
        })
        .to_vec();
    let pipeline = network.fabric.switch(0).pipeline().unwrap();
    pipeline.insert_multicast_group(1, &group).unwrap();
    assert!(network.fabric.send(end(0, 1), &pfc(u16::MAX)));
    network.run(100);
    let frame = broadcast(worm(0, false, &[], 0, 1_000));
    assert!(network.fabric.send(end(0, 0), &frame));
    network.run(1_000);
    assert_eq!(
        (network.hosts[1].1.received(), network.hosts[2].1.received()),
        (0, 1)
    );
    let lossless = network.lossless(0);
    assert_eq!(lossless.held_bytes, 1_000);
    let of_source = lossless
        .queues
        .iter()
        .find(|queue| queue.port == 0 && queue.priority == 3);
    assert_eq!(of_source.unwrap().held_bytes, 1_000);
    assert!(network.fabric.send(end(0, 1), &pfc(0)));
    network.run(1_000);
    assert_eq!(
        (network.hosts[1].1.received(), network.hosts[2].1.received()),
        (1, 1)
    );
    assert_eq!(network.lossless(0).held_bytes, 0);
}

/// Lossy frames drop their tail as ever and leave lossless ones alone.
#[test]
fn lossy_frames_are_dropped_and_lossless_ones_are_not() {
    let mut network = Network::new(1, &[], &[(0, 0), (0, 1), (0, 2)], |_, settings| {
        // Class 2 is lossy here.
        settings.priorities = PrioritySet::of(3);
        let link = wormcast_switch_flow::LinkSettings {
            rate: rate("100mbit"),
            ..settings.link
        };
        settings.links.insert(2, link);
    });
    network.add_flow(0, &[2], false, 1_000);
    network.add_flow(1, &[2], true, 1_000);
    network.run(100_000);
    network.stop();
    network.run(100_000);
    let receiver = &network.hosts[2].1;
    let lossless = receiver.arrived[&(0, false)];
    let lossy = receiver.arrived[&(1, true)];
    assert_eq!(
        (lossless.lost, lossless.frames),
        (0, network.hosts[0].1.sent)
    );
    assert!(lossy.lost > 1_000, "{lossy:?}");
    let shares = lossless.frames as f64 / lossy.frames as f64;
    assert!((0.7..1.4).contains(&shares), "{shares}");
}

/// Frames that leave a queue behind are marked, and their checksum stays right: the next
/// switch takes them.
#[test]
fn long_queues_mark_worms() {
    for (threshold, marked) in [(Some(5), true), (None, false)] {
        let mut network = Network::lossy(threshold);
        // Less than the threshold of the worm program itself, 32 packets.
        for number in 0..20 {
            assert!(
                network
                    .fabric
                    .send(end(0, 0), &worm(0, false, &[15, 0], number, 1_000))
            );
        }
        let mut marks = 0;
        let mut frames = 0;
        for _ in 0..10_000 {
            network.fabric.step(10);
            network.fabric.receive(end(1, 0), |frame| {
                frames += 1;
                marks += u32::from(frame[15] & WORM_CE != 0);
            });
        }
        assert_eq!(frames, 20);
        assert_eq!(marks > 0, marked, "{marks}");
        let snapshot = network.fabric.switch(0).snapshot();
        let counted: u64 = snapshot.ports.iter().map(|port| port.ecn_marked).sum();
        assert_eq!(counted, u64::from(marks));
    }
}
