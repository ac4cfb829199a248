//! The worm codec against `vectors/worm.json` and the constants of the data plane.

#![allow(clippy::disallowed_methods, reason = "the vectors are files")]

use crate::support;

use serde::Deserialize;
use serde_json::Value;
use std::path::PathBuf;
use support::{read, to_hex};
use wormcast_wire::gather::{self, Announcement, Op};
use wormcast_wire::trace::{self, Record};
use wormcast_wire::worm::{self, Header, Kind};
use wormcast_wire::wormhole::train::{Place, TRAIN_LENGTH, couple};
use wormcast_wire::{
    DecodeError, ETHERNET_LENGTH, ETHERTYPE_WORM, GroupId, HostId, SWITCHES_CROSSED_MAX, Seq,
    SwitchId, forward, tree_route,
};

fn from_hex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "whole bytes");
    (0..text.len() / 2)
        .map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).expect("hexadecimal"))
        .collect()
}

#[derive(Deserialize)]
struct FrameVector {
    name: String,
    dst: String,
    src: String,
    version: u8,
    kind: usize,
    flags: u8,
    hops: u8,
    source: u16,
    sequence: u16,
    next: u16,
    checksum: u16,
    route: String,
    payload: String,
    frame: String,
}

#[test]
fn frames_decode_to_their_fields_and_encode_back() {
    let frames: Vec<FrameVector> =
        serde_json::from_value(read("worm.json")["frames"].take()).expect("frames");
    assert!(frames.len() > 20);
    for vector in frames {
        let bytes = from_hex(&vector.frame);
        let name = &vector.name;
        // Kinds without a name are for switches to pass; a host refuses them.
        let Some(kind) = Kind::ALL.get(vector.kind) else {
            assert_eq!(worm::decode(&bytes), Err(DecodeError::WormKind), "{name}");
            continue;
        };
        let worm = worm::decode(&bytes).unwrap_or_else(|reject| panic!("{name}: {reject}"));
        assert_eq!(vector.version, 1, "{name}");
        let header = Header {
            kind: *kind,
            flags: vector.flags,
            hops: vector.hops,
            source: HostId(vector.source),
            sequence: vector.sequence,
            next: vector.next,
        };
        assert_eq!(worm.header, header, "{name}");
        assert_eq!(to_hex(worm.route), vector.route, "{name}");
        assert_eq!(to_hex(worm.payload), vector.payload, "{name}");
        let end = ETHERNET_LENGTH + worm::HEADER_LENGTH + worm.route.len();
        assert_eq!(
            worm::checksum(&bytes[ETHERNET_LENGTH..end]),
            vector.checksum,
            "{name}"
        );
        if vector.dst == "03574f524d00" {
            let mut frame = vec![0; bytes.len()];
            let mac = from_hex(&vector.src).try_into().expect("six bytes");
            let at = worm::encode(&mut frame, mac, &header, worm.route);
            frame[at..].copy_from_slice(worm.payload);
            assert_eq!(to_hex(&frame), vector.frame, "{name}");
        }
    }
}

#[test]
fn invalid_frames_are_refused_for_their_reason() {
    let vectors = read("worm.json");
    for vector in vectors["invalid"].as_array().expect("a list") {
        let name = vector["name"].as_str().expect("a name");
        let frame = from_hex(vector["frame"].as_str().expect("a frame"));
        let reasons: &[DecodeError] = match vector["reason"].as_str().expect("a reason") {
            "NOT_A_WORM" => &[DecodeError::NotWorm],
            "TRUNCATED" => &[DecodeError::Truncated],
            "VERSION_UNKNOWN" => &[DecodeError::WormVersion],
            "CHECKSUM" => &[DecodeError::WormChecksum],
            "KIND_UNKNOWN" => &[DecodeError::WormKind],
            // What only a switch minds; at a host these worms are in transit, or of a
            // kind that ends there.
            _ => continue,
        };
        let result = worm::decode(&frame);
        assert!(
            result.is_err_and(|reject| reasons.contains(&reject)),
            "{name}: {result:?}"
        );
    }
}

#[test]
fn traces_are_read_as_the_vectors_say() {
    let vectors = read("worm.json");
    let traces = vectors["traces"].as_array().expect("a list");
    assert!(traces.len() > 5);
    for vector in traces {
        let name = vector["name"].as_str().expect("a name");
        let frame = from_hex(vector["frame"].as_str().expect("a frame"));
        let worm = worm::decode(&frame).unwrap_or_else(|reject| panic!("{name}: {reject}"));
        let trace = worm.trace.unwrap_or_else(|| panic!("{name}: no trace"));
        assert_eq!(u64::from(trace.room), vector["room"], "{name}");
        assert_eq!(trace.count() as u64, vector["count"], "{name}");
        assert_eq!(to_hex(worm.payload), vector["payload"], "{name}");
        let number = |record: &Value, member: &str| record[member].as_u64().expect("a number");
        let records = vector["records"].as_array().expect("a list").iter();
        let expected: Vec<Record> = records
            .map(|record| Record {
                switch: SwitchId(number(record, "switch") as u16),
                hop: number(record, "hop") as u8,
                ingress_port: number(record, "ingress_port") as u8,
                egress_port: number(record, "egress_port") as u8,
                stay_us: number(record, "stay") as u32,
                queue: number(record, "queue") as u16,
                left_us: number(record, "left") as u32,
            })
            .collect();
        assert_eq!(trace.believed(worm.header.hops), expected, "{name}");
        for record in expected {
            let bytes = record.to_bytes();
            assert!(
                frame.windows(bytes.len()).any(|part| part == bytes),
                "{name}"
            );
        }
    }
    for vector in vectors["bad_traces"].as_array().expect("a list") {
        let frame = from_hex(vector["frame"].as_str().expect("a frame"));
        let result = worm::decode(&frame);
        assert_eq!(result, Err(DecodeError::Truncated), "{}", vector["name"]);
    }
}

#[test]
fn gather_worms_say_what_the_vectors_say_and_encode_back() {
    let vectors = read("worm.json");
    let gathers = vectors["gathers"].as_array().expect("a list");
    assert!(gathers.len() > 4);
    for vector in gathers {
        let name = vector["name"].as_str().expect("a name");
        let number = |member: &str| vector[member].as_u64().expect("a number");
        let bytes = |member: &str| from_hex(vector[member].as_str().expect("hexadecimal"));
        let expected = Announcement {
            op: match number("op") {
                1 => Op::Ack,
                2 => Op::Request,
                3 => Op::Answer,
                other => panic!("{name}: op {other}"),
            },
            flags: number("flags") as u8,
            group: GroupId(number("group") as u16),
            origin: HostId(number("origin") as u16),
            port: number("port") as u8,
            epoch: number("epoch") as u32,
            stream: number("stream") as u32,
            cumulative: Seq(number("cumulative") as u32),
            stable: Seq(number("stable") as u32),
        };
        let frame = bytes("frame");
        let worm = worm::decode(&frame).unwrap_or_else(|reject| panic!("{name}: {reject}"));
        assert_eq!(worm.header.kind, Kind::Gather, "{name}");
        assert_eq!(gather::decode(&worm), Ok(expected), "{name}");
        let mut written = vec![0xAA; gather::FRAME_LENGTH_MAX];
        let from = (HostId(number("source") as u16), number("sequence") as u16);
        let mac = bytes("src").try_into().expect("six bytes");
        let length = gather::encode(&mut written, mac, from, &bytes("route"), &expected);
        assert_eq!(to_hex(&written[..length]), to_hex(&frame), "{name}");
    }
    for vector in vectors["bad_gathers"].as_array().expect("a list") {
        let frame = from_hex(vector["frame"].as_str().expect("a frame"));
        let refused = worm::decode(&frame).and_then(|worm| gather::decode(&worm));
        let reason = refused.expect_err("bad").to_string();
        assert_eq!(vector["reason"], reason, "{}", vector["name"]);
    }
}

#[test]
fn worms_of_one_frame_are_coupled_into_trains_as_the_vectors_say() {
    let vectors = read("worm.json");
    let trains = vectors["trains"].as_array().expect("a list");
    assert!(trains.len() > 8);
    for vector in trains {
        let name = vector["name"].as_str().expect("a name");
        let bytes = |member: &str| from_hex(vector[member].as_str().expect("hexadecimal"));
        let number = |member: &str| vector[member].as_u64().expect("a number");
        let whole = bytes("whole");
        let mut frame = whole.clone();
        frame.resize(whole.len() + TRAIN_LENGTH, 0xAA);
        let place = Place {
            sequence: number("sequence") as u16,
            position: number("position") as u16,
            is_last: vector["is_last"].as_bool().expect("true or false"),
        };
        let length = couple(&mut frame, whole.len(), place);
        let length = length.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(to_hex(&frame[..length]), vector["frame"], "{name}");
        let worm = worm::decode(&frame[..length]).unwrap_or_else(|error| panic!("{name}: {error}"));
        let train = worm
            .train
            .unwrap_or_else(|| panic!("{name}: no train header"));
        assert_eq!(train.position, place.position, "{name}");
        assert_eq!(u64::from(worm.header.flags), number("flags"), "{name}");
        assert_eq!(to_hex(worm.route), vector["route"], "{name}");
        assert_eq!(to_hex(worm.payload), vector["payload"], "{name}");
    }
}

fn paths_of(branches: &Value, before: &[u8], out: &mut Vec<Vec<u8>>) {
    for branch in branches.as_array().expect("a list") {
        let port = branch["port"].as_u64().expect("a port") as u8;
        let path = [before, &[port]].concat();
        match branch.get("branches") {
            Some(branches) => paths_of(branches, &path, out),
            None => out.push(path),
        }
    }
}

#[test]
fn tree_routes_encode_from_their_paths_and_bad_ones_are_refused() {
    let vectors = read("worm.json");
    let trees = vectors["trees"].as_array().expect("a list");
    assert!(!trees.is_empty());
    for vector in trees {
        let name = vector["name"].as_str().expect("a name");
        let route = from_hex(vector["route"].as_str().expect("a route"));
        let mut paths = Vec::new();
        paths_of(&vector["branches"], &[], &mut paths);
        paths.sort();
        assert_eq!(
            tree_route::decode_tree(&route).as_ref(),
            Ok(&paths),
            "{name}"
        );
        let paths: Vec<(HostId, Vec<u8>)> = (0..).map(HostId).zip(paths).collect();
        match tree_route::encode_tree(&paths) {
            Ok(routes) => assert!(
                routes[..].iter().map(|one| &one.bytes).eq([&route]),
                "{name}"
            ),
            // A worm would not get there.
            Err(error) => assert!(
                paths
                    .iter()
                    .any(|(_, path)| path.len() > SWITCHES_CROSSED_MAX),
                "{name}: {error}"
            ),
        }
    }
    for vector in vectors["bad_trees"].as_array().expect("a list") {
        let route = from_hex(vector["route"].as_str().expect("a route"));
        assert!(tree_route::branches(&route).is_err(), "{}", vector["name"]);
    }
    for vector in vectors["bad_sub_trees"].as_array().expect("a list") {
        let route = from_hex(vector["route"].as_str().expect("a route"));
        assert!(tree_route::branches(&route).is_ok(), "{}", vector["name"]);
        assert!(
            tree_route::decode_tree(&route).is_err(),
            "{}",
            vector["name"]
        );
    }
}

/// Whether a switch in this state does more than the route says: it writes records, refuses worms or holds
/// them back, or sends by another link than the one named.
fn does_more(state: &Value) -> bool {
    let any = |list: &str, member: &str, value: &str| {
        let mut entries = state[list].as_array().expect("a list").iter();
        entries.any(|entry| entry[member] == value)
    };
    any("defaults", "table", "egress.trace")
        || any("defaults", "table", "ingress.wormhole")
        || any("defaults", "table", "ingress.guard")
        || any("tables", "action", "ingress.port_backed")
}

#[test]
fn worms_go_by_their_routes_where_switches_send_them() {
    let document = read("worm_switch.json");
    let mut followed = 0;
    for vector in document["vectors"].as_array().expect("a list") {
        let frame = from_hex(vector["frame"].as_str().expect("a frame"));
        let by_route = worm::decode(&frame).is_ok_and(|worm| {
            // One that ends at the switch goes on by its entries.
            let passes = worm
                .route
                .iter()
                .any(|port| *port != worm::RECIRCULATE_PORT);
            // A train of one frame records by which port it came.
            let whole = worm::flags::HEAD | worm::flags::TAIL;
            let records = worm.train.is_some() && worm.header.flags & whole == whole;
            worm.header.kind == Kind::Gather && passes
                || !records
                    && matches!(worm.header.kind, Kind::Unicast | Kind::Control | Kind::Tree)
        });
        let state = vector["state"].as_str().expect("a state");
        let state = &document["states"][state];
        let is_configured = state["tables"]
            .as_array()
            .is_some_and(|list| !list.is_empty());
        // A queue that marks, and frames from the controller, are no matter of the route.
        if !by_route
            || !is_configured
            || !vector["deq_qdepth"].is_null()
            || vector["ingress_port"] == 510
            || does_more(state)
        {
            continue;
        }
        let state = vector["state"].as_str().expect("a state");
        let ports = document["states"][state]["ports"]
            .as_array()
            .expect("ports");
        let mut sent = forward::forward(&frame);
        sent.retain(|copy| ports.contains(&copy.port.into()));
        sent.sort();
        let copies = vector["out"].as_array().expect("a list").iter();
        let mut expected: Vec<forward::Copy> = copies
            .map(|copy| forward::Copy {
                port: copy["port"].as_u64().expect("a port") as u8,
                frame: from_hex(copy["frame"].as_str().expect("a frame")),
            })
            .collect();
        expected.sort();
        assert_eq!(sent, expected, "{}", vector["name"]);
        followed += 1;
    }
    assert!(followed > 50, "{followed}");
}

#[test]
fn constants_are_those_of_the_data_plane() {
    let shared = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../p4src/shared");
    let text = ["ids.p4", "sizes.p4"]
        .map(|name| std::fs::read_to_string(shared.join(name)).expect("the P4 sources"))
        .concat();
    let value = |name: &str| -> u64 {
        let line = text
            .lines()
            .find(|line| line.starts_with("const ") && line.contains(&format!("> {name} =")))
            .unwrap_or_else(|| panic!("{name} is not in the data plane"));
        let number = line
            .split('=')
            .nth(1)
            .and_then(|rest| rest.split(';').next());
        let number = number.expect("a value").trim();
        match number.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).expect("hexadecimal"),
            None => number.parse().expect("decimal"),
        }
    };
    let mac = wormcast_wire::WORM_MAC;
    let mac = mac
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte));
    assert_eq!(value("WORM_MAC"), mac);
    assert_eq!(value("ETHERTYPE_WORM"), u64::from(ETHERTYPE_WORM));
    assert_eq!(
        value("ETHERTYPE_HOST"),
        u64::from(wormcast_wire::ETHERTYPE_HOST_PDU)
    );
    for (name, kind) in ["UNICAST", "TREE", "BROADCAST", "GROUP", "CONTROL", "GATHER"]
        .iter()
        .zip(Kind::ALL)
    {
        assert_eq!(value(&format!("KIND_{name}")), kind as u64);
    }
    assert_eq!(value("GATHER_ACK"), Op::Ack as u64);
    assert_eq!(value("GATHER_REQUEST"), Op::Request as u64);
    assert_eq!(value("GATHER_ANSWER"), Op::Answer as u64);
    assert_eq!(value("GATHER_REFRESH"), u64::from(gather::flags::REFRESH));
    assert_eq!(value("GATHER_KNOWN"), u64::from(gather::flags::KNOWN));
    assert_eq!(value("FLAG_CLASS2"), u64::from(worm::flags::CLASS2));
    assert_eq!(value("FLAG_HEAD"), u64::from(worm::flags::HEAD));
    assert_eq!(value("FLAG_TAIL"), u64::from(worm::flags::TAIL));
    assert_eq!(value("FLAG_RESUMED"), u64::from(worm::flags::RESUMED));
    assert_eq!(value("FLAG_CE"), u64::from(worm::flags::CE));
    assert_eq!(value("FLAG_TRACE"), u64::from(worm::flags::TRACE));
    assert_eq!(value("TRACE_STAY_MAX"), u64::from(trace::STAY_US_MAX));
    assert_eq!(value("TRACE_QUEUE_MAX"), u64::from(trace::QUEUE_MAX));
    assert_eq!(value("RECIRCULATE_PORT"), u64::from(worm::RECIRCULATE_PORT));
    assert_eq!(value("END_OF_ROUTE"), u64::from(worm::END_OF_ROUTE));
    assert_eq!(value("GROUP_BROADCAST"), u64::from(GroupId::BROADCAST.0));
    assert_eq!(
        value("MAX_HOPS"),
        wormcast_wire::SWITCHES_CROSSED_MAX as u64
    );
    assert_eq!(value("MAX_BRANCHES"), tree_route::BRANCHES_MAX as u64);
    assert_eq!(value("MAX_ROUTE"), wormcast_wire::ROUTE_LENGTH_MAX as u64);
}
