//! The order of switches that all worms keep to, and the connected parts that have one each.

pub(crate) mod bridge;
pub(crate) mod parts;
pub(crate) mod repair;
pub(crate) mod route_change;
pub(crate) mod route_order;
pub(crate) mod switch_order;
pub(crate) mod wiring;
