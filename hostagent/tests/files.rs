//! Files that agents read and write themselves (API.md §8).

mod streams;

use crate::support;

use rustix::fs::OFlags;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions, Permissions};
use std::io::{IoSlice, Read, Seek, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use support::{Fabric, group, pattern, wait_until};
use wormcast_agent::client::{Client, ClientError, Incoming, StableMessage};
use wormcast_agent::directory::rpc;
use wormcast_agent_core::api::{AbortReason, ApiError, ErrorCode, Notice, Request, WrittenFile};

const LIMIT: Option<Duration> = Some(Duration::from_secs(600));
const GROUP: u16 = 1;
/// Of a file without blocks, which is under way for as long as it takes.
const LARGE: u64 = 1 << 33;
const HEADER: &str = r#"{"name":"a"}"#;

fn fabric() -> Option<Fabric> {
    Fabric::start(2, &[group(GROUP.into(), "repeat", &[0, 1])], &[])
}

fn file_of(content: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    file
}

fn content_of(mut file: &File) -> Vec<u8> {
    let mut content = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut content).unwrap();
    content
}

fn start() -> Vec<u8> {
    let mut start = b"WCFILE1\n".to_vec();
    start.extend_from_slice(&(HEADER.len() as u32).to_be_bytes());
    start.extend_from_slice(HEADER.as_bytes());
    start
}

/// The first bytes of a frame, and descriptors with them.
fn send_descriptors(stream: &UnixStream, descriptors: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(17))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(descriptors)));
    let bytes = [IoSlice::new(&[0, 0, 0, 100, 1])];
    sendmsg(stream, &bytes, &mut ancillary, SendFlags::empty()).unwrap();
}

fn send(handle: u32, bytes: u64) -> Request {
    Request::SendFile { handle, bytes }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn notice(client: &mut Client) -> Notice {
    loop {
        match client.receive(LIMIT).unwrap().expect("something comes") {
            Incoming::Notice(Notice::FileProgress { .. }) => {}
            Incoming::Notice(notice) => return notice,
            Incoming::Data { handle, bytes } => panic!("{} bytes of {handle}", bytes.len()),
        }
    }
}

/// The handle of a file that begins to arrive.
fn begun(client: &mut Client) -> u32 {
    match notice(client) {
        Notice::MessageBegin { handle, header, .. } => {
            assert_eq!(header.as_deref(), Some(HEADER));
            handle
        }
        other => panic!("{other:?}"),
    }
}

fn refusal<T: std::fmt::Debug>(result: Result<T, ClientError>) -> ApiError {
    match result {
        Err(ClientError::Refused(error)) => error,
        other => panic!("not refused: {other:?}"),
    }
}

fn sent(client: &mut Client, sender: u32, file: &File) -> StableMessage {
    client.write(sender, &start()).unwrap();
    let written = client.send_file(sender, file).unwrap();
    let digest = Sha256::digest(content_of(file));
    assert_eq!(written.sha256, hex(&digest));
    client.write(sender, &digest).unwrap();
    let message = client.end_message(sender).unwrap();
    client.wait_stable(sender, message, LIMIT).unwrap()
}

#[test]
fn files_of_any_length_arrive_as_they_were() {
    let Some(fabric) = fabric() else { return };
    let lengths = [0, 1, 31, 32, 33, 100_000, 3_000_001];
    let mut receiver = fabric.client(1);
    receiver.open_file_receiver(GROUP, None).unwrap();
    let receiving = std::thread::spawn(move || {
        for length in lengths {
            let handle = begun(&mut receiver);
            let target = tempfile::tempfile().unwrap();
            let announced = (length % 2 == 0).then_some(length as u64);
            receiver.receive_file(handle, &target, announced).unwrap();
            let Notice::MessageEnd { file, .. } = notice(&mut receiver) else {
                panic!("no end");
            };
            let content = pattern(length, length as u64);
            let (bytes, sha256) = (length as u64, hex(&Sha256::digest(&content)));
            assert_eq!(file, Some(WrittenFile { bytes, sha256 }));
            assert!(content_of(&target) == content, "{length}");
            receiver.confirm(handle).unwrap();
        }
    });
    let mut client = fabric.client(0);
    let sender = client.open_sender(GROUP).unwrap().handle;
    for length in lengths {
        let file = file_of(&pattern(length, length as u64));
        assert_eq!(sent(&mut client, sender, &file).delivered, 1, "{length}");
    }
    receiving.join().unwrap();
}

/// What the controller is told of files; one that ended while it was away is told when it is back.
#[test]
fn the_controller_is_told_what_the_sender_is_told() {
    let Some(mut fabric) = fabric() else { return };
    let mut client = fabric.client(0);
    let sender = client.open_sender(GROUP).unwrap().handle;
    let content = file_of(&pattern(100_000, 3));
    let mut told = Vec::new();
    for is_taken in [true, false] {
        let receiving = is_taken.then(|| {
            let mut receiver = fabric.client(1);
            receiver.open_file_receiver(GROUP, None).unwrap();
            std::thread::spawn(move || {
                let handle = begun(&mut receiver);
                let target = tempfile::tempfile().unwrap();
                receiver.receive_file(handle, &target, None).unwrap();
                notice(&mut receiver);
                receiver.confirm(handle).unwrap();
            })
        });
        if !is_taken {
            fabric.controller.stop();
        }
        told.push(sent(&mut client, sender, &content));
        if let Some(receiving) = receiving {
            receiving.join().unwrap();
        } else {
            fabric.controller.resume();
        }
        let known = &fabric.controller.known;
        let count = told.len();
        wait_until("the controller is told", LIMIT.unwrap(), || {
            known.lock().unwrap().transfers.len() == count
        });
    }
    let known = fabric.controller.known.lock().unwrap();
    for (number, ((host, report), told)) in known.transfers.iter().zip(&told).enumerate() {
        assert_eq!((*host, report.origin, report.group), (0, 0, GROUP.into()));
        assert_eq!(
            (report.number, report.message),
            (number as u64 + 1, told.message)
        );
        assert_eq!((&*report.name, report.bytes), ("a", Some(100_000)));
        assert_eq!(report.delivered.len(), told.delivered);
        assert!(report.began_ms > 1_700_000_000_000 && report.lasted_us > 0);
        for missed in &report.missed {
            let reasons = told.outcomes.iter().map(|one| one.reason.as_deref());
            assert_eq!(reasons.collect::<Vec<_>>(), [Some(&*missed.reason)]);
            assert_eq!(missed.hosts, [1]);
        }
        assert_eq!(report.missed.len(), told.failed);
    }
    let states: Vec<_> = known.transfers.iter().map(|one| one.1.state()).collect();
    let expected = [
        rpc::TransferState::TransferStable,
        rpc::TransferState::TransferFailed,
    ];
    assert_eq!(states, expected);
    let life = known.transfers[0].1.life;
    assert_eq!(known.transfers[1].1.life, life);
    drop(known);
    wait_until("both have ended", LIMIT.unwrap(), || {
        let known = fabric.controller.known.lock().unwrap();
        let count = known.statistics[&0].transfers.clone().unwrap_or_default();
        (count.life, count.begun, count.under_way) == (life, 2, 0)
    });
}

#[test]
fn a_file_waits_for_its_place_and_others_behind_it() {
    let Some(fabric) = fabric() else { return };
    let content = pattern(2_000_000, 5);
    let mut receiver = fabric.client(1);
    receiver.open_file_receiver(GROUP, None).unwrap();
    let file = file_of(&content);
    let mut client = fabric.client(0);
    let sending = std::thread::spawn(move || {
        let sender = client.open_sender(GROUP).unwrap().handle;
        [(); 2].map(|()| sent(&mut client, sender, &file).delivered)
    });
    for _ in 0..2 {
        let handle = begun(&mut receiver);
        std::thread::sleep(Duration::from_millis(300));
        let target = tempfile::tempfile().unwrap();
        receiver.receive_file(handle, &target, None).unwrap();
        assert!(matches!(notice(&mut receiver), Notice::MessageEnd { .. }));
        assert!(content_of(&target) == content);
        receiver.confirm(handle).unwrap();
    }
    assert_eq!(sending.join().unwrap(), [1, 1]);
}

#[test]
fn content_that_is_not_as_announced_is_told_and_nothing_of_it_counts() {
    let Some(fabric) = fabric() else { return };
    let content = pattern(300_000, 3);
    let digest = Sha256::digest(&content).to_vec();
    let cases: [(Option<u64>, Vec<u8>, &str); 4] = [
        (
            Some(299_999),
            digest.clone(),
            "more content than the 299999 bytes announced",
        ),
        (
            Some(300_001),
            digest,
            "300000 bytes of content, 300001 announced",
        ),
        (None, vec![7; 32], "the sender's was 0707"),
        (Some(300_000), vec![7; 32], "the sender's was 0707"),
    ];
    let mut receiver = fabric.client(1);
    receiver.open_file_receiver(GROUP, None).unwrap();
    let mut client = fabric.client(0);
    let sender = client.open_sender(GROUP).unwrap().handle;
    for (announced, trailer, why) in cases {
        client.write(sender, &start()).unwrap();
        client.send_file(sender, &file_of(&content)).unwrap();
        client.write(sender, &trailer).unwrap();
        let message = client.end_message(sender).unwrap();
        let handle = begun(&mut receiver);
        let target = tempfile::tempfile().unwrap();
        receiver.receive_file(handle, &target, announced).unwrap();
        match notice(&mut receiver) {
            Notice::FileFailed { code, reason, .. } => {
                assert_eq!(code, ErrorCode::Damaged);
                assert!(reason.contains(why), "{reason}");
            }
            other => panic!("{why}: {other:?}"),
        }
        receiver.abort(handle, AbortReason::Cancelled).unwrap();
        let stable = client.wait_stable(sender, message, LIMIT).unwrap();
        assert_eq!((stable.delivered, stable.failed), (0, 1), "{why}");
    }
}

#[test]
fn what_is_no_file_comes_as_any_message() {
    let Some(fabric) = fabric() else { return };
    let mut receiver = fabric.client(1);
    receiver.open_file_receiver(GROUP, None).unwrap();
    let mut client = fabric.client(0);
    let sender = client.open_sender(GROUP).unwrap().handle;
    for message in [pattern(600_000, 1), b"WCFILE1\n".to_vec(), b"W".to_vec()] {
        client.write(sender, &message).unwrap();
        let number = client.end_message(sender).unwrap();
        let mut came = Vec::new();
        let handle = loop {
            match receiver.receive(LIMIT).unwrap().expect("something comes") {
                Incoming::Data { bytes, .. } => came.extend_from_slice(&bytes),
                Incoming::Notice(Notice::MessageBegin { header, .. }) => assert_eq!(header, None),
                Incoming::Notice(Notice::MessageEnd { handle, file, .. }) => {
                    assert_eq!(file, None);
                    break handle;
                }
                Incoming::Notice(other) => panic!("{other:?}"),
            }
        };
        assert!(came == message);
        receiver.confirm(handle).unwrap();
        let stable = client.wait_stable(sender, number, LIMIT).unwrap();
        assert_eq!(stable.delivered, 1);
    }
}

#[test]
fn a_file_that_changes_is_not_sent() {
    let Some(fabric) = fabric() else { return };
    let mut client = fabric.client(0);
    let sender = client.open_sender(GROUP).unwrap().handle;
    for length in [60_000, 140_000] {
        client.write(sender, &start()).unwrap();
        let asked = client.begin(
            &send(sender, 100_000),
            Some(file_of(&pattern(length, 1)).as_fd()),
        );
        let error = refusal(client.answer(asked.unwrap()));
        assert_eq!(error.code, ErrorCode::Storage);
        let text =
            format!("the file changed while it was sent: 100000 bytes at first, then {length}");
        assert_eq!(error.message, text);
        client.cancel_message(sender).unwrap();
    }
}

#[test]
fn nothing_of_a_file_that_is_given_up_gets_into_the_next_message() {
    let Some(fabric) = fabric() else { return };
    let mut receiver = fabric.client(1);
    receiver.open_file_receiver(GROUP, None).unwrap();
    let mut client = fabric.client(0);
    let sender = client.open_sender(GROUP).unwrap().handle;
    client.write(sender, &start()).unwrap();
    let large = tempfile::tempfile().unwrap();
    large.set_len(LARGE).unwrap();
    let request = client
        .begin(&send(sender, LARGE), Some(large.as_fd()))
        .unwrap();
    let handle = begun(&mut receiver);
    let target = tempfile::tempfile().unwrap();
    receiver.receive_file(handle, &target, None).unwrap();
    let progress = receiver.receive(LIMIT).unwrap();
    assert!(
        matches!(
            progress,
            Some(Incoming::Notice(Notice::FileProgress { .. }))
        ),
        "{progress:?}"
    );
    let error = refusal(client.ask(&Request::EndMessage { handle: sender }));
    assert_eq!(error.code, ErrorCode::WrongState);
    client.cancel_message(sender).unwrap();
    let error = refusal(client.answer(request));
    assert_eq!(
        (error.code, error.message.as_str()),
        (ErrorCode::Closed, "the message was given up")
    );
    assert!(
        matches!(notice(&mut receiver), Notice::MessageLost { handle: lost, .. } if lost == handle)
    );
    let small = file_of(b"small");
    let sending = std::thread::spawn(move || sent(&mut client, sender, &small).delivered);
    let handle = begun(&mut receiver);
    let target = tempfile::tempfile().unwrap();
    receiver.receive_file(handle, &target, Some(5)).unwrap();
    assert!(matches!(notice(&mut receiver), Notice::MessageEnd { .. }));
    assert_eq!(content_of(&target), b"small");
    receiver.confirm(handle).unwrap();
    assert_eq!(sending.join().unwrap(), 1);
}

#[test]
fn a_file_that_breaks_off_is_lost_whatever_was_written() {
    let Some(fabric) = fabric() else { return };
    let mut receiver = fabric.client(1);
    receiver.open_file_receiver(GROUP, None).unwrap();
    let mut client = fabric.client(0);
    let sender = client.open_sender(GROUP).unwrap().handle;
    client.write(sender, &start()).unwrap();
    client
        .send_file(sender, &file_of(&pattern(400_000, 1)))
        .unwrap();
    let handle = begun(&mut receiver);
    let target = tempfile::tempfile().unwrap();
    receiver.receive_file(handle, &target, None).unwrap();
    drop(client);
    match notice(&mut receiver) {
        Notice::MessageLost {
            handle: lost,
            reason,
        } => {
            assert_eq!((lost, reason.as_str()), (handle, "its origin cancelled it"));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(
        refusal(receiver.confirm(handle)).code,
        ErrorCode::UnknownHandle
    );
}

fn opened(path: &Path, flags: OFlags, write: bool) -> File {
    let flags = flags.bits() as i32;
    let mut options = OpenOptions::new();
    options.read(!write).write(write).custom_flags(flags);
    options.open(path).unwrap()
}

#[test]
fn descriptors_of_other_things_are_refused() {
    let Some(fabric) = fabric() else { return };
    let mut receiver = fabric.client(1);
    receiver.open_file_receiver(GROUP, None).unwrap();
    let mut client = fabric.client(0);
    let sender = client.open_sender(GROUP).unwrap().handle;
    let path = fabric.path("file");
    std::fs::write(&path, "x").unwrap();
    let set_id = fabric.path("set-id");
    std::fs::write(&set_id, "x").unwrap();
    std::fs::set_permissions(&set_id, Permissions::from_mode(0o4755)).unwrap();
    let (pipe, _other) = std::io::pipe().unwrap();
    let pipe = || File::from(OwnedFd::from(pipe.try_clone().unwrap()));
    for (file, why) in [
        (pipe(), "neither a regular file nor a stream socket"),
        (
            File::open("/dev/null").unwrap(),
            "neither a regular file nor a stream socket",
        ),
        (
            File::open("/").unwrap(),
            "neither a regular file nor a stream socket",
        ),
        (
            opened(&path, OFlags::empty(), true),
            "is not open to be read",
        ),
        (opened(&path, OFlags::PATH, false), "is not open to be read"),
        (
            File::open("/proc/self/stat").unwrap(),
            "is of a file system of the kernel's",
        ),
    ] {
        let error = refusal(client.send_file(sender, &file));
        assert_eq!(error.code, ErrorCode::BadRequest);
        assert!(error.message.contains(why), "{error}");
    }
    for (file, why) in [
        (pipe(), "neither a regular file nor a stream socket"),
        (File::open(&path).unwrap(), "is not open to be written"),
        (opened(&path, OFlags::APPEND, true), "is open for appending"),
        (
            opened(Path::new("/proc/self/comm"), OFlags::empty(), true),
            "is of a file system of the kernel's",
        ),
        (
            opened(&set_id, OFlags::empty(), true),
            "gives the rights of its owner",
        ),
    ] {
        client.write(sender, &start()).unwrap();
        client.write(sender, &[0; 100_000]).unwrap();
        let handle = begun(&mut receiver);
        let error = refusal(receiver.receive_file(handle, &file, None));
        assert_eq!(error.code, ErrorCode::BadRequest);
        assert!(error.message.contains(why), "{error}");
        receiver.abort(handle, AbortReason::Cancelled).unwrap();
        client.cancel_message(sender).unwrap();
    }
    let target = opened(&path, OFlags::empty(), true);
    let error = refusal(receiver.receive_file(77, &target, None));
    assert_eq!(error.code, ErrorCode::WrongState);
    let (handle, bytes) = (77, None);
    let error = refusal(receiver.ask(&Request::ReceiveFile { handle, bytes }));
    assert!(error.message.contains("no descriptor came"), "{error}");
    // It goes on.
    client.write(sender, b"hello").unwrap();
}

#[test]
fn files_are_read_for_senders_alone() {
    let Some(fabric) = fabric() else { return };
    let mut client = fabric.client(0);
    let receiver = client.open_receiver(GROUP, None).unwrap().handle;
    let closed = client.open_sender(GROUP).unwrap().handle;
    client.close(closed).unwrap();
    for length in [0, 100, 3_000_000] {
        let file = file_of(&pattern(length, 1));
        for (handle, code) in [
            (receiver, ErrorCode::WrongHandle),
            (closed, ErrorCode::UnknownHandle),
            (77, ErrorCode::UnknownHandle),
        ] {
            assert_eq!(refusal(client.send_file(handle, &file)).code, code);
        }
    }
}

#[test]
fn a_window_is_whole_again_however_a_file_ends() {
    let Some(fabric) = fabric() else { return };
    let mut receiver = fabric.client(1);
    let mut client = fabric.client(0);
    let sender = client.open_sender(GROUP).unwrap().handle;
    // Of each, two pieces are passed on, and the third is short.
    let file = file_of(&pattern(600_000, 1));
    for _ in 0..12 {
        let asked = client
            .begin(&send(sender, 800_000), Some(file.as_fd()))
            .unwrap();
        let error = refusal(client.answer(asked));
        assert_eq!(error.code, ErrorCode::Storage);
        client.cancel_message(sender).unwrap();
    }
    // And of one that is given up.
    let large = tempfile::tempfile().unwrap();
    large.set_len(LARGE).unwrap();
    let asked = client
        .begin(&send(sender, LARGE), Some(large.as_fd()))
        .unwrap();
    client.cancel_message(sender).unwrap();
    assert_eq!(refusal(client.answer(asked)).code, ErrorCode::Closed);
    // All of the window is used up, and given back before the file is asked for.
    client.write(sender, &pattern(1 << 20, 2)).unwrap();
    receiver.open_receiver(GROUP, None).unwrap();
    let receiving = std::thread::spawn(move || {
        let mut length = 0;
        loop {
            match receiver.receive(LIMIT).unwrap().expect("something comes") {
                Incoming::Data { bytes, .. } => length += bytes.len(),
                Incoming::Notice(Notice::MessageEnd { handle, .. }) => {
                    receiver.confirm(handle).unwrap();
                    return length;
                }
                Incoming::Notice(Notice::MessageBegin { .. }) => length = 0,
                Incoming::Notice(_) => {}
            }
        }
    });
    std::thread::sleep(Duration::from_millis(300));
    let large = file_of(&pattern(3_000_000, 3));
    client.send_file(sender, &large).unwrap();
    client.write(sender, &pattern(2_000_000, 4)).unwrap();
    client.end_message(sender).unwrap();
    assert_eq!(receiving.join().unwrap(), (1 << 20) + 5_000_000);
}

#[test]
fn a_file_that_is_not_whole_cannot_be_confirmed() {
    let Some(fabric) = fabric() else { return };
    let mut receiver = fabric.client(1);
    receiver.open_file_receiver(GROUP, None).unwrap();
    let mut client = fabric.client(0);
    let sender = client.open_sender(GROUP).unwrap().handle;
    client.write(sender, &start()).unwrap();
    client.write(sender, &[7; 100]).unwrap();
    let message = client.end_message(sender).unwrap();
    let handle = begun(&mut receiver);
    // All of it is here, and nobody has looked at it.
    let error = refusal(receiver.confirm(handle));
    assert_eq!(error.code, ErrorCode::WrongState);
    let target = tempfile::tempfile().unwrap();
    receiver.receive_file(handle, &target, None).unwrap();
    assert!(matches!(notice(&mut receiver), Notice::FileFailed { .. }));
    let error = refusal(receiver.confirm(handle));
    assert_eq!(
        error.message,
        format!("the file of message {handle} is not whole")
    );
    receiver.abort(handle, AbortReason::Cancelled).unwrap();
    let stable = client.wait_stable(sender, message, LIMIT).unwrap();
    assert_eq!((stable.delivered, stable.failed), (0, 1));
}

#[test]
fn nothing_is_left_of_what_was_in_the_file_and_nothing_open() {
    let Some(fabric) = fabric() else { return };
    let mut receiver = fabric.client(1);
    let open = || fabric.agents[1].open_descriptors();
    receiver.open_file_receiver(GROUP, None).unwrap();
    let mut client = fabric.client(0);
    let sender = client.open_sender(GROUP).unwrap().handle;
    let before = open();
    let target = file_of(&pattern(500_000, 9));
    let content = pattern(100_000, 1);
    let file = file_of(&content);
    let sending = std::thread::spawn(move || sent(&mut client, sender, &file));
    let handle = begun(&mut receiver);
    receiver
        .receive_file(handle, &target, Some(100_000))
        .unwrap();
    assert!(matches!(notice(&mut receiver), Notice::MessageEnd { .. }));
    // Whoever is told may run it.
    assert_eq!(open(), before);
    assert!(content_of(&target) == content);
    receiver.confirm(handle).unwrap();
    assert_eq!(sending.join().unwrap().delivered, 1);
}

#[test]
fn a_receiver_that_closes_leaves_nothing_open() {
    let Some(fabric) = fabric() else { return };
    let mut receiver = fabric.client(1);
    let open = || fabric.agents[1].open_descriptors();
    let before = open();
    let mut client = fabric.client(0);
    let sender = client.open_sender(GROUP).unwrap().handle;
    let large = tempfile::tempfile().unwrap();
    large.set_len(LARGE).unwrap();
    let target = tempfile::tempfile().unwrap();
    for placed in [false, true] {
        let opened = receiver.open_file_receiver(GROUP, None).unwrap().handle;
        client.write(sender, &start()).unwrap();
        let asked = client
            .begin(&send(sender, LARGE), Some(large.as_fd()))
            .unwrap();
        let handle = begun(&mut receiver);
        if placed {
            receiver.receive_file(handle, &target, None).unwrap();
        }
        receiver.close(opened).unwrap();
        wait_until("the file is closed", LIMIT.unwrap(), || open() <= before);
        let error = refusal(receiver.receive_file(handle, &target, None));
        assert_eq!(error.code, ErrorCode::WrongState);
        client.cancel_message(sender).unwrap();
        assert_eq!(refusal(client.answer(asked)).code, ErrorCode::Closed);
    }
    // The next gets no byte of these.
    receiver.open_file_receiver(GROUP, None).unwrap();
    let file = file_of(b"next");
    let sending = std::thread::spawn(move || sent(&mut client, sender, &file));
    let handle = begun(&mut receiver);
    receiver.receive_file(handle, &target, Some(4)).unwrap();
    assert!(matches!(notice(&mut receiver), Notice::MessageEnd { .. }));
    receiver.confirm(handle).unwrap();
    assert_eq!(content_of(&target), b"next");
    assert_eq!(sending.join().unwrap().delivered, 1);
}

#[test]
fn a_sender_that_the_agent_closes_has_its_answer() {
    let Some(fabric) = fabric() else { return };
    let mut client = fabric.client(0);
    let sender = client.open_sender(GROUP).unwrap().handle;
    let large = tempfile::tempfile().unwrap();
    large.set_len(LARGE).unwrap();
    let mut receiver = fabric.client(1);
    receiver.open_file_receiver(GROUP, None).unwrap();
    client.write(sender, &start()).unwrap();
    let asked = client
        .begin(&send(sender, LARGE), Some(large.as_fd()))
        .unwrap();
    begun(&mut receiver);
    fabric.controller.set_plans(2, &[]);
    let error = refusal(client.answer(asked));
    assert_eq!(error.code, ErrorCode::Closed);
}

#[test]
fn a_descriptor_is_that_of_its_own_request_and_of_no_other() {
    let Some(fabric) = fabric() else { return };
    let mut client = fabric.client(0);
    let sender = client.open_sender(GROUP).unwrap().handle;
    let open = || fabric.agents[0].open_descriptors();
    let (before, wrong, right) = (open(), file_of(b"wrong"), file_of(&pattern(90_000, 1)));
    // Requests that are refused, or have none, between those that have one.
    let receive = Request::ReceiveFile {
        handle: 77,
        bytes: None,
    };
    for _ in 0..20 {
        let asked = [
            client.begin(&Request::Status {}, None).unwrap(),
            client.begin(&receive, Some(wrong.as_fd())).unwrap(),
            client.begin(&receive, None).unwrap(),
            client
                .begin(&send(sender, 90_000), Some(right.as_fd()))
                .unwrap(),
        ];
        client.answer(asked[0]).unwrap();
        let error = refusal(client.answer(asked[1]));
        assert_eq!(error.code, ErrorCode::WrongState);
        let error = refusal(client.answer(asked[2]));
        assert!(error.message.contains("no descriptor came"), "{error}");
        let digest = hex(&Sha256::digest(content_of(&right)));
        assert_eq!(client.answer(asked[3]).unwrap()["sha256"], digest.as_str());
        client.cancel_message(sender).unwrap();
    }
    wait_until("its descriptors are closed", LIMIT.unwrap(), || {
        open() <= before
    });
}

#[test]
fn who_breaks_the_rules_of_descriptors_is_told_and_disconnected() {
    let Some(fabric) = fabric() else { return };
    let ended = |client: &mut Client, why: &str| match client.status() {
        Err(ClientError::Ended(reason)) => assert!(reason.contains(why), "{reason}"),
        other => panic!("{other:?}"),
    };
    let file = file_of(b"x");
    let mut raw = UnixStream::connect(&fabric.agents[0].socket).unwrap();
    send_descriptors(&raw, &[file.as_fd(); 17]);
    let mut said = Vec::new();
    raw.read_to_end(&mut said).unwrap();
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("at most 16"), "{said}");
    let mut client = fabric.client(0);
    client
        .begin(&Request::Status {}, Some(file.as_fd()))
        .unwrap();
    ended(
        &mut client,
        "a descriptor came with a frame that needs none",
    );
    let mut client = fabric.client(0);
    let sender = client.open_sender(GROUP).unwrap().handle;
    let large = tempfile::tempfile().unwrap();
    large.set_len(LARGE).unwrap();
    client
        .begin(&send(sender, LARGE), Some(large.as_fd()))
        .unwrap();
    client.write(sender, b"x").unwrap();
    ended(&mut client, "of which a file is read");
    // Others are not concerned, nor is one that leaves in the middle.
    let mut client = fabric.client(0);
    let sender = client.open_sender(GROUP).unwrap().handle;
    client
        .begin(&send(sender, LARGE), Some(large.as_fd()))
        .unwrap();
    let again = client
        .begin(&send(sender, LARGE), Some(large.as_fd()))
        .unwrap();
    assert_eq!(refusal(client.answer(again)).code, ErrorCode::WrongState);
    drop(client);
    for _ in 0..20 {
        let mut client = fabric.client(0);
        client.open_sender(GROUP).unwrap();
        std::thread::sleep(Duration::from_millis(10));
        client.status().unwrap();
    }
}
