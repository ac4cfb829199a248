//! Two switches in a row, hosts that honour pauses, and neighbours that pause as they like:
//! every worm arrives once and in order, and no buffer holds more than it has.

use super::super::draws::Draws;
use super::super::network::Network;
use wormcast_switch_flow::headroom::LinkSettings;
use wormcast_switch_flow::{PRIORITIES, PauseFrame, PrioritySet};

/// Steps of one input.
const STEPS_MAX: usize = 16;

/// Longest time of one step, µs.
const STEP_US_MAX: u64 = 1_000;

/// How often there is time for what is left to arrive: pauses of the longest time end in it.
const DRAINS: usize = 400;
const DRAIN_US: u64 = 5_000;

/// Rates at which a link in memory has room for the shortest frames of a response time.
const RATES: [&str; 3] = ["1gbit", "500mbit", "100mbit"];

/// Senders at the first switch.
const SENDERS: u16 = 3;

/// Receivers at the second one.
const RECEIVERS: u16 = 2;

pub fn run(draws: &mut Draws<'_>) {
    let settings = super::settings(draws, &RATES);
    let response_us = [100, 300, 800][draws.below(3)];
    let slow = super::rate(draws, &RATES);
    let hosts: Vec<(usize, u16)> = (0..SENDERS)
        .map(|port| (0, port))
        .chain((0..RECEIVERS).map(|port| (1, port)))
        .collect();
    let mut network = Network::new(2, &[((0, 15), (1, 15))], &hosts, |number, of_switch| {
        *of_switch = settings.clone();
        of_switch.response_us = Some(response_us);
        if number == 1 {
            let link = LinkSettings {
                rate: slow,
                ..settings.link
            };
            of_switch.links.insert(0, link);
        }
    });
    for sender in 0..usize::from(SENDERS) {
        network.hosts[sender].1.reaction_us = u64::from(draws.byte()) % (response_us - 20);
    }
    for _ in 0..STEPS_MAX {
        if draws.is_empty() {
            break;
        }
        step(&mut network, response_us, draws);
    }
    network.stop();
    for _ in 0..DRAINS {
        network.run(DRAIN_US);
        if network.sent() == network.received() && network.lossless(0).held_bytes == 0 {
            break;
        }
    }
    check(&mut network);
}

fn step(network: &mut Network, response_us: u64, draws: &mut Draws<'_>) {
    let host = draws.below(network.hosts.len());
    match draws.below(8) {
        0..=2 => network.run(u64::from(draws.half()) % STEP_US_MAX),
        3 | 4 => {
            let route = [15, draws.byte() % RECEIVERS as u8];
            let length = 60 + usize::from(draws.half()) % 1_440;
            network.add_flow(host % usize::from(SENDERS), &route, draws.one_in(2), length);
        }
        5 => {
            let mut quanta = [0; PRIORITIES];
            quanta.iter_mut().for_each(|quanta| *quanta = draws.half());
            let frame = if draws.one_in(4) {
                PauseFrame::Pause { quanta: quanta[0] }
            } else {
                PauseFrame::Pfc {
                    priorities: PrioritySet(draws.byte()),
                    quanta,
                }
            };
            send(network, host, &frame.to_bytes([2, 0, 0, 0, 0, 1]));
        }
        6 => {
            // For the link itself, and not for anybody behind it, whatever it says.
            let mut frame = draws.block(80).to_vec();
            frame.resize(frame.len().max(14), 0);
            frame[12..14].copy_from_slice(&[0x88, 0x08]);
            send(network, host, &frame);
        }
        _ => network
            .fabric
            .slow_down(host % 2, u64::from(draws.byte()) % response_us),
    }
}

fn send(network: &mut Network, host: usize, frame: &[u8]) {
    let (end, _) = network.hosts[host];
    assert!(
        network.fabric.send(end, frame),
        "the link of a host is full"
    );
}

fn check(network: &mut Network) {
    for switch in 0..2 {
        let lossless = network.lossless(switch);
        for port in &lossless.ports {
            let counts = &port.counts;
            assert_eq!(
                (counts.headroom_full, counts.storm_drops),
                (0, 0),
                "{port:?}"
            );
        }
        assert!(lossless.held_bytes_max <= lossless.buffer_bytes);
        for queue in &lossless.queues {
            assert!(queue.held_bytes_max <= queue.limit_bytes, "{queue:?}");
        }
        assert_eq!(lossless.held_bytes, 0, "switch {switch} still holds frames");
    }
    assert_eq!(network.sent(), network.received());
    // A sender numbers its worms to both receivers together, so that each jumps over some.
    for (end, host) in &network.hosts {
        let ordered = host.arrived.values().all(|arrived| arrived.misordered == 0);
        assert!(ordered, "worms to {end:?}: {:?}", host.arrived);
    }
}
