//! Bundles: packed and made anew, and what is refused.

mod changed;
mod list;
mod round;
