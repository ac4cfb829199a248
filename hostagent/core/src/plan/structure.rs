//! One structure of a planned group: a scheme with its parameters.

use super::fields::{PlanRejected, list, parse_host, parse_hosts, rejected};
use std::sync::Arc;
use wormcast_agent_proto as proto;
use wormcast_routing::structure::{
    CircuitVariant, Recipe, RootedTree, Structure, StructureError, TreeVariant, postal,
};
use wormcast_wire::{GroupId, HOST_ID_MAX, HostId, SchemeName};

/// Expected times of one structure at most.
const EXPECTED_MAX: usize = 64;

/// A structure of a planned group.
#[derive(Clone, Debug)]
pub struct PlannedStructure {
    /// The longest message that takes it.
    pub bytes_most: u64,
    pub scheme: SchemeName,
    /// Members in the order the scheme works on.
    pub order: Arc<[HostId]>,
    pub recipe: Recipe,
    /// What it was chosen for: bytes of messages, and the µs that each is expected to take.
    pub expected: Vec<(u64, f64)>,
}

impl PlannedStructure {
    pub(super) fn parse(
        id: GroupId,
        members: &[HostId],
        order_before: Option<&Arc<[HostId]>>,
        message: &proto::Structure,
    ) -> Result<Self, PlanRejected> {
        let Some(scheme) = SchemeName::from_name(&message.scheme) else {
            return rejected(format!(
                "group {id} has scheme \"{}\"; this agent knows: {}",
                message.scheme,
                SchemeName::ALL.map(SchemeName::name).join(", ")
            ));
        };
        let order: Arc<[HostId]> = match (&message.order[..], order_before) {
            ([], Some(order)) => order.clone(),
            ([], None) => members.into(),
            (order, _) => parse_order(id, members, order)?.into(),
        };
        let within = |name: &str, value: u32, most: u32, why: &str| match value {
            value if (1..=most).contains(&value) => Ok(value),
            _ => rejected(format!(
                "group {id} has {name} = {value}; {why}it must be 1 to {most}"
            )),
        };
        let wrong = |error: StructureError| {
            PlanRejected(format!(
                "the {} of group {id} cannot be used: {error}",
                scheme.name()
            ))
        };
        let recipe = match scheme {
            SchemeName::Repeat => Recipe::Repeat,
            SchemeName::Switch | SchemeName::Table | SchemeName::Broadcast => {
                Recipe::Copied { fan_in: message.k }
            }
            SchemeName::Circuit => Recipe::Circuit(parse_variant(id, &message.variant)?),
            SchemeName::Tree => {
                let tree = parse_tree(id, members, &message.tree_edges)?;
                Recipe::Tree(tree.into(), TreeVariant::Unordered)
            }
            SchemeName::KBinomial => {
                let most = members.len() as u32;
                let why = format!("with {most} members ");
                Recipe::KBinomial {
                    k: within("k", message.k, most, &why)?,
                }
            }
            SchemeName::Postal => Recipe::Postal {
                lambda: within("lambda", message.lambda, postal::LAMBDA_MAX, "")?,
            },
            SchemeName::UTorus => Recipe::UTorus,
            SchemeName::STorus => Recipe::STorus,
            SchemeName::MdTorus => Recipe::MdTorus {
                rings: message.rings.iter().map(|&ring| ring as usize).collect(),
            },
            SchemeName::MuTorus => Recipe::MuTorus {
                r: within("r", message.r, HOST_ID_MAX.into(), "")?,
            },
        };
        // What fits one source fits all.
        recipe.structure(order.clone(), members[0]).map_err(wrong)?;
        Ok(Self {
            bytes_most: match message.bytes_most {
                0 => u64::MAX,
                most => most,
            },
            scheme,
            order,
            recipe,
            expected: parse_expected(id, &message.expected)?,
        })
    }

    /// The structure that carries the stream of `origin`.
    ///
    /// # Errors
    /// If `origin` is not a member.
    pub fn of(&self, origin: HostId) -> Result<Structure, StructureError> {
        self.recipe.structure(self.order.clone(), origin)
    }

    /// Hands all that shapes it to a checksum, number by number.
    pub(super) fn mix_into(&self, mix: &mut impl FnMut(u32)) {
        mix(self.scheme as u32);
        for host in self.order.iter() {
            mix(u32::from(host.0));
        }
        match &self.recipe {
            Recipe::Circuit(CircuitVariant::Return) => mix(CircuitVariant::Return as u32),
            Recipe::Repeat | Recipe::Circuit(_) | Recipe::UTorus | Recipe::STorus => {}
            Recipe::Tree(tree, _) => {
                for (parent, child) in tree.edges() {
                    mix(u32::from(parent.0) << 16 | u32::from(child.0));
                }
            }
            Recipe::KBinomial { k: only }
            | Recipe::Postal { lambda: only }
            | Recipe::MuTorus { r: only }
            | Recipe::Copied { fan_in: only } => mix(*only),
            Recipe::MdTorus { rings } => rings.iter().for_each(|&ring| mix(ring as u32)),
        }
    }
}

fn parse_variant(id: GroupId, name: &str) -> Result<CircuitVariant, PlanRejected> {
    match CircuitVariant::from_name(name) {
        _ if name.is_empty() => Ok(CircuitVariant::OmitLast),
        Ok(CircuitVariant::Ordered) | Err(_) => rejected(format!(
            "group {id} has variant \"{name}\"; of a circuit it must be omit-last or return"
        )),
        Ok(variant) => Ok(variant),
    }
}

fn parse_expected(id: GroupId, given: &[proto::Expected]) -> Result<Vec<(u64, f64)>, PlanRejected> {
    if given.len() > EXPECTED_MAX {
        let count = given.len();
        return rejected(format!(
            "a structure of group {id} has {count} expected times; at most {EXPECTED_MAX}"
        ));
    }
    let given = given.iter().map(|one| (one.bytes, one.microseconds));
    match given
        .clone()
        .find(|(_, us)| !(us.is_finite() && *us >= 0.0))
    {
        Some((bytes, us)) => rejected(format!(
            "group {id} is expected to take {us} µs for {bytes} bytes; it must be 0 or more"
        )),
        None => Ok(given.collect()),
    }
}

fn parse_order(
    id: GroupId,
    members: &[HostId],
    order: &[u32],
) -> Result<Vec<HostId>, PlanRejected> {
    let order = parse_hosts(&format!("the order of group {id}"), order)?;
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if sorted != members {
        return rejected(format!(
            "the order of group {id} is {}; it must hold each of the members {} once",
            list(&order),
            list(members)
        ));
    }
    Ok(order)
}

fn parse_tree(
    id: GroupId,
    members: &[HostId],
    edges: &[proto::TreeEdge],
) -> Result<RootedTree, PlanRejected> {
    if edges.len() >= members.len() {
        return rejected(format!(
            "the tree of group {id} has {} edges; with {} members it must have {}",
            edges.len(),
            members.len(),
            members.len() - 1
        ));
    }
    let what = format!("a host in the tree of group {id}");
    let edges = edges
        .iter()
        .map(|&proto::TreeEdge { parent, child }| {
            let parent = parse_host(&what, parent)?;
            let child = parse_host(&what, child)?;
            Ok((parent, child))
        })
        .collect::<Result<Vec<_>, PlanRejected>>()?;
    RootedTree::from_edges(members, &edges)
        .map_err(|error| PlanRejected(format!("the tree of group {id} cannot be used: {error}")))
}
