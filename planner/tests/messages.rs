//! Plans as agents read them.

use crate::lab;

use std::collections::BTreeMap;

use lab::{Random, all_live, change_groups, damage, random_groups, random_topology};
use proptest::prelude::*;
use wormcast_agent_proto::controller_message::Body;
use wormcast_agent_proto::{self as proto, ControllerMessage, Message};
use wormcast_planner::{AgentPlan, ClassDNumbers, Planner};
use wormcast_routing::routes::{Algorithm, Setting};

/// What an agent is sent.
pub fn whole(plan: &AgentPlan, epoch: u64) -> proto::Plan {
    match ControllerMessage::decode(&plan.encode(epoch)[..]).map(|message| message.body) {
        Ok(Some(Body::Plan(plan))) => plan,
        other => panic!("no plan: {other:?}"),
    }
}

/// What an agent that has the plan before, of epoch 1, is sent; epoch 2.
pub fn change(plan: &AgentPlan, before: &AgentPlan) -> Option<proto::PlanChange> {
    let encoded = plan.encode_change(2, before, 1)?;
    match ControllerMessage::decode(&encoded[..]).map(|message| message.body) {
        Ok(Some(Body::PlanChange(change))) => Some(change),
        other => panic!("no change of a plan: {other:?}"),
    }
}

fn by_host(routes: &[proto::Route]) -> BTreeMap<u32, Vec<proto::Route>> {
    let mut found: BTreeMap<u32, Vec<proto::Route>> = BTreeMap::new();
    for route in routes {
        found.entry(route.host).or_default().push(route.clone());
    }
    found
}

fn changed(before: &[proto::Route], new: &[proto::Route], gone: &[u32]) -> Vec<proto::Route> {
    let mut routes = by_host(before);
    for host in gone {
        assert!(routes.remove(host).is_some(), "it had routes to {host}");
    }
    routes.extend(by_host(new));
    routes.into_values().flatten().collect()
}

/// As an agent carries it out.
fn applied(before: proto::Plan, change: proto::PlanChange) -> proto::Plan {
    let groups = before.groups.into_iter().map(|group| (group.id, group));
    let mut groups: BTreeMap<u32, proto::Group> = groups.collect();
    for group in &change.no_groups {
        assert!(groups.remove(group).is_some(), "it had group {group}");
    }
    groups.extend(change.groups.into_iter().map(|group| (group.id, group)));
    proto::Plan {
        epoch: change.epoch,
        host_id: before.host_id,
        routes: changed(&before.routes, &change.routes, &change.no_routes),
        tree_routes: changed(
            &before.tree_routes,
            &change.tree_routes,
            &change.no_tree_routes,
        ),
        groups: groups.into_values().collect(),
        routes_at_random: change.routes_at_random,
        root_route: change.root_route,
        train_frames: change.train_frames,
        tree_route_max: change.tree_route_max,
        unicast_train_frames: change.unicast_train_frames,
        rate_bytes: change.rate_bytes,
    }
}

proptest! {
    #[test]
    fn a_change_leads_from_the_plan_before_to_the_whole_plan(seed: u64) {
        let mut random = Random::new(seed);
        let known = random_topology(&mut random);
        let hosts = all_live(&known);
        let mut planner = Planner::new(Setting::plain(Algorithm::Osud));
        let mut groups = random_groups(&mut random, &known, 4);
        let class_d = ClassDNumbers::default();
        let mut before = planner.plan(&known, &known, &groups, &hosts, &class_d);
        planner.settle();
        for _ in 0..4 {
            groups = change_groups(&mut random, &known, &groups);
            let up = if random.chance(50) { damage(&mut random, &known) } else { known.clone() };
            let after = planner.plan(&up, &known, &groups, &hosts, &class_d);
            planner.settle();
            for (host, plan) in &after.agents {
                let Some(old) = before.agents.get(host) else { continue };
                let sent = change(plan, old).expect("it can be said");
                let listed: Vec<u16> = (sent.groups.iter()).map(|group| group.id as u16).collect();
                let other: Vec<u16> = (plan.groups.iter())
                    .filter(|group| old.group(group.id) != Some(group))
                    .map(|group| group.id.0)
                    .collect();
                prop_assert_eq!(&listed, &other, "no group that is as it was");
                prop_assert_eq!(plan.has_groups_of(old), listed.is_empty() && sent.no_groups.is_empty());
                prop_assert_eq!(applied(whole(old, 1), sent), whole(plan, 2));
            }
            before = after;
        }
    }
}
