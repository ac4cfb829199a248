//! The tests of this crate in one program: each file beside this one is a module.

mod stf_command;
mod stf_programs;
