//! Frames that are ready go as trains, in their order, and a train is never left without its next frame.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;
use wormcast_wire::worm::{Header, flags};
use wormcast_wire::{BufferClass, ETHERTYPE_HOST_PDU, HostId};

const WHOLE: u8 = flags::HEAD | flags::TAIL;
const BUFFER_BYTES: usize = 400;

/// A worm of one frame of this host that may be in a train.
fn worm(sequence: u16, kind: Kind, route: &[u8], payload: usize) -> Vec<u8> {
    let header = Header {
        kind,
        flags: WHOLE,
        hops: 0,
        source: HostId(5),
        sequence,
        next: ETHERTYPE_HOST_PDU,
    };
    let mut frame = vec![0; ETHERNET_LENGTH + worm::HEADER_LENGTH + route.len() + payload];
    let at = worm::encode(&mut frame, [2; 6], &header, route);
    frame[at..].fill(sequence as u8);
    frame
}

/// What an engine has ready.
#[derive(Default)]
struct Ready {
    frames: VecDeque<(Vec<u8>, usize)>,
    asked: usize,
}

impl Ready {
    fn of(frames: impl IntoIterator<Item = Vec<u8>>) -> Ready {
        Ready {
            frames: frames
                .into_iter()
                .map(|frame| (frame, BUFFER_BYTES))
                .collect(),
            asked: 0,
        }
    }

    fn poll(&mut self, buf: &mut [u8]) -> Option<Transmit> {
        self.asked += 1;
        let (frame, train_bytes_max) = self.frames.pop_front()?;
        buf[..frame.len()].copy_from_slice(&frame);
        Some(Transmit {
            length: frame.len(),
            class: BufferClass::One,
            train_bytes_max,
        })
    }
}

fn next(trains: &mut Trains, ready: &mut Ready, others_wait: bool) -> Option<Vec<u8>> {
    let mut buf = [0xEE; BUFFER_BYTES];
    let length = trains.next(others_wait, |buf| ready.poll(buf), &mut buf)?;
    Some(buf[..length].to_vec())
}

fn all(trains: &mut Trains, ready: &mut Ready) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| next(trains, ready, false)).collect()
}

fn with_frames_most(frames: u16) -> Trains {
    let mut trains = Trains::default();
    trains.set_frames_most(frames, frames);
    trains
}

/// Sequence, position in its train, and which of HEAD and TAIL a frame has.
fn places(frames: &[Vec<u8>]) -> Vec<(u16, Option<u16>, u8)> {
    let place = |frame: &Vec<u8>| {
        let worm = worm::decode(frame).expect("a sound worm");
        let position = worm.train.map(|train| train.position);
        (worm.header.sequence, position, worm.header.flags & WHOLE)
    };
    frames.iter().map(place).collect()
}

#[test]
fn without_trains_each_frame_goes_as_it_is_and_nothing_is_asked_ahead() {
    for frames_most in [0, 1] {
        let mut trains = with_frames_most(frames_most);
        let frames: Vec<Vec<u8>> = (0..3).map(|n| worm(n, Kind::Unicast, &[1], 50)).collect();
        let mut ready = Ready::of(frames.clone());
        assert_eq!(
            next(&mut trains, &mut ready, false).as_ref(),
            Some(&frames[0])
        );
        assert_eq!(ready.asked, 1);
        assert_eq!(all(&mut trains, &mut ready), frames[1..]);
        assert_eq!(trains.counters(), TrainCounters::default());
    }
}

#[test]
fn what_is_ready_for_one_way_is_one_train() {
    for kind in [Kind::Unicast, Kind::Tree] {
        let mut trains = with_frames_most(8);
        let mut ready = Ready::of((10..13).map(|n| worm(n, kind, &[1, 2], 50)));
        let frames = all(&mut trains, &mut ready);
        let expected = [
            (10, Some(0), flags::HEAD),
            (10, Some(1), 0),
            (10, Some(2), flags::TAIL),
        ];
        assert_eq!(places(&frames), expected);
        let route = |frame: usize| worm::decode(&frames[frame]).expect("a worm").route.to_vec();
        assert_eq!([route(0), route(1), route(2)], [vec![1, 2], vec![], vec![]]);
        let counters = trains.counters();
        assert_eq!((counters.sent, counters.frames), (1, 3));
        assert!(!trains.is_open() && trains.poll_timeout().is_none());
    }
}

#[test]
fn one_frame_that_is_ready_alone_goes_at_once_and_alone() {
    let mut trains = with_frames_most(8);
    for sequence in 0..3 {
        let frame = worm(sequence, Kind::Unicast, &[1, 2], 50);
        let mut ready = Ready::of([frame.clone()]);
        assert_eq!(all(&mut trains, &mut ready), [frame]);
    }
    assert_eq!(trains.counters().frames, 0);
}

/// On its way any frame may become the head of a fragment, with the route in front.
#[test]
fn each_frame_has_room_for_the_route_of_its_train() {
    let route = [3; 9];
    let least = ETHERNET_LENGTH + worm::HEADER_LENGTH + TRAIN_LENGTH + route.len();
    for payload in BUFFER_BYTES - least - 20..BUFFER_BYTES - least + 20 {
        let mut trains = with_frames_most(8);
        let payloads = [50, payload, 50, payload];
        let frames = (0..)
            .zip(payloads)
            .map(|(n, payload)| worm(n, Kind::Tree, &route, payload));
        let frames: Vec<Vec<u8>> = frames.collect();
        let mut ready = Ready::of(frames.iter().cloned());
        let mut in_trains = 0;
        let mut buf = [0; 2 * BUFFER_BYTES];
        while let Some(length) = trains.next(false, |buf| ready.poll(buf), &mut buf) {
            let worm = worm::decode(&buf[..length]).expect("a sound worm");
            if worm.train.is_some() {
                in_trains += 1;
                assert!(least + worm.payload.len() <= BUFFER_BYTES, "{payload}");
            }
        }
        let fits = least + payload <= BUFFER_BYTES;
        assert_eq!(in_trains, if fits { 4 } else { 0 }, "{payload}");
    }
}

#[test]
fn another_way_or_kind_begins_another_worm() {
    let mut trains = with_frames_most(8);
    let mut ready = Ready::of([
        worm(1, Kind::Unicast, &[1], 50),
        worm(2, Kind::Unicast, &[1], 50),
        worm(3, Kind::Unicast, &[2], 50),
        worm(4, Kind::Tree, &[2], 50),
        worm(5, Kind::Group, &[0, 2], 50),
        worm(6, Kind::Group, &[0, 2], 50),
    ]);
    ready.frames[4].1 = 0;
    ready.frames[5].1 = 0;
    let expected = [
        (1, Some(0), flags::HEAD),
        (1, Some(1), flags::TAIL),
        (3, None, WHOLE),
        (4, None, WHOLE),
        (5, None, WHOLE),
        (6, None, WHOLE),
    ];
    assert_eq!(places(&all(&mut trains, &mut ready)), expected);
}

#[test]
fn what_is_to_be_a_worm_of_its_own_or_too_long_for_a_train_header_is_in_none() {
    let mut trains = with_frames_most(8);
    let mut ready = Ready::of((0..5).map(|n| worm(n, Kind::Unicast, &[1], 50)));
    ready.frames[1].1 = 0;
    let length = ready.frames[3].0.len();
    ready.frames[3].1 = length + TRAIN_LENGTH - 1;
    let alone = (0..5).map(|sequence| (sequence, None, WHOLE));
    assert_eq!(
        places(&all(&mut trains, &mut ready)),
        alone.collect::<Vec<_>>()
    );
}

#[test]
fn a_train_has_no_more_frames_than_the_plan_says() {
    let mut trains = with_frames_most(4);
    let mut ready = Ready::of((0..9).map(|n| worm(n, Kind::Unicast, &[1], 50)));
    let heads: Vec<(u16, Option<u16>)> = places(&all(&mut trains, &mut ready))
        .into_iter()
        .map(|(sequence, position, _)| (sequence, position))
        .collect();
    let train = |sequence| (0..4).map(move |position| (sequence, Some(position)));
    let expected: Vec<_> = train(0).chain(train(4)).chain([(8, None)]).collect();
    assert_eq!(heads, expected);
    trains.set_frames_most(u16::MAX, u16::MAX);
    let mut ready = Ready::of((0..100).map(|n| worm(n, Kind::Unicast, &[1], 50)));
    all(&mut trains, &mut ready);
    assert_eq!(
        trains.counters().sent,
        4,
        "the bound of the program holds too"
    );
}

/// Where switches hold channels for UNICAST worms alone, other trains are dropped.
#[test]
fn kinds_have_bounds_of_their_own() {
    let mut trains = Trains::default();
    trains.set_frames_most(3, 1);
    let kinds = [[Kind::Unicast; 3], [Kind::Tree; 3]].concat();
    let of = |(sequence, kind)| worm(sequence, kind, &[1], 50);
    let mut ready = Ready::of((0..).zip(kinds).map(of));
    let alone = (3..6).map(|sequence| (sequence, None, WHOLE));
    let expected: Vec<_> = (0..3)
        .zip([flags::HEAD, 0, flags::TAIL])
        .map(|(position, flags)| (0, Some(position), flags))
        .chain(alone)
        .collect();
    assert_eq!(places(&all(&mut trains, &mut ready)), expected);
}

#[test]
fn where_others_wait_a_train_ends_and_nothing_is_kept() {
    let mut trains = with_frames_most(8);
    let mut ready = Ready::of((0..4).map(|n| worm(n, Kind::Unicast, &[1], 50)));
    let mut frames = Vec::new();
    for others_wait in [false, true, true, false] {
        frames.extend(next(&mut trains, &mut ready, others_wait));
    }
    let expected = [
        (0, Some(0), flags::HEAD),
        (0, Some(1), flags::TAIL),
        (2, None, WHOLE),
        (3, None, WHOLE),
    ];
    assert_eq!(places(&frames), expected);
}

#[test]
fn what_is_left_of_a_worm_that_was_reset_has_a_head_of_its_own() {
    let mut trains = with_frames_most(8);
    let mut ready = Ready::of((20..25).map(|n| worm(n, Kind::Unicast, &[1, 2], 50)));
    let mut frames = Vec::new();
    for reset in [None, Some(9), Some(20), Some(20), None] {
        frames.extend(next(&mut trains, &mut ready, false));
        if let Some(sequence) = reset {
            trains.reset(sequence);
        }
    }
    let expected = [
        (20, Some(0), flags::HEAD),
        (20, Some(1), 0),
        (20, Some(2), 0),
        (23, Some(0), flags::HEAD),
        (23, Some(1), flags::TAIL),
    ];
    assert_eq!(places(&frames), expected);
    assert_eq!(worm::decode(&frames[3]).expect("a worm").route, [1, 2]);
}

#[test]
fn a_plan_without_trains_ends_the_open_one_with_its_next_frame() {
    let mut trains = with_frames_most(8);
    let mut ready = Ready::of((0..4).map(|n| worm(n, Kind::Unicast, &[1], 50)));
    let mut frames: Vec<Vec<u8>> = next(&mut trains, &mut ready, false).into_iter().collect();
    assert_eq!(
        trains.poll_timeout(),
        Some(Instant::ZERO),
        "its next frame is here"
    );
    trains.set_frames_most(1, 1);
    frames.extend(all(&mut trains, &mut ready));
    let expected = [
        (0, Some(0), flags::HEAD),
        (0, Some(1), flags::TAIL),
        (2, None, WHOLE),
        (3, None, WHOLE),
    ];
    assert_eq!(places(&frames), expected);
}

fn train(source: u16, sequence: u16, frames: u16, route: &[u8]) -> Vec<Vec<u8>> {
    let couple = |position| {
        let mut frame = worm(sequence, Kind::Unicast, route, 40);
        let header = worm::decode(&frame).expect("a worm").header;
        let header = Header {
            source: HostId(source),
            ..header
        };
        worm::encode(&mut frame, [2; 6], &header, route);
        let length = frame.len();
        frame.resize(length + TRAIN_LENGTH, 0);
        let place = Place {
            sequence,
            position,
            is_last: position + 1 == frames,
        };
        let length =
            wormcast_wire::wormhole::train::couple(&mut frame, length, place).expect("it fits");
        frame.truncate(length);
        frame
    };
    (0..frames).map(couple).collect()
}

fn at(us: u64) -> Instant {
    Instant::from_micros(us)
}

#[test]
fn a_train_for_this_host_is_taken_frame_by_frame() {
    let mut arrivals = Arrivals::default();
    for _ in 0..2 {
        for frame in train(7, 1, 4, &[]) {
            assert_eq!(arrivals.take(&frame, at(1)), Taken::Own);
        }
        // It is over.
        let late = &train(7, 1, 4, &[])[2];
        assert_eq!(arrivals.take(late, at(1)), Taken::Nothing);
    }
    let counters = arrivals.counters();
    assert_eq!((counters.headless, counters.cut), (2, 0));
}

#[test]
fn a_train_in_transit_is_taken_whole() {
    let mut arrivals = Arrivals::default();
    let (passing, own) = (train(7, 1, 4, &[3, 2]), train(8, 1, 4, &[]));
    for (place, (passes, own)) in passing.iter().zip(&own).enumerate() {
        let expected = match place {
            3 => Taken::Passes(passing.clone()),
            _ => Taken::Nothing,
        };
        assert_eq!(arrivals.take(passes, at(1)), expected);
        assert_eq!(arrivals.take(own, at(1)), Taken::Own);
    }
    let alone = train(9, 1, 1, &[3]);
    assert_eq!(arrivals.take(&alone[0], at(1)), Taken::Passes(alone));
    assert_eq!(arrivals.counters(), ArrivalCounters::default());
}

#[test]
fn what_lacks_its_head_is_dropped_and_what_is_damaged_or_a_tree_is_for_the_engine() {
    let mut arrivals = Arrivals::default();
    for route in [&[][..], &[3]] {
        for frame in &train(7, 1, 4, route)[1..] {
            assert_eq!(arrivals.take(frame, at(1)), Taken::Nothing);
        }
    }
    assert_eq!(arrivals.counters().headless, 6);
    let mut damaged = train(7, 1, 2, &[])[1].clone();
    damaged[20] ^= 1;
    assert_eq!(arrivals.take(&damaged, at(1)), Taken::Own);
    let mut tree = worm(1, Kind::Tree, &[], 40);
    let length = tree.len();
    tree.resize(length + TRAIN_LENGTH, 0);
    let place = Place {
        sequence: 1,
        position: 5,
        is_last: false,
    };
    wormcast_wire::wormhole::train::couple(&mut tree, length, place).expect("it fits");
    assert_eq!(arrivals.take(&tree, at(1)), Taken::Own);
}

#[test]
fn a_train_with_a_gap_goes_on_and_what_comes_twice_does_not() {
    let mut arrivals = Arrivals::default();
    let frames = train(7, 1, 5, &[3]);
    // A head that comes again begins again.
    for place in [0, 1, 1, 0, 3, 2] {
        assert_eq!(arrivals.take(&frames[place], at(1)), Taken::Nothing);
    }
    let whole = [0, 3, 4].map(|place| frames[place].clone()).to_vec();
    assert_eq!(arrivals.take(&frames[4], at(1)), Taken::Passes(whole));
    // The first head and frame 1, frame 1 again, and frame 2.
    assert_eq!(arrivals.counters().cut, 4);
}

#[test]
fn trains_in_transit_are_bounded_and_forgotten() {
    let mut arrivals = Arrivals::default();
    let long = train(7, 1, TRAIN_FRAMES_MAX + 2, &[3]);
    for frame in &long {
        assert_eq!(arrivals.take(frame, at(1)), Taken::Nothing);
    }
    let most = u64::from(TRAIN_FRAMES_MAX);
    let counters = arrivals.counters();
    assert_eq!((counters.cut, counters.headless), (most + 1, 1));
    // More than are known at a time: the oldest goes.
    let many: Vec<Vec<Vec<u8>>> = (0..=TRAINS_ARRIVING_MAX as u16)
        .map(|sequence| train(7, sequence, 2, &[3]))
        .collect();
    for (us, train) in many.iter().enumerate() {
        assert_eq!(arrivals.take(&train[0], at(10 + us as u64)), Taken::Nothing);
    }
    assert_eq!(arrivals.counters().cut, most + 2);
    assert_eq!(arrivals.take(&many[0][1], at(30)), Taken::Nothing);
    assert_eq!(
        arrivals.take(&many[1][1], at(30)),
        Taken::Passes(many[1].clone())
    );
    // Silence ends what is left, when another train comes.
    let later = 30 + TRAIN_SILENT_US;
    assert_eq!(
        arrivals.take(&train(8, 0, 2, &[])[0], at(later)),
        Taken::Own
    );
    assert_eq!(arrivals.take(&many[2][1], at(later)), Taken::Nothing);
    assert_eq!(
        arrivals.counters().cut,
        most + 1 + TRAINS_ARRIVING_MAX as u64
    );
}

proptest! {
    /// Whatever is ready, whoever waits, and whatever is reset: all goes out in its order, whole trains or worms of one
    /// frame, and the next frame of an open train is always here.
    #[test]
    fn all_that_is_ready_goes_out_in_its_order(
        steps in proptest::collection::vec((0_u8..3, any::<bool>(), 0_usize..60, 0_u8..12, any::<bool>()), 1..120),
        frames_most in 0_u16..10,
        limit_at in 0_usize..120,
    ) {
        let mut trains = with_frames_most(frames_most);
        let mut ready = Ready::default();
        let mut expected = Vec::new();
        let mut sent = Vec::new();
        let mut most = frames_most.max(1);
        for (n, (route, may, payload, what, others_wait)) in steps.into_iter().enumerate() {
            let kind = if route == 2 { Kind::Tree } else { Kind::Unicast };
            let frame = worm(n as u16, kind, &[route], payload);
            expected.push((route, vec![n as u8; payload]));
            ready.frames.push_back((frame, if may { BUFFER_BYTES } else { 0 }));
            if n == limit_at {
                trains.set_frames_most(3, 3);
                most = most.max(3);
            }
            if what > 8 {
                let open = trains.open;
                if let Some(open) = open.filter(|_| what > 9) {
                    trains.reset(open.sequence);
                }
                sent.extend(next(&mut trains, &mut ready, others_wait));
            } else if what > 6 {
                for _ in 0..what {
                    sent.extend(next(&mut trains, &mut ready, others_wait));
                }
            }
            prop_assert!(!trains.is_open() || trains.poll_timeout().is_some());
        }
        sent.extend(all(&mut trains, &mut ready));
        prop_assert!(!trains.is_open() && trains.poll_timeout().is_none());
        let mut got = Vec::new();
        let mut open: Option<(u16, u8, u16)> = None;
        for frame in &sent {
            let worm = worm::decode(frame).expect("a sound worm");
            let is_head = worm.header.flags & flags::HEAD != 0;
            let position = worm.train.map_or(0, |train| train.position);
            prop_assert_eq!(is_head, position == 0);
            prop_assert!(position < most);
            let route = match (is_head, open) {
                (true, _) => worm.route[0],
                (false, Some((sequence, route, next))) => {
                    prop_assert_eq!((worm.header.sequence, position), (sequence, next));
                    prop_assert!(worm.route.is_empty());
                    route
                }
                (false, None) => panic!("a frame without a head"),
            };
            got.push((route, worm.payload.to_vec()));
            let is_tail = worm.header.flags & flags::TAIL != 0;
            open = (!is_tail).then_some((worm.header.sequence, route, position + 1));
        }
        prop_assert_eq!(got, expected);
        prop_assert_eq!(open, None);
    }

    /// Whatever comes: what is kept is bounded, and every frame in transit is sent on, kept or counted.
    #[test]
    fn what_arrives_is_bounded_and_counted(
        steps in proptest::collection::vec((0_u16..4, 0_u16..4, 0_usize..6, any::<bool>(), 0_u64..900_000), 0..200),
    ) {
        let mut arrivals = Arrivals::default();
        let (mut us, mut came, mut went) = (0, 0, 0);
        for (source, sequence, place, passes, after) in steps {
            us += after;
            let route: &[u8] = if passes { &[3, 4] } else { &[] };
            let frame = &train(source, sequence, 6, route)[place];
            came += 1;
            match arrivals.take(frame, at(us)) {
                Taken::Own => went += 1,
                Taken::Passes(frames) => went += frames.len() as u64,
                Taken::Nothing => {}
            }
            prop_assert!(arrivals.trains.len() <= TRAINS_ARRIVING_MAX);
            let kept = arrivals.trains.iter().filter_map(|train| train.passing.as_ref());
            let kept: usize = kept.map(|passing| passing.frames.len()).sum();
            let counters = arrivals.counters();
            prop_assert_eq!(came, went + kept as u64 + counters.headless + counters.cut);
        }
    }
}
