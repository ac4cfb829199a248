//! Addresses of nanomsg sockets.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// Longest path of a Unix socket, bytes: `sun_path` without the zero at its end (unix(7)).
const PATH_BYTES_MAX: usize = 107;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket: `ipc://PATH`.
    Ipc(PathBuf),
    /// An address and a port: `tcp://ADDRESS:PORT`, or `tcp://*:PORT` for every IPv4 address
    /// of the machine.
    Tcp(SocketAddr),
}

impl Address {
    /// Whether it is a Unix socket.
    pub fn is_ipc(&self) -> bool {
        matches!(self, Self::Ipc(_))
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fail = |why: &str| {
            format!(
                "`{text}` is not an address of nanomsg: {why}ipc://PATH (like \
                 ipc:///tmp/notifications.ipc), tcp://ADDRESS:PORT (like tcp://127.0.0.1:10001) \
                 or tcp://*:PORT"
            )
        };
        if let Some(path) = text.strip_prefix("ipc://") {
            return match path.len() {
                0 => Err(fail("")),
                1..=PATH_BYTES_MAX => Ok(Self::Ipc(path.into())),
                length => {
                    let why = format!("a path of {length} bytes, at most {PATH_BYTES_MAX}; ");
                    Err(fail(&why))
                }
            };
        }
        let address = text.strip_prefix("tcp://").ok_or_else(|| fail(""))?;
        let address = match address.strip_prefix("*:") {
            Some(port) => port.parse().ok().map(|port| {
                let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
                SocketAddr::new(any, port)
            }),
            None => address.parse().ok(),
        };
        address.map(Self::Tcp).ok_or_else(|| fail(""))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ipc(path) => write!(f, "ipc://{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp://{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for good in [
            "ipc:///tmp/bmv2-0-notifications.ipc",
            "ipc://here",
            "tcp://127.0.0.1:10001",
            "tcp://[::1]:0",
        ] {
            assert_eq!(good.parse::<Address>().unwrap().to_string(), good);
        }
        let any: Address = "tcp://*:9".parse().unwrap();
        assert_eq!(any.to_string(), "tcp://0.0.0.0:9");
    }

    #[test]
    fn what_is_no_address_says_what_would_be() {
        let long = format!("ipc:///{}", "x".repeat(PATH_BYTES_MAX));
        for bad in [
            "",
            "/tmp/here",
            "ipc://",
            "tcp://",
            "tcp://127.0.0.1",
            "tcp://127.0.0.1:65536",
            "tcp://*:",
            "inproc://here",
            &long,
        ] {
            let why = bad.parse::<Address>().unwrap_err();
            assert!(why.contains(&format!("`{bad}`")), "{why}");
            assert!(why.contains("ipc://PATH (like "), "{why}");
        }
        let why = long.parse::<Address>().unwrap_err();
        assert!(why.contains("108 bytes, at most 107"), "{why}");
    }
}
