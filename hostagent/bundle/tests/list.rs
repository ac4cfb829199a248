//! Lists that nothing is made of, whoever sent them.

use proptest::prelude::*;
use prost::Message;
use std::fs;
use tempfile::TempDir;
use wormcast_bundle::list::{
    Attribute, Content, DEPTH_MAX, Directory, ENTRIES_MAX, Entry, Kind, List, PARTS_MAX, Run,
};
use wormcast_bundle::unpack::{Announced, Options, unpack};

fn entry(name: &[u8], directory: u32, kind: Kind) -> Entry {
    Entry {
        name: name.to_vec(),
        directory,
        mode: 0o644,
        kind: Some(kind),
        ..Entry::default()
    }
}

fn directory(name: &[u8], within: u32) -> Entry {
    entry(name, within, Kind::Directory(Directory {}))
}

fn file(bytes: u64) -> Kind {
    Kind::File(Content {
        bytes,
        ..Content::default()
    })
}

fn sparse(bytes: u64, runs: &[(u64, u64)]) -> Kind {
    let runs = runs.iter().map(|&(start, bytes)| Run { start, bytes });
    Kind::File(Content {
        bytes,
        sparse: true,
        runs: runs.collect(),
        ..Content::default()
    })
}

fn refused(entries: Vec<Entry>, why: &str) {
    let error = List {
        entries,
        block_bytes: 0,
    }
    .check()
    .unwrap_err();
    assert!(error.contains(why), "{error}, not {why}");
}

#[test]
fn names_that_lead_elsewhere_are_none() {
    for name in [
        &b""[..],
        b".",
        b"..",
        b"a/b",
        b"/etc",
        b"../x",
        b"a\0b",
        &[b'x'; 256],
    ] {
        refused(vec![entry(name, 0, file(0))], "has ");
    }
    assert_eq!(
        List {
            entries: vec![entry(b"...", 0, file(3))],
            block_bytes: 0,
        }
        .check(),
        Ok(3)
    );
}

#[test]
fn entries_lie_in_directories_before_them() {
    let why = "is in a directory that is none";
    refused(vec![entry(b"a", 1, file(0))], why);
    refused(vec![entry(b"a", 0, file(0)), entry(b"b", 1, file(0))], why);
    refused(vec![entry(b"a", 7, file(0))], why);
    let left = vec![
        directory(b"a", 0),
        directory(b"b", 0),
        entry(b"c", 1, file(0)),
    ];
    refused(left, why);
    let link = entry(b"a", 1, Kind::Symbolic(b"/etc".to_vec()));
    refused(
        vec![directory(b"d", 0), link, entry(b"passwd", 2, file(0))],
        why,
    );
    let deep: Vec<Entry> = (0..=DEPTH_MAX as u32)
        .map(|at| directory(b"d", at))
        .collect();
    assert!(
        List {
            entries: deep[..DEPTH_MAX].to_vec(),
            block_bytes: 0,
        }
        .check()
        .is_ok()
    );
    refused(deep, "directories in each other");
}

#[test]
fn content_stays_in_its_bounds() {
    for wrong in [
        sparse(10, &[(8, 3)]),
        sparse(10, &[(4, 2), (5, 1)]),
        sparse(10, &[(4, 0)]),
        sparse(u64::MAX, &[(u64::MAX, 2)]),
    ] {
        refused(vec![entry(b"a", 0, wrong)], "content out of bounds");
    }
    let sum = vec![entry(b"a", 0, file(u64::MAX)), entry(b"b", 0, file(1))];
    refused(sum, "content out of bounds");
    let runs = vec![entry(b"a", 0, sparse(10, &[(0, 2), (2, 1), (9, 1)]))];
    assert_eq!(
        List {
            entries: runs,
            block_bytes: 0
        }
        .check(),
        Ok(4)
    );
    let many = vec![entry(b"a", 0, file(0)); ENTRIES_MAX + 1];
    refused(many, "at most");
}

#[test]
fn links_and_attributes_are_what_they_say() {
    let why = "is another name of no file before it";
    for to in [0, 1, 2, 9] {
        refused(vec![entry(b"a", 0, Kind::Hard(to))], why);
    }
    refused(vec![directory(b"a", 0), entry(b"b", 0, Kind::Hard(1))], why);
    let in_directory = vec![
        directory(b"d", 0),
        entry(b"a", 1, Kind::Symbolic(Vec::new())),
    ];
    refused(in_directory, "link to nowhere");
    let top = entry(b"a", 0, Kind::Symbolic(b"/etc".to_vec()));
    refused(vec![top], "in no directory");
    refused(Vec::new(), "nothing is in it");
    let none = Entry {
        name: b"a".to_vec(),
        ..Entry::default()
    };
    refused(vec![none], "unknown kind");
    let mut with = entry(b"a", 0, file(0));
    with.mode = 0o4755;
    refused(vec![with], "mode beyond 0777");
    let mut with = entry(b"a", 0, file(0));
    with.attributes = vec![Attribute {
        name: b"security.capability".to_vec(),
        value: vec![1],
    }];
    refused(vec![with], "not of the class user");
    let mut with = entry(b"a", 0, file(0));
    with.nanoseconds = 1_000_000_000;
    refused(vec![with], "nanoseconds");
}

#[test]
fn two_of_one_name_in_a_directory_leave_nothing() {
    let to = TempDir::new().unwrap();
    let first = directory(b"d", 0);
    let link = entry(b"a", 1, Kind::Symbolic(b"/tmp".to_vec()));
    for second in [entry(b"a", 1, file(0)), directory(b"a", 1)] {
        let list = List {
            entries: vec![first.clone(), link.clone(), second],
            block_bytes: 0,
        };
        let (encoded, right) = (list.encode_to_vec(), announced(&list, 0));
        let error = unpack(&mut &*encoded, right, to.path(), OPTIONS, None).unwrap_err();
        let why = "entry 3 has the name 'a' of another in its directory";
        assert_eq!(error.to_string(), why);
    }
    assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0);
}

fn announced(list: &List, content: u64) -> Announced {
    let list_bytes = list.encoded_len() as u64;
    Announced {
        entries: list.entries.len() as u64,
        list_bytes,
        bytes: list_bytes + content,
    }
}

#[test]
fn a_list_that_would_be_large_in_memory_is_not_decoded() {
    let to = TempDir::new().unwrap();
    // Each entry is two bytes long, or part of one that is.
    let part = [0x3a, 0].repeat(PARTS_MAX + 1);
    let mut entry = vec![0x0a];
    prost::encoding::encode_varint(part.len() as u64, &mut entry);
    entry.extend(part);
    for (encoded, why) in [
        (
            [0x0a, 0].repeat(ENTRIES_MAX + 1),
            "1048577 files and directories",
        ),
        ([0x0a, 0].repeat(7), "its list has 7 entries, 1 announced"),
        (entry, "1048577 runs"),
        (vec![0x0a, 5, 1], "its list is none"),
        (vec![0xff; 11], "its list is none"),
    ] {
        let length = encoded.len() as u64;
        let announced = Announced {
            entries: 1,
            list_bytes: length,
            bytes: length,
        };
        let error =
            unpack(&mut encoded.as_slice(), announced, to.path(), OPTIONS, None).unwrap_err();
        assert!(error.to_string().contains(why), "{error}, not {why}");
    }
}

const OPTIONS: Options = Options {
    umask: 0o022,
    preserve: true,
    owners: false,
    attributes: true,
    sync: false,
};

fn names() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(b"..".to_vec()),
        Just(b"../escaped".to_vec()),
        Just(b"/tmp/escaped".to_vec()),
        Just(b"link".to_vec()),
        "[ab]".prop_map(String::into_bytes),
    ]
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Directory(Directory {})),
        (0..9_u64).prop_map(file),
        Just(Kind::Symbolic(b"..".to_vec())),
        Just(Kind::Symbolic(b"../outside".to_vec())),
        (0..5_u32).prop_map(Kind::Hard),
    ]
}

proptest! {
    /// Whatever a list says, nothing outside of the target changes; and what is refused leaves nothing in it.
    #[test]
    fn nothing_is_written_outside(drawn in prop::collection::vec((names(), 0..4_u32, kinds()), 1..9)) {
        let root = TempDir::new().unwrap();
        let (outside, to) = (root.path().join("outside"), root.path().join("to"));
        fs::write(&outside, b"untouched").unwrap();
        fs::create_dir(&to).unwrap();
        let entries = drawn.into_iter().map(|(name, within, kind)| entry(&name, within, kind)).collect();
        let list = List { entries, block_bytes: 0 };
        let sum = list.check();
        let mut bytes = list.encode_to_vec();
        let content = sum.clone().unwrap_or(8);
        bytes.extend(vec![b'!'; content as usize]);
        let made = unpack(&mut bytes.as_slice(), announced(&list, content), &to, OPTIONS, None);
        prop_assert!(sum.is_ok() || made.is_err());
        drop(made);
        prop_assert_eq!(fs::read_dir(&to).unwrap().count(), 0);
        prop_assert_eq!(fs::read(&outside).unwrap(), b"untouched");
        prop_assert_eq!(fs::read_dir(root.path()).unwrap().count(), 2);
    }
}
