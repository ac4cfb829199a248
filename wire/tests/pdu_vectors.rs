//! The PDU codec against `vectors/pdu.json`: with WORMCAST_WRITE_VECTORS set the file is
//! written anew. The Python layer reads the same file.

#![allow(clippy::disallowed_methods, reason = "the vectors are files")]

use crate::support;

use serde_json::{Value, json};
use support::{read, to_hex, vectors};
use wormcast_wire::ack::{Ack, Echo, FailedMember, FailedSet, List, SeqRange};
use wormcast_wire::pdu::{self, Body, Common, Data, Nack, Probe, Repair, Status};
use wormcast_wire::{BufferClass, DecodeError, FailReason, GroupId, HostId, Seq};

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
                "choice": data.choice,
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
                "sets": ack.sets().map(|set| json!({
                    "reason": set.reason as u8,
                    "at": set.at.0,
                    "members": to_hex(set.members),
                })).collect::<Vec<_>>(),
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
                json!({
                    "type": "STATUS",
                    "stable": status.stable.0,
                    "ack_now": status.ack_now,
                    "choice": status.choice,
                    "unclaimed": status.unclaimed,
                    "slow": status.slow,
                    "order_wanted": status.order_wanted,
                    "order_next": status.order_next,
                })
            }
            Body::Probe(probe) => {
                json!({"type": "PROBE", "way": probe.way, "attempt": probe.attempt})
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

const COMMON: Common = Common {
    group: GroupId(7),
    origin: HostId(3),
    stream: 0x0102_0304,
};
const DATA: Data<'static> = Data {
    seq: Seq(1_000),
    stable_offset: 12,
    tx_time: 0xDEAD_BEEF,
    first: false,
    last: false,
    cancel: false,
    class: BufferClass::One,
    ack_now: false,
    choice: 0,
    payload: b"the quick brown fox",
};
const ACK: Ack<'static> = Ack {
    epoch: 9,
    receiver: 77,
    cumulative: Seq(1_001),
    stable: Seq(990),
    echo: Some(Echo {
        tx_time: 0xDEAD_BEEF,
        delay_us: 1_500,
        forward_delay_us: 0xFFFF_FF00,
    }),
    packets: 2_000,
    duplicates: 3,
    congestion: 40,
    retransmissions: 5,
    ranges: List::Values(&[]),
    failed: List::Values(&[]),
    sets: List::Values(&[]),
};

fn entries() -> Vec<Entry> {
    let entry = |name, source, body| Entry {
        name,
        source,
        common: COMMON,
        body,
    };
    let data = |name, source, data| entry(name, source, Body::Data(data));
    let ack = |name, ack| entry(name, 5, Body::Ack(ack));
    const RANGES: &[SeqRange] = &[
        SeqRange {
            start: Seq(1_010),
            end: Seq(1_011),
        },
        SeqRange {
            start: Seq(1_003),
            end: Seq(1_007),
        },
    ];
    const WRAPPED: &[SeqRange] = &[SeqRange {
        start: Seq(0xFFFF_FFFE),
        end: Seq(2),
    }];
    const FAILED: &[FailedMember] = &[
        FailedMember {
            host: HostId(6),
            reason: FailReason::NoSpace,
            at: Seq(900),
        },
        FailedMember {
            host: HostId(65_534),
            reason: FailReason::Orphaned,
            at: Seq(0),
        },
    ];
    const SETS: &[FailedSet<'_>] = &[
        FailedSet {
            reason: FailReason::Silent,
            at: Seq(0),
            members: &[0x01, 0x80],
        },
        FailedSet {
            reason: FailReason::Cancelled,
            at: Seq(990),
            members: &[0xFE, 0xFF, 0x03],
        },
    ];
    vec![
        data("DATA from the origin, without the origin field", 3, DATA),
        data("DATA from a host that forwards", 4, DATA),
        data(
            "DATA, only packet of a message",
            3,
            Data {
                first: true,
                last: true,
                ..DATA
            },
        ),
        data(
            "DATA of class 2, answer at once",
            4,
            Data {
                class: BufferClass::Two,
                ack_now: true,
                ..DATA
            },
        ),
        data(
            "DATA without payload, padded",
            3,
            Data {
                last: true,
                payload: b"",
                ..DATA
            },
        ),
        data(
            "DATA with one byte, padded",
            4,
            Data {
                payload: b"x",
                ..DATA
            },
        ),
        data(
            "DATA with 12 bytes, just not padded",
            3,
            Data {
                payload: b"twelve bytes",
                ..DATA
            },
        ),
        data(
            "DATA that cancels a message",
            3,
            Data {
                last: true,
                cancel: true,
                payload: b"",
                ..DATA
            },
        ),
        data(
            "DATA just past the wrap",
            3,
            Data {
                seq: Seq(0),
                stable_offset: 65_535,
                ..DATA
            },
        ),
        data("DATA by the last choice", 3, Data { choice: 15, ..DATA }),
        data(
            "DATA by another choice, forwarded",
            4,
            Data { choice: 1, ..DATA },
        ),
        ack("ACK without gaps", ACK),
        ack("ACK without echo", Ack { echo: None, ..ACK }),
        ack(
            "ACK with ranges",
            Ack {
                ranges: List::Values(RANGES),
                ..ACK
            },
        ),
        ack(
            "ACK with a range across the wrap",
            Ack {
                cumulative: Seq(0xFFFF_FFF0),
                ranges: List::Values(WRAPPED),
                ..ACK
            },
        ),
        ack(
            "ACK with failed members",
            Ack {
                failed: List::Values(FAILED),
                ..ACK
            },
        ),
        ack(
            "ACK with ranges and failed members",
            Ack {
                ranges: List::Values(RANGES),
                failed: List::Values(FAILED),
                ..ACK
            },
        ),
        entry(
            "NACK, class 1",
            5,
            Body::Nack(Nack {
                seq: Seq(1_005),
                class: BufferClass::One,
            }),
        ),
        entry(
            "NACK, class 2",
            5,
            Body::Nack(Nack {
                seq: Seq(u32::MAX),
                class: BufferClass::Two,
            }),
        ),
        entry(
            "REPAIR",
            4,
            Body::Repair(Repair {
                child: HostId(6),
                class: BufferClass::Two,
                from: Seq(980),
                to: Seq(1_000),
            }),
        ),
        entry(
            "STATUS",
            4,
            Body::Status(Status {
                stable: Seq(990),
                ack_now: false,
                choice: 0,
                unclaimed: false,
                slow: false,
                order_wanted: false,
                order_next: false,
            }),
        ),
        entry(
            "STATUS that asks for an answer",
            3,
            Body::Status(Status {
                stable: Seq(990),
                ack_now: true,
                choice: 0,
                unclaimed: false,
                slow: false,
                order_wanted: false,
                order_next: false,
            }),
        ),
        entry(
            "STATUS by another choice",
            4,
            Body::Status(Status {
                stable: Seq(990),
                ack_now: true,
                choice: 2,
                unclaimed: false,
                slow: false,
                order_wanted: false,
                order_next: false,
            }),
        ),
        entry(
            "STATUS: nobody at a member takes the message",
            4,
            Body::Status(Status {
                stable: Seq(990),
                ack_now: false,
                choice: 0,
                unclaimed: true,
                slow: false,
                order_wanted: false,
                order_next: false,
            }),
        ),
        entry(
            "STATUS: a member takes the message slowly",
            4,
            Body::Status(Status {
                stable: Seq(990),
                ack_now: false,
                choice: 0,
                unclaimed: false,
                slow: true,
                order_wanted: false,
                order_next: false,
            }),
        ),
        entry(
            "STATUS: a member asks for the place of a message",
            4,
            Body::Status(Status {
                stable: Seq(990),
                ack_now: false,
                choice: 0,
                unclaimed: false,
                slow: false,
                order_wanted: true,
                order_next: false,
            }),
        ),
        entry(
            "STATUS: the message that a member asked for is next",
            4,
            Body::Status(Status {
                stable: Seq(990),
                ack_now: false,
                choice: 0,
                unclaimed: false,
                slow: false,
                order_wanted: true,
                order_next: true,
            }),
        ),
        entry(
            "PROBE: the first along a way",
            3,
            Body::Probe(Probe { way: 2, attempt: 1 }),
        ),
        entry(
            "PROBE: largest numbers",
            4,
            Body::Probe(Probe {
                way: u16::MAX,
                attempt: u16::MAX,
            }),
        ),
        ack(
            "ACK with ranges and sets of failed members",
            Ack {
                ranges: List::Values(RANGES),
                sets: List::Values(SETS),
                ..ACK
            },
        ),
    ]
}

/// PDUs to be refused, each made from a good one.
fn invalid() -> Vec<(&'static str, u16, Vec<u8>, DecodeError)> {
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
    let of_type = |name: &str| {
        entries()
            .iter()
            .position(|entry| entry.name.starts_with(name))
    };
    let probe = of_type("PROBE").expect("a PROBE");
    let sets = of_type("ACK with ranges and sets").expect("an ACK with sets");
    let ack_cut = with_crc(good(13)[..good(13).len() - 1].to_vec(), 5);
    vec![
        ("empty", 3, vec![], DecodeError::Truncated),
        (
            "33 bytes",
            3,
            with_crc(good(4)[..33].to_vec(), 3),
            DecodeError::Truncated,
        ),
        (
            "a flipped bit of the payload",
            3,
            corrupt,
            DecodeError::PduChecksum,
        ),
        (
            "a worm of another source",
            9,
            good(0),
            DecodeError::PduChecksum,
        ),
        ("version 2", 3, changed(0, 0, 0x20), DecodeError::PduVersion),
        ("type 6", 3, changed(0, 0, 0x16), DecodeError::PduType),
        (
            "CANCEL without LAST",
            3,
            changed(0, 1, 0x10),
            DecodeError::PduMalformed,
        ),
        (
            "padding of no bytes",
            3,
            changed(4, 33, 0),
            DecodeError::PduMalformed,
        ),
        (
            "padding of 23 bytes",
            3,
            changed(4, 33, 23),
            DecodeError::PduMalformed,
        ),
        (
            "padding that eats the body",
            3,
            changed(4, 33, 14),
            DecodeError::PduMalformed,
        ),
        (
            "ACK with 33 ranges",
            5,
            changed(13, 14 + 44, 33),
            DecodeError::PduMalformed,
        ),
        (
            "ACK with 17 failed members",
            5,
            changed(15, 14 + 45, 17),
            DecodeError::PduMalformed,
        ),
        (
            "choice 0 is not written",
            3,
            changed(9, 12, 0),
            DecodeError::PduMalformed,
        ),
        (
            "choice 16",
            3,
            changed(9, 12, 16),
            DecodeError::PduMalformed,
        ),
        ("ACK a byte short", 5, ack_cut, DecodeError::PduMalformed),
        (
            "ACK with a set of no bytes",
            5,
            changed(sets, 77, 0),
            DecodeError::PduMalformed,
        ),
        (
            "ACK with a set that goes past the end",
            5,
            changed(sets, 77, 14),
            DecodeError::PduMalformed,
        ),
        (
            "ACK with fewer sets than its end says",
            5,
            changed(sets, 59, 1),
            DecodeError::PduMalformed,
        ),
        (
            "NACK a byte too long",
            5,
            changed(17, 33, 15),
            DecodeError::PduMalformed,
        ),
        (
            "PROBE a byte short",
            3,
            changed(probe, 33, 17),
            DecodeError::PduMalformed,
        ),
    ]
}

#[test]
fn pdu_vectors_are_what_the_codec_writes_and_reads() {
    let entries = entries();
    for entry in &entries {
        let bytes = entry.encode();
        let decoded = pdu::decode(HostId(entry.source), &bytes);
        let pdu = decoded.unwrap_or_else(|reject| panic!("{}: {reject}", entry.name));
        assert_eq!(
            (pdu.common, pdu.body),
            (entry.common, entry.body),
            "{}",
            entry.name
        );
    }
    let invalid: Vec<Value> = invalid()
        .into_iter()
        .map(|(name, source, bytes, reject)| {
            let result = pdu::decode(HostId(source), &bytes);
            assert_eq!(result, Err(reject), "{name}");
            json!({"name": name, "source": source, "pdu": to_hex(&bytes), "reason": reject.to_string()})
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
    assert_eq!(
        read("pdu.json"),
        expected,
        "set WORMCAST_WRITE_VECTORS to write pdu.json anew"
    );
}
