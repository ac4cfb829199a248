//! Only what a receiver lacks comes, whatever it has and however the transfer before broke.

use crate::round::{PLAIN, announced, bytes, example, packed, tree};
use proptest::prelude::*;
use prost::Message;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use wormcast_bundle::compare::Offered;
use wormcast_bundle::kept::KEPT_PREFIX;
use wormcast_bundle::list::{BLOCK_BYTES_MIN, Content, Entry, Kind, List, Run};
use wormcast_bundle::offer::{ANSWER_BYTES_MAX, Offer, decode_answer, encode_answer, units};
use wormcast_bundle::pack::{PackError, Packed};
use wormcast_bundle::plan::Plan;
use wormcast_bundle::unpack::{Announced, Options, UnpackError, Unpacked, unpack};

pub const BLOCK: usize = BLOCK_BYTES_MIN as usize;

/// Bytes of which no block is like another.
pub fn content(length: usize, seed: u32) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

pub fn read(offer: &Offer) -> Result<Offered, UnpackError> {
    let encoded = offer.encoded();
    let announced = Announced {
        entries: offer.entries() as u64,
        list_bytes: encoded.len() as u64,
        bytes: encoded.len() as u64,
    };
    Offered::read(&mut &*encoded, announced)
}

pub fn compared(offer: &Offer, to: &Path, exact: bool) -> Result<Plan, UnpackError> {
    let offered = read(offer)?;
    let names = offered.tops().map(|top| vec![top.to_vec()]).collect();
    offered.compare(to, names, &PLAIN, exact)
}

pub fn compared_with(
    offer: &Offer,
    to: &Path,
    names: Vec<Vec<Vec<u8>>>,
    options: &Options,
    exact: bool,
) -> Result<Plan, UnpackError> {
    read(offer)?.compare(to, names, options, exact)
}

/// What goes to receivers, who have answered with these plans.
pub fn bundle(offer: &mut Offer, plans: &[&Plan]) -> Packed {
    offer.begin();
    for plan in plans {
        assert!(offer.note(&plan.answer));
    }
    offer.bundle().unwrap()
}

pub fn received(packed: &Packed, to: &Path, plan: &Plan) -> Result<Unpacked, UnpackError> {
    let sent = bytes(packed);
    unpack(
        &mut sent.as_slice(),
        announced(packed),
        to,
        PLAIN,
        Some(&[plan]),
    )
}

pub fn place(mut unpacked: Unpacked) {
    let names: Vec<PathBuf> = unpacked
        .tops()
        .map(|name| OsStr::from_bytes(name).into())
        .collect();
    for (index, name) in names.iter().enumerate() {
        assert!(unpacked.place(index, name, true).unwrap());
    }
    unpacked.done();
}

pub fn kept(to: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(to).unwrap().map(|it| it.unwrap().path());
    let hidden = |path: &PathBuf| path.file_name().unwrap().as_bytes()[0] == b'.';
    entries.filter(hidden).collect()
}

/// A directory as a broken transfer of this list leaves one.
pub fn left_of(offer: &Offer, to: &Path, number: usize) -> PathBuf {
    let identity = read(offer).unwrap().identity();
    let identity: String = identity.iter().map(|byte| format!("{byte:02x}")).collect();
    let left = to.join(format!("{KEPT_PREFIX}{identity}-{number:08}"));
    fs::DirBuilder::new().mode(0o700).create(&left).unwrap();
    left
}

#[test]
fn only_changed_blocks_come() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let path = from.path().join("big");
    let mut data = content(40 * BLOCK + 17, 1);
    fs::write(to.path().join("big"), &data).unwrap();
    data[5 * BLOCK + 3] ^= 1;
    data[40 * BLOCK + 2] ^= 1;
    fs::write(&path, &data).unwrap();
    let mut offer = Offer::new(&packed(&path)).unwrap();
    let plan = compared(&offer, to.path(), false).unwrap();
    let sent = bundle(&mut offer, &[&plan]);
    assert_eq!(sent.bytes() - sent.list_bytes(), BLOCK as u64 + 17);
    place(received(&sent, to.path(), &plan).unwrap());
    assert_eq!(fs::read(to.path().join("big")).unwrap(), data);
    // Another has nothing: all of it comes, also for the one above.
    let empty = TempDir::new().unwrap();
    let other = compared(&offer, empty.path(), false).unwrap();
    let sent = bundle(&mut offer, &[&plan, &other]);
    assert_eq!(sent.bytes() - sent.list_bytes(), data.len() as u64);
    place(received(&sent, empty.path(), &other).unwrap());
    assert_eq!(fs::read(empty.path().join("big")).unwrap(), data);
}

#[test]
fn a_broken_transfer_goes_on_where_it_was() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let root = example(from.path());
    fs::write(root.join("zz"), content(12 * BLOCK, 2)).unwrap();
    let mut offer = Offer::new(&packed(&root)).unwrap();
    let mut before = u64::MAX;
    for part in 1..=4 {
        let plan = compared(&offer, to.path(), false).unwrap();
        let sent = bundle(&mut offer, &[&plan]);
        let now = sent.bytes() - sent.list_bytes();
        assert!(now < before, "{now} after {before}");
        before = now;
        if part == 4 {
            place(received(&sent, to.path(), &plan).unwrap());
            break;
        }
        // Each breaks after some blocks.
        let all = bytes(&sent);
        let cut = (sent.list_bytes() as usize + 5 * BLOCK + 99).min(all.len() - 1);
        let broken = unpack(
            &mut &all[..cut],
            announced(&sent),
            to.path(),
            PLAIN,
            Some(&[&plan]),
        );
        assert!(matches!(broken, Err(UnpackError::Damaged(_))));
        let names: Vec<_> = fs::read_dir(to.path()).unwrap().collect();
        assert_eq!(kept(to.path()).len(), names.len(), "nothing under a name");
    }
    assert!(before < 8 * BLOCK as u64, "{before}");
    let name = root.file_name().unwrap();
    assert_eq!(tree(&to.path().join(name)), tree(&root));
    assert_eq!(kept(to.path()), Vec::<PathBuf>::new());
}

#[test]
fn what_is_there_as_it_is_to_be_stays() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let root = example(from.path());
    let name = root.file_name().unwrap().to_owned();
    let mut offer = Offer::new(&packed(&root)).unwrap();
    let plan = compared(&offer, to.path(), false).unwrap();
    let sent = bundle(&mut offer, &[&plan]);
    place(received(&sent, to.path(), &plan).unwrap());
    let inode = || fs::metadata(to.path().join(&name)).unwrap().ino();
    let (before, plan) = (inode(), compared(&offer, to.path(), true).unwrap());
    let sent = bundle(&mut offer, &[&plan]);
    assert_eq!(sent.bytes(), sent.list_bytes());
    let unpacked = received(&sent, to.path(), &plan).unwrap();
    assert_eq!(unpacked.tops().count(), 0);
    assert_eq!(unpacked.unchanged().unwrap(), [name.as_bytes()]);
    place(unpacked);
    assert_eq!(inode(), before);
    // What others lack comes here too.
    let empty = TempDir::new().unwrap();
    let other = compared(&offer, empty.path(), false).unwrap();
    let sent = bundle(&mut offer, &[&plan, &other]);
    assert!(sent.bytes() > sent.list_bytes());
    place(received(&sent, to.path(), &plan).unwrap());
    assert_eq!(inode(), before);
    // With one file more it is another directory.
    let more = to.path().join(&name).join("more");
    fs::write(&more, b"").unwrap();
    let error = received(&sent, to.path(), &plan).unwrap_err();
    assert!(error.to_string().contains("changed here"), "{error}");
    let plan = compared(&offer, to.path(), false).unwrap();
    let sent = bundle(&mut offer, &[&plan]);
    assert_eq!(sent.bytes(), sent.list_bytes());
    place(received(&sent, to.path(), &plan).unwrap());
    assert_ne!(inode(), before);
    assert_eq!(tree(&to.path().join(&name)), tree(&root));
}

#[test]
fn another_time_or_mode_is_a_change_if_that_is_asked_for() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let path = from.path().join("a");
    fs::write(&path, b"same").unwrap();
    fs::write(to.path().join("a"), b"same").unwrap();
    let later = SystemTime::now() + Duration::from_secs(9);
    let there = fs::File::options()
        .write(true)
        .open(to.path().join("a"))
        .unwrap();
    there.set_modified(later).unwrap();
    let mut offer = Offer::new(&packed(&path)).unwrap();
    for (exact, tops) in [(false, 0), (true, 1)] {
        let plan = compared(&offer, to.path(), exact).unwrap();
        let sent = bundle(&mut offer, &[&plan]);
        assert_eq!(sent.bytes(), sent.list_bytes());
        let unpacked = received(&sent, to.path(), &plan).unwrap();
        assert_eq!(unpacked.tops().count(), tops);
    }
}

#[test]
fn what_changes_here_meanwhile_makes_no_wrong_file() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let path = from.path().join("big");
    let mut data = content(8 * BLOCK, 3);
    let there = to.path().join("big");
    fs::write(&there, &data).unwrap();
    data[0] ^= 1;
    fs::write(&path, &data).unwrap();
    let mut offer = Offer::new(&packed(&path)).unwrap();
    let plan = compared(&offer, to.path(), false).unwrap();
    let sent = bundle(&mut offer, &[&plan]);
    let file = fs::File::options().write(true).open(&there).unwrap();
    file.write_all_at(b"mine", 5 * BLOCK as u64).unwrap();
    let mine = fs::read(&there).unwrap();
    let error = received(&sent, to.path(), &plan).unwrap_err();
    assert_eq!(error.to_string(), "big changed here since the list came");
    assert_eq!(fs::read(&there).unwrap(), mine);
    file.set_len(7).unwrap();
    let error = received(&sent, to.path(), &plan).unwrap_err();
    assert!(matches!(error, UnpackError::Changed(_)), "{error}");
    fs::remove_file(&there).unwrap();
    let error = received(&sent, to.path(), &plan).unwrap_err();
    assert!(matches!(error, UnpackError::Changed(_)), "{error}");
    // Looked at anew it goes on, with what those have left.
    let plan = compared(&offer, to.path(), false).unwrap();
    let sent = bundle(&mut offer, &[&plan]);
    place(received(&sent, to.path(), &plan).unwrap());
    assert_eq!(fs::read(&there).unwrap(), data);
}

#[test]
fn what_a_broken_transfer_left_is_not_written_to_where_others_have_it() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let path = from.path().join("big");
    let data = content(8 * BLOCK, 4);
    fs::write(&path, &data).unwrap();
    let mut offer = Offer::new(&packed(&path)).unwrap();
    let left = left_of(&offer, to.path(), 0);
    let mut old = data.clone();
    old[0] ^= 1;
    fs::write(left.join("big"), &old).unwrap();
    fs::hard_link(left.join("big"), to.path().join("mine")).unwrap();
    let plan = compared(&offer, to.path(), false).unwrap();
    let sent = bundle(&mut offer, &[&plan]);
    assert_eq!(sent.bytes() - sent.list_bytes(), BLOCK as u64);
    place(received(&sent, to.path(), &plan).unwrap());
    assert_eq!(fs::read(to.path().join("big")).unwrap(), data);
    assert_eq!(fs::read(to.path().join("mine")).unwrap(), old);
}

#[test]
fn what_a_broken_transfer_left_is_gone_on_with_not_copied() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let path = from.path().join("big");
    let data = content(8 * BLOCK, 5);
    fs::write(&path, &data).unwrap();
    let mut offer = Offer::new(&packed(&path)).unwrap();
    let left = left_of(&offer, to.path(), 0);
    fs::write(left.join("big"), &data[..3 * BLOCK + 5]).unwrap();
    let inode = fs::metadata(left.join("big")).unwrap().ino();
    let plan = compared(&offer, to.path(), false).unwrap();
    let sent = bundle(&mut offer, &[&plan]);
    assert_eq!(sent.bytes() - sent.list_bytes(), 5 * BLOCK as u64);
    place(received(&sent, to.path(), &plan).unwrap());
    let placed = to.path().join("big");
    assert_eq!(fs::read(&placed).unwrap(), data);
    assert_eq!(fs::metadata(&placed).unwrap().ino(), inode);
    let mode = |path| fs::metadata(path).unwrap().mode();
    assert_eq!(mode(&placed), mode(&path));
}

#[test]
fn holes_stay_holes_where_only_a_part_comes() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let path = from.path().join("sparse");
    let file = fs::File::create(&path).unwrap();
    file.write_all_at(&content(3 * BLOCK, 6), 4 * BLOCK as u64)
        .unwrap();
    file.write_all_at(b"end", 30 * BLOCK as u64).unwrap();
    file.set_len(64 * BLOCK as u64).unwrap();
    fs::copy(&path, to.path().join("sparse")).unwrap();
    file.write_all_at(b"new", 5 * BLOCK as u64).unwrap();
    let packed = packed(&path);
    let Some(Kind::File(Content { sparse: true, .. })) = packed.list().entries[0].kind else {
        return; // this file system tells no holes
    };
    let mut offer = Offer::new(&packed).unwrap();
    let plan = compared(&offer, to.path(), false).unwrap();
    let sent = bundle(&mut offer, &[&plan]);
    assert_eq!(sent.bytes() - sent.list_bytes(), BLOCK as u64);
    place(received(&sent, to.path(), &plan).unwrap());
    let placed = to.path().join("sparse");
    assert_eq!(fs::read(&placed).unwrap(), fs::read(&path).unwrap());
    assert!(fs::metadata(&placed).unwrap().blocks() * 512 < 8 * BLOCK as u64);
}

#[test]
fn a_part_is_for_nobody_who_was_not_asked() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let path = from.path().join("a");
    fs::write(&path, b"content").unwrap();
    fs::write(to.path().join("a"), b"content").unwrap();
    let mut offer = Offer::new(&packed(&path)).unwrap();
    let plan = compared(&offer, to.path(), false).unwrap();
    let sent = bundle(&mut offer, &[&plan]);
    let other = from.path().join("b");
    fs::write(&other, b"content").unwrap();
    let elsewhere = compared(&Offer::new(&packed(&other)).unwrap(), to.path(), false).unwrap();
    for plans in [None, Some(&[][..]), Some(&[&elsewhere][..])] {
        let mut read = &*bytes(&sent);
        let error = unpack(&mut read, announced(&sent), to.path(), PLAIN, plans).unwrap_err();
        assert!(error.to_string().contains("was not offered"), "{error}");
    }
    assert!(!offer.note(&elsewhere.answer));
}

#[test]
fn hashes_that_are_none_are_refused() {
    let refused = |list: &List, why: &str| {
        let encoded = list.encode_to_vec();
        let length = encoded.len() as u64;
        let announced = Announced {
            entries: list.entries.len() as u64,
            list_bytes: length,
            bytes: length,
        };
        let error = Offered::read(&mut encoded.as_slice(), announced).unwrap_err();
        assert!(error.to_string().contains(why), "{error}, not {why}");
    };
    let file = |content: Content| List {
        entries: vec![Entry {
            name: b"a".to_vec(),
            kind: Some(Kind::File(content)),
            ..Entry::default()
        }],
        block_bytes: BLOCK_BYTES_MIN,
    };
    let good = Content {
        bytes: 5 * BLOCK_BYTES_MIN,
        sha256: vec![0; 32],
        blocks: vec![0; 5 * 32],
        ..Content::default()
    };
    assert_eq!(units(&file(good.clone())).unwrap().len(), 5);
    let wrong = [
        Content {
            sha256: vec![0; 31],
            ..good.clone()
        },
        Content {
            blocks: vec![0; 4 * 32],
            ..good.clone()
        },
        Content {
            blocks: vec![0; 5 * 32 + 1],
            ..good.clone()
        },
        Content {
            bytes: 9,
            ..good.clone()
        },
        Content {
            partial: true,
            ..good.clone()
        },
        Content {
            bytes: u64::MAX,
            ..good.clone()
        },
    ];
    for content in wrong {
        refused(&file(content), "has not the hashes");
    }
    let mut list = file(good.clone());
    for block_bytes in [0, 1, BLOCK_BYTES_MIN - 1, BLOCK_BYTES_MIN + 1, u64::MAX] {
        list.block_bytes = block_bytes;
        refused(&list, "powers of two");
    }
    let sparse = Content {
        bytes: 1 << 41,
        sparse: true,
        ..good.clone()
    };
    refused(&file(sparse), "at most 1099511627776");
    let sent = |start, bytes| Content {
        partial: true,
        sent: vec![Run { start, bytes }],
        ..good.clone()
    };
    for (start, bytes) in [(0, 5 * BLOCK_BYTES_MIN + 1), (u64::MAX, 2), (3, 0)] {
        refused(&file(sent(start, bytes)), "content out of bounds");
    }
    let hole = Content {
        sparse: true,
        runs: vec![
            Run { start: 0, bytes: 9 },
            Run {
                start: 20,
                bytes: 9,
            },
        ],
        ..sent(8, 13)
    };
    refused(&file(hole), "content out of bounds");
}

#[test]
fn there_is_room_before_anything_comes() {
    let to = TempDir::new().unwrap();
    let content = Content {
        bytes: 1 << 60,
        sha256: vec![0; 32],
        blocks: vec![0; 32 << 14],
        ..Content::default()
    };
    let list = List {
        entries: vec![Entry {
            name: b"a".to_vec(),
            kind: Some(Kind::File(content)),
            ..Entry::default()
        }],
        block_bytes: 1 << 46,
    };
    let encoded = list.encode_to_vec();
    let length = encoded.len() as u64;
    let announced = Announced {
        entries: 1,
        list_bytes: length,
        bytes: length,
    };
    let offered = Offered::read(&mut encoded.as_slice(), announced).unwrap();
    let error = offered
        .compare(to.path(), vec![vec![b"a".to_vec()]], &PLAIN, false)
        .unwrap_err();
    assert!(matches!(error, UnpackError::NoSpace(_)), "{error}");
}

#[test]
fn what_is_whole_and_was_not_placed_is_gone_on_with() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let path = from.path().join("a");
    fs::write(&path, content(BLOCK, 7)).unwrap();
    let mut offer = Offer::new(&packed(&path)).unwrap();
    let plan = compared(&offer, to.path(), false).unwrap();
    let sent = bundle(&mut offer, &[&plan]);
    let options = Options {
        sync: true,
        ..PLAIN
    };
    let all = bytes(&sent);
    let unpacked = unpack(
        &mut &*all,
        announced(&sent),
        to.path(),
        options,
        Some(&[&plan]),
    )
    .unwrap();
    // It is whole and was not placed: the next transfer goes on with it.
    drop(unpacked);
    assert_eq!(kept(to.path()).len(), 1);
    let plan = compared(&offer, to.path(), false).unwrap();
    let sent = bundle(&mut offer, &[&plan]);
    assert_eq!(sent.bytes(), sent.list_bytes());
}

#[test]
fn a_file_that_changes_while_it_is_hashed_is_not_offered() {
    let from = TempDir::new().unwrap();
    let path = from.path().join("a");
    fs::write(&path, b"before").unwrap();
    let packed = packed(&path);
    fs::write(&path, b"another").unwrap();
    let error = Offer::new(&packed).unwrap_err();
    assert!(matches!(error, PackError::Changed(_)), "{error}");
}

#[test]
fn answers_of_others_say_nothing() {
    let identity = [7; 32];
    let lacking = [false, true, true, false];
    let answer = encode_answer(&identity, &lacking);
    assert_eq!(decode_answer(&answer, &identity, 4).unwrap(), lacking);
    for (wrong, identity, units) in [
        (answer.clone(), [8; 32], 4),
        (answer.clone(), identity, 3),
        (answer.clone(), identity, 5),
        (answer[..answer.len() - 1].to_vec(), identity, 4),
        ([&answer[..], &[0xff; 10]].concat(), identity, 4),
        (
            [&identity[..], &[0; ANSWER_BYTES_MAX]].concat(),
            identity,
            0,
        ),
        ([&identity[..], &[0xff; 9], &[1]].concat(), identity, 4),
        (Vec::new(), identity, 4),
    ] {
        assert_eq!(decode_answer(&wrong, &identity, units), None, "{wrong:?}");
    }
}

proptest! {
    /// However long it would be, an answer is short, and names all that is lacking.
    #[test]
    fn answers_leave_out_nothing(lacking in prop::collection::vec(any::<bool>(), 0..300), times in 1..2000_usize) {
        let lacking = lacking.repeat(times);
        let answer = encode_answer(&[1; 32], &lacking);
        prop_assert!(answer.len() <= ANSWER_BYTES_MAX);
        let decoded = decode_answer(&answer, &[1; 32], lacking.len()).unwrap();
        prop_assert!(lacking.iter().zip(&decoded).all(|(lacks, said)| *said || !lacks));
        if lacking.len() < 10_000 {
            prop_assert_eq!(decoded, lacking);
        }
    }
}
