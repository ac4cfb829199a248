//! The choice of `auto` against every scheme, and what a request for it may say.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the study times itself"
)]

use crate::study;

use serde_json::{Value, json};
use study::{COSTS, HOST_SCHEMES, Study, costs_named, draw};
use wormcast_planner::auto::{AutoRequest, Needs, plan_auto, plan_file};
use wormcast_planner::cost::{CostModel, Costs, Message, Traffic, estimate};
use wormcast_planner::replay::replay;
use wormcast_routing::generate::from_spec;
use wormcast_routing::group::{
    Delivery, GroupPlan, GroupRequest, Scheme, SwitchMode, SwitchParameters, plan_group,
};
use wormcast_routing::routes::{Algorithm, Routes};
use wormcast_routing::structure::TreeVariant;
use wormcast_routing::topology::Topology;
use wormcast_verify::deadlock::read_groups;
use wormcast_wire::HostId;

/// The study of `bench/cost/run` in small: whatever is picked takes at most a tenth longer
/// than the best of all schemes, parameters and orders, each replayed link by link.
#[test]
fn the_pick_is_within_a_tenth_of_the_best() {
    let study = Study {
        networks: vec![
            ("torus", "torus:4".into()),
            ("torus", "torus:8".into()),
            ("one-way torus", "unidirectional-torus:4".into()),
            ("irregular", "irregular:16:2".into()),
            ("fat tree", "fat-tree:4".into()),
        ],
        sizes: vec![2, 6, 16, 40],
        bytes: vec![64, 4 << 10, 128 << 10],
        costs: COSTS.to_vec(),
        groups: 1,
        families: vec!["all", "hosts"],
        refine: true,
    };
    let mut found = Vec::new();
    study.run(|one, _| found.push(one));
    assert_eq!(found.len(), study.cases());
    let mut schemes: Vec<&str> = Vec::new();
    for one in &found {
        assert!(one.ratio() <= 1.1, "{:.3}: {one:?}", one.ratio());
        schemes.push(one.best.split(' ').next().unwrap());
    }
    let best = found.iter().filter(|one| one.ratio() <= 1.0).count();
    assert!(best * 10 >= found.len() * 9, "{best} of {}", found.len());
    // It is a choice: many schemes are the best somewhere.
    schemes.sort_unstable();
    schemes.dedup();
    assert!(schemes.len() >= 6, "{schemes:?}");
}

fn on<T>(spec: &str, work: impl FnOnce(&Routes<'_>) -> T) -> T {
    let topology = from_spec(spec).unwrap();
    work(&Routes::plan(&topology, Algorithm::Osud, None).unwrap())
}

fn request(members: impl IntoIterator<Item = u16>) -> GroupRequest {
    let members: Vec<HostId> = members.into_iter().map(HostId).collect();
    GroupRequest::new(Scheme::Repeat, members[0], members)
}

/// Where nothing waits for anything the closed form is exact, first packet and pace.
#[test]
fn estimates_are_exact_without_contention() {
    on("torus:4", |routes| {
        for scheme in [
            Scheme::Repeat,
            Scheme::KBinomial { k: Some(2) },
            Scheme::Postal { lambda: Some(3) },
            Scheme::Switch(SwitchParameters::default()),
        ] {
            for (bytes, packets) in [(900, 1), (90_000, 100)] {
                let costs = Costs {
                    packet_send_ns: 40_000.0,
                    packet_receive_ns: 100.0,
                    switch_hop_ns: 700.0,
                    message_send_ns: 9_000.0,
                    message_receive_ns: 5_000.0,
                    ..Costs::free(1_000_000_000)
                };
                let model = CostModel::new(routes, costs).unwrap();
                let mut asked = request(0..9);
                asked.scheme = scheme;
                let plan = plan_group(routes, &asked).unwrap();
                let traffic = Traffic::new(&model, &plan).unwrap();
                let message = Message { bytes, packets };
                let found = replay(&model, &traffic, message).completion_ns;
                let guess = estimate(&model, &traffic, message).completion_ns;
                let off = (guess / found - 1.0).abs();
                let allowed = if packets == 1 { 1e-9 } else { 0.02 };
                assert!(off <= allowed, "{scheme:?} {packets}: {guess} for {found}");
            }
        }
    });
}

/// The mean error of the closed form over many structures stays small.
#[test]
fn estimates_are_near_the_replay() {
    let mut errors = Vec::new();
    on("irregular:16:5", |routes| {
        for name in COSTS {
            let costs = costs_named(name, routes.topology());
            let model = CostModel::new(routes, costs.clone()).unwrap();
            for members in [4, 12, 32] {
                let hosts = draw(routes.topology(), members, 3);
                for scheme in [
                    "repeat",
                    "circuit",
                    "tree",
                    "k-binomial",
                    "postal",
                    "switch",
                ] {
                    let scheme = Scheme::from_name(scheme).unwrap();
                    let asked = GroupRequest::new(scheme, hosts[0], hosts.clone());
                    let plan = plan_group(routes, &asked).unwrap();
                    let traffic = Traffic::new(&model, &plan).unwrap();
                    for bytes in [64, 20_000] {
                        let packets = costs.packets(bytes);
                        let message = Message { bytes, packets };
                        let found = replay(&model, &traffic, message).completion_ns;
                        let guess = estimate(&model, &traffic, message).completion_ns;
                        errors.push((guess / found - 1.0).abs());
                    }
                }
            }
        }
    });
    errors.sort_by(f64::total_cmp);
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    assert!(mean < 0.06, "mean {mean}");
    assert!(errors[errors.len() * 9 / 10] < 0.2, "{:?}", errors.last());
}

#[test]
fn a_choice_among_hosts_never_takes_a_switch() {
    on("fat-tree:4", |routes| {
        let mut asked = AutoRequest::new(request(0..12), Costs::default());
        let all = plan_auto(routes, &asked).unwrap();
        assert_eq!(all.plan.request.scheme.name(), "switch");
        asked.among = HOST_SCHEMES.map(str::to_owned).to_vec();
        let hosts = plan_auto(routes, &asked).unwrap();
        assert!(matches!(hosts.plan.delivery, Delivery::Hosts { .. }));
        asked.among = vec!["circuit".into()];
        let one = plan_auto(routes, &asked).unwrap();
        assert!(
            one.estimates
                .iter()
                .all(|one| one.scheme.name() == "circuit")
        );
        asked.among = vec!["pigeon".into()];
        let error = plan_auto(routes, &asked).unwrap_err().to_string();
        assert!(
            error.contains("pigeon") && error.contains("k-binomial"),
            "{error}"
        );
        asked.among = vec!["u-torus".into()];
        let error = plan_auto(routes, &asked).unwrap_err().to_string();
        assert!(error.contains("for this topology"), "{error}");
    });
}

#[test]
fn a_total_order_is_kept_to() {
    on("torus:4", |routes| {
        let mut asked = AutoRequest::new(request([3, 0, 5, 9, 12]), Costs::default());
        asked.needs = Needs {
            total_order: true,
            ..Needs::default()
        };
        let auto = plan_auto(routes, &asked).unwrap();
        for one in &auto.estimates {
            let mut group = asked.group.clone();
            (group.scheme, group.order) = (one.scheme, one.order);
            match plan_group(routes, &group).unwrap().delivery {
                // All messages start at the lowest host, in whatever group they are.
                Delivery::Hosts { edges } => {
                    assert_eq!((edges[0].from, edges[0].to), (HostId(3), HostId(0)));
                }
                Delivery::Switches(delivery) => assert!(delivery.cost.total_order),
            }
        }
        let unordered = |scheme: Scheme| {
            matches!(
                scheme,
                Scheme::Tree {
                    variant: TreeVariant::Unordered,
                    ..
                }
            )
        };
        assert!(!auto.estimates.iter().any(|one| unordered(one.scheme)));
        assert!(auto.estimates.len() > 3);
    });
}

#[test]
fn tables_are_used_where_they_may_be() {
    on("irregular:16:1", |routes| {
        let is_table = |scheme: Scheme| {
            matches!(
                scheme,
                Scheme::Switch(SwitchParameters {
                    mode: SwitchMode::Table,
                    ..
                })
            )
        };
        let mut asked = AutoRequest::new(request(0..60), Costs::default());
        let without = plan_auto(routes, &asked).unwrap();
        assert!(!without.estimates.iter().any(|one| is_table(one.scheme)));
        asked.needs.tables = true;
        let with = plan_auto(routes, &asked).unwrap();
        // Sixty members need several TREE worms for every packet, but one with tables.
        assert!(is_table(with.plan.request.scheme));
        let time = |auto: &wormcast_planner::auto::AutoPlan| auto.estimates[auto.chosen].ns();
        assert!(time(&with) < time(&without));
    });
}

#[test]
fn the_choice_follows_the_message_and_the_costs() {
    on("torus:4", |routes| {
        let chosen = |costs: &str, bytes: u64| {
            let costs = Costs::named(costs).unwrap();
            let mut asked = AutoRequest::new(request(0..16), costs);
            asked.among = HOST_SCHEMES.map(str::to_owned).to_vec();
            asked.group.bytes = Some(bytes);
            asked.group.packets = asked.costs.packets(bytes) as u32;
            plan_auto(routes, &asked).unwrap().plan
        };
        let senders = |plan: GroupPlan| {
            let Delivery::Hosts { edges } = plan.delivery else {
                panic!("hosts forward");
            };
            let mut senders: Vec<HostId> = edges.iter().map(|edge| edge.from).collect();
            senders.sort_unstable();
            senders.dedup();
            senders.len()
        };
        // TORUS §7: the source sends to each where messages are small and hosts slow to
        // pass on; for long messages nearly all hosts pass on.
        assert_eq!(senders(chosen("torus", 64)), 1);
        assert!(senders(chosen("torus", 1 << 20)) > 7);
        assert!(senders(chosen("agents", 1 << 20)) > 7);
    });
}

fn torus() -> Topology {
    from_spec("torus:4").unwrap()
}

#[test]
fn a_plan_says_what_it_was_chosen_from() {
    let asked = json!({"scheme": "auto", "source": 2, "members": [0, 2, 5, 7, 11],
        "parameters": {"bytes": 100_000, "costs": {"set": "nic", "switch_hop_ns": 500},
                       "among": "tree, k-binomial,repeat"}});
    let text = plan_file(&torus(), None, &asked.to_string(), false).unwrap();
    assert_eq!(
        text,
        plan_file(&torus(), None, &asked.to_string(), false).unwrap()
    );
    let plan: Value = serde_json::from_str(&text).unwrap();
    let auto = &plan["auto"];
    assert_eq!(auto["bytes"], 100_000);
    assert_eq!(auto["packets"], 25);
    assert_eq!(plan["scheme"], auto["chosen"]["scheme"]);
    let estimates = auto["estimates"].as_array().unwrap();
    assert_eq!(estimates[0]["scheme"], plan["scheme"]);
    assert_eq!(estimates[0]["parameters"], auto["chosen"]["parameters"]);
    let names = ["tree", "k-binomial", "repeat"];
    assert!(
        estimates
            .iter()
            .all(|one| names.contains(&one["scheme"].as_str().unwrap()))
    );
    // Of what was replayed, nothing is faster than what was chosen.
    let least = estimates[0]["microseconds"].as_f64().unwrap();
    for one in estimates.iter().filter(|one| one["replayed"] == true) {
        assert!(one["microseconds"].as_f64().unwrap() >= least, "{one}");
    }
    // The file is the plan that the chosen scheme gives by itself.
    let mut same = asked;
    same["scheme"] = plan["scheme"].clone();
    same["parameters"] = plan["parameters"].clone();
    let again: Value =
        serde_json::from_str(&plan_file(&torus(), None, &same.to_string(), false).unwrap())
            .unwrap();
    assert_eq!(again["edges"], plan["edges"]);
}

#[test]
fn a_one_way_torus_has_a_choice_too() {
    let topology = from_spec("unidirectional-torus:4").unwrap();
    let asked = json!({"scheme": "auto", "source": 0, "members": [1, 2, 3, 8, 9],
        "parameters": {"packets": 10, "costs": "torus"}});
    let plan: Value =
        serde_json::from_str(&plan_file(&topology, None, &asked.to_string(), true).unwrap())
            .unwrap();
    assert_eq!(plan["parameters"]["routing"], "dimension-order");
    assert!(plan["metrics"]["link_visits"].as_u64().unwrap() > 0);
}

#[test]
fn refusals_name_value_bound_and_choices() {
    let refused = |parameters: Value| {
        let asked = json!({"scheme": "auto", "source": 0, "members": [1, 2],
            "parameters": parameters});
        plan_file(&torus(), None, &asked.to_string(), false)
            .unwrap_err()
            .to_string()
    };
    for (parameters, parts) in [
        (
            json!({"costs": "cheap"}),
            vec!["cheap", "agents, torus, packet, nic"],
        ),
        (json!({"costs": {"hop": 3}}), vec!["hop", "switch_hop_ns"]),
        (
            json!({"costs": {"wire_ns": -1}}),
            vec!["costs.wire_ns", "-1", "0 to"],
        ),
        (
            json!({"costs": {"utilisation": 1.0}}),
            vec!["costs.utilisation", "0.99"],
        ),
        (
            json!({"costs": {"link_bits_per_s": 0}}),
            vec!["costs.link_bits_per_s", "1000"],
        ),
        (
            json!({"costs": {"cut_through": 1}}),
            vec!["costs.cut_through", "true"],
        ),
        (
            json!({"costs": {"channels": [{"switch": 0, "port": 7, "utilisation": 0.5}]}}),
            vec!["port 7", "switch 0"],
        ),
        (
            json!({"costs": {"channels": [{"host": 99, "utilisation": 0.5}]}}),
            vec!["host 99"],
        ),
        (json!({"costs": 4}), vec!["costs", "4"]),
        (json!({"among": 3}), vec!["parameters.among", "3"]),
        (json!({"among": ["pigeon"]}), vec!["pigeon", "choices"]),
        (
            json!({"total_order": "yes"}),
            vec!["parameters.total_order", "yes"],
        ),
        (json!({"cost": "nic"}), vec!["cost"]),
        (json!({"bytes": -5}), vec!["parameters.bytes", "-5"]),
    ] {
        let error = refused(parameters);
        for part in parts {
            assert!(error.contains(part), "\"{part}\" is not in: {error}");
        }
    }
}

#[test]
fn costs_read_back_as_they_were_written() {
    for name in Costs::NAMES {
        let costs = Costs::named(name).unwrap();
        assert_eq!(Costs::from_json(&costs.to_json()).unwrap(), costs);
    }
    let topology = torus();
    let loaded = costs_named("loaded", &topology);
    assert!(!loaded.channels.is_empty());
    assert_eq!(Costs::from_json(&loaded.to_json()).unwrap(), loaded);
}

#[test]
fn lambda_is_the_time_to_receive_by_the_time_between_sends() {
    // A send each 10 µs; received 10 + 2·8 + 2·3 + 4 µs after it began: 36 / 10.
    let costs = Costs {
        packet_send_ns: 10_000.0,
        switch_hop_ns: 3_000.0,
        packet_receive_ns: 4_000.0,
        ..Costs::free(1_000_000_000)
    };
    assert_eq!(costs.postal_lambda(1_000, 2), 5);
    assert_eq!(costs.postal_lambda(0, 2), 2);
    assert_eq!(Costs::free(1_000_000_000).postal_lambda(1_000, 1), 2);
}

#[test]
fn trees_as_deep_as_a_worm_may_go_are_written_and_read() {
    // 62 switches in a line: the tree is nested two levels for each.
    let line = from_spec("line:62").unwrap();
    let request = json!({"scheme": "auto", "source": 0, "members": [0, 61],
                         "parameters": {"bytes": 1000}});
    let file = plan_file(&line, None, &request.to_string(), false).unwrap();
    assert_eq!(read_groups(&file).unwrap().len(), 1);
}
