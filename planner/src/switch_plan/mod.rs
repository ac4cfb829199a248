//! What every switch must have.

pub mod class_d;
pub(crate) mod entries;
pub(crate) mod replication;
pub(crate) mod switches;
pub(crate) mod table_numbers;
pub(crate) mod tables;
pub(crate) mod trees;
