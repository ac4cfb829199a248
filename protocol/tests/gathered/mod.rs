//! ACKs that switches gather: fewer ACKs between hosts, and nothing that depends on those that are gathered.

mod net;

use net::{GROUP, Net, ORIGIN, SWITCH};
use wormcast_protocol::{Event, Reject};
use wormcast_wire::gather::{Announcement, Op};
use wormcast_wire::{FailReason, HostId, Seq};

const FIRST: HostId = HostId(2);
const SECOND: HostId = HostId(3);

/// A net in which a message has gone through and members have seen that gathered ACKs come.
fn settled(members: u16, deep: bool) -> Net {
    let mut net = Net::new(members, deep);
    for message in 0..3 {
        net.write(20);
        net.settle(message, 100);
        net.run_ms(300);
    }
    net.take_acks();
    net
}

#[test]
fn one_gathered_ack_says_that_all_have_a_short_message() {
    for (members, deep) in [(3, false), (9, true)] {
        let mut net = settled(members, deep);
        for message in 3..8 {
            net.write(20);
            let took_us = net.settle(message, 100);
            assert!(took_us < 2_000, "{took_us} µs");
            net.run_ms(300);
            assert_eq!(net.take_acks(), (0, 1), "{members} members, deep {deep}");
        }
        for member in 2..=members {
            assert_eq!(net.read[&HostId(member)].len(), 8);
            let (next, stable) = net.arrived(HostId(member));
            assert_eq!(next, stable, "all know that all is stable");
        }
        assert_eq!(net.counted(ORIGIN, "gathered_received"), 8);
        assert!(net.counted(FIRST, "gathered_sent") >= 8);
    }
}

#[test]
fn a_long_message_takes_far_fewer_acks() {
    let mut acks = Vec::new();
    for gathers in [false, true] {
        let mut net = settled(7, false);
        net.gather_epoch = gathers.then_some(9);
        net.plan_all();
        net.run_ms(1_000);
        net.take_acks();
        net.write(2_000_000);
        net.settle(3, 3_000);
        acks.push(net.take_acks());
        // What hosts say comes late, and denies nothing that was gathered meanwhile.
        net.ack_way_us = 30_000;
        for message in 4..if gathers { 50 } else { 4 } {
            net.write(60_000);
            net.settle(message, 100);
        }
        assert_eq!(net.counted(ORIGIN, "retransmissions"), 0);
    }
    let [(usual, 0), (hosts, gathered)] = acks[..] else {
        panic!("{acks:?}");
    };
    assert!(4 * (hosts + gathered) < usual, "{acks:?}");
}

#[test]
fn where_none_comes_hosts_acknowledge_as_before() {
    for gathers in [true, false] {
        let mut net = settled(9, true);
        // Either the switch has forgotten its entries, or what it says is lost.
        net.gathers = gathers;
        net.loses_gathered = gathers;
        net.write(20);
        let took_us = net.settle(3, 1_000);
        assert!(took_us < 250_000, "{took_us} µs");
        net.run_ms(600);
        net.take_acks();
        for message in 4..8 {
            net.write(20);
            let took_us = net.settle(message, 100);
            assert!(took_us < 12_000, "{took_us} µs");
            net.run_ms(10);
        }
        net.gathers = true;
        net.loses_gathered = false;
        // The next attempt succeeds.
        for message in 8..20 {
            net.run_ms(300);
            net.write(20);
            net.settle(message, 1_000);
        }
        net.run_ms(300);
        net.take_acks();
        net.write(20);
        net.settle(20, 100);
        net.run_ms(100);
        assert_eq!(net.take_acks(), (0, 1));
    }
}

#[test]
fn a_plan_whose_switches_never_gather_costs_no_stream_more_than_a_moment() {
    let mut net = Net::new(9, true);
    net.gathers = false;
    let mut slow = 0;
    for message in 0..100 {
        net.write(20);
        let took_us = net.settle(message, 1_000);
        slow += u64::from(took_us > 12_000);
        net.run_ms(100);
    }
    assert!(slow <= 20, "{slow} of 100 messages");
    assert_eq!(net.counted(ORIGIN, "gathered_received"), 0);
}

#[test]
fn a_switch_that_starts_anew_delays_a_message_at_most() {
    let mut net = settled(9, true);
    net.write(400_000);
    net.run_ms(3);
    net.restart_switch();
    net.settle(3, 1_000);
    net.run_ms(300);
    // All has been said, and is forgotten before it has come.
    net.loses_gathered = true;
    net.write(20);
    net.run_ms(1);
    net.loses_gathered = false;
    net.restart_switch();
    net.settle(4, 500);
    assert!(net.read.values().all(|messages| messages.len() == 5));
}

/// No ACK of a host comes, so all that is known is gathered.
#[test]
fn a_word_that_is_lost_is_said_again() {
    // On its way to the switch; on its way from there, where only REFRESH helps.
    for (lost_at_once, most_us) in [(true, 90_000), (false, 900_000)] {
        let mut net = settled(9, true);
        net.loses_acks.extend((2..=9).map(HostId));
        net.gathers = !lost_at_once;
        net.loses_gathered = true;
        net.write(20);
        net.run_ms(20);
        net.gathers = true;
        net.loses_gathered = false;
        assert_eq!(net.take_acks().0, 0);
        let took_us = net.settle(3, 1_000);
        assert!(took_us < most_us, "{took_us} µs");
        assert_eq!(net.acks_to_origin, 0);
    }
}

fn said(net: &Net, cumulative: u32, stable: u32) -> Announcement {
    let stream = net.engines[&ORIGIN]
        .arrived_from(GROUP, ORIGIN)
        .expect("its stream");
    Announcement {
        op: Op::Ack,
        flags: 0,
        group: GROUP,
        origin: ORIGIN,
        port: 0,
        epoch: 9,
        stream: stream.stream,
        cumulative: Seq(stream.next.0.wrapping_add(cumulative)),
        stable: Seq(stream.next.0.wrapping_add(stable)),
    }
}

#[test]
fn what_is_not_of_this_plan_and_stream_or_cannot_be_is_refused() {
    let mut net = settled(3, false);
    net.asleep.extend([FIRST, SECOND]);
    let before = said(&net, 1, 1);
    net.write(20);
    net.run_ms(30);
    assert!(!net.outcomes.contains_key(&3));
    let cases: [(Announcement, HostId, Reject); 10] = [
        (before, HostId(901), Reject::GatheredUnasked),
        (before, FIRST, Reject::GatheredUnasked),
        (
            Announcement {
                op: Op::Answer,
                ..before
            },
            SWITCH,
            Reject::GatheredUnasked,
        ),
        (
            Announcement {
                op: Op::Request,
                ..before
            },
            SWITCH,
            Reject::GatheredUnasked,
        ),
        (
            Announcement {
                origin: FIRST,
                ..before
            },
            SWITCH,
            Reject::GatheredUnasked,
        ),
        (
            Announcement { epoch: 8, ..before },
            SWITCH,
            Reject::GatheredStale,
        ),
        (
            Announcement {
                stream: before.stream + 1,
                ..before
            },
            SWITCH,
            Reject::GatheredStale,
        ),
        (
            Announcement {
                group: wormcast_wire::GroupId(4),
                ..before
            },
            SWITCH,
            Reject::UnknownGroup,
        ),
        // Beyond what was sent; more confirmed than held.
        (
            Announcement {
                cumulative: Seq(before.cumulative.0 + 1),
                ..before
            },
            SWITCH,
            Reject::AckImpossible,
        ),
        (
            Announcement {
                cumulative: Seq(before.cumulative.0 - 1),
                ..before
            },
            SWITCH,
            Reject::AckImpossible,
        ),
    ];
    net.gathers = false;
    net.run_ms(1);
    let received = net.counted(ORIGIN, "gathered_received");
    for (announced, source, reject) in cases {
        let count = |net: &Net| net.engines[&ORIGIN].counters().rejected(reject);
        let counted = count(&net);
        net.hear(&announced, source);
        net.run_ms(1);
        assert_eq!(count(&net), counted + 1, "{announced:?} from {source}");
        assert!(
            !net.outcomes.contains_key(&3),
            "{announced:?} from {source}"
        );
    }
    assert_eq!(net.counted(ORIGIN, "gathered_received"), received);
    net.hear(&before, SWITCH);
    net.run_ms(1);
    assert_eq!(net.outcomes[&3], [], "that one says that all have it");
    assert_eq!(net.counted(ORIGIN, "gathered_received"), received + 1);
    // An old one takes nothing back, and does no harm.
    let old = Announcement {
        cumulative: Seq(before.cumulative.0 - 2),
        stable: Seq(before.stable.0 - 2),
        ..before
    };
    net.hear(&old, SWITCH);
    net.run_ms(1);
    let (next, stable) = net.arrived(ORIGIN);
    assert_eq!((next, stable), (before.stable, before.stable));
}

/// Who lacks a message says so by hosts; until that has come the message must not seem to be at all.
#[test]
fn who_gives_a_message_up_is_named_however_late_its_word_comes() {
    for deep in [false, true] {
        let mut net = settled(4, deep);
        net.asleep.insert(SECOND);
        net.write(20);
        net.run_ms(5);
        let now = net.now();
        net.loses_acks.insert(SECOND);
        let engine = net.engines.get_mut(&SECOND).expect("a host");
        engine
            .abort(GROUP, ORIGIN, FailReason::NoSpace, now)
            .expect("a message");
        net.asleep.clear();
        net.write(20);
        net.run_ms(700);
        assert!(!net.outcomes.contains_key(&3), "deep {deep}");
        net.loses_acks.clear();
        net.settle(3, 1_000);
        net.settle(4, 1_000);
        let failed = [(SECOND, FailReason::NoSpace)];
        assert_eq!(net.outcomes[&3], failed, "deep {deep}");
        assert_eq!(net.outcomes[&4], [], "deep {deep}");
    }
}

/// The switch remembers what the memory before had. The origin must not take that for what the member has.
#[test]
fn a_member_that_has_lost_what_it_had_gets_it_again() {
    for (deep, member) in [(false, FIRST), (true, FIRST), (true, SECOND)] {
        let mut net = settled(4, deep);
        // The other one is slow, so nothing is stable; what was said is held by the switch.
        net.asleep.extend([HostId(4), member]);
        net.write(60_000);
        net.run_ms(20);
        net.start(member);
        net.asleep.clear();
        net.write(60_000);
        net.settle(3, 3_000);
        net.settle(4, 3_000);
        net.run_ms(500);
        let lengths: Vec<usize> = net.read[&member].iter().map(Vec::len).collect();
        assert_eq!(lengths[lengths.len() - 2..], [60_000, 60_000], "{member}");
        let failed = net.outcomes.values().flatten().count();
        assert_eq!(failed, 0, "{member}, deep {deep}: {:?}", net.outcomes);
    }
}

/// Nobody has heard the memory before but the switch.
#[test]
fn a_word_of_the_switch_that_the_member_denies_is_taken_back() {
    let mut net = settled(3, false);
    net.asleep.extend([FIRST, SECOND]);
    net.loses_data.insert(FIRST);
    net.write(60_000);
    net.run_ms(5);
    // As if a memory that is lost had said it: all of what has been sent.
    let sent = net.counted(ORIGIN, "data_sent_packets") as u32 - 3;
    let mut word = said(&net, 0, 0);
    word.cumulative = Seq(net.arrived(ORIGIN).1.0.wrapping_add(sent));
    word.stable = net.arrived(ORIGIN).1;
    net.hear(&word, SWITCH);
    net.run_ms(1);
    net.loses_data.clear();
    net.asleep.clear();
    // The switch says it again and again.
    let mut ms = 0;
    while !net.outcomes.contains_key(&3) {
        net.hear(&word, SWITCH);
        net.run_ms(1);
        ms += 1;
        assert!(ms < 350, "{ms} ms");
    }
    assert_eq!(net.read[&FIRST][3].len(), 60_000);
}

#[test]
fn a_member_that_was_given_up_stays_so_until_it_speaks_itself() {
    let mut net = settled(3, false);
    net.dead.insert(FIRST);
    net.write(20);
    net.run_ms(61_000);
    assert_eq!(net.outcomes[&3], [(FIRST, FailReason::Silent)]);
    let before = said(&net, 0, 0);
    net.write(20);
    net.run_ms(100);
    assert_eq!(net.outcomes[&4], [(FIRST, FailReason::Silent)]);
    net.hear(&before, SWITCH);
    net.write(20);
    net.run_ms(100);
    assert_eq!(net.outcomes[&5], [(FIRST, FailReason::Silent)]);
    net.dead.clear();
    net.run_ms(2_000);
    net.write(20);
    net.settle(6, 1_000);
    assert_eq!(net.outcomes[&6], []);
    let gone = |event: &&Event| matches!(event, Event::MemberFailed { .. });
    assert_eq!(net.events.iter().filter(gone).count(), 1);
}

#[test]
fn another_epoch_counts_from_when_all_follow_it() {
    let mut net = settled(4, true);
    net.asleep.insert(SECOND);
    net.write(20);
    net.run_ms(30);
    (net.plan_epoch, net.gather_epoch) = (2, Some(10));
    net.plan_at(ORIGIN);
    net.plan_at(FIRST);
    let old = said(&net, 0, 0);
    net.hear(&old, SWITCH);
    net.run_ms(1);
    assert!(!net.outcomes.contains_key(&3), "it is of the plan before");
    assert_eq!(
        net.engines[&ORIGIN]
            .counters()
            .rejected(Reject::GatheredStale),
        1
    );
    net.asleep.clear();
    net.plan_all();
    net.settle(3, 1_000);
    net.run_ms(500);
    net.write(20);
    net.settle(4, 100);
    net.run_ms(500);
    net.take_acks();
    net.write(20);
    net.settle(5, 100);
    net.run_ms(100);
    assert_eq!(net.take_acks(), (0, 1));
    // And without: all as ever.
    (net.plan_epoch, net.gather_epoch) = (3, None);
    net.plan_all();
    net.run_ms(100);
    let sent = net.counted(FIRST, "gathered_sent");
    net.write(20);
    net.settle(6, 100);
    net.run_ms(1_000);
    assert_eq!(net.counted(FIRST, "gathered_sent"), sent);
}
