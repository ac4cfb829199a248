//! A member that has missed something of what the sequencer said.

use super::leading::SNAPSHOT_US;
use super::*;

fn run(origin: u16, stream: u32, number: u32) -> Run {
    Run {
        origin: HostId(origin),
        stream,
        from: Seq(10 * number),
        to: Seq(10 * number + 1),
    }
}

fn say(snapshot: bool, runs: &[Run]) -> Vec<u8> {
    let message = OrderMessage {
        epoch: 3,
        snapshot,
        runs: runs.to_vec(),
    };
    message.encode()
}

/// A member that is not told what all have begun to read has room for all that the sequencer says.
#[test]
fn what_is_done_and_counts_no_more_takes_no_room() {
    let held = Held::of(&[(1, 0), (2, 1), (3, 1)]);
    let mut member = order(4);
    // Of this host itself: done, and not known to be stable.
    let full: Vec<Run> = (0..RUNS_MAX as u32).map(|life| run(4, life, 0)).collect();
    for snapshot in [true, false, false] {
        assert!(member.take(SEQUENCER, &say(snapshot, &full), &[], &held));
    }
    assert!(member.take(SEQUENCER, &say(false, &[run(2, 5, 0)]), &[], &held));
    assert_eq!((member.refused, member.live.len()), (0, RUNS_MAX));
    assert_eq!(member.turn(message(2, 0), &held), Turn::Now);
}

/// What found no place stays unknown until the sequencer says all again. What is said after it must not come before.
#[test]
fn what_comes_behind_news_without_room_waits() {
    let mut held = Held::of(&[(1, 0), (2, 1), (3, 1)]);
    let mut member = order(4);
    // None of these has come.
    let full: Vec<Run> = (1..2 * RUNS_MAX as u32)
        .map(|at| run(2, 5 + at, 0))
        .collect();
    assert!(member.take(SEQUENCER, &say(true, &full), &[], &held));
    let life = 6 + 2 * RUNS_MAX as u32;
    let (one, two, three) = (run(2, life, 0), run(2, life, 1), run(3, 5, 0));
    assert!(!member.take(SEQUENCER, &say(false, &[one, two]), &[], &held));
    assert_eq!(member.refused, 1);
    assert!(!member.take(SEQUENCER, &say(false, &[three]), &[], &held));
    // Its origin has started anew: they will not come.
    held.set(2, |state| state.stream = life);
    assert_eq!(member.turn(message(3, 0), &held), Turn::Unknown);
    assert!(member.take(SEQUENCER, &say(true, &[one, two, three]), &[], &held));
    assert_eq!(member.turn(message(3, 0), &held), Turn::Later);
}

/// This host has passed over a part of what the sequencer said, since it counted as gone.
#[test]
fn what_comes_behind_a_gap_waits() {
    let mut held = Held::of(&[(1, 0), (2, 1), (3, 1)]);
    let mut member = order(4);
    assert!(member.take(SEQUENCER, &say(true, &[]), &[], &held));
    held.set(1, |state| state.unbroken = Unbroken(0, 1));
    let news = say(false, &[run(3, 5, 0)]);
    assert!(!member.take(SEQUENCER, &news, &[], &held));
    assert_eq!(member.turn(message(3, 0), &held), Turn::Unknown);
    let all = say(true, &[run(2, 5, 0), run(3, 5, 0)]);
    assert!(member.take(SEQUENCER, &all, &[], &held));
    assert_eq!(read_all(&mut member, &mut held), [(2, 0), (3, 0)]);
}

/// What the sequencer says again comes behind its message, and what it says may come first.
#[test]
fn what_may_come_before_a_message_read_ahead_is_not_read() {
    let mut held = Held::of(&[(1, 1), (2, 2), (3, 2)]);
    let mut member = order(4);
    assert!(member.take(SEQUENCER, &say(true, &[]), &[], &held));
    assert_eq!(member.turn(message(1, 0), &held), Turn::Now);
    assert!(!member.read_ahead);
    held.set(1, |state| state.unbroken = Unbroken(0, 1));
    assert_eq!(read_all(&mut member, &mut held), [(1, 0)]);
    assert!(member.read_ahead);
    assert!(member.take(SEQUENCER, &say(true, &[run(2, 5, 0)]), &[], &held));
    assert!(!member.read_ahead);
    assert_eq!(member.turn(message(2, 0), &held), Turn::Never);
    held.set(2, |state| state.next = Seq(10));
    let news = say(false, &[run(2, 5, 1), run(3, 5, 0)]);
    assert!(member.take(SEQUENCER, &news, &[], &held));
    assert_eq!(read_all(&mut member, &mut held), [(2, 1), (3, 0)]);
}

/// What the sequencer says may be stuck behind messages that others cannot read before this member has read one.
#[test]
fn a_member_that_has_heard_nothing_is_told_what_is_next() {
    let mut held = Held::of(&[(1, 0), (2, 2), (3, 1)]);
    let (mut first, mut member) = (order(1), order(4));
    announced(&mut first, &mut held);
    first.note_announced(7);
    let [one, two, other] = [message(2, 0), message(2, 1), message(3, 0)];
    let now = Instant::from_micros(9);
    for waits in [one, two, other] {
        assert_eq!(member.turn(waits, &held), Turn::Unknown);
    }
    // All of the first run, but nothing behind it.
    let mut want = |waits, held: &Held| first.want(waits, held, now);
    assert_eq!([want(one, &held), want(two, &held)], [Some(7); 2]);
    assert_eq!(want(other, &held), None);
    assert_eq!(order(3).want(one, &held, now), None, "no sequencer");
    assert!(!member.note_next(HostId(3), one), "a stranger");
    assert_eq!(member.turn(one, &held), Turn::Unknown);
    assert!(member.note_next(SEQUENCER, one));
    assert_eq!(member.turn(one, &held), Turn::Now);
    assert_eq!(member.turn(other, &held), Turn::Unknown);
    held.set(2, |state| (state.next, state.stable) = (Seq(20), Seq(20)));
    assert_eq!(want(other, &held), Some(7));
}

#[test]
fn who_misses_something_asks_until_all_is_said_again() {
    let mut held = Held::of(&[(1, 0), (2, 1)]);
    let mut member = order(4);
    let mut at_us = 1;
    let mut ask = |member: &mut Order, held: &Held, after_us: u64| {
        at_us += after_us;
        member.poll_question(held, Instant::from_micros(at_us))
    };
    // What the sequencer says first may be on its way.
    assert_eq!(ask(&mut member, &held, 0), None);
    let question = Some(message(1, 0));
    assert_eq!(ask(&mut member, &held, ASK_FIRST_US), question);
    assert_eq!(ask(&mut member, &held, ASK_INTERVAL_US - 1), None);
    assert_eq!(ask(&mut member, &held, 1), question);
    assert!(member.take(SEQUENCER, &say(true, &[]), &[], &held));
    assert_eq!(ask(&mut member, &held, ASK_INTERVAL_US), None);
    assert_eq!(member.question_timeout(), None);
    held.set(1, |state| state.unbroken = Unbroken(0, 1));
    assert_eq!(ask(&mut member, &held, 1), question);
    assert!(member.question_timeout().is_some());
    // One that has just started knows nothing of the sequencer's stream.
    let (mut new, now) = (order(4), Instant::from_micros);
    assert_eq!(new.poll_question(&Held::default(), now(1)), None);
    let question = new.poll_question(&Held::default(), now(1 + ASK_FIRST_US));
    assert_eq!(question.map(|message| message.origin), Some(SEQUENCER));
    let mut first = order(1);
    assert_eq!(first.poll_question(&held, Instant::from_micros(9)), None);
}

/// Nothing that it has taken can come too early.
#[test]
fn one_that_has_just_started_takes_what_it_hears() {
    let held = Held::of(&[(1, 1), (2, 1), (3, 1)]);
    let mut member = order(4);
    assert!(member.take(SEQUENCER, &say(false, &[run(3, 5, 0)]), &[], &held));
    assert_eq!(member.turn(message(3, 0), &held), Turn::Now);
    assert_eq!(member.turn(message(1, 0), &held), Turn::Later);
    assert!(!member.read_ahead);
}

/// Its stream was dropped with its origin, which is back; not all had read it.
#[test]
fn who_asks_for_what_the_sequencer_has_read_and_forgotten_is_told() {
    let mut held = Held::of(&[(1, 0), (2, 1), (3, 0)]);
    let (mut first, mut member) = (order(1), order(4));
    announced(&mut first, &mut held);
    first.note_read(message(2, 0));
    let there = held.clone();
    held.0.remove(&HostId(2));
    let now = Instant::from_micros(1_000_000);
    for _ in 0..3 {
        first.gather(&mut held);
        assert_eq!(first.want(message(2, 0), &held, now), None);
        first.gather(&mut held);
        let bytes = first.poll(now.plus_us(SNAPSHOT_US)).expect("asked for");
        assert!(member.take(SEQUENCER, &bytes, &[], &there));
        assert_eq!(member.turn(message(2, 0), &there), Turn::Now);
    }
}
