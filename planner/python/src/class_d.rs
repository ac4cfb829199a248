//! Numbers of class D addresses.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use ::wormcast_planner as planner;
use planner::ClassDMode;
use planner::class_d::{HASHED_FIRST, OWN_MAX};
use pyo3::prelude::*;
use wormcast_wire::GroupId;

use crate::arguments::{RoutingError, ipv4};
use crate::given_group::read_group;

/// Adds these classes and functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("CLASS_D_MODES", ClassDMode::ALL.map(ClassDMode::name))?;
    module.add("HASHED_FIRST", HASHED_FIRST)?;
    module.add_class::<ClassDNumbers>()?;
    module.add_function(wrap_pyfunction!(low_bits, module)?)?;
    module.add_function(wrap_pyfunction!(hashed, module)?)?;
    module.add_function(wrap_pyfunction!(assign_class_d, module)?)?;
    module.add_function(wrap_pyfunction!(new_class_d_number, module)?)
}

fn mode(name: &str) -> PyResult<ClassDMode> {
    let found = ClassDMode::ALL.into_iter().find(|mode| mode.name() == name);
    found.ok_or_else(|| {
        let names = ClassDMode::ALL.map(ClassDMode::name).join(", ");
        RoutingError::new_err(format!("no class D mode '{name}'; there are {names}"))
    })
}

/// The number of every address that a group carries.
#[pyclass(frozen, eq, from_py_object)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClassDNumbers(pub(crate) planner::ClassDNumbers);

#[pymethods]
impl ClassDNumbers {
    #[new]
    #[pyo3(signature = (mode = ClassDMode::Narrow.name(), assigned = Vec::new()))]
    fn new(mode: &str, assigned: Vec<(IpAddr, u16)>) -> PyResult<ClassDNumbers> {
        let one = |(address, number)| Ok((ipv4(address)?, GroupId(number)));
        let assigned = Arc::new(assigned.into_iter().map(one).collect::<PyResult<_>>()?);
        Ok(ClassDNumbers(planner::ClassDNumbers {
            mode: self::mode(mode)?,
            assigned,
        }))
    }

    #[getter]
    fn mode(&self) -> &'static str {
        self.0.mode.name()
    }

    /// Whether each address has a number of its own.
    #[getter]
    fn is_wide(&self) -> bool {
        self.0.mode == ClassDMode::Wide
    }

    /// Wide mode: addresses in ascending order with their numbers.
    #[getter]
    fn assigned(&self) -> Vec<(Ipv4Addr, u16)> {
        self.0
            .assigned
            .iter()
            .map(|(address, number)| (*address, number.0))
            .collect()
    }

    /// The number of an address.
    fn number(&self, address: IpAddr) -> PyResult<u16> {
        Ok(self.0.number(ipv4(address)?).0)
    }
}

/// The low 8 bits of an address, its number in narrow mode.
#[pyfunction]
fn low_bits(address: IpAddr) -> PyResult<u16> {
    Ok(planner::class_d::low_bits(ipv4(address)?).0)
}

/// The number in wide mode of an address without one of its own.
#[pyfunction]
fn hashed(address: IpAddr) -> PyResult<u16> {
    Ok(planner::class_d::hashed(ipv4(address)?).0)
}

/// Numbers for the addresses of these groups; addresses keep the number they had before.
#[pyfunction]
fn assign_class_d(
    mode: &str,
    groups: Vec<Bound<'_, PyAny>>,
    before: &ClassDNumbers,
) -> PyResult<ClassDNumbers> {
    let groups: Vec<_> = groups.iter().map(read_group).collect::<PyResult<_>>()?;
    let mode = self::mode(mode)?;
    Ok(ClassDNumbers(planner::ClassDNumbers::assign(
        mode, &groups, &before.0, OWN_MAX,
    )))
}

/// Wide mode: the number of the address of group `id`, which has none yet; `ids` are those of all
/// groups, `own` the numbers that addresses have.
#[pyfunction]
fn new_class_d_number(
    id: u16,
    address: IpAddr,
    ids: &Bound<'_, PyAny>,
    own: &Bound<'_, PyAny>,
) -> PyResult<u16> {
    let has_room = own.len()? < OWN_MAX;
    let has = |all: &Bound<'_, PyAny>, number: GroupId| all.contains(number.0).unwrap_or(true);
    let (is_id, is_own) = (|number| has(ids, number), |number| has(own, number));
    let address = ipv4(address)?;
    Ok(planner::class_d::new_number(GroupId(id), address, has_room, is_id, is_own).0)
}
