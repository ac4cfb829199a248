//! The root for multicast under guard B, against counts of all groups.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wormcast_routing::generate::from_spec;
use wormcast_routing::group::{mean_links_by_root, multicast_root};
use wormcast_routing::topology::Topology;
use wormcast_routing::updown::UpDown;
use wormcast_wire::{HostId, SwitchId};

#[test]
fn the_multicast_root_is_the_best_of_all() {
    for kind in ["irregular:20:4", "torus:4", "line:9", "testbed"] {
        let topology = from_spec(kind).unwrap();
        let best = multicast_root(&topology, 6);
        let links = |root| {
            let updown = UpDown::new(&topology, Some(root)).unwrap();
            mean_links_by_root(&topology, &updown, 6)
        };
        for switch in topology.switches() {
            assert!(
                links(best) <= links(switch.id),
                "{kind}: {} beats {best}",
                switch.id
            );
        }
    }
    // Hosts at one end of a line draw the root there; eccentricity alone keeps it amid.
    let value: Value = json!({
        "switches": (0..7).map(|id| json!({"id": id, "ports": 16})).collect::<Vec<_>>(),
        "hosts": (0..9).map(|id| json!({"id": id, "switch": if id < 8 { 0 } else { 6 }, "port": id}))
            .collect::<Vec<_>>(),
        "links": (0..6).map(|at| json!({"a": at, "a_port": 14, "b": at + 1, "b_port": 15}))
            .collect::<Vec<_>>(),
    });
    let topology = Topology::from_json(&value.to_string()).unwrap();
    assert_eq!(
        UpDown::new(&topology, None).unwrap().root(&topology),
        SwitchId(3)
    );
    assert_eq!(multicast_root(&topology, 6), SwitchId(0));
}

#[test]
fn the_mean_is_that_of_all_groups() {
    // All senders and all pairs of members with repetition, counted one by one.
    let topology = from_spec("irregular:6:2:1:3").unwrap();
    let updown = UpDown::new(&topology, None).unwrap();
    let root = updown.root(&topology);
    let up = |host: u16| {
        let mut at = topology.host(HostId(host)).unwrap().switch;
        let mut way = Vec::new();
        while at != root {
            way.push(at);
            at = updown.parent(&topology, at).unwrap().unwrap();
        }
        way
    };
    let mut links = 0;
    for source in 0..6 {
        for first in 0..6 {
            for second in 0..6 {
                let below: BTreeSet<SwitchId> = up(first).into_iter().chain(up(second)).collect();
                links += up(source).len() + below.len();
            }
        }
    }
    let mean = mean_links_by_root(&topology, &updown, 2);
    assert!((mean - links as f64 / 216.0).abs() < 1e-9, "{mean} {links}");
}
