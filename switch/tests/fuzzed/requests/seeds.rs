//! What controllers say: requests and messages of every kind.

use prost::Message;

use super::super::messages;
use super::building::written;
use super::rig::DEVICE_ID;
use super::{
    GET_CONFIG, OTHER_STREAM, PACKET, PRIMARY_STREAM, READ, SET_CONFIG, STEPS_MAX, Session, Step,
    WRITE, building, configs,
};
use wormcast_switch_p4runtime::proto::google::protobuf::Any;
use wormcast_switch_p4runtime::proto::p4::v1 as p4;
use wormcast_switch_p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use wormcast_switch_p4runtime::proto::p4::v1::{
    Entity, ForwardingPipelineConfig, GetForwardingPipelineConfigRequest, ReadRequest,
    SetForwardingPipelineConfigRequest, StreamMessageRequest, Update, WriteRequest, entity,
    stream_message_request,
};
use wormcast_switch_p4runtime::{P4RoleConfig, ROLE_CONFIG_TYPE};

fn step(kind: u32, payload: &impl Message) -> Step {
    Step {
        kind,
        payload: payload.encode_to_vec(),
        as_it_is: false,
    }
}

fn write(updates: Vec<Update>, atomicity: i32) -> Step {
    let request = WriteRequest {
        updates,
        atomicity,
        ..WriteRequest::default()
    };
    step(WRITE, &request)
}

fn read(entities: Vec<Entity>) -> Step {
    let request = ReadRequest {
        entities,
        ..ReadRequest::default()
    };
    step(READ, &request)
}

/// Entities of the objects program that the P4Info alone does not suggest.
fn rich() -> Vec<Entity> {
    let of = |entity| Entity {
        entity: Some(entity),
    };
    let choice = |watch: u32| p4::ActionProfileAction {
        action: Some(messages::call(messages::FORWARD_ON, &[&[watch as u8]])),
        weight: 2,
        watch_kind: Some(p4::action_profile_action::WatchKind::WatchPort(vec![
            watch as u8,
        ])),
    };
    let one_shot = p4::TableAction {
        r#type: Some(p4::table_action::Type::ActionProfileActionSet(
            p4::ActionProfileActionSet {
                action_profile_actions: vec![choice(1), choice(2)],
                ..p4::ActionProfileActionSet::default()
            },
        )),
    };
    let spread = p4::TableEntry {
        table_id: messages::SPREAD,
        r#match: vec![messages::exact(1, &[9])],
        action: Some(one_shot),
        ..p4::TableEntry::default()
    };
    let counted = p4::TableEntry {
        counter_data: Some(p4::CounterData {
            byte_count: 7,
            packet_count: 1,
        }),
        metadata: vec![5; 9],
        ..messages::address(
            &[2, 0, 0, 0, 0, 1],
            messages::action(messages::FORWARD, &[&[1]]),
        )
    };
    let backed = p4::MulticastGroupEntry {
        multicast_group_id: 3,
        replicas: vec![p4::Replica {
            port_kind: Some(p4::replica::PortKind::Port(vec![1])),
            instance: 4,
            backup_replicas: vec![p4::BackupReplica {
                port: vec![2],
                instance: 4,
            }],
        }],
        metadata: vec![1, 2],
    };
    let rates = p4::MeterConfig {
        cir: 10,
        cburst: 20,
        pir: 30,
        pburst: 40,
        eburst: 0,
    };
    vec![
        of(entity::Entity::TableEntry(spread)),
        of(entity::Entity::TableEntry(counted)),
        messages::replication(
            p4::packet_replication_engine_entry::Type::MulticastGroupEntry(backed),
        ),
        messages::meter(Some(1), Some(rates)),
        messages::counter(Some(1), Some(5)),
        messages::register(Some(1), Some(&[7])),
    ]
}

/// Another controller, with a role that may do a part.
fn role() -> p4::Role {
    let config = P4RoleConfig {
        exclusive_p4_ids: vec![messages::ADDRESSES],
        shared_p4_ids: vec![messages::TYPES],
        packet_in_filter: None,
        receives_packet_ins: true,
        can_push_pipeline: false,
    };
    p4::Role {
        name: "part".to_owned(),
        config: Some(Any {
            type_url: format!("type.googleapis.com/{ROLE_CONFIG_TYPE}"),
            value: config.encode_to_vec(),
        }),
        ..p4::Role::default()
    }
}

pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    let mut keep = |program: u32, steps: Vec<Step>| {
        seeds.push(Session { program, steps }.encode_to_vec());
    };
    for (program, config) in (0..).zip(configs()) {
        let entities = building::entities(config.p4info.as_ref().expect("a P4Info"));
        let inserted = || entities.iter().cloned().map(written);
        keep(
            program,
            vec![write(inserted().collect(), 0), read(entities.clone())],
        );
        keep(program, vec![write(inserted().collect(), 1)]);
        keep(
            program,
            inserted()
                .map(|update| write(vec![update], 2))
                .take(STEPS_MAX)
                .collect(),
        );
        let deleted = entities.iter().rev().cloned().map(messages::delete);
        keep(
            program,
            vec![write(inserted().collect(), 0), write(deleted.collect(), 0)],
        );
        let config_of = |action: Action, config: Option<ForwardingPipelineConfig>| {
            let request = SetForwardingPipelineConfigRequest {
                action: action as i32,
                config,
                ..SetForwardingPipelineConfigRequest::default()
            };
            step(SET_CONFIG, &request)
        };
        let same = || Some(ForwardingPipelineConfig::default());
        keep(
            program,
            vec![
                write(inserted().collect(), 0),
                config_of(Action::ReconcileAndCommit, same()),
                config_of(Action::VerifyAndSave, same()),
                write(inserted().collect(), 0),
                config_of(Action::Commit, None),
                config_of(Action::Verify, same()),
                step(GET_CONFIG, &GetForwardingPipelineConfigRequest::default()),
            ],
        );
    }
    let rich = rich().into_iter().map(written);
    keep(0, vec![write(rich.clone().collect(), 1), read(Vec::new())]);
    keep(0, rich.map(|update| write(vec![update], 0)).collect());
    let replication = [
        messages::group(1, &[(1, 1), (2, 1), (2, 2)]),
        messages::session(7, &[(1, 1), (510, 0)], 64),
        messages::counter(Some(1), Some(5)),
        messages::register(Some(1), Some(&[7])),
        messages::member(1, Some(messages::call(messages::FORWARD_ON, &[&[1]]))),
        messages::profile_group(1, &[(1, 2)]),
    ];
    let kinds = replication.iter().cloned().map(written);
    keep(
        0,
        vec![
            write(kinds.clone().collect(), 1),
            read(replication.to_vec()),
        ],
    );
    keep(
        0,
        vec![
            write(kinds.collect(), 0),
            read(vec![messages::group(0, &[])]),
        ],
    );
    let say = |kind: u32, update: stream_message_request::Update| {
        step(
            kind,
            &StreamMessageRequest {
                update: Some(update),
            },
        )
    };
    let arbitration = p4::MasterArbitrationUpdate {
        device_id: DEVICE_ID,
        election_id: Some(p4::Uint128 { high: 0, low: 9 }),
        ..p4::MasterArbitrationUpdate::default()
    };
    let with_role = p4::MasterArbitrationUpdate {
        role: Some(role()),
        ..arbitration.clone()
    };
    let packet = p4::PacketOut {
        payload: vec![2; 64],
        metadata: vec![p4::PacketMetadata {
            metadata_id: 1,
            value: vec![1],
        }],
    };
    keep(
        0,
        vec![
            say(
                PRIMARY_STREAM,
                stream_message_request::Update::Packet(packet.clone()),
            ),
            say(
                OTHER_STREAM,
                stream_message_request::Update::Arbitration(arbitration),
            ),
            say(
                OTHER_STREAM,
                stream_message_request::Update::Arbitration(with_role),
            ),
            say(OTHER_STREAM, stream_message_request::Update::Packet(packet)),
            say(
                PRIMARY_STREAM,
                stream_message_request::Update::DigestAck(p4::DigestListAck {
                    digest_id: 1,
                    list_id: 1,
                }),
            ),
            Step {
                kind: PACKET,
                payload: vec![2; 80],
                as_it_is: false,
            },
        ],
    );
    seeds
}
