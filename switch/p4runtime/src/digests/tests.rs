//! Tests of digests.

use super::super::schema::DigestSchema;
use super::*;

const ID: u32 = 9;
const MS: u64 = 1_000;

fn schema() -> Schema {
    let mut schema = Schema::default();
    let digest = DigestSchema {
        id: ID,
        name: "learn".to_owned(),
        shape: Ok(Shape::Struct(vec![Shape::Bits(8)])),
    };
    schema.digests.insert(ID, digest);
    schema
}

fn entry(max_timeout_ms: i64, max_list_size: i32, ack_timeout_ms: i64) -> DigestEntry {
    DigestEntry {
        digest_id: ID,
        config: Some(Config {
            max_timeout_ns: max_timeout_ms * 1_000_000,
            max_list_size,
            ack_timeout_ns: ack_timeout_ms * 1_000_000,
        }),
    }
}

fn digests(max_timeout_ms: i64, max_list_size: i32, ack_timeout_ms: i64) -> Digests {
    let mut digests = Digests::default();
    let entry = entry(max_timeout_ms, max_list_size, ack_timeout_ms);
    digests.write(&schema(), Kind::Insert, &entry).unwrap();
    digests
}

fn offer(digests: &mut Digests, value: u64, now_us: u64) -> Option<(u64, Vec<u64>)> {
    let list = digests.offer(ID, &[Bits::from_u64(value)], now_us)?;
    Some(values(&list))
}

fn values(list: &List) -> (u64, Vec<u64>) {
    let values = list.messages.iter();
    let values = values.map(|fields| fields[0].to_u64().unwrap());
    (list.list_id, values.collect())
}

#[test]
fn a_list_is_sent_when_it_is_full() {
    let mut digests = digests(1_000, 3, 0);
    assert_eq!(offer(&mut digests, 1, 0), None);
    assert_eq!(offer(&mut digests, 2, 1), None);
    // A duplicate does not fill it.
    assert_eq!(offer(&mut digests, 1, 2), None);
    assert_eq!(offer(&mut digests, 3, 3), Some((1, vec![1, 2, 3])));
    assert_eq!(digests.counts().duplicates, 1);
    // Without acknowledgements the same data is news again.
    assert_eq!(offer(&mut digests, 1, 4), None);
    assert_eq!(digests.due_us(), Some(4 + 1_000 * MS));
}

#[test]
fn a_list_is_sent_when_its_first_message_has_waited() {
    let mut digests = digests(10, 100, 0);
    assert_eq!(digests.due_us(), None);
    offer(&mut digests, 1, 5 * MS);
    offer(&mut digests, 2, 9 * MS);
    assert_eq!(digests.due_us(), Some(15 * MS));
    assert_eq!(digests.poll(15 * MS - 1), []);
    let lists = digests.poll(15 * MS);
    assert_eq!(
        lists.iter().map(values).collect::<Vec<_>>(),
        [(1, vec![1, 2])]
    );
    assert_eq!(digests.poll(99 * MS), []);
}

#[test]
fn no_timeout_or_a_size_of_one_sends_at_once() {
    assert_eq!(offer(&mut digests(0, 100, 0), 1, 5), Some((1, vec![1])));
    assert_eq!(offer(&mut digests(1_000, 1, 0), 1, 5), Some((1, vec![1])));
}

#[test]
fn unacknowledged_messages_are_not_repeated() {
    let mut digests = digests(0, 1, 10);
    assert_eq!(offer(&mut digests, 1, 0), Some((1, vec![1])));
    assert_eq!(offer(&mut digests, 1, 10 * MS - 1), None);
    // After the timeout they are.
    assert_eq!(offer(&mut digests, 1, 10 * MS), Some((2, vec![1])));
    // After an acknowledgement of this list they are.
    digests.acknowledge(ID, 1);
    assert_eq!(offer(&mut digests, 1, 11 * MS), None);
    digests.acknowledge(ID, 2);
    assert_eq!(offer(&mut digests, 1, 12 * MS), Some((3, vec![1])));
    // Another primary has seen none.
    digests.forget_sent();
    assert_eq!(offer(&mut digests, 1, 13 * MS), Some((4, vec![1])));
}

#[test]
fn what_waits_for_acknowledgement_is_bounded() {
    let mut digests = digests(0, 1, 1_000_000);
    for value in 0..UNACKNOWLEDGED_MAX as u64 {
        assert!(offer(&mut digests, value, 0).is_some());
    }
    assert_eq!(offer(&mut digests, 0, 0), None);
    assert!(offer(&mut digests, UNACKNOWLEDGED_MAX as u64, 0).is_some());
    assert_eq!(digests.counts().forgotten, 1);
    // The oldest one was forgotten, the next one was not.
    assert_eq!(offer(&mut digests, 1, 0), None);
    assert!(offer(&mut digests, 0, 0).is_some());
}

#[test]
fn lists_without_a_size_are_bounded() {
    let mut digests = digests(1_000_000, 0, 0);
    for value in 0..LIST_MESSAGES_MAX as u64 - 1 {
        assert_eq!(offer(&mut digests, value, 0), None);
    }
    let (_, values) = offer(&mut digests, 1 << 40, 0).unwrap();
    assert_eq!(values.len(), LIST_MESSAGES_MAX);
}

#[test]
fn entries_are_inserted_once_and_modified_when_there() {
    let mut digests = Digests::default();
    let schema = schema();
    let mut code = |kind, entry: &DigestEntry| {
        let result = digests.write(&schema, kind, entry);
        result.map_err(|rejection| rejection.code)
    };
    let good = entry(1, 1, 1);
    assert_eq!(code(Kind::Modify, &good), Err(Code::NotFound));
    assert_eq!(code(Kind::Delete, &good), Err(Code::NotFound));
    assert_eq!(code(Kind::Insert, &good), Ok(()));
    assert_eq!(code(Kind::Insert, &good), Err(Code::AlreadyExists));
    assert_eq!(code(Kind::Modify, &entry(2, 2, 2)), Ok(()));
    let unknown = DigestEntry {
        digest_id: 8,
        config: None,
    };
    assert_eq!(code(Kind::Insert, &unknown), Err(Code::NotFound));
    let rejection = digests.write(&schema, Kind::Modify, &entry(1, -1, 1));
    assert_eq!(
        rejection.unwrap_err().message,
        "digest `learn`: max_list_size -1 is not valid: at least 0"
    );
    let found = digests.read(&schema, &DigestEntry::default()).unwrap();
    let expected = Entity {
        entity: Some(entity::Entity::DigestEntry(entry(2, 2, 2))),
    };
    assert_eq!(found, [expected]);
    digests.write(&schema, Kind::Delete, &good).unwrap();
    assert_eq!(digests.offer(ID, &[], 0), None);
    assert_eq!(digests.counts().disabled, 1);
}

#[test]
fn writes_are_taken_back() {
    let schema = schema();
    let mut digests = digests(1, 1, 1);
    let old = digests.read(&schema, &DigestEntry::default());
    digests.begin();
    digests
        .write(&schema, Kind::Delete, &entry(0, 0, 0))
        .unwrap();
    digests.rollback();
    assert_eq!(digests.read(&schema, &DigestEntry::default()), old);
    digests.begin();
    digests
        .write(&schema, Kind::Modify, &entry(5, 5, 5))
        .unwrap();
    digests.rollback();
    assert_eq!(digests.read(&schema, &DigestEntry::default()), old);
    digests.begin();
    digests
        .write(&schema, Kind::Modify, &entry(5, 5, 5))
        .unwrap();
    digests.commit();
    digests.rollback();
    assert_ne!(digests.read(&schema, &DigestEntry::default()), old);
}

#[test]
fn data_has_the_shape_of_its_type() {
    use super::super::proto::p4::v1::p4_data::Data;
    let shape = Shape::Struct(vec![
        Shape::Bits(48),
        Shape::Bool,
        Shape::Header(vec![8, 16]),
        Shape::Tuple(vec![Shape::Bits(9)]),
    ]);
    assert_eq!(shape.widths(), [48, 1, 8, 16, 9]);
    let fields: Vec<Bits> = [0x0102, 1, 0, 7, 5].map(Bits::from_u64).to_vec();
    let Some(Data::Struct(data)) = shape.data(&fields).data else {
        panic!("no struct")
    };
    let data: Vec<Data> = data
        .members
        .into_iter()
        .filter_map(|one| one.data)
        .collect();
    assert_eq!(data[0], Data::Bitstring(vec![1, 2]));
    assert_eq!(data[1], Data::Bool(true));
    let Data::Header(header) = &data[2] else {
        panic!("no header")
    };
    assert_eq!(header.bitstrings, [vec![0], vec![7]]);
    assert!(matches!(&data[3], Data::Tuple(tuple) if tuple.members.len() == 1));
}
