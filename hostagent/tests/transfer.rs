//! Messages through real agents: every scheme, loss, failures of applications.

use crate::support;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use support::{Fabric, group, pattern};
use wormcast_agent::client::{Client, ClientError, Incoming};
use wormcast_agent_core::api::{AbortReason, Notice};

const LIMIT: Option<Duration> = Some(Duration::from_secs(600));

/// Receives one whole message and says what to answer.
fn receive(client: &mut Client, answer: impl FnOnce(&mut Client, u32)) -> Vec<u8> {
    let mut content = Vec::new();
    loop {
        match client
            .receive(LIMIT)
            .unwrap()
            .expect("something comes in time")
        {
            Incoming::Data { bytes, .. } => content.extend_from_slice(&bytes),
            Incoming::Notice(Notice::MessageBegin { .. }) => content.clear(),
            Incoming::Notice(Notice::MessageEnd { handle, length, .. }) => {
                assert_eq!(length, content.len() as u64);
                answer(client, handle);
                return content;
            }
            Incoming::Notice(other) => panic!("{other:?}"),
        }
    }
}

fn confirm(client: &mut Client, handle: u32) {
    client.confirm(handle).unwrap();
}

#[test]
fn a_message_goes_no_faster_than_its_sender_says() {
    let Some(fabric) = Fabric::start(2, &[group(1, "repeat", &[0, 1])], &[]) else {
        return;
    };
    let mut receiver = fabric.client(1);
    receiver.open_receiver(1, None).unwrap();
    let receiving =
        std::thread::spawn(move || [(); 2].map(|()| receive(&mut receiver, confirm).len()));
    let mut client = fabric.client(0);
    let sender = client.open_paced_sender(1, Some(8_000_000)).unwrap().handle;
    let started = Instant::now();
    for _ in 0..2 {
        client.write(sender, &pattern(1_000_000, 3)).unwrap();
        client.end_message(sender).unwrap();
    }
    // What is saved up of a million bytes a second goes at once.
    assert!(started.elapsed() >= Duration::from_millis(1_950));
    assert_eq!(receiving.join().unwrap(), [1_000_000; 2]);
    for wrong in [7_999, 1_000_000_000_001] {
        match client.open_paced_sender(1, Some(wrong)) {
            Err(ClientError::Refused(error)) => {
                let bounds = "it must be 8000 to 1000000000000";
                assert!(error.message.contains(bounds), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn every_scheme_delivers_every_byte_to_every_member() {
    let members = [0, 1, 2, 3];
    let schemes = ["repeat", "circuit", "tree", "k-binomial", "switch"];
    let groups: Vec<_> = schemes
        .iter()
        .zip(1..)
        .map(|(scheme, id)| group(id, scheme, &members))
        .collect();
    let Some(fabric) = Fabric::start(4, &groups, &[]) else {
        return;
    };
    for (number, scheme) in (1_u16..).zip(schemes) {
        // Each message comes from another host, so that structures are not just those of host 0.
        let origin = number % 4;
        let content = pattern(3_000_000 + usize::from(number), number.into());
        let receivers: Vec<_> = (0..4)
            .filter(|&host| host != origin)
            .map(|host| {
                let mut client = fabric.client(host);
                client.open_receiver(number, Some(origin)).unwrap();
                std::thread::spawn(move || receive(&mut client, confirm))
            })
            .collect();
        let mut client = fabric.client(origin);
        let sender = client.open_sender(number).unwrap();
        assert_eq!(sender.scheme, scheme);
        client.write(sender.handle, &content).unwrap();
        let message = client.end_message(sender.handle).unwrap();
        assert_eq!(message, 0);
        let stable = client.wait_stable(sender.handle, message, LIMIT).unwrap();
        assert_eq!(
            (stable.delivered, stable.failed),
            (3, 0),
            "{scheme}: {stable:?}"
        );
        for receiver in receivers {
            assert!(
                receiver.join().unwrap() == content,
                "{scheme}: other bytes than were sent"
            );
        }
    }
    assert_eq!(fabric.switch.bad(), 0);
}

#[test]
fn lost_frames_are_repaired_and_messages_stay_in_order() {
    let groups = [group(7, "tree", &[0, 1, 2])];
    let Some(fabric) = Fabric::start(3, &groups, &[]) else {
        return;
    };
    fabric.switch.lose_one_in(50);
    let messages: Vec<Vec<u8>> = (0..40)
        .map(|number| pattern(number * 3000, number as u64))
        .collect();
    let receivers: Vec<_> = [1, 2]
        .map(|host| {
            let mut client = fabric.client(host);
            client.open_receiver("group7", None).unwrap();
            let expected = messages.clone();
            std::thread::spawn(move || {
                for (number, expected) in expected.iter().enumerate() {
                    let content = receive(&mut client, confirm);
                    assert!(content == *expected, "message {number} at host {host}");
                }
            })
        })
        .into();
    let mut client = fabric.client(0);
    let sender = client.open_sender(7_u16).unwrap();
    for (number, content) in messages.iter().enumerate() {
        client.write(sender.handle, content).unwrap();
        assert_eq!(client.end_message(sender.handle).unwrap(), number as u64);
    }
    for number in 0..messages.len() as u64 {
        let stable = client.wait_stable(sender.handle, number, LIMIT).unwrap();
        assert_eq!(stable.failed, 0, "{stable:?}");
    }
    for receiver in receivers {
        receiver.join().unwrap();
    }
    assert!(fabric.switch.lost() > 10);
}

#[test]
fn a_member_that_gives_up_is_named_and_the_others_finish() {
    let groups = [group(1, "circuit", &[0, 1, 2, 3])];
    let Some(fabric) = Fabric::start(
        4,
        &groups,
        &["--receiver-wait", "1", "--receiver-stall", "2"],
    ) else {
        return;
    };
    let content = pattern(2_000_000, 9);
    // Host 1 keeps it; host 2 has no space; host 3 has no receiver at all.
    let mut keeps = fabric.client(1);
    keeps.open_receiver(1_u16, None).unwrap();
    let keeper = std::thread::spawn(move || receive(&mut keeps, confirm));
    let mut full = fabric.client(2);
    full.open_receiver(1_u16, None).unwrap();
    let giver_up = std::thread::spawn(move || {
        loop {
            if let Some(Incoming::Data { handle, .. }) = full.receive(LIMIT).unwrap() {
                full.abort(handle, AbortReason::NoSpace).unwrap();
                return full;
            }
        }
    });
    let mut client = fabric.client(0);
    let sender = client.open_sender(1_u16).unwrap();
    client.write(sender.handle, &content).unwrap();
    let message = client.end_message(sender.handle).unwrap();
    let stable = client.wait_stable(sender.handle, message, LIMIT).unwrap();
    let outcomes: BTreeMap<u16, Option<&str>> = stable
        .outcomes
        .iter()
        .map(|outcome| (outcome.host, outcome.reason.as_deref()))
        .collect();
    assert_eq!(
        outcomes,
        BTreeMap::from([
            (1, None),
            (2, Some("no space left on device")),
            (3, Some("application gave up"))
        ])
    );
    assert!(keeper.join().unwrap() == content);
    assert_eq!(
        fabric.agents[3].counter("applications.unclaimed_messages"),
        1
    );

    // The one that gave up gets the next message all the same.
    let mut full = giver_up.join().unwrap();
    let mut third = fabric.client(3);
    third.open_receiver(1_u16, None).unwrap();
    let mut first = fabric.client(1);
    first.open_receiver(1_u16, None).unwrap();
    client.write(sender.handle, b"again").unwrap();
    let message = client.end_message(sender.handle).unwrap();
    for member in [&mut first, &mut full, &mut third] {
        assert_eq!(receive(member, confirm), b"again");
    }
    assert_eq!(
        client
            .wait_stable(sender.handle, message, LIMIT)
            .unwrap()
            .failed,
        0
    );
}

#[test]
fn a_receiver_that_stalls_or_dies_harms_only_itself() {
    let groups = [group(1, "repeat", &[0, 1, 2])];
    let Some(fabric) = Fabric::start(
        3,
        &groups,
        &["--receiver-stall", "1", "--receiver-wait", "1"],
    ) else {
        return;
    };
    let content = pattern(4_000_000, 3);
    let mut stalls = fabric.client(1);
    stalls.open_receiver(1_u16, None).unwrap();
    let mut dies = fabric.client(2);
    dies.open_receiver(1_u16, None).unwrap();
    let mut client = fabric.client(0);
    let sender = client.open_sender(1_u16).unwrap();
    client.write(sender.handle, &content).unwrap();
    let message = client.end_message(sender.handle).unwrap();
    // Takes one piece, then goes without a word.
    while !matches!(dies.receive(LIMIT).unwrap(), Some(Incoming::Data { .. })) {}
    drop(dies);
    let stable = client.wait_stable(sender.handle, message, LIMIT).unwrap();
    assert_eq!(stable.failed, 2, "{stable:?}");
    for outcome in &stable.outcomes {
        assert_eq!(outcome.reason.as_deref(), Some("application gave up"));
    }
    // The stalled one learns it when it looks again.
    let lost = std::iter::from_fn(|| stalls.receive(LIMIT).unwrap())
        .find(|incoming| matches!(incoming, Incoming::Notice(Notice::MessageLost { .. })));
    assert!(lost.is_some());
    assert_eq!(fabric.agents[1].counter("applications.stalled_messages"), 1);
}

#[test]
fn who_says_that_it_is_at_work_is_waited_for() {
    let groups = [group(1, "repeat", &[0, 1])];
    let Some(fabric) = Fabric::start(2, &groups, &["--receiver-stall", "6"]) else {
        return;
    };
    let mut receiver = fabric.client(1);
    receiver.open_receiver(1_u16, None).unwrap();
    let mut client = fabric.client(0);
    let sender = client.open_sender(1_u16).unwrap();
    client.write(sender.handle, b"a message").unwrap();
    let message = client.end_message(sender.handle).unwrap();
    let ended = std::iter::from_fn(|| receiver.receive(LIMIT).unwrap()).find_map(|one| match one {
        Incoming::Notice(Notice::MessageEnd {
            handle, arrival, ..
        }) => Some((handle, arrival)),
        _ => None,
    });
    let (handle, arrival) = ended.expect("it comes");
    // One packet: it took no time.
    assert_eq!(
        arrival.map(|arrival| (arrival.us, arrival.bytes)),
        Some((0, 0))
    );
    for _ in 0..16 {
        std::thread::sleep(Duration::from_millis(500));
        receiver.extend(handle).unwrap();
    }
    receiver.confirm(handle).unwrap();
    let stable = client.wait_stable(sender.handle, message, LIMIT).unwrap();
    assert_eq!(stable.failed, 0, "{stable:?}");
    assert_eq!(fabric.agents[1].counter("applications.stalled_messages"), 0);
}

#[test]
fn a_cancelled_message_reaches_nobody_and_the_next_does() {
    let groups = [group(1, "k-binomial", &[0, 1])];
    let Some(fabric) = Fabric::start(2, &groups, &[]) else {
        return;
    };
    let mut receiver = fabric.client(1);
    receiver.open_receiver(1_u16, None).unwrap();
    let mut client = fabric.client(0);
    let sender = client.open_sender(1_u16).unwrap();
    client.write(sender.handle, &pattern(500_000, 1)).unwrap();
    let begun = std::iter::from_fn(|| receiver.receive(LIMIT).unwrap())
        .find(|incoming| matches!(incoming, Incoming::Data { .. }));
    assert!(begun.is_some());
    client.cancel_message(sender.handle).unwrap();
    let lost = std::iter::from_fn(|| receiver.receive(LIMIT).unwrap())
        .find(|incoming| matches!(incoming, Incoming::Notice(Notice::MessageLost { .. })));
    assert!(lost.is_some());
    client.write(sender.handle, b"whole").unwrap();
    let message = client.end_message(sender.handle).unwrap();
    assert_eq!(receive(&mut receiver, confirm), b"whole");
    assert_eq!(
        client
            .wait_stable(sender.handle, message, LIMIT)
            .unwrap()
            .failed,
        0
    );
}

#[test]
fn senders_of_one_group_take_turns() {
    let groups = [group(1, "repeat", &[0, 1])];
    let Some(fabric) = Fabric::start(2, &groups, &[]) else {
        return;
    };
    let mut receiver = fabric.client(1);
    receiver.open_receiver(1_u16, None).unwrap();
    let senders: Vec<_> = (0..3_u8)
        .map(|number| {
            let mut client = fabric.client(0);
            std::thread::spawn(move || {
                let sender = client.open_sender(1_u16).unwrap();
                for _ in 0..5 {
                    client.write(sender.handle, &vec![number; 700_000]).unwrap();
                    let message = client.end_message(sender.handle).unwrap();
                    assert_eq!(
                        client
                            .wait_stable(sender.handle, message, LIMIT)
                            .unwrap()
                            .failed,
                        0
                    );
                }
            })
        })
        .collect();
    let mut counts = [0; 3];
    for _ in 0..15 {
        let content = receive(&mut receiver, confirm);
        assert_eq!(content.len(), 700_000);
        assert!(
            content.iter().all(|&byte| byte == content[0]),
            "two messages were mixed"
        );
        counts[usize::from(content[0])] += 1;
    }
    assert_eq!(counts, [5, 5, 5]);
    for sender in senders {
        sender.join().unwrap();
    }
}
