//! Where the servers of the switch listen: TCP and Unix sockets, so many connections at a time,
//! each only as long as its client does something.

mod listener;
pub mod patience;
pub mod socket_file;

pub use listener::{
    Address, CONNECTION_WINDOW, CONNECTIONS_MAX, KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT, Listener,
    bounded,
};
