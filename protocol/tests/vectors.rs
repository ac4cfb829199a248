//! The codec against `vectors/`, and `vectors/pdu.json` against the codec: with
//! WORMCAST_WRITE_VECTORS set it is written anew. The Python layer reads the same file.

use serde::Deserialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use wormcast_protocol::wire::ack::{Ack, Echo, FailedMember, List, SeqRange};
use wormcast_protocol::wire::pdu::{self, Body, Common, Data, Nack, Repair, Status};
use wormcast_protocol::wire::worm::{self, Header, Kind};
use wormcast_protocol::wire::{ETHERNET_LENGTH, ETHERTYPE_WORM, tree_route};
use wormcast_protocol::{BufferClass, FailReason, GroupId, HostId, Reject, Seq};

fn vectors(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("vectors").join(name)
}

fn read(name: &str) -> Value {
    let text = std::fs::read_to_string(vectors(name)).expect("the vectors are checked in");
    serde_json::from_str(&text).expect("JSON")
}

fn from_hex(text: &str) -> Vec<u8> {
    assert!(text.len() % 2 == 0, "whole bytes");
    (0..text.len() / 2)
        .map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).expect("hexadecimal"))
        .collect()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
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
            assert_eq!(worm::decode(&bytes), Err(Reject::WormKind), "{name}");
            continue;
        };
        let worm = worm::decode(&bytes).unwrap_or_else(|reject| panic!("{name}: {reject}"));
        assert_eq!(vector.version, 1, "{name}");
        let header = Header {
            kind: *kind,
            flags: vector.flags & worm::flags::ALL,
            hops: vector.hops,
            source: HostId(vector.source),
            sequence: vector.sequence,
            next: vector.next,
        };
        assert_eq!(worm.header, header, "{name}");
        assert_eq!(to_hex(worm.route), vector.route, "{name}");
        assert_eq!(to_hex(worm.payload), vector.payload, "{name}");
        let end = ETHERNET_LENGTH + worm::HEADER_LENGTH + worm.route.len();
        assert_eq!(worm::checksum(&bytes[ETHERNET_LENGTH..end]), vector.checksum, "{name}");
        if vector.flags & !worm::flags::ALL == 0 && vector.dst == "03574f524d00" {
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
        let reasons: &[Reject] = match vector["reason"].as_str().expect("a reason") {
            "NOT_A_WORM" => &[Reject::NotWorm],
            "TRUNCATED" => &[Reject::Truncated],
            "VERSION_UNKNOWN" => &[Reject::WormVersion],
            "CHECKSUM" => &[Reject::WormChecksum],
            "KIND_UNKNOWN" => &[Reject::WormKind],
            // What only a switch minds; at a host these worms are in transit, or of a
            // kind that ends there.
            _ => continue,
        };
        let result = worm::decode(&frame);
        assert!(result.is_err_and(|reject| reasons.contains(&reject)), "{name}: {result:?}");
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
        let mut paths = Vec::new();
        paths_of(&vector["branches"], &[], &mut paths);
        paths.sort();
        let paths: Vec<&[u8]> = paths.iter().map(Vec::as_slice).collect();
        let mut route = Vec::new();
        tree_route::encode(&paths, 255, &mut route).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        assert_eq!(to_hex(&route), vector["route"].as_str().expect("a route"), "{name}");
    }
    for vector in vectors["bad_trees"].as_array().expect("a list") {
        let route = from_hex(vector["route"].as_str().expect("a route"));
        assert_eq!(tree_route::decode(&route), None, "{}", vector["name"]);
    }
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
        let number = line.split('=').nth(1).and_then(|rest| rest.split(';').next());
        let number = number.expect("a value").trim();
        match number.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).expect("hexadecimal"),
            None => number.parse().expect("decimal"),
        }
    };
    let mac = wormcast_protocol::wire::WORM_MAC;
    let mac = mac.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    assert_eq!(value("WORM_MAC"), mac);
    assert_eq!(value("ETHERTYPE_WORM"), u64::from(ETHERTYPE_WORM));
    assert_eq!(value("ETHERTYPE_HOST"), u64::from(wormcast_protocol::wire::ETHERTYPE_HOST_PDU));
    for (name, kind) in
        ["UNICAST", "TREE", "BROADCAST", "GROUP", "CONTROL"].iter().zip(Kind::ALL)
    {
        assert_eq!(value(&format!("KIND_{name}")), kind as u64);
    }
    assert_eq!(value("FLAG_CLASS2"), u64::from(worm::flags::CLASS2));
    assert_eq!(value("FLAG_HEAD"), u64::from(worm::flags::HEAD));
    assert_eq!(value("FLAG_TAIL"), u64::from(worm::flags::TAIL));
    assert_eq!(value("FLAG_RESUMED"), u64::from(worm::flags::RESUMED));
    assert_eq!(value("FLAG_CE"), u64::from(worm::flags::CE));
    assert_eq!(value("RECIRCULATE_PORT"), u64::from(worm::PORT_RECIRCULATE));
    assert_eq!(value("END_OF_ROUTE"), u64::from(worm::MARKER_END));
    assert_eq!(value("GROUP_BROADCAST"), u64::from(GroupId::BROADCAST.0));
    assert_eq!(value("MAX_HOPS"), u64::from(worm::HOPS_MAX));
    assert_eq!(value("MAX_BRANCHES"), tree_route::BRANCHES_MAX as u64);
    assert_eq!(value("MAX_ROUTE"), worm::ROUTE_LENGTH_MAX as u64);
}

struct Entry {
    name: &'static str,
    source: u16,
    common: Common,
    body: Body<'static>,
}

fn class_number(class: BufferClass) -> usize {
    class.index() + 1
}

impl Entry {
    fn to_json(&self) -> Value {
        let mut value = json!({
            "name": self.name,
            "source": self.source,
            "group": self.common.group.0,
            "origin": self.common.origin.0,
            "stream": self.common.stream,
        });
        let fields = match self.body {
            Body::Data(data) => json!({
                "type": "DATA",
                "seq": data.seq.0,
                "stable_offset": data.stable_offset,
                "tx_time": data.tx_time,
                "first": data.first,
                "last": data.last,
                "cancel": data.cancel,
                "ack_now": data.ack_now,
                "class": class_number(data.class),
                "payload": to_hex(data.payload),
            }),
            Body::Ack(ack) => json!({
                "type": "ACK",
                "epoch": ack.epoch,
                "receiver": ack.receiver,
                "cumulative": ack.cumulative.0,
                "stable": ack.stable.0,
                "echo": ack.echo.map(|echo| json!({
                    "tx_time": echo.tx_time,
                    "delay": echo.delay_us,
                    "forward_delay": echo.forward_delay_us,
                })),
                "packets": ack.packets,
                "duplicates": ack.duplicates,
                "congestion": ack.congestion,
                "retransmissions": ack.retransmissions,
                "ranges": ack.ranges().map(|range| [range.start.0, range.end.0]).collect::<Vec<_>>(),
                "failed": ack.failed().map(|member| json!({
                    "host": member.host.0,
                    "reason": member.reason as u8,
                    "at": member.at.0,
                })).collect::<Vec<_>>(),
                "more": ack.failed_more,
            }),
            Body::Nack(nack) => {
                json!({"type": "NACK", "seq": nack.seq.0, "class": class_number(nack.class)})
            }
            Body::Repair(repair) => json!({
                "type": "REPAIR",
                "child": repair.child.0,
                "from": repair.from.0,
                "to": repair.to.0,
                "class": class_number(repair.class),
            }),
            Body::Status(status) => {
                json!({"type": "STATUS", "stable": status.stable.0, "ack_now": status.ack_now})
            }
        };
        let target = value.as_object_mut().expect("an object");
        target.extend(fields.as_object().expect("an object").clone());
        target.insert("pdu".to_owned(), json!(to_hex(&self.encode())));
        value
    }

    fn encode(&self) -> Vec<u8> {
        let source = HostId(self.source);
        let mut bytes = vec![0; pdu::length_of(&self.common, source, &self.body)];
        let length = pdu::encode(&mut bytes, source, &self.common, &self.body);
        assert_eq!(length, bytes.len(), "{}", self.name);
        bytes
    }
}

const COMMON: Common = Common { group: GroupId(7), origin: HostId(3), stream: 0x0102_0304 };
const DATA: Data<'static> = Data {
    seq: Seq(1_000),
    stable_offset: 12,
    tx_time: 0xDEAD_BEEF,
    first: false,
    last: false,
    cancel: false,
    class: BufferClass::One,
    ack_now: false,
    payload: b"the quick brown fox",
};
const ACK: Ack<'static> = Ack {
    epoch: 9,
    receiver: 77,
    cumulative: Seq(1_001),
    stable: Seq(990),
    echo: Some(Echo { tx_time: 0xDEAD_BEEF, delay_us: 1_500, forward_delay_us: 0xFFFF_FF00 }),
    packets: 2_000,
    duplicates: 3,
    congestion: 40,
    retransmissions: 5,
    ranges: List::Values(&[]),
    failed: List::Values(&[]),
    failed_more: false,
};

fn entries() -> Vec<Entry> {
    let entry = |name, source, body| Entry { name, source, common: COMMON, body };
    let data = |name, source, data| entry(name, source, Body::Data(data));
    let ack = |name, ack| entry(name, 5, Body::Ack(ack));
    const RANGES: &[SeqRange] = &[
        SeqRange { start: Seq(1_010), end: Seq(1_011) },
        SeqRange { start: Seq(1_003), end: Seq(1_007) },
    ];
    const WRAPPED: &[SeqRange] = &[SeqRange { start: Seq(0xFFFF_FFFE), end: Seq(2) }];
    const FAILED: &[FailedMember] = &[
        FailedMember { host: HostId(6), reason: FailReason::NoSpace, at: Seq(900) },
        FailedMember { host: HostId(65_534), reason: FailReason::Orphaned, at: Seq(0) },
    ];
    vec![
        data("DATA from the origin, without the origin field", 3, DATA),
        data("DATA from a host that forwards", 4, DATA),
        data("DATA, only packet of a message", 3, Data { first: true, last: true, ..DATA }),
        data("DATA of class 2, answer at once", 4, Data { class: BufferClass::Two, ack_now: true, ..DATA }),
        data("DATA without payload, padded", 3, Data { last: true, payload: b"", ..DATA }),
        data("DATA with one byte, padded", 4, Data { payload: b"x", ..DATA }),
        data("DATA with 12 bytes, just not padded", 3, Data { payload: b"twelve bytes", ..DATA }),
        data("DATA that cancels a message", 3, Data { last: true, cancel: true, payload: b"", ..DATA }),
        data("DATA just past the wrap", 3, Data { seq: Seq(0), stable_offset: 65_535, ..DATA }),
        ack("ACK without gaps", ACK),
        ack("ACK without echo", Ack { echo: None, ..ACK }),
        ack("ACK with ranges", Ack { ranges: List::Values(RANGES), ..ACK }),
        ack("ACK with a range across the wrap", Ack { cumulative: Seq(0xFFFF_FFF0), ranges: List::Values(WRAPPED), ..ACK }),
        ack("ACK with failed members", Ack { failed: List::Values(FAILED), failed_more: true, ..ACK }),
        ack("ACK with ranges and failed members", Ack { ranges: List::Values(RANGES), failed: List::Values(FAILED), ..ACK }),
        entry("NACK, class 1", 5, Body::Nack(Nack { seq: Seq(1_005), class: BufferClass::One })),
        entry("NACK, class 2", 5, Body::Nack(Nack { seq: Seq(u32::MAX), class: BufferClass::Two })),
        entry("REPAIR", 4, Body::Repair(Repair { child: HostId(6), class: BufferClass::Two, from: Seq(980), to: Seq(1_000) })),
        entry("STATUS", 4, Body::Status(Status { stable: Seq(990), ack_now: false })),
        entry("STATUS that asks for an answer", 3, Body::Status(Status { stable: Seq(990), ack_now: true })),
    ]
}

/// PDUs to be refused, each made from a good one.
fn invalid() -> Vec<(&'static str, u16, Vec<u8>, Reject)> {
    let good = |index: usize| entries()[index].encode();
    let with_crc = |mut bytes: Vec<u8>, source: u16| {
        bytes[4..8].fill(0);
        let mut covered = source.to_be_bytes().to_vec();
        covered.extend_from_slice(&bytes);
        bytes[4..8].copy_from_slice(&crc32fast::hash(&covered).to_be_bytes());
        bytes
    };
    let changed = |index: usize, at: usize, value: u8| {
        let entry = &entries()[index];
        let mut bytes = good(index);
        bytes[at] = value;
        with_crc(bytes, entry.source)
    };
    let mut corrupt = good(0);
    corrupt[25] ^= 0x10;
    let ack_cut = with_crc(good(11)[..good(11).len() - 1].to_vec(), 5);
    vec![
        ("empty", 3, vec![], Reject::Truncated),
        ("33 bytes", 3, with_crc(good(4)[..33].to_vec(), 3), Reject::Truncated),
        ("a flipped bit of the payload", 3, corrupt, Reject::PduChecksum),
        ("a worm of another source", 9, good(0), Reject::PduChecksum),
        ("version 2", 3, changed(0, 0, 0x20), Reject::PduVersion),
        ("type 5", 3, changed(0, 0, 0x15), Reject::PduType),
        ("CANCEL without LAST", 3, changed(0, 1, 0x10), Reject::PduMalformed),
        ("padding of no bytes", 3, changed(4, 33, 0), Reject::PduMalformed),
        ("padding of 23 bytes", 3, changed(4, 33, 23), Reject::PduMalformed),
        ("padding that eats the body", 3, changed(4, 33, 14), Reject::PduMalformed),
        ("ACK with 33 ranges", 5, changed(11, 14 + 44, 33), Reject::PduMalformed),
        ("ACK with 17 failed members", 5, changed(13, 14 + 45, 17), Reject::PduMalformed),
        ("ACK a byte short", 5, ack_cut, Reject::PduMalformed),
        ("NACK a byte too long", 5, changed(15, 33, 15), Reject::PduMalformed),
    ]
}

#[test]
fn pdu_vectors_are_what_the_codec_writes_and_reads() {
    let entries = entries();
    for entry in &entries {
        let bytes = entry.encode();
        let decoded = pdu::decode(HostId(entry.source), &bytes);
        let pdu = decoded.unwrap_or_else(|reject| panic!("{}: {reject}", entry.name));
        assert_eq!((pdu.common, pdu.body), (entry.common, entry.body), "{}", entry.name);
    }
    let invalid: Vec<Value> = invalid()
        .into_iter()
        .map(|(name, source, bytes, reject)| {
            let result = pdu::decode(HostId(source), &bytes);
            assert_eq!(result, Err(reject), "{name}");
            json!({"name": name, "source": source, "pdu": to_hex(&bytes), "reason": reject.name()})
        })
        .collect();
    let expected = json!({
        "format": "wormcast pdu vectors",
        "format_version": 1,
        "pdus": entries.iter().map(Entry::to_json).collect::<Vec<_>>(),
        "invalid": invalid,
    });
    if std::env::var_os("WORMCAST_WRITE_VECTORS").is_some() {
        let text = serde_json::to_string_pretty(&expected).expect("JSON") + "\n";
        std::fs::write(vectors("pdu.json"), text).expect("the directory can be written to");
    }
    assert_eq!(read("pdu.json"), expected, "set WORMCAST_WRITE_VECTORS to write pdu.json anew");
}
