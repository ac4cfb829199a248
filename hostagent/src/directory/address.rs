//! Where a controller listens.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Longest path of a Unix socket, bytes (`sun_path`, without its end).
pub const SOCKET_PATH_BYTES_MAX: usize = 107;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ControllerAddress {
    Tcp {
        /// Name or address.
        host: String,
        port: u16,
    },
    Unix(PathBuf),
}

impl FromStr for ControllerAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if !path.starts_with('/') {
                return Err(format!(
                    "\"{text}\" does not hold an absolute path; write unix:/path"
                ));
            }
            if path.len() > SOCKET_PATH_BYTES_MAX {
                return Err(format!(
                    "\"{path}\" has {} bytes; at most {SOCKET_PATH_BYTES_MAX}",
                    path.len()
                ));
            }
            return Ok(Self::Unix(path.into()));
        }
        let wrong = || format!("\"{text}\" is neither host:port nor unix:/path");
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        if host.is_empty() || (bare.is_none() && host.contains(':')) {
            return Err(format!("{}; an IPv6 address goes in brackets", wrong()));
        }
        match port.parse() {
            Ok(port) if port != 0 => Ok(Self::Tcp {
                host: bare.unwrap_or(host).to_owned(),
                port,
            }),
            _ => Err(format!(
                "\"{text}\" has port \"{port}\"; it must be 1 to 65535"
            )),
        }
    }
}

impl fmt::Display for ControllerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written() {
        for (text, shown) in [
            ("10.0.0.1:9339", "10.0.0.1:9339"),
            ("controller.lan:1", "controller.lan:1"),
            ("[::1]:50051", "[::1]:50051"),
            ("unix:/run/x.sock", "unix:/run/x.sock"),
            ("unix:///run/x.sock", "unix:/run/x.sock"),
        ] {
            assert_eq!(
                text.parse::<ControllerAddress>().unwrap().to_string(),
                shown
            );
        }
    }

    #[test]
    fn wrong_addresses_say_what_is_expected() {
        for (text, part) in [
            ("controller", "neither host:port nor unix:/path"),
            ("controller:0", "port \"0\"; it must be 1 to 65535"),
            ("controller:65536", "port \"65536\"; it must be 1 to 65535"),
            ("::1:5", "in brackets"),
            (":5", "neither"),
            ("unix:relative", "absolute path"),
            ("", "neither"),
        ] {
            let error = text.parse::<ControllerAddress>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
