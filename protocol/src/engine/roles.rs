//! What a plan asks of this host, and whether the host can do it.

use super::Engine;
use crate::event::Event;
use crate::plan::{GroupPlan, PlanError, Role};
use crate::reject::Reject;
use crate::routes::{Alternatives, Turns, check_ports};
use crate::session::shared::{Shared, spread};
use crate::time::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use wormcast_wire::{HostId, Seq, worm};

/// Whether all routes along the spanning tree can be some.
fn check_tree(routes: &BTreeMap<HostId, Vec<u8>>) -> Result<(), PlanError> {
    let mut all = routes.iter();
    all.try_for_each(|(host, ports)| check_ports(*host, ports, worm::RECIRCULATE_PORT - 1))
}

impl Engine {
    /// Replaces unicast and tree routes, and the route to the root of the spanning tree (none: no
    /// BROADCAST worms), all or none. What is the same object as before costs next to nothing: a plan
    /// changes few of many routes.
    ///
    /// # Errors
    /// A route that cannot be one; all routes stay as they were.
    pub fn set_all_routes(
        &mut self,
        unicast: &BTreeMap<HostId, Arc<Alternatives>>,
        tree: &Arc<BTreeMap<HostId, Vec<u8>>>,
        root: Option<&[u8]>,
        now: Instant,
    ) -> Result<(), PlanError> {
        self.advance(now);
        let new = self.new_unicast(unicast)?;
        self.replace_tree(tree)?;
        self.replace_unicast(unicast, new);
        if self.shared.root.as_deref() != root {
            self.shared.root = root.map(<[u8]>::to_vec);
            self.shared.routes_version += 1;
            self.sessions.wake_all();
        }
        Ok(())
    }

    /// TREE routes have so many bytes at most from now on; what needs more is split.
    pub fn set_tree_route_max(&mut self, bytes: usize) {
        if self.shared.tree_route_max != bytes {
            self.shared.tree_route_max = bytes;
            self.shared.routes_version += 1;
            self.sessions.wake_all();
        }
    }

    /// Those of the unicast routes that are other than before, if they can be some.
    pub(super) fn new_unicast(
        &self,
        routes: &BTreeMap<HostId, Arc<Alternatives>>,
    ) -> Result<BTreeMap<HostId, Arc<Alternatives>>, PlanError> {
        let mut new = BTreeMap::new();
        for (host, wanted) in routes {
            let before = self.shared.unicast.get(host);
            let is_same = |turns: &Turns| {
                Arc::ptr_eq(&turns.alternatives, wanted) || turns.alternatives == *wanted
            };
            if !before.is_some_and(is_same) {
                wanted.check(*host, worm::RECIRCULATE_PORT)?;
                new.insert(*host, Arc::clone(wanted));
            }
        }
        Ok(new)
    }

    /// Makes these the unicast routes; `new`: those of them that are other than before.
    pub(super) fn replace_unicast(
        &mut self,
        routes: &BTreeMap<HostId, Arc<Alternatives>>,
        new: BTreeMap<HostId, Arc<Alternatives>>,
    ) {
        let before = self.shared.unicast.keys().copied();
        let gone = before.filter(|host| !routes.contains_key(host));
        let changed: BTreeSet<HostId> = gone.chain(new.keys().copied()).collect();
        if changed.is_empty() {
            return;
        }
        let unicast = &mut self.shared.unicast;
        unicast.retain(|host, _| !changed.contains(host));
        let new = new.into_iter();
        unicast.extend(new.map(|(host, alternatives)| (host, Turns::new(alternatives))));
        self.shared.routes_version += 1;
        for session in self.sessions.all_mut() {
            session.note_routes(|host| changed.contains(&host));
        }
    }

    /// Makes these the routes along the spanning tree, if they can be some.
    pub(super) fn replace_tree(
        &mut self,
        routes: &Arc<BTreeMap<HostId, Vec<u8>>>,
    ) -> Result<(), PlanError> {
        if Arc::ptr_eq(&self.shared.tree, routes) || self.shared.tree == *routes {
            return Ok(());
        }
        check_tree(routes)?;
        self.shared.tree = Arc::clone(routes);
        self.shared.routes_version += 1;
        for session in self.sessions.all_mut() {
            session.note_tree_routes();
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::EngineConfig;

    const NOW: Instant = Instant::ZERO;

    fn to(port: u8) -> Arc<Alternatives> {
        Arc::new(Alternatives::from(vec![port]))
    }

    #[test]
    fn routes_are_replaced_all_or_none_and_those_that_stay_keep_their_counts() {
        let config = EngineConfig::new(HostId(1), [2, 0, 0, 0, 0, 1], 1500, 5, 100);
        let mut engine = Engine::new(config).expect("a valid configuration");
        let [two, three, four] = [2, 3, 4].map(HostId);
        let routes = BTreeMap::from([(two, to(2)), (three, to(3))]);
        let tree = Arc::new(BTreeMap::from([(two, vec![4, 2])]));
        let root = Some(&[9][..]);
        engine
            .set_all_routes(&routes, &tree, root, NOW)
            .expect("routes");
        for host in [two, three] {
            let turns = engine.shared.unicast.get_mut(&host).expect("routes");
            turns.choose(|| 0);
        }
        let taken = |engine: &Engine| -> Vec<(HostId, Vec<u64>)> {
            let all = engine.routes_taken();
            all.map(|(host, taken)| (host, taken.to_vec())).collect()
        };
        let before = (taken(&engine), engine.shared.routes_version);
        assert_eq!(before.0, [(two, vec![1]), (three, vec![1])]);

        // One of any kind that cannot be: all stay.
        let other = BTreeMap::from([(two, to(5)), (four, to(4))]);
        let bad = BTreeMap::from([(two, to(5)), (four, to(255))]);
        let bad_tree = Arc::new(BTreeMap::from([(two, vec![254])]));
        for (unicast, tree) in [(&bad, &tree), (&other, &bad_tree)] {
            let refused = engine.set_all_routes(unicast, tree, None, NOW);
            assert!(matches!(refused, Err(PlanError::RoutePort { .. })));
            assert_eq!((taken(&engine), engine.shared.routes_version), before);
            assert_eq!(engine.shared.tree[&two], [4, 2]);
            assert_eq!(engine.shared.root.as_deref(), root);
        }

        // Equal routes are the same, whether they are the same object or not.
        let equal = BTreeMap::from([(two, to(2)), (three, Arc::clone(&routes[&three]))]);
        let equal_tree = Arc::new((*tree).clone());
        engine
            .set_all_routes(&equal, &equal_tree, root, NOW)
            .expect("routes");
        assert_eq!((taken(&engine), engine.shared.routes_version), before);

        let changed = BTreeMap::from([(two, to(2)), (three, to(7)), (four, to(4))]);
        engine
            .set_all_routes(&changed, &equal_tree, root, NOW)
            .expect("routes");
        let now = [(two, vec![1]), (three, vec![0]), (four, vec![0])];
        assert_eq!(taken(&engine), now);
        engine
            .set_all_routes(&routes, &Arc::default(), None, NOW)
            .expect("routes");
        assert_eq!(taken(&engine), [(two, vec![1]), (three, vec![0])]);
        assert!(engine.shared.tree.is_empty() && engine.shared.root.is_none());
    }
}
