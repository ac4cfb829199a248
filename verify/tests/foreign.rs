//! Tables and paths of others: followed a second time in the plainest way, on random networks
//! with random tables.

use crate::foreign_files;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use foreign_files::{Ports, csv, dump, net_list, random_tables, tables_file};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use wormcast_routing::generate::from_spec;
use wormcast_routing::routes::{Algorithm, Route, Routes};
use wormcast_routing::topology::{Attachment, Topology};
use wormcast_verify::deadlock::{ChannelGraph, Model, Verdict as OwnVerdict};
use wormcast_verify::foreign::{
    Channel, Ends, Lost, LostKind, Network, Verdict, verify_paths, verify_tables,
};
use wormcast_verify::formats::Document;
use wormcast_wire::PortId;

/// A switch and a port of it, or a host.
type End = (String, Option<u8>);

fn end_of(channel: &Channel) -> End {
    let port = channel.from_port.as_ref().map(|port| port.parse().unwrap());
    (channel.from.clone(), port)
}

/// What a packet holds and needs, and where it is lost: worked out packet by packet.
struct Walked {
    waits: BTreeSet<(End, End)>,
    lost: BTreeSet<(LostKind, String, u16)>,
}

/// Every host has two addresses, each with a way of its own.
fn walk(topology: &Topology, both: &[Ports; 2]) -> Walked {
    let mut walked = Walked {
        waits: BTreeSet::new(),
        lost: BTreeSet::new(),
    };
    for ports in both {
        walk_one(topology, ports, &mut walked);
    }
    walked
}

fn walk_one(topology: &Topology, ports: &Ports, walked: &mut Walked) {
    for src in topology.hosts() {
        for dst in topology.hosts().iter().filter(|dst| dst.id != src.id) {
            let (mut at, mut held) = (src.switch, (format!("h{}", src.id), None));
            let mut been = BTreeSet::new();
            loop {
                let Some(&port) = ports.get(&(at.0, dst.id.0)) else {
                    walked
                        .lost
                        .insert((LostKind::NoEntry, format!("s{at}"), dst.id.0));
                    break;
                };
                let needed = (format!("s{at}"), Some(port));
                let there = topology.attachment(at, PortId::new(port).unwrap());
                if there.is_none() {
                    walked
                        .lost
                        .insert((LostKind::NoLink, format!("s{at}"), dst.id.0));
                    break;
                }
                walked.waits.insert((held, needed.clone()));
                held = needed;
                match there {
                    Some(Attachment::Switch(next, _)) => at = next,
                    Some(Attachment::Host(host)) => {
                        if host != dst.id {
                            walked
                                .lost
                                .insert((LostKind::WrongHost, format!("s{at}"), dst.id.0));
                        }
                        break;
                    }
                    None => unreachable!(),
                }
                if !been.insert(held.clone()) {
                    break;
                }
            }
        }
    }
}

fn has_cycle(waits: &BTreeSet<(End, End)>) -> bool {
    let mut into: BTreeMap<&End, usize> = BTreeMap::new();
    for (held, needed) in waits {
        into.entry(held).or_default();
        *into.entry(needed).or_default() += 1;
    }
    let mut free: VecDeque<&End> = into
        .iter()
        .filter(|(_, n)| **n == 0)
        .map(|(end, _)| *end)
        .collect();
    let mut done = 0;
    while let Some(end) = free.pop_front() {
        done += 1;
        for (_, needed) in waits.iter().filter(|(held, _)| held == end) {
            let left = into.get_mut(needed).unwrap();
            *left -= 1;
            if *left == 0 {
                free.push_back(needed);
            }
        }
    }
    done < into.len()
}

/// Holds a verdict against what was walked.
fn compare(verdict: &Verdict, walked: &Walked) {
    assert_eq!(verdict.is_deadlock_free(), !has_cycle(&walked.waits));
    let places: BTreeMap<End, usize> = verdict.order.iter().map(end_of).zip(0..).collect();
    for (held, needed) in walked.waits.iter().filter(|_| verdict.is_deadlock_free()) {
        assert!(places[held] < places[needed], "{held:?} {needed:?}");
    }
    for (place, held) in verdict.cycle.iter().enumerate() {
        let needed = &verdict.cycle[(place + 1) % verdict.cycle.len()];
        let wait = (end_of(&held.channel), end_of(&needed.channel));
        assert!(walked.waits.contains(&wait), "{wait:?}");
        assert_eq!(held.channel.to, needed.channel.from);
    }
}

#[test]
fn tables_are_followed_as_packet_by_packet() {
    let mut seen = [0, 0];
    let mut kinds = BTreeSet::new();
    for seed in 0..60u64 {
        let topology = from_spec(&format!("irregular:{}:{seed}:2:3", 4 + 2 * (seed % 5))).unwrap();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let wrong = [0, 3, 40][seed as usize % 3];
        let ports = [(); 2].map(|()| random_tables(&topology, &mut random, wrong));
        let walked = walk(&topology, &ports);

        let net = net_list(&topology);
        let network = Network::read(&net).unwrap();
        let verdict =
            verify_tables(&network, &[&dump(&topology, &ports)], None, Ends::Hosts).unwrap();
        // Ports of net lists count from 1.
        let shifted = |channel: &mut Channel| {
            for port in [&mut channel.from_port, &mut channel.to_port] {
                *port = port
                    .as_ref()
                    .map(|port| (port.parse::<u8>().unwrap() - 1).to_string());
            }
        };
        let mut ours = verdict.clone();
        ours.order.iter_mut().for_each(shifted);
        ours.cycle
            .iter_mut()
            .for_each(|held| shifted(&mut held.channel));
        compare(&ours, &walked);
        seen[usize::from(ours.is_deadlock_free())] += 1;
        // One loop is named for each address that has some.
        let name = |lost: &Lost| {
            let host = lost
                .packet
                .dst
                .as_ref()
                .unwrap()
                .trim_start_matches('h')
                .parse()
                .unwrap();
            (lost.kind, lost.switch.clone(), host)
        };
        let lost: BTreeSet<_> = verdict.lost.iter().map(name).collect();
        let loops: Vec<_> = lost
            .iter()
            .filter(|lost| lost.0 == LostKind::Loop)
            .collect();
        assert!(loops.is_empty() || !verdict.is_deadlock_free());
        let plain: BTreeSet<_> = lost
            .iter()
            .filter(|lost| lost.0 != LostKind::Loop)
            .cloned()
            .collect();
        assert_eq!(plain, walked.lost);
        kinds.extend(lost.iter().map(|lost| lost.0));

        let network = Network::new(&Document::new(topology.clone()), None);
        let file = verify_tables(
            &network,
            &[&tables_file(&topology, &ports)],
            None,
            Ends::Hosts,
        )
        .unwrap();
        compare(&file, &walked);
    }
    assert!(seen.iter().all(|count| *count > 10), "{seen:?}");
    let wanted = [
        LostKind::NoEntry,
        LostKind::NoLink,
        LostKind::WrongHost,
        LostKind::Loop,
    ];
    assert!(wanted.iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
}

#[test]
fn paths_are_judged_as_our_own_routes_are() {
    let mut seen = [0, 0];
    for seed in 0..30u64 {
        let topology = from_spec(&format!("irregular:8:{seed}:2:3")).unwrap();
        let routes = Routes::plan(&topology, Algorithm::Osud, None).unwrap();
        let mut chosen: Vec<Route> = routes.iter().collect();
        if seed % 2 == 0 {
            // Routes of another root beside these may make a cycle.
            let last = topology.switches().last().unwrap().id;
            let others = Routes::plan(&topology, Algorithm::Osud, Some(last)).unwrap();
            chosen.extend(others.iter());
        }
        let mut graph = ChannelGraph::new(&topology, Model::default());
        for route in &chosen {
            graph.add_route(route).unwrap();
        }
        let free = matches!(graph.check(), OwnVerdict::DeadlockFree { .. });
        seen[usize::from(free)] += 1;
        let network = Network::new(&Document::new(topology.clone()), None);
        for with_ports in [true, false] {
            let text = csv(&chosen, with_ports).replace('→', "->");
            let simple = topology.links().iter().all(|link| {
                topology
                    .links()
                    .iter()
                    .filter(|other| (other.a, other.b) == (link.a, link.b))
                    .count()
                    == 1
            });
            if with_ports || simple {
                let verdict = verify_paths(&text, Some(&network)).unwrap();
                assert_eq!(verdict.is_deadlock_free(), free, "seed {seed}");
            }
        }
        // By hosts' ports nothing is known without a network; the last port leads to the host.
        assert_eq!(
            verify_paths(&csv(&chosen, true), None)
                .unwrap()
                .is_deadlock_free(),
            free
        );
    }
    assert!(seen.iter().all(|count| *count > 3), "{seen:?}");
}

#[test]
fn virtual_channels_are_channels_of_their_own() {
    let round = "src,path,vc\na,s0 s1 s2,\nb,s1 s2 s0,\nc,s2 s0 s1,LAST\n";
    let verdict = |last: &str| verify_paths(&round.replace("LAST", last), None).unwrap();
    assert_eq!(verdict("").cycle.len(), 3);
    assert_eq!(verdict("0").cycle[0].channel.vc.as_deref(), Some("0"));
    assert!(verdict("1").is_deadlock_free());
    let own = "path\ns0@1 s1@1 s2\ns1@1 s2@1 s0\ns2@1 s0@0 s1\n";
    assert!(verify_paths(own, None).unwrap().is_deadlock_free());
    assert_eq!(
        verify_paths(&own.replace("@0", "@1"), None)
            .unwrap()
            .cycle
            .len(),
        3
    );
}

#[test]
fn switches_send_too_if_asked() {
    // Hosts hang on the ends of a line; what begins in the middle shows with `all` only.
    let file = r#"{"switches":[{"id":0,"ports":4},{"id":1,"ports":4},{"id":2,"ports":4}],
        "hosts":[{"id":0,"switch":0,"port":0}],
        "links":[{"a":0,"a_port":1,"b":1,"b_port":0},{"a":1,"a_port":1,"b":2,"b_port":0},
                 {"a":2,"a_port":1,"b":0,"b_port":2}]}"#;
    let table = r#"{"tables":[{"name":"t","bits":8,"switches":[
        {"switch":0,"entries":[{"key":"0/0","ports":[0]}]},
        {"switch":1,"entries":[{"key":"0/0","ports":[1]}]},
        {"switch":2,"entries":[{"key":"0/0","ports":[1]}]}]}]}"#;
    let network = Network::read(file).unwrap();
    let wire = |verdict: &Verdict| verdict.checked.clone();
    let (few, all) = (
        verify_tables(&network, &[table], None, Ends::Hosts).unwrap(),
        verify_tables(
            &network,
            &[&table.replace(
                "\"key\":\"0/0\",\"ports\":[0]",
                "\"key\":\"0/0\",\"ports\":[1]",
            )],
            None,
            Ends::All,
        ),
    );
    assert!(few.is_deadlock_free());
    assert_eq!(wire(&few)[2], ("destinations", 1));
    let all = all.unwrap();
    assert_eq!(all.cycle.len(), 3);
    assert_eq!(all.lost[0].path.len(), 3);
}
