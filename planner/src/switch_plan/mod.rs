//! What every switch must have.

pub mod class_d;
pub(crate) mod entries;
pub(crate) mod gather;
pub(crate) mod gather_tree;
pub(crate) mod guard;
pub(crate) mod guard_groups;
pub(crate) mod guard_trees;
pub(crate) mod replication;
pub(crate) mod switches;
pub(crate) mod table_numbers;
pub(crate) mod tables;
pub(crate) mod trees;
pub(crate) mod wormhole;
