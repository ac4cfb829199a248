//! The order of switches that a fabric's worms keep to, and when it changes.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use wormcast_routing::routes::Setting;
use wormcast_routing::topology::{Damage, Link, Topology};
use wormcast_routing::updown::UpDown;
use wormcast_wire::{PortId, SwitchId};

use crate::order::switch_order::Order;

/// One end of a link, the other end: switch and port.
pub(crate) type LinkEnds = (u16, u8, u16, u8);

/// An order of switches, and the spanning tree that switches copy worms along.
///
/// It stays in force for as long as it serves: routes that keep to one order are safe together,
/// whatever comes and goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteOrder {
    pub(crate) order: Order,
    /// The port of a switch to its parent in the tree.
    parents: BTreeMap<SwitchId, PortId>,
    /// What was asked for when it was made.
    root: Option<SwitchId>,
    balanced: bool,
    /// Links of the network that it was made for.
    links: BTreeSet<LinkEnds>,
}

/// Why a stored order cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a stored order of switches: {0}")]
pub struct RouteOrderError(String);

impl RouteOrder {
    /// The order that a plan from scratch has.
    ///
    /// Of each part of what is known, the part of what is up that has the root, or the most
    /// switches, comes first, ordered as the setting says. What suspected links join to it comes
    /// behind, with a root that such a link leads to: so one order joins all that is up, and all
    /// that is known.
    pub(crate) fn new(up: &Topology, known: &Topology, setting: &Setting) -> RouteOrder {
        let mut waiting = up.split();
        let is_up = |part: &Topology| {
            let mut switches = part.switches().iter();
            switches.any(|switch| up.switch_index(switch.id).is_ok())
        };
        waiting.extend(known.split().into_iter().filter(|part| !is_up(part)));
        waiting.sort_by_key(|part| {
            let has_root = setting.root_in(part).is_some();
            (!has_root, Reverse(part.switch_count()))
        });
        let mut order = Order::default();
        while !waiting.is_empty() {
            // What a link that is suspected leads to comes before what none leads to.
            let joined = (waiting.iter().enumerate())
                .find_map(|(at, part)| Some((at, entry(part, known, &order)?)));
            let (at, root) = joined.map_or((0, None), |(at, root)| (at, Some(root)));
            let part = waiting.remove(at);
            let chosen = Setting {
                root: root.or(setting.root_in(&part)),
                ..*setting
            };
            let planned = chosen.balanced.then(|| chosen.plan(&part));
            let updown = match planned {
                Some(Ok(routes)) => routes.updown().clone(),
                // Why there are no routes is found again, and reported, where they are planned.
                _ => UpDown::new(&part, chosen.root).expect("it is there"),
            };
            order.extend(Order::of(&part, &updown).switches());
            order.extend(away(up, known, &order));
        }
        let mut made = RouteOrder {
            order: order.with_all(known),
            parents: BTreeMap::new(),
            root: setting.root,
            balanced: setting.balanced,
            links: links(known).collect(),
        };
        made.keep_tree(up);
        made
    }

    /// The order for what is there now, this one if it serves.
    ///
    /// It does if nothing else is asked for, no link is new to it, and in each part of what is up
    /// one switch alone has no way up: the root, if that is given and up. Where several have none,
    /// a way down from each to the root's part has its direction reversed, if worms of this order may go on then; else
    /// as few switches move behind as will do.
    pub(crate) fn for_now(&self, up: &Topology, known: &Topology, setting: &Setting) -> RouteOrder {
        let same_wish = (self.root, self.balanced) == (setting.root, setting.balanced);
        let rooted = |order: &Order| {
            let parts = up.split().into_iter();
            parts
                .filter_map(|part| Some((setting.root_in(&part)?, order.direct(&part).root(&part))))
                .all(|(asked, root)| asked == root)
        };
        let mut kept = RouteOrder {
            order: self.order.clone().with_all(known),
            root: setting.root,
            balanced: setting.balanced,
            ..self.clone()
        };
        if !same_wish
            || links(known).any(|link| !self.links.contains(&link))
            || !rooted(&kept.order)
        {
            let new = RouteOrder::new(up, known, setting);
            if !new.order.directs_as(&kept.order, known) {
                return new;
            }
            kept.links.extend(links(known));
        }
        let joins = |order: &Order| joins_all(order, up) && joins_all(order, known);
        if !joins(&kept.order) {
            let repaired = kept.order.repaired_keeping_turns(up, known);
            let moved = kept.order.repaired(up).into_iter();
            let moved = moved.map(|order| order.with_all(known));
            match (repaired.into_iter())
                .chain(moved)
                .find(|order| joins(order) && rooted(order))
            {
                Some(order) => kept.order = order,
                None => return RouteOrder::new(up, known, setting),
            }
        }
        kept.keep_tree(up);
        kept
    }

    /// The same with other ranks that direct all links alike.
    #[must_use]
    pub(crate) fn with_order(self, order: Order) -> RouteOrder {
        RouteOrder { order, ..self }
    }

    /// Whether it is that order with some switches moved, nothing else asked for.
    pub(crate) fn repairs(&self, before: &RouteOrder) -> bool {
        (self.root, self.balanced, &self.links) == (before.root, before.balanced, &before.links)
    }

    /// Whether worms of both may be in the network at once, since this order allows all turns that the
    /// other allows over links that carry worms. It asks for the same, and no link is new to it.
    pub(crate) fn follows_at_once(&self, before: &RouteOrder, carrying: &Topology) -> bool {
        self.repairs(before) && self.order.allows_turns_of(&before.order, carrying)
    }

    /// Links that it knows and that carry nothing.
    pub(crate) fn links_away(&self, carrying: &Topology) -> BTreeSet<LinkEnds> {
        let there: BTreeSet<LinkEnds> = links(carrying).collect();
        self.links.difference(&there).copied().collect()
    }

    /// Directions of one connected part; those of a plan from scratch if this order does not join
    /// its switches.
    pub(crate) fn direct(&self, part: &Topology, setting: &Setting) -> UpDown {
        let updown = self.order.direct(part);
        if updown.joins_all() {
            updown.with_parents(part, |switch| self.parents.get(&switch).copied())
        } else {
            UpDown::new(part, setting.root_in(part)).expect("it is there")
        }
    }

    /// A switch whose parent is there keeps it: so under one order the tree loses no link that is
    /// there.
    fn keep_tree(&mut self, up: &Topology) {
        let updown = self.order.direct(up);
        let tree = updown.with_parents(up, |switch| self.parents.get(&switch).copied());
        self.parents.extend(tree.parent_ports(up));
    }

    /// As text, to be stored.
    pub fn to_json(&self) -> String {
        let switches: Vec<u16> = self
            .order
            .switches()
            .iter()
            .map(|switch| switch.0)
            .collect();
        let parents: Vec<(u16, u8)> = (self.parents.iter())
            .map(|(switch, port)| (switch.0, port.get()))
            .collect();
        json!({"switches": switches, "parents": parents, "root": self.root.map(|root| root.0),
               "balanced": self.balanced, "links": self.links})
        .to_string()
    }

    /// Reads it back.
    ///
    /// # Errors
    /// [`RouteOrderError`] for anything else than [`RouteOrder::to_json`] writes.
    pub fn from_json(text: &str) -> Result<RouteOrder, RouteOrderError> {
        let wrong = |what: &str| RouteOrderError(what.to_owned());
        let value: Value = serde_json::from_str(text).map_err(|error| wrong(&error.to_string()))?;
        let field = |name: &str| value.get(name).cloned().unwrap_or(Value::Null);
        let unread = |error: serde_json::Error| wrong(&error.to_string());
        let switches: Vec<u16> = serde_json::from_value(field("switches")).map_err(unread)?;
        let parents: Vec<(u16, u8)> = serde_json::from_value(field("parents")).map_err(unread)?;
        let root: Option<u16> = serde_json::from_value(field("root")).map_err(unread)?;
        let port = |port| PortId::new(port).ok_or_else(|| wrong("a port above 253"));
        let parents = parents
            .into_iter()
            .map(|(switch, to)| Ok((SwitchId(switch), port(to)?)));
        Ok(RouteOrder {
            order: switches.into_iter().map(SwitchId).collect(),
            parents: parents.collect::<Result<_, RouteOrderError>>()?,
            root: root.map(SwitchId),
            balanced: serde_json::from_value(field("balanced")).map_err(unread)?,
            links: serde_json::from_value(field("links")).map_err(unread)?,
        })
    }
}

pub(crate) fn without(
    topology: &Topology,
    is_left_out: impl Fn(LinkEnds) -> bool,
) -> Cow<'_, Topology> {
    let found = links(topology).filter(|&link| is_left_out(link));
    let ends =
        found.filter_map(|(switch, port, _, _)| Some((SwitchId(switch), PortId::new(port)?)));
    let lost = Damage {
        links: ends.collect(),
        ..Damage::default()
    };
    if lost.links.is_empty() {
        Cow::Borrowed(topology)
    } else {
        Cow::Owned(topology.without(&lost).expect("these links are there"))
    }
}

/// Links with their ends in order, so that they can be compared.
fn links(topology: &Topology) -> impl Iterator<Item = LinkEnds> + '_ {
    topology.links().iter().map(|link| {
        let (a, b) = ((link.a.0, link.a_port.get()), (link.b.0, link.b_port.get()));
        let (a, b) = if a <= b { (a, b) } else { (b, a) };
        (a.0, a.1, b.0, b.1)
    })
}

/// A switch of a part that a link leads to from one that is in the order.
fn entry(part: &Topology, known: &Topology, order: &Order) -> Option<SwitchId> {
    let entry = |link: &Link| {
        let ends = [(link.a, link.b), (link.b, link.a)];
        let leads_in =
            |&(from, to): &(SwitchId, SwitchId)| order.has(from) && part.switch_index(to).is_ok();
        ends.into_iter().find(leads_in).map(|(_, to)| to)
    };
    known.links().iter().find_map(entry)
}

/// Switches that are known and not up, and joined to the order by others like them.
fn away(up: &Topology, known: &Topology, order: &Order) -> Vec<SwitchId> {
    let mut order = order.clone();
    let mut found = Vec::new();
    loop {
        let is_away = |switch: SwitchId| !order.has(switch) && up.switch_index(switch).is_err();
        let next = known.links().iter().find_map(|link| match () {
            () if order.has(link.a) && is_away(link.b) => Some(link.b),
            () if order.has(link.b) && is_away(link.a) => Some(link.a),
            () => None,
        });
        let Some(next) = next else { return found };
        found.push(next);
        order.extend([next]);
    }
}

fn joins_all(order: &Order, up: &Topology) -> bool {
    order.direct(up).joins_all()
}
