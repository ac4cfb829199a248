//! Frames that an interface seems to receive, made by the kernel itself.
//!
//! An XDP program that lets every frame pass is run on copies of a frame ("live frames",
//! Linux 5.18): they enter the network stack as if they had come in by the interface. No
//! other interface sends them, so this costs a fraction of what sending does, and one core
//! offers more than a switch takes.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use wormcast_switch_ports::Interface;

/// Commands of bpf(2) (linux/bpf.h).
const BPF_PROG_LOAD: i64 = 5;
const BPF_PROG_TEST_RUN: i64 = 10;
const BPF_LINK_CREATE: i64 = 28;

const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_XDP: u32 = 37;
const XDP_PASS: u64 = 2;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
const BPF_F_TEST_XDP_LIVE_FRAMES: u32 = 1 << 1;

/// Frames that go through the stack together.
const BATCH_FRAMES: u32 = 64;

/// `struct bpf_insn`: `r0 = XDP_PASS`, `exit`.
const PASS: [u64; 2] = [0xb7 | XDP_PASS << 32, 0x95];

#[repr(C)]
#[derive(Default)]
struct Load {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    rest: [u64; 12],
}

#[repr(C)]
#[derive(Default)]
struct LinkCreate {
    prog_fd: u32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
    rest: [u64; 4],
}

#[repr(C)]
#[derive(Default)]
struct TestRun {
    prog_fd: u32,
    retval: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    ctx_size_in: u32,
    ctx_size_out: u32,
    ctx_in: u64,
    ctx_out: u64,
    flags: u32,
    cpu: u32,
    batch_size: u32,
    padding: u32,
}

/// `struct xdp_md`.
#[repr(C)]
#[derive(Default)]
struct Context {
    data: u32,
    data_end: u32,
    data_meta: u32,
    ingress_ifindex: u32,
    rx_queue_index: u32,
    egress_ifindex: u32,
}

/// Makes an interface receive.
pub struct Injector {
    program: OwnedFd,
    /// The interface has its receive queues ready only while a program is attached to it.
    _attached: OwnedFd,
    interface: u32,
}

impl Injector {
    /// For an interface whose driver knows XDP, as veth does. Needs root.
    pub fn open(interface: &Interface) -> io::Result<Self> {
        let load = Load {
            prog_type: BPF_PROG_TYPE_XDP,
            insn_cnt: PASS.len() as u32,
            insns: PASS.as_ptr() as u64,
            license: c"GPL".as_ptr() as u64,
            ..Load::default()
        };
        let program = descriptor(bpf(BPF_PROG_LOAD, &load)?);
        let link = LinkCreate {
            prog_fd: program.as_raw_fd() as u32,
            target_ifindex: interface.index(),
            attach_type: BPF_XDP,
            flags: XDP_FLAGS_DRV_MODE,
            ..LinkCreate::default()
        };
        let attached = descriptor(bpf(BPF_LINK_CREATE, &link)?);
        Ok(Self {
            program,
            _attached: attached,
            interface: interface.index(),
        })
    }

    /// Lets a frame arrive `count` times.
    pub fn inject(&self, frame: &[u8], count: u32) -> io::Result<()> {
        let context = Context {
            data_end: frame.len() as u32,
            ingress_ifindex: self.interface,
            ..Context::default()
        };
        let run = TestRun {
            prog_fd: self.program.as_raw_fd() as u32,
            data_size_in: frame.len() as u32,
            data_in: frame.as_ptr() as u64,
            repeat: count,
            ctx_size_in: mem::size_of::<Context>() as u32,
            ctx_in: &raw const context as u64,
            flags: BPF_F_TEST_XDP_LIVE_FRAMES,
            batch_size: BATCH_FRAMES,
            ..TestRun::default()
        };
        bpf(BPF_PROG_TEST_RUN, &run).map(|_| ())
    }
}

fn bpf<T>(command: i64, attributes: &T) -> io::Result<i64> {
    // SAFETY: the attributes are of the layout of this command and outlive the call, as do
    // the bytes they point to; the kernel writes only to members meant for it, and nobody
    // reads those.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_ref(attributes),
            mem::size_of::<T>(),
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

fn descriptor(number: i64) -> OwnedFd {
    // SAFETY: the kernel has just given us this descriptor; nobody else has it.
    unsafe { OwnedFd::from_raw_fd(number as i32) }
}
