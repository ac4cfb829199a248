//! What goes out when.

use super::*;
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
