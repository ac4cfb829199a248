//! Stream channels: arbitration between controllers, packet-in and packet-out.

use tonic::Code;

use super::messages::{TO_CPU, action, address, insert, table};
use super::rig::{CPU_PORT, Controller, DEVICE_ID, Rig};
use wormcast_switch_p4runtime::proto::google::protobuf::Any;
use wormcast_switch_p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use wormcast_switch_p4runtime::proto::p4::v1::{
    MasterArbitrationUpdate, PacketMetadata, PacketOut, Role, stream_error, stream_message_request,
    stream_message_response,
};

fn code(update: &MasterArbitrationUpdate) -> Code {
    Code::from_i32(update.status.as_ref().unwrap().code)
}

#[tokio::test]
async fn the_highest_election_id_is_primary_until_it_leaves() {
    let rig = Rig::start().await;
    let mut first = Controller::open(&rig, 0).await;
    assert_eq!(code(&first.arbitrate(5).await), Code::Ok);
    let mut second = Controller::open(&rig, 0).await;
    assert_eq!(code(&second.arbitrate(3).await), Code::AlreadyExists);
    assert_eq!(code(&second.arbitrate(9).await), Code::Ok);
    let told = first.hear_arbitration().await;
    assert_eq!(
        (code(&told), told.election_id.unwrap().low),
        (Code::AlreadyExists, 9)
    );
    let status = first
        .set_config(Action::VerifyAndCommit, super::rig::objects())
        .await;
    assert_eq!(status.unwrap_err().code(), Code::PermissionDenied);
    drop(second);
    assert_eq!(code(&first.hear_arbitration().await), Code::NotFound);
    assert_eq!(code(&first.arbitrate(9).await), Code::Ok);
}

#[tokio::test]
async fn a_stream_that_breaks_the_rules_is_ended() {
    let rig = Rig::start().await;
    let mut first = Controller::open(&rig, 0).await;
    first.arbitrate(5).await;
    let say = async |update: MasterArbitrationUpdate| {
        let mut controller = Controller::open(&rig, 0).await;
        controller
            .say(stream_message_request::Update::Arbitration(update))
            .await;
        controller.hear().await.unwrap_err()
    };
    let update = MasterArbitrationUpdate {
        device_id: DEVICE_ID,
        ..Default::default()
    };
    let same = MasterArbitrationUpdate {
        election_id: Some(first.election_id),
        ..update.clone()
    };
    assert_eq!(say(same).await.code(), Code::InvalidArgument);
    let elsewhere = MasterArbitrationUpdate {
        device_id: 8,
        ..update.clone()
    };
    assert_eq!(say(elsewhere).await.code(), Code::NotFound);
    let role = Role {
        config: Some(Any::default()),
        ..Role::default()
    };
    let status = say(MasterArbitrationUpdate {
        role: Some(role),
        ..update
    })
    .await;
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(
        status.message(),
        "role.config must be unset: the default role, which has no name, has full access"
    );
}

fn packet_out(port: &[u8], payload: &[u8]) -> stream_message_request::Update {
    stream_message_request::Update::Packet(PacketOut {
        payload: payload.to_vec(),
        metadata: vec![PacketMetadata {
            metadata_id: 1,
            value: port.to_vec(),
        }],
    })
}

/// A packet-out to the CPU port comes back as packet-in.
#[tokio::test]
async fn packets_go_out_and_come_in() {
    let rig = Rig::start().await;
    let mut controller = rig.controller().await;
    let frame = b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x88\xb6 and the rest";
    controller
        .say(packet_out(&CPU_PORT.to_be_bytes(), frame))
        .await;
    let stream_message_response::Update::Packet(packet) = controller.hear().await.unwrap() else {
        panic!("no packet-in")
    };
    assert_eq!(packet.payload, frame);
    assert_eq!(packet.metadata[0].value, CPU_PORT.to_be_bytes());
    assert_eq!(packet.metadata[1].value, [0]);
}

/// Only the primary gets packet-ins.
#[tokio::test]
async fn a_backup_gets_and_sends_no_packets() {
    let rig = Rig::start().await;
    let mut primary = rig.controller().await;
    primary.arbitrate(5).await;
    let mut backup = Controller::open(&rig, 0).await;
    backup.arbitrate(2).await;
    backup
        .say(packet_out(&CPU_PORT.to_be_bytes(), &[0; 60]))
        .await;
    let stream_message_response::Update::Error(error) = backup.hear().await.unwrap() else {
        panic!("no error")
    };
    assert_eq!(Code::from_i32(error.canonical_code), Code::PermissionDenied);
    assert_eq!(
        error.message,
        "only the primary controller may send packets"
    );
    assert!(matches!(
        error.details,
        Some(stream_error::Details::PacketOut(_))
    ));
    primary
        .say(packet_out(&CPU_PORT.to_be_bytes(), &[0; 60]))
        .await;
    assert!(matches!(
        primary.hear().await.unwrap(),
        stream_message_response::Update::Packet(_)
    ));
    // The next thing the backup hears is not that packet.
    assert_eq!(code(&backup.arbitrate(3).await), Code::AlreadyExists);
}

#[tokio::test]
async fn a_packet_out_with_bad_metadata_is_reported() {
    let rig = Rig::start().await;
    let mut controller = rig.controller().await;
    controller.say(packet_out(&[2, 0], &[0; 60])).await;
    let stream_message_response::Update::Error(error) = controller.hear().await.unwrap() else {
        panic!("no error")
    };
    assert_eq!(Code::from_i32(error.canonical_code), Code::OutOfRange);
    assert_eq!(
        error.message,
        "packet-out metadata `egress_port`: value 0x200 does not fit into 9 bits (at most 0x1ff)"
    );
}

/// A controller that reads nothing loses packet-ins, and nothing else happens.
#[tokio::test]
async fn packet_ins_that_nobody_reads_are_dropped_and_counted() {
    let rig = Rig::start().await;
    let mut controller = rig.controller().await;
    let entry = insert(table(address(&[2, 0, 0, 0, 0, 1], action(TO_CPU, &[]))));
    controller.write(vec![entry]).await.unwrap();
    let mut frame = vec![0xff, 0x00]; // packet_out header: port 510, padding
    frame.extend([0; 60]);
    let mut lost = 0;
    for _ in 0..100 {
        let frame = frame.clone();
        let burst = rig.dataplane.run(move |switch| {
            (0..1_000).for_each(|_| switch.inject(&frame));
        });
        burst.await.unwrap();
        let mut snapshot = rig.dataplane.run(|switch| switch.snapshot()).await.unwrap();
        rig.server.complete(&mut snapshot);
        lost = snapshot.to_controller_full
            + snapshot.packet_ins_stream_full
            + snapshot
                .ports
                .iter()
                .map(|port| port.queue_tail_drops)
                .sum::<u64>();
        if lost > 0 {
            break;
        }
    }
    assert!(lost > 0);
    assert!(
        controller
            .read(vec![super::messages::group(0, &[])])
            .await
            .is_ok()
    );
}
