//! The agent over time: controllers that fail, plans that change or are wrong, links that
//! go down, and starting in the wrong way.

use crate::support;

use std::process::Command;
use std::time::Duration;
use support::network::ip;
use support::{Fabric, group, pattern, wait_until};
use wormcast_agent::client::{Client, ClientError, Incoming};
use wormcast_agent::directory::rpc::controller_message::Body;
use wormcast_agent_core::api::{ErrorCode, Notice};
use wormcast_wire::HostId;
use wormcast_wire::worm::{self, Header, Kind};

const LIMIT: Option<Duration> = Some(Duration::from_secs(600));
const WAIT: Duration = Duration::from_secs(600);

/// Sends `content` from one host to another and checks what arrives.
fn transfer(fabric: &Fabric, number: u16, from: u16, to: u16, content: &[u8]) {
    let mut receiver = fabric.client(to);
    receiver.open_receiver(number, Some(from)).unwrap();
    let mut client = fabric.client(from);
    let sender = client.open_sender(number).unwrap();
    client.write(sender.handle, content).unwrap();
    let message = client.end_message(sender.handle).unwrap();
    assert!(take_message(&mut receiver) == content);
    let stable = client.wait_stable(sender.handle, message, LIMIT).unwrap();
    assert_eq!(stable.failed, 0, "{stable:?}");
}

fn take_message(receiver: &mut Client) -> Vec<u8> {
    let mut content = Vec::new();
    loop {
        match receiver.receive(LIMIT).unwrap().expect("in time") {
            Incoming::Data { bytes, .. } => content.extend_from_slice(&bytes),
            Incoming::Notice(Notice::MessageEnd { handle, .. }) => {
                receiver.confirm(handle).unwrap();
                return content;
            }
            Incoming::Notice(Notice::MessageBegin { .. }) => {}
            Incoming::Notice(other) => panic!("{other:?}"),
        }
    }
}

#[test]
fn transfers_go_on_while_the_controller_is_down_and_back() {
    let Some(mut fabric) = Fabric::start(2, &[group(1, "repeat", &[0, 1])], &[]) else {
        return;
    };
    fabric.controller.stop();
    wait_until("loss noticed", WAIT, || {
        fabric.agents[0].status()["controller"]["connected"] == false
    });
    transfer(&fabric, 1, 0, 1, &pattern(1_000_000, 1));
    // It says so once and keeps trying.
    std::thread::sleep(Duration::from_secs(1));
    let complaints = fabric.agents[0].log_text().matches("trying again").count();
    assert!(
        (1..=2).contains(&complaints),
        "{}",
        fabric.agents[0].log_text()
    );
    fabric.controller.resume();
    wait_until("attached again", WAIT, || {
        fabric.agents[0].status()["controller"]["connected"] == true
    });
    let known = fabric.controller.known.lock().unwrap();
    let again = known
        .registered
        .iter()
        .rfind(|register| register.name == "h0")
        .unwrap();
    assert_eq!(again.plan_epoch, 1);
    assert_eq!((again.host_id, again.mac.len()), (Some(0), 6));
    drop(known);
    transfer(&fabric, 1, 1, 0, &pattern(100_000, 2));
    wait_until("statistics", WAIT, || {
        let known = fabric.controller.known.lock().unwrap();
        known.statistics.get(&1).is_some_and(|statistics| {
            let sent = |counter: &&wormcast_agent::directory::rpc::Counter| {
                counter.name == "data_sent_bytes" && counter.group == 1 && counter.value >= 100_000
            };
            statistics.counters.iter().any(|counter| sent(&counter))
        })
    });
}

#[test]
fn a_wrong_plan_is_refused_and_the_old_one_stays() {
    let Some(fabric) = Fabric::start(2, &[group(1, "repeat", &[0, 1])], &[]) else {
        return;
    };
    let mut plan = fabric.controller.plan(0);
    plan.groups[0].structures[0].scheme = "flood".to_owned();
    fabric.controller.set_plan(plan.clone());
    let refused = || {
        let known = fabric.controller.known.lock().unwrap();
        known
            .applied
            .iter()
            .find(|(_, applied)| !applied.error.is_empty())
            .cloned()
    };
    wait_until("refusal", WAIT, || refused().is_some());
    let (host, applied) = refused().unwrap();
    assert_eq!((host, applied.epoch), (0, 2));
    let known = wormcast_wire::SchemeName::ALL.map(wormcast_wire::SchemeName::name);
    assert_eq!(
        applied.error,
        format!(
            "group 1 has scheme \"flood\"; this agent knows: {}",
            known.join(", ")
        )
    );
    assert_eq!(
        applied
            .refused
            .iter()
            .map(|refused| refused.group)
            .collect::<Vec<_>>(),
        vec![1]
    );
    // Other nonsense does no harm either.
    fabric.controller.send_raw(
        0,
        Body::Plan(wormcast_agent::directory::rpc::Plan {
            host_id: 99_999,
            ..plan
        }),
    );
    transfer(&fabric, 1, 0, 1, &pattern(10_000, 1));
}

#[test]
fn a_group_that_leaves_the_plan_closes_what_was_open() {
    let Some(fabric) = Fabric::start(2, &[group(1, "repeat", &[0, 1])], &[]) else {
        return;
    };
    let mut client = fabric.client(0);
    let sender = client.open_sender(1_u16).unwrap();
    client.write(sender.handle, b"unfinished").unwrap();
    let mut plan = fabric.controller.plan(0);
    plan.groups.clear();
    fabric.controller.set_plan(plan);
    let closed = client.receive(LIMIT).unwrap();
    let Some(Incoming::Notice(Notice::HandleClosed { handle, reason })) = closed else {
        panic!("{closed:?}");
    };
    assert_eq!(handle, sender.handle);
    assert!(reason.contains("group 1 was removed"), "{reason}");
    let Err(ClientError::Refused(error)) = client.open_sender(1_u16) else {
        panic!("opened")
    };
    assert_eq!(error.code, ErrorCode::UnknownGroup);
    assert_eq!(
        error.message,
        "host 0 is not a member of group 1; it is a member of: none"
    );
}

#[test]
fn a_dead_member_is_reported_and_a_new_plan_lets_the_others_finish() {
    let Some(mut fabric) = Fabric::start(3, &[group(1, "circuit", &[0, 1, 2])], &[]) else {
        return;
    };
    let mut receiver = fabric.client(2);
    receiver.open_receiver(1_u16, None).unwrap();
    fabric.agents[1].kill();
    let content = pattern(300_000, 5);
    let mut client = fabric.client(0);
    let sender = client.open_sender(1_u16).unwrap();
    client.write(sender.handle, &content).unwrap();
    let message = client.end_message(sender.handle).unwrap();
    let reported = || {
        let known = fabric.controller.known.lock().unwrap();
        known
            .reports
            .iter()
            .any(|(by, report)| *by == 0 && report.host == 1 && report.host_dead)
    };
    wait_until("report", WAIT, reported);
    for host in [0, 2] {
        let mut plan = fabric.controller.plan(host);
        plan.groups = vec![group(1, "circuit", &[0, 2])];
        fabric.controller.set_plan(plan);
    }
    assert!(take_message(&mut receiver) == content);
    let stable = client.wait_stable(sender.handle, message, LIMIT).unwrap();
    assert_eq!((stable.delivered, stable.failed), (1, 1), "{stable:?}");
    assert_eq!(stable.outcomes[0].host, 1);
    assert!(!stable.outcomes[0].delivered);
    // It was reported silent and left out by a plan; nobody here gave it up.
    assert_eq!(
        fabric.agents[0].status()["failed_members"],
        serde_json::json!([])
    );
}

#[test]
fn a_link_may_go_down_and_even_be_made_anew() {
    let Some(fabric) = Fabric::start(2, &[group(1, "repeat", &[0, 1])], &[]) else {
        return;
    };
    transfer(&fabric, 1, 0, 1, &pattern(100_000, 1));
    ip(&["link", "set", "h0", "down"]);
    wait_until("down", WAIT, || {
        fabric.agents[0].status()["link"]["up"] == false
    });
    ip(&["link", "set", "h0", "up"]);
    wait_until("up", WAIT, || {
        fabric.agents[0].status()["link"]["up"] == true
    });
    transfer(&fabric, 1, 0, 1, &pattern(100_000, 2));
    assert_eq!(fabric.agents[0].counter("link.losses"), 1);
    // The test switch does not follow a new interface; that the agent does is seen by
    // its discovery frames.
    let frames = fabric.agents[0].counter("link.discovery_frames");
    ip(&["link", "del", "h0"]);
    wait_until("gone", WAIT, || {
        fabric.agents[0].status()["link"]["up"] == false
    });
    ip(&["link", "add", "h0", "type", "veth", "peer", "name", "x0"]);
    ip(&["link", "set", "h0", "up"]);
    ip(&["link", "set", "x0", "up"]);
    wait_until("new", WAIT, || {
        fabric.agents[0].status()["link"]["up"] == true
    });
    wait_until("frames", WAIT, || {
        fabric.agents[0].counter("link.discovery_frames") > frames
    });
}

#[test]
fn worms_in_transit_go_out_again_as_they_came() {
    let Some(fabric) = Fabric::start(2, &[], &[]) else {
        return;
    };
    // Port 0 leads to host 0, which is to send it on by port 1: what ITB calls ejection and
    // re-injection.
    let mut frame = vec![0; 14 + 12 + 3 + 50];
    let header = Header {
        kind: Kind::Unicast,
        flags: worm::flags::HEAD | worm::flags::TAIL,
        hops: 0,
        source: HostId(77),
        sequence: 1,
        next: 0x88b6,
    };
    let at = worm::encode(&mut frame, [2, 0, 0, 0, 0, 1], &header, &[0, 1, 9]);
    frame[at..].fill(0xab);
    let interface = wormcast_agent::link::Interface::find("h1").unwrap();
    let socket =
        wormcast_agent::link::PacketSocket::open(&interface, 0, wormcast_wire::WORM_MAC).unwrap();
    assert_eq!(socket.send(&[[&frame, &[]]]).unwrap(), 1);
    wait_until("re-injection", WAIT, || {
        fabric.agents[0].counter("transit.frames") == 1
    });
    wait_until("re-injection at host 1", WAIT, || {
        fabric.agents[1].counter("transit.frames") == 1
    });
    let seen: Vec<Vec<u8>> = fabric
        .switch
        .last_frames()
        .iter()
        .map(|frame| worm::decode(frame).unwrap())
        .filter(|worm| worm.header.source == HostId(77))
        .map(|worm| worm.route.to_vec())
        .collect();
    assert_eq!(seen, [vec![0, 1, 9], vec![1, 9], vec![9]]);
}

#[test]
fn discovery_frames_name_the_host_and_say_good_bye() {
    let Some(mut fabric) = Fabric::start(1, &[], &[]) else {
        return;
    };
    wait_until("frame", WAIT, || !fabric.switch.discovered().is_empty());
    let (port, frame) = fabric.switch.discovered().remove(0);
    assert_eq!(port, 0);
    let text = String::from_utf8_lossy(&frame).into_owned();
    assert!(text.contains("host:h0"), "{text}");
    assert_eq!(fabric.agents[0].terminate(), 0);
    assert!(!fabric.agents[0].socket.exists());
    let time_to_live = |frame: &[u8]| {
        let at = frame.windows(2).position(|pair| pair == [6, 2]).unwrap() + 2;
        u16::from_be_bytes([frame[at], frame[at + 1]])
    };
    assert_eq!(time_to_live(&frame), 4);
    wait_until("good-bye", WAIT, || {
        fabric
            .switch
            .discovered()
            .last()
            .is_some_and(|(_, frame)| time_to_live(frame) == 0)
    });
}

#[test]
fn a_restarted_agent_takes_part_again() {
    let Some(mut fabric) = Fabric::start(2, &[group(1, "tree", &[0, 1])], &[]) else {
        return;
    };
    transfer(&fabric, 1, 0, 1, &pattern(100_000, 1));
    fabric.agents[1].restart();
    fabric.agents[1].wait_for_plan();
    transfer(&fabric, 1, 0, 1, &pattern(100_000, 2));
    fabric.agents[0].restart();
    fabric.agents[0].wait_for_plan();
    transfer(&fabric, 1, 0, 1, &pattern(100_000, 3));
    transfer(&fabric, 1, 1, 0, &pattern(100_000, 4));
}

#[test]
fn starting_in_the_wrong_way_says_what_to_do() {
    let Some(fabric) = Fabric::start(1, &[], &[]) else {
        return;
    };
    let start = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_wormcast-agent"))
            .args(["--controller", "unix:/nowhere", "--name", "x"])
            .args(arguments)
            .output()
            .unwrap();
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let free = fabric.path("free.sock");
    let free = free.to_str().unwrap();
    let text = start(&["--interface", "eth9", "--socket", free]);
    assert!(
        text.contains("no network interface \"eth9\"") && text.contains("h0"),
        "{text}"
    );
    let text = start(&[
        "--interface",
        "s0",
        "--socket",
        fabric.agents[0].socket.to_str().unwrap(),
    ]);
    assert!(text.contains("another agent is serving"), "{text}");
    let text = start(&["--interface", "s0", "--socket", free, "--mtu", "1501"]);
    assert!(
        text.contains("an MTU of 1501 bytes on s0") && text.contains("to 1500"),
        "{text}"
    );
    let text = start(&["--interface", "s0", "--socket", free, "--host-id", "65535"]);
    assert!(text.contains("65535"), "{text}");
    // Without the capability.
    let output = Command::new("setpriv")
        .args([
            "--bounding-set=-net_raw",
            env!("CARGO_BIN_EXE_wormcast-agent"),
        ])
        .args([
            "--controller",
            "unix:/nowhere",
            "--interface",
            "s0",
            "--socket",
            free,
        ])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        text.contains("CAP_NET_RAW") && text.contains("setcap"),
        "{text}"
    );
}

#[test]
fn completions_need_nothing_else() {
    let output = Command::new(env!("CARGO_BIN_EXE_wormcast-agent"))
        .args(["--completions", "bash"])
        .output()
        .unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("--receiver-stall"));
    let output = Command::new(env!("CARGO_BIN_EXE_wormcast-agent"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--interface"));
}

#[test]
fn a_refused_agent_says_why() {
    let Some(mut fabric) = Fabric::start(1, &[], &[]) else {
        return;
    };
    let reason = "host 0 is taken by h9; free are 1 to 65534";
    fabric
        .controller
        .known
        .lock()
        .unwrap()
        .refuse
        .insert("h0".to_owned(), reason.to_owned());
    fabric.agents[0].restart();
    wait_until("refusal", WAIT, || {
        Client::connect(&fabric.agents[0].socket).is_ok_and(|mut client| {
            client.status().unwrap()["controller"]["last_error"]
                .as_str()
                .is_some_and(|error| error.contains(reason))
        })
    });
}

#[test]
fn a_plan_of_thousands_of_groups_is_applied_but_for_one_that_cannot_be() {
    let Some(fabric) = Fabric::start(2, &[group(1, "repeat", &[0, 1])], &[]) else {
        return;
    };
    let count = 4_096;
    for host in 0..2 {
        let mut plan = fabric.controller.plan(host);
        let numbers = (1..=count + 1).filter(|&number| number != 255);
        plan.groups = numbers
            .map(|number| group(number, "k-binomial", &[0, 1]))
            .collect();
        plan.groups[6].structures[0].scheme = "flood".to_owned();
        fabric.controller.set_plan(plan);
    }
    let answers = || {
        let known = fabric.controller.known.lock().unwrap();
        let second =
            |(_, applied): &&(u32, wormcast_agent::directory::rpc::PlanApplied)| applied.epoch == 2;
        known
            .applied
            .iter()
            .filter(second)
            .map(|(_, applied)| applied.refused.clone())
            .collect::<Vec<_>>()
    };
    wait_until("both answers", WAIT, || answers().len() == 2);
    for refused in answers() {
        assert_eq!(refused.len(), 1);
        assert_eq!(refused[0].group, 7);
        assert!(refused[0].reason.contains("flood"), "{}", refused[0].reason);
    }
    transfer(&fabric, 4_000, 0, 1, &pattern(10_000, 1));
    let groups = fabric.client(0).groups().unwrap();
    assert_eq!(
        groups["groups"].as_array().map(Vec::len),
        Some(count as usize - 1),
        "asked for in several answers"
    );
    let status = fabric.agents[0].status();
    let (shown, left_out) = (&status["groups"], &status["groups_left_out"]);
    let total = shown.as_array().map_or(0, Vec::len) as u64 + left_out.as_u64().unwrap();
    assert_eq!(total, u64::from(count) - 1);
}
