//! A circuit that returns: the origin has its own bytes back before a message is stable.

use crate::star;

use star::{Fabric, GROUP, MEMBERS, ORIGIN, Spoil, intact};
use wormcast_protocol::{Event, Reject};
use wormcast_wire::pdu::{self, Body, Common, Data, Repair};
use wormcast_wire::{BufferClass, FailReason, HostId, Replication, Seq, worm};

const LAST: HostId = MEMBERS[1];

fn circuit() -> Fabric {
    let mut fabric = Fabric::new(Replication::Hosts, None);
    fabric.plan_return(true);
    fabric
}

/// Counted at the origin.
fn counted(fabric: &mut Fabric, name: &str) -> u64 {
    let mut streams = fabric.origin().statistics();
    let entries = streams.next().expect("its own").2.entries();
    let entry = entries.into_iter().find(|entry| entry.0 == name);
    entry.expect("a counter").1
}

/// The events at the origin while members read.
fn events(fabric: &mut Fabric, steps: usize) -> Vec<Event> {
    let mut events = Vec::new();
    for _ in 0..steps {
        fabric.step();
        for member in MEMBERS {
            fabric.read(member);
        }
        events.extend(std::iter::from_fn(|| fabric.origin().poll_event()));
    }
    events
}

/// Who misses the messages that become stable.
fn stable(fabric: &mut Fabric, steps: usize) -> Vec<Vec<(HostId, FailReason)>> {
    let events = events(fabric, steps).into_iter();
    let stable = events.filter_map(|event| match event {
        Event::Stable { failed, .. } => Some(failed),
        _ => None,
    });
    stable.collect()
}

/// The origin hears something of its stream.
fn hear(fabric: &mut Fabric, source: HostId, body: &Body<'_>) -> Result<(), Reject> {
    let common = Common {
        group: GROUP,
        origin: ORIGIN,
        stream: 100,
    };
    let header = worm::Header {
        kind: worm::Kind::Unicast,
        flags: 6,
        hops: 1,
        source,
        sequence: 0,
        next: 0x88B6,
    };
    let mut frame = vec![0; 14 + 12 + pdu::length_of(&common, source, body)];
    let at = worm::encode(&mut frame, [3; 6], &header, &[]);
    pdu::encode(&mut frame[at..], source, &common, body);
    let now = fabric.now;
    fabric.origin().handle_frame(&frame, now)
}

#[test]
fn a_message_is_stable_when_it_has_returned() {
    let mut fabric = circuit();
    fabric.write(&[7; 50_000], true);
    assert_eq!(stable(&mut fabric, 200), [vec![]]);
    assert_eq!(counted(&mut fabric, "data_received_bytes"), 50_000);
    // Nothing but the return is missing, for less than the time after which the last host gives it up.
    fabric.spoil = |_| None;
    fabric.write(&[8; 50_000], true);
    assert_eq!(stable(&mut fabric, 30_000).len(), 0);
    fabric.spoil = intact;
    assert_eq!(stable(&mut fabric, 5_000), [vec![]]);
    assert_eq!(counted(&mut fabric, "differences"), 0);
}

#[test]
fn what_comes_back_changed_fails_its_message_and_no_other() {
    fn eight(data: &Data<'_>) -> bool {
        data.payload[0] == 8
    }
    let spoils: [Spoil; 3] = [
        |mut data| {
            data.payload = if eight(&data) { b"7" } else { data.payload };
            Some(data)
        },
        |mut data| {
            data.first ^= eight(&data);
            Some(data)
        },
        |mut data| {
            data.payload = &data.payload[eight(&data).into()..];
            Some(data)
        },
    ];
    for spoil in spoils {
        let mut fabric = circuit();
        fabric.spoil = spoil;
        for message in [&[7; 100][..], &[8; 20_000], &[9; 100]] {
            fabric.write(message, true);
        }
        let (group, host, reason) = (GROUP, ORIGIN, FailReason::Differs);
        let stable = |message, failed| Event::Stable {
            group,
            message,
            confirmed: MEMBERS.to_vec(),
            failed,
        };
        let told = Event::MemberAborted {
            group,
            message: 1,
            host,
            reason,
        };
        let mut events = events(&mut fabric, 200);
        let of_messages = [
            stable(0, vec![]),
            stable(1, vec![(host, reason)]),
            stable(2, vec![]),
        ];
        assert_eq!(events.iter().filter(|event| **event == told).count(), 1);
        events.retain(|event| *event != told);
        assert_eq!(events, of_messages);
        assert_eq!(counted(&mut fabric, "differences"), 3);
    }
}

#[test]
fn what_does_not_come_back_is_given_up() {
    let mut fabric = circuit();
    fabric.spoil = |_| None;
    fabric.write(b"one", true);
    // The last host does not hear of the origin for so long.
    let silent = vec![(ORIGIN, FailReason::Silent)];
    assert_eq!(stable(&mut fabric, 70_000), [silent]);
    // Heard again, it is served again; the next message may still be reported as failed.
    fabric.spoil = intact;
    for message in [b"two", b"3rd"] {
        stable(&mut fabric, 1_000);
        fabric.write(message, true);
    }
    assert_eq!(stable(&mut fabric, 1_000), [vec![]]);
}

#[test]
fn only_the_last_host_returns_what_was_sent_or_says_that_it_cannot() {
    let mut fabric = circuit();
    fabric.spoil = |_| None;
    fabric.write(b"one", true);
    let sent = stable_seq(&mut fabric);
    let data = |after| {
        Body::Data(Data {
            seq: Seq(sent.0.wrapping_add(after)),
            stable_offset: 0,
            tx_time: 0,
            first: true,
            last: true,
            cancel: false,
            class: BufferClass::One,
            ack_now: true,
            choice: 0,
            payload: b"one",
        })
    };
    stable(&mut fabric, 10);
    let other = hear(&mut fabric, MEMBERS[0], &data(0));
    assert_eq!(other, Err(Reject::OwnStream));
    assert_eq!(hear(&mut fabric, LAST, &data(1)), Err(Reject::BeyondWindow));
    assert_eq!(hear(&mut fabric, LAST, &data(0)), Ok(()));
    let now = fabric.now;
    assert_eq!(fabric.origin().poll_timeout(), Some(now), "an ACK is due");
    assert_eq!(hear(&mut fabric, LAST, &data(0)), Ok(()));
    assert_eq!(counted(&mut fabric, "duplicates_received"), 1);
    assert_eq!(stable(&mut fabric, 100), [vec![]]);
    fabric.write(b"two", true);
    stable(&mut fabric, 10);
    let repair = |to| {
        Body::Repair(Repair {
            child: ORIGIN,
            class: BufferClass::One,
            from: Seq(sent.0.wrapping_add(1)),
            to: Seq(sent.0.wrapping_add(to)),
        })
    };
    let impossible = Err(Reject::RepairImpossible);
    assert_eq!(hear(&mut fabric, MEMBERS[0], &repair(2)), impossible);
    assert_eq!(hear(&mut fabric, LAST, &repair(3)), impossible);
    assert_eq!(hear(&mut fabric, LAST, &repair(2)), Ok(()));
    let orphaned = vec![(ORIGIN, FailReason::Orphaned)];
    assert_eq!(stable(&mut fabric, 1_000), [orphaned]);
    assert_eq!(counted(&mut fabric, "differences"), 0);
}

/// The first packet that is not stable.
fn stable_seq(fabric: &mut Fabric) -> Seq {
    let arrived = fabric.origin().arrived_from(GROUP, ORIGIN);
    arrived.expect("its own").stable
}

#[test]
fn a_plan_says_from_when_on_a_stream_returns() {
    let mut fabric = Fabric::new(Replication::Hosts, None);
    fabric.write(&[1; 5_000], true);
    assert_eq!(stable(&mut fabric, 100), [vec![]]);
    assert_eq!(counted(&mut fabric, "data_received_bytes"), 0);
    fabric.plan_return(true);
    fabric.write(&[2; 50_000], true);
    assert_eq!(stable(&mut fabric, 200), [vec![]]);
    assert_eq!(counted(&mut fabric, "data_received_bytes"), 50_000);
    // The same plan again: what has come back need not come again.
    fabric.spoil = |data| (!data.first).then_some(data);
    fabric.write(&[3; 50_000], true);
    assert_eq!(stable(&mut fabric, 20).len(), 0);
    fabric.plan_return(true);
    fabric.spoil = |data| data.first.then_some(data);
    assert_eq!(stable(&mut fabric, 5_000), [vec![]]);
    fabric.plan_return(false);
    stable(&mut fabric, 1_000);
    let now = fabric.now;
    let next = fabric.origin().poll_timeout();
    assert!(next.is_none_or(|next| next > now), "nothing is left to do");
}
