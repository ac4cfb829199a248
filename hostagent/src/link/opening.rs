//! Opening the packet socket, with its options.
//!
//! The send buffer is kept small on purpose. Frames waiting in a queueing discipline (say
//! tbf, at link rate) count against it, so when the link is the bottleneck the socket
//! becomes unwritable before the discipline overflows: the agent waits for the kernel's
//! "writable" instead of losing frames or polling.

use super::batch::ReceiveBatch;
use super::socket::PacketSocket;
use super::{Interface, WORM_MTU_BYTES_MAX};
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Frames the kernel keeps for us while we do not run, bytes with its bookkeeping.
pub const RECEIVE_BUFFER_BYTES: i32 = 8 << 20;
/// Frames on their way out, bytes with the kernel's bookkeeping; see the module text.
pub const SEND_BUFFER_BYTES: i32 = 256 << 10;
const ETHERNET_HEADER_BYTES: usize = 14;
const PACKET_IGNORE_OUTGOING: i32 = 23;

/// Why the packet socket could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The process lacks `CAP_NET_RAW`.
    #[error(
        "not permitted to open a packet socket: CAP_NET_RAW is missing; run as root, or \
         `setcap cap_net_raw+ep` the wormcast-agent binary, or set \
         AmbientCapabilities=CAP_NET_RAW in its unit file"
    )]
    NotPermitted,
    #[error("cannot {step}: {source}")]
    System {
        step: &'static str,
        source: io::Error,
    },
}

impl PacketSocket {
    /// Opens a socket for frames of `ethertype` on `interface` and joins `group`.
    ///
    /// # Errors
    /// [`SocketError::NotPermitted`] without `CAP_NET_RAW`.
    pub fn open(
        interface: &Interface,
        ethertype: u16,
        group: [u8; 6],
    ) -> Result<Self, SocketError> {
        let Some(namespace) = &interface.namespace else {
            return Self::open_here(interface, ethertype, group);
        };
        let opened = namespace.within(|| Self::open_here(interface, ethertype, group));
        opened.map_err(|source| SocketError::System {
            step: "enter the network namespace",
            source,
        })?
    }

    fn open_here(
        interface: &Interface,
        ethertype: u16,
        group: [u8; 6],
    ) -> Result<Self, SocketError> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // Protocol 0: nothing arrives before bind() names the interface.
        // SAFETY: plain system call; the result is checked before it becomes an OwnedFd.
        let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if fd < 0 {
            let source = io::Error::last_os_error();
            return Err(match source.raw_os_error() {
                Some(libc::EPERM | libc::EACCES) => SocketError::NotPermitted,
                _ => SocketError::System {
                    step: "open a packet socket",
                    source,
                },
            });
        }
        // SAFETY: fd is open and owned by nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let step = |step| move |source| SocketError::System { step, source };

        // Without CAP_NET_ADMIN the plain option, capped by net.core.rmem_max, has to do.
        if set_option(
            &fd,
            libc::SOL_SOCKET,
            libc::SO_RCVBUFFORCE,
            &RECEIVE_BUFFER_BYTES,
        )
        .is_err()
        {
            set_option(
                &fd,
                libc::SOL_SOCKET,
                libc::SO_RCVBUF,
                &RECEIVE_BUFFER_BYTES,
            )
            .map_err(step("set the receive buffer"))?;
        }
        set_option(
            &fd,
            libc::SOL_SOCKET,
            libc::SO_SNDBUF,
            &(SEND_BUFFER_BYTES / 2),
        )
        .map_err(step("set the send buffer"))?;
        // Missing before Linux 4.20; then the EtherType filter alone keeps our own frames out.
        let _ = set_option(&fd, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1_i32);

        // SAFETY: packet_mreq is plain data for which all zeros is a valid value.
        let mut membership: libc::packet_mreq = unsafe { zeroed() };
        membership.mr_ifindex = interface.index;
        membership.mr_type = libc::PACKET_MR_MULTICAST as u16;
        membership.mr_alen = 6;
        membership.mr_address[..6].copy_from_slice(&group);
        set_option(
            &fd,
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            &membership,
        )
        .map_err(step("join the worm group address"))?;

        // SAFETY: sockaddr_ll is plain data for which all zeros is a valid value.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = ethertype.to_be();
        address.sll_ifindex = interface.index;
        // SAFETY: address is a valid sockaddr_ll of the length given and outlives the call.
        let bound = unsafe {
            libc::bind(
                fd.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        if bound < 0 {
            return Err(step("bind the packet socket")(io::Error::last_os_error()));
        }
        let frame_bytes_max = WORM_MTU_BYTES_MAX.min(interface.mtu_bytes.max(1500)) as usize;
        let receive = ReceiveBatch::new(frame_bytes_max + ETHERNET_HEADER_BYTES);
        Ok(Self {
            fd,
            receive,
            kernel_drops: 0,
        })
    }
}

fn set_option<T>(fd: &OwnedFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    // SAFETY: value is a valid T of the length given and outlives the call.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
