//! What waits comes out in order, within its bounds, and by turns with own traffic.

use super::*;
use proptest::prelude::*;
use wormcast_wire::HostId;
use wormcast_wire::worm::Header;
use wormcast_wire::wormhole::train::{Place, couple};

fn frame(kind: Kind, route: &[u8], sequence: u16, payload: usize) -> Vec<u8> {
    let header = Header {
        kind,
        flags: worm::flags::HEAD | worm::flags::TAIL,
        hops: 2,
        source: HostId(40),
        sequence,
        next: 0x0800,
    };
    let mut frame = vec![0; ETHERNET_LENGTH + worm::HEADER_LENGTH + route.len() + payload];
    worm::encode(&mut frame, [3; 6], &header, route);
    frame
}

fn in_transit(sequence: u16, payload: usize) -> Vec<u8> {
    frame(Kind::Unicast, &[1, 2, 3], sequence, payload)
}

fn drain(transit: &mut Transit) -> Vec<Vec<u8>> {
    let next = std::iter::from_fn(|| transit.next(|| None));
    let worms = next.map(|next| match next {
        NextFrame::InTransit(frame) => frame,
        NextFrame::Own(_) => unreachable!("there is no own traffic"),
    });
    worms.collect()
}

#[test]
fn only_sound_unicast_worms_with_route_left_are_in_transit() {
    let worm = in_transit(1, 30);
    assert!(is_in_transit(&worm));
    assert!(is_in_transit(&in_transit(1, 0)));
    assert!(
        !is_in_transit(&frame(Kind::Unicast, &[], 1, 30)),
        "for this host"
    );
    for kind in [
        Kind::Tree,
        Kind::Broadcast,
        Kind::Group,
        Kind::Control,
        Kind::Gather,
    ] {
        assert!(!is_in_transit(&frame(kind, &[1, 2, 3], 1, 30)), "{kind:?}");
    }
    let mut head = in_transit(1, 30);
    let length = head.len();
    head.resize(length + 20, 0);
    let place = Place {
        sequence: 1,
        position: 0,
        is_last: false,
    };
    couple(&mut head, length, place).expect("it fits");
    assert!(!is_in_transit(&head), "a train is more than one frame");
    for end in 0..ETHERNET_LENGTH + worm::HEADER_LENGTH + 3 {
        assert!(!is_in_transit(&worm[..end]), "cut off after {end} bytes");
    }
    for bit in 8 * 12..8 * (ETHERNET_LENGTH + worm::HEADER_LENGTH + 3) {
        let mut damaged = worm.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(!is_in_transit(&damaged), "bit {bit} is damaged");
    }
}

#[test]
fn where_nothing_waits_any_worm_is_taken() {
    let limits = TransitLimits {
        adapter_bytes: 10,
        spill_bytes: 10,
    };
    let mut transit = Transit::new(limits);
    for sequence in 0..3 {
        let worm = in_transit(sequence, 71);
        transit.accept(&worm, Instant::ZERO);
        transit.accept(&worm, Instant::ZERO);
        assert_eq!(drain(&mut transit), [worm], "the second finds one waiting");
    }
    assert_eq!(transit.counters().dropped, 3);
}

#[test]
fn what_the_adapter_does_not_hold_is_spilled_and_what_memory_does_not_hold_is_dropped() {
    let worm = in_transit(0, 71);
    assert_eq!(worm.len(), 100);
    let limits = TransitLimits {
        adapter_bytes: 250,
        spill_bytes: 300,
    };
    let mut transit = Transit::new(limits);
    for sequence in 0..8 {
        transit.accept(&in_transit(sequence, 71), Instant::from_micros(9));
    }
    assert_eq!(transit.poll_timeout(), Some(Instant::from_micros(9)));
    let counters = transit.counters();
    assert_eq!((counters.spilled, counters.dropped), (3, 3));
    assert_eq!((counters.held_bytes_most, transit.held_bytes()), (500, 500));
    assert_eq!(counters.frames, 0, "nothing has been sent on");
    let sent: Vec<Vec<u8>> = (0..5).map(|sequence| in_transit(sequence, 71)).collect();
    assert_eq!(drain(&mut transit), sent);
    assert_eq!(transit.poll_timeout(), None);
    let counters = transit.counters();
    assert_eq!((counters.frames, counters.bytes), (5, 500));
    assert_eq!((counters.held_bytes_most, transit.held_bytes()), (500, 0));
}

#[test]
fn own_traffic_gets_its_share_and_worms_in_transit_all_the_rest() {
    for (worm_bytes, own_bytes) in [(1_500, 1_500), (64, 1_500), (1_500, 64), (600, 90)] {
        let mut transit = Transit::new(TransitLimits::default());
        let worm = in_transit(0, worm_bytes - 29);
        let (mut own, mut others) = (0, 0);
        for _ in 0..40_000 {
            transit.accept(&worm, Instant::ZERO);
            match transit.next(|| Some(own_bytes)).expect("both wait") {
                NextFrame::Own(length) => own += length as u64,
                NextFrame::InTransit(frame) => others += frame.len() as u64,
            }
        }
        let (least, most) = (others / (TRANSIT_SHARE + 2), others / (TRANSIT_SHARE - 2));
        // Frames are not cut: a short own frame may wait for the end of a long worm.
        let rough = own_bytes * TRANSIT_SHARE as usize >= 4 * worm_bytes;
        assert!(own > 0 && others > own, "{own} of {others}");
        assert!(!rough || (least..=most).contains(&own), "{own} of {others}");
    }
}

#[test]
fn where_only_one_waits_it_has_all() {
    let mut transit = Transit::new(TransitLimits::default());
    for _ in 0..100 {
        assert_eq!(transit.next(|| Some(700)), Some(NextFrame::Own(700)));
    }
    let worms: Vec<Vec<u8>> = (0..30)
        .map(|sequence| in_transit(sequence, 1_000))
        .collect();
    for worm in &worms {
        transit.accept(worm, Instant::ZERO);
    }
    // What own traffic had while none waited is not held against the worms that come.
    let first = transit.next(|| Some(700));
    assert_eq!(first, Some(NextFrame::InTransit(worms[0].clone())));
    assert_eq!(drain(&mut transit), worms[1..]);
    assert_eq!(transit.next(|| None), None);
}

/// Own traffic waits for the end of a train in transit, and an own train that is open goes first.
#[test]
fn the_frames_of_a_train_go_out_one_after_another() {
    let part = |flags: u8, sequence| {
        let mut frame = in_transit(sequence, 300);
        frame[ETHERNET_LENGTH + 1] = flags::TRAIN | flags;
        frame
    };
    let train: Vec<Vec<u8>> = (0..20)
        .map(|n| match n {
            0 => part(flags::HEAD, n),
            19 => part(flags::TAIL, n),
            _ => part(0, n),
        })
        .collect();
    let mut transit = Transit::new(TransitLimits::default());
    transit.accept_all(train.clone(), Instant::ZERO);
    transit.accept(&in_transit(99, 300), Instant::ZERO);
    // All of 15 frames in transit for one of the same length.
    assert_eq!(
        transit.next(|| Some(train[0].len())),
        Some(NextFrame::Own(train[0].len()))
    );
    let mut sent = Vec::new();
    while sent.len() < 20 {
        match transit.next(|| Some(700)).expect("both wait") {
            NextFrame::InTransit(frame) => sent.push(frame),
            NextFrame::Own(_) => panic!("after {} frames of a train", sent.len()),
        }
    }
    assert_eq!(sent, train);
    assert_eq!(transit.next(|| Some(700)), Some(NextFrame::Own(700)));
    // One that has no room is dropped whole.
    let mut transit = Transit::new(TransitLimits {
        adapter_bytes: 0,
        spill_bytes: 1_000,
    });
    transit.accept(&in_transit(99, 300), Instant::ZERO);
    transit.accept_all(train, Instant::ZERO);
    assert_eq!(
        (transit.counters().dropped, drain(&mut transit).len()),
        (20, 1)
    );
}

proptest! {
    /// Whatever comes and goes: the order is kept, the bound is, and each worm is sent on or counted.
    #[test]
    fn nothing_is_lost_but_what_is_counted(
        adapter_bytes in 0usize..5_000,
        spill_bytes in 0usize..20_000,
        steps in proptest::collection::vec((0usize..1_500, 0u8..3), 1..200),
    ) {
        let mut transit = Transit::new(TransitLimits { adapter_bytes, spill_bytes });
        // One worm has room where nothing waits.
        let bound = (adapter_bytes + spill_bytes).max(in_transit(0, 1_500).len());
        let mut out = Vec::new();
        for (sequence, (payload, takes)) in steps.iter().enumerate() {
            transit.accept(&in_transit(sequence as u16, *payload), Instant::ZERO);
            prop_assert!(transit.held_bytes() <= bound);
            for _ in 0..*takes {
                if let Some(NextFrame::InTransit(frame)) = transit.next(|| None) {
                    out.push(frame);
                }
            }
        }
        out.extend(drain(&mut transit));
        let counters = transit.counters();
        prop_assert_eq!(out.len() as u64, counters.frames);
        prop_assert_eq!(counters.frames + counters.dropped, steps.len() as u64);
        prop_assert!(counters.held_bytes_most <= bound);
        let order: Vec<u16> = out
            .iter()
            .map(|frame| worm::decode(frame).expect("a worm").header.sequence)
            .collect();
        prop_assert!(order.is_sorted());
        for (frame, sequence) in out.iter().zip(order) {
            prop_assert_eq!(frame, &in_transit(sequence, steps[usize::from(sequence)].0));
        }
    }
}
