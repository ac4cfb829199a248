//! Runs STF scripts, the packet test format of p4c, against the pure pipeline, or against a
//! switch that is a process of its own: entries are added, packets sent in, and what comes
//! out is compared.
//!
//! The language is that of `tools/stf` and `backends/bmv2/bmv2stf.py` of p4c, with some
//! commands more; `switch/docs/stf.md` lists them all.

mod clock;
mod discover;
mod expectations;
mod failure;
mod keys;
mod live;
mod live_calls;
mod live_cells;
mod live_process;
mod names;
mod report;
mod runner;
mod script;
mod state;
mod statement;
mod suite;
mod wire;

pub use discover::{Case, Compiler, discover};
pub use failure::Failure;
pub use report::{junit, summary_json};
pub use runner::{Passed, run_script};
pub use suite::{Outcome, RunOptions, Verdict, run_cases};
