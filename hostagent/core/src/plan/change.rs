//! A plan that is sent as what differs from the one before.

use super::fields::rejected;
use super::{AgentPlan, GROUPS_MAX, PlanRejected, RefusedGroup};
use std::collections::BTreeSet;
use std::sync::Arc;
use wormcast_agent_proto as proto;
use wormcast_wire::{GroupId, HostId};

impl AgentPlan {
    /// The plan that a change leads to. It is checked whole.
    ///
    /// # Errors
    /// If it changes another plan, or one of which a group was refused; else as [`AgentPlan::parse`].
    pub fn changed(&self, change: proto::PlanChange) -> Result<Self, PlanRejected> {
        if change.base != self.epoch {
            return rejected(format!(
                "a change of plan {}; the plan in force is {}",
                change.base, self.epoch
            ));
        }
        if let [refused, ..] = &self.refused[..] {
            return rejected(format!(
                "a change of plan {}, of which group {} was refused",
                change.base, refused.group
            ));
        }
        let part = Self::parse(&proto::Plan {
            epoch: change.epoch,
            host_id: self.host.0.into(),
            routes: change.routes,
            routes_at_random: change.routes_at_random,
            tree_routes: change.tree_routes,
            root_route: change.root_route,
            groups: change.groups,
            train_frames: change.train_frames,
            unicast_train_frames: change.unicast_train_frames,
            tree_route_max: change.tree_route_max,
            rate_bytes: change.rate_bytes,
        })?;
        let mut plan = self.clone();
        plan.epoch = part.epoch;
        plan.root_route = part.root_route;
        plan.train_frames = part.train_frames;
        plan.unicast_train_frames = part.unicast_train_frames;
        plan.tree_route_max = part.tree_route_max;
        plan.rate_bytes = part.rate_bytes;
        for host in hosts(&change.no_routes) {
            plan.routes.remove(&host);
        }
        plan.routes.extend(part.routes);
        if !(change.no_tree_routes.is_empty() && part.tree_routes.is_empty()) {
            let tree_routes = Arc::make_mut(&mut plan.tree_routes);
            for host in hosts(&change.no_tree_routes) {
                tree_routes.remove(&host);
            }
            tree_routes.extend(Arc::unwrap_or_clone(part.tree_routes));
        }
        let gone = change.no_groups.iter();
        for group in gone.filter_map(|&group| u16::try_from(group).ok()) {
            plan.groups.remove(&GroupId(group));
        }
        plan.refused = part.refused;
        let is_kept = |id: &GroupId| !part.groups.contains_key(id);
        let kept = self.groups.values().filter(|group| {
            is_kept(&group.id) && plan.groups.contains_key(&group.id) && !group.name.is_empty()
        });
        let names: BTreeSet<String> = if part.groups.is_empty() {
            BTreeSet::new()
        } else {
            kept.map(|group| group.name.clone()).collect()
        };
        for (id, group) in part.groups {
            let reason = if !plan.groups.contains_key(&id) && plan.groups.len() >= GROUPS_MAX {
                format!("the plan has more than {GROUPS_MAX} groups; at most {GROUPS_MAX}")
            } else if names.contains(&group.name) {
                format!("two groups are named \"{}\"", group.name)
            } else {
                plan.groups.insert(id, Arc::clone(&group));
                continue;
            };
            plan.groups.remove(&id);
            plan.refused.push(RefusedGroup::new(id.0.into(), &reason));
        }
        Ok(plan)
    }
}

/// Those of the numbers that are hosts; there are no routes to others.
fn hosts(numbers: &[u32]) -> impl Iterator<Item = HostId> + '_ {
    let numbers = numbers.iter();
    numbers.filter_map(|&host| u16::try_from(host).ok().map(HostId))
}

#[cfg(test)]
mod tests {
    use super::super::examples::{group_message, plan_message};
    use super::*;

    fn route(host: u32, ports: &[u8]) -> proto::Route {
        proto::Route {
            host,
            ports: ports.to_vec(),
            share: 0,
        }
    }

    fn before() -> AgentPlan {
        let mut message = plan_message(1);
        message.routes = vec![route(2, &[1, 2]), route(4, &[1, 4])];
        message.tree_routes = vec![route(2, &[1, 2]), route(4, &[1, 4])];
        message.root_route = Some(vec![1]);
        message.train_frames = 8;
        message.unicast_train_frames = 16;
        message.tree_route_max = 127;
        message.rate_bytes = 250_000;
        message.groups = vec![
            group_message(3, "circuit", &[1, 2, 4]),
            group_message(9, "repeat", &[1, 2]),
        ];
        AgentPlan::parse(&message).unwrap()
    }

    fn change() -> proto::PlanChange {
        proto::PlanChange {
            base: 5,
            epoch: 6,
            ..proto::PlanChange::default()
        }
    }

    #[test]
    fn what_it_does_not_name_stays_and_what_it_names_is_replaced() {
        let plan = before()
            .changed(proto::PlanChange {
                routes: vec![route(4, &[7, 4]), route(5, &[8])],
                no_routes: vec![2, 70_000],
                no_tree_routes: vec![4],
                groups: vec![group_message(11, "tree", &[1, 4])],
                no_groups: vec![9],
                ..change()
            })
            .unwrap();
        let ports = |host| {
            plan.routes
                .get(&HostId(host))
                .map(|all| &all.routes[0].ports[..])
        };
        assert_eq!((plan.epoch, plan.host), (6, HostId(1)));
        assert_eq!(
            [ports(2), ports(4), ports(5)],
            [None, Some(&[7, 4][..]), Some(&[8][..])]
        );
        assert_eq!(plan.tree_routes.keys().collect::<Vec<_>>(), [&HostId(2)]);
        assert_eq!(plan.root_route, None, "it is always told");
        assert_eq!(
            (before().train_frames, plan.train_frames),
            (8, 1),
            "the same"
        );
        assert_eq!(
            (before().unicast_train_frames, plan.unicast_train_frames),
            (16, 1),
            "the same"
        );
        assert_eq!(
            (before().tree_route_max, plan.tree_route_max),
            (127, 255),
            "the same"
        );
        assert_eq!(
            (before().rate_bytes, plan.rate_bytes),
            (Some(250_000), None),
            "the same"
        );
        let groups: Vec<u16> = plan.groups.keys().map(|group| group.0).collect();
        assert_eq!(groups, [3, 11]);
    }

    #[test]
    fn it_must_change_the_plan_in_force_taken_whole() {
        let refusal = |plan: &AgentPlan, change| plan.changed(change).unwrap_err().to_string();
        assert_eq!(
            refusal(
                &before(),
                proto::PlanChange {
                    base: 4,
                    ..change()
                }
            ),
            "a change of plan 4; the plan in force is 5"
        );
        let mut spoilt = before();
        spoilt.refused = vec![RefusedGroup::new(7, "too many children")];
        assert_eq!(
            refusal(&spoilt, change()),
            "a change of plan 5, of which group 7 was refused"
        );
        let wrong = proto::PlanChange {
            routes: vec![route(1, &[1])],
            ..change()
        };
        assert_eq!(
            refusal(&before(), wrong),
            "routes has a route to host 1, which is this host itself"
        );
    }

    #[test]
    fn a_group_with_the_name_of_another_is_refused_and_one_that_goes_frees_its_name() {
        let mut named = group_message(11, "tree", &[1, 4]);
        named.name = "g9".to_owned();
        let with = |no_groups: Vec<u32>| proto::PlanChange {
            groups: vec![named.clone()],
            no_groups,
            ..change()
        };
        let plan = before().changed(with(Vec::new())).unwrap();
        assert_eq!(
            plan.refused,
            [RefusedGroup::new(11, "two groups are named \"g9\"")]
        );
        assert!(!plan.groups.contains_key(&GroupId(11)));
        let plan = before().changed(with(vec![9])).unwrap();
        assert!(plan.refused.is_empty() && plan.groups.contains_key(&GroupId(11)));
    }
}
