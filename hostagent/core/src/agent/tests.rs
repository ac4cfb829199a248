//! What goes out when.

use super::*;
use crate::api::Notice;
use crate::plan::AgentPlan;
use crate::plan::examples::{gathered, group_message, plan_message};
use wormcast_protocol::Transmit;
use wormcast_wire::worm::{self, Header, Kind, flags};
use wormcast_wire::{BufferClass, ETHERNET_LENGTH, ETHERTYPE_HOST_PDU};

const PATIENCE: Patience = Patience {
    receiver_wait_us: 10_000_000,
    receiver_stall_us: 60_000_000,
};

/// A worm of others would get into the middle of the train, and its frames to the wrong place.
#[test]
fn while_a_train_of_its_own_is_open_nothing_is_sent_on_at_once() {
    let now = Instant::from_micros(5);
    let mut agent = Agent::new(PATIENCE, TransitLimits::default());
    agent.trains.set_frames_most(8, 8);
    assert!(agent.may_send_at_once(now));
    let mut left = 3;
    let mut ready = |buf: &mut [u8]| {
        let header = Header {
            kind: Kind::Unicast,
            flags: flags::HEAD | flags::TAIL,
            hops: 0,
            source: HostId(5),
            sequence: left,
            next: ETHERTYPE_HOST_PDU,
        };
        left = left.checked_sub(1)?;
        let length = worm::encode(buf, [2; 6], &header, &[1, 2]) + 40;
        Some(Transmit {
            length,
            class: BufferClass::One,
            train_bytes_max: ETHERNET_LENGTH + 200,
        })
    };
    for is_last in [false, false, true] {
        let sent = agent.trains.next(false, &mut ready, &mut [0; 300]);
        assert!(sent.is_some());
        assert_eq!(agent.may_send_at_once(now), is_last);
    }
}

/// They change without another change of the group, as when a link fails that only its ACKs took.
#[test]
fn the_engine_has_every_change_of_gathered_acks() {
    let now = Instant::from_micros(5);
    let mut agent = Agent::new(PATIENCE, TransitLimits::default());
    agent
        .start(EngineConfig::new(HostId(1), [2; 6], 1500, 1, 1))
        .unwrap();
    let mut message = plan_message(1);
    message.groups = vec![group_message(3, "switch", &[1, 2, 4])];
    for change in [
        gathered(7, &[(1, 0)]),
        gathered(8, &[(1, 0)]),
        gathered(8, &[(1, 0), (4, 65_534)]),
        None,
    ] {
        message.epoch += 1;
        message.groups[0].gathered.clone_from(&change);
        let plan = AgentPlan::parse(&message).unwrap();
        let planned = plan.groups[&GroupId(3)].gathered.clone();
        assert_eq!(planned.is_some(), change.is_some());
        agent.apply_plan(plan, now).unwrap();
        let engine = agent.engine().unwrap();
        assert_eq!(engine.groups().next().unwrap().gathered, planned);
    }
}

/// From members alone, and to those who send to the group.
#[test]
fn an_answer_reaches_those_who_send_to_the_group() {
    let now = Instant::from_micros(5);
    let mut agent = Agent::new(PATIENCE, TransitLimits::default());
    agent
        .start(EngineConfig::new(HostId(1), [2; 6], 1500, 1, 1))
        .unwrap();
    let mut message = plan_message(1);
    message.groups = vec![
        group_message(3, "circuit", &[1, 2, 4]),
        group_message(4, "circuit", &[1, 5]),
    ];
    agent
        .apply_plan(AgentPlan::parse(&message).unwrap(), now)
        .unwrap();
    for (id, group) in [(1, 3), (2, 4), (3, 3)] {
        agent.connect(ConnectionId(id), String::new());
        let json = format!(r#"{{"id": 1, "op": "open_sender", "group": {group}}}"#);
        let request = NumberedRequest::parse(json.as_bytes()).unwrap();
        agent.request(ConnectionId(id), request, now);
    }
    while agent.poll_outbound().is_some() {}
    let told = |agent: &mut Agent, group, host| {
        let text = "lacks".to_owned();
        let (group, host) = (GroupId(group), HostId(host));
        agent.take_answer(&Answer { group, host, text }, now);
        let mut told = Vec::new();
        while let Some((client, outbound)) = agent.poll_outbound() {
            let Outbound::Notice(Notice::Answer { host, text, .. }) = outbound else {
                panic!("{outbound:?}");
            };
            assert_eq!(text, "lacks");
            told.push((client.0, host));
        }
        told
    };
    assert_eq!(told(&mut agent, 3, 4), [(1, 4), (3, 4)]);
    assert_eq!(told(&mut agent, 4, 5), [(2, 5)]);
    for (group, host) in [(4, 4), (3, 5), (9, 2)] {
        assert_eq!(told(&mut agent, group, host), []);
    }
    let counters = agent.applications.counters();
    assert!(counters.contains(&("drops.answers_unasked", 3)));
}
