//! The tests of this crate in one program: each file beside this one is a module.

mod auto;
mod change;
mod class_d;
mod cost_fit;
mod cost_replay;
mod difference;
mod gather;
mod gather_cases;
#[path = "../../routing/tests/graphs/mod.rs"]
mod graphs;
mod guard;
mod guard_entries;
mod guard_stages;
mod lab;
mod messages;
mod mtu_limits;
mod parallel;
mod plan;
mod plan_again;
mod repair;
mod routing;
mod steps;
#[allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the study times itself"
)]
mod study;
mod switching;
