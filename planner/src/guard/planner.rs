//! Where a planner plans the guard of all switches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wormcast_routing::topology::{Host, Topology};
use wormcast_wire::{GroupId, HostId, SwitchId};

use crate::guard::{self, Guard, Guarded};
use crate::model::groups::Group;
use crate::model::state::Place;
use crate::planner::Planner;

impl Planner {
    /// Switches admit what this asks for, from now on, and agents keep to the rates whether the guard is on or not.
    pub fn set_guard(&mut self, guard: Guard) {
        self.agents.rates.set(&guard.rates);
        self.guard = guard;
    }

    /// Plans the guard of every switch; gives where it is other than before.
    pub(crate) fn admit(
        &mut self,
        groups: &BTreeMap<GroupId, Arc<Group>>,
        (up, known): (&Topology, &Topology),
        agents: &BTreeSet<HostId>,
    ) -> BTreeMap<SwitchId, Vec<Place>> {
        let by_routes = self.setting.algorithm.uses_in_transit_hosts();
        self.admits_more = self.guard.on && !by_routes && self.bridge.is_some();
        let re_injects = |host: &&Host| host.transit && (by_routes || self.admits_more);
        let hosts = up.hosts().iter().chain(known.hosts());
        let to_root = self.agents.root_routes().map(|ports| ports.len());
        let (mut trees_longest, mut hairpins) = Default::default();
        if self.guard.on {
            let [own, bridged] = &mut self.tree_lengths;
            (trees_longest, hairpins) = own.of(self.agents.agents.values());
            if self.agents.by_root {
                hairpins.extend(&self.agents.roots);
            }
            for (host, bytes) in bridged.of(self.bridge_plans.values()).0 {
                let longest = trees_longest.entry(host).or_default();
                *longest = bytes.max(*longest);
            }
        }
        let needs = guard::Needs {
            guard: &self.guard,
            known,
            agents,
            groups,
            transit: hosts.filter(re_injects).map(|host| host.id).collect(),
            route_longest: to_root.fold(self.crossed_max as usize, usize::max),
            trees_longest,
            hairpins,
        };
        let carriers = if self.guard.on {
            self.switches.carriers()
        } else {
            BTreeMap::new()
        };
        let switches = &mut self.switches.switches;
        let guarded = guard::plan(&needs, switches.keys().copied());
        let nothing = Guarded::default();
        let touched = guarded.iter().filter_map(|(switch, after)| {
            let before = self.guarded.get(switch).unwrap_or(&nothing);
            let state = switches.get_mut(switch).expect("it is of these");
            let places = guard::apply(state, before, after);
            (!places.is_empty()).then_some((*switch, places))
        });
        let mut touched: BTreeMap<SwitchId, Vec<Place>> = touched.collect();
        self.guarded = guarded;
        let of_groups = self
            .group_guard
            .change(&self.guard, known, carriers, switches);
        for (switch, places) in of_groups {
            touched.entry(switch).or_default().extend(places);
        }
        touched
    }
}
