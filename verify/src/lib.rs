//! Whether worms, or packets of other fabrics, can wait for each other without end.
//!
//! Pure: no IO, no clock, no threads; the same input gives the same output.
//!
//! - [`formats`]: topologies as files of other tools have them
//! - [`deadlock`]: routes and multicasts of ours, under a model of switches and hosts
//! - [`foreign`]: routes that others made: forwarding tables, paths in CSV files

pub mod deadlock;
pub mod foreign;
pub mod formats;
