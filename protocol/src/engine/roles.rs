//! What a plan asks of this host, and whether the host can do it.

use super::Engine;
use crate::event::Event;
use crate::plan::{GroupPlan, PlanError, Role};
use crate::reject::Reject;
use crate::session::shared::Shared;
use crate::time::Instant;
use std::collections::BTreeMap;
use wormcast_wire::{HostId, ROUTE_LENGTH_MAX, Seq, worm};

/// Whether every route can be one.
pub(super) fn check_routes(
    routes: &BTreeMap<HostId, Vec<u8>>,
    port_max: u8,
) -> Result<(), PlanError> {
    for (host, route) in routes {
        let host = *host;
        if route.is_empty() || route.len() > ROUTE_LENGTH_MAX {
            let most = ROUTE_LENGTH_MAX;
            return Err(PlanError::RouteLength {
                host,
                length: route.len(),
                most,
            });
        }
        if let Some(port) = route.iter().find(|port| **port > port_max) {
            return Err(PlanError::RoutePort { host, port: *port });
        }
    }
    Ok(())
}

impl Engine {
    /// Replaces unicast and tree routes, both or neither.
    ///
    /// # Errors
    /// A route that cannot be one; all routes stay as they were.
    pub fn set_all_routes(
        &mut self,
        unicast: BTreeMap<HostId, Vec<u8>>,
        tree: BTreeMap<HostId, Vec<u8>>,
        now: Instant,
    ) -> Result<(), PlanError> {
        check_routes(&unicast, worm::RECIRCULATE_PORT)?;
        check_routes(&tree, worm::RECIRCULATE_PORT - 1)?;
        self.set_routes(unicast, now)?;
        self.set_tree_routes(tree, now)
    }
}

impl Shared {
    /// The role of this host for an origin, if this host can play it.
    pub(super) fn usable_role(&mut self, plan: &GroupPlan, origin: HostId) -> Result<Role, Reject> {
        if !plan.members.contains(&origin) {
            return Err(Reject::NotMember);
        }
        let role = plan.structures.role(origin).ok_or(Reject::NotMember)?;
        let is_origin = origin == self.config.host;
        if role.parent.is_some() == is_origin {
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
        // The finalizer of SplitMix64 (Steele, Lea, Flood 2014).
        let mix = (mix ^ (mix >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mix = (mix ^ (mix >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Seq((mix ^ (mix >> 31)) as u32)
    }
}
