//! Types that controllers see as other ones: §"User-defined types", §"PSA Metadata
//! Translation".

use tonic::Code;

use super::entities_program::{action, add, find, id, probe, send, start};
use super::errors::refusal;
use super::messages::{exact, insert, optional, table, ternary};
use super::rig::{CPU_PORT, Controller, Rig, entities};
use wormcast_switch_p4runtime::TranslationTables;
use wormcast_switch_p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use wormcast_switch_p4runtime::proto::p4::v1::{
    FieldMatch, PacketMetadata, PacketOut, TableAction, TableEntry, stream_message_request,
    stream_message_response,
};

fn entry(matches: Vec<FieldMatch>, action: Option<TableAction>) -> TableEntry {
    TableEntry {
        table_id: id("ingress.ports"),
        r#match: matches,
        action,
        priority: 1,
        ..TableEntry::default()
    }
}

fn ports() -> TableEntry {
    TableEntry {
        table_id: id("ingress.ports"),
        ..TableEntry::default()
    }
}

#[tokio::test]
async fn numbers_and_names_are_translated_in_keys_and_arguments() {
    let (rig, mut controller) = start().await;
    let all = [0xff, 0xff, 0xff, 0xff];
    // The names get the values 512, 513: the upper half of ten bits.
    let entries = [
        entry(
            vec![
                exact(1, &[1]),
                optional(2, b"hop-a"),
                ternary(3, &[0], &all),
            ],
            action("ingress.to_port", &[&[9]]),
        ),
        entry(
            vec![exact(1, &[1]), optional(2, b"hop-b")],
            action("ingress.set_hop", &[b"hop-a"]),
        ),
    ];
    for entry in &entries {
        add(&mut controller, entry.clone()).await;
    }
    let mut found = find(&mut controller, ports()).await;
    found.sort_by_key(|entry| format!("{:?}", entry.r#match));
    assert_eq!(found.len(), 2);
    assert!(
        entries.iter().all(|entry| found.contains(entry)),
        "{found:?}"
    );
    // `hop-a` is 512: the low ten bits of the source address.
    let mut frame = probe(0, 0, 0);
    frame[6..12].copy_from_slice(&[0, 0, 0, 0, 0x02, 0x00]);
    assert_eq!(send(&rig, &frame).await[0].0, 9);
    frame[11] = 1;
    let sent = send(&rig, &frame).await;
    assert_eq!(sent[0].0, 0);
    assert_eq!(sent[0].1[super::entities_program::CHOSEN], 0); // 512 cut to 8 bits

    let to_port = || action("ingress.to_port", &[&[9]]);
    let what = "table `ingress.ports`: match field";
    let cases = [
        (
            entry(vec![exact(1, &[2, 0])], to_port()),
            Code::OutOfRange,
            format!(
                "{what} `in_port` (id 1): type `port_id_t`: value 0x200 stands for itself, which \
                 has at most 9 bits in the data plane (at most 0x1ff)"
            ),
        ),
        (
            entry(vec![exact(1, &[1]), ternary(3, &[1], &[0xff])], to_port()),
            Code::InvalidArgument,
            format!(
                "{what} `out_port` (id 3): its values are translated, so only one of them can be \
                 matched: mask 0xff is not 0xffffffff"
            ),
        ),
        (
            entry(vec![exact(1, &[1]), optional(2, b"")], to_port()),
            Code::OutOfRange,
            format!(
                "{what} `hop` (id 2): type `NextHop_t`: a name of 0 bytes is not valid: 1 to 1024"
            ),
        ),
    ];
    for (entry, code, message) in cases {
        let refused = refusal(&mut controller, insert(table(entry))).await;
        assert_eq!(refused, (code, message));
    }
    // A type that is not translated has masks as ever.
    let masked = entry(
        vec![exact(1, &[1]), ternary(4, &[0x10], &[0xf0])],
        to_port(),
    );
    add(&mut controller, masked.clone()).await;
    assert!(find(&mut controller, ports()).await.contains(&masked));
}

#[tokio::test]
async fn a_table_of_translations_holds_for_packets_too() {
    let rig = Rig::start().await;
    let json = r#"{"example.org/entities/PortId_t": {"1000": 1, "0xfffffffd": 510}}"#;
    let tables = TranslationTables::from_json(json).unwrap();
    rig.server.translate_with(tables).await;
    let mut controller = Controller::open(&rig, 1).await;
    controller.arbitrate(1).await;
    controller
        .set_config(Action::VerifyAndCommit, entities())
        .await
        .unwrap();
    let cpu = [0xff, 0xff, 0xff, 0xfd];
    let to_cpu = entry(
        vec![exact(1, &[0x03, 0xe8])],
        action("ingress.to_port", &[&cpu]),
    );
    add(&mut controller, to_cpu.clone()).await;
    assert_eq!(find(&mut controller, ports()).await, [to_cpu]);
    let unknown = entry(vec![exact(1, &[7])], action("ingress.to_port", &[&cpu]));
    assert_eq!(
        refusal(&mut controller, insert(table(unknown))).await,
        (
            Code::InvalidArgument,
            "table `ingress.ports`: match field `in_port` (id 1): type `port_id_t`: 0x7 is not in \
             the table of translations; it has 0x3e8, 0xfffffffd"
                .to_owned()
        )
    );
    // A packet-out to port 510 comes back as a packet-in from port 510.
    let packet = PacketOut {
        payload: probe(0, 0, 0),
        metadata: vec![PacketMetadata {
            metadata_id: 1,
            value: cpu.to_vec(),
        }],
    };
    controller
        .say(stream_message_request::Update::Packet(packet))
        .await;
    let stream_message_response::Update::Packet(heard) = controller.hear().await.unwrap() else {
        panic!("no packet-in");
    };
    assert_eq!(heard.metadata[0].value, cpu);
    assert_eq!(CPU_PORT, 510);
    assert_eq!(heard.payload.len(), probe(0, 0, 0).len());
}
