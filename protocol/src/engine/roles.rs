//! What a plan asks of this host, and whether the host can do it.

use super::Engine;
use crate::event::Event;
use crate::plan::{GroupPlan, PlanError, Role};
use crate::reject::Reject;
use crate::routes::{Alternatives, check_ports};
use crate::session::shared::{Shared, spread};
use crate::time::Instant;
use std::collections::BTreeMap;
use wormcast_wire::{HostId, Seq, worm};

/// Whether all unicast routes can be some.
pub(super) fn check_unicast(routes: &BTreeMap<HostId, Alternatives>) -> Result<(), PlanError> {
    let mut all = routes.iter();
    all.try_for_each(|(host, alternatives)| alternatives.check(*host, worm::RECIRCULATE_PORT))
}

/// Whether all routes along the spanning tree can be some.
pub(super) fn check_tree(routes: &BTreeMap<HostId, Vec<u8>>) -> Result<(), PlanError> {
    let mut all = routes.iter();
    all.try_for_each(|(host, ports)| check_ports(*host, ports, worm::RECIRCULATE_PORT - 1))
}

impl Engine {
    /// Replaces unicast and tree routes, and the route to the root of the spanning tree (none: no
    /// BROADCAST worms), all or none.
    ///
    /// # Errors
    /// A route that cannot be one; all routes stay as they were.
    pub fn set_all_routes(
        &mut self,
        unicast: BTreeMap<HostId, Alternatives>,
        tree: BTreeMap<HostId, Vec<u8>>,
        root: Option<Vec<u8>>,
        now: Instant,
    ) -> Result<(), PlanError> {
        check_unicast(&unicast)?;
        check_tree(&tree)?;
        if self.shared.root != root {
            self.shared.root = root;
            self.shared.routes_version += 1;
        }
        self.set_routes(unicast, now)?;
        self.set_tree_routes(tree, now)
    }
}

impl Shared {
    /// The role of this host for an origin, if this host can play it.
    pub(crate) fn usable_role(
        &mut self,
        plan: &GroupPlan,
        origin: HostId,
        choice: u8,
    ) -> Result<Role, Reject> {
        if !plan.members.contains(&origin) {
            return Err(Reject::NotMember);
        }
        let role = plan
            .structures
            .role(origin, choice)
            .ok_or(Reject::NotMember)?;
        // That of an origin is the host that returns its messages.
        let is_origin = origin == self.config.host;
        if role.parent.is_none() && !is_origin {
            return Err(Reject::NotMember);
        }
        let limit = self.config.limits.children;
        let children = role.children.len();
        if children > limit {
            let group = plan.id;
            self.emit(Event::StructureRejected {
                group,
                origin,
                children,
                limit,
            });
            return Err(Reject::Structure);
        }
        Ok(role)
    }

    /// Where a stream starts: anywhere, so that old packets fit no new stream.
    pub(super) fn first_seq(&self, stream: u32) -> Seq {
        if let Some(first) = self.config.first_seq {
            return first;
        }
        let mix = self.config.seed ^ (u64::from(stream) << 32 | u64::from(self.config.host.0));
        Seq(spread(mix) as u32)
    }
}
