//! Multicasts that come whole are not broken, however many fragments they come in; what is lost, or out of the root's
//! order, shows.

use super::*;
use proptest::prelude::*;
use wormcast_wire::ETHERTYPE_HOST_PDU;
use wormcast_wire::worm::Kind;
use wormcast_wire::wormhole::train::BACK_MAX;

const HEAD: u8 = flags::HEAD;
const TAIL: u8 = flags::TAIL;
const AGAIN: u8 = flags::HEAD | flags::RESUMED;
const END: u8 = flags::TAIL | flags::RESUMED;

#[derive(Default)]
struct Receiver {
    fragments: Fragments,
    us: u64,
}

impl Receiver {
    /// A frame of a worm of this host and number; whether it holds a packet.
    fn take(&mut self, (source, order): (u16, u16), flags: u8, position: u16) -> bool {
        let header = Header {
            kind: Kind::Tree,
            flags: flags | flags::TRAIN,
            hops: 3,
            source: HostId(source),
            sequence: 100,
            next: ETHERTYPE_HOST_PDU,
        };
        let train = Train {
            position,
            back_count: 3,
            order,
            back: [0; BACK_MAX],
        };
        self.us += 10;
        let now = Instant::from_micros(self.us);
        self.fragments.take(&header, &train, now)
    }

    fn take_all(&mut self, of: (u16, u16), frames: &[(u8, u16)]) -> Vec<bool> {
        let take = |(flags, position): &(u8, u16)| self.take(of, *flags, *position);
        frames.iter().map(take).collect()
    }

    /// Multicasts, fragments after their first, broken ones, those out of order.
    fn counted(&self) -> [u64; 4] {
        let counters = self.fragments.counters;
        [
            counters.multicasts,
            counters.resumed,
            counters.broken,
            counters.out_of_order,
        ]
    }
}

/// Interrupted twice, once at its last frame.
const INTERRUPTED: [(u8, u16); 7] = [
    (HEAD, 0),
    (0, 1),
    (END, 2),
    (AGAIN, 2),
    (0, 3),
    (END, 4),
    (AGAIN | TAIL, 4),
];

#[test]
fn a_multicast_is_put_together_from_its_fragments() {
    let mut receiver = Receiver::default();
    let held = receiver.take_all((5, 7), &INTERRUPTED);
    assert_eq!(held, [true, true, false, true, true, false, true]);
    assert_eq!(receiver.counted(), [1, 2, 0, 0]);
    receiver.take((6, 8), HEAD, 0);
    assert_eq!(receiver.counted(), [2, 2, 0, 0], "it was over");
    let counters = receiver.fragments.counters;
    assert_eq!((counters.numbered, counters.number), (2, 8));
}

#[test]
fn a_frame_that_is_lost_shows_and_an_end_that_is_lost_costs_nothing() {
    for lost in 0..INTERRUPTED.len() {
        let mut receiver = Receiver::default();
        let mut frames = INTERRUPTED.to_vec();
        let (flags, _) = frames.remove(lost);
        receiver.take_all((5, 7), &frames);
        receiver.take((6, 8), HEAD, 0);
        let broken = u64::from(flags != END);
        assert_eq!(receiver.counted()[2], broken, "without frame {lost}");
    }
    // A switch says that frames are missing.
    let mut receiver = Receiver::default();
    receiver.take_all((5, 7), &[(HEAD, 0), (TAIL | flags::ABORT, 3)]);
    receiver.take_all((5, 9), &[(HEAD, 0), (TAIL | flags::ABORT, 1)]);
    assert_eq!(receiver.counted(), [2, 0, 2, 0]);
}

#[test]
fn what_comes_twice_is_no_other_multicast_until_its_sequence_comes_again() {
    let mut receiver = Receiver::default();
    let frames: Vec<(u8, u16)> = INTERRUPTED.iter().flat_map(|&one| [one, one]).collect();
    receiver.take_all((5, 0), &frames);
    receiver.take_all((5, 0), &[(HEAD, 0), (AGAIN | TAIL, 4)]);
    assert_eq!(receiver.counted(), [1, 2, 0, 0]);
    receiver.us += TRAIN_SILENT_US;
    receiver.take_all((5, 0), &INTERRUPTED);
    assert_eq!(receiver.counted(), [2, 4, 0, 0]);
    assert_eq!(
        receiver.fragments.counters.numbered, 0,
        "they have no numbers"
    );
}

/// A source that stands still in the middle of one goes on with it.
#[test]
fn silence_does_not_end_a_multicast() {
    let mut receiver = Receiver::default();
    receiver.take_all((5, 7), &INTERRUPTED[..4]);
    receiver.us += 10 * TRAIN_SILENT_US;
    receiver.take_all((5, 7), &INTERRUPTED[4..]);
    assert_eq!(receiver.counted(), [1, 2, 0, 0]);
}

#[test]
fn numbers_that_go_back_show() {
    let whole = [(HEAD, 0), (TAIL, 1)];
    let steps = [
        (5, false),
        (6, false),
        (900, false),
        (7, true),
        (8, false),
        (32_775, false),
        (65_535, false),
        (1, false),
        (2, false),
        (2 + 32_767, false),
        (2, true),
        (2 + 32_768, true),
    ];
    let mut receiver = Receiver::default();
    let mut expected = 0;
    for (at, (order, goes_back)) in (0..).zip(steps) {
        receiver.take_all((at, order), &whole);
        // A worm without a number says nothing of the order.
        receiver.take_all((at, 0), &whole);
        expected += u64::from(goes_back);
        assert_eq!(receiver.counted()[3], expected, "number {order}");
    }
}

#[test]
fn two_multicasts_that_mix_show() {
    let mut receiver = Receiver::default();
    for (flags, position) in [(HEAD, 0), (0, 1), (TAIL, 2)] {
        for of in [(5, 7), (6, 8)] {
            receiver.take(of, flags, position);
        }
    }
    let [multicasts, _, broken, out_of_order] = receiver.counted();
    assert!(multicasts > 2 && broken >= 2 && out_of_order == 2);
}

proptest! {
    /// Of multicasts that come one after another, in any fragments and with any loss, exactly those are broken of which
    /// a packet is lost.
    #[test]
    fn exactly_those_are_broken_of_which_a_packet_is_lost(
        multicasts in proptest::collection::vec(
            proptest::collection::vec((any::<bool>(), 0_u8..6, any::<bool>()), 1..9), 1..20),
    ) {
        let mut receiver = Receiver::default();
        let (mut broken, mut resumed, mut came) = (0, 0, 0);
        for (number, frames) in (1..).zip(&multicasts) {
            let mut got = 0;
            for (position, (interrupted, lost, end_lost)) in (0..).zip(frames) {
                let is_interrupted = *interrupted && position > 0;
                if is_interrupted && !end_lost {
                    prop_assert!(!receiver.take((3, number), END, position));
                }
                let mut flags = match (position, is_interrupted) {
                    (0, _) => HEAD,
                    (_, true) => AGAIN,
                    _ => 0,
                };
                if usize::from(position) + 1 == frames.len() {
                    flags |= TAIL;
                }
                if *lost > 0 {
                    prop_assert!(receiver.take((3, number), flags, position));
                    resumed += u64::from(is_interrupted);
                    got += 1;
                }
            }
            let ends = frames.iter().skip(1).any(|(interrupted, _, lost)| *interrupted && !lost);
            came += u64::from(got > 0 || ends);
            broken += u64::from((got > 0 || ends) && got < frames.len());
        }
        receiver.take((4, 20_000), HEAD, 0);
        prop_assert_eq!(receiver.counted(), [came + 1, resumed, broken, 0]);
    }

    #[test]
    fn whatever_comes_is_counted_once(
        frames in proptest::collection::vec((0_u16..3, any::<u16>(), any::<u8>(), any::<u16>()), 0..100),
    ) {
        let mut receiver = Receiver::default();
        for (source, order, flags, position) in &frames {
            receiver.take((*source, *order), *flags, *position);
        }
        let counters = receiver.fragments.counters;
        prop_assert!(counters.broken <= counters.multicasts);
        prop_assert!(counters.out_of_order <= counters.numbered);
        prop_assert!(counters.multicasts + counters.resumed <= 2 * frames.len() as u64);
    }
}
