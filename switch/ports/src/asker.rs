//! How interfaces are now.

use std::os::fd::OwnedFd;

use super::interface::Interface;
use super::socket;

/// What the kernel says of an interface at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceLook {
    /// Somebody has set it up.
    pub enabled: bool,
    /// It is up and has a carrier.
    pub running: bool,
    /// Largest payload of a frame, bytes.
    pub mtu: Option<usize>,
}

/// Asks the kernel about interfaces, always by the same socket: a new one for each question costs ten times as
/// much as the answer. The network namespace is that of the thread that asked first.
#[derive(Debug, Default)]
pub struct Asker {
    socket: Option<OwnedFd>,
}

impl Asker {
    /// An interface as it is now; of one that cannot be asked, nothing good. `None`: there is none of that name.
    pub fn find(&mut self, name: &str) -> Option<(Interface, InterfaceLook)> {
        if self.socket.is_none() {
            let new = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None);
            self.socket = new.ok().map(OwnedFd::from);
        }
        let Some(socket) = &self.socket else {
            return Some((Interface::find(name).ok()?, InterfaceLook::default()));
        };
        let interface = Interface::new(name, socket::index(socket, name).ok()?);
        let flags = socket::flags(socket, name).unwrap_or(0);
        let enabled = flags & libc::IFF_UP != 0;
        let look = InterfaceLook {
            enabled,
            running: enabled && flags & libc::IFF_RUNNING != 0,
            mtu: socket::mtu(socket, name).ok(),
        };
        Some((interface, look))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_found_and_others_are_not() {
        let lo = Interface::find("lo").unwrap();
        let mut asker = Asker::default();
        assert_eq!(asker.find("lo").map(|(interface, _)| interface), Some(lo));
        for name in ["no-such-iface", "", "sixteen-letters-"] {
            assert_eq!(asker.find(name), None);
        }
    }
}
