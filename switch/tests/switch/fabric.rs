//! Many switches in one process.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tonic::Code;
use tonic::transport::Channel;

use super::messages::{FORWARD, action, address, insert, table};
use super::network::{add_link, in_namespace};
use super::rig::{Controller, PATIENCE, objects, runtime, settings};
use wormcast_switch_dataplane::{DetachedSwitch, SwitchSettings};
use wormcast_switch_p4runtime::proto::p4::v1::CapabilitiesRequest;
use wormcast_switch_p4runtime::proto::p4::v1::p4_runtime_client::P4RuntimeClient;
use wormcast_switch_p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use wormcast_switch_pipeline::LoadedProgram;
use wormcast_switch_pipeline::{EntryAction, Pipeline, PipelineConfig, PortId, TableEntry};
use wormcast_switch_ports::{Interface, ReceiveRing, TransmitQueue};
use wormcast_switch_program::{ActionCall, FieldMatch};

const EAST: [u8; 6] = [2, 0, 0, 0, 0, 0x0e];
const WEST: [u8; 6] = [2, 0, 0, 0, 0, 0x0a];

/// Memory that 300 switches with a program may take, in KiB; a program of its own for each
/// would take more.
const RESIDENT_KIB_MAX: u64 = 400 << 10;

/// The switch as a process of its own, which ends with the test.
pub struct Process {
    child: Child,
    pub address: String,
}

impl Process {
    pub fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_wormcast-switch"))
            .args(arguments)
            .args(["--grpc-server-addr", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut listening = lines.map_while(Result::ok).filter_map(|line| {
            line.strip_prefix("Server listening on ")
                .map(|address| format!("http://{address}"))
        });
        let Some(address) = listening.next() else {
            panic!("it does not listen: {:?}", child.wait());
        };
        // What it prints later has room in the pipe.
        Self { child, address }
    }

    async fn connect(&self) -> P4RuntimeClient<Channel> {
        P4RuntimeClient::connect(self.address.clone())
            .await
            .unwrap()
    }

    /// A controller that is primary of a device, with the test program set.
    async fn controller(&self, device_id: u64) -> Controller {
        let mut controller = Controller::open_to(self.connect().await, device_id, 1).await;
        controller.arbitrate(1).await;
        controller
            .set_config(Action::VerifyAndCommit, objects())
            .await
            .unwrap();
        controller
    }

    /// Tells it to end and waits until it has.
    fn end(mut self) {
        // SAFETY: no pointers; the process is our child and has not been waited for.
        unsafe { libc::kill(self.child.id() as i32, libc::SIGTERM) };
        assert!(self.child.wait().unwrap().success());
    }

    /// Processor time of the first thread of the data plane, in clock ticks.
    fn dataplane_ticks(&self) -> u64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let mut stats = tasks.filter_map(|task| {
            let stat = task.unwrap().path().join("stat");
            std::fs::read_to_string(stat).ok()
        });
        let Some(stat) = stats.find(|stat| stat.contains("(dataplane-0)")) else {
            return 0; // it has not come so far
        };
        let (_, after_name) = stat.rsplit_once(") ").unwrap();
        let words: Vec<&str> = after_name.split_whitespace().collect();
        // `utime` and `stime`, proc_pid_stat(5).
        words[11..13]
            .iter()
            .map(|word| word.parse::<u64>().unwrap())
            .sum()
    }

    fn resident_kib(&self) -> u64 {
        let status = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(status).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let words: Vec<&str> = line.unwrap().split_whitespace().collect();
        words[1].parse().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn frame(to: [u8; 6], number: u32) -> Vec<u8> {
    let mut frame = to.to_vec();
    frame.extend([2, 0, 0, 0, 0, 1, 0x88, 0xb6]);
    frame.extend(number.to_be_bytes());
    frame.resize(100, 0x5a);
    frame
}

/// Sends numbered frames and gives the numbers of those that arrive at the other end.
fn send_through(from: &str, to: &str, address: [u8; 6], count: u32) -> Vec<u32> {
    let mut sender = TransmitQueue::open(&Interface::find(from).unwrap()).unwrap();
    let mut receiver = ReceiveRing::open(&Interface::find(to).unwrap(), 4_096).unwrap();
    for number in 0..count {
        while !sender.push(&frame(address, number)) {
            sender.flush();
        }
    }
    sender.flush();
    let mut numbers = Vec::new();
    let start = Instant::now();
    while numbers.len() < count as usize && start.elapsed() < PATIENCE {
        receiver.receive(64, |bytes| {
            let number = u32::from_be_bytes(bytes[14..18].try_into().unwrap());
            assert_eq!(bytes, frame(address, number));
            numbers.push(number);
        });
        std::thread::sleep(std::time::Duration::from_micros(200));
    }
    numbers
}

pub const LINE: &str = r#"{
    "cpu_port": 510,
    "switches": [
        {"name": "west", "device_id": 10},
        {"name": "middle", "device_id": 11},
        {"name": "east", "device_id": 12}
    ],
    "links": [{"ends": ["west:1", "middle:1"]}, {"ends": ["middle:2", "east:1"]}],
    "edges": [{"port": "west:0", "interface": "s0"}, {"port": "east:0", "interface": "s1"}]
}"#;

/// Frames pass a line of three switches in both directions, whichever thread has which.
#[test]
fn a_line_of_three_forwards_between_its_edges() {
    for workers in ["1", "3"] {
        in_namespace(move || {
            add_link("s0", "h0");
            add_link("s1", "h1");
            let directory = tempfile::tempdir().unwrap();
            let path = |name: &str| directory.path().join(name).display().to_string();
            std::fs::write(path("line.json"), LINE).unwrap();
            let process = Process::start(&[
                "--fabric",
                &path("line.json"),
                "--workers",
                workers,
                "--statistics",
                &path("statistics.json"),
            ]);
            let runtime = runtime();
            runtime.block_on(async {
                for (device_id, east, west) in [(10, 1, 0), (11, 2, 1), (12, 0, 1)] {
                    let mut controller = process.controller(device_id).await;
                    let entry =
                        |to, port: u8| insert(table(address(to, action(FORWARD, &[&[port]]))));
                    let updates = vec![entry(&EAST, east), entry(&WEST, west)];
                    controller.write(updates).await.unwrap();
                }
            });
            assert_eq!(
                send_through("h0", "h1", EAST, 500),
                (0..500).collect::<Vec<_>>()
            );
            assert_eq!(
                send_through("h1", "h0", WEST, 100),
                (0..100).collect::<Vec<_>>()
            );
            process.end();
            check_statistics(Path::new(&path("statistics.json")));
        });
    }
}

/// What each switch of the line counted, under its device id.
fn check_statistics(path: &Path) {
    let text = std::fs::read_to_string(path).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    for device_id in ["10", "11", "12"] {
        let ports = value[device_id]["ports"].as_array().unwrap();
        let sum = |key: &str| -> u64 {
            let counts = ports.iter().map(|port| port[key].as_u64().unwrap());
            counts.sum()
        };
        assert_eq!(sum("received_frames"), 600, "{device_id}: {text}");
        assert_eq!(sum("sent_frames"), 600, "{device_id}: {text}");
    }
    assert_eq!(value["11"]["ports"][0]["interface"], "west-eth1");
}

#[tokio::test]
async fn a_device_that_is_not_there_is_named_with_those_that_are() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("line.json");
    let without_edges = LINE.replace(
        r#"{"port": "west:0", "interface": "s0"}, {"port": "east:0", "interface": "s1"}"#,
        "",
    );
    std::fs::write(&path, without_edges).unwrap();
    let process = Process::start(&["--fabric", &path.display().to_string()]);
    let mut controller = Controller::open_to(process.connect().await, 9, 1).await;
    let error = controller.write(vec![]).await.unwrap_err();
    let expected = "there is no device 9; there are 10, 11, 12";
    assert_eq!((error.code(), error.message()), (Code::NotFound, expected));
    let update = |device_id| {
        use wormcast_switch_p4runtime::proto::p4::v1::MasterArbitrationUpdate;
        use wormcast_switch_p4runtime::proto::p4::v1::stream_message_request::Update;
        Update::Arbitration(MasterArbitrationUpdate {
            device_id,
            ..MasterArbitrationUpdate::default()
        })
    };
    controller.say(update(9)).await;
    let error = controller.hear().await.unwrap_err();
    assert_eq!((error.code(), error.message()), (Code::NotFound, expected));
    // A device of the others has its own primary.
    let mut first = Controller::open_to(process.connect().await, 10, 5).await;
    first.arbitrate(5).await;
    let mut second = Controller::open_to(process.connect().await, 11, 1).await;
    let status = second.arbitrate(1).await.status.unwrap();
    assert_eq!(status.code, Code::Ok as i32, "{status:?}");
    process.end();
}

/// A ring of 300 switches starts, every one answers and takes a program, and they share
/// it.
#[tokio::test]
async fn three_hundred_switches_share_a_process() {
    const SWITCHES: u64 = 300;
    let join = |items: Vec<String>| items.join(",");
    let switches = join(Vec::from_iter(
        (0..SWITCHES).map(|number| format!(r#"{{"name": "s{number}"}}"#)),
    ));
    let links = join(Vec::from_iter((0..SWITCHES).map(|number| {
        let next = (number + 1) % SWITCHES;
        format!(r#"{{"ends": ["s{number}:1", "s{next}:2"]}}"#)
    })));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ring.json");
    let file = format!(r#"{{"cpu_port": 510, "switches": [{switches}], "links": [{links}]}}"#);
    std::fs::write(&path, file).unwrap();
    let process = Process::start(&["--fabric", &path.display().to_string()]);
    let mut client = process.connect().await;
    for device_id in 0..SWITCHES {
        let request = CapabilitiesRequest { device_id };
        client.capabilities(request).await.unwrap();
        let mut controller = Controller::open_to(client.clone(), device_id, 1).await;
        controller.arbitrate(1).await;
        controller
            .set_config(Action::VerifyAndCommit, objects())
            .await
            .unwrap();
    }
    let resident_kib = process.resident_kib();
    assert!(resident_kib < RESIDENT_KIB_MAX, "{resident_kib} KiB");
    process.end();
}

/// A switch whose program sends frames to [`EAST`] out by port 2.
fn switch_to_port_2(change: impl FnOnce(&mut SwitchSettings)) -> DetachedSwitch {
    let mut settings = settings();
    change(&mut settings);
    let mut switch = DetachedSwitch::new(&settings, 1, &[PortId(1), PortId(2)]).unwrap();
    let json = include_str!("../programs/objects.json");
    let program = Arc::new(LoadedProgram::from_json(json).unwrap());
    let mut pipeline = Pipeline::new(Arc::clone(&program), PipelineConfig::default());
    let table = program.table("ingress.addresses").unwrap();
    let forward = program.table_action(table, "ingress.forward").unwrap();
    let east = EAST.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    let entry = TableEntry {
        key: vec![FieldMatch::Exact(east.into())],
        priority: 0,
        action: EntryAction::Call(ActionCall {
            action: forward,
            arguments: vec![2u64.into()],
        }),
    };
    pipeline.insert_entry(table, entry).unwrap();
    switch.switch.install(pipeline);
    switch
}

/// A link that nobody reads fills, then packets wait in the egress queue, then its tail is
/// dropped and counted; what was not dropped arrives in order once somebody reads.
#[test]
fn a_full_link_holds_packets_back() {
    const SENT: u32 = 300;
    let mut switch = switch_to_port_2(|settings| settings.queue_frames = 100);
    for number in 0..SENT {
        let sender = &mut switch.links[0].sender;
        assert!(sender.has_room() && sender.push(&frame(EAST, number)));
        let (_, next_us) = switch.turn(u64::from(number));
        assert_eq!(next_us, None, "it waits for room, not for a time");
    }
    let full = switch.switch.snapshot();
    let dropped = full.ports[1].queue_tail_drops;
    let on_link = full.ports[1].sent_frames;
    assert_eq!(full.ports[1].queued, 100);
    assert_eq!(on_link + 100 + dropped, u64::from(SENT));
    assert!(dropped > 0 && full.ports[1].send_retried > 0);
    let mut numbers = Vec::new();
    for now_us in 1_000..1_010 {
        switch.links[1].receiver.receive(64, |bytes| {
            numbers.push(u32::from_be_bytes(bytes[14..18].try_into().unwrap()));
        });
        switch.turn(now_us);
    }
    let kept = SENT - dropped as u32;
    assert_eq!(numbers, (0..kept).collect::<Vec<_>>());
    assert_eq!(switch.switch.snapshot().ports[1].queued, 0);
}

/// A rate and a link in memory together: frames leave at their times.
#[test]
fn a_slow_link_tells_when_it_is_due() {
    let mut switch = switch_to_port_2(|settings| {
        // A frame of 100 bytes takes 800 µs.
        settings.impairments.add("2:rate=1mbit,delay=5ms").unwrap();
    });
    for number in 0..40 {
        assert!(switch.links[0].sender.push(&frame(EAST, number)));
    }
    let mut now_us = 0;
    let mut arrivals = Vec::new();
    loop {
        let (more, next_us) = switch.turn(now_us);
        switch.links[1]
            .receiver
            .receive(64, |_| arrivals.push(now_us));
        match next_us {
            _ if more => {}
            Some(next_us) => {
                assert!(next_us > now_us, "{next_us} is not later than {now_us}");
                now_us = next_us;
            }
            None => break,
        }
    }
    assert_eq!(arrivals.len(), 40);
    assert!(arrivals[0] >= 5_000);
    // All but the burst of 15 and the first to go into debt wait for their tokens.
    assert!(arrivals[39] >= 5_000 + 23 * 800, "{arrivals:?}");
}

/// A tenth of a second of processor time, though nothing happens.
const SPUN_TICKS: u64 = 10;

#[test]
fn a_thread_sleeps_unless_it_is_told_to_look_for_frames() {
    in_namespace(|| {
        add_link("s0", "h0");
        add_link("s1", "h1");
        let spinning = ["--no-p4", "--device-id", "1", "-i", "0@s0", "--spin", "60s"];
        let spinning = Process::start(&spinning);
        let start = Instant::now();
        while spinning.dataplane_ticks() < SPUN_TICKS {
            assert!(start.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(10));
        }
        // As long as the other takes for many times as much, whatever else the machine does.
        let sleeping = Process::start(&["--no-p4", "--device-id", "2", "-i", "0@s1"]);
        let spun = spinning.dataplane_ticks() + 5 * SPUN_TICKS;
        while spinning.dataplane_ticks() < spun {
            assert!(start.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(sleeping.dataplane_ticks() < SPUN_TICKS);
        spinning.end();
        sleeping.end();
    });
}
