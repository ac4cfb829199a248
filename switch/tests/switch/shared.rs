//! A switch that several threads share.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::messages::{FORWARD, action, address, insert, table};
use super::network::{add_link, in_namespace, run};
use super::rig::{PATIENCE, Rig, runtime, settings};
use wormcast_switch_dataplane::{DataplaneSettings, PortSettings, Snapshot};
use wormcast_switch_pipeline::PortId;
use wormcast_switch_ports::{Interface, ReceiveRing, TransmitQueue};

const PORTS: u16 = 4;

/// A switch with ports 1 to 4, whose other ends are `h1` to `h4`. Frames to 02:…:0N leave by
/// port N.
struct Testbed {
    runtime: tokio::runtime::Runtime,
    rig: Rig,
}

impl Testbed {
    fn start(workers: usize) -> Self {
        let mut settings = settings();
        settings.ring_frames = 8_192;
        settings.queue_frames = 16_384;
        for port in 1..=PORTS {
            add_link(&format!("s{port}"), &format!("h{port}"));
            let interface = PortSettings::interface(port, format!("s{port}"));
            settings.ports.push(interface);
        }
        let ends = (1..=PORTS).flat_map(|port| [format!("s{port}"), format!("h{port}")]);
        receive_in_order(&ends.collect::<Vec<_>>());
        let runtime = runtime();
        let rig = runtime.block_on(async {
            let rig = Rig::start_as(&DataplaneSettings {
                workers,
                ..DataplaneSettings::single(settings, 1)
            })
            .await;
            let entries = (1..=PORTS as u8).map(|port| {
                let to_port = action(FORWARD, &[&[port]]);
                insert(table(address(&to(port), to_port)))
            });
            let mut controller = rig.controller().await;
            controller.write(entries.collect()).await.unwrap();
            rig
        });
        Self { runtime, rig }
    }

    fn snapshot(&self) -> Snapshot {
        self.runtime
            .block_on(self.rig.dataplane.run(|switch| switch.snapshot()))
            .unwrap()
    }

    /// The snapshot once so many frames have left by all ports and were counted.
    fn snapshot_after(&self, frames: u64) -> Snapshot {
        let start = Instant::now();
        loop {
            let snapshot = self.snapshot();
            let sent: u64 = snapshot.ports.iter().map(|port| port.sent_frames).sum();
            if sent >= frames || start.elapsed() > PATIENCE {
                return snapshot;
            }
        }
    }
}

/// Has one processor take what arrives at these interfaces. A veth hands frames over on the
/// processor that sent them, and two of them may deliver in another order than was sent in
/// (seen where a token bucket sends at times by a timer): a test of the order of frames is
/// not about that.
fn receive_in_order(interfaces: &[String]) {
    let files = interfaces
        .iter()
        .map(|name| format!("/sys/class/net/{name}/queues/rx-0/rps_cpus"));
    // The tree of this namespace, for this command alone. Kernels for one processor do not
    // have the file.
    let mut script = "mount -t sysfs sysfs /sys".to_owned();
    for file in files {
        script += &format!(" && {{ [ ! -e {file} ] || echo 1 > {file}; }}");
    }
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .output();
    let output = output.unwrap_or_else(|error| panic!("unshare: {error}"));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {text}");
}

fn to(port: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, port]
}

fn frame(from: u8, to_port: u8, number: u32) -> Vec<u8> {
    let mut frame = to(to_port).to_vec();
    frame.extend([2, 0, 0, 0, 1, from, 0x88, 0xb6]);
    frame.extend(number.to_be_bytes());
    frame.resize(64 + usize::from(from) * 50, from);
    frame
}

fn sender(port: u8) -> TransmitQueue {
    TransmitQueue::open(&Interface::find(&format!("h{port}")).unwrap()).unwrap()
}

fn receiver(port: u8) -> ReceiveRing {
    ReceiveRing::open(&Interface::find(&format!("h{port}")).unwrap(), 16_384).unwrap()
}

/// Sends frames with the numbers 0 to `count` − 1.
fn send_all(sender: &mut TransmitQueue, from: u8, to: u8, count: u32) {
    for number in 0..count {
        while !sender.push(&frame(from, to, number)) {
            sender.flush();
        }
    }
    while !sender.is_empty() {
        sender.flush();
    }
}

fn receive(receiver: &mut ReceiveRing, count: usize) -> Vec<Vec<u8>> {
    let (mut frames, start) = (Vec::new(), Instant::now());
    while frames.len() < count && start.elapsed() < PATIENCE {
        receiver.receive(64, |frame| frames.push(frame.to_vec()));
        std::thread::sleep(Duration::from_micros(100));
    }
    frames
}

/// Four flows at once, one from each port to another.
#[test]
fn every_flow_keeps_its_order_and_every_frame_is_counted_once() {
    for workers in [2, 3, 6] {
        in_namespace(move || {
            const FRAMES: u32 = 3_000;
            let testbed = Testbed::start(workers);
            let pairs = [(1u8, 2u8), (2, 1), (3, 4), (4, 3)];
            let mut receivers = pairs.map(|(_, to)| receiver(to));
            let mut senders = pairs.map(|(from, _)| sender(from));
            std::thread::scope(|scope| {
                for (sender, (from, to)) in senders.iter_mut().zip(pairs) {
                    scope.spawn(move || send_all(sender, from, to, FRAMES));
                }
            });
            for (receiver, (from, to)) in receivers.iter_mut().zip(pairs) {
                let frames = receive(receiver, FRAMES as usize);
                let expected: Vec<_> = (0..FRAMES).map(|number| frame(from, to, number)).collect();
                assert!(frames == expected, "{workers}: {from} to {to}");
            }
            let snapshot = testbed.snapshot_after(4 * u64::from(FRAMES));
            let threads: BTreeSet<usize> =
                snapshot.ports[..4].iter().map(|port| port.thread).collect();
            assert_eq!(threads.len(), workers.min(usize::from(PORTS)), "all work");
            for (from, to) in pairs {
                let (received, sent) = (
                    &snapshot.ports[usize::from(from) - 1],
                    &snapshot.ports[usize::from(to) - 1],
                );
                let bytes = u64::from(FRAMES) * frame(from, to, 0).len() as u64;
                assert_eq!(
                    (received.received_frames, received.received_bytes),
                    (FRAMES.into(), bytes)
                );
                assert_eq!((sent.sent_frames, sent.sent_bytes), (FRAMES.into(), bytes));
            }
        });
    }
}

/// Three ports send to one, so that threads meet at its link; its queue holds what the link
/// does not take at once.
#[test]
fn many_ports_may_send_by_one() {
    in_namespace(|| {
        const FRAMES: u32 = 2_000;
        let testbed = Testbed::start(3);
        // Slower than all of them together, and it pushes back.
        run("tc qdisc add dev s4 root tbf rate 20mbit burst 16kb limit 32kb");
        let mut at_4 = receiver(4);
        std::thread::scope(|scope| {
            for from in 1..=3 {
                scope.spawn(move || send_all(&mut sender(from), from, 4, FRAMES));
            }
        });
        let frames = receive(&mut at_4, 3 * FRAMES as usize);
        for from in 1..=3 {
            let of_flow: Vec<_> = frames.iter().filter(|frame| frame[11] == from).collect();
            let expected: Vec<_> = (0..FRAMES).map(|number| frame(from, 4, number)).collect();
            assert!(
                of_flow == expected.iter().collect::<Vec<_>>(),
                "{from} to 4"
            );
        }
        let snapshot = testbed.snapshot_after(3 * u64::from(FRAMES));
        assert_eq!(snapshot.ports[3].sent_frames, 3 * u64::from(FRAMES));
        assert!(snapshot.ports[3].send_retried > 0);
    });
}

/// Interfaces go, come back, grow and are detached under load; afterwards everything works.
#[test]
fn interfaces_change_under_load() {
    in_namespace(|| {
        let testbed = Testbed::start(3);
        let stop = Arc::new(AtomicBool::new(false));
        let load = |from: u8, to: u8| {
            let stop = Arc::clone(&stop);
            let mut sender = sender(from);
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    sender.push(&frame(from, to, 0));
                    sender.flush();
                }
            })
        };
        let loads = [load(1, 2), load(3, 4)];
        // Until every load has brought some frames more.
        let pause = || {
            let received = || {
                let ports = testbed.snapshot().ports;
                [0, 2].map(|at| ports[at].received_frames)
            };
            let (before, start) = (received(), Instant::now());
            while received()
                .iter()
                .zip(before)
                .any(|(now, before)| *now < before + 100)
            {
                assert!(start.elapsed() < PATIENCE);
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        pause();
        run("ip link set s2 mtu 9000");
        pause();
        run("ip link set s4 down");
        pause();
        run("ip link set s4 up");
        run("ip link del s2");
        pause();
        add_link("s2", "h2");
        let change = testbed.rig.dataplane.run(|switch| {
            switch.remove_port(PortId(4))?;
            switch.add_port(PortId(4), "s4")
        });
        testbed.runtime.block_on(change).unwrap().unwrap();
        pause();
        pause();
        // All of them go on to receive and to send.
        let mut at = [2, 4].map(receiver);
        for receiver in &mut at {
            assert!(receive(receiver, 100).len() >= 100);
        }
        stop.store(true, Ordering::Relaxed);
        for load in loads {
            load.join().unwrap();
        }
        let mut at_1 = receiver(1);
        send_all(&mut sender(4), 4, 1, 500);
        assert_eq!(receive(&mut at_1, 500).len(), 500);
    });
}

/// Ports 1 and 3 begin on one thread; under load they part.
#[test]
fn busy_ports_come_to_threads_of_their_own() {
    in_namespace(|| {
        let testbed = Testbed::start(2);
        let mut senders = [(1, 2), (3, 4)].map(|(from, to)| (sender(from), frame(from, to, 0)));
        let threads = || {
            let snapshot = testbed.snapshot();
            (snapshot.ports[0].thread, snapshot.ports[2].thread)
        };
        assert_eq!(threads(), (0, 0));
        let start = Instant::now();
        loop {
            for (sender, frame) in &mut senders {
                sender.push(frame);
                sender.flush();
            }
            let (one, other) = threads();
            if one != other {
                return;
            }
            assert!(start.elapsed() < PATIENCE);
        }
    });
}

/// A command runs soon although frames never stop, and sees whole packets only.
#[test]
fn commands_run_between_batches_of_all_threads() {
    in_namespace(|| {
        let testbed = Testbed::start(2);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for (from, to) in [(1, 2), (3, 4)] {
                let (stop, mut sender) = (&stop, sender(from));
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        sender.push(&frame(from, to, 0));
                        sender.flush();
                    }
                });
            }
            let start = Instant::now();
            let mut asked = 0;
            let mut received = 0;
            while (asked < 200 || received == 0) && start.elapsed() < PATIENCE {
                let snapshot = testbed.snapshot();
                let now: u64 = snapshot.ports.iter().map(|port| port.received_frames).sum();
                assert!(now >= received);
                received = now;
                asked += 1;
            }
            stop.store(true, Ordering::Relaxed);
            assert!(asked >= 200 && received > 0, "{asked}, {received}");
        });
    });
}
