//! Groups whose messages the switches replicate (WORM §3).
//!
//! What each guard asks of the plan, of unicast and of the switches:
//!
//! - **A**: every worm keeps to the spanning tree, unicast too (routes `tree-only`). A
//!   blocked branch holds the others, which fill with IDLE. A worm goes the way through
//!   the tree from its source.
//! - **B**: every multicast goes up to the root, by tree links, and down the spanning
//!   tree; unicast is free to take all links (`osud`). A blocked branch does not hold the
//!   others. The way from the root to a host is the same for all groups: only so do two
//!   multicasts reach two hosts in the same order, and only so does a broadcast keep to
//!   that order too. Hence no tree of its own for a group, and one root: of two roots
//!   neither knows in which order worms leave the other, and hosts would see both orders.
//!   A message that takes several worms has no one place in the order (`total_order`).
//! - **C**: multicast takes any legal paths, so each group has a tree of few links of its
//!   own; unicast takes `osud`. A blocked branch holds the others. A switch marks a port
//!   multicast-idle that has sent IDLE for a set time; a unicast worm that such a port
//!   blocks is thrown out by a backward reset, and its source sends it again after a
//!   random time. Two multicasts can still wait for each other: that the check for
//!   deadlock finds (`wormcast verify`).
//!
//! Scheme `table` fits every guard, but a GROUP worm is replicated wherever it enters, so
//! under B it must enter at one place: the source sends UNICAST to a *relay*, the host
//! nearest the root, which sends the GROUP worm. The source gets a copy back then.

use super::shared_tree::{SharedTree, paths_along, shared_trees};
use super::switch_bound::links_at_least;
use super::switch_delivery::{GroupEntry, Relay, SwitchCost, SwitchDelivery};
use super::switch_trees::{
    broadcast_links, broadcast_paths, check_one_tree, legal_paths, rooted_paths, tree_paths,
};
use super::{
    Delivery, GroupError, GroupPlan, GroupRequest, Guard, Least, SwitchMode, SwitchParameters,
};
use super::{SwitchTree, switch_tree::Paths};
use crate::routes::Routes;
use crate::topology::{Attachment, Link, Topology};
use std::collections::BTreeMap;
use wormcast_wire::tree_route::{TreeEncodeError, TreeRoute, encode_tree};
use wormcast_wire::{HostId, SWITCHES_CROSSED_MAX};

/// Bytes of a worm header before its route (wire/SPEC.md §2).
const WORM_HEADER_BYTES: u32 = 12;

pub(super) fn plan_switch(
    routes: &Routes<'_>,
    request: GroupRequest,
    parameters: SwitchParameters,
    ordered: Vec<HostId>,
) -> Result<GroupPlan, GroupError> {
    let source = request.source;
    let job = Job {
        routes,
        source,
        targets: ordered
            .iter()
            .copied()
            .filter(|member| *member != source)
            .collect(),
        parameters,
    };
    check_one_tree(routes.topology(), routes.updown(), source, &job.targets)?;
    let mut delivery = match parameters.mode {
        SwitchMode::Tree if parameters.guard == Guard::C && !request.shared.is_empty() => {
            job.by_shared(&request.shared)?
        }
        SwitchMode::Tree => job.by_tree()?,
        SwitchMode::Table => job.by_table()?,
        SwitchMode::Broadcast => job.by_broadcast()?,
    };
    delivery.cost.crossings_bound = job.crossings_at_least()?;
    let worms = u64::from(delivery.cost.worms);
    let steps = match delivery.relay {
        Some(_) => u64::from(request.packets) + 1,
        None => worms * u64::from(request.packets),
    };
    Ok(GroupPlan {
        request,
        ordered,
        steps,
        delivery: Delivery::Switches(Box::new(delivery)),
        metrics: None,
    })
}

struct Job<'a, 't> {
    routes: &'a Routes<'t>,
    source: HostId,
    /// Members but the source, ascending.
    targets: Vec<HostId>,
    parameters: SwitchParameters,
}

impl<'t> Job<'_, 't> {
    fn topology(&self) -> &'t Topology {
        self.routes.topology()
    }

    fn switch_of(&self, host: HostId) -> Result<u32, GroupError> {
        let topology = self.topology();
        Ok(topology.switch_of(topology.host_index(host)?))
    }

    /// Source link, every member's link, and links between switches.
    fn crossings_at_least(&self) -> Result<u64, GroupError> {
        if self.targets.is_empty() {
            return Ok(0);
        }
        let targets = &self.targets;
        let switches = targets.iter().map(|&host| self.switch_of(host));
        let switches = switches.collect::<Result<Vec<_>, _>>()?;
        let start = self.switch_of(self.source)?;
        Ok(1 + targets.len() as u64 + links_at_least(self.topology(), start, &switches))
    }

    fn by_tree(&self) -> Result<SwitchDelivery, GroupError> {
        let (topology, source) = (self.topology(), self.source);
        let updown = self.routes.updown();
        let mut candidates = match self.parameters.guard {
            Guard::A => vec![tree_paths(topology, updown, source, &self.targets)?],
            Guard::B => vec![rooted_paths(topology, updown, source, &self.targets)?],
            Guard::C => legal_paths(self.routes, source, &self.targets, self.parameters.least)?,
        }
        .into_iter();
        let first = candidates.next().unwrap_or_default();
        let mut best = (encode_tree(&first)?, first);
        let cost = |(routes, paths): &(Vec<TreeRoute>, Paths)| match self.parameters.least {
            Least::Links => (crossings(routes), routes.len() as u64),
            Least::Depth => (longest_path(paths), crossings(routes)),
        };
        for paths in candidates {
            let other = (encode_tree(&paths)?, paths);
            if cost(&other) < cost(&best) {
                best = other;
            }
        }
        self.along(best.0, best.1)
    }

    /// Along trees that are chosen already. The first is what the plan is about; a member that a tree
    /// does not reach is reached along the spanning tree.
    fn by_shared(&self, trees: &[Vec<Link>]) -> Result<SwitchDelivery, GroupError> {
        let (topology, source) = (self.topology(), self.source);
        let spanning = tree_paths(topology, self.routes.updown(), source, &self.targets)?;
        let mut leaves = BTreeMap::new();
        for &host in self.targets.iter().chain([&source]) {
            let at = topology.host(host)?;
            leaves.insert(host, (at.switch, at.port));
        }
        let mut made = Vec::new();
        for links in trees {
            for link in links {
                let far = topology.attachment(link.a, link.a_port);
                if far != Some(Attachment::Switch(link.b, link.b_port)) {
                    return Err(shared_error(format!(
                        "port {} of switch {} does not lead to port {} of switch {}",
                        link.a_port, link.a, link.b_port, link.b
                    )));
                }
            }
            let found = paths_along(links, &[], &leaves, source).map_err(|switch| {
                shared_error(format!("its links close a loop through switch {switch}"))
            })?;
            let path = |(host, other): &(HostId, Vec<u8>)| {
                (*host, found.get(host).unwrap_or(other).clone())
            };
            let paths: Paths = spanning.iter().map(path).collect();
            made.push(self.along(encode_tree(&paths)?, paths)?);
        }
        let shared = made
            .iter()
            .map(|one| (one.tree.clone(), one.routes.clone()));
        let shared = shared.collect();
        Ok(SwitchDelivery {
            shared,
            ..made.swap_remove(0)
        })
    }

    fn along(&self, routes: Vec<TreeRoute>, paths: Paths) -> Result<SwitchDelivery, GroupError> {
        let (topology, source) = (self.topology(), self.source);
        let longest = routes.iter().map(|route| route.bytes.len()).max();
        let cost = SwitchCost {
            worms: routes.len() as u32,
            header_bytes: longest.map_or(0, |bytes| WORM_HEADER_BYTES + bytes as u32),
            link_crossings: crossings(&routes),
            hops: longest_path(&paths) as u32,
            total_order: self.parameters.guard == Guard::B && routes.len() <= 1,
            ..SwitchCost::default()
        };
        Ok(SwitchDelivery {
            parameters: self.parameters,
            tree: SwitchTree::new(topology, source, &paths)?,
            routes,
            cost,
            ..SwitchDelivery::empty(topology.host(source)?.switch)
        })
    }

    fn by_table(&self) -> Result<SwitchDelivery, GroupError> {
        let (topology, source) = (self.topology(), self.source);
        let updown = self.routes.updown();
        let mut members = self.targets.clone();
        members.push(source);
        let relay = match self.parameters.guard {
            Guard::B if !self.targets.is_empty() => Some(self.relay()?),
            _ => None,
        };
        let sender = relay.as_ref().map_or(source, |relay| relay.host);
        let table = match self.parameters.guard {
            Guard::A | Guard::B => SharedTree::along(topology, updown, sender, &members)?,
            Guard::C => {
                let least = self.parameters.least;
                // Switches take them by number, so that groups spread.
                let turn = self.parameters.group.into();
                let mut trees = shared_trees(topology, updown, &members, least, turn, 1)?;
                trees.swap_remove(0)
            }
        };
        let paths = table.paths_from(topology, sender)?;
        check_lengths(&paths)?;
        let tree = SwitchTree::new(topology, sender, &paths)?;
        let relay = relay.filter(|relay| relay.host != source);
        let detour = relay.as_ref().map_or(0, |relay| relay.route.len() as u32);
        let sends = u32::from(!self.targets.is_empty());
        let cost = SwitchCost {
            worms: sends,
            header_bytes: sends * (WORM_HEADER_BYTES + detour.max(2)),
            link_crossings: u64::from(sends) * (1 + tree.links())
                + relay.as_ref().map_or(0, |_| u64::from(detour) + 1),
            hops: longest_path(&paths) as u32 + detour,
            filtered: u32::from(relay.is_some()),
            total_order: self.parameters.guard == Guard::B,
            ..SwitchCost::default()
        };
        Ok(SwitchDelivery {
            parameters: self.parameters,
            tree,
            entries: table.entries(topology, self.parameters.group),
            relay,
            cost,
            ..SwitchDelivery::empty(topology.host(source)?.switch)
        })
    }

    /// The host nearest the root, ties to the lowest id, and how the source reaches it.
    fn relay(&self) -> Result<Relay, GroupError> {
        let (topology, updown) = (self.topology(), self.routes.updown());
        let part = topology.component_of(self.switch_of(self.source)?);
        let mut nearest = (u32::MAX, self.source);
        for host in topology.hosts() {
            let switch = self.switch_of(host.id)?;
            if topology.component_of(switch) == part {
                nearest = nearest.min((updown.level(topology, host.switch)?, host.id));
            }
        }
        let host = nearest.1;
        let route = if host == self.source {
            Vec::new()
        } else {
            self.routes.route(self.source, host)?.ports
        };
        Ok(Relay { host, route })
    }

    fn by_broadcast(&self) -> Result<SwitchDelivery, GroupError> {
        let (topology, source) = (self.topology(), self.source);
        let updown = self.routes.updown();
        let (to_root, mut paths) = broadcast_paths(topology, updown, source)?;
        if self.targets.is_empty() {
            return Ok(SwitchDelivery {
                parameters: self.parameters,
                to_root: Some(to_root),
                ..SwitchDelivery::empty(topology.host(source)?.switch)
            });
        }
        let wanted = |host: HostId| self.targets.binary_search(&host).is_ok();
        let members: Paths = paths
            .iter()
            .filter(|path| wanted(path.0))
            .cloned()
            .collect();
        check_lengths(&members)?;
        paths.retain(|(_, path)| path.len() <= SWITCHES_CROSSED_MAX);
        let tree = SwitchTree::new(topology, source, &paths)?;
        let cost = SwitchCost {
            worms: 1,
            header_bytes: WORM_HEADER_BYTES + to_root.len() as u32,
            link_crossings: broadcast_links(topology, updown, source)?,
            hops: longest_path(&members) as u32,
            filtered: (paths.len() - members.len()) as u32,
            total_order: self.parameters.guard == Guard::B,
            ..SwitchCost::default()
        };
        Ok(SwitchDelivery {
            parameters: self.parameters,
            tree,
            to_root: Some(to_root),
            cost,
            ..SwitchDelivery::empty(topology.host(source)?.switch)
        })
    }
}

fn shared_error(reason: String) -> GroupError {
    GroupError::Request {
        at: "shared_trees".into(),
        reason,
    }
}

/// Links that the worms of these routes cross, each with the source's link.
fn crossings(routes: &[TreeRoute]) -> u64 {
    let links = |route: &TreeRoute| (route.bytes.len() as u64 - 1) / 2 + 1;
    routes.iter().map(links).sum()
}

/// Switches that the farthest member's worm crosses.
fn longest_path(paths: &Paths) -> u64 {
    let lengths = paths.iter().map(|(_, path)| path.len() as u64);
    lengths.max().unwrap_or(0)
}

fn check_lengths(paths: &Paths) -> Result<(), TreeEncodeError> {
    match paths
        .iter()
        .find(|(_, path)| path.len() > SWITCHES_CROSSED_MAX)
    {
        Some((host, path)) => Err(TreeEncodeError::PathTooLong {
            host: *host,
            switches: path.len(),
        }),
        None => Ok(()),
    }
}

impl GroupEntry {
    /// Whether a worm of the group leaves by this port.
    pub fn leads(&self, port: wormcast_wire::PortId) -> bool {
        self.ports.binary_search(&port).is_ok()
    }
}
