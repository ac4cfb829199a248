//! A stream that has nobody to send to rests. It goes on as soon as a way leads to a member, by whatever change.

use std::collections::BTreeMap;
use std::sync::Arc;
use wormcast_protocol::{
    Choice, Copies, Edge, Engine, EngineConfig, GroupPlan, Instant, Role, Structures,
};
use wormcast_wire::{BufferClass, GroupId, HostId, Replication};

const HOST: HostId = HostId(1);
const OTHER: HostId = HostId(2);
const GROUP: GroupId = GroupId(3);

struct Pair;

impl Structures for Pair {
    fn role(&self, origin: HostId, _choice: u8) -> Option<Role> {
        let to = if origin == HOST { OTHER } else { HOST };
        let edge = Edge {
            from: origin,
            to,
            class: BufferClass::One,
        };
        Role::from_edges(HOST, origin, &[edge])
    }

    fn copies(&self, _choice: u8) -> Copies<'_> {
        Copies::Broadcast
    }
}

fn at(us: u64) -> Instant {
    Instant::from_micros(us)
}

/// Polls until there is nothing; gives the frames.
fn poll(engine: &mut Engine, now: Instant) -> usize {
    let mut buf = [0; 1_514];
    core::iter::from_fn(|| engine.poll_transmit(now, &mut buf)).count()
}

/// Tree routes of the engine at first, and what leads to the member then.
type Case = (BTreeMap<HostId, Vec<u8>>, fn(&mut Engine));

#[test]
fn a_stream_that_rests_goes_on_when_a_way_leads_to_a_member() {
    let far = BTreeMap::from([(OTHER, vec![7; 40])]);
    let cases: [Case; 3] = [
        (BTreeMap::new(), |engine| {
            let near = BTreeMap::from([(OTHER, vec![7])]);
            engine.set_tree_routes(near, at(90)).expect("a route");
        }),
        (BTreeMap::new(), |engine| {
            let (unicast, tree) = (BTreeMap::new(), Arc::default());
            let root = Some(&[5][..]);
            let set = engine.set_all_routes(&unicast, &tree, root, at(90));
            set.expect("a route");
        }),
        (far, |engine| engine.set_tree_route_max(200)),
    ];
    for (number, (tree, leads)) in cases.into_iter().enumerate() {
        let config = EngineConfig::new(HOST, [2; 6], 1_500, 1, 50);
        let mut engine = Engine::new(config).expect("valid");
        engine.set_tree_route_max(20);
        engine.set_tree_routes(tree, at(1)).expect("routes");
        let plan = GroupPlan {
            id: GROUP,
            epoch: 1,
            choices: Choice::only(Replication::Switches),
            members: vec![HOST, OTHER],
            mtu: None,
            structures: Arc::new(Pair),
            reports_begin: false,
            gathered: None,
        };
        engine.set_group(plan, at(1)).expect("there is room");
        engine
            .write(GROUP, b"hello", true, at(2))
            .expect("a member");
        for turn in 3..10 {
            let sent = poll(&mut engine, at(turn));
            assert_eq!(sent, 0, "case {number}: no way leads there");
        }
        assert_eq!(engine.resting(), 1, "case {number}");
        leads(&mut engine);
        assert_eq!(
            engine.poll_timeout().map(|time| time <= at(100)),
            Some(true)
        );
        assert_eq!(poll(&mut engine, at(100)), 1, "case {number}: now one does");
    }
}
