use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::super::Client;
use super::*;

const PATIENCE: Duration = Duration::from_secs(20);

fn ipc(folder: &tempfile::TempDir) -> Address {
    Address::Ipc(folder.path().join("socket"))
}

fn any_tcp() -> Address {
    "tcp://127.0.0.1:0".parse().unwrap()
}

/// Connects away from the runtime, which has to answer.
async fn subscribe(publisher: &Publisher) -> Client {
    let address = publisher.address().clone();
    let connect = move || Client::connect(&address, SocketType::Subscriber, PATIENCE);
    tokio::task::spawn_blocking(connect).await.unwrap().unwrap()
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn hear(client: &mut Client) -> Vec<u8> {
    let mut heard = None;
    until("a message", || {
        heard = client.receive().unwrap();
        heard.is_some()
    })
    .await;
    heard.unwrap()
}

#[tokio::test]
async fn all_subscribers_hear_all_messages_in_order() {
    let folder = tempfile::tempdir().unwrap();
    for address in [ipc(&folder), any_tcp()] {
        let publisher = Publisher::bind(&address).await.unwrap();
        publisher.publish(b"nobody");
        assert!(!publisher.is_heard());
        let mut clients = Vec::new();
        for _ in 0..5 {
            clients.push(subscribe(&publisher).await);
        }
        until("five subscribers", || publisher.counts().subscribers == 5).await;
        publisher.publish(b"one");
        publisher.publish(b"");
        publisher.publish(&[7; 100_000]);
        for client in &mut clients {
            assert_eq!(hear(client).await, b"one");
            assert_eq!(hear(client).await, b"");
            assert_eq!(hear(client).await, [7; 100_000]);
        }
        clients.truncate(2);
        until("those that went", || publisher.counts().subscribers == 2).await;
        let counts = publisher.counts();
        assert_eq!((counts.published, counts.delivered), (4, 15));
        assert_eq!((counts.dropped, counts.refused), (0, 0));
    }
}

#[tokio::test]
async fn the_file_goes_with_the_socket() {
    let folder = tempfile::tempdir().unwrap();
    let address = ipc(&folder);
    let publisher = Publisher::bind(&address).await.unwrap();
    let error = Publisher::bind(&address).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    let mut client = subscribe(&publisher).await;
    until("the subscriber", || publisher.is_heard()).await;
    drop(publisher);
    assert!(!folder.path().join("socket").exists());
    until("the end", || client.receive().is_err()).await;
}

/// It neither holds up the switch nor the others.
#[tokio::test]
async fn one_that_never_reads_loses_messages_and_nobody_else() {
    let publisher = Publisher::bind(&any_tcp()).await.unwrap();
    let asleep = subscribe(&publisher).await;
    until("the first", || publisher.counts().subscribers == 1).await;
    let long = vec![1; 100_000];
    let start = Instant::now();
    while publisher.counts().dropped == 0 {
        assert!(start.elapsed() < PATIENCE, "its queue fills");
        publisher.publish(&long);
        tokio::task::yield_now().await;
    }
    let mut awake = subscribe(&publisher).await;
    until("the second", || publisher.counts().subscribers == 2).await;
    let dropped = publisher.counts().dropped;
    for number in 0..100 {
        publisher.publish(&[number; 200_000]);
        assert_eq!(hear(&mut awake).await, [number; 200_000]);
    }
    assert!(publisher.counts().dropped > dropped);
    drop(asleep);
    until("the first to go", || publisher.counts().subscribers == 1).await;
}

#[tokio::test]
async fn short_messages_fill_the_queue_too() {
    let publisher = Publisher::bind(&any_tcp()).await.unwrap();
    let mut client = subscribe(&publisher).await;
    until("the subscriber", || publisher.is_heard()).await;
    // Nothing is sent before this task waits.
    for number in 0..QUEUE_MESSAGES_MAX as u32 + 3 {
        publisher.publish(&number.to_be_bytes());
    }
    assert_eq!(publisher.counts().dropped, 3);
    for number in 0..QUEUE_MESSAGES_MAX as u32 {
        assert_eq!(hear(&mut client).await, number.to_be_bytes());
    }
    publisher.publish(&vec![0; MESSAGE_BYTES_MAX + 1]);
    assert_eq!(publisher.counts().dropped, 4, "nobody takes it");
    publisher.publish(b"last");
    assert_eq!(hear(&mut client).await, b"last");
}

#[tokio::test]
async fn what_is_no_subscriber_is_closed_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let publisher = Publisher::bind(&ipc(&folder)).await.unwrap();
    let path = folder.path().join("socket");
    let said: [&[u8]; 6] = [
        b"GET / HTTP/1.1\r\n",
        b"\0SP\0\0\x20\0\0",
        b"\0SP\x01\0\x21\0\0",
        b"\0SP\0\x01\x21\0\0",
        b"\0SP\0\0\x21\0\x01",
        b"\0SP",
    ];
    for said in said {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(said).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let ended = tokio::task::spawn_blocking(move || {
            let mut heard = Vec::new();
            // Its end may come as one or as an error, for what it sent was not read.
            let _ = stream.read_to_end(&mut heard);
            heard
        });
        let heard = ended.await.unwrap();
        assert!(b"\0SP\0\0\x20\0\0".starts_with(&heard), "{heard:?}");
    }
    until("six", || publisher.counts().refused == 6).await;
    assert!(!publisher.is_heard());
    // One that talks after its header is no subscriber either.
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(b"\0SP\0\0\x21\0\0").unwrap();
    until("it is one", || publisher.is_heard()).await;
    stream.write_all(b"x").unwrap();
    until("it is none", || !publisher.is_heard()).await;
}

#[tokio::test]
async fn connections_beyond_the_limit_are_closed() {
    let publisher = Publisher::bind(&any_tcp()).await.unwrap();
    let Address::Tcp(address) = *publisher.address() else {
        panic!("TCP");
    };
    // Those that say nothing count too.
    let silent: Vec<TcpStream> = (0..SUBSCRIBERS_MAX)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    let _one_more = TcpStream::connect(address).unwrap();
    until("one is closed", || publisher.counts().refused == 1).await;
    drop(silent);
    until("there is room", || {
        publisher.counts().refused == 1 + SUBSCRIBERS_MAX as u64
    })
    .await;
    let mut client = subscribe(&publisher).await;
    until("the subscriber", || publisher.is_heard()).await;
    publisher.publish(b"heard");
    assert_eq!(hear(&mut client).await, b"heard");
}
