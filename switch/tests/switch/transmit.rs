//! The transmit ring: what it takes, in which order it leaves, and whose the bytes are.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use super::network::{add_link, in_namespace, run};
use super::rig::PATIENCE;
use wormcast_switch_ports::transmit::{BATCH_FRAMES_MAX, Flushed};
use wormcast_switch_ports::{Interface, ReceiveRing, TransmitQueue};

fn frame(number: u32, length: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb6];
    frame.extend(number.to_be_bytes());
    frame.resize(length, number as u8);
    frame
}

/// Both ends of a link.
fn link() -> (TransmitQueue, ReceiveRing) {
    add_link("t1", "t2");
    let receiver = ReceiveRing::open(&Interface::find("t2").unwrap(), 4_096).unwrap();
    let sender = TransmitQueue::open(&Interface::find("t1").unwrap()).unwrap();
    (sender, receiver)
}

fn receive(receiver: &mut ReceiveRing, count: usize) -> Vec<Vec<u8>> {
    let (mut frames, start) = (Vec::new(), Instant::now());
    while frames.len() < count && start.elapsed() < PATIENCE {
        receiver.receive(64, |frame| frames.push(frame.to_vec()));
    }
    frames
}

/// More frames than the ring has slots, of all lengths.
#[test]
fn a_ring_goes_round() {
    in_namespace(|| {
        let (mut sender, mut receiver) = link();
        let frames: Vec<_> = (0..2_000)
            .map(|number| frame(number, 18 + (number as usize * 37) % 1_497))
            .collect();
        let mut bytes = 0;
        for frame in &frames {
            while !sender.push(frame) {
                assert_eq!(sender.flush(), Flushed::Empty);
            }
            bytes += frame.len() as u64;
        }
        assert_eq!(sender.flush(), Flushed::Empty);
        assert!(receive(&mut receiver, 2_000) == frames);
        let counts = sender.counts();
        assert_eq!((counts.frames, counts.bytes), (2_000, bytes));
    });
}

#[test]
fn lengths_the_interface_does_not_take_are_counted() {
    in_namespace(|| {
        let (mut sender, mut receiver) = link();
        let mut tagged = frame(3, 1_518);
        tagged[12..14].copy_from_slice(&[0x81, 0]);
        for frame in [&frame(1, 1_515), &frame(2, 1_514), &tagged, &vec![0; 13]] {
            assert!(sender.push(frame));
        }
        assert_eq!(sender.flush(), Flushed::Empty);
        assert_eq!(receive(&mut receiver, 2), [frame(2, 1_514), tagged]);
        let counts = sender.counts();
        assert_eq!((counts.frames, counts.bad_length), (2, 2));
    });
}

/// What one thread sends, another may add to.
#[test]
fn a_departure_takes_what_waits_and_leaves_room_for_more() {
    in_namespace(|| {
        let (mut sender, mut receiver) = link();
        assert!(sender.depart().is_none());
        let frames: Vec<_> = (0..2 * BATCH_FRAMES_MAX as u32)
            .map(|number| frame(number, 100))
            .collect();
        let (first, second) = frames.split_at(BATCH_FRAMES_MAX);
        assert!(first.iter().all(|frame| sender.push(frame)) && sender.is_full());
        let mut departure = sender.depart().unwrap();
        // A second batch finds room; nobody else may send or rearrange meanwhile.
        assert!(second.iter().all(|frame| sender.push(frame)) && sender.is_full());
        assert!(sender.is_away() && sender.depart().is_none());
        assert!(!sender.push_first(&first[0]));
        assert_eq!(sender.flush(), Flushed::WaitReturn);
        assert_eq!(sender.counts().frames, 0);
        let thread = std::thread::spawn(move || {
            departure.send();
            departure
        });
        assert_eq!(sender.complete(thread.join().unwrap()), Flushed::Empty);
        assert!(!sender.is_away());
        // The kernel has found the second batch too.
        assert!(receive(&mut receiver, frames.len()) == frames);
        assert_eq!(sender.counts().frames, frames.len() as u64);
        assert!(sender.is_empty());
    });
}

#[test]
fn a_departure_says_when_the_interface_is_down_and_when_the_queue_is_full() {
    in_namespace(|| {
        let (mut sender, mut receiver) = link();
        run("tc qdisc add dev t1 root tbf rate 4mbit burst 2kb limit 3kb");
        let frames: Vec<_> = (0..20).map(|number| frame(number, 1_000)).collect();
        assert!(frames.iter().all(|frame| sender.push(frame)));
        let mut departure = sender.depart().unwrap();
        departure.send();
        assert_eq!(sender.complete(departure), Flushed::WaitTime);
        let start = Instant::now();
        while sender.flush() != Flushed::Empty {
            assert!(start.elapsed() < PATIENCE);
        }
        assert!(receive(&mut receiver, 20) == frames);
        run("ip link set t1 down");
        assert!(sender.push(&frames[0]));
        let mut departure = sender.depart().unwrap();
        departure.send();
        assert!(sender.push(&frames[1]));
        assert_eq!(sender.complete(departure), Flushed::Empty);
        assert_eq!(sender.counts().interface_down, 2);
        // The socket keeps in mind that its interface went down, which is over.
        run("ip link set t1 down");
        run("ip link set t1 up");
        assert!(sender.push(&frames[2]));
        let mut departure = sender.depart().unwrap();
        departure.send();
        assert_eq!(sender.complete(departure), Flushed::Empty);
        assert_eq!(receive(&mut receiver, 1), [frames[2].clone()]);
        assert_eq!(sender.counts().interface_down, 2);
    });
}

/// A veth refuses what is longer than the MTU of its other end, in the words of a queue that is full.
#[test]
fn a_frame_that_is_refused_for_good_does_not_block_the_others() {
    in_namespace(|| {
        let (mut sender, mut receiver) = link();
        run("ip link set t2 mtu 600");
        let start = Instant::now();
        let flush = |sender: &mut TransmitQueue| {
            while sender.flush() != Flushed::Empty {
                assert!(start.elapsed() < PATIENCE);
            }
        };
        for number in 0..40 {
            assert!(sender.push(&frame(number, 1_000)));
            assert!(sender.push(&frame(100 + number, 100)));
            flush(&mut sender);
            assert_eq!(receive(&mut receiver, 1), [frame(100 + number, 100)]);
        }
        assert_eq!(sender.counts().failed, 40);
        // One in many is tried, and once one is taken they all go.
        run("ip link set t2 mtu 1500");
        let mut tries = 0;
        while sender.counts().frames == 40 {
            tries += 1;
            assert!(tries < 2_000);
            assert!(sender.push(&frame(1, 1_000)));
            flush(&mut sender);
        }
        assert_eq!(receive(&mut receiver, 1), [frame(1, 1_000)]);
        assert_eq!(sender.counts().failed, 40 + tries - 1);
        assert!(sender.push(&frame(2, 1_000)));
        flush(&mut sender);
        assert_eq!(receive(&mut receiver, 1), [frame(2, 1_000)]);
    });
}

/// The queue was opened again meanwhile.
#[test]
fn a_departure_of_another_queue_ends_nothing() {
    in_namespace(|| {
        let (mut old, mut receiver) = link();
        let mut new = TransmitQueue::open(&Interface::find("t1").unwrap()).unwrap();
        assert!(old.push(&frame(1, 100)) && new.push(&frame(2, 100)));
        let mut of_old = old.depart().unwrap();
        let mut of_new = new.depart().unwrap();
        drop(old);
        // The socket of the old one is still there, and so are its frames.
        of_old.send();
        assert_eq!(receive(&mut receiver, 1), [frame(1, 100)]);
        new.complete(of_old);
        assert!(new.is_away());
        of_new.send();
        new.complete(of_new);
        assert!(!new.is_away());
        assert_eq!(receive(&mut receiver, 1), [frame(2, 100)]);
    });
}

#[test]
fn what_is_first_overtakes_what_the_kernel_refused() {
    in_namespace(|| {
        let (mut sender, mut receiver) = link();
        run("tc qdisc add dev t1 root tbf rate 4mbit burst 2kb limit 3kb");
        // Some pass, some fit into the queue, the rest is refused and stays.
        let mut number = 0;
        let mut push = |sender: &mut TransmitQueue| {
            number += 1;
            sender.push(&frame(number, 1_000))
        };
        while push(&mut sender) {}
        assert_eq!(sender.flush(), Flushed::WaitTime);
        let waited = sender.waiting();
        assert!((1..BATCH_FRAMES_MAX).contains(&waited), "{waited}");
        assert!(sender.push_first(&frame(1_000, 60)));
        let start = Instant::now();
        while sender.flush() != Flushed::Empty {
            assert!(start.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(1));
        }
        let received = receive(&mut receiver, BATCH_FRAMES_MAX + 1);
        let numbers: Vec<_> = received
            .iter()
            .map(|frame| u32::from_be_bytes(frame[14..18].try_into().unwrap()))
            .collect();
        let passed = BATCH_FRAMES_MAX - waited;
        let mut expected: Vec<_> = (1..=BATCH_FRAMES_MAX as u32).collect();
        expected.insert(passed, 1_000);
        assert_eq!(numbers, expected);
        assert_eq!(received[passed], frame(1_000, 60));
        assert_eq!(sender.counts().frames, BATCH_FRAMES_MAX as u64 + 1);
    });
}

/// What waits at a socket of this machine is not in the ring any more.
#[test]
fn frames_that_wait_elsewhere_do_not_change() {
    in_namespace(|| {
        let (mut sender, _receiver) = link();
        run("ip addr add 10.0.0.2/24 dev t2");
        run("ip neigh add 10.0.0.1 lladdr 02:00:00:00:00:01 dev t2");
        run("ip link set t2 address 02:00:00:00:00:02");
        let socket = UdpSocket::bind("10.0.0.2:5000").unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let datagram = |fill: u8| {
            let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
            let mut ip = vec![0x45, 0, 0x04, 0x1c, 0, 0, 0, 0, 64, 17, 0, 0];
            ip.extend([10, 0, 0, 1, 10, 0, 0, 2]);
            let sum: u32 = ip
                .chunks(2)
                .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]))
                .sum();
            let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
            frame.extend(ip);
            // No checksum; 1024 bytes of payload.
            frame.extend([0x0f, 0xa0, 0x13, 0x88, 0x04, 0x08, 0, 0]);
            frame.resize(14 + 20 + 8 + 1_024, fill);
            frame
        };
        for fill in 0..20 {
            assert!(sender.push(&datagram(fill)));
        }
        assert_eq!(sender.flush(), Flushed::Empty);
        // Enough for every slot to be used again.
        for _ in 0..1_000 {
            while !sender.push(&frame(0, 1_514)) {
                sender.flush();
            }
        }
        sender.flush();
        let mut payload = [0; 2_048];
        for fill in 0..20 {
            let length = socket.recv(&mut payload).unwrap();
            assert!(
                payload[..length] == [fill; 1_024],
                "{fill}: {:?}",
                &payload[..8]
            );
        }
    });
}

#[test]
fn frames_for_an_interface_that_is_down_are_counted() {
    in_namespace(|| {
        let (mut sender, mut receiver) = link();
        run("ip link set t1 down");
        for number in 0..3 {
            assert!(sender.push(&frame(number, 100)));
        }
        assert_eq!(sender.flush(), Flushed::Empty);
        assert_eq!(sender.counts().interface_down, 3);
        run("ip link set t1 up");
        assert!(sender.push(&frame(7, 100)));
        assert_eq!(sender.flush(), Flushed::Empty);
        assert_eq!(receive(&mut receiver, 1), [frame(7, 100)]);
    });
}
