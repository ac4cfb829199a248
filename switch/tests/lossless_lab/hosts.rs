//! The hosts of the lab alone.
#![allow(dead_code)] // each program that uses it uses another part

pub mod host;
pub mod worm;
