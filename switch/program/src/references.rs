//! What tables and control blocks refer to.

use std::collections::BTreeMap;

use super::error::ProgramError;
use super::json::Node;
use super::layout::{Layout, Slot};

/// Most entries of a table.
pub(super) const TABLE_SIZE_MAX: usize = 1 << 24;

/// Index of a node of the graph, or the end.
pub type Next = Option<u32>;

/// What tables refer to.
pub(super) struct References<'r> {
    pub(super) layout: &'r Layout,
    /// Index of the action with an id.
    pub(super) action_by_id: &'r BTreeMap<i64, u32>,
    pub(super) actions: &'r [super::description::ActionInfo],
    /// Direct counters by the table they are bound to.
    pub(super) counter_by_table: &'r BTreeMap<String, u32>,
    /// Direct meters by name, with the field that takes the colour.
    pub(super) meters: &'r BTreeMap<String, (u32, Slot, u32)>,
    pub(super) registers: &'r [super::description::RegisterInfo],
}

pub(super) fn next_node(
    node: &Node<'_>,
    member: &str,
    names: &BTreeMap<&str, u32>,
) -> Result<Next, ProgramError> {
    match node.optional(member)? {
        None => Ok(None),
        Some(next) => {
            let name = next.string()?;
            match names.get(name) {
                Some(&index) => Ok(Some(index)),
                None => Err(next.unknown("table or condition", name, names.keys().copied())),
            }
        }
    }
}
