//! Plans, good and bad.

use super::examples::*;
use super::*;
use proptest::prelude::*;

/// The text of the refusal of a plan, or of its last group, that `change` has spoilt.
fn refusal(change: impl FnOnce(&mut proto::Plan)) -> String {
    let mut message = plan_message(1);
    message.routes = vec![route(2, &[1, 2])];
    message.tree_routes = vec![route(2, &[1, 2])];
    message.groups = vec![
        group_message(9, "repeat", &[1, 2]),
        group_message(3, "tree", &[1, 2, 4]),
    ];
    assert!(AgentPlan::parse(&message).unwrap().refused.is_empty());
    change(&mut message);
    match AgentPlan::parse(&message) {
        Err(rejected) => rejected.to_string(),
        Ok(plan) => {
            assert!(
                plan.groups.contains_key(&GroupId(9)),
                "the others are taken"
            );
            assert_eq!(plan.refused.len(), 1);
            assert_eq!(plan.refused[0].group, message.groups.last().unwrap().id);
            plan.refused[0].reason.clone()
        }
    }
}

/// What an agent takes, it takes at once and in little memory; of more it says so.
#[test]
fn thousands_of_groups_are_taken_and_the_rest_refused_by_number() {
    let mut message = plan_message(1);
    let numbers = (0..=GROUPS_MAX as u32 + 1).filter(|&number| number != 255);
    message.groups = numbers
        .map(|number| group_message(number, "k-binomial", &[1, 2, 4, 7]))
        .collect();
    let plan = AgentPlan::parse(&message).unwrap();
    assert_eq!(plan.groups.len(), GROUPS_MAX);
    assert_eq!(
        plan.refused,
        vec![RefusedGroup {
            group: GROUPS_MAX as u32 + 1,
            reason: "the plan has 16385 groups; at most 16384".to_owned()
        }]
    );
}

#[test]
fn refusals_name_value_bound_and_choices() {
    let cases = [
        (
            refusal(|plan| plan.host_id = 65_535),
            "host_id is 65535; it must be 0 to 65534",
        ),
        (
            refusal(|plan| plan.routes[0].ports.clear()),
            "the route to host 2 in routes has 0 bytes; it must have 1 to 255",
        ),
        (
            refusal(|plan| plan.routes[0].ports = vec![3, 255]),
            "the route to host 2 in routes has byte 255; bytes must be 0 to 254",
        ),
        (
            refusal(|plan| plan.tree_routes[0].ports = vec![254]),
            "the route to host 2 in tree_routes has byte 254; bytes must be 0 to 253",
        ),
        (
            refusal(|plan| plan.routes.push(route(1, &[0]))),
            "routes has a route to host 1, which is this host itself",
        ),
        (
            refusal(|plan| plan.routes.push(route(2, &[0]))),
            "the shares of the 2 routes to host 2 in routes add up to 25200; they must add up to 12600",
        ),
        (
            refusal(|plan| {
                let share = |share| proto::Route {
                    share,
                    ..route(2, &[0])
                };
                plan.routes = vec![share(12_000), share(500)];
            }),
            "the shares of the 2 routes to host 2 in routes add up to 12500; they must add up to 12600",
        ),
        (
            refusal(|plan| {
                let tenth = proto::Route {
                    share: 600,
                    ..route(2, &[0])
                };
                plan.routes = vec![tenth; 21];
            }),
            "routes has more than 20 routes to host 2; at most 20",
        ),
        (
            refusal(|plan| plan.tree_routes.push(route(2, &[0]))),
            "tree_routes has two routes to host 2; it must have one",
        ),
        (
            refusal(|plan| plan.groups[1].id = 255),
            "group id 255; it must be 0 to 65535, but not 255, which is broadcast",
        ),
        (
            refusal(|plan| plan.groups[1].structures[0].scheme = "flood".into()),
            "group 3 has scheme \"flood\"; this agent knows: repeat, circuit, tree, k-binomial, postal, u-torus, s-torus, md-torus, mu-torus, switch, table, broadcast",
        ),
        (
            refusal(|plan| plan.groups[1].members = vec![2, 4]),
            "host 1 is not among the members of group 3, which are 2, 4",
        ),
        (
            refusal(|plan| plan.groups[1].members = vec![1, 4, 2]),
            "the members of group 3 are not ascending: 4 comes before 2",
        ),
        (
            refusal(|plan| plan.groups[1].structures[0].order = vec![1, 2, 2]),
            "the order of group 3 is 1, 2, 2; it must hold each of the members 1, 2, 4 once",
        ),
        (
            refusal(|plan| {
                plan.groups[1] = group_message(3, "circuit", &[1, 2, 4]);
                plan.groups[1].structures[0].variant = "ordered".into();
            }),
            "group 3 has variant \"ordered\"; of a circuit it must be omit-last or return",
        ),
        (
            refusal(|plan| {
                plan.groups[1] = group_message(3, "k-binomial", &[1, 2, 4]);
                plan.groups[1].structures[0].k = 4;
            }),
            "group 3 has k = 4; with 3 members it must be 1 to 3",
        ),
        (
            refusal(|plan| {
                plan.groups[1] = group_message(3, "postal", &[1, 2, 4]);
                plan.groups[1].structures[0].lambda = 1025;
            }),
            "group 3 has lambda = 1025; it must be 1 to 1024",
        ),
        (
            refusal(|plan| {
                plan.groups[1] = group_message(3, "mu-torus", &[1, 2, 4]);
                plan.groups[1].structures[0].r = 0;
            }),
            "group 3 has r = 0; it must be 1 to 65534",
        ),
        (
            refusal(|plan| {
                plan.groups[1] = group_message(3, "md-torus", &[1, 2, 4]);
                plan.groups[1].structures[0].rings = vec![2, 2];
            }),
            "the md-torus of group 3 cannot be used: rings of [2, 2] members do not hold the 3 there are",
        ),
        (
            refusal(|plan| plan.groups[1].structures.clear()),
            "group 3 has 0 structures; it must have 1 to 16",
        ),
        (
            refusal(|plan| {
                let second = plan.groups[1].structures[0].clone();
                plan.groups[1].structures.push(second);
            }),
            "the structures of group 3 are for messages of up to 0, 0 bytes; the bounds must ascend, and the last must be 0, for any",
        ),
        (
            refusal(|plan| plan.groups[1].structures[0].tree_edges.truncate(1)),
            "the tree of group 3 cannot be used: edges make no rooted tree: host 4 has no parent; only the root 1 has none",
        ),
        (
            refusal(|plan| plan.groups.push(group_message(3, "repeat", &[1]))),
            "group 3 is in the plan twice",
        ),
        (
            refusal(|plan| {
                plan.groups.push(group_message(4, "repeat", &[1]));
                plan.groups[2].name = "g3".into();
            }),
            "two groups are named \"g3\"",
        ),
        (
            refusal(|plan| {
                plan.groups[1].structures[0].tree_edges.push(edge((1, 2)));
            }),
            "the tree of group 3 has 3 edges; with 3 members it must have 2",
        ),
        (
            refusal(|plan| plan.groups[1].members.clear()),
            "group 3 has no members; it must have 1 to 1024",
        ),
        (
            refusal(|plan| plan.groups[1].name = "x".repeat(256)),
            "the name of group 3 has 256 bytes; at most 255",
        ),
        (
            refusal(|plan| plan.groups[1].members = (0..2000).collect()),
            "the members of group 3 has 2000 hosts; at most 1024",
        ),
        (
            refusal(|plan| plan.groups[1].number = Some(255)),
            "group 3 has number 255; it must be 0 to 65535, but not 255, which is broadcast",
        ),
        (
            refusal(|plan| plan.groups[1].trees = vec![shared(&[]); 9]),
            "group 3 has 9 trees; at most 8",
        ),
        (
            refusal(|plan| plan.groups[1].trees = vec![shared(&[(1, 254, 2, 0)])]),
            "the trees of group 3 have port 254 of switch 1; switches must be 0 to 65535, ports 0 to 253",
        ),
        (
            refusal(|plan| plan.groups[1].leaves = leaves(&[(3, 0, 0)])),
            "host 3 is a leaf of the trees of group 3; leaves must be members",
        ),
        (
            refusal(|plan| plan.groups[1].leaves = leaves(&[(2, 0, 0), (2, 0, 1)])),
            "host 2 is twice a leaf of the trees of group 3; it must be one once",
        ),
        (
            refusal(|plan| {
                plan.groups[1].leaves = leaves(&[(1, 5, 0)]);
                plan.groups[1].trees = vec![shared(&[(5, 1, 6, 1), (6, 2, 7, 1), (7, 2, 5, 2)])];
            }),
            "a tree of group 3 has a loop through switch 6; its links must be a tree",
        ),
        (
            refusal(|plan| plan.groups[1].mtu = Some(575)),
            "the MTU of group 3 is 575; it must be 576 to 65535, or 0 for that of the interface",
        ),
        (
            refusal(|plan| plan.root_route = Some(vec![1, 254])),
            "the route to the root has byte 254; bytes must be 0 to 253",
        ),
        (
            refusal(|plan| plan.train_frames = 65),
            "trains of 65 frames; they must be 1, for none, to 64",
        ),
        (
            refusal(|plan| plan.unicast_train_frames = 65),
            "trains of 65 frames; they must be 1, for none, to 64",
        ),
        (
            refusal(|plan| plan.tree_route_max = 256),
            "TREE routes of 256 bytes; it must be 3 to 255, or 0 for 255",
        ),
        (
            refusal(|plan| plan.tree_route_max = 2),
            "TREE routes of 2 bytes; it must be 3 to 255, or 0 for 255",
        ),
        (
            refusal(|plan| plan.rate_bytes = 125_000_000_001),
            "a rate of 125000000001 bytes a second; it must be 1 to 125000000000, or 0 for any",
        ),
    ];
    for (actual, expected) in cases {
        assert_eq!(actual, expected);
    }
}

/// A field that is absent, or less, says nothing of its own: a plan may name trains of any kind alone.
#[test]
fn unicast_trains_are_no_shorter_than_those_of_any_kind() {
    for (any, unicast, expected) in [
        (0, 0, (1, 1)),
        (8, 0, (8, 8)),
        (8, 4, (8, 8)),
        (0, 8, (1, 8)),
    ] {
        let message = proto::Plan {
            train_frames: any,
            unicast_train_frames: unicast,
            ..plan_message(1)
        };
        let plan = AgentPlan::parse(&message).unwrap();
        assert_eq!((plan.train_frames, plan.unicast_train_frames), expected);
    }
}

#[test]
fn fingerprints_tell_plans_apart_and_not_names() {
    let print = |scheme: &str, change: &dyn Fn(&mut proto::Group)| {
        let mut message = plan_message(1);
        let mut group = group_message(3, scheme, &[1, 2, 4]);
        change(&mut group);
        message.groups = vec![group];
        let plan = AgentPlan::parse(&message).unwrap();
        assert_eq!(plan.refused, []);
        plan.groups.into_values().next().unwrap().fingerprint
    };
    let plain = print("k-binomial", &|_| ());
    assert_eq!(
        plain,
        print("k-binomial", &|group| group.name = "other".into())
    );
    assert_eq!(plain, print("k-binomial", &|group| group.mtu = Some(1500)));
    let with_short = |bytes_most| {
        print("k-binomial", &|group| {
            let mut short = group.structures[0].clone();
            short.bytes_most = bytes_most;
            group.structures.insert(0, short);
        })
    };
    assert_eq!(with_short(1000), with_short(2000));
    let mut all = vec![
        plain,
        print("k-binomial", &|group| {
            group.structures[0].order = vec![2, 1, 4];
        }),
        print("k-binomial", &|group| group.structures[0].k = 1),
        print("circuit", &|_| ()),
        print("circuit", &|group| {
            group.structures[0].variant = "return".into();
        }),
        print("postal", &|_| ()),
        print("postal", &|group| group.structures[0].lambda = 3),
        print("mu-torus", &|_| ()),
        print("mu-torus", &|group| group.structures[0].r = 1),
        print("md-torus", &|_| ()),
        print("md-torus", &|group| group.structures[0].rings = vec![1, 2]),
        print("tree", &|_| ()),
        print("tree", &|group| {
            group.structures[0].tree_edges = vec![edge((1, 2)), edge((1, 4))];
        }),
        print("k-binomial", &|group| {
            group.members = vec![1, 2, 5];
            group.structures[0].order = vec![1, 2, 5];
        }),
        print("table", &|_| ()),
        print("table", &|group| group.number = Some(9)),
        print("table", &|group| group.sequencer = sequencer(2, 0)),
        print("table", &|group| group.sequencer = sequencer(1, 0)),
        print("table", &|group| group.sequencer = sequencer(1, 1 << 40)),
        print("switch", &|group| {
            group.trees = vec![shared(&[(5, 1, 6, 1)])];
        }),
        with_short(1000),
    ];
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}

/// A group of one scheme has its name, whatever its structures; an order that is left out is that of the one before.
#[test]
fn several_structures_share_an_order_and_a_scheme() {
    let parsed = |with: &dyn Fn(&mut proto::Group)| {
        let mut message = plan_message(1);
        let mut group = group_message(3, "k-binomial", &[1, 2, 4]);
        group.structures[0].expected.clear();
        let mut short = group.structures[0].clone();
        (short.bytes_most, short.order) = (1000, vec![4, 1, 2]);
        group.structures[0].order.clear();
        group.structures.insert(0, short);
        with(&mut group);
        message.groups = vec![group];
        let plan = AgentPlan::parse(&message).unwrap();
        assert_eq!(plan.refused, []);
        plan.groups[&GroupId(3)].clone()
    };
    let group = parsed(&|_| ());
    assert_eq!(group.scheme_name(), "k-binomial");
    for structure in &group.structures {
        assert_eq!(*structure.order, [4, 1, 2].map(HostId));
    }
    assert!(group.is_same(&parsed(&|_| ())));
    let longer = parsed(&|group| group.structures[0].bytes_most = 2000);
    assert!(!group.is_same(&longer));
    assert_eq!(group.fingerprint, longer.fingerprint);
    let two = parsed(&|group| group.structures[0].scheme = "circuit".into());
    assert_eq!(two.scheme_name(), AUTO);
    let ascending = parsed(&|group| group.structures[0].order.clear());
    assert_eq!(*ascending.structures[1].order, [1, 2, 4].map(HostId));
}

/// Ways along a tree, from each member; a host that is not on it is left out.
#[test]
fn trees_give_the_ways_from_this_host() {
    let paths = |host: u32| {
        let mut message = plan_message(host);
        let mut group = group_message(3, "switch", &[1, 2, 4, 7]);
        group.trees = vec![
            shared(&[(10, 1, 11, 2), (12, 3, 11, 4)]),
            shared(&[(10, 5, 12, 6)]),
        ];
        group.leaves = leaves(&[(1, 10, 0), (2, 12, 0), (4, 11, 9)]);
        message.groups = vec![group];
        let plan = AgentPlan::parse(&message).unwrap();
        assert_eq!(plan.refused, []);
        plan.groups[&GroupId(3)].trees.clone()
    };
    let tree = |paths: &[(u16, &[u8])]| -> TreePaths {
        paths
            .iter()
            .map(|(host, path)| (HostId(*host), path.to_vec()))
            .collect()
    };
    assert_eq!(
        paths(1),
        [
            tree(&[(2, &[1, 4, 0]), (4, &[1, 9])]),
            tree(&[(2, &[5, 0])])
        ]
    );
    assert_eq!(paths(4), [tree(&[(1, &[2, 0]), (2, &[4, 0])]), tree(&[])]);
    assert_eq!(paths(7), [tree(&[]), tree(&[])]);
    let through = |root: u32| {
        let mut message = plan_message(1);
        let mut group = group_message(3, "switch", &[1, 2, 4]);
        group.trees = vec![shared(&[(10, 1, 11, 2), (12, 3, 11, 4)])];
        group.leaves = leaves(&[(1, 10, 0), (2, 12, 0), (4, 10, 9)]);
        group.roots = vec![root];
        message.groups = vec![group];
        let plan = AgentPlan::parse(&message).unwrap();
        plan.groups[&GroupId(3)].trees.clone()
    };
    // Up to the root, and back where a member is on this side of it.
    assert_eq!(through(11), [tree(&[(2, &[1, 4, 0]), (4, &[1, 2, 9])])]);
    assert_eq!(
        through(12),
        [tree(&[(2, &[1, 4, 0]), (4, &[1, 4, 3, 2, 9])])]
    );
    assert_eq!(through(13), [tree(&[])], "no link leads there");
}

#[test]
fn a_sequencer_is_a_member() {
    let mut message = plan_message(1);
    let mut group = group_message(3, "circuit", &[1, 2, 4]);
    group.sequencer = sequencer(4, 9);
    message.groups = vec![group.clone()];
    let plan = AgentPlan::parse(&message).unwrap();
    let found = plan.groups[&GroupId(3)].sequencer.unwrap();
    assert_eq!((found.host, found.epoch), (HostId(4), 9));
    group.sequencer = sequencer(3, 9);
    message.groups = vec![group];
    let refused = AgentPlan::parse(&message).unwrap().refused;
    assert!(
        refused[0].reason.contains("one of the members 1, 2, 4"),
        "{refused:?}"
    );
}

fn small() -> impl Strategy<Value = u32> {
    prop_oneof![0_u32..6, Just(255), 65_530_u32..65_540, any::<u32>()]
}

prop_compose! {
    fn any_structure()(
        scheme in 0_usize..13, bytes_most in prop_oneof![Just(0_u64), any::<u64>()],
        order in proptest::collection::vec(small(), 0..6),
        numbers in (small(), small(), small()), rings in proptest::collection::vec(small(), 0..3),
        tree_edges in proptest::collection::vec((small(), small()), 0..5),
    ) -> proto::Structure {
        let names = wormcast_wire::SchemeName::ALL.map(wormcast_wire::SchemeName::name);
        let scheme = names.get(scheme).unwrap_or(&"?").to_string();
        let (k, lambda, r) = numbers;
        let expected = vec![expected(bytes_most, f64::from(k) - 1.0)];
        let tree_edges = tree_edges.into_iter().map(edge).collect();
        let variant = ["", "return", "ordered"][r as usize % 3].to_owned();
        proto::Structure {
            bytes_most, scheme, order, variant, k, lambda, r, rings, tree_edges, expected,
        }
    }
}

prop_compose! {
    fn any_group()(
        id in small(), members in proptest::collection::vec(small(), 0..6),
        structures in proptest::collection::vec(any_structure(), 0..3),
        number in proptest::option::of(small()),
        trees in proptest::collection::vec(proptest::collection::vec((0_u32..4, small(), 0_u32..4, small()), 0..4), 0..3),
        leaves in proptest::collection::vec((small(), 0_u32..4, small()), 0..4),
        sequencer in proptest::option::of((small(), any::<u64>())),
        mtu in proptest::option::of(any::<u32>()),
        roots in proptest::collection::vec(0_u32..6, 0..3),
        gathered in proptest::option::of((any::<u32>(), proptest::collection::vec((small(), small()), 0..3))),
        left_out in proptest::collection::vec((small(), "a?"), 0..3),
    ) -> proto::Group {
        let gathered = gathered.and_then(|(epoch, origins)| self::gathered(epoch, &origins));
        let sequencer = sequencer.and_then(|(host, epoch)| self::sequencer(host, epoch));
        let trees = trees.iter().map(|links: &Vec<_>| shared(links)).collect();
        let leaves = self::leaves(&leaves);
        let left_out = left_out.iter().map(|(host, reason)| self::left_out(*host, reason)).collect();
        proto::Group {
            id, name: String::new(), members, structures, number, trees, leaves, roots, sequencer, mtu, sink: id % 2 == 1,
            gathered, left_out, rate_bits: [0, 1, 8_000, u64::MAX][id as usize % 4],
        }
    }
}

proptest! {
    /// Whatever a controller sends: an error, or a plan whose structures answer for every
    /// origin without a panic.
    #[test]
    fn no_plan_does_harm(
        host_id in small(),
        routes in proptest::collection::vec((small(), proptest::collection::vec(any::<u8>(), 0..5), small()), 0..4),
        groups in proptest::collection::vec(any_group(), 0..3),
    ) {
        let routes = routes.into_iter().map(|(host, ports, share)| proto::Route { host, ports, share });
        let routes = routes.collect();
        let message = proto::Plan { epoch: 1, host_id, routes, groups, ..proto::Plan::default() };
        if let Ok(plan) = AgentPlan::parse(&message) {
            for group in plan.groups.values() {
                let engine_plan = group.engine_plan(plan.host);
                for choice in 0..group.structures.len() as u8 {
                    for &origin in &group.members {
                        prop_assert!(engine_plan.structures.role(origin, choice).is_some());
                    }
                    prop_assert!(engine_plan.structures.role(HostId(65_000), choice).is_none());
                }
            }
        }
    }
}

#[test]
fn gathered_acks_are_told_to_the_engine_and_disturb_no_transfer() {
    let mut message = plan_message(1);
    message.groups = vec![group_message(3, "switch", &[1, 2, 4])];
    let before = AgentPlan::parse(&message).unwrap().groups[&GroupId(3)].clone();
    assert_eq!(before.engine_plan(HostId(1)).gathered, None);
    message.groups[0].gathered = gathered(0xFFFF_FFFF, &[(1, 0), (4, 65_534)]);
    let group = AgentPlan::parse(&message).unwrap().groups[&GroupId(3)].clone();
    let gathered = group.engine_plan(HostId(1)).gathered.expect("planned");
    assert_eq!(gathered.epoch, 0xFFFF_FFFF);
    let origins = [(HostId(1), HostId(0)), (HostId(4), HostId(65_534))];
    assert_eq!(gathered.origins, BTreeMap::from(origins));
    assert_eq!(group.fingerprint, before.fingerprint);
}

#[test]
fn gathered_acks_that_cannot_be_are_refused_by_name() {
    let with = |origins: &[(u32, u32)]| {
        refusal(|message| message.groups[1].gathered = gathered(1, origins))
    };
    assert_eq!(
        with(&[(3, 900)]),
        "ACKs to host 3 in group 3 are gathered; it must be one of the members 1, 2, 4"
    );
    assert_eq!(
        with(&[(70_000, 900)]),
        "an origin of gathered ACKs in group 3 is 70000; it must be 0 to 65534"
    );
    assert_eq!(
        with(&[(1, 900), (2, 65_535)]),
        "the source of gathered ACKs to host 2 in group 3 is 65535; it must be 0 to 65534"
    );
    assert_eq!(
        with(&[(1, 4)]),
        "the source of gathered ACKs to host 1 in group 3 is 4; it must be the number of a switch, none of the \
         members 1, 2, 4"
    );
    for second in [2, 1] {
        assert_eq!(
            with(&[(2, 900), (second, 900)]),
            format!(
                "the origins of gathered ACKs in group 3 are not ascending: 2 comes before {second}"
            )
        );
    }
}
