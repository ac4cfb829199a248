//! Calls over Thrift that controllers make of a switch: what each changes is read back.

use super::messages::{SPREAD, table};
use super::network::{add_link, in_namespace};
use super::rig::{Controller, Rig};
use super::thrift::{MAC, add_address, start};
use super::thrift_client::{
    Client, Failed, bytes, connect, data, exact, int, list, part, priority, serve, structure, text,
};
use wormcast_switch_bmv2::thrift::{Type, Value};
use wormcast_switch_p4runtime::proto::p4::v1::{TableEntry, entity, table_action};

/// What a call gives.
type Answer = Result<Option<Value>, Failed>;

/// Packets and bytes.
fn counted(value: Option<Value>) -> (Value, Value) {
    let value = value.expect("a counter");
    let part = |number| part(&value, number).cloned().expect("a count");
    (part(2), part(1))
}

fn count(packets: i64, bytes: i64) -> Value {
    structure(vec![(1, Value::I64(bytes)), (2, Value::I64(packets))])
}

fn rates(pairs: &[(f64, i32)]) -> Value {
    let rate =
        |(rate, burst): &(f64, i32)| structure(vec![(1, Value::Double(*rate)), (2, int(*burst))]);
    list(pairs.iter().map(rate).collect())
}

/// Runs another program from now on.
fn swap_to(client: &mut Client, json: &str) {
    let loaded = client.call("standard:bm_load_new_config", vec![text(json)]);
    assert_eq!(loaded, Ok(None));
    assert_eq!(client.call("standard:bm_swap_configs", vec![]), Ok(None));
}

/// Name of the action of the default entry.
fn default_action(client: &mut Client, table: &str) -> Value {
    let entry = client.standard("bm_mt_get_default_entry", vec![text(table)]);
    part(&entry.unwrap().unwrap(), 2).cloned().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_default_entry_is_set_and_put_back() {
    let (_rig, _controller, mut client) = start().await;
    let table = "ingress.types";
    let as_made = default_action(&mut client, table);
    let call = vec![text(table), text("ingress.copy_to_cpu"), data(&[])];
    assert_eq!(client.standard("bm_mt_set_default_action", call), Ok(None));
    let set = default_action(&mut client, table);
    assert_eq!(set, text("ingress.copy_to_cpu"));
    assert_ne!(set, as_made);
    let reset = client.standard("bm_mt_reset_default_entry", vec![text(table)]);
    assert_eq!(reset, Ok(None));
    assert_eq!(default_action(&mut client, table), as_made);

    // Of a default that the program fixes nothing is changed, so putting it back is no error.
    let fixed = || vec![text("ingress.addresses")];
    let reset = client.standard("bm_mt_reset_default_entry", fixed());
    assert_eq!(reset, Ok(None));
    let clear = vec![text("ingress.addresses"), Value::Bool(true)];
    assert_eq!(client.standard("bm_mt_clear_entries", clear), Ok(None));
    let action = default_action(&mut client, "ingress.addresses");
    assert_eq!(action, text("ingress.drop"));
}

/// A table without a key has no entries; a program without `mcast_grp`, as those of P4-14 may be,
/// has multicast groups, which clone sessions send to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_program_of_p4_14_lacks() {
    let (_rig, _controller, mut client) = start().await;
    swap_to(&mut client, include_str!("../programs/p4_14.json"));
    let entry = vec![
        text("out"),
        list(vec![]),
        text("forward"),
        data(&[]),
        priority(0),
    ];
    let added = client.standard("bm_mt_add_entry", entry);
    assert_eq!(added, Err(Failed::Code(27)));
    let group = |number| vec![Value::I32(0), int(number)];
    let mut create = |number| client.call("simple_pre_lag:bm_mc_mgrp_create", group(number));
    assert_eq!(create(7), Ok(Some(int(7))));
    assert_eq!(create(65_536), Err(Failed::Code(2)));
}

/// Handles of direct counters are numbers of entries, as in BMv2: which entry has the
/// number does not matter.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counters_of_entries_and_arrays_are_written_and_reset() {
    let (_rig, _controller, mut client) = start().await;
    let table = || text("ingress.addresses");
    assert_eq!(add_address(&mut client, MAC, 1), Ok(0));
    let deleted = client.standard("bm_mt_delete_entry", vec![table(), int(0)]);
    assert_eq!(deleted, Ok(None));
    assert_eq!(add_address(&mut client, MAC, 1), Ok(1 << 24));
    let written = vec![table(), int(0), count(3, 300)];
    assert_eq!(client.standard("bm_mt_write_counter", written), Ok(None));
    for handle in [0, 1 << 24] {
        let read = client.standard("bm_mt_read_counter", vec![table(), int(handle)]);
        assert_eq!(counted(read.unwrap()), (Value::I64(3), Value::I64(300)));
    }
    let none = client.standard("bm_mt_read_counter", vec![table(), int(1)]);
    assert_eq!(none, Err(Failed::Code(2)), "INVALID_HANDLE");
    let reset = client.standard("bm_mt_reset_counters", vec![table()]);
    assert_eq!(reset, Ok(None));
    let read = client.standard("bm_mt_read_counter", vec![table(), int(0)]);
    assert_eq!(counted(read.unwrap()), (Value::I64(0), Value::I64(0)));

    let cell = |index| vec![text("ingress.received"), int(index)];
    for index in [4, 7] {
        let mut written = cell(index);
        written.push(count(9, 900));
        assert_eq!(client.standard("bm_counter_write", written), Ok(None));
        let read = client.standard("bm_counter_read", cell(index));
        assert_eq!(counted(read.unwrap()), (Value::I64(9), Value::I64(900)));
    }
    let all = vec![text("ingress.received")];
    assert_eq!(client.standard("bm_counter_reset_all", all), Ok(None));
    for index in [4, 7] {
        let read = client.standard("bm_counter_read", cell(index));
        assert_eq!(counted(read.unwrap()), (Value::I64(0), Value::I64(0)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn meters_of_entries_and_arrays_are_set() {
    let (_rig, _controller, mut client) = start().await;
    let all = rates(&[(0.25, 1), (2.0, 2)]);
    let set = vec![text("ingress.rates"), all.clone()];
    assert_eq!(client.standard("bm_meter_array_set_rates", set), Ok(None));
    for index in [0, 1] {
        let read = vec![text("ingress.rates"), int(index)];
        let read = client.standard("bm_meter_get_rates", read);
        assert_eq!(read, Ok(Some(all.clone())), "cell {index}");
    }

    swap_to(&mut client, include_str!("../programs/meters.json"));
    let table = || text("ingress.metered");
    let added = vec![
        table(),
        list(vec![exact(&[1])]),
        text("ingress.coloured"),
        data(&[]),
        priority(0),
    ];
    let added = client.standard("bm_mt_add_entry", added);
    assert_eq!(added, Ok(Some(int(0))));
    let get = |client: &mut Client| client.standard("bm_mt_get_meter_rates", vec![table(), int(0)]);
    assert_eq!(get(&mut client), Ok(Some(rates(&[]))), "not set yet");
    let given = rates(&[(0.5, 10), (1.0, 20)]);
    let set = vec![table(), int(0), given.clone()];
    assert_eq!(client.standard("bm_mt_set_meter_rates", set), Ok(None));
    assert_eq!(get(&mut client), Ok(Some(given)));
    let set = vec![table(), int(0), rates(&[(1.0, 10), (0.5, 20)])];
    let falling = client.standard("bm_mt_set_meter_rates", set);
    assert_eq!(falling, Err(Failed::Code(19)), "INVALID_METER_OPERATION");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn registers_are_reset() {
    let (_rig, _controller, mut client) = start().await;
    let marks = || text("ingress.marks");
    let written = vec![marks(), int(3), Value::I64(42)];
    assert_eq!(client.standard("bm_register_write", written), Ok(None));
    let read = |client: &mut Client| client.standard("bm_register_read", vec![marks(), int(3)]);
    assert_eq!(read(&mut client), Ok(Some(Value::I64(42))));
    let reset = client.standard("bm_register_reset", vec![marks()]);
    assert_eq!(reset, Ok(None));
    assert_eq!(read(&mut client), Ok(Some(Value::I64(0))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_change_and_leave_groups() {
    let (_rig, mut controller, mut client) = start().await;
    let choice = || text("ingress.choice");
    let call = |port: u8| vec![text("ingress.forward_on"), data(&[&[port]])];
    for port in [4, 5] {
        let member = std::iter::once(choice()).chain(call(port)).collect();
        let made = client.standard("bm_mt_act_prof_add_member", member);
        assert_eq!(made, Ok(Some(int(i32::from(port) - 4))));
    }
    let modified = [choice(), int(1)].into_iter().chain(call(8)).collect();
    let modified = client.standard("bm_mt_act_prof_modify_member", modified);
    assert_eq!(modified, Ok(None));
    let read = client.standard("bm_mt_act_prof_get_member", vec![choice(), int(1)]);
    assert_eq!(part(&read.unwrap().unwrap(), 3), Some(&data(&[&[8]])));

    let group = client.standard("bm_mt_act_prof_create_group", vec![choice()]);
    assert_eq!(group, Ok(Some(int(0))));
    let join = |member| vec![choice(), int(member), int(0)];
    for member in [0, 1] {
        let joined = client.standard("bm_mt_act_prof_add_member_to_group", join(member));
        assert_eq!(joined, Ok(None));
    }
    // The member that is a default stays, and the default with it.
    let spread = |handle| vec![text("ingress.spread"), int(handle)];
    let set = client.standard("bm_mt_indirect_set_default_member", spread(1));
    assert_eq!(set, Ok(None));
    let modified = [choice(), int(1)].into_iter().chain(call(9)).collect();
    let modified = client.standard("bm_mt_act_prof_modify_member", modified);
    assert_eq!(modified, Ok(None));
    assert_eq!(p4runtime_default(&mut controller).await, vec![9]);
    // Of an entry that is not there no change is tried.
    let modify = vec![text("ingress.spread"), int(5), int(9)];
    for method in [
        "bm_mt_indirect_modify_entry",
        "bm_mt_indirect_ws_modify_entry",
    ] {
        let none = client.standard(method, modify.clone());
        assert_eq!(none, Err(Failed::Code(2)), "INVALID_HANDLE: {method}");
    }

    let leave = "bm_mt_act_prof_remove_member_from_group";
    assert_eq!(client.standard(leave, join(0)), Ok(None));
    let again = client.standard(leave, join(0));
    assert_eq!(again, Err(Failed::Code(13)), "MBR_NOT_IN_GRP");
    let groups = client.standard("bm_mt_act_prof_get_groups", vec![choice()]);
    let members = Value::List(Type::I32, vec![int(1)]);
    let expected = structure(vec![(1, int(0)), (2, members)]);
    assert_eq!(groups, Ok(Some(list(vec![expected]))));
    for member in [1, 0] {
        let _ = client.standard(leave, join(member));
    }
    let delete = |member| vec![choice(), int(member)];
    let deleted = client.standard("bm_mt_act_prof_delete_member", delete(1));
    assert_eq!(deleted, Err(Failed::Code(11)), "MBR_STILL_USED");
    let reset = vec![text("ingress.spread")];
    let reset = client.standard("bm_mt_indirect_reset_default_entry", reset);
    assert_eq!(reset, Ok(None));
    let deleted = client.standard("bm_mt_act_prof_delete_member", delete(1));
    assert_eq!(deleted, Ok(None));
}

/// The argument of the default action of the table of groups, over P4Runtime.
async fn p4runtime_default(controller: &mut Controller) -> Vec<u8> {
    let filter = TableEntry {
        table_id: SPREAD,
        is_default_action: true,
        ..TableEntry::default()
    };
    let read = controller.read(vec![table(filter)]).await.unwrap();
    let Some(entity::Entity::TableEntry(entry)) = &read[0].entity else {
        panic!("{read:?}")
    };
    let action = entry
        .action
        .as_ref()
        .and_then(|action| action.r#type.as_ref());
    let Some(table_action::Type::Action(action)) = action else {
        panic!("{entry:?}")
    };
    action.params[0].value.clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_change_leave_their_group_and_go() {
    let (_rig, _controller, mut client) = start().await;
    let mut groups = |method: &str, arguments: Vec<Value>| {
        let context = std::iter::once(int(0));
        let method = format!("simple_pre_lag:bm_mc_{method}");
        client.call(&method, context.chain(arguments).collect())
    };
    let ports = |groups: &mut dyn FnMut(&str, Vec<Value>) -> Answer| {
        let Ok(Some(Value::Binary(dump))) = groups("get_entries", vec![]) else {
            panic!()
        };
        let dump: serde_json::Value = serde_json::from_slice(&dump).unwrap();
        let nodes = dump["mgrps"][0]["l1_handles"].as_array().unwrap().len();
        (nodes, dump["l2_handles"].to_string())
    };
    assert_eq!(groups("mgrp_create", vec![int(4)]), Ok(Some(int(4))));
    let node = vec![int(6), text("1010"), text("")];
    assert_eq!(groups("node_create", node), Ok(Some(int(0))));
    assert_eq!(groups("node_associate", vec![int(4), int(0)]), Ok(None));
    let update = vec![int(0), text("110"), text("1")];
    assert_eq!(groups("node_update", update), Ok(None));
    let (nodes, l2) = ports(&mut groups);
    assert_eq!(nodes, 1);
    assert!(
        l2.contains("\"ports\":[1,2]") && l2.contains("\"lags\":[0]"),
        "{l2}"
    );
    let left = groups("node_dissociate", vec![int(4), int(0)]);
    assert_eq!(left, Ok(None));
    assert_eq!(ports(&mut groups).0, 0);
    let again = groups("node_dissociate", vec![int(4), int(0)]);
    assert_eq!(again, Err(Failed::Code(5)), "ERROR");
    assert_eq!(groups("node_destroy", vec![int(0)]), Ok(None));
    let again = groups("node_destroy", vec![int(0)]);
    assert_eq!(again, Err(Failed::Code(4)), "INVALID_L1_HANDLE");
    let update = vec![int(0), text("110"), text("")];
    let gone = groups("node_update", update);
    assert_eq!(gone, Err(Failed::Code(4)), "INVALID_L1_HANDLE");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn value_sets_are_filled_and_emptied() {
    let (_rig, _controller, mut client) = start().await;
    swap_to(&mut client, include_str!("../programs/entities.json"));
    let set = || text("parse.types");
    let members = |client: &mut Client| client.standard("bm_parse_vset_get", vec![set()]);
    let values = |values: &[&[u8]]| {
        let values = values.iter().map(|value| bytes(value)).collect();
        Ok(Some(Value::List(Type::Binary, values)))
    };
    for value in [[8, 0], [0x86, 0xdd]] {
        let added = client.standard("bm_parse_vset_add", vec![set(), bytes(&value)]);
        assert_eq!(added, Ok(None));
    }
    assert_eq!(members(&mut client), values(&[&[8, 0], &[0x86, 0xdd]]));
    let removed = vec![set(), bytes(&[8, 0])];
    assert_eq!(client.standard("bm_parse_vset_remove", removed), Ok(None));
    assert_eq!(members(&mut client), values(&[&[0x86, 0xdd]]));
    let cleared = client.standard("bm_parse_vset_clear", vec![set()]);
    assert_eq!(cleared, Ok(None));
    assert_eq!(members(&mut client), values(&[]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn custom_crcs_are_those_of_the_program() {
    let (_rig, _controller, mut client) = start().await;
    swap_to(&mut client, include_str!("../programs/hashes.json"));
    let crc = |name: &str, polynomial: i32| {
        let parameters =
            [1, 2, 3].map(|number| (number, int(if number == 1 { polynomial } else { 0 })));
        let reflect = [4, 5].map(|number| (number, Value::Bool(true)));
        let fields = parameters.into_iter().chain(reflect).collect();
        vec![text(name), structure(fields)]
    };
    let crc32 = "bm_set_crc32_custom_parameters";
    assert_eq!(client.standard(crc32, crc("calc_4", 0x04c1_1db7)), Ok(None));
    let of_16_bits = client.standard(crc32, crc("calc_5", 0x8005));
    assert_eq!(of_16_bits, Err(Failed::Code(2)), "WRONG_TYPE_CALCULATION");
    let unknown = client.standard(crc32, crc("calc_9", 0x8005));
    assert_eq!(unknown, Err(Failed::Code(1)), "INVALID_CALCULATION_NAME");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queues_and_clocks() {
    let (rig, _controller, mut client) = start().await;
    let mut call = |method: &str, arguments: &[i64], wide: bool| {
        let mut arguments: Vec<Value> = arguments.iter().map(|n| int(*n as i32)).collect();
        if wide && let Some(Value::I32(last)) = arguments.pop() {
            arguments.push(Value::I64(last.into()));
        }
        client.call(&format!("simple_switch:{method}"), arguments)
    };
    let cpu = 510;
    for (method, arguments, wide) in [
        ("set_all_egress_queue_depths", vec![64], false),
        ("set_egress_queue_depth", vec![cpu, 50], false),
        ("set_egress_priority_queue_depth", vec![cpu, 0, 40], false),
        ("set_all_egress_queue_rates", vec![1_000], true),
        ("set_egress_queue_rate", vec![cpu, 500], true),
        ("set_egress_priority_queue_rate", vec![cpu, 0, 400], true),
    ] {
        assert_eq!(call(method, &arguments, wide), Ok(Some(int(0))), "{method}");
        let mut wrong = arguments.clone();
        *wrong.last_mut().unwrap() = -1;
        let refused = call(method, &wrong, wide);
        assert!(matches!(refused, Err(Failed::Application(_))), "{method}");
    }
    let elapsed = call("get_time_elapsed_us", &[], false).unwrap().unwrap();
    let epoch = call("get_time_since_epoch_us", &[], false)
        .unwrap()
        .unwrap();
    let (Value::I64(elapsed), Value::I64(epoch)) = (elapsed, epoch) else {
        panic!("no times");
    };
    let now = rig.dataplane.run(|switch| switch.unix_us() as i64);
    let now = now.await.unwrap();
    let an_hour = 3_600_000_000;
    assert!((0..an_hour).contains(&elapsed), "since the start");
    assert!(
        (now - 60_000_000..=now).contains(&epoch),
        "{epoch}, now {now}"
    );
}

/// Ports come and go while the switch runs.
#[test]
fn ports_are_added_shown_and_removed() {
    in_namespace(|| {
        add_link("s1", "h1");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let rig = Rig::start().await;
            let mut client = connect(serve(&rig.dataplane));
            let mut call = |method: &str, arguments: Vec<Value>| {
                client.call(&format!("standard:bm_dev_mgr_{method}"), arguments)
            };
            let add = |name: &str, port: i32| vec![text(name), int(port), text("")];
            assert_eq!(call("add_port", add("s1", 5)), Ok(None));
            let shown = call("show_ports", vec![]).unwrap();
            let Some(Value::List(Type::Struct, ports)) = shown else {
                panic!("{shown:?}");
            };
            let of = |number| {
                ports
                    .iter()
                    .filter(move |port| part(port, 1) == Some(&int(number)))
            };
            let names: Vec<_> = of(5).map(|port| part(port, 2)).collect();
            assert_eq!(names, [Some(&text("s1"))]);
            for (name, port) in [("s1", 5), ("nowhere", 6), ("s1", 512)] {
                let refused = call("add_port", add(name, port));
                assert_eq!(refused, Err(Failed::Code(1)), "{name} as port {port}");
            }
            assert_eq!(call("remove_port", vec![int(5)]), Ok(None));
            let again = call("remove_port", vec![int(5)]);
            assert_eq!(again, Err(Failed::Code(1)));
        });
    });
}
