//! The event log of a switch, heard as those hear it that read BMv2's.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use super::metrics::packet_out;
use super::publishing::{Publishing, bmv2, own, wait_for};
use super::rig::{DEVICE_ID, PATIENCE, Rig, objects};
use super::thrift_client::{data, exact, int, list, part, priority, text};
use wormcast_switch::metrics::device_families;
use wormcast_switch_bmv2::event_log::{EventLog, LogEvent, LogMessage};
use wormcast_switch_bmv2::nanomsg::{Address, Client, Publisher, SocketType};
use wormcast_switch_bmv2::thrift::Value;
use wormcast_switch_dataplane::log::Log;
use wormcast_switch_p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;

/// A switch and who hears its event log.
struct Logging {
    switch: Publishing,
    events: Client,
    /// Signature of the frames that were sent until one was heard of.
    settling: u64,
}

impl Logging {
    /// `None` if the switch has no event log, which BMv2 may be built without.
    fn start(command: Option<&Path>, json: &str) -> Option<Self> {
        let mut switch = Publishing::start_with(command, json, &["--nanolog", "ipc://events"]);
        let info = switch.client.call("standard:bm_mgmt_get_info", Vec::new());
        let told = part(&info.unwrap().unwrap(), 4).cloned();
        if command.is_some() && told.is_none() {
            eprintln!("skipped: simple_switch was built without its event log");
            return None;
        }
        assert_eq!(told, Some(Value::text("ipc://events")));
        let address = Address::Ipc(switch.folder.path().join("events"));
        let events = Client::connect(&address, SocketType::Subscriber, PATIENCE).unwrap();
        let mut logging = Self {
            switch,
            events,
            settling: 0,
        };
        logging.settle();
        Some(logging)
    }

    /// Sends frames until one is heard of: a subscriber hears what comes once it is known.
    fn settle(&mut self) {
        let message = wait_for("the first event", || {
            self.switch.send(&[0xff; 60]);
            std::thread::sleep(Duration::from_millis(20));
            self.events.receive().unwrap()
        });
        self.settling = LogMessage::from_bytes(&message).unwrap().signature;
    }

    fn hear(&mut self) -> LogMessage {
        let message = wait_for("an event", || self.events.receive().unwrap());
        LogMessage::from_bytes(&message).unwrap_or_else(|| panic!("{message:?}"))
    }

    /// What is heard of a frame until it has gone out as often as it should.
    fn events(&mut self, frame: &[u8], mut out: usize) -> Vec<LogMessage> {
        let mut frame = frame.to_vec();
        frame.resize(60, 0);
        self.switch.send(&frame);
        let mut messages = Vec::new();
        while out != 0 {
            let message = self.hear();
            assert_eq!(message.device_id, 7);
            if message.signature == self.settling {
                continue;
            }
            out -= usize::from(matches!(message.event, LogEvent::PacketOut(_)));
            messages.push(message);
        }
        messages
    }

    fn standard(&mut self, method: &str, arguments: Vec<Value>) {
        self.switch.client.standard(method, arguments).unwrap();
    }
}

fn program(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// Events of one packet alone, with the signature of what came in.
fn of_one_packet(messages: &[LogMessage]) -> (u64, Vec<LogEvent>) {
    let first = &messages[0];
    assert!(
        messages
            .iter()
            .all(|message| message.packet == first.packet),
        "{messages:?}"
    );
    let events = messages.iter().map(|message| message.event).collect();
    (first.signature, events)
}

/// An entry that took the place of another one, and what is heard of a frame that finds it.
fn hit(logging: &mut Logging) -> Vec<LogMessage> {
    let key = || list(vec![exact(&[2, 0, 0, 0, 0, 5])]);
    for _ in 0..2 {
        let entry = vec![
            text("ingress.addresses"),
            key(),
            text("ingress.forward"),
            data(&[&[0, 1]]),
            priority(0),
        ];
        logging.standard("bm_mt_add_entry", entry);
        let known = vec![text("ingress.addresses"), int(0)];
        logging
            .switch
            .client
            .standard("bm_mt_delete_entry", known)
            .ok();
    }
    logging.events(&[2, 0, 0, 0, 0, 5], 1)
}

#[test]
fn each_step_has_its_event() {
    use LogEvent::*;
    let mut logging = Logging::start(None, &program("objects.json")).unwrap();
    let (signature, events) = of_one_packet(&hit(&mut logging));
    // XXH64 of the frame, as BMv2 has it.
    assert_eq!(signature, 15_774_434_555_276_294_560);
    let condition = |condition| ConditionEval {
        condition,
        holds: false,
    };
    // p4c puts calls of actions into tables of their own: 0 and 2.
    let ingress = [
        PacketIn(3),
        ParserStart(0),
        ParserExtract(4),
        ParserDone(0),
        PipelineStart(0),
        TableMiss(0),
        ActionExecute(14),
        condition(0),
        TableMiss(2),
        ActionExecute(11),
        TableHit {
            table: 3,
            entry: 1 << 24,
        },
        ActionExecute(3),
        condition(1),
        condition(2),
        PipelineDone(0),
    ];
    let egress = [
        PipelineStart(1),
        condition(4),
        condition(5),
        PipelineDone(1),
        DeparserStart(0),
        DeparserEmit(4),
        DeparserDone(0),
        PacketOut(1),
    ];
    assert_eq!(events, [&ingress[..], &egress].concat());
}

/// The same frames lead to the same events, ids and signatures.
#[test]
fn bmv2_logs_the_same_events() {
    let Some(command) = bmv2() else { return };
    let Some(mut theirs) = Logging::start(Some(&command), &program("objects.json")) else {
        return;
    };
    let mut ours = Logging::start(None, &program("objects.json")).unwrap();
    assert_eq!(
        of_one_packet(&hit(&mut ours)),
        of_one_packet(&hit(&mut theirs))
    );
    for (name, frames) in [
        ("checksums.json", [[1, 2, 3], [9, 2, 3]]),
        ("clones.json", [[0, 0, 0], [3, 0, 0]]),
        ("entries.json", [[2, 5, 0], [0, 1, 0]]),
        ("multicast.json", [[0; 3]; 2]),
        // Resubmitted, and recirculated.
        ("passes.json", [[1, 0, 0], [2, 0, 0]]),
        ("stacks.json", [[1, 0, 0], [3, 2, 1]]),
        ("unions.json", [[1, 0, 0], [2, 0, 0]]),
        ("varbits.json", [[1, 0, 0], [8, 8, 8]]),
    ] {
        let mut ours = Logging::start(None, &program(name)).unwrap();
        let mut theirs = Logging::start(Some(&command), &program(name)).unwrap();
        for frame in frames {
            let [ours, theirs] = [&mut ours, &mut theirs].map(|logging| logging.events(&frame, 1));
            let [ours, theirs] = [ours, theirs].map(|messages| of_one_packet(&messages));
            assert_eq!(ours, theirs, "{name} {frame:?}");
        }
    }
}

/// Packets are traced as long as somebody listens.
#[tokio::test]
async fn nothing_is_traced_for_nobody() {
    let rig = Rig::start().await;
    let mut controller = rig.controller().await;
    let folder = tempfile::tempdir().unwrap();
    let address = Address::Ipc(folder.path().join("events"));
    let publisher = Publisher::bind(&address).await.unwrap();
    let event_log = Arc::new(EventLog::new(publisher, Log::off()));
    rig.server.observe(Arc::clone(&event_log) as Arc<_>);
    Arc::clone(&event_log).watch(DEVICE_ID, rig.dataplane.clone());
    let inject = |ports: &'static [u16]| {
        rig.dataplane.run(move |switch| {
            for &port in ports {
                switch.inject(&packet_out(port));
            }
            switch.tracing().running()
        })
    };
    assert_eq!(inject(&[9]).await.unwrap(), 0);
    let connect = move || Client::connect(&address, SocketType::Subscriber, PATIENCE);
    let connected = tokio::task::spawn_blocking(connect).await.unwrap();
    let subscriber = connected.unwrap();
    wait_until(&|| inject(&[]), 1).await;
    inject(&[9]).await.unwrap();
    // Another program would take the packet out of the queue.
    let (subscriber, mut heard) = hear_until(subscriber, LogEvent::PacketOut(9)).await;
    // Whoever listens is told of another program.
    let again = controller.set_config(Action::VerifyAndCommit, objects());
    again.await.unwrap();
    let (subscriber, more) = hear_until(subscriber, LogEvent::ConfigChange).await;
    drop(subscriber);
    heard.extend(more);
    let count = |event| heard.iter().filter(|other| **other == event).count();
    assert_eq!(count(LogEvent::PacketIn(510)), 1, "{heard:?}");
    assert_eq!(count(LogEvent::PacketOut(9)), 1, "{heard:?}");
    // The trace ends with the first packet that nobody hears of.
    wait_until(&|| inject(&[9]), 0).await;
    let looked = rig.dataplane.run(|switch| switch.snapshot());
    let mut snapshot = looked.await.unwrap();
    rig.server.complete(&mut snapshot);
    let counts = snapshot.event_log.unwrap();
    let published = counts.published;
    assert!(published.delivered >= heard.len() as u64, "{counts:?}");
    assert_eq!((published.subscribers, published.dropped), (0, 0));
    assert_eq!(counts.records_lost, 0);
    let families = device_families(DEVICE_ID, &snapshot);
    let mut names: Vec<&str> = families.iter().map(|family| family.name).collect();
    for name in ["messages_total", "messages_lost_total", "subscribers"] {
        let name = format!("wormcast_switch_event_log_{name}");
        assert!(names.contains(&name.as_str()), "{name}");
    }
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "no name twice");
}

/// The events up to this one.
async fn hear_until(mut subscriber: Client, last: LogEvent) -> (Client, Vec<LogEvent>) {
    let hear = move || {
        let mut heard = Vec::new();
        while heard.last() != Some(&last) {
            let message = wait_for("an event", || subscriber.receive().unwrap());
            let message = LogMessage::from_bytes(&message).unwrap();
            assert_eq!(message.device_id, DEVICE_ID);
            heard.push(message.event);
        }
        (subscriber, heard)
    };
    tokio::task::spawn_blocking(hear).await.unwrap()
}

async fn wait_until<T: Future<Output = Result<usize, wormcast_switch_dataplane::Stopped>>>(
    running: &impl Fn() -> T,
    wanted: usize,
) {
    let start = std::time::Instant::now();
    while running().await.unwrap() != wanted {
        assert!(start.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn an_address_that_is_taken_is_refused() {
    let logging = Logging::start(None, &program("objects.json")).unwrap();
    let folder = logging.switch.folder.path();
    let second = Command::new(own(folder))
        .current_dir(folder)
        .args(["--no-p4", "--thrift-port", "0", "--nanolog", "ipc://events"])
        .stdout(Stdio::null())
        .output()
        .unwrap();
    assert!(!second.status.success());
    let error = String::from_utf8(second.stderr).unwrap();
    assert!(error.contains("--nanolog ipc://events: "), "{error}");
}
