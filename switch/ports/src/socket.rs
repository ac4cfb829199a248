//! Packet sockets (packet(7)): the calls that both directions share.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::interface::Interface;

/// `sll_protocol` of a socket that takes every frame.
pub(super) const ALL_PROTOCOLS: u16 = (libc::ETH_P_ALL as u16).to_be();

/// `sll_protocol` of a socket that takes none, only sends.
pub(super) const NO_PROTOCOL: u16 = 0;

/// A raw packet socket not yet bound to an interface: it receives nothing.
pub(super) fn open() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers; a result that is not negative is a new descriptor we own.
    unsafe {
        let fd = libc::socket(libc::AF_PACKET, kind, i32::from(NO_PROTOCOL));
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

pub(super) fn bind(socket: &OwnedFd, interface: &Interface, protocol: u16) -> io::Result<()> {
    // SAFETY: all zeros is a valid value of this plain structure.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol;
    address.sll_ifindex = interface.index() as i32;
    // SAFETY: the address is a sockaddr_ll of the length given.
    let result = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            mem::size_of_val(&address) as libc::socklen_t,
        )
    };
    check(result)
}

/// Sets an option to a plain value.
pub(super) fn set_option<T: Copy>(
    socket: &OwnedFd,
    level: i32,
    name: i32,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the pointer is to a value of the length given; the kernel only reads it.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            mem::size_of::<T>() as libc::socklen_t,
        )
    };
    check(result)
}

/// Takes the error the kernel has kept for this socket (`ENETDOWN` when its interface
/// went away), so that it is not reported again.
pub(super) fn take_error(socket: &OwnedFd) -> Option<io::Error> {
    let mut code: i32 = 0;
    let mut length = mem::size_of::<i32>() as libc::socklen_t;
    // SAFETY: both pointers are to values of the right types that outlive the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ERROR,
            (&raw mut code).cast(),
            &raw mut length,
        )
    };
    (result == 0 && code != 0).then(|| io::Error::from_raw_os_error(code))
}

/// Frames received and frames that found no room, since the last call.
pub(super) fn take_statistics(socket: &OwnedFd) -> io::Result<libc::tpacket_stats> {
    // SAFETY: all zeros is a valid value of this plain structure.
    let mut statistics: libc::tpacket_stats = unsafe { mem::zeroed() };
    let mut length = mem::size_of_val(&statistics) as libc::socklen_t;
    // SAFETY: both pointers are to values of the right types that outlive the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut statistics).cast(),
            &raw mut length,
        )
    };
    check(result).map(|()| statistics)
}

/// The interface's `IFF_` flags.
pub(super) fn flags(socket: &OwnedFd, name: &str) -> io::Result<libc::c_int> {
    let request = ask(socket, name, libc::SIOCGIFFLAGS)?;
    // SAFETY: the request has succeeded and filled in this member of the union.
    Ok(libc::c_int::from(unsafe { request.ifr_ifru.ifru_flags }))
}

/// The kernel's number for the interface.
pub(super) fn index(socket: &OwnedFd, name: &str) -> io::Result<u32> {
    let request = ask(socket, name, libc::SIOCGIFINDEX)?;
    // SAFETY: the request has succeeded and filled in this member of the union.
    Ok(unsafe { request.ifr_ifru.ifru_ifindex }.cast_unsigned())
}

/// Largest payload of a frame on the interface in bytes, as it is set now.
pub(super) fn mtu(socket: &OwnedFd, name: &str) -> io::Result<usize> {
    let request = ask(socket, name, libc::SIOCGIFMTU)?;
    // SAFETY: the request has succeeded and filled in this member of the union.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    Ok(usize::try_from(mtu).unwrap_or(0))
}

/// Whether frames of the interface begin with an Ethernet header; those of a TUN, for one, begin
/// with that of IP.
pub(super) fn has_ethernet(socket: &OwnedFd, name: &str) -> io::Result<bool> {
    let request = ask(socket, name, libc::SIOCGIFHWADDR)?;
    // SAFETY: the request has succeeded and filled in this member of the union.
    let kind = unsafe { request.ifr_ifru.ifru_hwaddr.sa_family };
    Ok(matches!(kind, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK))
}

/// What the kernel answers about an interface to one of the requests that need its name alone.
fn ask(socket: &OwnedFd, name: &str, what: libc::Ioctl) -> io::Result<libc::ifreq> {
    // SAFETY: all zeros is a valid value of this plain structure.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    let name = name.as_bytes();
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, &from) in request.ifr_name.iter_mut().zip(name) {
        *to = from as libc::c_char;
    }
    // SAFETY: the name ends with a zero, being shorter than its room; the structure is
    // that of these requests and outlives the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), what, &raw mut request) })?;
    Ok(request)
}

/// Makes the interface hand over frames for any address while this socket is open.
pub(super) fn set_promiscuous(socket: &OwnedFd, interface: &Interface) -> io::Result<()> {
    // SAFETY: all zeros is a valid value of this plain structure.
    let mut request: libc::packet_mreq = unsafe { mem::zeroed() };
    request.mr_ifindex = interface.index() as i32;
    request.mr_type = libc::PACKET_MR_PROMISC as u16;
    set_option(
        socket,
        libc::SOL_PACKET,
        libc::PACKET_ADD_MEMBERSHIP,
        &request,
    )
}

/// Sets up a ring (`PACKET_RX_RING`, `PACKET_TX_RING`) of a version of TPACKET, its frames
/// behind a virtio header. `request` is the structure of that version.
pub(super) fn set_up_ring<T: Copy>(
    socket: &OwnedFd,
    ring: i32,
    version: libc::tpacket_versions,
    request: &T,
) -> io::Result<()> {
    let option = |name, value: i32| set_option(socket, libc::SOL_PACKET, name, &value);
    option(libc::PACKET_VERSION, version as i32)?;
    option(libc::PACKET_VNET_HDR, 1)?;
    set_option(socket, libc::SOL_PACKET, ring, request)
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
