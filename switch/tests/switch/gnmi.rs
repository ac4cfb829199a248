//! gNMI beside P4Runtime: interfaces read, and changes of links notified as they happen.

use std::time::{Duration, Instant};

use tonic::Code;

use super::fabric::{LINE, Process};
use super::gnmi_client::{
    LeafUpdate, Subscribed, code, connect, connect_slow, get, leaf_update, leaves, list, on_change,
    path, request, sampled, state, subscription, target,
};
use super::network::{add_link, in_namespace, run};
use super::rig::{DEVICE_ID, PATIENCE, Rig, runtime, settings};
use wormcast_switch_dataplane::PortSettings;
use wormcast_switch_gnmi::STREAMS_MAX;
use wormcast_switch_gnmi::proto::gnmi::subscribe_request::Request;
use wormcast_switch_gnmi::proto::gnmi::subscribe_response::Response;
use wormcast_switch_gnmi::proto::gnmi::subscription_list::Mode;
use wormcast_switch_gnmi::proto::gnmi::{
    CapabilityRequest, Encoding, GetRequest, SetRequest, SubscriptionList, SubscriptionMode,
};
use wormcast_switch_p4runtime::proto::p4::v1::CapabilitiesRequest;
use wormcast_switch_pipeline::PortId;
use wormcast_switch_ports::{Interface, TransmitQueue};

/// Times that a link goes up and down while nobody reads.
const FLAPS: usize = 150;

/// Ports 1 and 2 on `s1` and `s2`, whose far ends are `h1` and `h2`.
fn on_links(test: impl AsyncFnOnce(Rig) + Send + 'static) {
    in_namespace(|| {
        add_link("s1", "h1");
        add_link("s2", "h2");
        let mut settings = settings();
        settings.ports = vec![
            PortSettings::interface(1, "s1"),
            PortSettings::interface(2, "s2"),
        ];
        runtime().block_on(async move {
            let rig = Rig::start_with(&settings).await;
            test(rig).await;
        });
    });
}

fn statuses(one: &str, other: &str) -> Vec<LeafUpdate> {
    vec![
        leaf_update("s1", "oper-status", one),
        leaf_update("s2", "oper-status", other),
    ]
}

#[tokio::test]
async fn capabilities_are_those_of_the_protocol_files() {
    let rig = Rig::start().await;
    let mut client = connect(&rig.address).await;
    let answer = client.capabilities(CapabilityRequest::default()).await;
    let answer = answer.unwrap().into_inner();
    assert_eq!(answer.g_nmi_version, "0.10.0");
    let models: Vec<&str> = answer
        .supported_models
        .iter()
        .map(|model| model.name.as_str())
        .collect();
    assert_eq!(models, ["openconfig-interfaces", "openconfig-p4rt"]);
    let encodings = [Encoding::Json, Encoding::Proto, Encoding::JsonIetf];
    assert_eq!(
        answer.supported_encodings,
        encodings.map(|encoding| encoding as i32)
    );
    // P4Runtime answers at the same address.
    let answer = rig
        .connect()
        .await
        .capabilities(CapabilitiesRequest::default())
        .await;
    assert!(answer.is_ok());
}

#[tokio::test]
async fn nothing_is_written() {
    let rig = Rig::start().await;
    let mut client = connect(&rig.address).await;
    let refused = client.set(SetRequest::default()).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unimplemented);
    assert_eq!(
        refused.message(),
        "Set is not implemented: the switch is read over gNMI, not configured"
    );
}

#[test]
fn a_link_that_goes_down_at_its_far_end_is_told() {
    on_links(async |rig| {
        let mut client = connect(&rig.address).await;
        let status = on_change(state("*", "oper-status"));
        let mut stream = Subscribed::to(&mut client, list(Mode::Stream, vec![status])).await;
        assert_eq!(stream.all().await, statuses("UP", "UP"));
        run("ip link set h2 down");
        let news = stream.notification().await;
        assert_eq!(leaves(&news), [leaf_update("s2", "oper-status", "DOWN")]);
        let when = get(&mut client, request(state("s2", "last-change"))).await;
        let expected = leaf_update("s2", "last-change", &news.timestamp.to_string());
        assert_eq!(when.unwrap(), [expected]);
        let now = get(&mut client, request(state("*", "oper-status"))).await;
        assert_eq!(now.unwrap(), statuses("UP", "DOWN"));
        let admin = get(&mut client, request(state("s2", "admin-status"))).await;
        assert_eq!(admin.unwrap(), [leaf_update("s2", "admin-status", "UP")]);
        run("ip link set h2 up");
        let news = stream.notification().await;
        assert_eq!(leaves(&news), [leaf_update("s2", "oper-status", "UP")]);
    });
}

#[test]
fn a_port_that_is_set_down_is_told_with_its_admin_status_and_time() {
    on_links(async |rig| {
        let mut client = connect(&rig.address).await;
        let whole = on_change(path("interfaces/interface[name=s1]/state"));
        let mut stream = Subscribed::to(&mut client, list(Mode::Stream, vec![whole])).await;
        let first = stream.all().await;
        assert!(
            first.contains(&leaf_update("s1", "ifindex", "1")),
            "{first:?}"
        );
        assert!(first.contains(&leaf_update("s1", "id", "1")), "{first:?}");
        assert!(
            first.contains(&leaf_update("s1", "mtu", "1514")),
            "{first:?}"
        );
        // What there is comes whole; counters do not come again.
        assert!(
            first.contains(&leaf_update("s1", "in-pkts", "0")),
            "{first:?}"
        );
        run("ip link set s1 down");
        let news = stream
            .wait_for(&leaf_update("s1", "oper-status", "DOWN"))
            .await;
        let changed = leaves(&news);
        assert!(!changed.iter().any(|(_, leaf, _)| leaf == "in-pkts"));
        let (_, _, changed_ns) = changed
            .iter()
            .find(|(_, leaf, _)| leaf == "last-change")
            .unwrap();
        assert_eq!(*changed_ns, news.timestamp.to_string());
        let admin = get(&mut client, request(state("s1", "admin-status"))).await;
        assert_eq!(admin.unwrap(), [leaf_update("s1", "admin-status", "DOWN")]);
        run("ip link set s1 mtu 1400 up");
        stream.wait_for(&leaf_update("s1", "mtu", "1414")).await;
    });
}

#[test]
fn an_interface_that_goes_away_is_not_present_until_it_is_back() {
    on_links(async |rig| {
        let mut client = connect(&rig.address).await;
        let status = on_change(state("s2", "oper-status"));
        let mut stream = Subscribed::to(&mut client, list(Mode::Stream, vec![status])).await;
        stream.all().await;
        run("ip link del s2");
        stream
            .wait_for(&leaf_update("s2", "oper-status", "NOT_PRESENT"))
            .await;
        add_link("s2", "h2");
        stream
            .wait_for(&leaf_update("s2", "oper-status", "UP"))
            .await;
    });
}

#[test]
fn ports_are_added_and_removed_at_run_time() {
    on_links(async |rig| {
        add_link("s3", "h3");
        let mut client = connect(&rig.address).await;
        let all = on_change(state("*", "oper-status"));
        // One that is not there yet.
        let one = on_change(state("s3", "id"));
        let mut stream = Subscribed::to(&mut client, list(Mode::Stream, vec![all, one])).await;
        assert_eq!(stream.all().await, statuses("UP", "UP"));
        let added = rig
            .dataplane
            .run(|switch| switch.add_port(PortId(3), "s3"))
            .await;
        added.unwrap().unwrap();
        stream.wait_for(&leaf_update("s3", "id", "3")).await;
        run("ip link set h3 down");
        stream
            .wait_for(&leaf_update("s3", "oper-status", "DOWN"))
            .await;
        let removed = rig
            .dataplane
            .run(|switch| switch.remove_port(PortId(3)))
            .await;
        removed.unwrap().unwrap();
        stream
            .wait_for(&leaf_update("s3", "interface", "gone"))
            .await;
        let refused = get(&mut client, request(state("s3", "oper-status")))
            .await
            .unwrap_err();
        assert_eq!(refused.code(), Code::NotFound);
        assert_eq!(
            refused.message(),
            "there is no interface `s3`; there are s1, s2"
        );
    });
}

#[test]
fn counters_are_sampled_and_count_frames() {
    on_links(async |rig| {
        let mut client = connect(&rig.address).await;
        let samples = sampled(state("s1", "counters"), Duration::from_millis(100));
        let mut stream = Subscribed::to(&mut client, list(Mode::Stream, vec![samples])).await;
        assert_eq!(stream.all().await.len(), 8);
        let mut sender = TransmitQueue::open(&Interface::find("h1").unwrap()).unwrap();
        for _ in 0..5 {
            assert!(sender.push(&[0x5a; 100]));
        }
        sender.flush();
        let news = stream.wait_for(&leaf_update("s1", "in-pkts", "5")).await;
        assert!(leaves(&news).contains(&leaf_update("s1", "in-octets", "500")));
        assert_eq!(leaves(&news).len(), 8, "a sample has all of them");
    });
}

#[test]
fn suppressed_samples_come_with_news_or_at_a_heartbeat() {
    on_links(async |rig| {
        let mut client = connect(&rig.address).await;
        let mut samples = sampled(state("s1", "oper-status"), Duration::from_millis(100));
        samples.suppress_redundant = true;
        samples.heartbeat_interval = Duration::from_millis(300).as_nanos() as u64;
        let mut only = list(Mode::Stream, vec![samples]);
        only.updates_only = true;
        let mut stream = Subscribed::to(&mut client, only).await;
        assert_eq!(stream.all().await, [], "the client knows what there was");
        let again = stream.notification().await;
        assert_eq!(
            leaves(&again),
            [leaf_update("s1", "oper-status", "UP")],
            "a heartbeat"
        );
        run("ip link set h1 down");
        stream
            .wait_for(&leaf_update("s1", "oper-status", "DOWN"))
            .await;
    });
}

#[test]
fn the_switch_chooses_what_is_on_change() {
    on_links(async |rig| {
        let mut client = connect(&rig.address).await;
        let whole = path("interfaces/interface[name=s1]");
        let whole = subscription(whole, SubscriptionMode::TargetDefined);
        let mut stream = Subscribed::to(&mut client, list(Mode::Stream, vec![whole])).await;
        assert_eq!(stream.all().await.len(), 17);
        run("ip link set h1 down");
        stream
            .wait_for(&leaf_update("s1", "oper-status", "DOWN"))
            .await;
    });
}

#[test]
fn once_ends_and_poll_answers_each_time() {
    on_links(async |rig| {
        let mut client = connect(&rig.address).await;
        let status = || vec![on_change(state("*", "oper-status"))];
        let mut once = Subscribed::to(&mut client, list(Mode::Once, status())).await;
        assert_eq!(once.all().await, statuses("UP", "UP"));
        assert_eq!(once.next().await.unwrap(), None);
        let mut poll = Subscribed::to(&mut client, list(Mode::Poll, status())).await;
        assert_eq!(poll.all().await, statuses("UP", "UP"));
        run("ip link set h1 down");
        // The kernel takes a moment to look at the carrier.
        let start = Instant::now();
        let mut polled = statuses("UP", "UP");
        while polled == statuses("UP", "UP") && start.elapsed() < PATIENCE {
            poll.poll().await;
            polled = poll.all().await;
        }
        assert_eq!(polled, statuses("DOWN", "UP"));
        let second = Request::Subscribe(list(Mode::Poll, status()));
        poll.say(second).await;
        assert_eq!(poll.refusal().await.code(), Code::InvalidArgument);
    });
}

/// Messages that a reader has not read hold up nobody, and are not piled up for it.
#[test]
fn a_slow_reader_gets_the_last_state_and_holds_up_nobody() {
    on_links(async |rig| {
        let mut slow = connect_slow(&rig.address).await;
        let whole = on_change(path("interfaces/interface[name=s1]/state"));
        let mut stream = Subscribed::to(&mut slow, list(Mode::Stream, vec![whole])).await;
        let mut other = connect(&rig.address).await;
        let status = on_change(state("s1", "oper-status"));
        let mut watching = Subscribed::to(&mut other, list(Mode::Stream, vec![status])).await;
        watching.all().await;
        for _ in 0..FLAPS {
            run("ip link set h1 down");
            watching
                .wait_for(&leaf_update("s1", "oper-status", "DOWN"))
                .await;
            run("ip link set h1 up");
            watching
                .wait_for(&leaf_update("s1", "oper-status", "UP"))
                .await;
        }
        run("ip link set h1 down");
        watching
            .wait_for(&leaf_update("s1", "oper-status", "DOWN"))
            .await;
        let reading = get(&mut other, request(state("s1", "last-change")))
            .await
            .unwrap();
        let (mut messages, mut status) = (0, String::new());
        loop {
            messages += 1;
            let Some(Response::Update(news)) = stream.next().await.unwrap() else {
                continue; // of the first reading
            };
            let news = leaves(&news);
            for (_, leaf, value) in &news {
                if leaf == "oper-status" {
                    status.clone_from(value);
                }
            }
            if news.contains(&reading[0]) {
                break;
            }
        }
        assert_eq!(status, "DOWN");
        assert!(messages < FLAPS, "{messages} messages were kept for it");
    });
}

#[tokio::test]
async fn wrong_requests_are_told_what_is_right() {
    let rig = Rig::start().await;
    let mut client = connect(&rig.address).await;
    let refused = get(&mut client, request(path("system/state")))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    assert_eq!(
        refused.message(),
        "there is no /system/state here; there are here: interfaces"
    );
    let bytes = GetRequest {
        encoding: Encoding::Bytes as i32,
        ..request(path("interfaces"))
    };
    let refused = get(&mut client, bytes).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unimplemented);
    assert!(
        refused.message().contains("JSON, JSON_IETF or PROTO"),
        "{refused}"
    );
    let refuse = async |client: &mut _, list: SubscriptionList| {
        let refused = Subscribed::to(client, list).await.refusal().await;
        (refused.code(), refused.message().to_owned())
    };
    let quick = sampled(path("interfaces"), Duration::from_millis(1));
    let (code, message) = refuse(&mut client, list(Mode::Stream, vec![quick])).await;
    assert_eq!(code, Code::InvalidArgument);
    assert!(
        message.starts_with("sample_interval of 1ms for /interfaces: 10ms to"),
        "{message}"
    );
    let (code, _) = refuse(&mut client, list(Mode::Once, vec![on_change(path("x"))])).await;
    assert_eq!(code, Code::NotFound);
    let (code, _) = refuse(&mut client, list(Mode::Stream, Vec::new())).await;
    assert_eq!(code, Code::InvalidArgument);
    let mut poll = Subscribed::open(&mut client, None).await.unwrap();
    poll.poll().await;
    assert_eq!(poll.refusal().await.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn streams_have_a_bound() {
    let rig = Rig::start().await;
    let mut client = connect(&rig.address).await;
    let mut streams = Vec::new();
    for _ in 0..STREAMS_MAX {
        streams.push(Subscribed::open(&mut client, None).await.unwrap());
    }
    let refused = Subscribed::open(&mut client, None).await;
    let Err(refused) = refused else {
        panic!("one more than there may be");
    };
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().starts_with("256 streams"), "{refused}");
    streams.clear();
    // The places are free when the switch has noticed.
    let mut last = Err(refused);
    while last.is_err() {
        last = Subscribed::open(&mut client, None).await;
    }
}

#[tokio::test]
async fn a_target_is_the_device_id() {
    let rig = Rig::start().await;
    let mut client = connect(&rig.address).await;
    let with = |name: &str| GetRequest {
        prefix: target(name),
        ..request(path("interfaces"))
    };
    let answer = client
        .get(with(&DEVICE_ID.to_string()))
        .await
        .unwrap()
        .into_inner();
    let prefix = answer.notification[0].prefix.as_ref().unwrap();
    assert_eq!(prefix.target, DEVICE_ID.to_string());
    let refused = client.get(with("8")).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    assert_eq!(refused.message(), "there is no target `8`; there are 7");
}

/// The switches of a fabric have one address, and ports on links in memory too.
#[test]
fn a_fabric_has_a_target_for_each_switch() {
    in_namespace(|| {
        add_link("s0", "h0");
        add_link("s1", "h1");
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("line.json");
        std::fs::write(&file, LINE).unwrap();
        let process = Process::start(&["--fabric", &file.display().to_string()]);
        runtime().block_on(async {
            let mut client = connect(&process.address).await;
            let of = |name: &str| GetRequest {
                prefix: target(name),
                ..request(state("*", "id"))
            };
            let east = vec![leaf_update("east-eth1", "id", "1")];
            // Port 0 has no id, since openconfig-p4rt has none for it.
            assert_eq!(get(&mut client, of("east")).await.unwrap(), east);
            assert_eq!(get(&mut client, of("12")).await.unwrap(), east);
            let middle = get(&mut client, of("middle")).await.unwrap();
            assert_eq!(middle.len(), 2);
            let nobody = get(&mut client, of("")).await.unwrap_err();
            assert_eq!(nobody.code(), Code::Unimplemented);
            let names = "there are west (10), middle (11), east (12)";
            assert!(nobody.message().ends_with(names), "{nobody}");
            assert_eq!(code(get(&mut client, of("north")).await), Code::NotFound);
            let status = on_change(state("s0", "oper-status"));
            let mut request = list(Mode::Stream, vec![status]);
            request.prefix = target("west");
            let mut stream = Subscribed::to(&mut client, request).await;
            assert_eq!(stream.all().await, [leaf_update("s0", "oper-status", "UP")]);
            run("ip link set h0 down");
            stream
                .wait_for(&leaf_update("s0", "oper-status", "DOWN"))
                .await;
        });
    });
}
