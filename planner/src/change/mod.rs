//! From the routes in force to new ones, while worms of both are in the network.
//!
//! Routes that are free of deadlock before and after can still deadlock together: worms
//! of both hold channels at the same time. A change is safe if the channel dependencies
//! of old and new routes together have no cycle. Where one such step exists, it is
//! planned; else several, each safe with the one before. Between two steps the worms of
//! the routes before the last step have to have left the network.
//!
//! What counts as old: every dependency of a route in force between channels that still
//! exist, of routes that broke too, on both sides of the break: parts of their worms may
//! still be on their way. A channel that was lost drops what needs it. With
//! [`Change::planned`] channels that are to go carry worms until the change is done.
//!
//! One step is looked for in this order:
//!
//! 1. *kept order*: OSUD along the order of switches in force, the new topology's links
//!    directed by it. Paths legal under one order never make a cycle, so that this is
//!    safe whenever it serves all pairs; it does exactly if in each part all switches
//!    with hosts have, two by two, a switch above both.
//! 2. *repaired order*: the switches that lost every way up to the root of their part
//!    move behind the others.
//! 3. *detours*: broken pairs alone get new paths, any that close no cycle; where some
//!    find none, with the turns of a spanning tree kept in reserve for them.
//! 4. *fresh*: the plan from scratch, with the root that it chooses.
//!
//! With in-transit buffers (ITB §III.B) the first always serves where each switch has a
//! host: a path is cut wherever it would break the order in force, and each piece is
//! legal under that order. So one step always suffices.
//!
//! Otherwise several steps: each moves as many pairs as it can from their path to that of
//! the goal, or the steps lead over spanning trees of the new topology (`trees.rs`), and
//! the fewest that are found are taken. Only if no such sequence is found do pairs have
//! to stop (*drain*). That every change between two up\*/down\* plans of a fabric can be
//! made over trees without stopping a pair is shown there. One step is found
//! wherever one of the routings above makes it. Several are the fewest that any sequence
//! of OSUD plans along all orders of the switches and of all spanning trees has, in every
//! graph of up to five switches (by trying all, in the tests); in larger ones they are the
//! fewest of those tried, and there may be fewer.

#[cfg(test)]
mod by_force;
mod channels;
mod dependencies;
mod detours;
mod error;
mod json;
mod paths;
mod planner;
mod sequence;
mod steps;
mod trees;
mod written;

pub use error::ChangeError;
pub use steps::{Change, ChangeSteps, Method, Step};

use self::planner::Planner;

/// Plans the steps of a change.
///
/// # Errors
/// [`ChangeError`]: roots that are not there, routes that do not fit the old topology or
/// can deadlock, an algorithm with more than one path a pair.
pub fn plan(change: &Change<'_>) -> Result<ChangeSteps, ChangeError> {
    Planner::new(change)?.plan()
}
