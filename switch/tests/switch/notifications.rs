//! Notifications of a switch, heard as those hear them that control BMv2 over Thrift.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use super::drop_in::Process;
use super::network::{add_link, in_namespace, run};
use super::publishing::{Publishing, ageing, bmv2, own, wait_for};
use super::rig::{DEVICE_ID, PATIENCE, Rig};
use super::thrift_client::{data, exact, int, list, part, priority, text};
use wormcast_switch_bmv2::nanomsg::{Address, Client, Publisher, SocketType};
use wormcast_switch_bmv2::notifications::{Notification, Notifier, Watched};
use wormcast_switch_bmv2::thrift::Value;
use wormcast_switch_p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;

const DIGESTS: &str = include_str!("../programs/digests.json");

/// A frame of `digests.p4`: it sends one of its digests, lists 1 to 3, with a value.
fn learnable(op: u8, value: u8) -> Vec<u8> {
    let mut frame = vec![op, 2, 0, 0, 0, 0, value, 0x10, value];
    frame.resize(60, 0);
    frame
}

/// What list 1 says of such a frame: the address in six bytes, the port in two.
fn learned(buffer: u64, values: &[u8]) -> Vec<u8> {
    let data = values
        .iter()
        .flat_map(|value| [2, 0, 0, 0, 0, *value, 0, 3]);
    let notification = Notification::Learned {
        list: 1,
        buffer,
        samples: values.len() as u32,
        data: data.collect(),
    };
    notification.to_bytes(7)
}

/// What list 2 or 3 says: the value in two bytes.
fn noted(list: i32, buffer: u64, values: &[u8]) -> Vec<u8> {
    let notification = Notification::Learned {
        list,
        buffer,
        samples: values.len() as u32,
        data: values.iter().flat_map(|value| [0x10, *value]).collect(),
    };
    notification.to_bytes(7)
}

/// Makes a switch learn in every way there is, and checks each notification.
fn learn_everything(switch: &mut Publishing) {
    // Sixteen samples unless something else is said, none of them twice.
    for value in [0, 0, 1, 0, 1].into_iter().chain(2..16) {
        switch.send(&learnable(1, value));
    }
    assert_eq!(switch.hear(), learned(0, &(0..16).collect::<Vec<u8>>()));
    // The rest after a second.
    for value in [4, 16, 17] {
        switch.send(&learnable(1, value));
    }
    assert_eq!(switch.hear(), learned(1, &[16, 17]));
    // Lists have their own buffers and settings.
    switch.learning("bm_learning_set_timeout", 2, vec![int(0)]);
    switch.learning("bm_learning_set_buffer_size", 2, vec![int(2)]);
    switch.learning("bm_learning_set_buffer_size", 3, vec![int(1)]);
    for (op, value) in [(2, 1), (3, 1)] {
        switch.send(&learnable(op, value));
    }
    // BMv2 has a thread for each list: what follows could overtake this.
    assert_eq!(switch.hear(), noted(3, 0, &[1]));
    for value in [1, 2] {
        switch.send(&learnable(2, value));
    }
    assert_eq!(switch.hear(), noted(2, 0, &[1, 2]));
    // Those that are acknowledged are news again.
    switch.acknowledge(2, 0, &[1, -1, 77]);
    switch.acknowledge(2, 9, &[0]);
    for value in [1, 2, 3] {
        switch.send(&learnable(2, value));
    }
    assert_eq!(switch.hear(), noted(2, 1, &[2, 3]));
    switch.learning("bm_learning_ack_buffer", 2, vec![Value::I64(1)]);
    switch.learning("bm_learning_ack_buffer", 2, vec![Value::I64(1)]);
    for value in [1, 3, 2] {
        switch.send(&learnable(2, value));
    }
    assert_eq!(switch.hear(), noted(2, 2, &[3, 2]));
    // A smaller buffer is due with what is in it.
    switch.learning("bm_learning_set_timeout", 1, vec![int(0)]);
    for value in [20, 21] {
        switch.send(&learnable(1, value));
    }
    // The frame behind them is through when its own notification is there.
    switch.send(&learnable(3, 2));
    assert_eq!(switch.hear(), noted(3, 1, &[2]));
    switch.learning("bm_learning_set_buffer_size", 1, vec![int(2)]);
    assert_eq!(switch.hear(), learned(2, &[20, 21]));
    // A shorter timeout.
    switch.learning("bm_learning_set_timeout", 1, vec![int(5)]);
    switch.send(&learnable(1, 22));
    assert_eq!(switch.hear(), learned(3, &[22]));
    // Everything is forgotten but the settings.
    switch
        .client
        .call("standard:bm_reset_state", Vec::new())
        .unwrap();
    for value in [1, 2] {
        switch.send(&learnable(2, value));
    }
    assert_eq!(switch.hear(), noted(2, 0, &[1, 2]));
}

#[test]
fn what_was_learned_is_published() {
    let mut switch = Publishing::start(None, DIGESTS);
    learn_everything(&mut switch);
    let refused = switch.client.call(
        "standard:bm_learning_ack_buffer",
        vec![int(0), int(4), Value::I64(0)],
    );
    assert!(refused.is_err(), "there is no list 4");
    assert!(switch.end());
}

/// The same frames and calls lead to the same bytes.
#[test]
fn bmv2_publishes_the_same_of_what_was_learned() {
    let Some(command) = bmv2() else { return };
    learn_everything(&mut Publishing::start(Some(&command), DIGESTS));
}

fn forward(switch: &mut Publishing, to: u8) {
    let arguments = vec![
        text("ingress.addresses"),
        list(vec![exact(&[2, 0, 0, 0, 0, to])]),
        text("ingress.forward"),
        data(&[&[0, 1]]),
        priority(0),
    ];
    switch
        .client
        .standard("bm_mt_add_entry", arguments)
        .unwrap();
}

/// The first two notifications of one entry that stays idle, among others that do not.
fn idle(command: Option<&Path>) -> [Vec<u8>; 2] {
    let mut switch = Publishing::start(command, &ageing("objects.json"));
    for to in 1..4 {
        forward(&mut switch, to);
    }
    let hour_ms = 3_600_000;
    switch.set_timeout("ingress.addresses", 0, hour_ms);
    switch.set_timeout("ingress.addresses", 1, 1);
    [switch.hear(), switch.hear()]
}

#[test]
fn idle_entries_are_published_again_and_again() {
    let table = {
        let json: serde_json::Value = serde_json::from_str(&ageing("objects.json")).unwrap();
        let tables = json["pipelines"][0]["tables"].as_array().unwrap().iter();
        let mut tables = tables.filter(|table| table["name"] == "ingress.addresses");
        tables.next().unwrap()["id"].as_i64().unwrap() as i32
    };
    let aged = |buffer| {
        let notification = Notification::Aged {
            table,
            buffer,
            entries: vec![1],
        };
        notification.to_bytes(7)
    };
    assert_eq!(idle(None), [aged(0), aged(1)]);
}

#[test]
fn bmv2_publishes_the_same_of_idle_entries() {
    let Some(command) = bmv2() else { return };
    assert_eq!(idle(Some(&command)), idle(None));
}

/// Notifications when a port of two comes up and goes down again.
fn plug(command: Option<&Path>) -> [Vec<u8>; 2] {
    add_link("n1", "far1");
    add_link("n2", "far2");
    // There is nothing to tell of ports that are down at the start.
    run("ip link set far1 down");
    run("ip link set far2 down");
    let folder = tempfile::tempdir().unwrap();
    let ports = ["-i", "1@n1", "-i", "2@n2"];
    let mut switch = Publishing::start_in(folder, command, DIGESTS, &ports);
    run("ip link set far1 up");
    let up = switch.hear();
    run("ip link set far1 down");
    let down = switch.hear();
    drop(switch);
    run("ip link delete n1");
    run("ip link delete n2");
    [up, down]
}

#[test]
fn ports_that_go_up_and_down_are_published() {
    in_namespace(|| {
        let ports = |up| Notification::Ports(vec![(1, up)]).to_bytes(7);
        assert_eq!(plug(None), [ports(true), ports(false)]);
        let Some(command) = bmv2() else { return };
        see_own_interfaces();
        assert_eq!(plug(Some(&command)), [ports(true), ports(false)]);
    });
}

/// BMv2 reads from `/sys` whether a port is up; there, the interfaces are those of the
/// namespace that it was mounted in.
fn see_own_interfaces() {
    // SAFETY: no pointers; it changes the mounts of this thread and its children alone.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNS) }, 0);
    run("mount --make-rprivate /");
    run("mount -t sysfs sysfs /sys");
}

/// Digests go to controllers of P4Runtime and to subscribers, each with its own lists.
#[tokio::test]
async fn p4runtime_and_subscribers_hear_the_same_digests() {
    let rig = Rig::start().await;
    let folder = tempfile::tempdir().unwrap();
    let address = Address::Ipc(folder.path().join("socket"));
    let publisher = Arc::new(Publisher::bind(&address).await.unwrap());
    let notifier = Arc::new(Notifier::new(DEVICE_ID, Arc::clone(&publisher)));
    rig.server.observe(Arc::clone(&notifier) as Arc<_>);
    Arc::clone(&notifier).watch(rig.dataplane.clone(), Watched::Ports);
    let connect = move || Client::connect(&address, SocketType::Subscriber, PATIENCE);
    let subscriber = tokio::task::spawn_blocking(connect).await.unwrap();
    let mut controller = super::digests::controller(&rig).await;
    super::digests::enable(&mut controller, 2).await;
    super::digests::learn(&rig, &[3, 3, 4]).await;
    let list = super::digests::hear(&mut controller).await;
    assert_eq!(list.data, super::digests::data(&[3, 4]));
    // The subscriber's sixteen are not there: it hears after a second.
    let hear = move || {
        let mut subscriber = subscriber.unwrap();
        wait_for("a notification", || subscriber.receive().unwrap())
    };
    let heard = tokio::task::spawn_blocking(hear).await.unwrap();
    let mut values = Vec::new();
    for value in [3, 4] {
        values.push(value);
        values.extend([0; 11]);
        values.push(7);
    }
    let expected = Notification::Learned {
        list: 1,
        buffer: 0,
        samples: 2,
        data: values,
    };
    let (device_id, heard) = Notification::from_bytes(&heard).unwrap();
    assert_eq!((device_id, heard), (DEVICE_ID, expected));
    // Another program has lists of its own, without what was sent.
    let again = super::digests::learning();
    controller
        .set_config(Action::VerifyAndCommit, again)
        .await
        .unwrap();
    super::digests::learn(&rig, &[4]).await;
    wait_for_async(|| notifier.counts().learned.sent == 3).await;
    assert_eq!(notifier.counts().published.published, 2);
}

async fn wait_for_async(mut is_so: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE);
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// The address of notifications that a switch tells.
fn announced_address(process: &Process) -> String {
    let call = process
        .client()
        .call("standard:bm_mgmt_get_info", Vec::new());
    let Ok(Some(info)) = call else {
        panic!("{call:?}");
    };
    match part(&info, 3) {
        Some(Value::Binary(address)) => String::from_utf8(address.clone()).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// A device id that nobody else on the machine is likely to have.
fn unusual_id() -> String {
    (7_000_000_000 + u64::from(std::process::id())).to_string()
}

/// As BMv2's, and gone at the end; one that was left by a process that was killed is
/// replaced, one that is in use is not.
#[test]
fn simple_switch_publishes_where_bmv2_does() {
    let directory = tempfile::tempdir().unwrap();
    let id = unusual_id();
    let file = PathBuf::from(format!("/tmp/bmv2-{id}-notifications.ipc"));
    let arguments = ["--no-p4", "--device-id", &id];
    let start = || Process::start_as("simple_switch", directory.path(), &arguments);
    let killed = start();
    assert_eq!(
        announced_address(&killed),
        format!("ipc://{}", file.display())
    );
    drop(killed);
    assert!(file.exists(), "it was killed");
    let process = start();
    let second = start();
    assert_eq!(announced_address(&second), "", "the address is taken");
    assert!(second.end());
    assert!(file.exists(), "it is the first one's");
    let address = Address::Ipc(file.clone());
    Client::connect(&address, SocketType::Subscriber, PATIENCE).unwrap();
    assert!(process.end());
    assert!(!file.exists());
}

#[test]
fn other_names_publish_where_they_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let common = [
        "--no-p4",
        "--device-id",
        "7",
        "--grpc-server-addr",
        "127.0.0.1:0",
    ];
    for name in ["simple_switch_grpc", "another"] {
        let process = Process::start_as(name, directory.path(), &common);
        assert_eq!(announced_address(&process), "");
        assert!(process.end());
        let asked = ["--notifications-addr", "tcp://127.0.0.1:0"];
        let arguments = [common.as_slice(), &asked].concat();
        let process = Process::start_as(name, directory.path(), &arguments);
        let address = announced_address(&process);
        let address: Address = address.parse().unwrap();
        Client::connect(&address, SocketType::Subscriber, PATIENCE).unwrap();
        assert!(process.end());
    }
}

#[test]
fn an_address_that_was_asked_for_and_cannot_be_had_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&file).unwrap();
    fs::write(directory.path().join("notes"), "text").unwrap();
    for (address, expected) in [
        (
            format!("ipc://{}", file.display()),
            "another process listens",
        ),
        (
            format!("ipc://{}/notes", directory.path().display()),
            "there is a file or directory that is no socket",
        ),
        ("inproc://here".to_owned(), "ipc://PATH"),
    ] {
        let output = Command::new(own(directory.path()))
            .args(["--no-p4", "--thrift-port", "0"])
            .args(["--notifications-addr", &address])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && said.contains(expected),
            "{said}"
        );
        assert!(said.contains("--notifications-addr"), "{said}");
    }
    let notes = fs::read_to_string(directory.path().join("notes")).unwrap();
    assert_eq!(notes, "text");
}

/// One socket for all of them; the device id says whose it is.
#[test]
fn switches_of_a_fabric_publish_together() {
    let directory = tempfile::tempdir().unwrap();
    let fabric = r#"{
        "switches": [{"name": "a", "device_id": 10}, {"name": "b", "device_id": 11}],
        "links": [{"ends": ["a:1", "b:2"]}]
    }"#;
    fs::write(directory.path().join("fabric.json"), fabric).unwrap();
    let address = format!("ipc://{}/socket", directory.path().display());
    let arguments = ["--fabric", "fabric.json", "--notifications-addr", &address];
    let process = Process::start_as("simple_switch", directory.path(), &arguments);
    assert_eq!(announced_address(&process), address);
    let address: Address = address.parse().unwrap();
    let mut heard = Client::connect(&address, SocketType::Subscriber, PATIENCE).unwrap();
    let mut hear = || wait_for("a notification", || heard.receive().unwrap());
    let mut both = [hear(), hear()].map(|bytes| Notification::from_bytes(&bytes).unwrap());
    both.sort_by_key(|(device_id, _)| *device_id);
    let up = |port| Notification::Ports(vec![(port, true)]);
    assert_eq!(both, [(10, up(1)), (11, up(2))]);
    assert!(process.end());
}
