//! Frames through the ports of a whole switch.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use super::messages::{FORWARD, action, address, insert, table};
use super::network::{add_link, in_namespace, run, wait_until_links_carry};
use super::rig::{Controller, PATIENCE, Rig, objects, runtime, settings};
use wormcast_switch_dataplane::{
    DataplaneSettings, InterfaceReport, PortSettings, Snapshot, Switch, SwitchSettings,
};
use wormcast_switch_p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use wormcast_switch_pipeline::PortId;
use wormcast_switch_ports::receive::{RING_BYTES_MAX, RING_FRAMES_MAX};
use wormcast_switch_ports::{Interface, ReceiveMode, ReceiveRing, TransmitQueue};

/// Every frame to an address that begins with 02:…:02 leaves by port 2.
const TO_PORT_2: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// How often it is looked whether something has come about.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// A switch with ports 1 and 2, whose other ends are `h1` and `h2`.
struct Testbed {
    runtime: tokio::runtime::Runtime,
    rig: Rig,
    h1: TransmitQueue,
    h2: ReceiveRing,
}

impl Testbed {
    fn start(change: impl FnOnce(&mut SwitchSettings)) -> Self {
        Self::start_on(1, change)
    }

    /// The same, on several threads.
    fn start_on(workers: usize, change: impl FnOnce(&mut SwitchSettings)) -> Self {
        add_link("s1", "h1");
        add_link("s2", "h2");
        let mut settings = settings();
        settings.ports = vec![
            PortSettings::interface(1, "s1"),
            PortSettings::interface(2, "s2"),
        ];
        change(&mut settings);
        let runtime = runtime();
        let rig = runtime.block_on(async {
            let rig = Rig::start_as(&DataplaneSettings {
                workers,
                ..DataplaneSettings::single(settings, 1)
            })
            .await;
            let mut controller = rig.controller().await;
            let entry = insert(table(address(&TO_PORT_2, action(FORWARD, &[&[2]]))));
            controller.write(vec![entry]).await.unwrap();
            rig
        });
        Self {
            runtime,
            rig,
            h1: TransmitQueue::open(&Interface::find("h1").unwrap()).unwrap(),
            h2: ReceiveRing::open(&Interface::find("h2").unwrap(), 4_096).unwrap(),
        }
    }

    fn send(&mut self, frame: &[u8]) {
        assert!(self.h1.push(frame));
        self.h1.flush();
    }

    /// Frames that arrive at `h2` until there are `count`, or until nothing more comes.
    fn receive(&mut self, count: usize) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let start = Instant::now();
        while frames.len() < count && start.elapsed() < PATIENCE {
            self.h2.receive(64, |frame| frames.push(frame.to_vec()));
            std::thread::sleep(Duration::from_micros(200));
        }
        frames
    }

    /// Nothing has arrived at `h2`: what leaves by `s2` after all that the switch has sent is the next to arrive.
    fn receive_nothing(&mut self) {
        let mut s2 = TransmitQueue::open(&Interface::find("s2").unwrap()).unwrap();
        let marker = frame(u32::MAX, 60);
        assert!(s2.push(&marker));
        s2.flush();
        assert_eq!(self.receive(1), [marker]);
    }

    fn ask<T: Send + 'static>(&self, what: impl FnOnce(&mut Switch) -> T + Send + 'static) -> T {
        let answer = self.rig.dataplane.run(what);
        self.runtime.block_on(answer).unwrap()
    }

    fn snapshot(&self) -> Snapshot {
        self.ask(|switch| switch.snapshot())
    }

    /// The first snapshot that is as it should be.
    fn snapshot_when(&self, what: &str, is_so: impl Fn(&Snapshot) -> bool) -> Snapshot {
        let start = Instant::now();
        loop {
            let snapshot = self.snapshot();
            if is_so(&snapshot) {
                return snapshot;
            }
            assert!(start.elapsed() < PATIENCE, "{what}: {snapshot:?}");
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    /// Waits until the switch says of a port what it should say.
    fn await_port(&self, number: u16, is_so: impl Fn(&InterfaceReport) -> bool) {
        let start = Instant::now();
        loop {
            let reports = self.ask(|switch| switch.interface_reports());
            let report = reports
                .into_iter()
                .find(|it| it.status.number == PortId(number));
            if report.as_ref().is_some_and(&is_so) {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "{report:?}");
            std::thread::sleep(LOOK_INTERVAL);
        }
    }
}

/// Of all interfaces.
fn set_mtu(mtu: usize) {
    for interface in ["s1", "h1", "s2", "h2"] {
        run(&format!("ip link set {interface} mtu {mtu}"));
    }
}

fn frame(number: u32, length: usize) -> Vec<u8> {
    let mut frame = TO_PORT_2.to_vec();
    frame.extend([2, 0, 0, 0, 0, 1, 0x88, 0xb6]);
    frame.extend(number.to_be_bytes());
    frame.resize(length, 0x5a);
    frame
}

#[test]
fn frames_of_every_length_pass_unchanged() {
    in_namespace(|| {
        let mut testbed = Testbed::start(|_| {});
        for length in [18, 59, 60, 64, 65, 127, 1_500, 1_514] {
            let sent = frame(length as u32, length);
            testbed.send(&sent);
            assert_eq!(testbed.receive(1), [sent], "{length}");
        }
        let snapshot = testbed.snapshot();
        assert_eq!(snapshot.ports[0].received_frames, 8);
        assert_eq!(snapshot.ports[1].sent_frames, 8);
        assert_eq!(
            snapshot.ports[1].sent_bytes,
            snapshot.ports[0].received_bytes
        );
    });
}

/// Larger frames, with an MTU that was raised while the switch runs.
#[test]
fn a_raised_mtu_is_followed() {
    for (mtu, mode) in [
        (9_000, ReceiveMode::Slots),
        (65_535, ReceiveMode::Slots),
        (65_535, ReceiveMode::Blocks),
    ] {
        in_namespace(move || a_raised_mtu(mtu, mode));
    }
}

fn a_raised_mtu(mtu: usize, mode: ReceiveMode) {
    let mut testbed = Testbed::start(|settings| settings.receive = mode);
    set_mtu(mtu);
    testbed.h1 = TransmitQueue::open(&Interface::find("h1").unwrap()).unwrap();
    testbed.h2 = ReceiveRing::open(&Interface::find("h2").unwrap(), 64).unwrap();
    let longest = mtu + 14;
    // The first is too long for the ring as it was opened, and is counted.
    testbed.send(&frame(0, longest));
    testbed.snapshot_when("too long", |it| it.ports[0].receive_too_long == 1);
    // The switch looks after its interfaces when it is told, and opens them anew.
    for port in [1, 2] {
        testbed.await_port(port, |it| it.mtu == Some(mtu));
    }
    let start = Instant::now();
    let mut has_come = false;
    while !has_come {
        assert!(start.elapsed() < PATIENCE);
        testbed.send(&frame(1, 60));
        testbed.send(&frame(2, longest));
        std::thread::sleep(Duration::from_millis(20));
        (testbed.h2).receive(64, |come| has_come |= come == frame(2, longest));
    }
}

/// Frames beyond jumbo ones, up to the longest that veth carries; one byte more does not leave the host.
#[test]
fn frames_up_to_the_largest_mtu_pass_unchanged() {
    for (workers, mode) in [
        (1, ReceiveMode::Slots),
        (1, ReceiveMode::Blocks),
        (3, ReceiveMode::Slots),
    ] {
        in_namespace(move || {
            let mut testbed = Testbed::start_on(workers, |settings| {
                set_mtu(65_535);
                settings.receive = mode;
            });
            for round in 0..40 {
                for mtu in [60, 9_217, 16_384, 32_768, 65_521, 65_534, 65_535] {
                    let sent = frame(round, mtu + 14);
                    testbed.send(&sent);
                    assert!(testbed.receive(1) == [sent], "{mtu}");
                }
            }
            testbed.send(&frame(0, 65_550));
            assert_eq!(testbed.h1.counts().bad_length, 1);
        });
    }
}

/// However long its frames, a ring takes no more memory: it has fewer of them.
#[test]
fn rings_are_bounded_in_bytes() {
    in_namespace(|| {
        run("ip link add a1 mtu 65535 type veth peer name a2 mtu 65535");
        let interface = Interface::find("a1").unwrap();
        for mode in [ReceiveMode::Slots, ReceiveMode::Blocks] {
            let ring = ReceiveRing::open_as(&interface, RING_FRAMES_MAX, mode).unwrap();
            let bytes = ring.slots() * 65_549;
            assert!(
                (RING_BYTES_MAX * 4 / 5..=RING_BYTES_MAX).contains(&bytes),
                "{bytes}"
            );
        }
    });
}

#[test]
fn a_burst_passes_in_order() {
    in_namespace(|| burst(1, ReceiveMode::Slots));
    in_namespace(|| burst(1, ReceiveMode::Blocks));
    in_namespace(|| burst(3, ReceiveMode::Slots));
}

fn burst(workers: usize, mode: ReceiveMode) {
    let mut testbed = Testbed::start_on(workers, |settings| {
        settings.ring_frames = 2_048;
        settings.receive = mode;
    });
    for number in 0..1_000 {
        while !testbed.h1.push(&frame(number, 100)) {
            testbed.h1.flush();
        }
    }
    testbed.h1.flush();
    let numbers = testbed
        .receive(1_000)
        .into_iter()
        .map(|frame| u32::from_be_bytes(frame[14..18].try_into().unwrap()));
    assert_eq!(numbers.collect::<Vec<_>>(), (0..1_000).collect::<Vec<_>>());
    let start = Instant::now();
    // Another thread counts a frame after it has arrived.
    while testbed.snapshot().ports[1].sent_frames < 1_000 {
        assert!(start.elapsed() < PATIENCE);
    }
    assert_eq!(testbed.snapshot().ports[1].sent_bytes, 100_000);
}

/// The kernel takes a VLAN tag out of a frame that arrives; it is in the frame again.
#[test]
fn vlan_tags_survive() {
    in_namespace(|| tagged(ReceiveMode::Slots));
    in_namespace(|| tagged(ReceiveMode::Blocks));
}

fn tagged(mode: ReceiveMode) {
    let mut testbed = Testbed::start(|settings| settings.receive = mode);
    for tpid in [[0x81, 0x00], [0x88, 0xa8]] {
        let plain = frame(1, 80);
        let tagged = [&plain[..12], &tpid, &[0x60, 0x05], &plain[12..]].concat();
        testbed.send(&tagged);
        assert_eq!(testbed.receive(1), [tagged]);
    }
    assert_eq!(testbed.snapshot().ports[0].received_bytes, 2 * 84);
}

/// A checksum that the sender's kernel left to its interface is complete.
#[test]
fn checksums_left_to_the_interface_are_completed() {
    in_namespace(|| {
        let mut testbed = Testbed::start(|_| {});
        run("ip addr add 10.0.0.1/24 dev h1");
        run("ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev h1");
        let socket = UdpSocket::bind("10.0.0.1:4000").unwrap();
        socket.send_to(b"checksum me", "10.0.0.2:5000").unwrap();
        let frame = testbed.receive(1).remove(0);
        let (ip, udp) = (&frame[14..34], &frame[34..]);
        let pseudo = [&ip[12..20], &[0, 17], &udp[4..6]].concat();
        let words = |bytes: &[u8]| -> u64 {
            let pairs = bytes.chunks(2);
            pairs
                .map(|pair| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u64::from(*low)))
                .sum()
        };
        let mut sum = words(&pseudo) + words(udp);
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        assert_eq!(sum, 0xffff, "{frame:02x?}");
    });
}

#[test]
fn an_interface_may_go_down_and_come_up() {
    in_namespace(|| {
        let mut testbed = Testbed::start(|_| {});
        for number in 0..4 {
            run("ip link set s1 down");
            run("ip link set s2 down");
            // It may have been told, or not yet.
            if number % 2 == 0 {
                testbed.await_port(1, |it| !it.status.up);
                testbed.await_port(2, |it| !it.status.up);
            }
            run("ip link set s1 up");
            run("ip link set s2 up");
            wait_until_links_carry(&["s1", "h1", "s2", "h2"]);
            testbed.send(&frame(number, 90));
            assert_eq!(testbed.receive(1), [frame(number, 90)]);
        }
    });
}

#[test]
fn an_interface_may_go_away_and_come_back() {
    for workers in [1, 2] {
        in_namespace(move || {
            let mut testbed = Testbed::start_on(workers, |_| {});
            testbed.send(&frame(0, 90));
            assert_eq!(testbed.receive(1), [frame(0, 90)]);
            run("ip link del s2");
            // Lost and counted, whether the switch knows by then that the interface has gone or not.
            let lost = |it: &Snapshot| {
                let port = &it.ports[1];
                port.no_link + port.send_interface_down + port.send_failed
            };
            testbed.send(&frame(1, 90));
            testbed.snapshot_when("the first frame is lost", |it| lost(it) == 1);
            testbed.await_port(2, |it| !it.present);
            testbed.send(&frame(2, 90));
            let snapshot = testbed.snapshot_when("the second frame is lost", |it| lost(it) == 2);
            assert_eq!(snapshot.ports[1].sent_frames, 1);
            add_link("s2", "h2");
            testbed.h2 = ReceiveRing::open(&Interface::find("h2").unwrap(), 64).unwrap();
            testbed.await_port(2, |it| it.status.up);
            testbed.send(&frame(3, 90));
            assert_eq!(testbed.receive(1), [frame(3, 90)]);
            // Another thread counts a frame after it has arrived.
            let snapshot = testbed.snapshot_when("it is counted", |it| it.ports[1].sent_frames > 1);
            assert_eq!((snapshot.ports[1].sent_frames, lost(&snapshot)), (2, 2));
        });
    }
}

#[test]
fn the_pipeline_is_told_which_ports_are_down() {
    in_namespace(|| {
        let testbed = Testbed::start(|_| {});
        let is_up = || testbed.ask(|switch| switch.pipeline().unwrap().is_port_up(PortId(2)));
        let expect = |up: bool, after: &str| {
            run(after);
            let start = Instant::now();
            while is_up() != up {
                assert!(start.elapsed() < PATIENCE, "{after}: not noticed");
                std::thread::sleep(LOOK_INTERVAL);
            }
        };
        assert!(is_up());
        // The other end goes: no carrier.
        expect(false, "ip link set h2 down");
        expect(true, "ip link set h2 up");
        expect(false, "ip link set s2 down");
        expect(true, "ip link set s2 up");
        expect(false, "ip link del s2");
        // A new program knows from its start.
        let replaced = async {
            let mut controller = Controller::open(&testbed.rig, 9).await;
            controller.arbitrate(9).await;
            let config = Some(objects());
            controller
                .set_config(Action::VerifyAndCommit, config)
                .await
                .unwrap();
        };
        testbed.runtime.block_on(replaced);
        assert!(!is_up());
    });
}

#[test]
fn a_slow_port_queues_then_drops_the_tail() {
    in_namespace(|| {
        let mut testbed = Testbed::start(|settings| {
            settings.queue_frames = 50;
            settings.port_rate = Some("1mbit".parse().unwrap());
            settings.ring_frames = 2_048;
        });
        let start = Instant::now();
        for number in 0..200 {
            testbed.send(&frame(number, 1_000));
        }
        // Each has left or was dropped in the end. How many find room depends on how late the switch looks.
        let all = |it: &Snapshot| it.ports[1].sent_frames + it.ports[1].queue_tail_drops;
        let snapshot = testbed.snapshot_when("all frames", |it| all(it) == 200);
        let (took, sent) = (start.elapsed(), snapshot.ports[1].sent_frames);
        assert!(sent >= 50, "{sent}: what the queue holds leaves");
        // At 1 Mbit/s a frame takes 8 ms; some leave at once.
        assert!(took > Duration::from_millis(6 * sent), "{sent} in {took:?}");
        assert_eq!(testbed.receive(sent as usize).len() as u64, sent);
    });
}

#[test]
fn impairments_do_what_they_say() {
    in_namespace(|| {
        let mut testbed = Testbed::start(|settings| {
            settings
                .impairments
                .add("2:duplicate=1,delay=50ms")
                .unwrap();
        });
        let start = Instant::now();
        testbed.send(&frame(1, 100));
        assert_eq!(testbed.receive(2), [frame(1, 100), frame(1, 100)]);
        assert!(start.elapsed() >= Duration::from_millis(50));
        assert_eq!(testbed.snapshot().ports[1].impaired_duplicated, 1);
    });
    in_namespace(|| {
        let mut testbed = Testbed::start(|settings| {
            settings.impairments.add("all:loss=1").unwrap();
        });
        testbed.send(&frame(1, 100));
        testbed.snapshot_when("a loss", |it| it.ports[1].impaired_lost == 1);
        testbed.receive_nothing();
    });
}

/// `tc` below the port pushes back; the switch loses nothing as long as its queue holds.
#[test]
fn a_queueing_discipline_below_pushes_back() {
    for workers in [1, 2] {
        in_namespace(move || {
            let mut testbed = Testbed::start_on(workers, |settings| settings.ring_frames = 2_048);
            run("tc qdisc add dev s2 root tbf rate 20mbit burst 4kb limit 8kb");
            for number in 0..300 {
                while !testbed.h1.push(&frame(number, 1_000)) {
                    testbed.h1.flush();
                }
            }
            testbed.h1.flush();
            assert_eq!(testbed.receive(300).len(), 300);
            assert!(testbed.snapshot().ports[1].send_retried > 0);
        });
    }
}

#[test]
fn captures_hold_both_directions() {
    in_namespace(|| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_owned();
        let mut testbed = Testbed::start(|settings| settings.capture_directory = Some(path));
        let sent = frame(1, 77);
        testbed.send(&sent);
        testbed.receive(1);
        for name in ["s1_in.pcap", "s2_out.pcap"] {
            let read = || std::fs::read(directory.path().join(name)).unwrap();
            // Written when the switch is idle.
            let start = Instant::now();
            while read().len() < 24 + 16 + 77 {
                assert!(start.elapsed() < PATIENCE, "{name}");
                std::thread::sleep(LOOK_INTERVAL);
            }
            let capture = read();
            assert_eq!(capture.len(), 24 + 16 + 77, "{name}");
            assert_eq!(capture[40..], sent, "{name}");
        }
        let empty = std::fs::read(directory.path().join("s2_in.pcap")).unwrap();
        assert_eq!(empty.len(), 24);
    });
}

/// Each of the threads that share a switch writes what it has captured before it sleeps.
#[test]
fn captures_are_written_by_every_thread() {
    in_namespace(|| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_owned();
        let testbed = Testbed::start_on(2, |settings| settings.capture_directory = Some(path));
        // The port of the second thread, and back.
        let mut h2 = TransmitQueue::open(&Interface::find("h2").unwrap()).unwrap();
        let sent = frame(1, 77);
        assert!(h2.push(&sent));
        h2.flush();
        let start = Instant::now();
        let has_frame = |name: &str| {
            let capture = std::fs::read(directory.path().join(name)).unwrap();
            capture.get(40..).is_some_and(|frame| frame == sent)
        };
        while !(has_frame("s2_in.pcap") && has_frame("s2_out.pcap")) {
            assert!(start.elapsed() < PATIENCE);
            std::thread::sleep(LOOK_INTERVAL);
        }
        assert_eq!(testbed.snapshot().ports[0].received_frames, 0);
    });
}
