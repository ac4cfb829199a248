//! State.

use super::arguments::Arguments;
use super::context::Context;
use super::failure::{Failure, Outcome};

/// `bm_serialize_state`.
pub fn serialize(_: &mut Context<'_>, _: &Arguments) -> Outcome {
    Err(Failure::internal("not yet"))
}
