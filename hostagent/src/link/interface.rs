//! Looks up network interfaces by name.
//!
//! By `ioctl` and not from `/sys/class/net`: a sysfs mount shows the network namespace it
//! was mounted in, which need not be the one this process runs in.

use super::Namespace;
use std::ffi::CString;
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Smallest MTU the agent works with, bytes after the Ethernet header.
pub const WORM_MTU_BYTES_MIN: u32 = wormcast_protocol::MTU_MIN as u32;
/// Largest MTU the agent works with (jumbo frames), bytes after the Ethernet header.
pub const WORM_MTU_BYTES_MAX: u32 = wormcast_protocol::MTU_MAX as u32;

/// A 48-bit Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MacAddress(pub [u8; 6]);

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// What the kernel says about an interface at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Name, e.g. `h0-eth0`.
    pub name: String,
    /// Kernel index; changes when the interface is deleted and made again.
    pub index: i32,
    pub mac: MacAddress,
    /// Bytes after the Ethernet header.
    pub mtu_bytes: u32,
    /// Administratively up and with carrier.
    pub running: bool,
    /// Where it is; `None`: in the namespace of this process.
    pub namespace: Option<Namespace>,
}

/// Why an interface cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InterfaceError {
    /// No interface of that name; the names there are.
    #[error(
        "no network interface \"{name}\" here; there are: {}",
        if known.is_empty() { "none".to_owned() } else { known.join(", ") }
    )]
    Unknown {
        name: String,
        /// Names of this network namespace.
        known: Vec<String>,
    },
    /// The kernel refused to answer.
    #[error("cannot read the properties of interface \"{name}\": {source}")]
    Query { name: String, source: io::Error },
    /// Not an Ethernet interface (`ARPHRD_…` number of the kind it is).
    #[error(
        "interface \"{name}\" is not Ethernet (hardware type {kind}); worms need hardware type 1"
    )]
    NotEthernet {
        name: String,
        /// `ARPHRD_…` of the interface.
        kind: u16,
    },
}

impl Interface {
    /// Looks `name` up in a network namespace, or in that of this process.
    ///
    /// # Errors
    /// [`InterfaceError`]; an unknown name lists the names there are.
    pub fn find_in(namespace: Option<&Namespace>, name: &str) -> Result<Self, InterfaceError> {
        let Some(space) = namespace else {
            return Self::find(name);
        };
        let found = space.within(|| Self::find(name));
        let found = found.map_err(|source| InterfaceError::Query {
            name: name.to_owned(),
            source,
        })?;
        found.map(|interface| Self {
            namespace: Some(space.clone()),
            ..interface
        })
    }

    /// What the kernel says of it now.
    ///
    /// # Errors
    /// [`InterfaceError`].
    pub fn look_again(&self) -> Result<Self, InterfaceError> {
        Self::find_in(self.namespace.as_ref(), &self.name)
    }

    /// Looks `name` up in this process's network namespace.
    ///
    /// # Errors
    /// [`InterfaceError`]; an unknown name lists the names there are.
    pub fn find(name: &str) -> Result<Self, InterfaceError> {
        let unknown = || InterfaceError::Unknown {
            name: name.to_owned(),
            known: Self::names(),
        };
        if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains('\0') {
            return Err(unknown());
        }
        let query = InterfaceQuery::open(name).map_err(|source| InterfaceError::Query {
            name: name.to_owned(),
            source,
        })?;
        let failed = |source: io::Error| match source.raw_os_error() {
            Some(libc::ENODEV) => unknown(),
            _ => InterfaceError::Query {
                name: name.to_owned(),
                source,
            },
        };
        let index = query.index().map_err(failed)?;
        let (kind, mac) = query.hardware_address().map_err(failed)?;
        // Loopback carries whole Ethernet frames too; it serves for tests on one machine.
        if kind != libc::ARPHRD_ETHER && kind != libc::ARPHRD_LOOPBACK {
            return Err(InterfaceError::NotEthernet {
                name: name.to_owned(),
                kind,
            });
        }
        let mtu_bytes = query.mtu_bytes().map_err(failed)?;
        let flags = query.flags().map_err(failed)?;
        let wanted = libc::IFF_UP | libc::IFF_RUNNING;
        let running = flags & wanted == wanted;
        Ok(Self {
            name: name.to_owned(),
            index,
            mac,
            mtu_bytes,
            running,
            namespace: None,
        })
    }

    /// Names of all interfaces of this network namespace, in kernel order.
    pub fn names() -> Vec<String> {
        let mut names = Vec::new();
        // SAFETY: if_nameindex returns null or an array ended by an entry with index 0;
        // its names are C strings; it is freed once, after the last use.
        unsafe {
            let first = libc::if_nameindex();
            if first.is_null() {
                return names;
            }
            let mut entry = first;
            while (*entry).if_index != 0 && !(*entry).if_name.is_null() {
                let name = std::ffi::CStr::from_ptr((*entry).if_name);
                names.push(name.to_string_lossy().into_owned());
                entry = entry.add(1);
            }
            libc::if_freenameindex(first);
        }
        names
    }
}

/// A socket to ask on and the request block with the name filled in.
struct InterfaceQuery {
    socket: OwnedFd,
    name: CString,
}

impl InterfaceQuery {
    fn open(name: &str) -> io::Result<Self> {
        let name = CString::new(name).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        // SAFETY: plain system call; the result is checked before it becomes an OwnedFd.
        let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: fd is open and owned by nobody else.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { socket, name })
    }

    fn ask(&self, request: libc::Ioctl) -> io::Result<libc::ifreq> {
        // SAFETY: ifreq is plain data for which all zeros is a valid value.
        let mut block: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in block.ifr_name.iter_mut().zip(self.name.as_bytes()) {
            *to = libc::c_char::from_ne_bytes([*from]);
        }
        // SAFETY: block is a valid ifreq with a terminated name and outlives the call.
        let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), request, &raw mut block) };
        if result < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(block)
        }
    }

    fn index(&self) -> io::Result<i32> {
        // SAFETY: SIOCGIFINDEX fills ifru_ifindex.
        self.ask(libc::SIOCGIFINDEX)
            .map(|block| unsafe { block.ifr_ifru.ifru_ifindex })
    }

    fn hardware_address(&self) -> io::Result<(u16, MacAddress)> {
        let block = self.ask(libc::SIOCGIFHWADDR)?;
        // SAFETY: SIOCGIFHWADDR fills ifru_hwaddr.
        let address = unsafe { block.ifr_ifru.ifru_hwaddr };
        let mut mac = [0; 6];
        for (to, from) in mac.iter_mut().zip(address.sa_data) {
            *to = from.to_ne_bytes()[0];
        }
        Ok((address.sa_family, MacAddress(mac)))
    }

    fn mtu_bytes(&self) -> io::Result<u32> {
        // SAFETY: SIOCGIFMTU fills ifru_mtu.
        self.ask(libc::SIOCGIFMTU)
            .map(|block| unsafe { block.ifr_ifru.ifru_mtu }.max(0).cast_unsigned())
    }

    fn flags(&self) -> io::Result<i32> {
        // SAFETY: SIOCGIFFLAGS fills ifru_flags.
        self.ask(libc::SIOCGIFFLAGS)
            .map(|block| i32::from(unsafe { block.ifr_ifru.ifru_flags }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_loopback_and_lists_it() {
        let interface = Interface::find("lo").unwrap();
        assert!(interface.index > 0);
        assert!(interface.mtu_bytes >= 1500);
        assert!(Interface::names().contains(&"lo".to_owned()));
    }

    #[test]
    fn an_unknown_name_lists_those_there_are() {
        for name in ["nosuch0", "", "a-name-that-is-far-too-long", "with\0zero"] {
            let error = Interface::find(name).unwrap_err();
            assert!(
                matches!(error, InterfaceError::Unknown { .. }),
                "{name}: {error:?}"
            );
            assert!(error.to_string().contains("there are: "), "{error}");
            assert!(error.to_string().contains("lo"), "{error}");
        }
    }
}
