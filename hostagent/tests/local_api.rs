//! The local API as a stranger would use it: out of turn, out of bounds, out of its own
//! connection.

use crate::support;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::thread::JoinHandleExt;
use std::path::Path;
use std::time::{Duration, Instant};
use support::{Fabric, group, pattern, wait_until};
use wormcast_agent::client::{Client, ClientError};
use wormcast_agent_core::api::{AbortReason, ApiError, ErrorCode, GroupSelector, Request};

const LIMIT: Option<Duration> = Some(Duration::from_secs(600));

fn refusal<T: std::fmt::Debug>(result: Result<T, ClientError>) -> ApiError {
    match result {
        Err(ClientError::Refused(error)) => error,
        other => panic!("not refused: {other:?}"),
    }
}

fn fabric() -> Option<Fabric> {
    let mut groups = vec![group(1, "repeat", &[0, 1]), group(300, "tree", &[0, 1])];
    groups[1].name = "logs".to_owned();
    Fabric::start(2, &groups, &[])
}

#[test]
fn refusals_name_value_bound_and_choices() {
    let Some(fabric) = fabric() else { return };
    let mut client = fabric.client(0);
    let error = refusal(client.open_sender(9_u16));
    assert_eq!(error.code, ErrorCode::UnknownGroup);
    assert_eq!(
        error.message,
        "host 0 is not a member of group 9; it is a member of: 1 (group1), 300 (logs)"
    );
    assert_eq!(error.choices, [1, 300]);
    let error = refusal(client.open_receiver("nope", None));
    assert!(
        error
            .message
            .contains("group \"nope\"; it is a member of: 1 (group1)"),
        "{error}"
    );
    let error = refusal(client.open_sender(255_u16));
    assert_eq!(error.code, ErrorCode::OutOfRange);
    assert!(error.message.contains("broadcast"), "{error}");
    for number in [-1, 65_536, i64::MAX] {
        let request = Request::OpenSender {
            group: GroupSelector::Number(number),
            progress_ms: 0,
            rate_bits: None,
        };
        let error = refusal(client.ask(&request));
        assert_eq!(
            error.message,
            format!("group {number}; groups are 0 to 65535 without 255")
        );
    }
    let error = refusal(client.open_receiver(1_u16, Some(7)));
    assert_eq!(
        error.message,
        "host 7 is not another member of group 1; those are: 1"
    );
    let request = Request::OpenSender {
        group: GroupSelector::Number(1),
        progress_ms: 3,
        rate_bits: None,
    };
    assert_eq!(
        refusal(client.ask(&request)).message,
        "progress_ms is 3; it must be 0 or 50 to 60000"
    );

    let sender = client.open_sender("logs").unwrap();
    let error = refusal(client.confirm(sender.handle));
    assert_eq!(error.code, ErrorCode::WrongHandle);
    assert_eq!(refusal(client.close(77)).code, ErrorCode::UnknownHandle);
    let error = refusal(client.wait_stable(sender.handle, 5, None));
    assert_eq!(error.code, ErrorCode::OutOfRange);
    // Nobody answers at host 1: the wait ends by itself.
    client.write(sender.handle, b"x").unwrap();
    let message = client.end_message(sender.handle).unwrap();
    let error =
        refusal(client.wait_stable(sender.handle, message, Some(Duration::from_millis(50))));
    assert_eq!(error.code, ErrorCode::Timeout);
}

#[test]
fn handles_of_one_connection_mean_nothing_on_another() {
    let Some(fabric) = fabric() else { return };
    let mut owner = fabric.client(0);
    let mut stranger = fabric.client(0);
    let sender = owner.open_sender(1_u16).unwrap();
    let receiver = owner.open_receiver(1_u16, None).unwrap();
    for handle in [sender.handle, receiver.handle] {
        assert_eq!(
            refusal(stranger.close(handle)).code,
            ErrorCode::UnknownHandle
        );
        assert_eq!(
            refusal(stranger.end_message(handle)).code,
            ErrorCode::UnknownHandle
        );
        assert_eq!(
            refusal(stranger.abort(handle, AbortReason::NoSpace)).code,
            ErrorCode::UnknownHandle
        );
    }
    // What one receives, no other does.
    let error = refusal(stranger.open_receiver(1_u16, None));
    assert_eq!(error.code, ErrorCode::Busy);
    assert!(
        error.message.contains(&std::process::id().to_string()),
        "{error}"
    );
    assert_eq!(
        refusal(stranger.open_receiver(1_u16, Some(1))).code,
        ErrorCode::Busy
    );
    drop(owner);
    wait_until("freed", Duration::from_secs(600), || {
        stranger.open_receiver(1_u16, None).is_ok()
    });
}

#[test]
fn the_window_is_the_most_an_application_can_have_buffered() {
    let Some(fabric) = fabric() else { return };
    let mut raw = Raw::connect(&fabric.agents[0].socket);
    raw.hello();
    // Host 1 has no receiver, so the engine's window fills and nothing is taken any more.
    raw.control(r#"{"id":2,"op":"open_sender","group":1}"#);
    assert!(raw.read_control().contains("\"window_bytes\":1048576"));
    let mut client = fabric.client(0);
    // Keeping to the window is never punished: more than all buffers together.
    let mut sent = 0_u64;
    let mut window = 1 << 20;
    raw.stream
        .set_read_timeout(Some(Duration::from_secs(1)))
        .unwrap();
    while window > 0 {
        raw.data(1, &pattern(window.min(1 << 18), 1));
        sent += window.min(1 << 18) as u64;
        window -= window.min(1 << 18);
        // Notices come all the while: that nobody takes the message.
        let until = Instant::now() + Duration::from_secs(1);
        while window == 0 && Instant::now() < until {
            if let Some((3, body)) = raw.try_read_frame() {
                window += u32::from_be_bytes(body[4..8].try_into().unwrap()) as usize;
            }
        }
    }
    assert!(sent > 2 << 20, "{sent}");
    // One byte more, and the connection ends; others do not notice.
    raw.data(1, b"x");
    let text = raw.read_goodbye();
    assert!(text.contains("window has room for 0 of 1048576"), "{text}");
    assert!(client.status().is_ok());
}

#[test]
fn nonsense_ends_the_connection_with_a_reason_and_harms_no_other() {
    let Some(fabric) = fabric() else { return };
    let mut bystander = fabric.client(0);
    for (bytes, reason) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], "frame type 47"),
        (&[0, 0, 0, 0][..], "length 0"),
        (
            &[0xff, 0xff, 0xff, 0xff, 1][..],
            "at most 1048576|to 1048576",
        ),
        (&[0, 0, 0, 3, 1, b'{', b'x'][..], "not a JSON object"),
        (&[0, 0, 0, 6, 2, 0, 0, 0, 1, b'x'][..], "must be a hello"),
    ] {
        let mut raw = Raw::connect(&fabric.agents[0].socket);
        raw.stream.write_all(bytes).unwrap();
        let text = raw.read_goodbye();
        assert!(reason.split('|').any(|part| text.contains(part)), "{text}");
    }
    let mut raw = Raw::connect(&fabric.agents[0].socket);
    raw.control(r#"{"id":1,"op":"status"}"#);
    assert!(raw.read_control().contains("hello_first"));
    raw.control(r#"{"id":2,"op":"hello","version":99}"#);
    assert!(raw.read_control().contains("this agent speaks 1"));
    // Many bytes of noise, many times.
    for seed in 0..200 {
        let mut raw = Raw::connect(&fabric.agents[0].socket);
        raw.hello();
        let _ = raw.stream.write_all(&pattern(400, seed));
    }
    assert!(bystander.status().is_ok());
}

#[test]
fn connections_and_handles_are_bounded() {
    let Some(fabric) = fabric() else { return };
    let mut client = fabric.client(0);
    for _ in 0..32 {
        client.open_sender(1_u16).unwrap();
    }
    let error = refusal(client.open_sender(1_u16));
    assert_eq!(error.code, ErrorCode::LimitReached);
    assert!(error.message.contains("32"), "{error}");
    let mut others: Vec<Client> = (1..32).map(|_| fabric.client(0)).collect();
    match Client::connect(&fabric.agents[0].socket) {
        Err(ClientError::Ended(reason)) => assert!(reason.contains("32 local clients"), "{reason}"),
        Err(ClientError::System(_)) => {}
        other => panic!("{other:?}"),
    }
    others.pop();
    wait_until("room", Duration::from_secs(600), || {
        Client::connect(&fabric.agents[0].socket).is_ok()
    });
}

/// No message of it will end and make room.
#[test]
fn a_receiver_without_a_handle_left_holds_nobody_up() {
    let Some(fabric) = fabric() else { return };
    let mut full = fabric.client(1);
    full.open_receiver(1_u16, None).unwrap();
    for _ in 1..32 {
        full.open_sender(1_u16).unwrap();
    }
    let mut client = fabric.client(0);
    let sender = client.open_sender(1_u16).unwrap().handle;
    client.write(sender, b"for nobody").unwrap();
    let message = client.end_message(sender).unwrap();
    let stable = client
        .wait_stable(sender, message, Some(Duration::from_secs(60)))
        .unwrap();
    assert_eq!((stable.delivered, stable.failed), (0, 1), "{stable:?}");
}

#[test]
fn clients_without_a_hello_keep_others_out_only_for_a_while() {
    let Some(fabric) = fabric() else { return };
    let mut greeted = fabric.client(0);
    let socket = &fabric.agents[0].socket;
    let silent: Vec<Raw> = (1..32)
        .map(|number| {
            let mut raw = Raw::connect(socket);
            // Some begin a frame, and go no further.
            raw.stream
                .write_all(&[0, 0, 0, 99, 1][..number % 6])
                .unwrap();
            raw
        })
        .collect();
    for mut raw in silent {
        let patience = Some(Duration::from_secs(120));
        raw.stream.set_read_timeout(patience).unwrap();
        let mut said = Vec::new();
        let _ = raw.stream.read_to_end(&mut said);
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(said.contains("no hello within 30 s"), "{said}");
    }
    assert!(greeted.status().is_ok());
    wait_until("room", Duration::from_secs(600), || {
        Client::connect(socket).is_ok()
    });
}

#[test]
fn a_flood_of_tiny_pieces_is_taken_without_pause() {
    let Some(fabric) = fabric() else { return };
    let mut receiver = fabric.client(1);
    receiver.open_receiver(1_u16, None).unwrap();
    let start = std::time::Instant::now();
    let mut raw = Raw::connect(&fabric.agents[0].socket);
    raw.hello();
    raw.control(r#"{"id":2,"op":"open_sender","group":1}"#);
    assert!(raw.read_control().contains("window_bytes"));
    // Many commands for each turn of the data plane, all at once.
    let mut frames = Vec::new();
    for _ in 0..20_000 {
        frames.extend_from_slice(&[0, 0, 0, 6, 2, 0, 0, 0, 1, b'x']);
    }
    raw.stream.write_all(&frames).unwrap();
    raw.control(r#"{"id":3,"op":"end_message","handle":1}"#);
    let mut length = None;
    while length.is_none() {
        use wormcast_agent::client::Incoming;
        use wormcast_agent_core::api::Notice;
        if let Incoming::Notice(Notice::MessageEnd { length: all, .. }) =
            receiver.receive(LIMIT).unwrap().expect("in time")
        {
            length = Some(all);
        }
    }
    assert_eq!(length, Some(20_000));
    // Were the rest of a turn left until something else wakes the agent, this would take
    // a second for each hundred commands: 200 s, where it takes tenths of one.
    assert!(
        start.elapsed() < Duration::from_secs(150),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn empty_and_tiny_messages_arrive_one_by_one() {
    let Some(fabric) = fabric() else { return };
    let mut client = fabric.client(0);
    let mut receiver = fabric.client(1);
    receiver.open_receiver("logs", Some(0)).unwrap();
    let sender = client.open_sender("logs").unwrap();
    let lengths = [0_usize, 1, 0, 0, 2, 1500, 0];
    for &length in &lengths {
        client.write(sender.handle, &pattern(length, 1)).unwrap();
        client.end_message(sender.handle).unwrap();
    }
    let mut arrived = Vec::new();
    while arrived.len() < lengths.len() {
        use wormcast_agent::client::Incoming;
        use wormcast_agent_core::api::Notice;
        match receiver.receive(LIMIT).unwrap().expect("in time") {
            Incoming::Notice(Notice::MessageEnd { handle, length, .. }) => {
                arrived.push(length as usize);
                receiver.confirm(handle).unwrap();
            }
            Incoming::Notice(Notice::MessageLost { .. }) => panic!("lost"),
            _ => {}
        }
    }
    assert_eq!(arrived, lengths);
    for message in 0..lengths.len() as u64 {
        assert_eq!(
            client
                .wait_stable(sender.handle, message, LIMIT)
                .unwrap()
                .failed,
            0
        );
    }
}

/// A client without manners.
struct Raw {
    stream: UnixStream,
}

impl Raw {
    fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(600)))
            .unwrap();
        Self { stream }
    }

    fn hello(&mut self) {
        self.control(r#"{"id":1,"op":"hello","version":1}"#);
        assert!(self.read_control().contains("\"agent_version\""));
    }

    fn control(&mut self, json: &str) {
        let mut frame = (json.len() as u32 + 1).to_be_bytes().to_vec();
        frame.push(1);
        frame.extend_from_slice(json.as_bytes());
        self.stream.write_all(&frame).unwrap();
    }

    fn data(&mut self, handle: u32, bytes: &[u8]) {
        let mut frame = (bytes.len() as u32 + 5).to_be_bytes().to_vec();
        frame.push(2);
        frame.extend_from_slice(&handle.to_be_bytes());
        frame.extend_from_slice(bytes);
        self.stream.write_all(&frame).unwrap();
    }

    fn try_read_frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut header = [0; 5];
        self.stream.read_exact(&mut header).ok()?;
        let length = u32::from_be_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let mut body = vec![0; length - 1];
        self.stream.read_exact(&mut body).ok()?;
        Some((header[4], body))
    }

    fn read_control(&mut self) -> String {
        let (kind, body) = self.try_read_frame().expect("a frame");
        assert_eq!(kind, 1);
        String::from_utf8(body).unwrap()
    }

    /// What the agent says last; then the connection must be closed.
    fn read_goodbye(&mut self) -> String {
        let mut last = String::new();
        while let Some((kind, body)) = self.try_read_frame() {
            if kind == 1 {
                last = String::from_utf8(body).unwrap();
            }
        }
        assert!(last.contains("goodbye"), "{last}");
        assert!(matches!(self.stream.read(&mut [0; 1]), Ok(0) | Err(_)));
        last
    }
}

#[test]
fn a_signal_ends_no_wait() {
    extern "C" fn nothing(_: libc::c_int) {}
    let Some(fabric) = fabric() else { return };
    // SAFETY: the handler does nothing.
    unsafe { libc::signal(libc::SIGUSR1, nothing as *const () as libc::sighandler_t) };
    let mut client = fabric.client(0);
    let waiting = std::thread::spawn(move || client.receive(Some(Duration::from_secs(1))));
    let thread = waiting.as_pthread_t();
    for _ in 0..10 {
        std::thread::sleep(Duration::from_millis(20));
        // SAFETY: the thread is joined below.
        unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
    }
    assert_eq!(waiting.join().unwrap().unwrap(), None);
}
