//! Interfaces without a link layer, whose packets begin with the header of IP and may be shorter
//! than one of Ethernet.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use super::network::{in_namespace, run};
use super::publishing::wait_for;
use super::rig::{Rig, runtime, settings};
use wormcast_switch_dataplane::PortSettings;
use wormcast_switch_pipeline::LoadedProgram;
use wormcast_switch_pipeline::{Pipeline, PipelineConfig};
use wormcast_switch_ports::transmit::Flushed;
use wormcast_switch_ports::{Interface, TransmitQueue};

/// Sends by port 1 whatever has nine bytes and does not begin with 1, 2 or 3.
const PROGRAM: &str = include_str!("../programs/digests.json");

/// A TUN of this network namespace that is up; it goes with the value.
fn tun(name: &str) -> File {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options.custom_flags(libc::O_NONBLOCK);
    let tun = options.open("/dev/net/tun").unwrap();
    // SAFETY: all zeros is a valid ifreq: a name, and a union of plain numbers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the request is the ifreq that TUNSETIFF reads and writes, and outlives the call.
    let done = unsafe { libc::ioctl(tun.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    run(&format!("ip link set {name} up"));
    tun
}

/// The next packet that the kernel has for whoever holds the TUN.
fn read(tun: &mut File) -> Vec<u8> {
    let mut bytes = [0; 2_048];
    let length = wait_for("a packet", || tun.read(&mut bytes).ok());
    bytes[..length].to_vec()
}

#[test]
fn short_packets_pass_where_there_is_no_link_layer() {
    in_namespace(|| {
        let (mut t1, mut t2) = (tun("t1"), tun("t2"));
        let mut settings = settings();
        settings.ports = vec![
            PortSettings::interface(1, "t1"),
            PortSettings::interface(2, "t2"),
        ];
        let runtime = runtime();
        let rig = runtime.block_on(Rig::start_with(&settings));
        let program = Arc::new(LoadedProgram::from_json(PROGRAM).unwrap());
        let installed = rig.dataplane.run(move |switch| {
            switch.install(Pipeline::new(program, PipelineConfig::default()));
        });
        runtime.block_on(installed).unwrap();
        for length in [9, 13, 14, 20, 1_500] {
            let packet: Vec<u8> = (0..length).map(|byte| 0x45 ^ byte as u8).collect();
            t2.write_all(&packet).unwrap();
            assert_eq!(read(&mut t1), packet, "{length} bytes");
        }
        let snapshot = rig.dataplane.run(|switch| switch.snapshot());
        let port = &runtime.block_on(snapshot).unwrap().ports[0];
        assert_eq!((port.sent_frames, port.dropped_frames()), (5, 0));
    });
}

#[test]
fn a_packet_of_no_bytes_is_none() {
    in_namespace(|| {
        let mut tun = tun("t1");
        let mut sender = TransmitQueue::open(&Interface::find("t1").unwrap()).unwrap();
        assert!(sender.push(&[]) && sender.push(&[0x45]));
        assert_eq!(sender.flush(), Flushed::Empty);
        assert_eq!(read(&mut tun), [0x45]);
        let counts = sender.counts();
        assert_eq!((counts.frames, counts.bad_length), (1, 1));
    });
}
