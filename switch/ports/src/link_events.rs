//! What the kernel says of links as it happens: interfaces that come, go, and go up or down.

use std::collections::BTreeSet;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Names that are kept apart; where more links have changed at once, all are looked at.
const NAMES_MAX: usize = 256;

/// Bytes of messages that are read at once: one message of an interface has a few thousand.
const READ_BYTES: usize = 64 << 10;

/// Head of a message (`nlmsghdr`), and what follows it in one about a link (`ifinfomsg`).
const HEADER_BYTES: usize = 16;
const LINK_BYTES: usize = 16;
/// Head of an attribute (`rtattr`).
const ATTRIBUTE_BYTES: usize = 4;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangedLinks {
    Named(BTreeSet<String>),
    /// Any may have: nobody knows which.
    All,
}

impl ChangedLinks {
    pub fn none() -> Self {
        Self::Named(BTreeSet::new())
    }

    /// Whether an interface may have changed.
    pub fn has(&self, name: &str) -> bool {
        match self {
            Self::Named(names) => names.contains(name),
            Self::All => true,
        }
    }

    fn add(&mut self, name: String) {
        if let Self::Named(names) = self {
            names.insert(name);
            if names.len() > NAMES_MAX {
                *self = Self::All;
            }
        }
    }
}

/// Tells of the links of a network namespace (`rtnetlink`, group `RTNLGRP_LINK`).
#[derive(Debug)]
pub struct LinkEvents {
    socket: OwnedFd,
}

impl LinkEvents {
    /// Tells of what happens from now on, in the namespace of this thread.
    ///
    /// # Errors
    /// The system has no such sockets, or no more of them.
    pub fn open() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers.
        let socket = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call gave a descriptor that nobody else has.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        // SAFETY: all zeros is a valid value of this plain structure.
        let mut address: libc::sockaddr_nl = unsafe { mem::zeroed() };
        address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        address.nl_groups = libc::RTMGRP_LINK as u32;
        // SAFETY: the pointer is to an address of that length, which outlives the call.
        let bound = unsafe {
            libc::bind(
                socket.as_raw_fd(),
                (&raw const address).cast(),
                mem::size_of_val(&address) as libc::socklen_t,
            )
        };
        if bound < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { socket })
    }

    /// All that has happened since the last time; waits for nothing.
    ///
    /// # Errors
    /// The socket cannot be read.
    pub fn take(&self) -> io::Result<ChangedLinks> {
        let mut changed = ChangedLinks::none();
        let mut buffer = vec![0; READ_BYTES];
        loop {
            // SAFETY: the pointer and the length are those of the buffer.
            let length = unsafe {
                libc::recv(
                    self.socket.as_raw_fd(),
                    buffer.as_mut_ptr().cast(),
                    buffer.len(),
                    libc::MSG_TRUNC,
                )
            };
            match usize::try_from(length) {
                Ok(length) => match buffer.get(..length) {
                    Some(messages) => names_of(messages, &mut changed),
                    None => changed = ChangedLinks::All,
                },
                Err(_) => match io::Error::last_os_error() {
                    error if error.kind() == io::ErrorKind::WouldBlock => return Ok(changed),
                    error if error.kind() == io::ErrorKind::Interrupted => {}
                    // More has happened than the kernel could keep for us.
                    error if error.raw_os_error() == Some(libc::ENOBUFS) => {
                        changed = ChangedLinks::All;
                    }
                    error => return Err(error),
                },
            }
        }
    }
}

impl AsFd for LinkEvents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for LinkEvents {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// Adds the links that messages are about. What is no message of a link is passed over; what
/// ends too early ends the reading.
fn names_of(mut messages: &[u8], changed: &mut ChangedLinks) {
    while let Some((length, kind)) = header(messages) {
        let Some(message) = messages.get(HEADER_BYTES..length) else {
            return;
        };
        if matches!(kind, libc::RTM_NEWLINK | libc::RTM_DELLINK)
            && let Some(attributes) = message.get(LINK_BYTES..)
        {
            match name_of(attributes) {
                Some(name) => changed.add(name),
                None => *changed = ChangedLinks::All,
            }
        }
        messages = messages.get(aligned(length)..).unwrap_or_default();
    }
}

/// Length and type of a message.
fn header(messages: &[u8]) -> Option<(usize, u16)> {
    let (length, rest) = messages.split_first_chunk::<4>()?;
    let (kind, _) = rest.split_first_chunk::<2>()?;
    let length = u32::from_ne_bytes(*length) as usize;
    Some((length, u16::from_ne_bytes(*kind)))
}

/// The name among the attributes of a link.
fn name_of(mut attributes: &[u8]) -> Option<String> {
    loop {
        let (length, rest) = attributes.split_first_chunk::<2>()?;
        let (kind, _) = rest.split_first_chunk::<2>()?;
        let length = usize::from(u16::from_ne_bytes(*length));
        let value = attributes.get(ATTRIBUTE_BYTES..length)?;
        if u16::from_ne_bytes(*kind) == libc::IFLA_IFNAME {
            let name = value.split(|byte| *byte == 0).next()?;
            return String::from_utf8(name.to_vec()).ok();
        }
        attributes = attributes.get(aligned(length)..)?;
    }
}

/// Messages and attributes begin at multiples of four bytes.
fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER_ATTRIBUTE: u16 = libc::IFLA_MTU;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(((ATTRIBUTE_BYTES + value.len()) as u16).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(aligned(bytes.len()), 0);
        bytes
    }

    fn message(kind: u16, attributes: &[Vec<u8>]) -> Vec<u8> {
        let body = attributes.concat();
        let mut bytes = Vec::new();
        bytes.extend(((HEADER_BYTES + LINK_BYTES + body.len()) as u32).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.resize(HEADER_BYTES + LINK_BYTES, 0);
        bytes.extend(body);
        bytes
    }

    fn names(bytes: &[u8]) -> ChangedLinks {
        let mut changed = ChangedLinks::none();
        names_of(bytes, &mut changed);
        changed
    }

    fn named(names: &[&str]) -> ChangedLinks {
        ChangedLinks::Named(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn names_are_found_among_other_attributes() {
        let mtu = attribute(OTHER_ATTRIBUTE, &1500u32.to_ne_bytes());
        let name = |name: &str| attribute(libc::IFLA_IFNAME, format!("{name}\0").as_bytes());
        let up = message(libc::RTM_NEWLINK, &[mtu.clone(), name("eth1")]);
        let gone = message(libc::RTM_DELLINK, &[name("veth-long-name"), mtu.clone()]);
        let route = message(libc::RTM_NEWROUTE, &[name("eth9")]);
        assert_eq!(
            names(&[up.clone(), route, gone].concat()),
            named(&["eth1", "veth-long-name"])
        );
        assert_eq!(
            names(&message(libc::RTM_NEWLINK, &[mtu])),
            ChangedLinks::All
        );
        assert!(named(&["eth1"]).has("eth1") && !named(&["eth1"]).has("eth2"));
        assert!(ChangedLinks::All.has("eth2"));
    }

    #[test]
    fn what_ends_too_early_ends_the_reading() {
        let name = attribute(libc::IFLA_IFNAME, b"eth1\0");
        let up = message(libc::RTM_NEWLINK, &[name]);
        for length in 0..up.len() {
            let found = names(&up[..length]);
            assert_eq!(found, ChangedLinks::none(), "{length} bytes");
        }
        // Lengths that lead nowhere.
        for length in [0u32, 1, 15, u32::MAX] {
            let mut bytes = up.clone();
            bytes[..4].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(names(&bytes), ChangedLinks::none());
        }
        let mut bytes = up.clone();
        bytes[HEADER_BYTES + LINK_BYTES..][..2].copy_from_slice(&[0, 0]);
        assert_eq!(names(&bytes), ChangedLinks::All);
    }

    #[test]
    fn many_names_are_all_links() {
        let mut changed = ChangedLinks::none();
        (0..NAMES_MAX).for_each(|number| changed.add(format!("eth{number}")));
        assert_ne!(changed, ChangedLinks::All);
        changed.add("eth0".to_owned());
        assert_ne!(changed, ChangedLinks::All);
        changed.add("one-more".to_owned());
        assert_eq!(changed, ChangedLinks::All);
    }

    #[test]
    fn without_events_nothing_has_changed() {
        let events = LinkEvents::open().unwrap();
        // Other tests may change links of this namespace; then there is something.
        assert!(events.take().is_ok());
    }
}
