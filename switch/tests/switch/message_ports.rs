//! Frames in messages: over a pair of nanomsg sockets and over gRPC, to this switch and to
//! BMv2 where it is installed.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;
use tonic::transport::Channel;

use super::publishing::{Publishing, bmv2, free_port, own, wait_for};
use super::rig::PATIENCE;
use super::thrift_client::{int, part, text};
use wormcast_switch_bmv2::message_ports::PortMessage;
use wormcast_switch_bmv2::nanomsg::{Address, Client, SocketType};
use wormcast_switch_bmv2::proto::dataplane_interface_client::DataplaneInterfaceClient;
use wormcast_switch_bmv2::proto::{
    PacketStreamRequest, PacketStreamResponse, SetPortOperStatusRequest,
};
use wormcast_switch_bmv2::thrift::Value;

const MULTICAST: &str = include_str!("../programs/multicast.json");
const PASSES: &str = include_str!("../programs/passes.json");

/// A switch with a pair for frames, and its other end.
struct Paired {
    switch: Publishing,
    packets: Option<Client>,
}

impl Paired {
    fn start(command: Option<&Path>, json: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let arguments = ["--packet-in", "ipc://packets"];
        let mut paired = Self {
            switch: Publishing::start_in(folder, command, json, &arguments),
            packets: None,
        };
        paired.connect();
        paired
    }

    /// Once whoever was connected before has gone.
    fn connect(&mut self) {
        self.packets = None;
        let address = Address::Ipc(self.switch.folder.path().join("packets"));
        let packets = Client::connect(&address, SocketType::Pair, PATIENCE);
        self.packets = Some(packets.unwrap());
    }

    fn packets(&mut self) -> &mut Client {
        self.packets.as_mut().unwrap()
    }

    fn send(&mut self, message: &PortMessage) {
        self.packets().send(&message.to_bytes()).unwrap();
    }

    fn bring(&mut self, port: u32, frame: &[u8]) {
        self.send(&PortMessage::In {
            port,
            frame: padded(frame),
        });
    }

    fn hear(&mut self) -> PortMessage {
        let message = wait_for("a message", || self.packets().receive().unwrap());
        PortMessage::from_bytes(&message).unwrap()
    }

    /// Makes a multicast group of ports.
    fn add_group(&mut self, group: i32, ports: &[usize]) {
        let highest = ports.iter().max().unwrap();
        let map: String = (0..=*highest)
            .rev()
            .map(|port| if ports.contains(&port) { '1' } else { '0' })
            .collect();
        let client = &mut self.switch.client;
        let mut lag = |method: &str, rest: Vec<Value>| {
            let arguments = [vec![int(0)], rest].concat();
            let call = client.call(&format!("simple_pre_lag:{method}"), arguments);
            call.unwrap()
        };
        lag("bm_mc_mgrp_create", vec![int(group)]);
        let node = lag("bm_mc_node_create", vec![int(5), text(&map), text("")]);
        lag("bm_mc_node_associate", vec![int(group), node.unwrap()]);
    }
}

fn padded(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame.resize(60, 0);
    frame
}

/// What is heard of frames that are forwarded, recirculated and replicated, of a question,
/// and what goes wrong.
fn conversation(command: Option<&Path>) -> Vec<PortMessage> {
    let mut heard = Vec::new();
    let mut paired = Paired::start(command, PASSES);
    paired.send(&PortMessage::Add { port: 1 });
    paired.send(&PortMessage::Status { port: 1, up: false });
    // No such types, and what only a switch sends.
    for wrong in [[7u8; 12], [4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]] {
        paired.packets().send(&wrong).unwrap();
    }
    for (port, op) in [(3, 0), (3, 1), (200, 2)] {
        paired.bring(port, &[op]);
        heard.push(paired.hear());
    }
    paired.send(&PortMessage::Question {
        port: 1,
        question: 2,
    });
    heard.push(paired.hear());
    drop(paired);
    let mut paired = Paired::start(command, MULTICAST);
    paired.add_group(9, &[1, 2, 7]);
    paired.bring(2, &[0, 9]);
    // BMv2 has threads for ports, so that these come in any order.
    let mut copies = [paired.hear(), paired.hear()];
    copies.sort_by_key(PortMessage::to_bytes);
    heard.extend(copies);
    heard
}

#[test]
fn frames_come_and_go_over_a_pair() {
    let heard = conversation(None);
    let ports = heard.iter().map(|message| match message {
        PortMessage::Out { port, frame } => {
            assert_eq!(frame.len(), 60);
            Some(*port)
        }
        PortMessage::NotSupported { .. } => None,
        other => panic!("{other:?}"),
    });
    // What comes from port 2 does not go back there.
    let expected = [Some(1), Some(1), Some(1), None, Some(1), Some(7)];
    assert_eq!(ports.collect::<Vec<_>>(), expected);
    assert_eq!(
        heard[3],
        PortMessage::NotSupported {
            port: 1,
            question: 2
        }
    );
}

#[test]
fn bmv2_sends_the_same_over_a_pair() {
    let Some(command) = bmv2() else { return };
    assert_eq!(conversation(Some(&command)), conversation(None));
}

/// Ports are there once they are added or frames come to them, and go when they are removed.
#[test]
fn ports_of_a_pair_come_and_go() {
    let mut paired = Paired::start(None, PASSES);
    paired.send(&PortMessage::Add { port: 1 });
    paired.bring(3, &[0]);
    paired.hear();
    assert_eq!(ports(&mut paired), [(1, true), (3, true)]);
    paired.send(&PortMessage::Status { port: 1, up: false });
    paired.send(&PortMessage::Remove { port: 3 });
    // Port 512 is none; neither is the port after it a reason to stop.
    paired.bring(512, &[0]);
    paired.bring(511, &[0]);
    paired.hear();
    assert_eq!(ports(&mut paired), [(1, false), (511, true)]);
    // Somebody else may connect then. Frames leave by ports that are down too, as in BMv2.
    paired.connect();
    paired.bring(3, &[0]);
    assert!(matches!(paired.hear(), PortMessage::Out { port: 1, .. }));
    assert!(paired.switch.end());
}

/// Ports that the switch shows, and whether they are up.
fn ports(paired: &mut Paired) -> Vec<(i32, bool)> {
    let shown = paired
        .switch
        .client
        .call("standard:bm_dev_mgr_show_ports", Vec::new());
    let Ok(Some(Value::List(_, ports))) = shown else {
        panic!("{shown:?}");
    };
    let ports = ports.iter().map(|port| {
        let (Some(Value::I32(number)), Some(Value::Bool(up))) = (part(port, 1), part(port, 3))
        else {
            panic!("{port:?}");
        };
        (*number, *up)
    });
    ports.collect()
}

/// `simple_switch_grpc` with frames over gRPC; it ends with the value.
struct Streamed {
    child: Child,
    address: String,
    _folder: tempfile::TempDir,
}

impl Drop for Streamed {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Streamed {
    fn start(command: Option<PathBuf>, json: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let command = command.unwrap_or_else(|| {
            let named = folder.path().join("simple_switch_grpc");
            std::fs::rename(own(folder.path()), &named).unwrap();
            named
        });
        std::fs::write(folder.path().join("program.json"), json).unwrap();
        let address = format!("127.0.0.1:{}", free_port());
        let child = Command::new(command)
            .current_dir(folder.path())
            .args(["--device-id", "7", "program.json"])
            .args(["--thrift-port", &free_port().to_string(), "--"])
            .args(["--grpc-server-addr", "unix:p4runtime"])
            .args(["--dp-grpc-server-addr", &address])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            child,
            address,
            _folder: folder,
        }
    }

    async fn connect(&self) -> DataplaneInterfaceClient<Channel> {
        let start = std::time::Instant::now();
        loop {
            let address = format!("http://{}", self.address);
            match DataplaneInterfaceClient::connect(address).await {
                Ok(client) => return client,
                Err(error) => assert!(start.elapsed() < PATIENCE, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Opens a stream; a switch that has only just started says that it is not ready.
async fn open(
    client: &mut DataplaneInterfaceClient<Channel>,
) -> (
    mpsc::Sender<PacketStreamRequest>,
    tonic::Streaming<PacketStreamResponse>,
    PacketStreamResponse,
) {
    let start = std::time::Instant::now();
    loop {
        let (requests, stream) = mpsc::channel(16);
        // BMv2 answers with headers only once it has something to say.
        requests.send(request(1, 3, &[0])).await.unwrap();
        let opened = client.packet_stream(ReceiverStream::new(stream)).await;
        let first = match opened {
            Ok(responses) => {
                let mut responses = responses.into_inner();
                responses.message().await.map(|first| (responses, first))
            }
            Err(status) => Err(status),
        };
        match first {
            Ok((responses, first)) => return (requests, responses, first.unwrap()),
            Err(status) => {
                // The last one may not have ended yet.
                let code = status.code();
                assert!(
                    matches!(code, Code::Unavailable | Code::ResourceExhausted),
                    "{status}"
                );
                assert!(start.elapsed() < PATIENCE, "{status}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

fn request(id: u64, port: u32, frame: &[u8]) -> PacketStreamRequest {
    PacketStreamRequest {
        id,
        device_id: 7,
        port,
        packet: padded(frame),
    }
}

/// What is heard of some frames, and the codes of what is refused.
async fn stream(command: Option<PathBuf>) -> (Vec<PacketStreamResponse>, Vec<Code>) {
    let switch = Streamed::start(command, PASSES);
    let mut client = switch.connect().await;
    let (requests, mut responses, first) = open(&mut client).await;
    let mut heard = vec![first];
    // Of another device, and without a frame: passed over.
    let other = PacketStreamRequest {
        device_id: 8,
        ..request(2, 3, &[0])
    };
    let empty = PacketStreamRequest {
        packet: Vec::new(),
        ..request(3, 3, &[])
    };
    requests.send(other).await.unwrap();
    requests.send(empty).await.unwrap();
    // One after another: BMv2 works on several at a time.
    for request in [request(4, 3, &[2]), request(0, 200, &[1])] {
        requests.send(request).await.unwrap();
        heard.push(responses.message().await.unwrap().unwrap());
    }
    let mut refused = Vec::new();
    let second = mpsc::channel(1).1;
    let second = client.packet_stream(ReceiverStream::new(second)).await;
    let second = match second {
        Ok(stream) => stream.into_inner().message().await.unwrap_err(),
        Err(status) => status,
    };
    refused.push(second.code());
    for (device_id, oper_status) in [(8, 2), (7, 0), (7, 9), (7, 1), (7, 2)] {
        let status = SetPortOperStatusRequest {
            device_id,
            port: 1,
            oper_status,
        };
        let set = client.set_port_oper_status(status).await;
        refused.push(set.map_or_else(|status| status.code(), |_| Code::Ok));
    }
    // Who has said all hears the end.
    drop(requests);
    assert_eq!(responses.message().await.unwrap(), None);
    // What one leaves unread is not for the next.
    let (requests, responses, _) = open(&mut client).await;
    requests.send(request(5, 3, &[0])).await.unwrap();
    drop((requests, responses));
    let (requests, mut responses, first) = open(&mut client).await;
    heard.push(first);
    requests.send(request(6, 3, &[0])).await.unwrap();
    heard.push(responses.message().await.unwrap().unwrap());
    (heard, refused)
}

#[tokio::test]
async fn frames_come_and_go_over_grpc() {
    let (heard, refused) = stream(None).await;
    let heard: Vec<(u64, u64, u32)> = heard
        .iter()
        .map(|response| (response.id, response.device_id, response.port))
        .collect();
    let expected = [(1, 7, 1), (4, 7, 1), (0, 7, 1), (1, 7, 1), (6, 7, 1)];
    assert_eq!(heard, expected);
    let wrong = [
        Code::ResourceExhausted,
        Code::InvalidArgument,
        Code::InvalidArgument,
    ];
    assert_eq!(refused[..3], wrong);
    assert_eq!(refused[3..], [Code::InvalidArgument, Code::Ok, Code::Ok]);
}

#[tokio::test]
async fn bmv2_sends_the_same_over_grpc() {
    if bmv2_grpc().is_none() {
        return;
    }
    assert_eq!(stream(bmv2_grpc()).await, stream(None).await);
}

fn bmv2_grpc() -> Option<PathBuf> {
    let found = Command::new("simple_switch_grpc").arg("--version").output();
    if found.is_ok_and(|found| found.status.success()) {
        return Some("simple_switch_grpc".into());
    }
    eprintln!("skipped: simple_switch_grpc is not installed");
    None
}
