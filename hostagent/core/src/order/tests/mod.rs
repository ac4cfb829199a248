//! Who reads what when.

mod gaps;

use super::leading::ON_ITS_WAY_US;
use super::*;

const SEQUENCER: HostId = HostId(1);

/// Streams by origin: their state, and where messages begin that have come.
#[derive(Clone, Default)]
struct Held(BTreeMap<HostId, (StreamState, Vec<Seq>)>);

impl Held {
    /// Messages of ten packets that have come of life 5 of each stream; none is read.
    fn of(counts: &[(u16, u32)]) -> Held {
        let mut held = Held::default();
        for &(origin, count) in counts {
            let state = StreamState {
                stream: 5,
                next: Seq(0),
                stable: Seq(0),
                unbroken: Unbroken::default(),
            };
            let starts = (0..count).map(|at| Seq(10 * at)).collect();
            held.0.insert(HostId(origin), (state, starts));
        }
        held
    }

    fn set(&mut self, origin: u16, change: impl FnOnce(&mut StreamState)) {
        change(&mut self.0.get_mut(&HostId(origin)).unwrap().0);
    }
}

impl Streams for Held {
    fn state(&self, origin: HostId) -> Option<StreamState> {
        self.0.get(&origin).map(|held| held.0)
    }

    fn origins(&self) -> Vec<HostId> {
        self.0.keys().copied().collect()
    }

    fn starts(&mut self, origin: HostId, from: Seq, most: usize) -> Vec<Seq> {
        let starts = self.0[&origin].1.iter().copied();
        let wanted = starts.filter(|start| !from.is_after(*start));
        wanted.take(most).collect()
    }
}

fn order(own: u16) -> Order {
    let members = [1, 2, 3, 4].map(HostId);
    let sequencer = Sequencer {
        host: SEQUENCER,
        epoch: 3,
    };
    Order::new(HostId(own), &members, sequencer)
}

fn message(origin: u16, number: u32) -> MessageId {
    MessageId {
        origin: HostId(origin),
        stream: 5,
        start: Seq(10 * number),
    }
}

fn announced(order: &mut Order, held: &mut Held) -> OrderMessage {
    order.gather(held);
    let bytes = order.poll(Instant::from_micros(1));
    OrderMessage::decode(&bytes.expect("something is to be said")).unwrap()
}

/// All that can be read, in the order in which it is.
fn read_all(order: &mut Order, held: &mut Held) -> Vec<(u16, u32)> {
    let mut read = Vec::new();
    loop {
        let origins = held.origins();
        let turn = origins.into_iter().find(|origin| {
            let (state, starts) = &held.0[origin];
            let id = MessageId {
                origin: *origin,
                stream: 5,
                start: state.next,
            };
            starts.contains(&state.next) && order.turn(id, held) == Turn::Now
        });
        let Some(origin) = turn else {
            return read;
        };
        let number = held.0[&origin].0.next.0 / 10;
        order.note_read(message(origin.0, number));
        held.set(origin.0, |state| state.next = Seq(10 * number + 10));
        read.push((origin.0, number));
    }
}

#[test]
fn members_read_as_the_sequencer_says() {
    let mut first = order(1);
    let mut sequencer_holds = Held::of(&[(2, 0), (3, 1)]);
    let one = announced(&mut first, &mut sequencer_holds);
    assert!(one.snapshot, "a epoch begins with all there is");
    sequencer_holds.0.extend(Held::of(&[(2, 2), (3, 2)]).0);
    let two = announced(&mut first, &mut sequencer_holds);
    assert!(!two.snapshot);
    assert_eq!(
        two.runs.len(),
        2,
        "messages of one origin in a row are one run"
    );

    let mut member = order(4);
    let mut held = Held::of(&[(2, 2), (3, 2)]);
    assert_eq!(read_all(&mut member, &mut held), [], "nothing is said yet");
    member.take(SEQUENCER, &one.encode(), &[], &held);
    assert_eq!(read_all(&mut member, &mut held), [(3, 0)]);
    member.take(SEQUENCER, &two.encode(), &[], &held);
    let rest = [(2, 0), (2, 1), (3, 1)];
    assert_eq!(read_all(&mut member, &mut held), rest);
    let mut all = vec![(3, 0)];
    all.extend(rest);
    assert_eq!(
        read_all(&mut first, &mut sequencer_holds),
        all,
        "it reads so too"
    );
}

#[test]
fn one_that_has_not_come_holds_up_the_others() {
    let mut first = order(1);
    let announced = announced(&mut first, &mut Held::of(&[(2, 1), (3, 1)]));
    let mut member = order(4);
    let mut held = Held::of(&[(3, 1)]);
    member.take(SEQUENCER, &announced.encode(), &[], &held);
    assert_eq!(read_all(&mut member, &mut held), []);
    held.0.extend(Held::of(&[(2, 1)]).0);
    assert_eq!(read_all(&mut member, &mut held), [(2, 0), (3, 0)]);
}

#[test]
fn the_messages_of_the_sequencer_come_between_what_it_says() {
    let mut member = order(4);
    let mut held = Held::of(&[(1, 1), (2, 1)]);
    assert!(
        member.turn(message(1, 0), &held) == Turn::Now,
        "nothing was said before it"
    );
    let announced = announced(&mut order(1), &mut Held::of(&[(2, 1)]));
    member.take(SEQUENCER, &announced.encode(), &[], &held);
    assert!(member.turn(message(1, 0), &held) != Turn::Now);
    assert_eq!(read_all(&mut member, &mut held), [(2, 0), (1, 0)]);
}

/// The sequencer does not say again what all have begun to read. Who is still reading it reads it to its
/// end before the next.
#[test]
fn what_is_being_read_comes_before_what_a_snapshot_says() {
    let mut member = order(4);
    let mut held = Held::of(&[(1, 0), (2, 1), (3, 1)]);
    let one = announced(&mut order(1), &mut Held::of(&[(2, 1), (3, 1)]));
    member.take(SEQUENCER, &one.encode(), &[], &held);
    assert_eq!(member.turn(message(2, 0), &held), Turn::Now);
    let rest = OrderMessage {
        runs: one.runs[1..].to_vec(),
        ..one.clone()
    };
    member.take(SEQUENCER, &rest.encode(), &[message(2, 0)], &held);
    assert_eq!(member.turn(message(3, 0), &held), Turn::Later);
    // Not where the sequencer has started anew, and others may read in another order.
    held.set(1, |state| state.stream = 6);
    member.take(SEQUENCER, &rest.encode(), &[message(2, 0)], &held);
    assert_eq!(member.turn(message(3, 0), &held), Turn::Now);
}

/// Else it would hold up for ever what its origin says behind it, where others that came first wait for
/// members that wait for it.
#[test]
fn a_message_from_before_the_reign_of_its_origin_waits_for_nothing() {
    let announced = announced(&mut order(1), &mut Held::of(&[(3, 1)]));
    let mut member = order(4);
    let held = Held::of(&[(1, 0), (2, 1), (3, 1)]);
    member.take(SEQUENCER, &announced.encode(), &[], &held);
    assert_ne!(member.turn(message(2, 0), &held), Turn::Now);
    let sequencer = Sequencer {
        host: HostId(2),
        epoch: 4,
    };
    member.plan(&[2, 3, 4].map(HostId), sequencer);
    assert_eq!(member.turn(message(2, 0), &held), Turn::Now);
    let snapshot = OrderMessage {
        epoch: 4,
        ..announced.clone()
    };
    member.take(HostId(2), &snapshot.encode(), &[], &held);
    assert_eq!(
        member.turn(message(2, 1), &held),
        Turn::Later,
        "behind what it said"
    );
}

#[test]
fn what_breaks_off_or_whose_origin_left_holds_up_nothing() {
    let mut first = order(1);
    let announced = announced(&mut first, &mut Held::of(&[(2, 1), (3, 1), (4, 1)]));
    let mut member = order(4);
    let mut held = Held::of(&[(2, 1), (3, 1)]);
    member.take(SEQUENCER, &announced.encode(), &[], &held);
    assert!(member.turn(message(3, 0), &held) != Turn::Now);
    let mut anew = held.clone();
    anew.set(2, |state| (state.stream, state.next) = (6, Seq(90)));
    assert!(
        member.turn(message(3, 0), &anew) == Turn::Now,
        "its origin began anew"
    );

    let mut member = order(4);
    member.take(SEQUENCER, &announced.encode(), &[], &held);
    held.0.remove(&HostId(2));
    assert!(
        member.turn(message(3, 0), &held) != Turn::Now,
        "it may still come"
    );
    let sequencer = Sequencer {
        host: SEQUENCER,
        epoch: 3,
    };
    member.plan(&[HostId(1), HostId(3), HostId(4)], sequencer);
    assert!(
        member.turn(message(3, 0), &held) == Turn::Now,
        "its origin left"
    );
}

#[test]
fn what_is_waited_for_is_named_until_it_is_read() {
    let announced = announced(&mut order(1), &mut Held::of(&[(2, 2), (3, 1)]));
    let mut member = order(4);
    let mut held = Held::of(&[(3, 1)]);
    member.take(SEQUENCER, &announced.encode(), &[], &held);
    assert_eq!(member.turn(message(3, 0), &held), Turn::Later);
    assert_eq!(member.waited_for(&held), Some(message(2, 0)));
    held.0.extend(Held::of(&[(2, 0)]).0);
    assert_eq!(member.waited_for(&held), Some(message(2, 0)), "it may rest");
    // Its origin has said that it came before this member did.
    held.set(2, |state| (state.next, state.stable) = (Seq(20), Seq(20)));
    assert_eq!(read_all(&mut member, &mut held), [(3, 0)]);
}

#[test]
fn what_all_have_begun_to_read_is_forgotten() {
    let mut first = order(1);
    let mut held = Held::of(&[(2, 1), (3, 1)]);
    announced(&mut first, &mut held);
    assert_eq!(first.live.len(), 2);
    assert_eq!(read_all(&mut first, &mut held).len(), 2);
    first.gather(&mut held);
    assert_eq!(first.live.len(), 2, "others may lack it");
    for origin in [2, 3] {
        held.set(origin, |state| state.stable = Seq(10));
    }
    first.gather(&mut held);
    assert_eq!(first.live.len(), 0);
}

/// It was a member no longer while the others began to read it, and is one again.
#[test]
fn a_message_that_all_others_have_begun_to_read_needs_no_place() {
    let mut first = order(1);
    let mut held = Held::of(&[(2, 1)]);
    announced(&mut first, &mut held);
    assert_eq!(read_all(&mut first, &mut held), [(2, 0)]);
    held.set(2, |state| state.stable = Seq(5));
    first.gather(&mut held);
    first.want(message(2, 0), &held, Instant::from_micros(1));
    first.gather(&mut held);
    let bytes = first.poll(first.poll_timeout().expect("it was asked"));
    let snapshot = OrderMessage::decode(&bytes.expect("it is due")).unwrap();
    assert_eq!(snapshot.runs, [], "its place is forgotten");
    let mut member = order(4);
    held.set(2, |state| state.next = Seq(0));
    member.take(SEQUENCER, &snapshot.encode(), &[], &held);
    assert_eq!(member.turn(message(2, 0), &held), Turn::Now);
}

/// What the sequencer says again serves one that has started anew.
#[test]
fn a_snapshot_says_all_that_counts() {
    let mut first = order(1);
    let mut holds = Held::of(&[(2, 2), (3, 3)]);
    announced(&mut first, &mut holds);
    assert_eq!(first.poll(Instant::from_micros(2)), None);
    assert_eq!(first.poll_timeout(), None);
    first.want(message(3, 0), &holds, Instant::from_micros(1));
    assert_eq!(
        first.poll(Instant::from_micros(2)),
        None,
        "not so soon again"
    );
    let again = first.poll_timeout().expect("it was asked");
    let bytes = first.poll(again);
    let snapshot = OrderMessage::decode(&bytes.expect("it is due")).unwrap();
    assert!(snapshot.snapshot);
    assert_eq!(snapshot.runs.len(), 2, "what has a place gets no other");

    let mut member = order(4);
    let mut held = Held::of(&[(2, 2), (3, 3)]);
    assert_eq!(member.turn(message(3, 0), &held), Turn::Unknown);
    member.take(SEQUENCER, &snapshot.encode(), &[], &held);
    assert_eq!(member.turn(message(3, 0), &held), Turn::Later);
    let all = [(2, 0), (2, 1), (3, 0), (3, 1), (3, 2)];
    assert_eq!(read_all(&mut member, &mut held), all);
}

/// One that the sequencer does not have, because it was read there before it started anew, gets a
/// place when a member asks for it.
#[test]
fn a_message_that_is_asked_for_gets_a_place() {
    let mut first = order(1);
    let nothing = Held::default();
    // It has read all, and so have all others but one.
    let mut passed = Held::of(&[(2, 4)]);
    passed.set(2, |state| (state.next, state.stable) = (Seq(40), Seq(40)));
    let mut on_its_way = Held::of(&[(2, 1)]);
    announced(&mut first, &mut on_its_way);
    first.want(message(2, 2), &on_its_way, Instant::from_micros(1));
    assert_eq!(first.live.len(), 1, "it will come");
    let later = Instant::from_micros(1 + ON_ITS_WAY_US);
    first.want(message(2, 2), &on_its_way, later);
    assert_eq!(first.live[1].from, Seq(20), "it does not come");
    for held in [nothing, passed] {
        let mut first = order(1);
        announced(&mut first, &mut held.clone());
        assert_eq!(first.live.len(), 0);
        first.want(message(2, 0), &held, Instant::from_micros(1));
        first.want(message(2, 0), &held, Instant::from_micros(1));
        assert_eq!(first.live.len(), 1, "asked twice, one place");
        let again = first.poll_timeout().expect("it was asked");
        let snapshot = first.poll(again).expect("it is due");
        let mut member = order(4);
        let held = Held::of(&[(2, 1)]);
        member.take(SEQUENCER, &snapshot, &[], &held);
        assert_eq!(member.turn(message(2, 0), &held), Turn::Now);
    }
}

/// Members that are at different places ask for different messages of one stream.
#[test]
fn messages_that_are_asked_for_by_turns_get_places() {
    let mut first = order(1);
    let mut held = Held::of(&[(2, 1)]);
    announced(&mut first, &mut held);
    let mut now = Instant::from_micros(1);
    for turn in 0..5 {
        first.want(message(2, 2 + turn % 2), &held, now);
        now = now.plus_us(ON_ITS_WAY_US / 4);
    }
    assert_eq!(first.live[1].from, Seq(20), "neither comes");
    // What comes shows that more is on its way.
    let starts = &mut held.0.get_mut(&HostId(2)).unwrap().1;
    starts.extend([Seq(20), Seq(30)]);
    first.gather(&mut held);
    let runs = first.live.len();
    first.want(message(2, 4), &held, now);
    assert_eq!(first.live.len(), runs);
}

/// Its controller started anew: the same host is chosen again. Plans reach members one after another.
#[test]
fn a_sequencer_that_is_chosen_again_goes_on() {
    let members = [1, 2, 3, 4].map(HostId);
    let chosen = |host: u16, epoch: u64| Sequencer {
        host: HostId(host),
        epoch,
    };
    let mut first = order(1);
    let mut holds = Held::of(&[(2, 1)]);
    let one = announced(&mut first, &mut holds);
    holds.0.extend(Held::of(&[(3, 1)]).0);
    let two = announced(&mut first, &mut holds);
    assert!(!two.snapshot);
    first.plan(&members, chosen(1, 9));
    holds.0.extend(Held::of(&[(2, 2)]).0);
    let three = announced(&mut first, &mut holds);
    let runs_of: Vec<u16> = three.runs.iter().map(|run| run.origin.0).collect();
    assert_eq!((three.snapshot, three.epoch), (true, 9), "and not later");
    assert_eq!(runs_of, [2, 3, 2]);

    let all = [one, two, three];
    // When the plan comes to a member: after so many of these.
    for plan_at in 0..=all.len() {
        let mut member = order(4);
        let mut held = Held::of(&[(1, 0), (2, 2), (3, 1)]);
        let mut read = Vec::new();
        for (at, announced) in all.iter().enumerate() {
            if at == plan_at {
                member.plan(&members, chosen(1, 9));
            }
            member.take(SEQUENCER, &announced.encode(), &[], &held);
            read.extend(read_all(&mut member, &mut held));
            let so_far = [(2, 0), (3, 0), (2, 1)];
            assert_eq!(read, so_far[..=at], "plan before {plan_at}");
        }
    }

    // Not what it said before another was.
    let mut member = order(4);
    member.plan(&members, chosen(3, 6));
    member.plan(&members, chosen(1, 9));
    let mut held = Held::of(&[(1, 0), (2, 2), (3, 1)]);
    member.take(SEQUENCER, &all[0].encode(), &[], &held);
    assert_eq!(read_all(&mut member, &mut held), []);
    member.take(SEQUENCER, &all[2].encode(), &[], &held);
    assert_eq!(read_all(&mut member, &mut held), [(2, 0), (3, 0), (2, 1)]);
}

#[test]
fn all_quiet_nothing_is_said() {
    let mut first = order(1);
    let mut held = Held::of(&[(2, 0)]);
    first.poll(Instant::from_micros(1));
    first.gather(&mut held);
    assert_eq!(first.poll(Instant::from_micros(9_000_000)), None);
    assert_eq!(first.poll_timeout(), None);
}

#[test]
fn an_older_reign_and_a_stranger_are_not_believed() {
    let held = Held::of(&[(2, 1), (3, 1)]);
    let say = |epoch: u64, origin: u16| OrderMessage {
        epoch,
        snapshot: true,
        runs: vec![Run {
            origin: HostId(origin),
            stream: 5,
            from: Seq(0),
            to: Seq(1),
        }],
    };
    let mut member = order(4);
    member.take(HostId(3), &say(3, 3).encode(), &[], &held);
    member.take(SEQUENCER, &say(2, 3).encode(), &[], &held);
    assert_eq!(member.refused, 1, "host 3 does not epoch");
    assert!(member.turn(message(3, 0), &held) != Turn::Now);
    member.take(HostId(3), &say(4, 2).encode(), &[], &held);
    assert!(
        member.turn(message(2, 0), &held) == Turn::Now,
        "a plan that is still on its way"
    );
    member.take(SEQUENCER, &say(3, 3).encode(), &[], &held);
    assert!(
        member.turn(message(2, 0), &held) == Turn::Now,
        "the one before has gone"
    );
    let sequencer = Sequencer {
        host: SEQUENCER,
        epoch: 3,
    };
    member.plan(&[1, 2, 3, 4].map(HostId), sequencer);
    assert!(
        member.turn(message(2, 0), &held) == Turn::Now,
        "an older plan"
    );
}

#[test]
fn the_next_sequencer_goes_on_with_what_was_said() {
    let announced = announced(&mut order(1), &mut Held::of(&[(3, 1), (4, 1)]));
    let mut next = order(2);
    let mut holds = Held::of(&[(3, 2), (4, 2)]);
    next.take(SEQUENCER, &announced.encode(), &[], &holds);
    assert!(!next.leads());
    next.plan(
        &[2, 3, 4].map(HostId),
        Sequencer {
            host: HostId(2),
            epoch: 4,
        },
    );
    assert!(next.leads());
    next.gather(&mut holds);
    let bytes = next.poll(Instant::from_micros(5));
    let snapshot = OrderMessage::decode(&bytes.unwrap()).unwrap();
    assert_eq!(snapshot.epoch, 4);
    let places: Vec<(u16, u32, u32)> = snapshot
        .runs
        .iter()
        .map(|run| (run.origin.0, run.from.0, run.to.0))
        .collect();
    assert_eq!(places, [(3, 0, 1), (4, 0, 1), (3, 10, 11), (4, 10, 11)]);
}

#[test]
fn the_sequencer_orders_no_more_than_it_may() {
    let mut first = order(1);
    let count = RUNS_MAX as u32;
    let mut held = Held::of(&[(2, 1), (3, 1)]);
    // Turn by turn, so that no two are one run.
    for number in 1..=count {
        for origin in [2, 3] {
            let starts = &mut held.0.get_mut(&HostId(origin)).unwrap().1;
            starts.push(Seq(10 * number));
        }
        first.gather(&mut held);
        first.poll(Instant::from_micros(1));
    }
    assert_eq!(first.live.len(), RUNS_MAX);
}
