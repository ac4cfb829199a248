//! Topology files: what is read, written, refused and with what words; damage.

use crate::graphs;

use std::collections::BTreeSet;

use proptest::prelude::*;
use wormcast_routing::generate::{KINDS, from_spec};
use wormcast_routing::routes::{Algorithm, RouteError, Routes, read_routes};
use wormcast_routing::topology::{Attachment, Damage, Topology};
use wormcast_wire::{HostId, PortId, SwitchId};

/// A topology file with a name and a field that nobody knows.
const FILE: &str = r#"{"switches":[{"id":0,"ports":8},{"id":3,"ports":8}],
    "hosts":[{"id":0,"switch":0,"port":0},{"id":9,"switch":3,"port":1,"name":"nine"}],
    "links":[{"a":0,"a_port":4,"b":3,"b_port":5}], "made_by":"hand"}"#;

fn refused(from: &str, to: &str) -> String {
    let text = FILE.replacen(from, to, 1);
    assert_ne!(text, FILE, "{from} is in the file");
    Topology::from_json(&text).unwrap_err().to_string()
}

#[test]
fn reads_what_it_writes() {
    let topology = Topology::from_json(FILE).unwrap();
    assert_eq!(topology.switches().len(), 2);
    assert_eq!(topology.host(HostId(9)).unwrap().switch, SwitchId(3));
    let port = |number| PortId::new(number).unwrap();
    assert_eq!(
        topology.attachment(SwitchId(0), port(4)),
        Some(Attachment::Switch(SwitchId(3), port(5)))
    );
    assert_eq!(
        topology.attachment(SwitchId(3), port(1)),
        Some(Attachment::Host(HostId(9)))
    );
    assert_eq!(topology.attachment(SwitchId(3), port(7)), None);
    assert_eq!(topology.attachment(SwitchId(1), port(0)), None);
    assert_eq!(Topology::from_json(&topology.to_json()).unwrap(), topology);
}

#[test]
fn names_what_is_wrong() {
    for (from, to, message) in [
        (
            "\"links\":[{",
            "\"links\":[",
            "topology is not JSON: line 3, column 17: expected `,` or `]`",
        ),
        (
            "\"switches\"",
            "\"switch\"",
            "topology: field \"switches\" is missing",
        ),
        (
            "\"hosts\":[{",
            "\"hosts\":[4,{",
            "hosts[0]: 4 is not an object",
        ),
        (
            "\"a_port\":4",
            "\"a_prt\":4",
            "links[0]: field \"a_port\" is missing",
        ),
        (
            "\"id\":0,\"ports\":8",
            "\"id\":\"x\",\"ports\":8",
            "switches[0].id: \"x\" is not an integer",
        ),
        (
            "\"id\":0,\"ports\":8",
            "\"id\":1.5,\"ports\":8",
            "switches[0].id: 1.5 is not an integer",
        ),
        (
            "\"ports\":8",
            "\"ports\":255",
            "switches[0].ports: 255 is outside 1 to 254",
        ),
        (
            "\"ports\":8",
            "\"ports\":0",
            "switches[0].ports: 0 is outside 1 to 254",
        ),
        ("\"id\":3", "\"id\":0", "switch id 0 is given twice"),
        ("\"id\":9", "\"id\":0", "host id 0 is given twice"),
        (
            "\"id\":9",
            "\"id\":65535",
            "hosts[1].id: 65535 is outside 0 to 65534",
        ),
        (
            "\"id\":9",
            "\"id\":-1",
            "hosts[1].id: -1 is outside 0 to 65534",
        ),
        (
            "\"switch\":3",
            "\"switch\":2",
            "host 9: there is no switch 2; switches are 0, 3",
        ),
        (
            "\"b\":3",
            "\"b\":4",
            "links[0]: there is no switch 4; switches are 0, 3",
        ),
        (
            "\"b_port\":5",
            "\"b_port\":254",
            "links[0].b_port: 254 is outside 0 to 253",
        ),
        (
            "\"b_port\":5",
            "\"b_port\":8",
            "links[0]: port 8 is outside switch 3, which has 8 ports, 0 to 7",
        ),
        (
            "\"b_port\":5",
            "\"b_port\":1",
            "port 1 of switch 3 is used twice, by host 9 and by links[0]",
        ),
        ("\"a\":0", "\"a\":3", "links[0] joins switch 3 to itself"),
        (
            "\"links\":[{\"a\":0,\"a_port\":4,\"b\":3,\"b_port\":5}]",
            "\"links\":[]",
            "topology is not connected: switch 0 cannot reach switches 3",
        ),
        (
            "\"made_by\":\"hand\"",
            "\"grid\":{\"radix\":[2,2],\"wraps\":1}",
            "grid.wraps: 1 is not true or false",
        ),
        (
            "\"made_by\":\"hand\"",
            "\"grid\":{\"radix\":[3]}",
            "grid 3 has no place for switch 3",
        ),
        (
            "\"made_by\":\"hand\"",
            "\"grid\":{}",
            "grid: field \"radix\" is missing",
        ),
    ] {
        assert_eq!(refused(from, to), message);
    }
    let refused = |text: &str| Topology::from_json(text).unwrap_err().to_string();
    assert_eq!(refused("[]"), "topology: a list is not an object");
    assert_eq!(
        refused(r#"{"switches":[],"hosts":[],"links":[]}"#),
        "topology has no switches; it needs at least one"
    );
    let many: Vec<String> = (0..16385)
        .map(|id| format!("{{\"id\":{id},\"ports\":1}}"))
        .collect();
    assert_eq!(
        refused(&format!(
            r#"{{"switches":[{}],"hosts":[],"links":[]}}"#,
            many.join(",")
        )),
        "topology has 16385 switches; at most 16384 are supported"
    );
}

proptest! {
    #[test]
    fn nothing_that_is_read_crashes(text in ".{0,80}", at in 0usize..FILE.len(), byte in any::<u8>()) {
        let _ = Topology::from_json_split(&text);
        let mut bytes = FILE.as_bytes().to_vec();
        bytes[at] = byte;
        let _ = Topology::from_json_split(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn what_remains_is_routed(
        seed in 0u64..50,
        broken in prop::collection::vec(any::<prop::sample::Index>(), 0..14),
        dead in prop::collection::btree_set(0u16..10, 0..4),
        gone in prop::collection::btree_set(0u16..20, 0..4),
    ) {
        let whole = from_spec(&format!("irregular:10:{seed}:2:3")).unwrap();
        let damage = Damage {
            links: broken
                .iter()
                .map(|index| whole.links()[index.index(whole.links().len())])
                .map(|link| if link.a.0 % 2 == 0 { (link.a, link.a_port) } else { (link.b, link.b_port) })
                .collect(),
            switches: dead.iter().map(|&id| SwitchId(id)).collect(),
            hosts: gone.iter().map(|&id| HostId(id)).collect(),
        };
        let left = whole.without(&damage).unwrap();
        prop_assert!(left.switches().iter().all(|switch| !dead.contains(&switch.id.0)));
        prop_assert!(left.hosts().iter().all(|host| !gone.contains(&host.id.0)));
        prop_assert_eq!(&Topology::from_json_split(&left.to_json()).unwrap(), &left);
        for algorithm in Algorithm::ALL {
            check_remaining(&left, algorithm);
        }
    }
}

/// Every pair in one part has a route, every other is listed, none is both.
fn check_remaining(left: &Topology, algorithm: Algorithm) {
    let routes = Routes::plan(left, algorithm, None).unwrap();
    assert_eq!(routes.updown().roots(left).len(), left.components());
    let mut reachable = BTreeSet::new();
    for route in routes.iter() {
        graphs::follow(left, &route);
        reachable.insert((route.src, route.dst));
    }
    let apart: BTreeSet<_> = routes
        .unreachable()
        .map(|pair| (pair.src, pair.dst))
        .collect();
    for src in left.hosts() {
        let near = graphs::distances(left, src.switch);
        for dst in left.hosts().iter().filter(|dst| dst.id != src.id) {
            let pair = (src.id, dst.id);
            assert_eq!(reachable.contains(&pair), near.contains_key(&dst.switch));
            assert_eq!(apart.contains(&pair), !near.contains_key(&dst.switch));
            if apart.contains(&pair) {
                let (src, dst) = pair;
                assert_eq!(
                    routes.route(src, dst),
                    Err(RouteError::Unreachable { src, dst })
                );
            }
        }
    }
}

#[test]
fn only_what_is_there_can_fail() {
    let whole = from_spec("testbed").unwrap();
    let port = |number| PortId::new(number).unwrap();
    let refuse = |damage: Damage| whole.without(&damage).unwrap_err().to_string();
    assert_eq!(
        refuse(Damage {
            links: [(SwitchId(0), port(1))].into(),
            ..Damage::default()
        }),
        "there is no link at 0:1; ports of switch 0 with links to switches are 4, 5"
    );
    assert_eq!(
        refuse(Damage {
            switches: [SwitchId(7)].into(),
            ..Damage::default()
        }),
        "topology: there is no switch 7; switches are 0, 1, 2, 3"
    );
    assert_eq!(
        refuse(Damage {
            hosts: [HostId(70)].into(),
            ..Damage::default()
        }),
        "there is no host 70; hosts are 0, 1, 2, 3, 4, 5, 6, 7"
    );
    assert_eq!(
        refuse(Damage {
            switches: (0..4).map(SwitchId).collect(),
            ..Damage::default()
        }),
        "topology has no switches; it needs at least one"
    );
}

#[test]
fn a_cut_ring_still_reaches_everyone_and_a_second_cut_splits_it() {
    let whole = from_spec("testbed").unwrap();
    let cut = |links: &[(u16, u8)]| {
        let links = links
            .iter()
            .map(|&(id, port)| (SwitchId(id), PortId::new(port).unwrap()));
        whole
            .without(&Damage {
                links: links.collect(),
                ..Damage::default()
            })
            .unwrap()
    };
    let once = cut(&[(0, 4)]);
    let routes = Routes::plan(&once, Algorithm::Osud, None).unwrap();
    assert_eq!(
        (routes.iter().count(), routes.unreachable().count()),
        (56, 0)
    );
    let twice = cut(&[(0, 4), (3, 5)]);
    let routes = Routes::plan(&twice, Algorithm::Osud, None).unwrap();
    assert_eq!(
        (routes.iter().count(), routes.unreachable().count()),
        (24, 32)
    );
    let text = routes.to_json();
    assert!(
        text.contains("\"unreachable\":[{\"src\":0,\"dst\":2}"),
        "{text}"
    );
    assert_eq!(
        routes.route(HostId(0), HostId(2)).unwrap_err().to_string(),
        "host 0 cannot reach host 2: they are in parts that are not connected"
    );
}

#[test]
fn routes_are_refused_with_reasons() {
    let topology = from_spec("line:65").unwrap();
    let routes = Routes::plan(&topology, Algorithm::Osud, None).unwrap();
    assert_eq!(routes.route(HostId(0), HostId(63)).unwrap().ports.len(), 64);
    let refuse = |src, dst| {
        routes
            .route(HostId(src), HostId(dst))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refuse(0, 64),
        "route from host 0 to host 64 crosses 65 switches; a worm crosses at most 64"
    );
    assert_eq!(
        refuse(5, 5),
        "host 5 needs no route to itself; source and destination must differ"
    );
    assert!(refuse(0, 65).starts_with("there is no host 65; hosts are 0, 1, 2,"));
    assert_eq!(routes.unreachable().count(), 2);
    assert_eq!(
        "fastest".parse::<Algorithm>().unwrap_err().to_string(),
        "there is no algorithm \"fastest\"; algorithms are osud, tree-only, omit, rmit, rrmit, \
         pit, rrmit-min"
    );
    let one_way = from_spec("unidirectional-torus:3").unwrap();
    assert_eq!(
        Routes::plan(&one_way, Algorithm::Osud, None)
            .unwrap_err()
            .to_string(),
        "osud needs links that lead both ways; this topology is unidirectional"
    );
}

#[test]
fn routes_come_back_from_their_file() {
    let topology = from_spec("torus:3").unwrap();
    let routes = Routes::plan(&topology, Algorithm::Osud, None).unwrap();
    let back = read_routes(&routes.to_json()).unwrap();
    assert_eq!(back, routes.iter().collect::<Vec<_>>());
    let refuse = |text: &str| read_routes(text).unwrap_err().to_string();
    assert_eq!(
        refuse("{}"),
        "routes: field \"routes\" is missing or not a list"
    );
    assert_eq!(refuse(r#"{"routes":[7]}"#), "routes[0]: 7 is not an object");
    assert_eq!(
        refuse(r#"{"routes":[{"src":0,"dst":1,"switches":[0],"ports":[300]}]}"#),
        "routes[0].ports[0]: 300 is not an integer from 0 to 255"
    );
    assert_eq!(
        refuse(r#"{"routes":[{"src":0,"dst":1,"switches":[0],"ports":[]}]}"#),
        "routes[0]: 1 switches and 0 ports; there must be one switch for each port"
    );
}

#[test]
fn generators_make_what_they_say() {
    // (spec, switches, hosts, links, links of each switch if all have as many)
    for (spec, switches, hosts, links, degree) in [
        ("testbed", 4, 8, 4, Some(2)),
        ("line:5:2", 5, 10, 4, None),
        ("ring:5", 5, 5, 5, Some(2)),
        ("star:5", 5, 5, 4, None),
        ("full-mesh:5", 5, 5, 10, Some(4)),
        ("torus:4", 16, 16, 32, Some(4)),
        ("torus:8", 64, 64, 128, Some(4)),
        ("torus:2", 4, 4, 4, Some(2)),
        ("torus:3x4x5:2", 60, 120, 180, Some(6)),
        ("unidirectional-torus:4", 16, 16, 32, Some(4)),
        ("mesh:4x3", 12, 12, 17, None),
        ("fat-tree:4", 20, 16, 32, None),
        ("shufflenet:2:3", 24, 24, 48, Some(4)),
        ("irregular:16:1", 16, 64, 32, Some(4)),
        ("irregular:4:1", 4, 16, 6, Some(3)),
        ("irregular:64:9", 64, 256, 128, Some(4)),
        ("irregular:20:5:2:6", 20, 40, 60, Some(6)),
        ("irregular:1:1", 1, 4, 0, Some(0)),
    ] {
        let topology = from_spec(spec).unwrap();
        assert_eq!(topology.switches().len(), switches, "{spec}");
        assert_eq!(topology.hosts().len(), hosts, "{spec}");
        assert_eq!(topology.links().len(), links, "{spec}");
        assert_eq!(topology.components(), 1);
        let neighbours = graphs::neighbours(&topology);
        let pairs: usize = neighbours.values().map(BTreeSet::len).sum();
        assert_eq!(pairs, 2 * links, "{spec}: one link a pair");
        if let Some(degree) = degree {
            assert!(
                neighbours.values().all(|others| others.len() == degree),
                "{spec}"
            );
        }
        assert_eq!(Topology::from_json(&topology.to_json()).unwrap(), topology);
    }
    let testbed = from_spec("testbed").unwrap();
    assert!(
        testbed
            .links()
            .iter()
            .all(|link| link.a_port.get() < 8 && link.b_port.get() < 8)
    );
    for (spec, diameter) in [
        ("torus:8", 8),
        ("shufflenet:2:3", 4),
        ("fat-tree:4", 4),
        ("mesh:4x3", 5),
    ] {
        let topology = from_spec(spec).unwrap();
        let farthest = topology
            .switches()
            .iter()
            .flat_map(|switch| graphs::distances(&topology, switch.id).into_values())
            .max();
        assert_eq!(farthest, Some(diameter), "{spec}");
    }
}

#[test]
fn a_torus_is_wired_by_its_coordinates() {
    let topology = from_spec("torus:3x4:2").unwrap();
    let grid = topology.grid().unwrap();
    assert_eq!(grid.coordinates(SwitchId(7)), [1, 2]);
    for switch in topology.switches() {
        let [x, y] = grid.coordinates(switch.id)[..] else {
            panic!()
        };
        for (port, x, y) in [(2, x + 1, y), (3, x + 2, y), (4, x, y + 1), (5, x, y + 3)] {
            let back = PortId::new(port ^ 1).unwrap();
            let to = SwitchId(x % 3 + 3 * (y % 4));
            let attachment = topology.attachment(switch.id, PortId::new(port).unwrap());
            assert_eq!(attachment, Some(Attachment::Switch(to, back)));
        }
    }
}

#[test]
fn generators_refuse_what_makes_no_topology() {
    for (spec, message) in [
        (
            "ring:2",
            "ring: 2 switches make no ring; it needs 3 or more",
        ),
        ("line:0", "line: 0 switches are outside 1 to 16384"),
        ("line:17000", "line: 17000 switches are outside 1 to 16384"),
        (
            "line:3:254",
            "line: switch 0 would need port 254; ports are 0 to 253",
        ),
        (
            "line:2000:40",
            "line: 40 hosts on each of 2000 switches are more than 65535",
        ),
        (
            "full-mesh:300:0",
            "full-mesh: switch 0 would need port 254; ports are 0 to 253",
        ),
        (
            "torus:1",
            "torus: a dimension of 1; it needs one or more, each of 2 switches or more, 16384 switches at most in all, as in 4 (4 by 4) or 4x4x2",
        ),
        (
            "torus:4x",
            "torus: \"4x\" is not a radix such as 4 (4 by 4 switches) or 4x4x2",
        ),
        (
            "torus",
            "torus: 0 parameters given; it is written torus:RADIX[:HOSTS]",
        ),
        (
            "torus:4:1:1",
            "torus: 3 parameters given; it is written torus:RADIX[:HOSTS]",
        ),
        (
            "line:x",
            "line: SWITCHES \"x\" is not a number of 0 or more; it is written line:SWITCHES[:HOSTS]",
        ),
        (
            "fat-tree:3",
            "fat-tree: k = 3; it must be even, 2 or more, with 5k²/4 ≤ 16384",
        ),
        (
            "shufflenet:1:3",
            "shufflenet: p = 1, k = 3; both must be 2 or more, with k·p^k ≤ 16384",
        ),
        (
            "irregular:8:1:4:1",
            "irregular: 1 links a switch do not join 8; it needs 2 or more",
        ),
        (
            "irregular:300:1:200:60",
            "irregular: 200 hosts and 60 links are more than the 254 ports of a switch",
        ),
    ] {
        assert_eq!(from_spec(spec).unwrap_err().to_string(), message);
    }
    let message = from_spec("moebius:4").unwrap_err().to_string();
    assert_eq!(
        message,
        format!(
            "moebius: no such topology; choices are {}",
            KINDS.join(", ")
        )
    );
}
