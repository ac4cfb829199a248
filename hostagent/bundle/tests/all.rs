//! Bundles: packed and made anew, and what is refused.

mod changed;
mod kept;
mod list;
mod round;
mod same;
