//! Port byte 254: what a switch absorbs is bounded, taken or refused at once, and stands in nobody's way. And what becomes
//! of a channel whose waiting frames are lost.

use wormcast_fabric_tests::absorbing::{
    ABSORBED_MAX, HELD_MAX, IN, LOST_US, NOW_US, OUT, one_switch, ports, worm,
};
use wormcast_fabric_tests::switch::Switch;
use wormcast_fabric_tests::trains::{OWN_CHANNEL, Scheme, frame_of};
use wormcast_wire::HostId;
use wormcast_wire::wormhole::signal::{self, Signal};

/// `ABSORB_FULL` of `drop_reason_t`.
const ABSORB_FULL: usize = 27;
const HELD_FULL: usize = 17;
const FLAG_TAIL: u8 = 0x04;
const FLAGS_AT: usize = 15;
/// Silence ends nothing.
const NEVER_US: u64 = 100_000_000;

fn switch(scheme: Scheme) -> Switch {
    one_switch(scheme, NEVER_US)
}

/// A worm of one frame, with a train header.
fn single(sequence: u16, route: &[u8]) -> Vec<u8> {
    frame_of(&worm(9, sequence, route, 1), 0, Scheme::Plain)
}

#[test]
fn no_more_than_the_bound_are_absorbed_and_the_rest_comes_back() {
    for scheme in [Scheme::Packet, Scheme::Plain] {
        let mut switch = switch(scheme);
        for sequence in 0..ABSORBED_MAX as u16 {
            let copies = switch.forward(&single(sequence, &[254, OUT]), IN, NOW_US, |_| 0);
            assert!(copies.is_empty(), "{scheme:?}");
        }
        let refused = switch.forward(&single(777, &[254, OUT]), IN, NOW_US, |_| 0);
        assert_eq!(ports(&refused), [IN], "{scheme:?}");
        let reset = signal::decode(&refused[0].frame).expect("a signal").signal;
        assert_eq!(reset, Signal::Reset(HostId(9), 777), "{scheme:?}");
        assert_eq!(switch.waiting(), ABSORBED_MAX, "{scheme:?}");

        let mut left = 0;
        for round in 1..=ABSORBED_MAX as u64 {
            let copies = switch.go_round(NOW_US + round);
            assert!(copies.iter().all(|copy| copy.port == OUT), "{scheme:?}");
            left += copies.len();
        }
        assert_eq!(left, ABSORBED_MAX, "{scheme:?}");
        assert_eq!(switch.counter("drops", ABSORB_FULL), 0, "{scheme:?}");

        // There is room again.
        let copies = switch.forward(&single(1000, &[254, OUT]), IN, NOW_US + 100, |_| 0);
        assert!(copies.is_empty() && switch.waiting() == 1, "{scheme:?}");
        assert_eq!(ports(&switch.go_round(NOW_US + 101)), [OUT], "{scheme:?}");
    }
}

#[test]
fn a_refused_worm_goes_back_by_all_switches_it_has_crossed() {
    let mut first = switch(Scheme::Packet);
    let crossed = first.forward(&single(7, &[OUT, 254, OUT]), IN, NOW_US, |_| 0);
    let mut second = switch(Scheme::Packet);
    for sequence in 0..ABSORBED_MAX as u16 {
        second.forward(&single(sequence, &[254, OUT]), 3, NOW_US, |_| 0);
    }
    let refused = second.forward(&crossed[0].frame, 3, NOW_US, |_| 0);
    assert_eq!(ports(&refused), [3], "to where it came from");
    let back = first.forward(&refused[0].frame, OUT, NOW_US, |_| 0);
    assert_eq!(ports(&back), [IN], "to its source");
    let reset = signal::decode(&back[0].frame).expect("a signal").signal;
    assert_eq!(reset, Signal::Reset(HostId(9), 7));
}

#[test]
fn a_worm_that_does_not_know_its_way_back_is_dropped_and_counted() {
    let mut switch = switch(Scheme::Packet);
    let frame = frame_of(&worm(9, 1, &[254, OUT], 1), 0, Scheme::Packet);
    for sent in 0..ABSORBED_MAX + 3 {
        let copies = switch.forward(&frame, IN, NOW_US + sent as u64, |_| 0);
        assert!(copies.is_empty());
    }
    assert_eq!(switch.counter("drops", ABSORB_FULL), 3);
    assert_eq!(switch.go_round(NOW_US + 100).len(), ABSORBED_MAX);
}

#[test]
fn what_queues_lose_is_forgotten_after_a_second() {
    for scheme in [Scheme::Packet, Scheme::Plain] {
        let mut switch = switch(scheme);
        for sequence in 0..ABSORBED_MAX as u16 {
            switch.forward(&single(sequence, &[254, OUT]), IN, NOW_US, |_| 0);
        }
        switch.lose_waiting();
        let early = switch.forward(&single(100, &[254, OUT]), IN, NOW_US + LOST_US, |_| 0);
        assert_eq!(ports(&early), [IN], "{scheme:?}: refused");
        let late = switch.forward(&single(101, &[254, OUT]), IN, NOW_US + LOST_US + 1, |_| 0);
        assert!(late.is_empty() && switch.waiting() == 1, "{scheme:?}");
        assert_eq!(
            ports(&switch.go_round(NOW_US + LOST_US + 2)),
            [OUT],
            "{scheme:?}"
        );
    }
}

/// A switch that stood still finds what it had absorbed, and thinks for a moment that it is lost.
#[test]
fn what_comes_round_late_does_no_harm() {
    let mut switch = switch(Scheme::Packet);
    for sequence in 0..ABSORBED_MAX as u16 {
        switch.forward(&single(sequence, &[254, OUT]), IN, NOW_US, |_| 0);
    }
    let later_us = NOW_US + 3 * LOST_US;
    for sequence in 100..103 {
        switch.forward(&single(sequence, &[254, OUT]), IN, later_us, |_| 0);
    }
    assert_eq!(switch.go_round(later_us + 1).len(), ABSORBED_MAX + 3);
    for sequence in 200..200 + ABSORBED_MAX as u16 {
        let taken = switch.forward(&single(sequence, &[254, OUT]), IN, later_us + 2, |_| 0);
        assert!(taken.is_empty());
    }
    let refused = switch.forward(&single(300, &[254, OUT]), IN, later_us + 2, |_| 0);
    assert_eq!(ports(&refused), [IN], "the bound holds as before");
}

#[test]
fn a_worm_that_ends_where_it_came_round_makes_room() {
    let mut switch = switch(Scheme::Packet);
    for sequence in 0..4 * ABSORBED_MAX as u16 {
        let mut frame = single(sequence, &[254, OUT]);
        // Crossed 63 switches: it is over when it comes round.
        frame[17] = 63;
        let sum_at = 24;
        frame[sum_at..sum_at + 2].fill(0);
        let end = 14 + 12 + 20 + 2;
        let sum = wormcast_wire::worm::checksum(&frame[14..end]);
        frame[sum_at..sum_at + 2].copy_from_slice(&sum.to_be_bytes());
        let copies = switch.forward(&frame, IN, NOW_US + u64::from(sequence), |_| 0);
        assert!(copies.is_empty(), "{sequence}: absorbed");
        assert!(switch.go_round(NOW_US + u64::from(sequence)).is_empty());
    }
    assert_eq!(
        switch.register("channel_came", OWN_CHANNEL),
        4 * ABSORBED_MAX as u64
    );
    assert_eq!(
        switch.register("channel_gone", OWN_CHANNEL),
        4 * ABSORBED_MAX as u64
    );
}

/// The output of an absorbed worm is taken. It waits, and whatever comes by the same port goes on.
#[test]
fn an_absorbed_worm_is_in_nobodys_way() {
    let mut switch = switch(Scheme::Plain);
    let long = worm(8, 1, &[OUT], 3);
    let head = switch.forward(&frame_of(&long, 0, Scheme::Plain), 1, NOW_US, |_| 0);
    assert_eq!(ports(&head), [OUT], "the output is taken");

    switch.forward(&single(2, &[254, OUT]), IN, NOW_US, |_| 0);
    for round in 1..20 {
        assert!(switch.go_round(NOW_US + round).is_empty(), "it waits");
    }
    let other = switch.forward(&single(3, &[6]), IN, NOW_US + 20, |_| 0);
    assert_eq!(ports(&other), [6], "another worm by the same port");
    assert!(
        switch.counter("trains", 1) == 0,
        "no neighbour is told STOP for it"
    );

    for position in 1..3 {
        let copies = switch.forward(
            &frame_of(&long, position, Scheme::Plain),
            1,
            NOW_US + 21,
            |_| 0,
        );
        assert_eq!(ports(&copies), [OUT]);
        assert_eq!(copies[0].frame[FLAGS_AT] & FLAG_TAIL != 0, position == 2);
    }
    let mut left = Vec::new();
    for round in 22..30 {
        left.extend(ports(&switch.go_round(NOW_US + round)));
    }
    assert_eq!(left, [OUT], "once the tail is through");
}

#[test]
fn a_worm_absorbed_twice_in_wormhole_mode_has_one_place() {
    let mut switch = switch(Scheme::Plain);
    switch.forward(&single(1, &[254, 254, OUT]), IN, NOW_US, |_| 0);
    assert!(switch.go_round(NOW_US + 1).is_empty());
    assert_eq!(switch.register("channel_came", OWN_CHANNEL), 1);
    assert_eq!(ports(&switch.go_round(NOW_US + 2)), [OUT]);
    assert_eq!(switch.register("channel_gone", OWN_CHANNEL), 1);
}

#[test]
fn while_some_come_round_none_is_forgotten() {
    let mut switch = switch(Scheme::Packet);
    for sequence in 1..ABSORBED_MAX as u16 {
        switch.forward(&single(sequence, &[254, OUT]), IN, NOW_US, |_| 0);
    }
    switch.lose_waiting();
    let later_us = NOW_US + LOST_US - 100;
    switch.forward(&single(100, &[254, OUT]), IN, later_us, |_| 0);
    assert_eq!(ports(&switch.go_round(later_us)), [OUT]);
    switch.forward(&single(101, &[254, OUT]), IN, later_us + 1, |_| 0);
    let refused = switch.forward(&single(102, &[254, OUT]), IN, later_us + LOST_US, |_| 0);
    assert_eq!(ports(&refused), [IN]);
}

/// An absorbed worm ends at this switch; what has come meanwhile by its port is another worm's.
#[test]
fn where_an_absorbed_worm_ends_no_other_does() {
    let mut switch = switch(Scheme::Plain);
    switch.forward(&single(1, &[254, 9]), IN, NOW_US, |_| 0);
    let train = worm(9, 2, &[6], 2);
    let head = switch.forward(&frame_of(&train, 0, Scheme::Plain), IN, NOW_US, |_| 0);
    assert_eq!(ports(&head), [6]);
    assert!(switch.go_round(NOW_US + 1).is_empty(), "there is no port 9");
    assert_eq!(switch.waiting(), 0);
    let tail = switch.forward(&frame_of(&train, 1, Scheme::Plain), IN, NOW_US + 2, |_| 0);
    assert_eq!(ports(&tail), [6]);
}

/// As many frames wait as may, and a queue loses them. The channel goes on after two seconds.
#[test]
fn a_channel_whose_waiting_frames_are_all_lost_goes_on() {
    let mut switch = switch(Scheme::Plain);
    let long = worm(8, 1, &[OUT], 3);
    switch.forward(&frame_of(&long, 0, Scheme::Plain), 1, NOW_US, |_| 0);
    for sequence in 0..HELD_MAX {
        switch.forward(&single(sequence, &[OUT]), IN, NOW_US, |_| 0);
    }
    assert_eq!(switch.waiting(), usize::from(HELD_MAX));
    switch.lose_waiting();
    let soon = switch.forward(&single(100, &[6]), IN, NOW_US + 2 * LOST_US, |_| 0);
    assert!(soon.is_empty(), "they may wait yet");
    assert_eq!(switch.counter("drops", HELD_FULL), 1);
    let late_us = NOW_US + 2 * LOST_US + 1;
    let go = switch.forward(&single(101, &[6]), IN, late_us, |_| 0);
    assert_eq!(ports(&go), [IN], "the neighbour may send again");
    assert_eq!(ports(&switch.go_round(late_us + 1)), [6]);
}

/// Some are lost. Those behind them wait a second for the first, and less for each further one.
#[test]
fn what_comes_behind_lost_frames_has_its_turn_soon() {
    let mut switch = switch(Scheme::Plain);
    let long = worm(8, 1, &[OUT], 3);
    switch.forward(&frame_of(&long, 0, Scheme::Plain), 1, NOW_US, |_| 0);
    for sequence in 0..6 {
        switch.forward(&single(sequence, &[OUT]), IN, NOW_US, |_| 0);
    }
    switch.lose_waiting();
    switch.forward(&single(100, &[6]), IN, NOW_US + 1, |_| 0);
    let mut waited_us = 0;
    while ports(&switch.go_round(NOW_US + waited_us)) != [6] {
        waited_us += 10_000;
        assert!(waited_us < 5 * LOST_US / 2, "it waits");
    }
    assert!(waited_us > LOST_US, "{waited_us}");
}
