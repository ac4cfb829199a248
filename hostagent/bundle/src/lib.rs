//! Several files and directories as the content of one message: a list of what comes, then the contents of the files
//! in its order.
//!
//! - [`list`]: the list, and what it may say
//! - [`pack`]: finds what is to be sent, and writes it
//! - [`offer`]: the list before the bundle, with hashes, and which of it nobody lacks
//! - [`compare`]: what of an offered list a receiver has
//! - [`kept`]: what a broken transfer leaves, for the next one
//! - [`place`]: what was made gets its names
//! - [`unpack`]: makes it anew under a hidden name

pub mod compare;
pub mod kept;
pub mod list;
pub mod offer;
pub mod pack;
pub mod place;
mod read;
mod unix;
pub mod unpack;
