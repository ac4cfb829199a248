//! What is planned from, and what a plan is made of.

pub(crate) mod agent;
pub(crate) mod copies;
pub(crate) mod derived;
pub(crate) mod failure;
pub(crate) mod groups;
pub(crate) mod hosts;
pub(crate) mod ids;
pub(crate) mod messages;
pub(crate) mod state;
