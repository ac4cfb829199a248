//! The packet socket: whole Ethernet frames in and out, in batches.
//!
//! The send buffer is kept small on purpose. Frames waiting in a queueing discipline (say
//! tbf, at link rate) count against it, so when the link is the bottleneck the socket
//! becomes unwritable before the discipline overflows: the agent waits for the kernel's
//! "writable" instead of losing frames or polling.

use super::{Interface, WORM_MTU_BYTES_MAX};
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Frames moved by one system call at most.
pub const BATCH_FRAMES_MAX: usize = 64;
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

/// Why frames cannot be received now.
#[derive(Debug)]
pub enum ReceiveError {
    /// The interface went down or away.
    Down,
    System(io::Error),
}

/// Why the first frame of a batch was not taken.
#[derive(Debug)]
pub enum SendBlocked {
    /// The socket's send buffer is full: wait until it is writable.
    Buffer,
    /// The queueing discipline dropped the frame (ENOBUFS): try again a little later.
    Queue,
    /// The interface is down or gone.
    Down,
    /// The frame does not fit the interface's MTU.
    TooLong,
    /// Anything else; the frame is lost.
    System(io::Error),
}

/// A packet socket bound to one interface and one EtherType.
pub struct PacketSocket {
    fd: OwnedFd,
    receive: ReceiveBatch,
    kernel_drops: u64,
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

    /// Takes the frames that wait, at most [`BATCH_FRAMES_MAX`]; returns how many. Read
    /// them with [`frame`](Self::frame) before the next call.
    ///
    /// # Errors
    /// [`ReceiveError::Down`] once after the interface went down.
    pub fn receive(&mut self) -> Result<usize, ReceiveError> {
        self.receive.count = 0;
        let headers = &mut self.receive.headers;
        // SAFETY: every header points at one iovec and that at one slot of `slots`; all three
        // boxed slices live as long as self and are touched by nobody during the call.
        let received = unsafe {
            libc::recvmmsg(
                self.fd.as_raw_fd(),
                headers.as_mut_ptr(),
                headers.len() as u32,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        if received < 0 {
            let source = io::Error::last_os_error();
            return match source.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR) => Ok(0),
                Some(libc::ENETDOWN | libc::ENODEV | libc::ENXIO) => Err(ReceiveError::Down),
                _ => Err(ReceiveError::System(source)),
            };
        }
        self.receive.count = received.unsigned_abs() as usize;
        Ok(self.receive.count)
    }

    /// Frame `index` of the last batch; `None` for one longer than the interface's MTU.
    ///
    /// # Panics
    /// If `index` is not below what [`receive`](Self::receive) returned.
    pub fn frame(&self, index: usize) -> Option<&[u8]> {
        self.receive.frame(index)
    }

    /// Sends frames, each given as a head and a body, in order; returns how many were
    /// taken (at least one).
    ///
    /// # Errors
    /// [`SendBlocked`] says why the first one was not taken.
    pub fn send(&self, frames: &[[&[u8]; 2]]) -> Result<usize, SendBlocked> {
        let count = frames.len().min(BATCH_FRAMES_MAX);
        if count == 0 {
            return Ok(0);
        }
        // SAFETY: iovec and mmsghdr are plain data for which all zeros is a valid value.
        let mut parts: [[libc::iovec; 2]; BATCH_FRAMES_MAX] = unsafe { zeroed() };
        // SAFETY: as above.
        let mut headers: [libc::mmsghdr; BATCH_FRAMES_MAX] = unsafe { zeroed() };
        for ((frame, part), header) in frames.iter().zip(&mut parts).zip(&mut headers) {
            for (bytes, vector) in frame.iter().zip(part.iter_mut()) {
                vector.iov_base = bytes.as_ptr().cast_mut().cast();
                vector.iov_len = bytes.len();
            }
            header.msg_hdr.msg_iov = part.as_mut_ptr();
            header.msg_hdr.msg_iovlen = if frame[1].is_empty() { 1 } else { 2 };
        }
        // SAFETY: the first `count` headers point at iovecs of `parts`, those at bytes
        // borrowed in `frames`; the kernel only reads them.
        let sent = unsafe {
            libc::sendmmsg(
                self.fd.as_raw_fd(),
                headers.as_mut_ptr(),
                count as u32,
                libc::MSG_DONTWAIT,
            )
        };
        if sent >= 0 {
            return Ok(sent.unsigned_abs() as usize);
        }
        let source = io::Error::last_os_error();
        Err(match source.raw_os_error() {
            Some(libc::EAGAIN | libc::EINTR) => SendBlocked::Buffer,
            Some(libc::ENOBUFS) => SendBlocked::Queue,
            Some(libc::ENETDOWN | libc::ENODEV | libc::ENXIO) => SendBlocked::Down,
            Some(libc::EMSGSIZE) => SendBlocked::TooLong,
            _ => SendBlocked::System(source),
        })
    }

    /// Frames the kernel dropped because the receive buffer was full, since the socket was
    /// opened.
    pub fn kernel_drops(&mut self) -> u64 {
        // SAFETY: tpacket_stats is plain data for which all zeros is a valid value.
        let mut statistics: libc::tpacket_stats = unsafe { zeroed() };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: the buffer is as long as `length` says and outlives the call.
        let result = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &raw mut length,
            )
        };
        if result == 0 {
            // The kernel starts again at zero after each reading.
            self.kernel_drops += u64::from(statistics.tp_drops);
        }
        self.kernel_drops
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
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

/// Room for one batch. The kernel's structures point into each other, so all of them are
/// boxed once and never move.
struct ReceiveBatch {
    slots: Box<[u8]>,
    slot_bytes: usize,
    headers: Box<[libc::mmsghdr]>,
    /// Held for the pointers in `headers`.
    _vectors: Box<[libc::iovec]>,
    count: usize,
}

// SAFETY: the raw pointers point into the boxes of the same value, which move with it.
unsafe impl Send for ReceiveBatch {}

impl ReceiveBatch {
    fn new(frame_bytes_max: usize) -> Self {
        let slot_bytes = frame_bytes_max.next_multiple_of(64);
        let mut slots = vec![0; slot_bytes * BATCH_FRAMES_MAX].into_boxed_slice();
        let mut vectors: Box<[libc::iovec]> = slots
            .chunks_exact_mut(slot_bytes)
            .map(|slot| libc::iovec {
                iov_base: slot.as_mut_ptr().cast(),
                iov_len: slot_bytes,
            })
            .collect();
        let headers = vectors
            .iter_mut()
            .map(|vector| {
                // SAFETY: mmsghdr is plain data for which all zeros is a valid value.
                let mut header: libc::mmsghdr = unsafe { zeroed() };
                header.msg_hdr.msg_iov = vector;
                header.msg_hdr.msg_iovlen = 1;
                header
            })
            .collect();
        Self {
            slots,
            slot_bytes,
            headers,
            _vectors: vectors,
            count: 0,
        }
    }

    fn frame(&self, index: usize) -> Option<&[u8]> {
        assert!(
            index < self.count,
            "frame {index} of a batch of {}",
            self.count
        );
        let header = &self.headers[index];
        if header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
            return None;
        }
        let start = index * self.slot_bytes;
        Some(&self.slots[start..start + (header.msg_len as usize).min(self.slot_bytes)])
    }
}
