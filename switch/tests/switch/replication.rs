//! Multicast groups and clone sessions: §"PacketReplicationEngineEntry".

use tonic::Code;

use super::entities_program::{INSTANCE, action, add, by_kind, probe, send, set_port_up, start};
use super::errors::refusal;
use super::messages::{delete, group, insert, modify, replication, session};
use wormcast_switch_p4runtime::proto::p4::v1::{
    BackupReplica, CloneSessionEntry, Entity, MulticastGroupEntry, Replica,
    packet_replication_engine_entry as pre, replica,
};

fn copy(port: u16, instance: u32, backups: &[(u8, u32)]) -> Replica {
    let bytes = port.to_be_bytes();
    let port = if bytes[0] == 0 { &bytes[1..] } else { &bytes };
    Replica {
        port_kind: Some(replica::PortKind::Port(port.to_vec())),
        instance,
        backup_replicas: backups
            .iter()
            .map(|(port, instance)| BackupReplica {
                port: vec![*port],
                instance: *instance,
            })
            .collect(),
    }
}

fn copies(multicast_group_id: u32, replicas: Vec<Replica>, metadata: &[u8]) -> Entity {
    replication(pre::Type::MulticastGroupEntry(MulticastGroupEntry {
        multicast_group_id,
        replicas,
        metadata: metadata.to_vec(),
    }))
}

fn mirror(session_id: u32, replicas: Vec<Replica>, class_of_service: u32) -> Entity {
    replication(pre::Type::CloneSessionEntry(CloneSessionEntry {
        session_id,
        replicas,
        class_of_service,
        packet_length_bytes: 20,
    }))
}

/// Ports and instances of the copies of a probe.
async fn reached(rig: &super::rig::Rig) -> Vec<(u16, u8)> {
    let mut sent: Vec<_> = send(rig, &probe(1, 0, 0))
        .await
        .into_iter()
        .map(|(port, frame)| (port, frame[INSTANCE]))
        .collect();
    sent.sort_unstable();
    sent
}

#[tokio::test]
async fn the_first_backup_whose_port_is_up_stands_in() {
    let (rig, mut controller) = start().await;
    let replicas = vec![copy(5, 1, &[]), copy(12, 2, &[(13, 3), (14, 4)])];
    let updates = vec![insert(copies(40_000, replicas, b""))];
    controller.write(updates).await.unwrap();
    let group = 40_000u16.to_be_bytes();
    let replicate = action("ingress.replicate", &[&group]);
    add(&mut controller, by_kind("ingress.directed", 1, replicate)).await;
    assert_eq!(reached(&rig).await, [(5, 1), (12, 2)]);
    set_port_up(&rig, 12, false).await;
    assert_eq!(reached(&rig).await, [(5, 1), (13, 3)]);
    set_port_up(&rig, 13, false).await;
    assert_eq!(reached(&rig).await, [(5, 1), (14, 4)]);
    set_port_up(&rig, 14, false).await;
    assert_eq!(reached(&rig).await, [(5, 1), (12, 2)]);
    set_port_up(&rig, 13, true).await;
    assert_eq!(reached(&rig).await, [(5, 1), (13, 3)]);
    set_port_up(&rig, 12, true).await;
    assert_eq!(reached(&rig).await, [(5, 1), (12, 2)]);
}

#[tokio::test]
async fn clones_of_any_session_are_made_and_cut() {
    let (rig, mut controller) = start().await;
    let high = 0xffff_fffe;
    let updates = vec![insert(mirror(high, vec![copy(8, 6, &[(9, 7)])], 7))];
    controller.write(updates).await.unwrap();
    let to_session = action("ingress.mirror", &[&high.to_be_bytes()]);
    add(&mut controller, by_kind("ingress.directed", 1, to_session)).await;
    for (port, up) in [(8, true), (9, false)] {
        set_port_up(&rig, 8, up).await;
        let mut sent = send(&rig, &probe(1, 0, 0)).await;
        sent.sort();
        assert_eq!(sent[0].0, 1);
        assert_eq!((sent[1].0, sent[1].1.len()), (port, 20));
        assert_eq!(sent.len(), 2);
    }
    // A priority without a queue would have dropped the clone.
    let (code, message) = refusal(&mut controller, modify(mirror(high, vec![], 8))).await;
    assert_eq!(code, Code::InvalidArgument);
    assert_eq!(
        message,
        "clone session 4294967294: class of service 8 is not valid: 0 to 7"
    );
}

#[tokio::test]
async fn groups_and_sessions_come_back_in_the_form_they_had() {
    let (_rig, mut controller) = start().await;
    let state = vec![
        copies(1, vec![copy(0, 0, &[]), copy(511, 65_535, &[])], b"cookie"),
        copies(2, vec![copy(3, 0, &[(9, 0), (8, 1), (10, 2)])], b""),
        group(0xffff, &[(0, 0), (4, 4)]),
        mirror(1, vec![copy(3, 3, &[(4, 4)])], 3),
        session(u32::MAX, &[(510, 1)], 0),
    ];
    let updates = state.iter().cloned().map(insert).collect();
    controller.write(updates).await.unwrap();
    let all = vec![group(0, &[]), session(0, &[], 0)];
    assert_eq!(controller.read(all.clone()).await.unwrap(), state);
    let one = controller.read(vec![group(2, &[])]).await.unwrap();
    assert_eq!(one, state[1..2]);
    // Modified, metadata goes too.
    let changed = copies(1, vec![copy(7, 0, &[])], b"");
    let updates = vec![modify(changed.clone()), delete(state[3].clone())];
    controller.write(updates).await.unwrap();
    let found = controller.read(all).await.unwrap();
    let expected = [&changed, &state[1], &state[2], &state[4]];
    assert_eq!(found.iter().collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn groups_and_sessions_that_cannot_be() {
    let (_rig, mut controller) = start().await;
    let cases = [
        (
            insert(copies(65_536, vec![], b"")),
            "multicast group 65536 is not valid: 1 to 65535",
        ),
        (
            modify(copies(0, vec![], b"")),
            "multicast group 0 is not valid: 0 stands for all of them in a read",
        ),
        (
            insert(mirror(0, vec![], 0)),
            "clone session 0 is not valid: 0 stands for all of them in a read",
        ),
        (
            insert(copies(1, vec![Replica::default()], b"")),
            "multicast group 1: a replica has no port",
        ),
        (
            insert(copies(1, vec![copy(5, 1, &[(5, 2)])], b"")),
            "multicast group 1: the backup replica with instance 2 has port 5, that of the \
             replica it stands in for",
        ),
        (
            insert(copies(1, vec![copy(5, 1, &[(6, 2)]), copy(6, 2, &[])], b"")),
            "multicast group 1: port 6 with instance 2 is there twice",
        ),
        (
            insert(copies(1, vec![copy(512, 1, &[])], b"")),
            "multicast group 1: type `port_id_t`: value 0x200 stands for itself, which has at \
             most 9 bits in the data plane (at most 0x1ff)",
        ),
        (
            insert(copies(1, vec![copy(5, 70_000, &[])], b"")),
            "multicast group 1: instance 70000 is not valid: 0 to 65535",
        ),
    ];
    for (update, message) in cases {
        let (_, told) = refusal(&mut controller, update).await;
        assert_eq!(told, message);
    }
}
