//! A plan is put in force.

use super::Agent;
use crate::clients::GroupTable;
use crate::plan::{AgentPlan, PlannedGroup, RefusedGroup};
use std::collections::BTreeMap;
use std::sync::Arc;
use wormcast_agent_proto::PlanChange;
use wormcast_protocol::Instant;
use wormcast_wire::GroupId;

impl Agent {
    pub(super) fn drop_groups(&mut self, reason: &str) {
        let groups: Vec<GroupId> = self
            .plan
            .iter()
            .flat_map(|plan| plan.groups.keys().copied())
            .collect();
        for group in groups {
            self.applications.remove_group(group, reason);
        }
        self.applications.groups_changed();
    }

    /// Puts a plan in force. It has been checked whole; what fails here is a limit of the engine.
    ///
    /// # Errors
    /// If it is for another host, or has more routes than the engine takes.
    pub fn apply_plan(
        &mut self,
        mut plan: AgentPlan,
        now: Instant,
    ) -> Result<Vec<RefusedGroup>, String> {
        // What has happened was by the plan before.
        self.take_events(now);
        let Some(engine) = self
            .engine
            .as_mut()
            .filter(|_| self.host == Some(plan.host))
        else {
            return Err(format!(
                "the plan is for host {}, which this is not",
                plan.host
            ));
        };
        engine
            .set_all_routes(
                &plan.routes,
                &plan.tree_routes,
                plan.root_route.as_deref(),
                now,
            )
            .map_err(|error| error.to_string())?;
        engine.set_tree_route_max(plan.tree_route_max.into());
        engine.leave_train_room(plan.unicast_train_frames > 1);
        (self.trains).set_frames_most(plan.unicast_train_frames, plan.train_frames);
        self.pacing.set_rate(plan.rate_bytes);
        let none = BTreeMap::new();
        let before = self.plan.as_ref().map_or(&none, |plan| &plan.groups);
        // A group that is refused stays as it was.
        for refused in &plan.refused {
            let old = u16::try_from(refused.group).ok().map(GroupId);
            if let Some((id, group)) = old.and_then(|id| before.get_key_value(&id)) {
                plan.groups.entry(*id).or_insert_with(|| Arc::clone(group));
            }
        }
        let gone: Vec<GroupId> = before
            .keys()
            .copied()
            .filter(|group| !plan.groups.contains_key(group))
            .collect();
        for group in &gone {
            engine.remove_group(*group, now);
        }
        let mut refused = std::mem::take(&mut plan.refused);
        let mut cut_off = Vec::new();
        plan.groups.retain(|id, group| {
            let old = before.get(id);
            if old.is_some_and(|old| old.is_same(group)) {
                return true;
            }
            let sent = engine.progress(*id).is_some();
            match engine.set_group(group.engine_plan(plan.host), now) {
                Ok(()) => {
                    if sent && engine.progress(*id).is_none() {
                        cut_off.push(*id);
                    }
                    true
                }
                Err(error) => {
                    refused.push(RefusedGroup::new(id.0.into(), &error.to_string()));
                    // The engine keeps what it had of it.
                    old.is_some_and(|old| {
                        *group = Arc::clone(old);
                        true
                    })
                }
            }
        });
        for group in cut_off {
            let reason =
                format!("the plan has no way for this host to send to group {group} any more");
            self.applications.end_senders(group, &reason);
        }
        for group in gone {
            let reason = format!("group {group} was removed, or this host left it");
            self.applications.remove_group(group, &reason);
        }
        for group in plan.groups.values() {
            self.applications.plan_group(plan.host, group);
        }
        if (self.plan.as_ref()).is_none_or(|old| !are_alike(&old.groups, &plan.groups)) {
            self.applications.groups_changed();
        }
        let count = plan.groups.len();
        let (epoch, routes) = (plan.epoch, plan.routes.len());
        if self.plan.as_ref().is_none_or(|old| old.epoch != epoch) {
            let host = plan.host;
            self.note(format!(
                "plan {epoch} as host {host}: {routes} routes, {count} groups"
            ));
        }
        plan.refused.clone_from(&refused);
        self.plan = Some(plan);
        self.take_events(now);
        self.applications_due = Some(now);
        Ok(refused)
    }

    /// Puts the plan in force that a change leads to.
    ///
    /// # Errors
    /// If it does not change the plan in force, or is wrong in itself; else as [`Agent::apply_plan`].
    pub fn change_plan(
        &mut self,
        change: PlanChange,
        now: Instant,
    ) -> Result<Vec<RefusedGroup>, String> {
        let base = change.base;
        let Some(plan) = &self.plan else {
            return Err(format!("a change of plan {base}; no plan is in force"));
        };
        let plan = plan.changed(change).map_err(|error| error.to_string())?;
        self.apply_plan(plan, now)
    }
}

/// The same groups of the same names, with the same members.
fn are_alike(some: &GroupTable, others: &GroupTable) -> bool {
    let is_like = |(one, other): (&Arc<PlannedGroup>, &Arc<PlannedGroup>)| {
        Arc::ptr_eq(one, other)
            || (one.id, &one.name, &one.members) == (other.id, &other.name, &other.members)
    };
    some.len() == others.len() && some.values().zip(others.values()).all(is_like)
}
