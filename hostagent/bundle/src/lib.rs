//! Several files and directories as the content of one message: a list of what comes, then the contents of the files
//! in its order.
//!
//! - [`list`]: the list, and what it may say
//! - [`pack`]: finds what is to be sent, and writes it
//! - [`offer`]: the list before the bundle, with hashes, and which of it nobody lacks
//! - [`compare`]: looks for what of an offered list a receiver has
//! - [`plan`]: what it has found, until the bundle comes
//! - [`kept`]: what a broken transfer leaves, for the next one
//! - [`options`]: what entries get of what the list says
//! - [`place`]: what was made gets its names
//! - [`unpack`]: makes it anew under a hidden name

pub mod compare;
mod find;
pub mod kept;
pub mod list;
pub mod offer;
pub mod options;
pub mod pack;
pub mod place;
pub mod plan;
mod read;
mod same;
mod unix;
pub mod unpack;
