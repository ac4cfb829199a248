//! Digests: from the data plane to the primary, in lists, once until acknowledged.

use tonic::Code;

use super::messages::{delete, insert, modify, of};
use super::rig::{Controller, Rig};
use wormcast_switch_p4runtime::proto::p4::config::v1::{
    Digest, P4BitTypeSpec, P4BitstringLikeTypeSpec, P4DataTypeSpec, P4Info, P4NamedType,
    P4StructTypeSpec, P4TypeInfo, Preamble, p4_bitstring_like_type_spec, p4_data_type_spec,
    p4_struct_type_spec,
};
use wormcast_switch_p4runtime::proto::p4::v1::digest_entry::Config;
use wormcast_switch_p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use wormcast_switch_p4runtime::proto::p4::v1::{
    DigestEntry, DigestList, DigestListAck, Entity, ForwardingPipelineConfig, P4Data, P4StructLike,
    entity, p4_data, stream_error, stream_message_request, stream_message_response,
};

const LEARN: u32 = 0x1700_0001;

/// `externs.p4` with nothing but its digest in the P4Info.
pub fn learning() -> ForwardingPipelineConfig {
    let json = include_bytes!("../programs/externs.json");
    one_digest(json, "digest_t", &[("index", 8), ("value", 96)])
}

/// A program with nothing but one digest in the P4Info, which has these fields.
fn one_digest(json: &[u8], name: &str, fields: &[(&str, i32)]) -> ForwardingPipelineConfig {
    let member = |(name, bitwidth): &(&str, i32)| {
        let bitwidth = *bitwidth;
        let bits = p4_bitstring_like_type_spec::TypeSpec::Bit(P4BitTypeSpec { bitwidth });
        let bits = P4BitstringLikeTypeSpec {
            type_spec: Some(bits),
            ..P4BitstringLikeTypeSpec::default()
        };
        p4_struct_type_spec::Member {
            name: (*name).to_owned(),
            type_spec: Some(P4DataTypeSpec {
                type_spec: Some(p4_data_type_spec::TypeSpec::Bitstring(bits)),
            }),
        }
    };
    let learned = P4StructTypeSpec {
        members: fields.iter().map(member).collect(),
        ..P4StructTypeSpec::default()
    };
    let named = P4NamedType {
        name: name.to_owned(),
    };
    let digest = Digest {
        preamble: Some(Preamble {
            id: LEARN,
            name: name.to_owned(),
            ..Preamble::default()
        }),
        type_spec: Some(P4DataTypeSpec {
            type_spec: Some(p4_data_type_spec::TypeSpec::Struct(named)),
        }),
    };
    ForwardingPipelineConfig {
        p4info: Some(P4Info {
            digests: vec![digest],
            type_info: Some(P4TypeInfo {
                structs: [(name.to_owned(), learned)].into(),
                ..P4TypeInfo::default()
            }),
            ..P4Info::default()
        }),
        p4_device_config: json.to_vec(),
        cookie: None,
    }
}

pub async fn controller(rig: &Rig) -> Controller {
    let mut controller = Controller::open(rig, 1).await;
    controller.arbitrate(1).await;
    controller
        .set_config(Action::VerifyAndCommit, learning())
        .await
        .unwrap();
    controller
}

fn entry(config: Option<Config>) -> Entity {
    of(entity::Entity::DigestEntry(DigestEntry {
        digest_id: LEARN,
        config,
    }))
}

fn every(max_list_size: i32, ack_timeout_ns: i64) -> Option<Config> {
    Some(Config {
        max_timeout_ns: 3_600_000_000_000,
        max_list_size,
        ack_timeout_ns,
    })
}

const LONG_NS: i64 = 3_600_000_000_000;

/// Sends packets that make the program send digests.
pub async fn learn(rig: &Rig, values: &[u8]) {
    let frames: Vec<Vec<u8>> = values
        .iter()
        .map(|value| {
            let mut frame = vec![0; 33];
            frame[0] = 6;
            frame[1] = *value;
            frame[13] = 7;
            frame
        })
        .collect();
    let injected = rig
        .dataplane
        .run(move |switch| frames.iter().for_each(|frame| switch.inject(frame)));
    injected.await.unwrap();
}

pub async fn hear(controller: &mut Controller) -> DigestList {
    match controller.hear().await.unwrap() {
        stream_message_response::Update::Digest(list) => list,
        other => panic!("{other:?}"),
    }
}

pub fn data(values: &[u8]) -> Vec<P4Data> {
    let bits = |value: u8| P4Data {
        data: Some(p4_data::Data::Bitstring(vec![value])),
    };
    let values = values.iter().map(|value| P4Data {
        data: Some(p4_data::Data::Struct(P4StructLike {
            members: vec![bits(*value), bits(7)],
        })),
    });
    values.collect()
}

/// Asks for lists of so many messages.
pub async fn enable(controller: &mut Controller, size: i32) {
    let enabled = insert(entry(every(size, LONG_NS)));
    controller.write(vec![enabled]).await.unwrap();
}

#[tokio::test]
async fn lists_are_sent_when_full_and_not_repeated_before_an_acknowledgement() {
    let rig = Rig::start().await;
    let mut controller = controller(&rig).await;
    // Nobody wants them yet.
    learn(&rig, &[1, 2]).await;
    let enabled = insert(entry(every(2, LONG_NS)));
    controller.write(vec![enabled]).await.unwrap();
    learn(&rig, &[3, 3, 4, 3]).await;
    let list = hear(&mut controller).await;
    assert_eq!((list.digest_id, list.list_id), (LEARN, 1));
    assert_eq!(list.data, data(&[3, 4]));
    assert!(list.timestamp > 0);
    learn(&rig, &[4, 5, 6]).await;
    let list = hear(&mut controller).await;
    assert_eq!((list.list_id, list.data), (2, data(&[5, 6])));
    let ack = DigestListAck {
        digest_id: LEARN,
        list_id: 1,
    };
    controller
        .say(stream_message_request::Update::DigestAck(ack))
        .await;
    // An answer to this means that the acknowledgement has arrived.
    let unknown = DigestListAck {
        digest_id: 9,
        list_id: 1,
    };
    controller
        .say(stream_message_request::Update::DigestAck(unknown))
        .await;
    let stream_message_response::Update::Error(error) = controller.hear().await.unwrap() else {
        panic!("no error")
    };
    assert_eq!(Code::from_i32(error.canonical_code), Code::InvalidArgument);
    assert_eq!(error.message, "there is no digest with the id 9");
    assert!(matches!(
        error.details,
        Some(stream_error::Details::DigestListAck(_))
    ));
    learn(&rig, &[5, 3, 4]).await;
    let list = hear(&mut controller).await;
    assert_eq!((list.list_id, list.data), (3, data(&[3, 4])));
    assert!(rig.server.digest_counts().duplicates >= 4);
}

#[tokio::test]
async fn a_list_that_is_not_full_is_sent_after_its_timeout() {
    let rig = Rig::start().await;
    let mut controller = controller(&rig).await;
    let config = Config {
        max_timeout_ns: 1_000_000,
        max_list_size: 1_000,
        ack_timeout_ns: 0,
    };
    controller
        .write(vec![insert(entry(Some(config)))])
        .await
        .unwrap();
    learn(&rig, &[1]).await;
    assert_eq!(hear(&mut controller).await.data, data(&[1]));
}

#[tokio::test]
async fn digest_entries_are_written_and_read() {
    let rig = Rig::start().await;
    let mut controller = controller(&rig).await;
    let all = of(entity::Entity::DigestEntry(DigestEntry::default()));
    assert_eq!(controller.read(vec![all.clone()]).await.unwrap(), []);
    let old = entry(every(2, 0));
    controller.write(vec![insert(old.clone())]).await.unwrap();
    assert_eq!(
        controller.read(vec![all.clone()]).await.unwrap(),
        vec![old.clone()]
    );
    let new = entry(every(3, 5));
    controller.write(vec![modify(new.clone())]).await.unwrap();
    assert_eq!(
        controller.read(vec![entry(None)]).await.unwrap(),
        vec![new.clone()]
    );
    let status = controller.write(vec![insert(old)]).await.unwrap_err();
    assert_eq!(
        status.message(),
        "1 of 1 updates failed, first updates[0] of the request: ALREADY_EXISTS: digest `digest_t` is there \
         already; MODIFY it"
    );
    // It is part of what reconciling keeps.
    controller
        .set_config(Action::ReconcileAndCommit, learning())
        .await
        .unwrap();
    assert_eq!(controller.read(vec![all.clone()]).await.unwrap(), [new]);
    controller.write(vec![delete(entry(None))]).await.unwrap();
    assert_eq!(controller.read(vec![all]).await.unwrap(), []);
}

#[tokio::test]
async fn a_new_primary_is_told_what_the_old_one_did_not_acknowledge() {
    let rig = Rig::start().await;
    let mut first = controller(&rig).await;
    let enabled = insert(entry(every(1, LONG_NS)));
    first.write(vec![enabled]).await.unwrap();
    learn(&rig, &[1]).await;
    assert_eq!(hear(&mut first).await.data, data(&[1]));
    let mut second = Controller::open(&rig, 0).await;
    second.arbitrate(2).await;
    learn(&rig, &[1]).await;
    assert_eq!(hear(&mut second).await.data, data(&[1]));
    let ack = DigestListAck {
        digest_id: LEARN,
        list_id: 2,
    };
    assert!(matches!(
        first.hear().await.unwrap(),
        stream_message_response::Update::Arbitration(_)
    ));
    first
        .say(stream_message_request::Update::DigestAck(ack))
        .await;
    let stream_message_response::Update::Error(error) = first.hear().await.unwrap() else {
        panic!("no error")
    };
    assert_eq!(
        error.message,
        "only the primary controller may acknowledge digests"
    );
}

#[tokio::test]
async fn a_digest_of_other_widths_does_not_fit_the_program() {
    let rig = Rig::start().await;
    let mut controller = Controller::open(&rig, 1).await;
    controller.arbitrate(1).await;
    let mut config = learning();
    let types = config.p4info.as_mut().unwrap().type_info.as_mut().unwrap();
    types.structs.get_mut("digest_t").unwrap().members.pop();
    let status = controller.set_config(Action::Verify, config).await;
    let status = status.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(
        status.message(),
        "the P4Info does not fit the program: digest `digest_t` has fields of [8] bits, in the \
         program [8, 96]"
    );
}

/// `digests.p4` calls `digest` with `note_t` in two places, for which p4c makes a list each;
/// the P4Info has one digest.
#[tokio::test]
async fn two_calls_with_one_struct_are_one_digest() {
    let rig = Rig::start().await;
    let mut controller = Controller::open(&rig, 1).await;
    controller.arbitrate(1).await;
    let json = include_bytes!("../programs/digests.json");
    let config = one_digest(json, "note_t", &[("value", 16)]);
    let set = controller.set_config(Action::VerifyAndCommit, config);
    set.await.unwrap();
    let enabled = insert(entry(every(1, LONG_NS)));
    controller.write(vec![enabled]).await.unwrap();
    for (call, value) in [(2, 0x11), (3, 0x22)] {
        let frame = [call, 0, 0, 0, 0, 0, 0, 0x50, value];
        let injected = rig.dataplane.run(move |switch| switch.inject(&frame));
        injected.await.unwrap();
        let list = hear(&mut controller).await;
        assert_eq!(list.digest_id, LEARN, "call {call}");
        let value = P4Data {
            data: Some(p4_data::Data::Bitstring(vec![0x50, value])),
        };
        let members = vec![value];
        let sample = p4_data::Data::Struct(P4StructLike { members });
        assert_eq!(list.data, [P4Data { data: Some(sample) }], "call {call}");
    }
}
