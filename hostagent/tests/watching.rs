//! Who watches the groups of its host is told of each change, and is waited for until it has asked which.

use crate::support;

use serde_json::Value;
use std::time::Duration;
use support::{Fabric, group, wait_until};
use wormcast_agent::client::{Client, Incoming};
use wormcast_agent_core::api::{Notice, Request};

const LIMIT: Option<Duration> = Some(Duration::from_secs(600));

fn watch(client: &mut Client) -> Vec<u64> {
    let request = Request::Groups {
        after: None,
        watch: true,
    };
    let answer = client.ask(&request).unwrap();
    let groups = answer["groups"].as_array().unwrap();
    groups
        .iter()
        .filter_map(|group| group["group"].as_u64())
        .collect()
}

fn is_told(client: &mut Client) {
    let told = client.receive(LIMIT).unwrap();
    assert_eq!(told, Some(Incoming::Notice(Notice::GroupsChanged {})));
}

/// Gives all hosts a plan with these groups, each of hosts 0 and 1, and waits until host 1 has it.
fn plan(fabric: &Fabric, numbers: &[u32]) {
    for host in [0, 1] {
        let mut plan = fabric.controller.plan(host);
        plan.groups = numbers
            .iter()
            .map(|&number| group(number, "repeat", &[0, 1]))
            .collect();
        fabric.controller.set_plan(plan);
    }
    let epoch = fabric.controller.plan(1).epoch;
    for host in [0, 1] {
        let agent = &fabric.agents[host];
        wait_until("plan", Duration::from_secs(600), || {
            agent.status()["plan_epoch"].as_u64() >= Some(epoch)
        });
    }
}

#[test]
fn each_change_is_told_once_until_it_is_asked_for_again() {
    let Some(fabric) = Fabric::start(2, &[group(1, "repeat", &[0, 1])], &[]) else {
        return;
    };
    let (mut client, mut other) = (fabric.client(1), fabric.client(1));
    assert_eq!(watch(&mut client), [1]);
    // Another plan with the same groups is no change.
    plan(&fabric, &[1]);
    plan(&fabric, &[1, 2]);
    is_told(&mut client);
    // It has not asked since.
    plan(&fabric, &[1, 2, 3]);
    assert_eq!(watch(&mut client), [1, 2, 3]);
    let receiver = other.open_receiver(2_u16, None).unwrap();
    let nothing = client.receive(Some(Duration::from_millis(100))).unwrap();
    assert_eq!(nothing, None);
    other.close(receiver.handle).unwrap();
    is_told(&mut client);
    watch(&mut client);
    other.open_receiver(2_u16, None).unwrap();
    drop(other);
    is_told(&mut client);
    watch(&mut client);
    plan(&fabric, &[3]);
    is_told(&mut client);
    assert_eq!(watch(&mut client), [3]);
}

#[test]
fn a_message_of_a_new_group_waits_for_who_has_not_asked_yet() {
    let Some(fabric) = Fabric::start(2, &[], &["--receiver-wait", "1"]) else {
        return;
    };
    let mut watcher = fabric.client(1);
    assert_eq!(watch(&mut watcher), [] as [u64; 0]);
    plan(&fabric, &[7]);
    let mut client = fabric.client(0);
    let sender = client.open_sender(7_u16).unwrap();
    client.write(sender.handle, b"early").unwrap();
    let message = client.end_message(sender.handle).unwrap();
    // Longer than a member waits for whom it has told nothing.
    std::thread::sleep(Duration::from_secs(3));
    is_told(&mut watcher);
    watcher.open_receiver(7_u16, None).unwrap();
    let mut seen: Vec<Value> = Vec::new();
    loop {
        match watcher.receive(LIMIT).unwrap().unwrap() {
            Incoming::Notice(Notice::MessageEnd { handle, .. }) => {
                watcher.confirm(handle).unwrap();
                break;
            }
            Incoming::Notice(Notice::MessageBegin { message, .. }) => seen.push(message.into()),
            Incoming::Data { bytes, .. } => assert_eq!(&bytes[..], b"early"),
            Incoming::Notice(other) => panic!("{other:?}"),
        }
    }
    let stable = client.wait_stable(sender.handle, message, LIMIT).unwrap();
    assert_eq!((stable.delivered, seen.len()), (1, 1));
}

#[test]
fn the_number_of_a_message_is_its_own_and_the_same_everywhere() {
    let all = &[
        group(1, "circuit", &[0, 1, 2]),
        group(2, "switch", &[0, 1, 2]),
    ];
    let Some(mut fabric) = Fabric::start(3, all, &[]) else {
        return;
    };
    let mut seen: [Vec<(u16, u64)>; 2] = [vec![], vec![]];
    for again in [false, true] {
        if again {
            // Its streams begin anew.
            fabric.agents[0].restart();
            fabric.agents[0].wait_for_plan();
        }
        let mut members = [fabric.client(1), fabric.client(2)];
        for member in &mut members {
            member.open_receiver(1_u16, None).unwrap();
            member.open_receiver(2_u16, None).unwrap();
        }
        let mut client = fabric.client(0);
        for number in [1_u16, 2, 1, 2, 2] {
            let sender = client.open_sender(number).unwrap();
            client.write(sender.handle, &[9; 5000]).unwrap();
            let message = client.end_message(sender.handle).unwrap();
            for (member, seen) in members.iter_mut().zip(&mut seen) {
                seen.push((number, take(member)));
            }
            client.wait_stable(sender.handle, message, LIMIT).unwrap();
            client.close(sender.handle).unwrap();
        }
    }
    assert_eq!(seen[0], seen[1]);
    let mut different = seen[0].clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), seen[0].len(), "{seen:?}");
}

/// Reads a message and confirms it; its number.
fn take(member: &mut Client) -> u64 {
    let mut number = None;
    loop {
        match member.receive(LIMIT).unwrap().unwrap() {
            Incoming::Notice(Notice::MessageBegin { message, .. }) => number = Some(message),
            Incoming::Notice(Notice::MessageEnd { handle, .. }) => {
                member.confirm(handle).unwrap();
                return number.unwrap();
            }
            Incoming::Data { .. } => {}
            Incoming::Notice(other) => panic!("{other:?}"),
        }
    }
}
