//! The tests of this crate in one program: each file beside this one is a module.

mod files;
mod local_api;
mod measure;
mod operation;
mod receivers;
mod support;
mod transfer;
mod watching;
