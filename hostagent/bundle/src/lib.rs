//! Several files and directories as the content of one message: a list of what comes, then the contents of the files
//! in its order.
//!
//! - [`list`]: the list, and what it may say
//! - [`pack`]: finds what is to be sent, and writes it
//! - [`unpack`]: makes it anew under a hidden name, and gives it its names once it is whole

pub mod list;
pub mod pack;
mod unix;
pub mod unpack;
