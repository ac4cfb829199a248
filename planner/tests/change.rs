//! Changes of routes on every small graph and on random ones: each step safe with the one
//! before by a check of its own, all pairs served in the end, none stopped without need.

use crate::graphs;

use std::collections::{BTreeMap, BTreeSet};

use graphs::{Plain, connected_graphs, neighbours, route, wire};
use wormcast_planner::change::{Change, ChangeSteps, Method, Step, plan};
use wormcast_routing::generate::{Irregular, from_spec, irregular};
use wormcast_routing::routes::{Algorithm, Route, Routes};
use wormcast_routing::topology::{Attachment, Damage, Parts, Topology};
use wormcast_wire::{HostId, PortId, SwitchId};

type Pair = (HostId, HostId);
/// A channel: what it leaves, by which port, where it leads.
type Hop = (SwitchId, u8, SwitchId);

/// A change of planned routes, nothing asked for.
fn change<'a>(old: &'a Topology, new: &'a Topology) -> Change<'a> {
    Change {
        old,
        new,
        algorithm: Algorithm::Osud,
        root: None,
        routes: None,
        new_root: None,
        planned: false,
    }
}

/// Follows a route from its source to its destination; gives the channels between
/// switches of each piece between in-transit hosts.
fn pieces(topology: &Topology, route: &Route) -> Vec<Vec<Hop>> {
    let mut pieces = vec![Vec::new()];
    let mut expected = topology.host(route.src).unwrap().switch;
    let mut in_transit = route.in_transit.iter();
    for (place, (&at, &port)) in route.switches.iter().zip(&route.ports).enumerate() {
        assert_eq!(at, expected, "{route:?}");
        let last = place + 1 == route.ports.len();
        match topology.attachment(at, PortId::new(port).unwrap()).unwrap() {
            Attachment::Switch(to, _) => {
                pieces.last_mut().unwrap().push((at, port, to));
                expected = to;
            }
            Attachment::Host(host) if last => assert_eq!(host, route.dst),
            Attachment::Host(host) => {
                assert_eq!(in_transit.next(), Some(&host), "{route:?}");
                pieces.push(Vec::new());
            }
        }
        assert!(!last || port_leads_to_host(topology, at, port), "{route:?}");
    }
    assert_eq!(in_transit.next(), None);
    pieces
}

fn port_leads_to_host(topology: &Topology, at: SwitchId, port: u8) -> bool {
    let found = topology.attachment(at, PortId::new(port).unwrap());
    matches!(found, Some(Attachment::Host(_)))
}

/// What a route makes worms hold and need.
fn turns(topology: &Topology, route: &Route) -> Vec<(Hop, Hop)> {
    let pieces = pieces(topology, route);
    pieces
        .iter()
        .flat_map(|piece| piece.windows(2).map(|pair| (pair[0], pair[1])))
        .collect()
}

fn all_hops(topology: &Topology) -> BTreeSet<Hop> {
    (topology.links().iter())
        .flat_map(|link| {
            [
                (link.a, link.a_port.get(), link.b),
                (link.b, link.b_port.get(), link.a),
            ]
        })
        .collect()
}

/// Takes away what nothing waits for until nothing is left, or only cycles.
fn is_acyclic(mut waits: BTreeSet<(Hop, Hop)>) -> bool {
    loop {
        let held: BTreeSet<Hop> = waits.iter().map(|(held, _)| *held).collect();
        let before = waits.len();
        waits.retain(|(_, needed)| held.contains(needed));
        if waits.is_empty() || waits.len() == before {
            return waits.is_empty();
        }
    }
}

/// Makes the steps one by one and checks each; gives the routes in the end.
fn check(asked: &Change<'_>, plan: &ChangeSteps) -> BTreeMap<Pair, Route> {
    let planned = Routes::plan(asked.old, asked.algorithm, asked.root).unwrap();
    let before = (asked.routes).map_or_else(|| planned.iter().collect(), <[Route]>::to_vec);
    let mut in_force: BTreeMap<Pair, Route> = before
        .into_iter()
        .map(|route| ((route.src, route.dst), route))
        .collect();
    let there = all_hops(asked.new);
    let mut waits: BTreeSet<(Hop, Hop)> = BTreeSet::new();
    for route in in_force.values() {
        waits.extend(turns(asked.old, route));
    }
    if !asked.planned {
        waits.retain(|(held, needed)| there.contains(held) && there.contains(needed));
    }
    let host_stays =
        |host: HostId| asked.old.host(host).is_ok() && asked.old.host(host) == asked.new.host(host);
    in_force.retain(|(src, dst), route| {
        let whole = pieces(asked.old, route)
            .iter()
            .flatten()
            .all(|hop| there.contains(hop));
        let mut hosts = route.in_transit.iter().chain([src, dst]);
        whole && hosts.all(|host| host_stays(*host))
    });
    let served: BTreeSet<Pair> = in_force.keys().copied().collect();
    for (number, step) in plan.steps.iter().enumerate() {
        for pair in &step.drained {
            assert!(
                in_force.remove(&(pair.src, pair.dst)).is_some(),
                "{pair:?} was in force"
            );
        }
        for route in &step.changed {
            let known = in_force.insert((route.src, route.dst), route.clone());
            // A switch that lost one of its hosts may still have the one that re-injects.
            let is_other = known.as_ref() != Some(route) || !route.in_transit.is_empty();
            assert!(is_other, "it is new or other");
        }
        let mut after = BTreeSet::new();
        for route in in_force.values() {
            after.extend(turns(asked.new, route));
        }
        assert!(is_acyclic(&waits | &after), "step {number} of {plan:?}");
        check_certificate(&(&waits | &after), step);
        let stopped: BTreeSet<Pair> = step
            .drained
            .iter()
            .map(|pair| (pair.src, pair.dst))
            .collect();
        assert!(
            served
                .iter()
                .all(|pair| in_force.contains_key(pair) || stopped.contains(pair))
        );
        waits = after;
    }
    assert_eq!(in_force.len(), plan.routes);
    let reachable = Routes::plan(asked.new, asked.algorithm, asked.new_root).unwrap();
    let all: BTreeSet<Pair> = reachable
        .iter()
        .map(|route| (route.src, route.dst))
        .collect();
    assert_eq!(in_force.keys().copied().collect::<BTreeSet<_>>(), all);
    let hosts = asked.new.hosts().len();
    assert_eq!(
        plan.unreachable.len(),
        hosts * hosts.saturating_sub(1) - all.len()
    );
    in_force
}

fn check_certificate(waits: &BTreeSet<(Hop, Hop)>, step: &Step) {
    use wormcast_verify::deadlock::Channel;
    let place: BTreeMap<Hop, usize> = (step.order.iter().enumerate())
        .map(|(place, channel)| match channel {
            Channel::Link {
                from,
                from_port,
                to,
                ..
            } => ((*from, from_port.get(), *to), place),
            other => panic!("{other:?} is not between switches"),
        })
        .collect();
    assert!(
        waits
            .iter()
            .all(|(held, needed)| place[held] < place[needed])
    );
}

fn failures(topology: &Topology) -> Vec<Damage> {
    let links = topology.links().iter().map(|link| Damage {
        links: [(link.a, link.a_port)].into(),
        ..Damage::default()
    });
    let switches = topology.switches().iter().map(|switch| Damage {
        switches: [switch.id].into(),
        ..Damage::default()
    });
    links.chain(switches).collect()
}

type Tally = BTreeMap<(usize, Option<Method>), usize>;

fn count(tally: &mut Tally, plan: &ChangeSteps) {
    let method = plan.steps.last().map(|step| step.method);
    *tally.entry((plan.steps.len(), method)).or_default() += 1;
}

/// Every failure of a link or a switch, and its repair; counts what they took.
fn fail_and_repair(old: &Topology, algorithm: Algorithm, failed: &mut Tally, back: &mut Tally) {
    for damage in failures(old) {
        let Ok(new) = old.without(&damage) else {
            continue;
        };
        for (from, to, tally) in [(old, &new, &mut *failed), (&new, old, &mut *back)] {
            let asked = Change {
                algorithm,
                ..change(from, to)
            };
            let made = plan(&asked).unwrap();
            check(&asked, &made);
            count(tally, &made);
        }
    }
}

#[test]
fn one_step_does_after_every_failure_in_every_small_graph() {
    let (mut failed, mut back) = (Tally::new(), Tally::new());
    for switches in 2..=5 {
        for old in connected_graphs(switches, false) {
            fail_and_repair(&old, Algorithm::Osud, &mut failed, &mut back);
        }
    }
    assert!(
        failed
            .keys()
            .chain(back.keys())
            .all(|(steps, _)| *steps <= 1)
    );
    for method in [Method::KeptOrder, Method::RepairedOrder, Method::Detours] {
        assert!(failed.contains_key(&(1, Some(method))), "{failed:?}");
    }
}

#[test]
fn with_in_transit_buffers_one_step_along_the_kept_order_always_does() {
    let (mut failed, mut back) = (Tally::new(), Tally::new());
    for switches in 2..=5 {
        for old in connected_graphs(switches, switches == 5) {
            fail_and_repair(&old, Algorithm::Omit, &mut failed, &mut back);
        }
    }
    let old = irregular(&Irregular::of_itb(12, 2)).unwrap();
    fail_and_repair(&old, Algorithm::Omit, &mut failed, &mut back);
    let expected = [(0, None), (1, Some(Method::KeptOrder))];
    let mut all = failed.keys().chain(back.keys());
    assert!(all.all(|key| expected.contains(key)), "{failed:?} {back:?}");
}

#[test]
fn along_the_spanning_tree_alone() {
    let (mut failed, mut back) = (Tally::new(), Tally::new());
    for old in connected_graphs(4, false) {
        fail_and_repair(&old, Algorithm::TreeOnly, &mut failed, &mut back);
    }
    assert!(
        failed
            .keys()
            .chain(back.keys())
            .all(|(steps, _)| *steps <= 1)
    );
}

#[test]
fn a_change_of_root_never_stops_a_pair() {
    let mut most = 0;
    for switches in 2..=5 {
        for old in connected_graphs(switches, switches == 5) {
            for root in old.switches() {
                let asked = Change {
                    new_root: Some(root.id),
                    ..change(&old, &old)
                };
                let made = plan(&asked).unwrap();
                let after = check(&asked, &made);
                let wanted = Routes::plan(&old, Algorithm::Osud, Some(root.id)).unwrap();
                assert!(
                    wanted.iter().eq(after.into_values()),
                    "the plan that was asked for"
                );
                let is_free = |step: &Step| step.drained.is_empty() && step.waiting == 0;
                assert!(made.steps.iter().all(is_free));
                most = most.max(made.steps.len());
            }
        }
    }
    assert_eq!(most, 3, "a ring of five takes three");
}

#[test]
fn a_change_of_root_in_larger_networks() {
    for (spec, most) in [
        ("ring:12", 2),
        ("torus:4", 9),
        ("mesh:4x4", 9),
        ("irregular:16:5", 6),
        ("fat-tree:4", 1),
    ] {
        let old = from_spec(spec).unwrap();
        let last = old.switches().last().unwrap().id;
        let asked = Change {
            new_root: Some(last),
            ..change(&old, &old)
        };
        let made = plan(&asked).unwrap();
        check(&asked, &made);
        assert!(made.steps.len() <= most, "{spec}: {}", made.steps.len());
        assert!(
            made.steps.iter().all(|step| step.drained.is_empty()),
            "{spec}"
        );
    }
}

#[test]
fn random_networks() {
    for seed in 0..3 {
        let old = irregular(&Irregular::of_itb(16, seed)).unwrap();
        let (mut failed, mut back) = (Tally::new(), Tally::new());
        fail_and_repair(&old, Algorithm::Osud, &mut failed, &mut back);
        assert!(
            failed
                .keys()
                .chain(back.keys())
                .all(|(steps, _)| *steps <= 1),
            "{failed:?}"
        );
    }
}

#[test]
fn only_broken_routes_change_while_the_order_serves() {
    let old = irregular(&Irregular::of_itb(32, 1)).unwrap();
    let mut kept = 0;
    for damage in failures(&old).into_iter().take(24) {
        let new = old.without(&damage).unwrap();
        let made = plan(&change(&old, &new)).unwrap();
        if let [step] = &made.steps[..]
            && step.method == Method::KeptOrder
        {
            kept += 1;
            assert_eq!(step.changed.len(), made.broken);
        }
    }
    assert!(kept > 10, "{kept} of 24");
}

/// Two squares joined at a link of their tops, 0-4, and over switch 8 at their bottoms.
/// Each square sends up on one side and down on the other, so that its worms wait for
/// each other from the bottom all the way round to the bottom.
fn two_squares() -> (Topology, Vec<Route>) {
    let links = [
        (0, 1),
        (0, 2),
        (0, 4),
        (1, 3),
        (2, 3),
        (4, 5),
        (4, 6),
        (5, 7),
        (6, 7),
        (3, 8),
        (7, 8),
    ];
    let topology = Topology::new(wire(9, 1, &links)).unwrap();
    let plain = Plain::new(&topology, SwitchId(0));
    let next = neighbours(&topology);
    let wrong_side = |way: &Vec<SwitchId>| {
        let is_wrong = |pair: &&[SwitchId]| {
            if plain.is_up(pair[0], pair[1]) {
                [2, 6].contains(&pair[1].0)
            } else {
                [1, 5].contains(&pair[1].0)
            }
        };
        way.windows(2).filter(is_wrong).count()
    };
    let mut routes = Vec::new();
    for from in 0..9 {
        for to in (0..9).filter(|to| *to != from) {
            let shortest = plain.shortest(SwitchId(from), SwitchId(to)) as usize;
            let mut ways = vec![vec![SwitchId(from)]];
            for _ in 0..shortest {
                ways = (ways.iter())
                    .flat_map(|way| {
                        let on = |to: &SwitchId| way.iter().copied().chain([*to]).collect();
                        next[way.last().unwrap()]
                            .iter()
                            .map(on)
                            .collect::<Vec<Vec<SwitchId>>>()
                    })
                    .filter(|way| plain.is_legal(way))
                    .collect();
            }
            let ends = ways
                .into_iter()
                .filter(|way| *way.last().unwrap() == SwitchId(to));
            let way: Vec<u16> = ends
                .min_by_key(wrong_side)
                .unwrap()
                .iter()
                .map(|at| at.0)
                .collect();
            routes.push(route(&topology, &way));
        }
    }
    (topology, routes)
}

#[test]
fn several_steps_where_one_would_deadlock() {
    let (old, routes) = two_squares();
    let link = old
        .links()
        .iter()
        .find(|link| (link.a.0, link.b.0) == (0, 4))
        .unwrap();
    let damage = Damage {
        links: [(link.a, link.a_port)].into(),
        ..Damage::default()
    };
    let new = old.without(&damage).unwrap();
    let asked = Change {
        routes: Some(&routes),
        root: Some(SwitchId(0)),
        ..change(&old, &new)
    };
    let made = plan(&asked).unwrap();
    check(&asked, &made);
    // The squares are joined at 8 alone now, and both turns there close the circle.
    assert!(made.steps.len() > 1, "{:?}", made.steps);
    assert!(made.steps.iter().all(|step| step.drained.is_empty()));
    assert!(made.steps[0].waiting > 0);
    // Re-injected at 8, one step does.
    let asked = Change {
        algorithm: Algorithm::Omit,
        ..asked
    };
    let made = plan(&asked).unwrap();
    check(&asked, &made);
    assert_eq!(made.steps.len(), 1);
    assert_eq!(made.steps[0].method, Method::KeptOrder);
}

#[test]
fn links_that_are_taken_out_carry_worms_until_the_end() {
    for old in connected_graphs(4, true) {
        for damage in failures(&old) {
            let Ok(new) = old.without(&damage) else {
                continue;
            };
            let asked = Change {
                planned: true,
                ..change(&old, &new)
            };
            check(&asked, &plan(&asked).unwrap());
        }
    }
}

#[test]
fn several_failures_split_fabrics_and_hosts_that_move() {
    for seed in 0..12 {
        let parameters = Irregular {
            switches: 12,
            ports: 8,
            hosts: 2,
            links: 3,
            seed,
        };
        let old = irregular(&parameters).unwrap();
        let gone = seed as u16;
        let links = old.links().iter().skip(seed as usize % 3).step_by(3);
        let damage = Damage {
            links: links.map(|link| (link.a, link.a_port)).collect(),
            switches: [SwitchId(gone)].into(),
            hosts: [HostId((gone * 2 + 5) % 24)].into(),
        };
        let split = old.without(&damage).unwrap();
        let mut parts = Parts {
            switches: split.switches().to_vec(),
            hosts: split.hosts().to_vec(),
            links: split.links().to_vec(),
            grid: None,
        };
        // Two hosts change places.
        let (first, second) = (parts.hosts[0], parts.hosts[9]);
        (parts.hosts[0].switch, parts.hosts[0].port) = (second.switch, second.port);
        (parts.hosts[9].switch, parts.hosts[9].port) = (first.switch, first.port);
        let new = Topology::new_split(parts).unwrap();
        for algorithm in [Algorithm::Osud, Algorithm::Omit] {
            for (from, to) in [(&old, &new), (&new, &old), (&split, &new)] {
                let asked = Change {
                    algorithm,
                    ..change(from, to)
                };
                check(&asked, &plan(&asked).unwrap());
            }
        }
    }
}

#[test]
fn the_same_change_again_gives_the_same_plan() {
    let old = irregular(&Irregular::of_itb(16, 9)).unwrap();
    for damage in failures(&old).iter().take(6) {
        let new = old.without(damage).unwrap();
        let asked = change(&old, &new);
        assert_eq!(
            plan(&asked).unwrap().to_json(),
            plan(&asked).unwrap().to_json()
        );
    }
}

#[test]
fn what_is_refused() {
    let ring = from_spec("ring:4").unwrap();
    let refusal = |asked: &Change<'_>| plan(asked).unwrap_err().to_string();
    assert_eq!(
        refusal(&Change {
            algorithm: Algorithm::Rmit,
            ..change(&ring, &ring)
        }),
        "changes are planned for algorithms with one path a pair; \
         rmit is not one of osud, tree-only, omit"
    );
    assert_eq!(
        refusal(&Change {
            new_root: Some(SwitchId(7)),
            ..change(&ring, &ring)
        }),
        "topology: there is no switch 7; switches are 0, 1, 2, 3"
    );
    // From each host to the one two places on, all the same way round.
    let circle: Vec<Route> = (0..4)
        .map(|at| route(&ring, &[at, (at + 1) % 4, (at + 2) % 4]))
        .collect();
    assert_eq!(
        refusal(&Change {
            routes: Some(&circle),
            ..change(&ring, &ring)
        }),
        "the routes in force can deadlock by themselves; check them with `verify` first"
    );
    let mut astray = route(&ring, &[0, 1]);
    astray.ports[0] = 9;
    let refused = refusal(&Change {
        routes: Some(&[astray]),
        ..change(&ring, &ring)
    });
    assert!(
        refused.starts_with("route in force from host 0 to host 1: "),
        "{refused}"
    );
}
