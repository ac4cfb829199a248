//! How the switches deliver a group's messages: the plan, its cost, and its fields in files.

use serde_json::{Value, json};

use super::{Guard, SwitchParameters, SwitchTree};
use wormcast_wire::tree_route::TreeRoute;
use wormcast_wire::{HostId, PortId, SwitchId};

/// How the switches deliver a group's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchDelivery {
    /// How, and under which guard.
    pub parameters: SwitchParameters,
    /// What copies cross, from the source's switch on; from the relay's if there is one.
    /// Broadcast: all that it reaches.
    pub tree: SwitchTree,
    /// Scheme `switch`: TREE routes that together reach every member once.
    pub routes: Vec<TreeRoute>,
    /// Scheme `switch` along trees that were chosen already: each of them with its routes, `tree` and
    /// `routes` first.
    pub shared: Vec<(SwitchTree, Vec<TreeRoute>)>,
    /// Scheme `table`: one entry for each switch of the tree, by switch.
    pub entries: Vec<GroupEntry>,
    /// Scheme `table` under guard B, unless the source is the relay.
    pub relay: Option<Relay>,
    /// Scheme `broadcast`: the route of the BROADCAST worm, which ends at the root.
    pub to_root: Option<Vec<u8>>,
    pub cost: SwitchCost,
}

/// What a switch has in its table for a group (wire/SPEC.md §3 GROUP).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupEntry {
    pub switch: SwitchId,
    pub group: u16,
    /// Ports that copies leave by, except the one the worm came from; ascending.
    pub ports: Vec<PortId>,
}

/// A host that sends on what it is sent, so that all multicasts start in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relay {
    pub host: HostId,
    /// UNICAST route from the source to it.
    pub route: Vec<u8>,
}

/// What one packet costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchCost {
    /// Worms that the source sends.
    pub worms: u32,
    /// Worm header and route of the longest of them, as it leaves the source.
    pub header_bytes: u32,
    /// Links crossed by all copies, those of source and hosts among them.
    pub link_crossings: u64,
    /// What no way of reaching the members can undercut.
    pub crossings_bound: u64,
    /// Switches crossed until the last member has it.
    pub hops: u32,
    /// Copies that reach hosts which are no members, or the source itself.
    pub filtered: u32,
    /// Whether all members get the messages of all groups in the same order.
    pub total_order: bool,
}

impl SwitchCost {
    /// Links crossed in excess of the bound, as a share of it; 0 with nobody to reach.
    pub fn excess(&self) -> f64 {
        match self.crossings_bound {
            0 => 0.0,
            bound => self.link_crossings as f64 / bound as f64 - 1.0,
        }
    }
}

impl Guard {
    /// The routing algorithm that unicast has to keep to.
    pub const fn unicast(self) -> &'static str {
        match self {
            Guard::A => "tree-only",
            Guard::B | Guard::C => "osud",
        }
    }

    /// What the branches of a worm do while one is blocked, as `wormcast verify` names it.
    pub const fn branching(self) -> &'static str {
        match self {
            Guard::A => "coupled",
            Guard::B => "interrupted",
            Guard::C => "flushed",
        }
    }

    /// Whether switches have to throw out unicast worms that a multicast-idle port blocks.
    pub const fn backward_reset(self) -> bool {
        matches!(self, Guard::C)
    }
}

impl SwitchDelivery {
    pub(super) fn empty(start: SwitchId) -> SwitchDelivery {
        SwitchDelivery {
            parameters: SwitchParameters::default(),
            tree: SwitchTree {
                switch: start,
                branches: Vec::new(),
            },
            routes: Vec::new(),
            shared: Vec::new(),
            entries: Vec::new(),
            relay: None,
            to_root: None,
            cost: SwitchCost::default(),
        }
    }

    /// Adds its fields to the file of a plan. In all schemes `tree`, `route` (hex; the first
    /// TREE route) and `routes` (all, and whom each reaches), `unicast`, `branching` and
    /// `backward_reset` (what the guard asks for), and the cost: `worms`, `header_bytes`,
    /// `link_crossings`, `crossings_bound`, `excess`, `hops`, `filtered`, `total_order`.
    /// Scheme table: `entries` and `relay`; broadcast: `to_root` (hex); trees that were chosen already:
    /// `shared_trees`.
    pub fn write_into(&self, plan: &mut Value) {
        let ids = |hosts: &[HostId]| hosts.iter().map(|host| host.0).collect::<Vec<_>>();
        let first = self.routes.first();
        plan["tree"] = self.tree.to_value();
        plan["route"] = json!(first.map_or(String::new(), |route| hex(&route.bytes)));
        let route =
            |route: &TreeRoute| json!({"route": hex(&route.bytes), "hosts": ids(&route.hosts)});
        plan["routes"] = self.routes.iter().map(route).collect();
        if !self.shared.is_empty() {
            let one = |(tree, routes): &(SwitchTree, Vec<TreeRoute>)| {
                let routes: Vec<Value> = routes.iter().map(route).collect();
                json!({"tree": tree.to_value(), "routes": routes})
            };
            plan["shared_trees"] = self.shared.iter().map(one).collect();
        }
        let guard = self.parameters.guard;
        plan["unicast"] = json!(guard.unicast());
        plan["branching"] = json!(guard.branching());
        plan["backward_reset"] = json!(guard.backward_reset());
        plan["worms"] = json!(self.cost.worms);
        plan["header_bytes"] = json!(self.cost.header_bytes);
        plan["link_crossings"] = json!(self.cost.link_crossings);
        plan["crossings_bound"] = json!(self.cost.crossings_bound);
        plan["excess"] = json!((self.cost.excess() * 1e4).round() / 1e4);
        plan["hops"] = json!(self.cost.hops);
        plan["filtered"] = json!(self.cost.filtered);
        plan["total_order"] = json!(self.cost.total_order);
        if !self.entries.is_empty() {
            plan["entries"] = self.entries.iter().map(GroupEntry::to_value).collect();
        }
        if let Some(relay) = &self.relay {
            plan["relay"] = json!({"host": relay.host.0, "route": hex(&relay.route)});
        }
        if let Some(route) = &self.to_root {
            plan["to_root"] = json!(hex(route));
        }
    }
}

impl GroupEntry {
    fn to_value(&self) -> Value {
        let ports: Vec<u8> = self.ports.iter().map(|port| port.get()).collect();
        json!({"switch": self.switch.0, "group": self.group, "ports": ports})
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
