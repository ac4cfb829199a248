//! BMv2's Thrift interface, beside P4Runtime and over the same tables.

use super::messages::{
    ADDRESSES, COPY_TO_CPU, FORWARD, TYPES, action, address, group, insert, modify, register,
    table, ternary as p4_ternary,
};
use super::rig::{Controller, DEVICE_ID, Rig, objects};
use super::thrift_client::{
    Client, Failed, connect, data, exact, int, list, lpm, part, priority, serve, structure,
    ternary, text,
};
use wormcast_switch_bmv2::thrift::{Type, Value};
use wormcast_switch_p4runtime::proto::p4::v1::{
    ActionProfileGroup, ActionProfileMember, Entity, Replica, TableEntry, entity,
    packet_replication_engine_entry, replica,
};

pub const MAC: [u8; 6] = [2, 0, 0, 0, 0, 9];

pub async fn start() -> (Rig, Controller, Client) {
    let rig = Rig::start().await;
    let controller = rig.controller().await;
    let client = connect(serve(&rig.dataplane));
    (rig, controller, client)
}

pub fn add_address(client: &mut Client, mac: [u8; 6], port: u8) -> Result<i32, Failed> {
    let arguments = vec![
        text("ingress.addresses"),
        list(vec![exact(&mac)]),
        text("ingress.forward"),
        data(&[&[0, port]]),
        priority(0),
    ];
    let handle = client.standard("bm_mt_add_entry", arguments)?;
    match handle {
        Some(Value::I32(handle)) => Ok(handle),
        other => panic!("{other:?}"),
    }
}

async fn entries(controller: &mut Controller, table_id: u32) -> Vec<TableEntry> {
    let filter = TableEntry {
        table_id,
        ..TableEntry::default()
    };
    let found = controller.read(vec![table(filter)]).await.unwrap();
    let entry = |entity: Entity| match entity.entity {
        Some(entity::Entity::TableEntry(entry)) => entry,
        other => panic!("{other:?}"),
    };
    found.into_iter().map(entry).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_interfaces_have_one_set_of_tables() {
    let (_rig, mut controller, mut client) = start().await;
    assert_eq!(add_address(&mut client, MAC, 3), Ok(0));
    let found = entries(&mut controller, ADDRESSES).await;
    let expected = address(&MAC, action(FORWARD, &[&[3]]));
    assert_eq!(found, [expected]);

    // The other way round, with a priority, which P4Runtime counts from the other end.
    let entry = TableEntry {
        table_id: TYPES,
        r#match: vec![p4_ternary(1, &[8, 0], &[0xff, 0])],
        action: action(COPY_TO_CPU, &[]),
        priority: 10,
        ..TableEntry::default()
    };
    controller.write(vec![insert(table(entry))]).await.unwrap();
    let read = client.standard("bm_mt_get_entries", vec![text("ingress.types")]);
    let key = vec![
        ternary(&[8, 0], &[0xff, 0]),
        ternary(&[0, 0], &[0, 0]),
        lpm(&[0; 6], 0),
    ];
    let call = vec![
        (1, int(1)),
        (2, text("ingress.copy_to_cpu")),
        (3, data(&[])),
    ];
    let expected = structure(vec![
        (1, list(key)),
        (2, priority(i32::MAX - 10)),
        (3, int(0)),
        (4, structure(call)),
    ]);
    assert_eq!(read, Ok(Some(list(vec![expected]))));

    // An entry that P4Runtime deletes has no handle any more.
    let address = address(&MAC, action(FORWARD, &[&[3]]));
    let gone = super::messages::delete(table(address));
    controller.write(vec![gone]).await.unwrap();
    let read = vec![text("ingress.addresses"), int(0)];
    let expected = Err(Failed::Code(2));
    assert_eq!(client.standard("bm_mt_get_entry", read), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handles_are_those_of_bmv2() {
    let (_rig, _controller, mut client) = start().await;
    for number in 0..3 {
        let mac = [2, 0, 0, 0, 0, number];
        assert_eq!(add_address(&mut client, mac, number), Ok(i32::from(number)));
    }
    let one = |handle| vec![text("ingress.addresses"), int(handle)];
    assert_eq!(client.standard("bm_mt_delete_entry", one(1)), Ok(None));
    let gone = client.standard("bm_mt_delete_entry", one(1));
    assert_eq!(gone, Err(Failed::Code(2)), "INVALID_HANDLE");
    // The number is used again, in its next generation.
    assert_eq!(add_address(&mut client, MAC, 5), Ok(1 << 24 | 1));
    let expired = client.standard("bm_mt_delete_entry", one(1));
    assert_eq!(expired, Err(Failed::Code(3)), "EXPIRED_HANDLE");
    let count = client.standard("bm_mt_get_num_entries", vec![text("ingress.addresses")]);
    assert_eq!(count, Ok(Some(Value::I64(3))));
    let modified = vec![
        text("ingress.addresses"),
        int(1 << 24 | 1),
        text("ingress.flood"),
        data(&[&[0, 7]]),
    ];
    assert_eq!(client.standard("bm_mt_modify_entry", modified), Ok(None));
    let by_key = vec![
        text("ingress.addresses"),
        list(vec![exact(&MAC)]),
        priority(0),
    ];
    let found = client.standard("bm_mt_get_entry_from_key", by_key);
    let found = found.unwrap().unwrap();
    let call = part(&found, 4).unwrap();
    assert_eq!(part(call, 2), Some(&text("ingress.flood")));
    assert_eq!(part(call, 3), Some(&data(&[&[7]])));
    let cleared = vec![text("ingress.addresses"), Value::Bool(false)];
    assert_eq!(client.standard("bm_mt_clear_entries", cleared), Ok(None));
    let count = client.standard("bm_mt_get_num_entries", vec![text("ingress.addresses")]);
    assert_eq!(count, Ok(Some(Value::I64(0))));
    assert_eq!(add_address(&mut client, MAC, 5), Ok(0), "as at first");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_have_the_codes_of_bmv2() {
    let (_rig, _controller, mut client) = start().await;
    let add = |table: &str, key: Value, action: &str, arguments: Value| {
        vec![
            text(table),
            list(vec![key]),
            text(action),
            arguments,
            priority(0),
        ]
    };
    let (table, forward) = ("ingress.addresses", "ingress.forward");
    add_address(&mut client, MAC, 1).unwrap();
    for (arguments, code, why) in [
        (
            add("nothing", exact(&MAC), forward, data(&[&[1]])),
            7,
            "INVALID_TABLE_NAME",
        ),
        (
            add(table, exact(&MAC), "nothing", data(&[])),
            8,
            "INVALID_ACTION_NAME",
        ),
        (
            add("ingress.spread", exact(&[8, 0]), "NoAction", data(&[])),
            9,
            "WRONG_TABLE_TYPE",
        ),
        (
            add(table, exact(&MAC), forward, data(&[&[1]])),
            17,
            "DUPLICATE_ENTRY",
        ),
        (
            add(table, exact(&[1, 2]), forward, data(&[&[1]])),
            18,
            "BAD_MATCH_KEY",
        ),
        (
            add(table, lpm(&MAC, 3), forward, data(&[&[1]])),
            18,
            "BAD_MATCH_KEY",
        ),
        (
            add(table, exact(&[0; 6]), forward, data(&[])),
            26,
            "BAD_ACTION_DATA",
        ),
        (
            add(table, exact(&[0; 6]), forward, data(&[&[2, 0]])),
            26,
            "BAD_ACTION_DATA",
        ),
    ] {
        let failed = client.standard("bm_mt_add_entry", arguments);
        assert_eq!(failed, Err(Failed::Code(code)), "{why}");
    }
    let default = vec![text(table), text("ingress.drop"), data(&[])];
    let failed = client.standard("bm_mt_set_default_action", default);
    assert_eq!(failed, Err(Failed::Code(21)), "DEFAULT_ENTRY_IS_CONST");
    for (method, arguments, code) in [
        ("bm_mt_set_entry_ttl", vec![text(table), int(0), int(5)], 6),
        ("bm_mt_get_meter_rates", vec![text(table), int(0)], 5),
        ("bm_mt_read_counter", vec![text("ingress.types"), int(0)], 4),
        ("bm_counter_read", vec![text("ingress.hits"), int(0)], 1),
        (
            "bm_counter_read",
            vec![text("ingress.received"), int(512)],
            2,
        ),
        ("bm_register_read", vec![text("ingress.marks"), int(-1)], 2),
        ("bm_meter_get_rates", vec![text("nothing"), int(0)], 1),
        ("bm_mt_act_prof_get_members", vec![text("nothing")], 23),
        ("bm_set_crc16_custom_parameters", vec![text("nothing")], 1),
        ("bm_learning_ack_buffer", vec![int(77)], 1),
        ("bm_get_id_from_name", vec![int(9), text(table)], 0),
        ("bm_parse_vset_get", vec![text("nothing")], 1),
    ] {
        let failed = client.standard(method, arguments);
        assert_eq!(failed, Err(Failed::Code(code)), "{method}");
    }
    let unknown = client.call("standard:nothing", Vec::new());
    assert!(matches!(unknown, Err(Failed::Application(why)) if why.contains("no method")));
    let wrong = client.standard("bm_mt_get_num_entries", vec![int(1)]);
    assert!(
        matches!(wrong, Err(Failed::Application(why)) if why == "argument 2 is I32, not Binary")
    );
}

/// Port and instance of each replica of a multicast group.
fn replicas(entity: &Entity) -> Vec<(u32, u32)> {
    let Some(entity::Entity::PacketReplicationEngineEntry(entry)) = &entity.entity else {
        panic!("{entity:?}");
    };
    let Some(packet_replication_engine_entry::Type::MulticastGroupEntry(group)) = &entry.r#type
    else {
        panic!("{entity:?}");
    };
    let pair = |replica: &Replica| match &replica.port_kind {
        Some(replica::PortKind::Port(port)) => {
            let number = port.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
            (number, replica.instance)
        }
        other => panic!("{other:?}"),
    };
    group.replicas.iter().map(pair).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_are_made_of_nodes_and_seen_by_p4runtime() {
    let (_rig, mut controller, mut client) = start().await;
    let lag = |client: &mut Client, method: &str, arguments: Vec<Value>| {
        let arguments = std::iter::once(int(0)).chain(arguments).collect();
        client.call(&format!("simple_pre_lag:{method}"), arguments)
    };
    let created = lag(&mut client, "bm_mc_mgrp_create", vec![int(4)]);
    assert_eq!(created, Ok(Some(int(4))));
    let node = vec![int(6), text("1010"), text("1")];
    assert_eq!(
        lag(&mut client, "bm_mc_node_create", node),
        Ok(Some(int(0)))
    );
    let node = vec![int(0), text("100"), text("")];
    assert_eq!(
        lag(&mut client, "bm_mc_node_create", node),
        Ok(Some(int(1)))
    );
    for node in [0, 1] {
        let associated = lag(&mut client, "bm_mc_node_associate", vec![int(4), int(node)]);
        assert_eq!(associated, Ok(None));
    }
    let again = lag(&mut client, "bm_mc_node_associate", vec![int(4), int(0)]);
    assert_eq!(again, Err(Failed::Code(5)));
    let membership = vec![Value::I16(0), text("110000")];
    assert_eq!(
        lag(&mut client, "bm_mc_set_lag_membership", membership),
        Ok(None)
    );
    // Of ports 4 and 5 the one that BMv2's fixed hash, 255, chooses.
    let found = controller.read(vec![group(0, &[])]).await.unwrap();
    assert_eq!(found.len(), 1);
    let expected = [(1, 6), (3, 6), (5, 6), (2, 0)];
    assert_eq!(replicas(&found[0]), expected);

    let changed = modify(group(4, &[(7, 1), (8, 1), (8, 2)]));
    controller.write(vec![changed]).await.unwrap();
    let Ok(Some(Value::Binary(dump))) = lag(&mut client, "bm_mc_get_entries", Vec::new()) else {
        panic!()
    };
    let dump: serde_json::Value = serde_json::from_slice(&dump).unwrap();
    let nodes = dump["mgrps"][0]["l1_handles"].as_array().unwrap();
    assert_eq!(nodes.len(), 2, "one node for each instance: {dump}");
    let l2 = dump["l2_handles"].as_array().unwrap();
    let mut ports: Vec<_> = l2.iter().map(|node| node["ports"].to_string()).collect();
    ports.sort();
    assert_eq!(ports, ["[7,8]", "[8]"]);
    assert_eq!(
        lag(&mut client, "bm_mc_mgrp_destroy", vec![int(4)]),
        Ok(None)
    );
    assert!(
        controller
            .read(vec![group(0, &[])])
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_and_groups_of_action_profiles() {
    let (_rig, mut controller, mut client) = start().await;
    let choice = || text("ingress.choice");
    for port in [4u8, 5] {
        let member = vec![choice(), text("ingress.forward_on"), data(&[&[port]])];
        let handle = client.standard("bm_mt_act_prof_add_member", member);
        assert_eq!(handle, Ok(Some(int(i32::from(port) - 4))));
    }
    let created = client.standard("bm_mt_act_prof_create_group", vec![choice()]);
    assert_eq!(created, Ok(Some(int(0))));
    let add = || {
        let key = list(vec![exact(&[8, 0])]);
        vec![text("ingress.spread"), key, int(0), priority(0)]
    };
    let empty = client.standard("bm_mt_indirect_ws_add_entry", add());
    assert_eq!(empty, Err(Failed::Code(16)));
    let join = |member| vec![choice(), int(member), int(0)];
    let method = "bm_mt_act_prof_add_member_to_group";
    assert_eq!(client.standard(method, join(1)), Ok(None));
    assert_eq!(client.standard(method, join(1)), Err(Failed::Code(12)));
    assert_eq!(client.standard(method, join(9)), Err(Failed::Code(10)));
    let added = client.standard("bm_mt_indirect_ws_add_entry", add());
    assert_eq!(added, Ok(Some(int(0))));
    for (method, handle, code) in [
        ("bm_mt_act_prof_delete_member", 1, 11),
        ("bm_mt_act_prof_delete_member", 7, 10),
        ("bm_mt_act_prof_delete_group", 0, 15),
        ("bm_mt_act_prof_delete_group", 7, 14),
    ] {
        let failed = client.standard(method, vec![choice(), int(handle)]);
        assert_eq!(failed, Err(Failed::Code(code)), "{method} {handle}");
    }
    let all = vec![
        Entity {
            entity: Some(entity::Entity::ActionProfileMember(
                ActionProfileMember::default(),
            )),
        },
        Entity {
            entity: Some(entity::Entity::ActionProfileGroup(
                ActionProfileGroup::default(),
            )),
        },
    ];
    let found = controller.read(all).await.unwrap();
    let ids: Vec<u32> = found
        .iter()
        .filter_map(|entity| match entity.entity.as_ref()? {
            entity::Entity::ActionProfileMember(member) => Some(member.member_id),
            entity::Entity::ActionProfileGroup(group) => Some(group.members[0].member_id),
            _ => None,
        })
        .collect();
    assert_eq!(ids, [1, 2, 2], "ids of P4Runtime begin with 1");
    let group = client.standard("bm_mt_act_prof_get_group", vec![choice(), int(0)]);
    let expected = vec![(1, int(0)), (2, Value::List(Type::I32, vec![int(1)]))];
    assert_eq!(group, Ok(Some(structure(expected))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counters_registers_meters_and_sessions() {
    let (_rig, mut controller, mut client) = start().await;
    let write = vec![text("ingress.marks"), int(2), int(5), Value::I64(-1)];
    let method = "bm_register_write_range";
    assert_eq!(client.standard(method, write), Ok(None));
    let Ok(Some(Value::List(Type::I64, cells))) =
        client.standard("bm_register_read_all", vec![text("ingress.marks")])
    else {
        panic!()
    };
    assert_eq!(cells.len(), 16);
    let set = cells
        .iter()
        .filter(|cell| **cell == Value::I64(0xffff_ffff));
    assert_eq!(set.count(), 3, "cut to 32 bits");
    let found = controller
        .read(vec![register(Some(4), None)])
        .await
        .unwrap();
    assert_eq!(found, [register(Some(4), Some(&[0xff; 4]))]);

    let value = structure(vec![(1, Value::I64(1000)), (2, Value::I64(10))]);
    let write = vec![text("ingress.received"), int(3), value.clone()];
    assert_eq!(client.standard("bm_counter_write", write), Ok(None));
    let read = vec![text("ingress.received"), int(3)];
    assert_eq!(client.standard("bm_counter_read", read), Ok(Some(value)));

    let rate = |rate: f64, burst| structure(vec![(1, Value::Double(rate)), (2, int(burst))]);
    let set = |rates: Vec<Value>| vec![text("ingress.rates"), int(0), list(rates)];
    for (rates, expected) in [
        (vec![rate(0.5, 4)], Err(Failed::Code(3))),
        (vec![rate(2.0, 4), rate(1.0, 4)], Err(Failed::Code(4))),
        (vec![rate(f64::NAN, 4), rate(1.0, 4)], Err(Failed::Code(4))),
        (vec![rate(0.5, -1), rate(1.0, 4)], Err(Failed::Code(5))),
        (vec![rate(0.5, 4), rate(1.0, 8)], Ok(None)),
    ] {
        assert_eq!(client.standard("bm_meter_set_rates", set(rates)), expected);
    }
    let rates = client.standard("bm_meter_get_rates", vec![text("ingress.rates"), int(0)]);
    assert_eq!(rates, Ok(Some(list(vec![rate(0.5, 4), rate(1.0, 8)]))));

    let session = |fields| vec![int(0), structure(fields)];
    let both = vec![(1, int(3)), (2, int(4))];
    let added = client.call("simple_switch:mirroring_session_add", session(both.clone()));
    assert_eq!(added, Ok(None), "session 0, to a port and to a group");
    let found = client.call("simple_switch:mirroring_session_get", vec![int(0)]);
    assert_eq!(found, Ok(Some(structure(both))));
    let deleted = client.call("simple_switch:mirroring_session_delete", vec![int(0)]);
    assert_eq!(deleted, Ok(None));
    let found = client.call("simple_switch:mirroring_session_get", vec![int(0)]);
    assert_eq!(found, Err(Failed::Code(1)));
    let depth = client.call("simple_switch:set_all_egress_queue_depths", vec![int(64)]);
    assert_eq!(depth, Ok(Some(int(0))));
    let depth = client.call(
        "simple_switch:set_egress_queue_depth",
        vec![int(9), int(64)],
    );
    assert!(matches!(depth, Err(Failed::Application(why)) if why == "there is no port 9"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program_is_given_swapped_and_reset() {
    let (_rig, mut controller, mut client) = start().await;
    let config = |client: &mut Client| client.call("standard:bm_get_config", Vec::new());
    let json = String::from_utf8(objects().p4_device_config).unwrap();
    assert_eq!(config(&mut client), Ok(Some(text(&json))));
    let info = client.call("standard:bm_mgmt_get_info", Vec::new());
    let info = info.unwrap().unwrap();
    assert_eq!(part(&info, 1), Some(&Value::I64(DEVICE_ID as i64)));
    let id = vec![int(0), text("ingress.types")];
    assert!(client.standard("bm_get_id_from_name", id).is_ok());

    add_address(&mut client, MAC, 1).unwrap();
    assert_eq!(client.call("standard:bm_reset_state", Vec::new()), Ok(None));
    assert_eq!(
        add_address(&mut client, MAC, 1),
        Ok(0),
        "the table is empty"
    );

    let swap = |client: &mut Client| client.call("standard:bm_swap_configs", Vec::new());
    let load = |client: &mut Client, json: &str| {
        client.call("standard:bm_load_new_config", vec![text(json)])
    };
    assert_eq!(swap(&mut client), Err(Failed::Code(3)));
    let bad = load(&mut client, "{}");
    assert!(matches!(bad, Err(Failed::Application(_))), "{bad:?}");
    let other = include_str!("../programs/tables.json");
    assert_eq!(load(&mut client, other), Ok(None));
    assert_eq!(load(&mut client, other), Err(Failed::Code(2)));
    assert_eq!(config(&mut client), Ok(Some(text(&json))), "not yet");
    assert_eq!(swap(&mut client), Ok(None));
    assert_eq!(config(&mut client), Ok(Some(text(other))));
    let gone = add_address(&mut client, MAC, 1);
    assert_eq!(gone, Err(Failed::Code(7)));
    // The config of P4Runtime is that of another program.
    let all = controller.read(vec![table(TableEntry::default())]).await;
    assert_eq!(all.unwrap_err().code(), tonic::Code::FailedPrecondition);
}
