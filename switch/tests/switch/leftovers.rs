//! Programs that do not have all that their P4Info has, and whose headers of the controller are not
//! whole bytes: what can be used can be used, and what cannot is refused with the reason.

use prost::Message;
use tonic::Code;

use super::errors::refusal;
use super::messages::{action, delete, exact, insert, modify, of, ternary};
use super::rig::{CPU_PORT, Controller, Rig, settings};
use wormcast_switch_dataplane::log::{Level, Log, LogFiles};
use wormcast_switch_dataplane::{DataplaneSettings, Snapshot};
use wormcast_switch_p4runtime::proto::p4::config::v1::P4Info;
use wormcast_switch_p4runtime::proto::p4::config::v1::action::Param;
use wormcast_switch_p4runtime::proto::p4::v1 as p4;
use wormcast_switch_p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use wormcast_switch_p4runtime::proto::p4::v1::{
    DigestEntry, DirectCounterEntry, DirectMeterEntry, Entity, ForwardingPipelineConfig, PacketIn,
    PacketMetadata, PacketOut, TableEntry, entity, stream_message_request, stream_message_response,
};

const FRAME: &[u8] = b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x88\xb6 and the rest";

/// Why none of it can be used.
const REASON: &str = "is in the P4Info, but not in the program: the compiler has left it out, as it \
                      does with what no packet can reach";

fn config(p4info: &[u8], json: &[u8]) -> ForwardingPipelineConfig {
    ForwardingPipelineConfig {
        p4info: Some(P4Info::decode(p4info).unwrap()),
        p4_device_config: json.to_vec(),
        cookie: None,
    }
}

fn leftovers() -> ForwardingPipelineConfig {
    config(
        include_bytes!("../programs/leftovers.p4info.bin"),
        include_bytes!("../programs/leftovers.json"),
    )
}

/// The id of anything in a P4Info that has a name.
fn id(config: &ForwardingPipelineConfig, name: &str) -> u32 {
    let info = config.p4info.as_ref().unwrap();
    let tables = info.tables.iter().map(|one| &one.preamble);
    let actions = info.actions.iter().map(|one| &one.preamble);
    let digests = info.digests.iter().map(|one| &one.preamble);
    let mut all = tables.chain(actions).chain(digests);
    let found = all.find(|one| one.as_ref().is_some_and(|one| one.name == name));
    found
        .unwrap_or_else(|| panic!("{name}"))
        .as_ref()
        .unwrap()
        .id
}

fn entry(table_id: u32, r#match: Vec<p4::FieldMatch>, call: (u32, &[&[u8]])) -> TableEntry {
    TableEntry {
        table_id,
        r#match,
        action: action(call.0, call.1),
        ..TableEntry::default()
    }
}

/// Metadata of a packet-out by id.
fn packet_out(metadata: &[(u32, &[u8])]) -> stream_message_request::Update {
    let metadata = metadata.iter().map(|(metadata_id, value)| PacketMetadata {
        metadata_id: *metadata_id,
        value: value.to_vec(),
    });
    stream_message_request::Update::Packet(PacketOut {
        payload: FRAME.to_vec(),
        metadata: metadata.collect(),
    })
}

async fn hear_packet(controller: &mut Controller) -> PacketIn {
    match controller.hear().await.unwrap() {
        stream_message_response::Update::Packet(packet) => packet,
        other => panic!("{other:?}"),
    }
}

async fn snapshot(rig: &Rig) -> Snapshot {
    let mut snapshot = rig.dataplane.run(|switch| switch.snapshot()).await.unwrap();
    rig.server.complete(&mut snapshot);
    snapshot
}

/// One entity of each kind that the program does not have, and what the message calls it.
fn unreached(config: &ForwardingPipelineConfig) -> Vec<(Entity, String)> {
    let named =
        |kind: &str, name: &str| format!("{kind} `{name}` (id {}) {REASON}", id(config, name));
    let table = "ingress.unreached";
    let of_table = || {
        let note = (id(config, "ingress.note"), &[&[1][..]][..]);
        TableEntry {
            priority: 1,
            ..entry(id(config, table), vec![ternary(1, &[1], &[1])], note)
        }
    };
    vec![
        (
            of(entity::Entity::TableEntry(of_table())),
            named("table", table),
        ),
        (
            of(entity::Entity::DirectCounterEntry(DirectCounterEntry {
                table_entry: Some(of_table()),
                data: None,
            })),
            named("table", table),
        ),
        (
            of(entity::Entity::DirectMeterEntry(DirectMeterEntry {
                table_entry: Some(of_table()),
                ..DirectMeterEntry::default()
            })),
            named("table", table),
        ),
        (
            of(entity::Entity::DigestEntry(DigestEntry {
                digest_id: id(config, "note_t"),
                config: None,
            })),
            named("digest", "note_t"),
        ),
    ]
}

#[tokio::test]
async fn what_the_program_has_not_is_refused_when_it_is_written_and_empty_when_it_is_read() {
    let rig = Rig::start().await;
    let config = leftovers();
    let mut controller = rig.controller_of(config.clone()).await;
    for (entity, message) in unreached(&config) {
        assert_eq!(
            controller.read(vec![entity.clone()]).await.unwrap(),
            [],
            "{entity:?}"
        );
        let is_inserted = matches!(
            entity.entity,
            Some(entity::Entity::TableEntry(_) | entity::Entity::DigestEntry(_))
        );
        let update = if is_inserted {
            insert(entity)
        } else {
            modify(entity)
        };
        let refused = refusal(&mut controller, update).await;
        assert_eq!(refused, (Code::NotFound, message));
    }
    let choice = TableEntry {
        table_id: id(&config, "ingress.unreached_choice"),
        ..TableEntry::default()
    };
    let deleted = delete(of(entity::Entity::TableEntry(choice)));
    let (code, message) = refusal(&mut controller, deleted).await;
    assert_eq!(code, Code::NotFound);
    assert!(message.ends_with(REASON), "{message}");
}

/// The other table works, with a key field that has no bits (one value, or nothing at all), and one
/// of type `error`, of which the P4Info does not say how many bits it has.
#[tokio::test]
async fn the_rest_works_with_a_key_of_no_bits() {
    let rig = Rig::start().await;
    let config = leftovers();
    let mut controller = rig.controller_of(config.clone()).await;
    let addresses = id(&config, "ingress.addresses");
    let forward = id(&config, "ingress.forward");
    let keyed = |nothing: &[u8]| {
        let dst = exact(1, &[2, 0, 0, 0, 0, 1]);
        let key = vec![dst, exact(2, nothing), exact(3, &[0])];
        of(entity::Entity::TableEntry(entry(
            addresses,
            key,
            (forward, &[b"510"]),
        )))
    };
    let (code, message) = refusal(&mut controller, insert(keyed(&[1]))).await;
    assert_eq!(code, Code::OutOfRange);
    assert!(
        message.ends_with("value 0x1 does not fit into 0 bits (at most 0x0)"),
        "{message}"
    );
    controller.write(vec![insert(keyed(&[0]))]).await.unwrap();
    let (code, _) = refusal(&mut controller, insert(keyed(&[]))).await;
    assert_eq!(code, Code::AlreadyExists);
    let all = of(entity::Entity::TableEntry(TableEntry {
        table_id: addresses,
        ..TableEntry::default()
    }));
    assert_eq!(controller.read(vec![all]).await.unwrap(), [keyed(&[0])]);
    // `do_forwarding` alone: the table says where the packet goes.
    controller.say(packet_out(&[(2, &[1])])).await;
    let packet = hear_packet(&mut controller).await;
    assert_eq!(packet.payload, FRAME);
    let values = packet.metadata.iter().map(|metadata| &metadata.value[..]);
    assert_eq!(values.collect::<Vec<_>>(), [&b"510"[..], b"0", &[0]]);
}

/// As ONOS sends them; PI fills with zeros.
#[tokio::test]
async fn packet_outs_may_leave_metadata_out_which_is_said_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let log = Log::to_file(Level::Info, LogFiles::new(&path)).unwrap();
    let rig = Rig::start_logged(&DataplaneSettings::single(settings(), 1), log).await;
    let mut controller = rig.controller_of(leftovers()).await;
    for _ in 0..3 {
        controller
            .say(packet_out(&[(1, &CPU_PORT.to_be_bytes())]))
            .await;
        assert_eq!(hear_packet(&mut controller).await.payload, FRAME);
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let of_packets = "a packet-out leaves out the metadata `do_forwarding`, which are 0";
    assert_eq!(text.matches(of_packets).count(), 1, "{text}");
    let of_config = "what cannot be used therefore: table `ingress.unreached`, table \
                     `ingress.unreached_choice`";
    assert_eq!(text.matches(of_config).count(), 1, "{text}");
}

#[tokio::test]
async fn packet_outs_to_ports_without_interfaces_are_counted() {
    let rig = Rig::start().await;
    let mut controller = rig.controller_of(leftovers()).await;
    for _ in 0..3 {
        controller.say(packet_out(&[(1, &[77])])).await;
    }
    // It comes back after those.
    controller
        .say(packet_out(&[(1, &CPU_PORT.to_be_bytes())]))
        .await;
    hear_packet(&mut controller).await;
    let counts = snapshot(&rig).await;
    let others = counts.ports.iter().find(|port| port.port.is_none());
    assert_eq!(others.unwrap().no_link, 3);
    assert_eq!(counts.packet_outs, 4);
}

#[tokio::test]
async fn refused_stream_messages_are_logged_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let log = Log::to_file(Level::Info, LogFiles::new(&path)).unwrap();
    let rig = Rig::start_logged(&DataplaneSettings::single(settings(), 1), log).await;
    let mut controller = rig.controller_of(leftovers()).await;
    for _ in 0..30 {
        controller.say(packet_out(&[(9, &[1])])).await;
        let stream_message_response::Update::Error(error) = controller.hear().await.unwrap() else {
            panic!("no error")
        };
        assert_eq!(Code::from_i32(error.canonical_code), Code::InvalidArgument);
    }
    assert_eq!(snapshot(&rig).await.stream_messages_refused, 30);
    let text = std::fs::read_to_string(&path).unwrap();
    let line = "a packet-out is refused: INVALID_ARGUMENT: packet-out has no metadata with the id 9; \
                it has 1 (egress_port), 2 (do_forwarding), 3 (unused)";
    // Ten, and ten more for each interval that a slow machine needs.
    let lines = text.matches(line).count();
    assert!((10..30).contains(&lines), "{lines}: {text}");
}

/// Headers that no packet has: of 18 bits, of which one field has none, and of 3 bits.
#[tokio::test]
async fn a_program_that_uses_nothing_is_taken() {
    let rig = Rig::start().await;
    let config = config(
        include_bytes!("../programs/unread.p4info.bin"),
        include_bytes!("../programs/unread.json"),
    );
    let mut controller = rig.controller_of(config.clone()).await;
    // All state of it can be kept.
    controller
        .set_config(Action::ReconcileAndCommit, config)
        .await
        .unwrap();
}

/// p4c leaves parameters out that nothing reads, of P4-14 programs at least.
#[tokio::test]
async fn an_action_whose_parameters_the_program_lacks_cannot_be_used() {
    let rig = Rig::start().await;
    let mut config = leftovers();
    let forward = id(&config, "ingress.forward");
    let mut actions = config.p4info.as_mut().unwrap().actions.iter_mut();
    let action = actions.find(|one| one.preamble.as_ref().unwrap().id == forward);
    action.unwrap().params.push(Param {
        id: 2,
        name: "unread".to_owned(),
        bitwidth: 8,
        ..Param::default()
    });
    let mut controller = rig.controller_of(config.clone()).await;
    let key = vec![exact(1, &[2]), exact(2, &[0]), exact(3, &[0])];
    let calls = (forward, &[&b"7"[..], &[1]][..]);
    let written = entry(id(&config, "ingress.addresses"), key, calls);
    let written = insert(of(entity::Entity::TableEntry(written)));
    let message = format!(
        "table `ingress.addresses`: parameter `unread` of action `ingress.forward` (id {forward}) \
         {REASON}"
    );
    let refused = refusal(&mut controller, written).await;
    assert_eq!(refused, (Code::NotFound, message));
}
