//! What every agent must have.

pub(crate) mod agents;
pub(crate) mod left_out;
mod lengths;
pub(crate) mod rates;
pub(crate) mod shapes;
pub(crate) mod wholes;
