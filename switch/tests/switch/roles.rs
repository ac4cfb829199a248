//! Named roles: what each may write, read, hear and set.

use prost::Message;
use tonic::Code;

use super::messages::{
    ADDRESSES, FORWARD, MARKS, TO_CPU, action, address, group, insert, modify, register, table,
};
use super::rig::{CPU_PORT, Controller, Rig, objects};
use wormcast_switch_p4runtime::proto::google::protobuf::Any;
use wormcast_switch_p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use wormcast_switch_p4runtime::proto::p4::v1::{
    PacketMetadata, PacketOut, Role, TableEntry, stream_message_request, stream_message_response,
};
use wormcast_switch_p4runtime::{P4RoleConfig, PacketFilter, ROLE_CONFIG_TYPE};

fn role(name: &str, config: Option<&P4RoleConfig>) -> Option<Role> {
    let any = |config: &P4RoleConfig| Any {
        type_url: format!("type.googleapis.com/{ROLE_CONFIG_TYPE}"),
        value: config.encode_to_vec(),
    };
    Some(Role {
        name: name.to_owned(),
        config: config.map(any),
        ..Role::default()
    })
}

async fn controller(rig: &Rig, name: &str, config: Option<&P4RoleConfig>) -> Controller {
    let mut controller = Controller::open(rig, 0).await;
    controller.role = role(name, config);
    let told = controller.arbitrate(1).await;
    assert_eq!(told.status.unwrap().code, Code::Ok as i32);
    assert_eq!(told.role, controller.role);
    controller
}

fn entry(last: u8) -> TableEntry {
    address(&[2, 0, 0, 0, 0, last], action(FORWARD, &[&[3]]))
}

/// The code of the first update that failed.
fn first(status: tonic::Status) -> String {
    status.message().to_owned()
}

#[tokio::test]
async fn a_role_writes_and_reads_what_its_config_lists() {
    let rig = Rig::start().await;
    let mut full = rig.controller().await;
    full.write(vec![modify(register(Some(1), Some(&[5])))])
        .await
        .unwrap();
    let config = P4RoleConfig {
        exclusive_p4_ids: vec![ADDRESSES],
        ..P4RoleConfig::default()
    };
    let mut part = controller(&rig, "part", Some(&config)).await;
    part.write(vec![insert(table(entry(1)))]).await.unwrap();
    let status = part
        .write(vec![
            insert(table(entry(2))),
            modify(register(Some(1), Some(&[6]))),
            insert(group(1, &[])),
        ])
        .await
        .unwrap_err();
    assert_eq!(
        first(status),
        format!(
            "2 of 3 updates failed, first updates[1] of the request: PERMISSION_DENIED: role `part` may not \
             write register {MARKS}: it is not among its exclusive or shared ids"
        )
    );
    // The update that it may make was made; a read under the role shows no registers.
    let filters = vec![table(TableEntry::default()), register(Some(1), None)];
    let seen = part.read(filters.clone()).await.unwrap();
    assert_eq!(seen, [table(entry(1)), table(entry(2))]);
    let seen = full.read(filters).await.unwrap();
    assert_eq!(seen.len(), 3);
    assert_eq!(seen[2], register(Some(1), Some(&[5])));
    let status = part.set_config(Action::VerifyAndCommit, objects()).await;
    let status = status.unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied);
    assert_eq!(
        status.message(),
        "role `part` may not set the forwarding pipeline config: can_push_pipeline is false"
    );
    // Without a config a role has full access.
    let mut other = controller(&rig, "other", None).await;
    other.write(vec![insert(group(1, &[]))]).await.unwrap();
}

#[tokio::test]
async fn roles_that_nobody_arbitrated_for_are_not_found() {
    let rig = Rig::start().await;
    let mut controller = rig.controller().await;
    controller.role = role("nobody", None);
    let status = controller.write(Vec::new()).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert_eq!(
        status.message(),
        "there is no role `nobody` here: no controller has arbitrated for it"
    );
    let status = controller.read(Vec::new()).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
}

#[tokio::test]
async fn packet_ins_go_to_the_roles_that_take_them() {
    let rig = Rig::start().await;
    let mut full = rig.controller().await;
    full.write(vec![insert(table(address(
        &[2, 0, 0, 0, 0, 1],
        action(TO_CPU, &[]),
    )))])
    .await
    .unwrap();
    let taking = |value: u16| P4RoleConfig {
        receives_packet_ins: true,
        packet_in_filter: Some(PacketFilter {
            metadata_id: 1,
            value: value.to_be_bytes().to_vec(),
        }),
        ..P4RoleConfig::default()
    };
    let mut taker = controller(&rig, "taker", Some(&taking(CPU_PORT))).await;
    let mut picky = controller(&rig, "picky", Some(&taking(7))).await;
    let mut deaf = controller(&rig, "deaf", Some(&P4RoleConfig::default())).await;
    // Each primary may send packets; this one comes back.
    let frame = b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x88\xb6";
    deaf.say(stream_message_request::Update::Packet(PacketOut {
        payload: frame.to_vec(),
        metadata: vec![PacketMetadata {
            metadata_id: 1,
            value: CPU_PORT.to_be_bytes().to_vec(),
        }],
    }))
    .await;
    for controller in [&mut full, &mut taker] {
        let heard = controller.hear().await.unwrap();
        assert!(matches!(heard, stream_message_response::Update::Packet(_)));
    }
    // The next that the others hear is what they ask for.
    for controller in [&mut picky, &mut deaf] {
        controller.arbitrate(2).await;
    }
}
