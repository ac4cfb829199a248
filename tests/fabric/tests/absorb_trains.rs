//! Port byte 254: the switch takes trains of several frames, whole or not at all where they are as short as those of
//! agents. What it took leaves it again, whatever becomes of the rest.

use wormcast_fabric_tests::absorbing::{
    ABSORBED_MAX, ABSORBED_TRAIN, HEAD, IN, LOST_US, Left, Lone, NOW_US, OUT, SILENT_US, TAIL,
    TRAIN, is_reset, left_of, mode, one_switch, ports, whole, worm,
};
use wormcast_fabric_tests::trains::{ABORT, Scheme, Trains, Worm, frame_of};
use wormcast_planner::TRAIN_FRAMES;
use wormcast_routing::generate;

const OTHER_IN: u8 = 3;
/// Of `drop_reason_t`.
const HOPS_EXCEEDED: usize = 5;
const TREE_MALFORMED: usize = 9;
const TRAIN_REFUSED: usize = 14;
const TRAIN_BROKEN: usize = 15;
const TRAIN_RESET: usize = 16;
const ABSORB_FULL: usize = 27;
/// Of `train_event_t`.
const TAIL_LOST: usize = 8;
const EXPIRED: usize = 9;

#[test]
fn trains_of_agents_are_no_longer_than_what_there_is_room_for() {
    let sizes = include_str!("../../../p4src/shared/sizes.p4");
    for (name, value) in [("MAX", ABSORBED_MAX), ("TRAIN", ABSORBED_TRAIN)] {
        let line = format!("const bit<16> ABSORBED_{name} = {value};");
        assert!(sizes.contains(&line), "{line}");
    }
    assert!(usize::from(TRAIN_FRAMES) <= ABSORBED_TRAIN);
}

#[test]
fn a_train_goes_round_and_leaves_whole_and_in_order() {
    let mut lone = Lone::new(Scheme::Plain);
    let train = worm(9, 1, &[254, OUT], 5);
    lone.take(&train, 0..1, IN);
    lone.now_us += 1;
    let head = lone.switch.go_round(lone.now_us);
    assert_eq!(left_of(&head[0]), (OUT, TRAIN | HEAD, 0));
    let frame = &head[0].frame;
    assert_eq!((frame[16], frame[17]), (0, 2), "route and hops");
    assert_eq!((frame[28], frame[45]), (1, IN), "it came by one port");
    lone.take(&train, 1..5, IN);
    assert_eq!(lone.round(8), whole(5)[1..]);
    lone.is_free(1);
}

/// Of many frames, more than there is room for: what leaves makes room for what comes.
#[test]
fn a_train_that_goes_on_may_be_of_any_length() {
    let mut lone = Lone::new(Scheme::Plain);
    let frames = 3 * ABSORBED_MAX as u16;
    let train = worm(9, 1, &[254, OUT], frames);
    let mut left = Vec::new();
    for position in 0..frames {
        lone.take(&train, position..position + 1, IN);
        left.extend(lone.round(1));
    }
    left.extend(lone.round(ABSORBED_MAX));
    assert_eq!(left, whole(frames));
    lone.is_free(1);
}

#[test]
fn while_more_of_a_train_is_to_come_no_other_is_taken() {
    let mut lone = Lone::new(Scheme::Plain);
    let (first, second) = (worm(9, 1, &[254, OUT], 3), worm(8, 1, &[254, OUT], 4));
    lone.take(&first, 0..2, IN);
    is_reset(&lone.give(&second, 0, OTHER_IN), OTHER_IN, &second);
    assert!(lone.give(&second, 1, OTHER_IN).is_empty());
    assert!(lone.give(&second, 2, OTHER_IN).is_empty());
    assert_eq!(lone.dropped(TRAIN_RESET), 2, "the source knows");
    let single = worm(6, 1, &[254, OUT], 1);
    is_reset(&lone.give(&single, 0, 6), 6, &single);
    let bare = frame_of(&worm(5, 1, &[254, OUT], 1), 0, Scheme::Packet);
    let copies = lone.switch.forward(&bare, 6, lone.now_us, |_| 0);
    assert!(copies.is_empty());
    assert_eq!(lone.dropped(ABSORB_FULL), 1);

    // Its tail has come: others are taken behind it.
    lone.take(&first, 2..3, IN);
    assert!(lone.give(&second, 3, OTHER_IN).is_empty(), "of the second");
    lone.take(&single, 0..1, 6);
    let third = worm(8, 2, &[254, OUT], 3);
    lone.take(&third, 0..3, OTHER_IN);
    let all = [whole(3), whole(1), whole(3)].concat();
    assert_eq!(lone.round(12), all);
    assert_eq!(lone.dropped(TRAIN_RESET), 3);
    lone.is_free(1);
}

/// There is room for a train of an agent, or it is refused.
#[test]
fn a_short_train_that_is_taken_never_breaks() {
    for more in [0, 1] {
        let mut lone = Lone::new(Scheme::Plain);
        let holder = worm(4, 1, &[OUT], 2);
        assert_eq!(ports(&lone.give(&holder, 0, 1)), [OUT]);
        let singles = (ABSORBED_MAX - ABSORBED_TRAIN + more) as u16;
        for sequence in 0..singles {
            lone.take(&worm(9, sequence, &[254, OUT], 1), 0..1, IN);
        }
        let train = worm(8, 1, &[254, OUT], ABSORBED_TRAIN as u16);
        if more == 0 {
            lone.take(&train, 0..ABSORBED_TRAIN as u16, OTHER_IN);
            let last = worm(9, 999, &[254, OUT], 1);
            is_reset(&lone.give(&last, 0, IN), IN, &last);
        } else {
            is_reset(&lone.give(&train, 0, OTHER_IN), OTHER_IN, &train);
            lone.take(&worm(9, 999, &[254, OUT], 1), 0..1, IN);
        }
        assert!(lone.round(20).is_empty(), "the output is taken");
        assert_eq!(ports(&lone.give(&holder, 1, 1)), [OUT]);
        let left = lone.round(3 * ABSORBED_MAX);
        let singles = vec![whole(1)[0]; usize::from(singles) + more];
        let trains = if more == 0 { whole(8) } else { vec![] };
        assert_eq!(left, [singles, trains].concat());
        lone.is_free(1);
    }
}

/// The rest of a long train finds no room. It goes back, and what was taken ends with its last frame.
#[test]
fn a_train_for_which_there_is_no_more_room_ends() {
    let mut lone = Lone::new(Scheme::Plain);
    let holder = worm(4, 1, &[OUT], 2);
    lone.give(&holder, 0, 1);
    let room = ABSORBED_MAX as u16;
    let train = worm(9, 1, &[254, OUT], room + 5);
    lone.take(&train, 0..room, IN);
    is_reset(&lone.give(&train, room, IN), IN, &train);
    lone.take(&train, room + 1..room + 5, IN);
    assert_eq!(lone.dropped(TRAIN_RESET), 4);
    // The next one waits for room, and no longer for the rest of this one.
    lone.give(&holder, 1, 1);
    let mut left = lone.round(9);
    let next = worm(9, 2, &[254, OUT], 2);
    lone.take(&next, 0..2, IN);
    left.extend(lone.round(2 * ABSORBED_MAX));
    let mut wanted = whole(room);
    wanted[usize::from(room) - 1].1 = TRAIN | TAIL | ABORT;
    assert_eq!(left, [wanted, whole(2)].concat());
    lone.is_free(1);
}

/// The same where the last frame that was taken is the head.
#[test]
fn a_head_alone_that_ends_its_train_says_so() {
    let mut lone = Lone::new(Scheme::Plain);
    let train = worm(9, 1, &[254, OUT], 3);
    lone.take(&train, 0..1, IN);
    let other = worm(9, 2, &[6], 1);
    assert_eq!(ports(&lone.give(&other, 0, IN)), [6], "its rest is lost");
    assert_eq!(lone.event(TAIL_LOST), 1);
    let flags = TRAIN | HEAD | TAIL | ABORT;
    assert_eq!(lone.round(3), [(OUT, flags, 0)]);
    lone.is_free(1);
}

#[test]
fn a_train_of_which_a_frame_is_missing_ends_with_the_next_one() {
    let mut lone = Lone::new(Scheme::Plain);
    let train = worm(9, 1, &[254, OUT], 8);
    lone.take(&train, 0..3, IN);
    lone.take(&train, 4..5, IN);
    let mut wanted = whole(8)[..3].to_vec();
    wanted.push((OUT, TRAIN | TAIL | ABORT, 4));
    assert_eq!(lone.round(6), wanted);
    lone.take(&train, 5..8, IN);
    lone.now_us += 1;
    is_reset(&lone.switch.go_round(lone.now_us), IN, &train);
    assert!(lone.round(3).is_empty());
    assert_eq!(lone.dropped(TRAIN_RESET), 2);
    lone.is_free(1);
}

/// A tail is lost: the next worm by that port ends the train, whether its frames wait here or not.
#[test]
fn the_next_worm_of_a_port_ends_a_train_without_tail() {
    for goes_on_first in [true, false] {
        for route in [&[6][..], &[254, 6]] {
            let mut lone = Lone::new(Scheme::Plain);
            lone.take(&worm(9, 1, &[254, OUT], 4), 0..3, IN);
            let mut left = Vec::new();
            if goes_on_first {
                left.extend(lone.round(4));
                assert_eq!(lone.own("channel_outputs"), 1 << OUT);
            }
            let next = worm(9, 2, route, 1);
            left.extend(lone.give(&next, 0, IN).iter().map(left_of));
            assert_eq!(lone.event(TAIL_LOST), 1);
            assert_eq!(lone.own("channel_outputs"), 0, "others may have it");
            // A frame of another port is taken, with or without room for one more.
            lone.take(&worm(8, 1, &[254, OUT], 2), 0..2, OTHER_IN);
            left.extend(lone.round(8));
            let mut wanted = whole(4)[..3].to_vec();
            if !goes_on_first {
                wanted[2].1 |= TAIL | ABORT;
            }
            wanted.push((6, TRAIN | HEAD | TAIL, 0));
            wanted.extend(whole(2));
            left.sort_by_key(|&(port, ..)| port);
            wanted.sort_by_key(|&(port, ..)| port);
            assert_eq!(left, wanted, "{goes_on_first}, {route:?}");
            lone.is_free(1);
        }
    }
}

/// A multicast is as good as any other worm for that, also one that has to wait.
#[test]
fn a_multicast_by_the_same_port_ends_a_train_without_tail() {
    let mut lone = Lone::new(Scheme::Plain);
    lone.take(&worm(9, 1, &[254, OUT], 4), 0..3, IN);
    let tree = Worm {
        is_tree: true,
        ..worm(9, 2, &[OUT, 0, 0xFF], 1)
    };
    lone.take(&tree, 0..1, IN);
    assert_eq!(lone.event(TAIL_LOST), 1);
    let mut wanted = whole(4)[..3].to_vec();
    wanted[2].1 |= TAIL | ABORT;
    assert_eq!(lone.round(6), wanted);
    lone.is_free(1);
}

/// Nothing comes of a train for too long. Another worm takes its place; what comes later goes back.
#[test]
fn a_silent_train_gives_way() {
    for goes_on_first in [true, false] {
        let mut lone = Lone::new(Scheme::Plain);
        let (silent, other) = (worm(9, 1, &[254, OUT], 5), worm(8, 1, &[254, 6], 2));
        lone.take(&silent, 0..2, IN);
        let mut left = if goes_on_first { lone.round(3) } else { vec![] };
        lone.now_us = NOW_US + SILENT_US;
        is_reset(&lone.give(&other, 0, OTHER_IN), OTHER_IN, &other);
        lone.now_us += 10;
        let other = worm(8, 2, &[254, 6], 2);
        lone.take(&other, 0..2, OTHER_IN);
        assert_eq!(lone.event(EXPIRED), 1);
        left.extend(lone.round(6));
        let mut wanted = whole(5)[..2].to_vec();
        if !goes_on_first {
            wanted[1].1 |= TAIL | ABORT;
        }
        let by_six = whole(2).into_iter().map(|(_, flags, at)| (6, flags, at));
        wanted.extend(by_six);
        assert_eq!(left, wanted);
        is_reset(&lone.give(&silent, 2, IN), IN, &silent);
        lone.take(&silent, 3..5, IN);
        assert_eq!(lone.dropped(TRAIN_RESET), 2, "the source knows");
        lone.is_free(1);
    }
}

/// Another worm waits for the output of a train that has gone silent, and gets it.
#[test]
fn the_output_of_a_silent_train_goes_to_those_that_wait() {
    let mut lone = Lone::new(Scheme::Plain);
    let silent = worm(9, 1, &[254, OUT], 5);
    lone.take(&silent, 0..2, IN);
    lone.round(3);
    let other = worm(8, 1, &[OUT], 1);
    assert!(lone.give(&other, 0, OTHER_IN).is_empty(), "it waits");
    lone.now_us += SILENT_US;
    assert_eq!(lone.round(3), whole(1));
    // Its rest finds it out when it comes round.
    lone.take(&silent, 2..5, IN);
    lone.now_us += 1;
    is_reset(&lone.switch.go_round(lone.now_us), IN, &silent);
    assert_eq!((lone.round(2), lone.dropped(TRAIN_RESET)), (vec![], 2));
    lone.is_free(1);
}

/// A RESET on its way back ends what the switch holds of the worm, and others are taken at once.
#[test]
fn a_reset_from_further_on_ends_a_train() {
    let mut lone = Lone::new(Scheme::Plain);
    let train = worm(9, 1, &[254, OUT], 6);
    lone.take(&train, 0..1, IN);
    lone.now_us += 1;
    let head = lone.switch.go_round(lone.now_us);
    lone.take(&train, 1..3, IN);
    assert_eq!(lone.round(2), whole(6)[1..3]);
    // The next switch sends it back as if the host there were full.
    let mut next = one_switch(Scheme::Plain, SILENT_US);
    for sequence in 0..ABSORBED_MAX as u16 {
        let single = frame_of(&worm(3, sequence, &[254, OUT], 1), 0, Scheme::Plain);
        next.forward(&single, IN, NOW_US, |_| 0);
    }
    let mut through = head[0].frame.clone();
    through[16] = 1;
    through.insert(46, 254);
    through[24..26].fill(0);
    let sum = wormcast_wire::worm::checksum(&through[14..47]);
    through[24..26].copy_from_slice(&sum.to_be_bytes());
    let reset = next.forward(&through, 4, NOW_US, |_| 0);
    assert_eq!(ports(&reset), [4]);

    lone.take(&train, 3..5, IN);
    let passed = lone
        .switch
        .forward(&reset[0].frame, OUT, lone.now_us, |_| 0);
    is_reset(&passed, IN, &train);
    assert_eq!(lone.own("channel_outputs"), 0);
    let other = worm(8, 1, &[254, OUT], 2);
    lone.take(&other, 0..2, OTHER_IN);
    assert_eq!(lone.round(8), whole(2));
    assert!(lone.give(&train, 5, IN).is_empty(), "the source knows");
    assert_eq!(lone.dropped(TRAIN_RESET), 3);
    lone.is_free(1);
}

/// A queue loses what goes round. Whoever waits for the output gets it, and the room is there again.
#[test]
fn what_queues_lose_of_a_train_holds_nothing() {
    let mut lone = Lone::new(Scheme::Plain);
    let train = worm(9, 1, &[254, OUT], 6);
    lone.take(&train, 0..2, IN);
    lone.round(2);
    lone.take(&train, 2..4, IN);
    lone.switch.lose_waiting();
    assert_eq!(lone.held(), 2);
    let other = worm(8, 1, &[OUT], 1);
    assert!(lone.give(&other, 0, OTHER_IN).is_empty());
    let lost_us = lone.now_us;
    while lone.round(1).is_empty() {
        lone.now_us += 10_000;
        assert!(lone.now_us < lost_us + 3 * LOST_US, "it waits for ever");
    }
    assert!(lone.now_us > lost_us + LOST_US, "too soon");
    assert_eq!((lone.held(), lone.own("channel_outputs")), (0, 0));
    // Rest, tail included: nothing of it goes on.
    lone.take(&train, 4..6, IN);
    lone.now_us += 1;
    is_reset(&lone.switch.go_round(lone.now_us), IN, &train);
    assert!(lone.round(2).is_empty());
    lone.is_free(1);
}

/// The head is lost on its round, and what comes behind it has nothing to follow.
#[test]
fn a_train_whose_head_is_lost_in_the_switch_ends_here() {
    let mut lone = Lone::new(Scheme::Plain);
    let train = worm(9, 1, &[254, OUT], 4);
    lone.take(&train, 0..1, IN);
    lone.switch.lose_waiting();
    lone.take(&train, 1..4, IN);
    assert!(lone.round(3).is_empty());
    lone.now_us += LOST_US;
    assert!(lone.round(4).is_empty());
    assert_eq!(lone.dropped(TRAIN_BROKEN), 3);
    lone.is_free(1);
}

#[test]
fn a_switch_that_starts_anew_knows_nothing_of_a_train() {
    let mut lone = Lone::new(Scheme::Plain);
    let train = worm(9, 1, &[254, OUT], 4);
    lone.take(&train, 0..3, IN);
    lone.round(2);
    lone.switch = one_switch(Scheme::Plain, SILENT_US);
    lone.take(&train, 3..4, IN);
    assert_eq!(lone.dropped(TRAIN_BROKEN), 1);
    lone.is_free(1);
}

/// The mode goes while frames are held, and comes again: nothing is left behind.
#[test]
fn a_change_of_mode_empties_what_is_held() {
    for comes_back_soon in [true, false] {
        let mut lone = Lone::new(Scheme::Plain);
        let holder = worm(4, 1, &[OUT], 2);
        lone.give(&holder, 0, 1);
        let single = worm(8, 1, &[254, 6], 1);
        lone.take(&single, 0..1, OTHER_IN);
        let train = worm(9, 1, &[254, OUT], 6);
        lone.take(&train, 0..3, IN);
        lone.switch.set_mode("ingress.packet_mode", &[]);
        if comes_back_soon {
            lone.take(&train, 3..4, IN); // dropped
            lone.switch
                .set_mode("ingress.wormhole_mode", &mode(Scheme::Plain, SILENT_US));
            lone.take(&train, 4..6, IN);
            lone.give(&holder, 1, 1);
            let mut wanted = vec![(6, TRAIN | HEAD | TAIL, 0)];
            wanted.extend(&whole(6)[..3]);
            wanted.push((OUT, TRAIN | TAIL | ABORT, 4));
            let left = lone.round(8);
            assert_eq!(left.len(), wanted.len() + 1, "{left:?}");
            assert_eq!(left[..5], wanted, "the last is a RESET");
        } else {
            assert_eq!(lone.round(2), [(6, TRAIN | HEAD | TAIL, 0)]);
            assert_eq!(lone.dropped(TRAIN_REFUSED), 3);
            assert_eq!(lone.held(), 0);
            // A worm is taken in this mode, and waits while the other one comes.
            lone.take(&worm(7, 1, &[254, OUT], 1), 0..1, OTHER_IN);
            lone.switch
                .set_mode("ingress.wormhole_mode", &mode(Scheme::Plain, SILENT_US));
            is_reset(&lone.give(&train, 3, IN), IN, &train);
            lone.take(&train, 4..6, IN);
            assert_eq!(ports(&lone.give(&holder, 1, 1)), [OUT]);
            assert_eq!(lone.round(4), whole(1), "no ABORT");
        }
        lone.is_free(1);
    }
}

/// One that waited is taken again in packet mode, and counted as any: its header has this switch once.
#[test]
fn what_waited_when_the_mode_went_is_taken_anew() {
    let mut lone = Lone::new(Scheme::Plain);
    lone.give(&worm(4, 1, &[OUT], 2), 0, 1);
    lone.take(&worm(8, 1, &[254, OUT], 1), 0..1, OTHER_IN);
    lone.take(&worm(9, 1, &[254, 254, OUT], 1), 0..1, IN);
    assert!(lone.round(2).is_empty(), "they wait");
    lone.switch.set_mode("ingress.packet_mode", &[]);
    let mut left = lone.switch.go_round(lone.now_us);
    assert_eq!((ports(&left), lone.held()), (vec![OUT], 1));
    left.extend(lone.switch.go_round(lone.now_us));
    assert_eq!((ports(&left), lone.held()), (vec![OUT; 2], 0));
    assert!(left.iter().all(|copy| copy.frame[28] == 1));
}

/// Where unicast is flushed, a train that the switch took yields as any.
#[test]
fn a_train_taken_here_is_flushed_as_any() {
    let mut lone = Lone::new(Scheme::Flush);
    // One that knows copies too.
    let topology = generate::from_spec("line:1:7").expect("a network");
    let mut network = Trains::new(topology, Scheme::Flush, SILENT_US, 1);
    lone.switch = network.switches.remove(&0).expect("the switch");
    lone.switch
        .set_mode("ingress.wormhole_mode", &mode(Scheme::Flush, SILENT_US));
    let tree = Worm {
        is_tree: true,
        ..worm(4, 1, &[OUT, 0, 6, 0, 0xFF], 3)
    };
    let mut heads = lone.give(&tree, 0, 1);
    for _ in 0..3 {
        lone.now_us += 1;
        heads.extend(lone.switch.go_round(lone.now_us));
    }
    assert_eq!(heads.len(), 2);
    let train = worm(9, 1, &[254, OUT], 4);
    lone.take(&train, 0..2, IN);
    assert!(lone.round(3).is_empty());
    lone.now_us += 501;
    is_reset(&lone.switch.go_round(lone.now_us), IN, &train);
    // The next worm need not wait for the rest, which the source does not send.
    let other = worm(8, 1, &[254, 1], 2);
    lone.take(&other, 0..2, OTHER_IN);
    let wanted: Vec<Left> = whole(2).iter().map(|&(_, f, at)| (1, f, at)).collect();
    assert_eq!(lone.round(4), wanted);
    lone.take(&train, 2..4, IN);
    assert_eq!(lone.dropped(TRAIN_RESET), 3, "the source knows");
    lone.give(&tree, 2, 1);
    lone.round(2);
    lone.is_free(1);
}

/// What it may not be: a branch of a multicast, a frame behind the head.
#[test]
fn what_port_254_is_not_for() {
    let mut lone = Lone::new(Scheme::Interrupt);
    let tree = Worm {
        is_tree: true,
        ..worm(4, 1, &[OUT, 0, 254, 0, 0xFF], 3)
    };
    assert!(lone.give(&tree, 0, 1).is_empty());
    assert_eq!(lone.dropped(TREE_MALFORMED), 1);
    let mut body = frame_of(&worm(4, 2, &[254, OUT], 3), 0, Scheme::Plain);
    body[15] &= !HEAD;
    body[24..26].fill(0);
    let sum = wormcast_wire::worm::checksum(&body[14..48]);
    body[24..26].copy_from_slice(&sum.to_be_bytes());
    assert!(lone.switch.forward(&body, 1, lone.now_us, |_| 0).is_empty());
    assert_eq!(lone.dropped(TRAIN_REFUSED), 1);
    lone.is_free(1);
}

/// A train is taken though a worm of its port waits, and is in nobody's way.
#[test]
fn a_train_passes_by_what_waits_at_its_port() {
    let mut lone = Lone::new(Scheme::Plain);
    let holder = worm(4, 1, &[6], 2);
    assert_eq!(ports(&lone.give(&holder, 0, 1)), [6]);
    let waits = worm(9, 1, &[6], 3);
    lone.take(&waits, 0..3, IN);
    let train = worm(9, 2, &[254, OUT], 3);
    lone.take(&train, 0..3, IN);
    assert_eq!(lone.round(6), whole(3));
    assert_eq!(ports(&lone.give(&holder, 1, 1)), [6]);
    let wanted: Vec<Left> = whole(3).iter().map(|&(_, f, at)| (6, f, at)).collect();
    assert_eq!(lone.round(6), wanted);
    lone.is_free(1);
}

/// A route that names port 254 twice: the train keeps its place.
#[test]
fn a_train_may_be_taken_twice() {
    let mut lone = Lone::new(Scheme::Plain);
    let holder = worm(4, 1, &[6], 2);
    assert_eq!(ports(&lone.give(&holder, 0, 1)), [6]);
    lone.take(&worm(8, 1, &[254, 6], 1), 0..1, OTHER_IN);
    let train = worm(9, 1, &[254, 254, OUT], 3);
    lone.take(&train, 0..3, IN);
    assert!(lone.round(4).is_empty(), "one waits before it");
    lone.give(&holder, 1, 1);
    let left = lone.round(6);
    assert_eq!(left[0].0, 6);
    assert_eq!(left[1..], whole(3));
    lone.is_free(1);
}

/// What has crossed as many switches as a worm may is not taken, in its first pass or in a later one; so nobody loses
/// its turn by it.
#[test]
fn what_has_gone_too_far_costs_nobody_its_turn() {
    for (route, hops) in [(&[254, OUT][..], 63), (&[254, 254, OUT], 62)] {
        let mut lone = Lone::new(Scheme::Plain);
        let holder = worm(4, 1, &[6], 2);
        assert_eq!(ports(&lone.give(&holder, 0, 1)), [6]);
        lone.take(&worm(8, 1, &[254, 6], 1), 0..1, OTHER_IN);
        let mut far = frame_of(&worm(9, 1, route, 1), 0, Scheme::Plain);
        far[17] = hops;
        far[24..26].fill(0);
        let sum = wormcast_wire::worm::checksum(&far[14..46 + route.len()]);
        far[24..26].copy_from_slice(&sum.to_be_bytes());
        assert!(lone.switch.forward(&far, IN, lone.now_us, |_| 0).is_empty());
        lone.round(3);
        lone.give(&holder, 1, 1);
        assert_eq!(lone.round(5), [(6, TRAIN | HEAD | TAIL, 0)]);
        assert_eq!(lone.dropped(HOPS_EXCEEDED), 1);
        assert_eq!(lone.dropped(TRAIN_BROKEN), 0);
        lone.is_free(1);
        assert_eq!(lone.event(TAIL_LOST), 0, "it had none to lose");
    }
}

/// Worms that hold no channel wait for no turn, and take nobody's.
#[test]
fn what_holds_no_channel_passes_what_waits() {
    let mut lone = Lone::new(Scheme::Plain);
    let holder = worm(4, 1, &[OUT], 2);
    lone.give(&holder, 0, 1);
    lone.take(&worm(8, 1, &[254, OUT], 2), 0..2, OTHER_IN);
    let mut control = frame_of(&worm(9, 1, &[254, 6], 1), 0, Scheme::Packet);
    control[14] = 0x14;
    control[15] = HEAD | TAIL;
    control[24..26].fill(0);
    let sum = wormcast_wire::worm::checksum(&control[14..28]);
    control[24..26].copy_from_slice(&sum.to_be_bytes());
    assert!(
        lone.switch
            .forward(&control, IN, lone.now_us, |_| 0)
            .is_empty()
    );
    assert_eq!(lone.round(1)[0].0, 6);
    lone.give(&holder, 1, 1);
    assert_eq!(lone.round(4), whole(2));
    lone.is_free(1);
}
