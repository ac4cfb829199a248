//! Parser value sets: §"ValueSetEntry".

use tonic::Code;

use super::entities_program::{PARSED, probe, send_one, start, value_set};
use super::errors::refusal;
use super::messages::{delete, exact, insert, lpm, modify, of, optional, range, ternary};
use wormcast_switch_p4runtime::proto::p4::v1::{ValueSetEntry, entity};

const SELECTED: &str = "parse.selected";
const SPANS: &str = "parse.spans";

#[tokio::test]
async fn members_of_every_match_kind_steer_the_parser() {
    let (rig, mut controller) = start().await;
    let parsed =
        async |kind, size, address| send_one(&rig, &probe(kind, size, address)).await[PARSED];
    assert_eq!(parsed(7, 0x55aa, 0x0a010203).await, 0);
    let members = [
        vec![
            exact(1, &[7]),
            ternary(2, &[0x55, 0], &[0xff, 0]),
            lpm(3, &[10, 1, 0, 0], 16),
        ],
        vec![exact(1, &[8])],
    ];
    let written = modify(value_set(SELECTED, &members));
    controller.write(vec![written]).await.unwrap();
    assert_eq!(parsed(7, 0x55aa, 0x0a010203).await, 1);
    assert_eq!(parsed(7, 0x54aa, 0x0a010203).await, 0);
    assert_eq!(parsed(7, 0x55aa, 0x0a020203).await, 0);
    assert_eq!(parsed(8, 1, 2).await, 1);

    let members = [
        vec![range(1, &[100], &[1, 44]), optional(2, &[9])],
        vec![range(1, &[3, 232], &[3, 233])],
    ];
    let written = modify(value_set(SPANS, &members));
    controller.write(vec![written]).await.unwrap();
    for (kind, size, expected) in [
        (9, 99, 0),
        (9, 100, 2),
        (9, 300, 2),
        (9, 301, 0),
        (10, 200, 0),
        (10, 1000, 2),
        (10, 1001, 2),
        (10, 1002, 0),
    ] {
        assert_eq!(parsed(kind, size, 0).await, expected, "{kind} {size}");
    }
}

#[tokio::test]
async fn a_write_replaces_all_members_and_a_read_gives_them_back() {
    let (_rig, mut controller) = start().await;
    let first = value_set(
        SPANS,
        &[vec![range(1, &[1], &[5])], vec![optional(2, &[3])]],
    );
    let second = value_set(SPANS, &[vec![]]);
    for written in [first, second, value_set(SPANS, &[])] {
        controller
            .write(vec![modify(written.clone())])
            .await
            .unwrap();
        let found = controller.read(vec![value_set(SPANS, &[])]).await.unwrap();
        assert_eq!(found, [written]);
    }
    let all = of(entity::Entity::ValueSetEntry(ValueSetEntry::default()));
    assert_eq!(controller.read(vec![all]).await.unwrap().len(), 3);
}

#[tokio::test]
async fn value_sets_that_cannot_be() {
    let (_rig, mut controller) = start().await;
    let kind = |kind: u8| vec![exact(1, &[kind])];
    let unknown = of(entity::Entity::ValueSetEntry(ValueSetEntry {
        value_set_id: 9,
        members: Vec::new(),
    }));
    let cases = [
        (
            insert(value_set(SELECTED, &[])),
            Code::InvalidArgument,
            "value set `parse.selected` can only be modified",
        ),
        (
            delete(value_set(SELECTED, &[])),
            Code::InvalidArgument,
            "value set `parse.selected` can only be modified",
        ),
        (
            modify(unknown.clone()),
            Code::NotFound,
            "there is no value set with the id 9",
        ),
        (
            modify(value_set(SELECTED, &[1, 2, 3, 4, 5].map(kind))),
            Code::ResourceExhausted,
            "value set `parse.selected`: 5 members are too many: it holds at most 4",
        ),
        (
            modify(value_set(SELECTED, &[kind(1), kind(1)])),
            Code::AlreadyExists,
            "a member of parser value set parse.selected exists already",
        ),
        (
            modify(value_set(SELECTED, &[vec![]])),
            Code::InvalidArgument,
            "value set `parse.selected`: member 1: match field `kind` (id 1): it is missing; an \
             exact match cannot be left out",
        ),
        (
            modify(value_set(SELECTED, &[kind(1), vec![exact(1, &[1, 0])]])),
            Code::OutOfRange,
            "value set `parse.selected`: member 2: match field `kind` (id 1): value 0x100 does \
             not fit into 8 bits (at most 0xff)",
        ),
        (
            modify(value_set(SPANS, &[vec![range(1, &[5], &[4])]])),
            Code::InvalidArgument,
            "value set `parse.spans`: member 1: match field `size` (id 1): the low bound 0x5 is \
             above the high bound 0x4",
        ),
    ];
    for (update, code, message) in cases {
        let refused = refusal(&mut controller, update).await;
        assert_eq!(refused, (code, message.to_owned()));
    }
    let status = controller.read(vec![unknown]).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
}
