//! Many groups at once: streams that are needed have room, idle ones make room.

use std::collections::BTreeMap;
use std::sync::Arc;
use wormcast_protocol::{
    ChildRole, Choice, Engine, EngineConfig, GroupPlan, Instant, Role, Structures,
};
use wormcast_wire::{BufferClass, GroupId, HostId, Replication};

const HOST: HostId = HostId(1);
const OTHER: HostId = HostId(2);
const GROUPS: u16 = 2_000;

struct Pair;

impl Structures for Pair {
    fn role(&self, origin: HostId, _choice: u8) -> Option<Role> {
        let child = ChildRole {
            host: OTHER,
            class: BufferClass::One,
            below: Vec::new(),
        };
        Some(match origin {
            HOST => Role {
                parent: None,
                children: vec![child],
            },
            _ => Role {
                parent: Some(origin),
                children: Vec::new(),
            },
        })
    }
}

#[test]
fn a_host_sends_in_thousands_of_groups_at_once() {
    let config = EngineConfig::new(HOST, [2; 6], 1_500, 1, 50);
    let limit = config.limits.sessions;
    let mut engine = Engine::new(config).expect("valid");
    let now = Instant::from_micros(1);
    engine
        .set_routes(BTreeMap::from([(OTHER, vec![1])]), now)
        .expect("a route");
    for number in (0..GROUPS).filter(|&number| number != 255) {
        let plan = GroupPlan {
            id: GroupId(number),
            epoch: 1,
            choices: Choice::only(Replication::Hosts),
            members: vec![HOST, OTHER],
            mtu: None,
            structures: Arc::new(Pair),
            reports_begin: false,
            gathered: None,
        };
        engine.set_group(plan, now).expect("there is room");
    }
    for number in (0..GROUPS).filter(|&number| number != 255) {
        let written = engine.write(GroupId(number), b"hello", true, now);
        assert_eq!(written, Ok(5), "group {number} of at most {limit} streams");
    }
    assert_eq!(engine.statistics().count(), usize::from(GROUPS) - 1);
}
