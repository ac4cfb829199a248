//! Counters, meters and registers, of arrays and of entries.

use tonic::Code;

use super::entities_program::{
    COLOUR, action, add, by_kind, default_of, find, id, probe, send, send_one, start,
};
use super::errors::refusal;
use super::messages::{exact, insert, modify, of, table};
use wormcast_switch_p4runtime::proto::p4::v1::{
    CounterData, CounterEntry, DirectCounterEntry, DirectMeterEntry, Entity, Index, MeterConfig,
    MeterCounterData, MeterEntry, P4Data, RegisterEntry, TableEntry, entity, p4_data,
};

fn count(packets: i64, bytes: i64) -> Option<CounterData> {
    Some(CounterData {
        packet_count: packets,
        byte_count: bytes,
    })
}

fn counter(name: &str, index: Option<i64>, data: Option<CounterData>) -> Entity {
    of(entity::Entity::CounterEntry(CounterEntry {
        counter_id: id(name),
        index: index.map(|index| Index { index }),
        data,
    }))
}

fn register(name: &str, index: Option<i64>, data: Option<p4_data::Data>) -> Entity {
    of(entity::Entity::RegisterEntry(RegisterEntry {
        register_id: id(name),
        index: index.map(|index| Index { index }),
        data: data.map(|data| P4Data { data: Some(data) }),
    }))
}

fn bits(bytes: &[u8]) -> Option<p4_data::Data> {
    Some(p4_data::Data::Bitstring(bytes.to_vec()))
}

fn meter(
    name: &str,
    index: Option<i64>,
    config: Option<MeterConfig>,
    counter_data: Option<MeterCounterData>,
) -> Entity {
    of(entity::Entity::MeterEntry(MeterEntry {
        meter_id: id(name),
        index: index.map(|index| Index { index }),
        config,
        counter_data,
    }))
}

fn one_rate(cir: i64, cburst: i64, eburst: i64) -> Option<MeterConfig> {
    Some(MeterConfig {
        cir,
        cburst,
        pir: cir,
        pburst: cburst,
        eburst,
    })
}

fn counts(green: i64, yellow: i64, red: i64, bytes: i64) -> Option<MeterCounterData> {
    Some(MeterCounterData {
        green: count(green, green * bytes),
        yellow: count(yellow, yellow * bytes),
        red: count(red, red * bytes),
    })
}

#[tokio::test]
async fn counters_are_written_and_read_by_cell_array_and_all() {
    let (rig, mut controller) = start().await;
    let both = "ingress.both";
    let updates = vec![
        modify(counter(both, None, count(5, 50))),
        modify(counter(both, Some(1), count(7, 0))),
        modify(counter(both, Some(2), None)),
    ];
    controller.write(updates).await.unwrap();
    send(&rig, &probe(0, 0, 0)).await;
    let found = controller.read(vec![counter(both, None, None)]).await;
    let expected: Vec<Entity> = (0..8)
        .map(|cell| {
            let data = match cell {
                0 => count(6, 74),
                1 => count(7, 0),
                _ => count(5, 50),
            };
            counter(both, Some(cell), data)
        })
        .collect();
    assert_eq!(found.unwrap(), expected);
    let one = counter("ingress.by_port", Some(1), None);
    let found = controller.read(vec![one]).await.unwrap();
    assert_eq!(found, [counter("ingress.by_port", Some(1), count(1, 0))]);
    let all = of(entity::Entity::CounterEntry(CounterEntry::default()));
    assert_eq!(controller.read(vec![all]).await.unwrap().len(), 8 + 512);
    let bytes = modify(counter("ingress.by_port", Some(0), count(0, 1)));
    assert_eq!(
        refusal(&mut controller, bytes).await,
        (
            Code::InvalidArgument,
            "counter `ingress.by_port`: this counter does not count bytes".to_owned()
        )
    );
}

#[tokio::test]
async fn registers_of_every_type() {
    let (rig, mut controller) = start().await;
    let wide = [0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let state = [
        register("ingress.flags", Some(2), bits(&[1])),
        register("ingress.wide", Some(1), bits(&wide)),
        register("ingress.signed_cells", Some(1), bits(&[0xf8, 0])),
        register("ingress.hops", Some(1), bits(b"first-hop")),
    ];
    let updates = state.iter().cloned().map(modify).collect();
    controller.write(updates).await.unwrap();
    let filters = vec![
        register("ingress.flags", Some(2), None),
        register("ingress.wide", Some(1), None),
        register("ingress.signed_cells", Some(1), None),
        register("ingress.hops", Some(1), None),
    ];
    assert_eq!(controller.read(filters).await.unwrap(), state);
    send(&rig, &probe(0, 0, 0x01020304)).await;
    let of_packets = [
        register("ingress.flags", Some(0), bits(&[1])),
        register("ingress.wide", Some(0), bits(&[1, 2, 3, 4])),
        register("ingress.signed_cells", Some(0), bits(&[0xff])),
        register("ingress.hops", Some(0), bits(b"7")),
    ];
    let filters = vec![
        register("ingress.flags", Some(0), None),
        register("ingress.wide", Some(0), None),
        register("ingress.signed_cells", Some(0), None),
        register("ingress.hops", Some(0), None),
    ];
    assert_eq!(controller.read(filters).await.unwrap(), of_packets);
    // Without an index: all cells.
    let updates = vec![modify(register("ingress.flags", None, bits(&[0])))];
    controller.write(updates).await.unwrap();
    let found = controller.read(vec![register("ingress.flags", None, None)]);
    let zero = |cell| register("ingress.flags", Some(cell), bits(&[0]));
    assert_eq!(found.await.unwrap(), [0, 1, 2].map(zero));

    let cases = [
        (
            register("ingress.signed_cells", Some(0), bits(&[8, 0])),
            Code::OutOfRange,
            "register `ingress.signed_cells`: value 0x800 does not fit into 12 bits with a sign",
        ),
        (
            register("ingress.wide", Some(0), Some(p4_data::Data::Bool(true))),
            Code::InvalidArgument,
            "register `ingress.wide`: its data must be a bit string of 128 bits",
        ),
        (
            register("ingress.wide", Some(2), bits(&[1])),
            Code::OutOfRange,
            "register `ingress.wide`: index 2 is not valid: 0 to 1",
        ),
        (
            register("ingress.wide", Some(-1), bits(&[1])),
            Code::InvalidArgument,
            "register `ingress.wide`: index -1 is below 0",
        ),
    ];
    for (entity, code, message) in cases {
        let refused = refusal(&mut controller, modify(entity)).await;
        assert_eq!(refused, (code, message.to_owned()));
    }
}

#[tokio::test]
async fn meters_with_one_rate_colour_and_count() {
    let (rig, mut controller) = start().await;
    let updates = vec![
        modify(meter("ingress.one_rate", Some(0), one_rate(1, 2, 1), None)),
        modify(meter(
            "ingress.two_colours",
            Some(0),
            one_rate(1, 1, 0),
            None,
        )),
    ];
    controller.write(updates).await.unwrap();
    let mut colours = Vec::new();
    for _ in 0..4 {
        colours.push(send_one(&rig, &probe(0, 0, 0)).await[COLOUR]);
    }
    assert_eq!(colours, [0, 0, 1, 2]);
    let ask = |name| meter(name, Some(0), None, Some(MeterCounterData::default()));
    let filters = vec![ask("ingress.one_rate"), ask("ingress.two_colours")];
    let found = controller.read(filters.clone()).await.unwrap();
    let expected = [
        meter(
            "ingress.one_rate",
            Some(0),
            one_rate(1, 2, 1),
            counts(2, 1, 1, 24),
        ),
        meter(
            "ingress.two_colours",
            Some(0),
            one_rate(1, 1, 0),
            counts(1, 0, 3, 24),
        ),
    ];
    assert_eq!(found, expected);
    // Unasked they are not told; a new config leaves them; only 0 can be written.
    let quiet = controller.read(vec![meter("ingress.one_rate", Some(0), None, None)]);
    let told = meter("ingress.one_rate", Some(0), one_rate(1, 2, 1), None);
    assert_eq!(quiet.await.unwrap(), [told]);
    let updates = vec![
        modify(meter("ingress.one_rate", None, None, None)),
        modify(meter(
            "ingress.two_colours",
            Some(0),
            None,
            counts(0, 0, 0, 0),
        )),
    ];
    controller.write(updates).await.unwrap();
    let found = controller.read(filters).await.unwrap();
    let expected = [
        meter("ingress.one_rate", Some(0), None, counts(2, 1, 1, 24)),
        meter("ingress.two_colours", Some(0), None, counts(0, 0, 0, 0)),
    ];
    assert_eq!(found, expected);
    let cases = [
        (
            meter("ingress.two_colours", Some(0), one_rate(1, 1, 1), None),
            "meter `ingress.two_colours`: eburst must be 0: these meters have two colours",
        ),
        (
            meter(
                "ingress.one_rate",
                Some(0),
                Some(MeterConfig {
                    cir: 1,
                    pir: 2,
                    ..MeterConfig::default()
                }),
                None,
            ),
            "meter `ingress.one_rate`: pir 2 must equal cir 1: these meters have one rate",
        ),
        (
            meter("ingress.one_rate", Some(0), None, counts(1, 0, 0, 0)),
            "meter `ingress.one_rate`: the count of green packets can only be set to 0",
        ),
    ];
    for (entity, message) in cases {
        let refused = refusal(&mut controller, modify(entity)).await;
        assert_eq!(refused, (Code::InvalidArgument, message.to_owned()));
    }
}

fn everything(entry: TableEntry) -> TableEntry {
    TableEntry {
        counter_data: Some(CounterData::default()),
        meter_config: Some(MeterConfig::default()),
        meter_counter_data: Some(MeterCounterData::default()),
        ..entry
    }
}

#[tokio::test]
async fn entries_and_the_default_entry_have_a_meter_each() {
    let (rig, mut controller) = start().await;
    let two_rates = Some(MeterConfig {
        cir: 1,
        cburst: 1,
        pir: 2,
        pburst: 2,
        eburst: 0,
    });
    let hop = |dst: &[u8]| TableEntry {
        table_id: id("ingress.metered_hops"),
        r#match: vec![exact(1, dst)],
        ..TableEntry::default()
    };
    let here = hop(&[2, 0, 0, 0, 0, 1]);
    let entry = TableEntry {
        action: action("ingress.metered_to", &[&[7]]),
        meter_config: two_rates,
        ..here.clone()
    };
    add(&mut controller, entry.clone()).await;
    for _ in 0..3 {
        assert_eq!(send(&rig, &probe(0, 0, 0)).await[0].0, 7);
    }
    let found = find(&mut controller, everything(here.clone())).await;
    let expected = TableEntry {
        meter_counter_data: counts(1, 1, 1, 24),
        ..entry.clone()
    };
    assert_eq!(found, [expected]);
    // MODIFY without a config takes the meter off, without counts leaves them.
    let bare = TableEntry {
        meter_config: None,
        ..entry
    };
    controller.write(vec![modify(table(bare))]).await.unwrap();
    let direct = |table_entry, counter_data, config| {
        of(entity::Entity::DirectMeterEntry(DirectMeterEntry {
            table_entry: Some(table_entry),
            config,
            counter_data,
        }))
    };
    let ask = Some(MeterCounterData::default());
    let found = controller.read(vec![direct(here.clone(), ask, None)]);
    assert_eq!(
        found.await.unwrap(),
        [direct(here.clone(), counts(1, 1, 1, 24), None)]
    );
    // The default entry.
    let default = default_of("ingress.metered_hops");
    let updates = vec![modify(direct(default.clone(), None, two_rates))];
    controller.write(updates).await.unwrap();
    let mut frame = probe(0, 0, 0);
    frame[0] = 4;
    for _ in 0..2 {
        send(&rig, &frame).await;
    }
    let found = find(&mut controller, everything(default.clone())).await;
    assert_eq!(found[0].meter_config, two_rates);
    assert_eq!(found[0].meter_counter_data, counts(1, 1, 0, 24));
    let found = controller.read(vec![direct(default.clone(), ask, None)]);
    assert_eq!(
        found.await.unwrap(),
        [direct(default.clone(), counts(1, 1, 0, 24), two_rates)]
    );
    // Reset, it has nothing attached.
    controller
        .write(vec![modify(table(default.clone()))])
        .await
        .unwrap();
    let found = find(&mut controller, everything(default)).await;
    assert_eq!(found[0].meter_config, None);
    assert_eq!(found[0].meter_counter_data, counts(0, 0, 0, 0));
    let gone = controller.read(vec![direct(hop(&[9]), None, None)]);
    assert_eq!(gone.await.unwrap_err().code(), Code::NotFound);
    let inserted = insert(direct(here, None, None));
    assert_eq!(
        refusal(&mut controller, inserted).await,
        (
            Code::InvalidArgument,
            "the meter of an entry of table `ingress.metered_hops` can only be modified".to_owned()
        )
    );
}

#[tokio::test]
async fn constant_entries_and_the_default_entry_are_counted() {
    let (rig, mut controller) = start().await;
    for kind in [0x11, 0x1f, 0x0f, 0, 0, 0] {
        send(&rig, &probe(kind, 0, 0)).await;
    }
    let direct = |table_entry, data| {
        of(entity::Entity::DirectCounterEntry(DirectCounterEntry {
            table_entry: Some(table_entry),
            data,
        }))
    };
    let all = TableEntry {
        table_id: id("ingress.fixed"),
        ..TableEntry::default()
    };
    let fixed = find(&mut controller, everything(all.clone())).await;
    let mut told: Vec<_> = fixed
        .iter()
        .map(|entry| (entry.priority, entry.counter_data))
        .collect();
    told.sort_by_key(|(priority, _)| *priority);
    assert_eq!(told.len(), 2);
    assert_eq!(told[0].1, count(1, 0));
    assert_eq!(told[1].1, count(2, 0));
    assert!(fixed.iter().all(|entry| entry.is_const));
    let default = default_of("ingress.fixed");
    let found = controller.read(vec![direct(default.clone(), None)]).await;
    assert_eq!(found.unwrap(), [direct(default.clone(), count(3, 0))]);
    let updates = vec![modify(direct(default.clone(), count(9, 0)))];
    controller.write(updates).await.unwrap();
    let found = controller.read(vec![direct(default.clone(), None)]).await;
    assert_eq!(found.unwrap(), [direct(default, count(9, 0))]);
    let found = controller.read(vec![direct(all, None)]).await.unwrap();
    assert_eq!(found.len(), 2);
    let missing = by_kind("ingress.fixed", 1, None);
    let status = controller.read(vec![direct(missing, None)]).await;
    assert_eq!(status.unwrap_err().code(), Code::InvalidArgument);
}
