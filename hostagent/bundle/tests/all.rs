//! Bundles: packed and made anew, and what is refused.

mod list;
mod round;
