//! The simulation of `--example accepted`: closed forms, nothing lost, deadlock seen, and what it
//! has shown.

use crate::blocking;
use crate::cases;
use crate::network;
use crate::options;
use crate::outcome;
use crate::traffic;

use blocking::{ROUTING, SLACK, TRANSIT, WIRE};
use cases::{CASES, Case, Model};
use network::{Network, Paths, Track};
use outcome::Span;
use traffic::{Message, draw, draw_peers};
use wormcast_routing::generate::{Irregular, irregular};
use wormcast_routing::routes::{Algorithm, Share};

const WHOLE: Span = Span {
    warm: 0,
    end: 1 << 40,
};

fn case(name: &str) -> &'static Case {
    CASES.iter().find(|case| case.name == name).expect("a case")
}

fn plan(switches: usize, seed: u64, paths: Paths) -> Network {
    let topology = irregular(&Irregular::of_itb(switches, seed)).unwrap();
    Network::plan(&topology, paths).unwrap()
}

fn message(at: u64, src: u32, dst: u32) -> Message {
    Message {
        at,
        src,
        dst,
        draw: 0,
        turn: 0,
    }
}

/// Hosts and channels by number, one piece a route. Channels into and out of hosts come first.
fn wired(hosts: u32, channels: usize, routes: &[&[u32]]) -> Network {
    let mut network = Network::new(hosts, channels, false);
    for route in routes {
        let (src, dst) = (route[0], route[route.len() - 1] - hosts);
        let pieces = vec![route.to_vec()];
        network.add(src, dst, Share::WHOLE.parts(), Track { pieces });
    }
    network
}

#[test]
fn a_lone_message_takes_what_the_closed_form_says() {
    for paths in Paths::ALL {
        let network = plan(16, 1, paths);
        for case in [case("worm"), case("short"), case("queue"), case("frames")] {
            for (src, dst) in [(0, 1), (0, 63), (17, 40), (62, 5), (33, 9), (50, 21)] {
                let one = message(7, src, dst);
                let pieces = &network.track(&one).pieces;
                let channels = pieces.iter().map(Vec::len).sum::<usize>() as u64;
                let transits = pieces.len() as u64 - 1;
                let switches = channels - pieces.len() as u64;
                let size = u64::from(case.size);
                let bytes = match case.model {
                    // Its last byte follows its head.
                    Model::Blocking { .. } => size - 1,
                    // Its frames follow the first, which is whole at every switch.
                    Model::Queueing { frame, .. } => {
                        // The last is short. On the last channel all follow the first at once.
                        let first = frame.min(case.size);
                        channels * u64::from(first) + u64::from(case.size - first)
                    }
                };
                let closed = bytes + WIRE * channels + ROUTING * switches + TRANSIT * transits;
                let found = case.run(&network, &[one], WHOLE, true);
                assert_eq!(
                    found.latency, closed as f64,
                    "{paths:?} {} {src} {dst}",
                    case.name
                );
            }
        }
    }
}

#[test]
fn a_channel_is_never_idle_while_worms_wait_for_it() {
    // Four hosts on a switch send to a fifth.
    let routes: Vec<Vec<u32>> = (0..4).map(|src| vec![src, 5 + 4]).collect();
    let routes: Vec<&[u32]> = routes.iter().map(Vec::as_slice).collect();
    let network = wired(5, 10, &routes);
    let messages: Vec<Message> = (0..40).map(|number| message(0, number % 4, 4)).collect();
    for (case, first) in [(case("worm"), 0), (case("queue"), 513)] {
        let span = Span {
            warm: first + 2 * WIRE + ROUTING,
            end: first + 2 * WIRE + ROUTING + 40 * 512,
        };
        let found = case.run(&network, &messages, span, false);
        assert_eq!((found.counted, found.left), (40, 0), "{}", case.name);
    }
}

/// A worm that waits two switches on, for the channel to host 3, holds the first channel between
/// switches, or does not hold it; a worm to host 4 wants it. Their latencies together.
fn behind_a_blocked_worm(case: &Case) -> u64 {
    let (first, second) = (10, 11);
    let routes: [&[u32]; 3] = [&[0, first, second, 5 + 3], &[1, 5 + 3], &[2, first, 5 + 4]];
    let network = wired(5, 12, &routes);
    let messages = [message(0, 1, 3), message(0, 0, 3), message(40, 2, 4)];
    let all = case.run(&network, &messages, WHOLE, true);
    assert_eq!((all.counted, all.left), (3, 0));
    (all.latency * 3.0).round() as u64
}

#[test]
fn a_blocked_worm_holds_the_channels_behind_it() {
    // To host 3 first that of host 1, then at once the other.
    let direct = 2 * WIRE + ROUTING + 511;
    let blocked = direct + 512;
    // Where buffers are large the other has the first channel for its 512 bytes and no longer. The
    // head behind it is routed when its tail has left the buffer.
    let tail_leaves = 2 * (WIRE + ROUTING) + 511;
    let behind = tail_leaves + ROUTING + WIRE + 511 - 40;
    let whole = behind_a_blocked_worm(case("whole"));
    assert_eq!(whole, direct + blocked + behind);
    // Else it has the channel until it moves, but for what wires and slack buffers hold.
    let longer = behind_a_blocked_worm(case("worm")) - whole;
    let held = 2 * (u64::from(SLACK) + WIRE);
    assert!((512 - held..512).contains(&longer), "{longer} cycles");
}

#[test]
fn all_messages_arrive_once_under_every_case() {
    let planned = [Algorithm::Osud, Algorithm::Rmit].map(Paths::Planned);
    for paths in planned.into_iter().chain([Paths::First]) {
        let network = plan(8, 3, paths);
        for case in &CASES {
            let peers = draw_peers(network.hosts, case.peers, 3);
            let end = 8 * u64::from(case.size);
            let messages = draw(&peers, 0.9, case.size, end, 3);
            let found = case.run(&network, &messages, Span { warm: 0, end }, true);
            assert_eq!(found.left, 0, "{paths:?} {}", case.name);
            assert_eq!(found.drawn as usize, messages.len());
            assert!(found.counted > 0 && found.counted < found.drawn);
            if paths == Paths::First {
                assert_eq!(found.transit_bytes_max, 0);
            }
        }
    }
}

#[test]
fn a_run_is_the_same_again() {
    let network = plan(4, 2, Paths::Planned(Algorithm::Pit));
    for case in &CASES {
        let peers = draw_peers(network.hosts, case.peers, 2);
        let end = 8 * u64::from(case.size);
        let messages = draw(&peers, 0.5, case.size, end, 2);
        let span = Span { warm: end / 4, end };
        let [one, other] = [(); 2].map(|()| case.run(&network, &messages, span, false));
        assert_eq!(one, other, "{}", case.name);
    }
}

#[test]
fn frames_that_find_a_queue_full_are_sent_again() {
    let routes: Vec<Vec<u32>> = (0..8).map(|src| vec![src, 9 + 8]).collect();
    let routes: Vec<&[u32]> = routes.iter().map(Vec::as_slice).collect();
    let network = wired(9, 18, &routes);
    let messages: Vec<Message> = (0..32).map(|number| message(0, number % 8, 8)).collect();
    let found = case("loss").run(&network, &messages, WHOLE, true);
    assert_eq!((found.counted, found.left), (32, 0));
    assert!(found.lost > 0);
    assert_eq!(case("frames").run(&network, &messages, WHOLE, true).lost, 0);
}

/// Three hosts on a ring of three switches; each sends to the one after the next.
const CLOCKWISE: [&[u32]; 3] = [&[0, 6, 7, 3 + 2], &[1, 7, 8, 3], &[2, 8, 6, 3 + 1]];

#[test]
#[should_panic(expected = "wait in a circle")]
fn worms_that_wait_in_a_circle_are_found() {
    let network = wired(3, 9, &CLOCKWISE);
    let messages = [message(0, 0, 2), message(0, 1, 0), message(0, 2, 1)];
    case("worm").run(&network, &messages, WHOLE, true);
}

#[test]
fn an_in_transit_host_breaks_the_circle() {
    let mut network = Network::new(3, 9, false);
    for route in CLOCKWISE {
        let (src, dst) = (route[0], route[3] - 3);
        let middle = (src + 1) % 3;
        let pieces = vec![
            vec![src, route[1], 3 + middle],
            vec![middle, route[2], 3 + dst],
        ];
        network.add(src, dst, Share::WHOLE.parts(), Track { pieces });
    }
    let messages = [message(0, 0, 2), message(0, 1, 0), message(0, 2, 1)];
    let found = case("worm").run(&network, &messages, WHOLE, true);
    assert_eq!((found.counted, found.left), (3, 0));
    assert!(found.transit_bytes_max >= TRANSIT);
}

#[test]
fn first_paths_are_as_short_as_those_of_osud_and_fill_channels_more() {
    let osud = plan(16, 1, Paths::Planned(Algorithm::Osud));
    let first = plan(16, 1, Paths::First);
    let peers = draw_peers(osud.hosts, u32::MAX, 1);
    for src in 0..osud.hosts {
        assert_eq!(peers[src as usize].len(), 63);
        for &dst in &peers[src as usize] {
            let one = message(0, src, dst);
            let [a, b] = [&osud, &first].map(|network| network.track(&one));
            assert_eq!(a.pieces[0].len(), b.pieces[0].len(), "{src} {dst}");
            assert_eq!(b.pieces.len(), 1);
        }
    }
    // 288 pairs of 64 × 63, as routing/ALGORITHMS.md has it.
    assert!((osud.fullest(&peers) - 288.0 / 63.0).abs() < 1e-9);
    assert!(first.fullest(&peers) > osud.fullest(&peers));
}

/// What rmit accepts over what osud does, when hosts offer nearly all that their links carry.
fn ratio(case: &Case) -> f64 {
    let [osud, rmit] = [Algorithm::Osud, Algorithm::Rmit].map(|algorithm| {
        let network = plan(16, 1, Paths::Planned(algorithm));
        let peers = draw_peers(network.hosts, case.peers, 1);
        let span = Span {
            warm: 10_000,
            end: 40_000,
        };
        let messages = draw(&peers, 0.8, case.size, span.end, 1);
        case.run(&network, &messages, span, false).counted as f64
    });
    rmit / osud
}

#[test]
fn minimal_routes_gain_more_where_links_block() {
    let [worm, stream] = ["worm", "stream"].map(|name| ratio(case(name)));
    assert!(worm > 1.2, "{worm}");
    assert!((1.0..1.15).contains(&stream), "{stream}");
}

#[test]
fn options_are_checked() {
    let read = |line: &str| options::read(line.split_whitespace().map(String::from));
    let options =
        read("--switches 16 32 --networks 2 --seed 9 --loads 0.1 0.2 --cases worm").unwrap();
    assert_eq!((options.switches, options.networks), (vec![16, 32], 2));
    assert_eq!((options.seed, options.loads), (9, vec![0.1, 0.2]));
    assert_eq!((options.cases.len(), options.cases[0].name), (1, "worm"));
    assert_eq!((options.algorithms.len(), options.lengths), (4, 256));
    for (line, reason) in [
        ("--switches 1", "--switches: 1 is no number from 2 to 256"),
        ("--switches x", "--switches: x is no number from 2 to 256"),
        ("--loads 0", "--loads: 0 is no number from 0.001 to 1"),
        (
            "--loads 0.2 0.1",
            "--loads: each load must be above the one before",
        ),
        ("--seed", "--seed needs a value"),
        ("--seed 1 2", "--seed takes one value, not 2"),
        (
            "--algorithms osud best",
            "--algorithms: there is no algorithm best; there are osud, omit, rmit, rrmit, rrmit-min, first",
        ),
        ("--sizes 1", "there is no --sizes; --help names the options"),
        ("16", "there is no 16; --help names the options"),
    ] {
        assert_eq!(read(line).err().as_deref(), Some(reason), "{line}");
    }
    assert!(
        read("--cases none")
            .err()
            .unwrap()
            .contains("worm, short, whole")
    );
    for case in &CASES {
        assert!(options::help().contains(case.meaning));
    }
}
