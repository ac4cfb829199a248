//! A forwarder that treats worms as SPEC.md §3 asks of a switch: UNICAST and TREE. It can
//! lose frames, and remembers what it has seen.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use wormcast_agent::link::{Interface, PacketSocket, SendBlocked, Waker};
use wormcast_wire::forward::{self, Copy};
use wormcast_wire::{ETHERTYPE_WORM, WORM_MAC};

const ETHERTYPE_LLDP: u16 = 0x88cc;

pub struct TestSwitch {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// One frame in so many is lost; 0: none.
    lose_one_in: AtomicU32,
    forwarded: AtomicU64,
    lost: AtomicU64,
    bad: AtomicU64,
    /// Port and frame of discovery frames.
    discovered: Mutex<Vec<(usize, Vec<u8>)>>,
    /// Frames to be sent out of a port.
    last_frames: Mutex<Vec<Vec<u8>>>,
}

impl TestSwitch {
    pub fn start(ports: Vec<String>) -> Self {
        let shared = Arc::new(Shared::default());
        let threads = (0..ports.len())
            .map(|port| {
                let (ports, shared) = (ports.clone(), Arc::clone(&shared));
                std::thread::spawn(move || serve_port(port, &ports, &shared))
            })
            .collect();
        Self { shared, threads }
    }

    pub fn lose_one_in(&self, frames: u32) {
        self.shared.lose_one_in.store(frames, Ordering::Relaxed);
    }

    pub fn forwarded(&self) -> u64 {
        self.shared.forwarded.load(Ordering::Relaxed)
    }

    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    /// Worms that no switch would forward.
    pub fn bad(&self) -> u64 {
        self.shared.bad.load(Ordering::Relaxed)
    }

    pub fn discovered(&self) -> Vec<(usize, Vec<u8>)> {
        self.shared.discovered.lock().unwrap().clone()
    }

    /// The last frames that came in, oldest first.
    pub fn last_frames(&self) -> Vec<Vec<u8>> {
        self.shared.last_frames.lock().unwrap().clone()
    }
}

impl Drop for TestSwitch {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Takes what comes in by one port and sends it out by others.
fn serve_port(port: usize, ports: &[String], shared: &Shared) {
    let open = |name: &String, ethertype| {
        PacketSocket::open(&Interface::find(name).unwrap(), ethertype, WORM_MAC).unwrap()
    };
    let mut input = open(&ports[port], ETHERTYPE_WORM);
    let mut discovery = open(&ports[port], ETHERTYPE_LLDP);
    let outputs: Vec<PacketSocket> = ports.iter().map(|name| open(name, 0)).collect();
    let waker = Waker::new().unwrap();
    let mut number = 0_u32;
    while !shared.stop.load(Ordering::Relaxed) {
        let socket = std::os::fd::AsFd::as_fd(&input);
        waker
            .wait(Some(socket), true, false, Some(Duration::from_millis(20)))
            .unwrap();
        for index in 0..discovery.receive().unwrap_or(0) {
            let frame = discovery.frame(index).unwrap().to_vec();
            shared.discovered.lock().unwrap().push((port, frame));
        }
        for index in 0..input.receive().unwrap_or(0) {
            let frame = input.frame(index).unwrap();
            remember(frame, shared);
            let lose_one_in = shared.lose_one_in.load(Ordering::Relaxed);
            for Copy { port: out, frame } in forward(frame, shared) {
                number = number.wrapping_add(1);
                if lose_one_in > 0 && number.is_multiple_of(lose_one_in) {
                    shared.lost.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                send(outputs.get(usize::from(out)), &frame, shared);
            }
        }
    }
}

fn remember(frame: &[u8], shared: &Shared) {
    let mut last = shared.last_frames.lock().unwrap();
    if last.len() == 64 {
        last.remove(0);
    }
    last.push(frame.to_vec());
}

fn send(output: Option<&PacketSocket>, frame: &[u8], shared: &Shared) {
    let Some(output) = output else {
        shared.bad.fetch_add(1, Ordering::Relaxed);
        return;
    };
    for _ in 0..100 {
        match output.send(&[[frame, &[]]]) {
            Ok(_) => {
                shared.forwarded.fetch_add(1, Ordering::Relaxed);
                return;
            }
            // Back-pressure, like that of a lossless switch.
            Err(SendBlocked::Buffer | SendBlocked::Queue) => {
                std::thread::sleep(Duration::from_millis(1))
            }
            Err(_) => break,
        }
    }
    shared.lost.fetch_add(1, Ordering::Relaxed);
}

/// Copies by what wormcast-wire says of a switch; what it has none for is bad.
fn forward(frame: &[u8], shared: &Shared) -> Vec<Copy> {
    let copies = forward::forward(frame);
    if copies.is_empty() {
        shared.bad.fetch_add(1, Ordering::Relaxed);
    }
    copies
}
