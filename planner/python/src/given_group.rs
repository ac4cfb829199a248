//! A group as the controller gives it.

use std::net::IpAddr;
use std::sync::Arc;

use ::wormcast_planner::auto::AUTO;
use ::wormcast_planner::{Group, GroupScheme};
use ::wormcast_routing::group::{Guard, Least, Scheme};
use ::wormcast_routing::structure::{CircuitVariant, StructureError};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::prelude::*;
use wormcast_wire::{GroupId, HostId};

use crate::arguments::ipv4;
use crate::arguments::{RoutingError, text};

/// An attribute of what Python hands over.
fn get<'py, T: FromPyObjectOwned<'py>>(of: &Bound<'py, PyAny>, name: &str) -> PyResult<T> {
    of.getattr(name)?.extract().map_err(Into::into)
}

/// A scheme of the list with the parameters that are given; 0 and "" leave a choice open.
fn read_scheme(name: &str, parameters: &Bound<'_, PyAny>) -> PyResult<GroupScheme> {
    if name == AUTO {
        return Ok(GroupScheme::Auto);
    }
    let refused = |error: StructureError| RoutingError::new_err(text(error));
    let number = |name| get::<u32>(parameters, name).map(|number| Some(number).filter(|&n| n > 0));
    let chosen =
        |name| get::<String>(parameters, name).map(|name| Some(name).filter(|n| !n.is_empty()));
    let mut scheme = Scheme::from_name(name).map_err(refused)?;
    match &mut scheme {
        Scheme::Tree { fan_out, .. } => *fan_out = number("fan_out")?.unwrap_or(*fan_out),
        Scheme::KBinomial { k } => *k = number("k")?,
        Scheme::Postal { lambda } => *lambda = number("lambda_")?,
        Scheme::MuTorus { r } => *r = number("r")?,
        Scheme::Circuit(variant) => {
            if let Some(name) = chosen("variant")? {
                *variant = CircuitVariant::from_name(&name).map_err(refused)?;
            }
        }
        Scheme::Repeat | Scheme::UTorus | Scheme::STorus | Scheme::MdTorus => {}
        Scheme::Switch(parameters) => {
            if let Some(name) = chosen("guard")? {
                parameters.guard = Guard::from_name(&name).map_err(refused)?;
            }
            if let Some(name) = chosen("least")? {
                parameters.least = Least::from_name(&name).map_err(refused)?;
            }
            parameters.trees = number("trees")?.unwrap_or(1);
        }
    }
    Ok(GroupScheme::One(scheme))
}

/// The group, or why it is none.
pub(crate) fn read_group(given: &Bound<'_, PyAny>) -> PyResult<Arc<Group>> {
    let parameters = given.getattr("parameters")?;
    let (ordered, guard): (bool, String) =
        (get(&parameters, "ordered")?, get(&parameters, "guard")?);
    let members: Vec<u16> = get(given, "members")?;
    let class_d: Option<IpAddr> = get(given, "class_d")?;
    Ok(Arc::new(Group {
        id: GroupId(get(given, "id")?),
        name: get(given, "name")?,
        scheme: read_scheme(&get::<String>(given, "scheme")?, &parameters)?,
        // Guard B is for one order (WORM §3, scheme B).
        ordered: ordered || guard == Guard::B.name(),
        packets: u32::try_from(get::<u64>(&parameters, "packets")?).unwrap_or(u32::MAX),
        members: members.into_iter().map(HostId).collect(),
        class_d: class_d.map(ipv4).transpose()?,
        sink: get(given, "sink")?,
        rate_bits: Some(get::<u64>(&parameters, "rate_bits")?).filter(|&bits| bits > 0),
        gather: get(given, "gather")?,
    }))
}
