//! A forwarder that treats worms as SPEC.md §3 asks of a switch: UNICAST and TREE. It can
//! lose frames, and remembers what it has seen.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use wormcast_agent::link::{Interface, PacketSocket, SendBlocked, Waker};
use wormcast_wire::worm::{self, Header, Kind};
use wormcast_wire::{ETHERNET_LENGTH, ETHERTYPE_WORM, WORM_MAC};

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
            for (out, frame) in forward(frame, shared) {
                number = number.wrapping_add(1);
                if lose_one_in > 0 && number.is_multiple_of(lose_one_in) {
                    shared.lost.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                send(outputs.get(out), &frame, shared);
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

fn forward(frame: &[u8], shared: &Shared) -> Vec<(usize, Vec<u8>)> {
    let copies = worm::decode(frame)
        .ok()
        .and_then(|worm| match worm.header.kind {
            Kind::Unicast => {
                let (&port, rest) = worm.route.split_first()?;
                Some(vec![(
                    usize::from(port),
                    with_route(frame, &worm.header, rest, worm.payload),
                )])
            }
            Kind::Tree => {
                let branches = branches(worm.route)?;
                let copy = |(port, route): (usize, Vec<u8>)| {
                    (port, with_route(frame, &worm.header, &route, worm.payload))
                };
                Some(branches.into_iter().map(copy).collect())
            }
            _ => None,
        });
    copies.unwrap_or_else(|| {
        shared.bad.fetch_add(1, Ordering::Relaxed);
        Vec::new()
    })
}

/// Ports and the routes of the copies that leave by them.
fn branches(route: &[u8]) -> Option<Vec<(usize, Vec<u8>)>> {
    let mut found = Vec::new();
    let mut rest = route;
    loop {
        match rest {
            [0xff] if !found.is_empty() => return Some(found),
            [port, length, more @ ..] if *port < 254 && more.len() > usize::from(*length) => {
                let (sub, after) = more.split_at(usize::from(*length));
                let mut route = sub.to_vec();
                if !route.is_empty() {
                    route.push(0xff);
                }
                found.push((usize::from(*port), route));
                rest = after;
            }
            _ => return None,
        }
    }
}

fn with_route(frame: &[u8], header: &Header, route: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0; ETHERNET_LENGTH + worm::HEADER_LENGTH + route.len() + payload.len()];
    let header = Header {
        hops: header.hops + 1,
        ..*header
    };
    let mut mac = [0; 6];
    mac.copy_from_slice(&frame[6..12]);
    let at = worm::encode(&mut out, mac, &header, route);
    out[at..].copy_from_slice(payload);
    out
}
