//! A group as the controller gives it.

use std::net::IpAddr;
use std::sync::Arc;

use ::wormcast_planner::auto::AUTO;
use ::wormcast_planner::{Group, GroupScheme};
use ::wormcast_routing::group::{Guard, Least, Scheme};
use ::wormcast_routing::structure::{CircuitVariant, StructureError};
use pyo3::prelude::*;
use wormcast_wire::{GroupId, HostId};

use crate::arguments::ipv4;
use crate::arguments::{RoutingError, text};

#[derive(FromPyObject)]
struct GivenGroup {
    id: u16,
    name: String,
    scheme: String,
    members: Vec<u16>,
    parameters: GivenParameters,
    class_d: Option<IpAddr>,
    sink: bool,
    gather: bool,
}

#[derive(FromPyObject)]
struct GivenParameters {
    k: u32,
    fan_out: u32,
    packets: u64,
    lambda_: u32,
    r: u32,
    variant: String,
    guard: String,
    least: String,
    trees: u32,
    ordered: bool,
}

/// A scheme of the list with the parameters that are given; 0 and "" leave a choice open.
fn read_scheme(name: &str, given: &GivenParameters) -> Result<GroupScheme, StructureError> {
    if name == AUTO {
        return Ok(GroupScheme::Auto);
    }
    let mut scheme = Scheme::from_name(name)?;
    let given_or = |number: u32, default: u32| if number == 0 { default } else { number };
    match &mut scheme {
        Scheme::Tree { fan_out, .. } => *fan_out = given_or(given.fan_out, *fan_out),
        Scheme::KBinomial { k } => *k = Some(given.k).filter(|&k| k > 0),
        Scheme::Postal { lambda } => *lambda = Some(given.lambda_).filter(|&lambda| lambda > 0),
        Scheme::MuTorus { r } => *r = Some(given.r).filter(|&r| r > 0),
        Scheme::Circuit(variant) if !given.variant.is_empty() => {
            *variant = CircuitVariant::from_name(&given.variant)?;
        }
        Scheme::Circuit(_) | Scheme::Repeat | Scheme::UTorus | Scheme::STorus | Scheme::MdTorus => {
        }
        Scheme::Switch(parameters) => {
            if !given.guard.is_empty() {
                parameters.guard = Guard::from_name(&given.guard)?;
            }
            if !given.least.is_empty() {
                parameters.least = Least::from_name(&given.least)?;
            }
            parameters.trees = given_or(given.trees, 1);
        }
    }
    Ok(GroupScheme::One(scheme))
}

/// The group, or why it is none.
pub(crate) fn read_group(group: &Bound<'_, PyAny>) -> PyResult<Arc<Group>> {
    let given: GivenGroup = group.extract()?;
    Ok(Arc::new(Group {
        id: GroupId(given.id),
        name: given.name,
        scheme: read_scheme(&given.scheme, &given.parameters)
            .map_err(|error| RoutingError::new_err(text(error)))?,
        // Guard B is for one order (WORM §3, scheme B).
        ordered: given.parameters.ordered || given.parameters.guard == Guard::B.name(),
        packets: given.parameters.packets.try_into().unwrap_or(u32::MAX),
        members: given.members.into_iter().map(HostId).collect(),
        class_d: given.class_d.map(ipv4).transpose()?,
        sink: given.sink,
        gather: given.gather,
    }))
}
