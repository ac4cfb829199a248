//! Network interfaces by name.

use std::ffi::CString;
use std::io;

/// An interface of this machine, as it was when it was looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    name: String,
    index: u32,
}

/// An interface that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InterfaceError {
    /// A name no interface can have.
    #[error(
        "`{0}` is not a name of an interface: 1 to {max} bytes without `/` or spaces",
        max = libc::IFNAMSIZ - 1
    )]
    InvalidName(String),
    /// No interface has the name.
    #[error("there is no interface `{0}` (see `ip link`)")]
    Unknown(String),
    /// A step of opening it failed.
    #[error(
        "interface `{name}`: {step}: {error}{}",
        if error.raw_os_error() == Some(libc::EPERM) {
            " (packet sockets need root or CAP_NET_RAW)"
        } else {
            ""
        }
    )]
    Open {
        name: String,
        step: &'static str,
        error: io::Error,
    },
}

impl Interface {
    /// One that the kernel has under this number.
    pub(super) fn new(name: &str, index: u32) -> Self {
        Self {
            name: name.to_owned(),
            index,
        }
    }

    /// Finds an interface in the network namespace of this process.
    pub fn find(name: &str) -> Result<Self, InterfaceError> {
        let invalid = || InterfaceError::InvalidName(name.to_owned());
        let bad_byte = |byte: u8| byte == b'/' || byte.is_ascii_whitespace();
        if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.bytes().any(bad_byte) {
            return Err(invalid());
        }
        let c_name = CString::new(name).map_err(|_| invalid())?;
        // SAFETY: the pointer is to a string that ends with a zero and outlives the call.
        let index = unsafe { libc::if_nametoindex(c_name.as_ptr()) };
        if index == 0 {
            return Err(InterfaceError::Unknown(name.to_owned()));
        }
        Ok(Self::new(name, index))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kernel's number for it; another one after it was deleted and made anew.
    pub fn index(&self) -> u32 {
        self.index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_found_and_others_refused() {
        let lo = Interface::find("lo").unwrap();
        assert_eq!(lo.name(), "lo");
        let error = |name: &str| Interface::find(name).unwrap_err().to_string();
        assert_eq!(
            error("no-such-iface"),
            "there is no interface `no-such-iface` (see `ip link`)"
        );
        for name in ["", "a/b", "a b", "a\0b", "sixteen-letters-"] {
            assert!(error(name).contains("1 to 15 bytes"), "{name}");
        }
    }
}
