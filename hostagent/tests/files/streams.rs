//! Stream sockets in place of files.

use super::*;
use std::net::Shutdown;

const BYTES: usize = 3_000_001;

/// A client that sends, its sender, and one that receives.
fn ends(fabric: &Fabric) -> (Client, u32, Client) {
    let mut receiver = fabric.client(1);
    receiver.open_file_receiver(GROUP, None).unwrap();
    let mut client = fabric.client(0);
    let sender = client.open_sender(GROUP).unwrap().handle;
    (client, sender, receiver)
}

#[test]
fn streams_carry_content_whatever_their_pace() {
    let Some(fabric) = fabric() else { return };
    let content = pattern(BYTES, 9);
    let (mut client, sender, mut receiver) = ends(&fabric);
    client.write(sender, &start()).unwrap();
    let (mut feed, source) = UnixStream::pair().unwrap();
    let sent = content.clone();
    let feeding = std::thread::spawn(move || {
        for piece in sent.chunks(BYTES / 5) {
            feed.write_all(piece).unwrap();
            std::thread::sleep(Duration::from_millis(150));
        }
    });
    let asked = client
        .begin(&send(sender, BYTES as u64), Some(source.as_fd()))
        .unwrap();
    drop(source);
    let handle = begun(&mut receiver);
    let (mut outlet, target) = UnixStream::pair().unwrap();
    receiver
        .receive_file(handle, &target, Some(BYTES as u64))
        .unwrap();
    // This copy of the end that is written stays open.
    let reading = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(500));
        let mut content = Vec::new();
        outlet.read_to_end(&mut content).unwrap();
        content
    });
    let digest = Sha256::digest(&content);
    assert_eq!(
        client.answer(asked).unwrap()["sha256"],
        hex(&digest).as_str()
    );
    feeding.join().unwrap();
    client.write(sender, &digest).unwrap();
    let message = client.end_message(sender).unwrap();
    assert!(matches!(notice(&mut receiver), Notice::MessageEnd { .. }));
    assert!(reading.join().unwrap() == content);
    receiver.confirm(handle).unwrap();
    assert_eq!(
        client
            .wait_stable(sender, message, LIMIT)
            .unwrap()
            .delivered,
        1
    );
}

#[test]
fn a_stream_that_ends_early_or_that_nobody_reads_is_told() {
    let Some(fabric) = fabric() else { return };
    let (mut client, sender, mut receiver) = ends(&fabric);
    let large = tempfile::tempfile().unwrap();
    large.set_len(LARGE).unwrap();
    client.write(sender, &start()).unwrap();
    let asked = client
        .begin(&send(sender, LARGE), Some(large.as_fd()))
        .unwrap();
    let handle = begun(&mut receiver);
    let (outlet, target) = UnixStream::pair().unwrap();
    outlet.shutdown(Shutdown::Both).unwrap();
    receiver.receive_file(handle, &target, None).unwrap();
    match notice(&mut receiver) {
        Notice::FileFailed { code, .. } => assert_eq!(code, ErrorCode::Storage),
        other => panic!("{other:?}"),
    }
    client.cancel_message(sender).unwrap();
    // Until its answer nothing else can be written.
    assert_eq!(refusal(client.answer(asked)).code, ErrorCode::Closed);

    client.write(sender, &start()).unwrap();
    let (mut feed, source) = UnixStream::pair().unwrap();
    feed.write_all(&pattern(100, 1)).unwrap();
    drop(feed);
    let error = refusal(client.send_stream(sender, &source, 101));
    assert_eq!(error.code, ErrorCode::Storage);
    assert!(
        error.message.contains("ended after 100 of 101 bytes"),
        "{error}"
    );
}

#[test]
fn threads_end_with_their_clients_though_nothing_moves() {
    let Some(fabric) = fabric() else { return };
    let (mut client, sender, mut receiver) = ends(&fabric);
    client.write(sender, &start()).unwrap();
    let (mut feed, source) = UnixStream::pair().unwrap();
    let feeding = std::thread::spawn(move || {
        // As much as the other end takes, and then no more of it.
        let _ = feed.write_all(&pattern(BYTES, 2));
        feed
    });
    client
        .begin(&send(sender, LARGE), Some(source.as_fd()))
        .unwrap();
    let handle = begun(&mut receiver);
    let (outlet, target) = UnixStream::pair().unwrap();
    receiver.receive_file(handle, &target, None).unwrap();
    wait_until("both are at work", LIMIT.unwrap(), || {
        fabric.agents[..2].iter().all(|it| it.file_threads() == 1)
    });
    drop((client, receiver));
    wait_until("both have ended", LIMIT.unwrap(), || {
        fabric.agents[..2].iter().all(|it| it.file_threads() == 0)
    });
    drop((source, outlet, target));
    feeding.join().unwrap();
}
