//! What is told as unchanged is so, and stays so until the rest has its names.

use crate::changed::{BLOCK, bundle, compared, compared_with, content, place, read, received};
use crate::round::{PLAIN, announced, bytes, packed, tree};
use rustix::fs::{XattrFlags, inotify};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt, chown};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use wormcast_bundle::offer::{Offer, decode_answer};
use wormcast_bundle::pack::{self, Packed, pack};
use wormcast_bundle::unpack::{Options, unpack};

/// Does something once a part is read.
struct Meanwhile<'a, F: FnMut()> {
    first: &'a [u8],
    rest: &'a [u8],
    then: Option<F>,
}

impl<F: FnMut()> Read for Meanwhile<'_, F> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if !self.first.is_empty() {
            return self.first.read(to);
        }
        if let Some(mut then) = self.then.take() {
            then();
        }
        self.rest.read(to)
    }
}

/// Waits until a file has been read in part.
fn once_read(path: &Path) -> impl FnOnce() + Send + use<> {
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
    inotify::add_watch(&watch, path, inotify::WatchFlags::ACCESS).unwrap();
    move || {
        File::from(watch).read_exact(&mut [0; 16]).unwrap();
    }
}

fn packed_tops(from: &Path, names: &[&str]) -> Packed {
    let paths: Vec<PathBuf> = names.iter().map(|name| from.join(name)).collect();
    pack(&paths, &pack::Options::default()).unwrap()
}

/// Compares a small file and a large one behind it, of which one is written once so much of the large one is read.
fn written_while_compared(name: &str) {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    for (name, blocks) in [("a", 1), ("b", 64)] {
        let data = content(blocks * BLOCK, 1);
        fs::write(from.path().join(name), &data).unwrap();
        fs::write(to.path().join(name), &data).unwrap();
    }
    let here = to.path().join(name);
    let mut offer = Offer::new(&packed_tops(from.path(), &["a", "b"])).unwrap();
    let file = File::options().write(true).open(&here).unwrap();
    let wait = once_read(&to.path().join("b"));
    let plan = std::thread::scope(|scope| {
        scope.spawn(move || {
            wait();
            file.write_all_at(b"mine", 3).unwrap();
        });
        compared(&offer, to.path(), false).unwrap()
    });
    let sent = bundle(&mut offer, &[&plan]);
    let Err(error) = received(&sent, to.path(), &plan) else {
        panic!("{name} was told as unchanged");
    };
    let why = format!("{name} changed here since the list came");
    assert_eq!(error.to_string(), why);
    assert_eq!(&fs::read(&here).unwrap()[3..7], b"mine");
}

#[test]
fn a_file_that_is_written_while_it_is_compared_is_not_unchanged() {
    written_while_compared("b");
}

#[test]
fn a_file_that_is_written_after_it_was_compared_is_not_unchanged() {
    written_while_compared("a");
}

#[test]
fn what_is_unchanged_is_so_when_all_has_come() {
    let from = TempDir::new().unwrap();
    fs::write(from.path().join("a"), b"same").unwrap();
    fs::write(from.path().join("b"), content(3 * BLOCK, 2)).unwrap();
    let mut offer = Offer::new(&packed_tops(from.path(), &["a", "b"])).unwrap();
    for is_changed in [false, true] {
        let to = TempDir::new().unwrap();
        let here = to.path().join("a");
        fs::write(&here, b"same").unwrap();
        let plan = compared(&offer, to.path(), false).unwrap();
        let sent = bundle(&mut offer, &[&plan]);
        let all = bytes(&sent);
        let (first, rest) = all.split_at(sent.list_bytes() as usize + BLOCK);
        let then = Some(|| {
            if is_changed {
                fs::write(&here, b"mine").unwrap();
            }
        });
        let mut meanwhile = Meanwhile { first, rest, then };
        let whole = announced(&sent);
        let unpacked = unpack(&mut meanwhile, whole, to.path(), PLAIN, Some(&[&plan])).unwrap();
        let unchanged = unpacked.unchanged().map_err(|error| error.to_string());
        if is_changed {
            let why = "a changed here since the list came";
            assert_eq!(unchanged.unwrap_err(), why);
        } else {
            assert_eq!(unchanged.unwrap(), [b"a"]);
        }
    }
}

#[test]
fn one_file_with_two_names_at_the_top_stays_one() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    fs::write(from.path().join("a"), content(2 * BLOCK, 3)).unwrap();
    fs::create_dir(from.path().join("c")).unwrap();
    for name in ["b", "c/d"] {
        fs::hard_link(from.path().join("a"), from.path().join(name)).unwrap();
    }
    let mut offer = Offer::new(&packed_tops(from.path(), &["a", "b", "c"])).unwrap();
    let mut receive = |tops: usize| {
        let plan = compared(&offer, to.path(), true).unwrap();
        let sent = bundle(&mut offer, &[&plan]);
        let unpacked = received(&sent, to.path(), &plan).unwrap();
        assert_eq!(unpacked.tops().count(), tops);
        place(unpacked);
        let about = |name| fs::metadata(to.path().join(name)).unwrap();
        assert_eq!(about("a").nlink(), 3);
        for name in ["b", "c/d"] {
            assert_eq!(about(name).ino(), about("a").ino());
        }
    };
    receive(3);
    receive(0);
    fs::remove_file(to.path().join("b")).unwrap();
    receive(3);
    // What is the same is another file.
    fs::remove_file(to.path().join("c/d")).unwrap();
    fs::copy(to.path().join("a"), to.path().join("c/d")).unwrap();
    receive(3);
    receive(0);
    assert_eq!(tree(&to.path().join("c")), tree(&from.path().join("c")));
}

#[test]
fn no_file_is_that_of_two_names() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let names: Vec<String> = (0..6).map(|number| format!("f{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for name in &names {
        fs::write(from.path().join(name), b"same").unwrap();
    }
    fs::write(to.path().join("same"), b"same").unwrap();
    let mut offer = Offer::new(&packed_tops(from.path(), &names)).unwrap();
    let here = vec![vec![b"same".to_vec()]; names.len()];
    let plan = compared_with(&offer, to.path(), here, &PLAIN, false).unwrap();
    let sent = bundle(&mut offer, &[&plan]);
    let unpacked = received(&sent, to.path(), &plan).unwrap();
    assert_eq!(unpacked.unchanged().unwrap(), [b"same"]);
    assert_eq!(unpacked.tops().count(), 5);
    // Nor is one looked at for each of any number of names.
    let lacking = decode_answer(&plan.answer, &plan.identity, names.len()).unwrap();
    assert_eq!(lacking, [false, false, false, false, true, true]);
}

#[test]
fn with_owners_and_attributes_what_has_these_is_unchanged() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let top = from.path().join("d");
    fs::create_dir(&top).unwrap();
    fs::write(top.join("f"), b"content").unwrap();
    let (name, flags) = ("user.wormcast", XattrFlags::empty());
    let set = |path: &Path, value: &[u8]| rustix::fs::setxattr(path, name, value, flags).is_ok();
    let attributes = set(&top.join("f"), b"1") && set(&top, b"2");
    let whole = pack::Options {
        attributes,
        owners: true,
        ..pack::Options::default()
    };
    let options = Options {
        attributes,
        owners: true,
        ..PLAIN
    };
    let mut offer = Offer::new(&pack(&[top], &whole).unwrap()).unwrap();
    let mut made = || {
        let names = vec![vec![b"d".to_vec()]];
        let plan = compared_with(&offer, to.path(), names, &options, true).unwrap();
        let sent = bundle(&mut offer, &[&plan]);
        let (all, right) = (bytes(&sent), announced(&sent));
        let unpacked = unpack(&mut &*all, right, to.path(), options, Some(&[&plan])).unwrap();
        let made = unpacked.tops().count();
        place(unpacked);
        made
    };
    assert_eq!((made(), made()), (1, 0));
    let there = to.path().join("d");
    if attributes {
        for path in [&there, &there.join("f")] {
            assert!(set(path, b"other"));
            assert_eq!((made(), made()), (1, 0));
            rustix::fs::removexattr(path, name).unwrap();
            assert_eq!((made(), made()), (1, 0));
        }
    }
    if chown(there.join("f"), Some(4242), Some(4243)).is_ok() {
        assert_eq!((made(), made()), (1, 0));
    }
}

#[test]
fn what_changed_at_its_sender_unseen_is_nowhere() {
    let from = TempDir::new().unwrap();
    let path = from.path().join("a");
    fs::write(&path, content(100, 4)).unwrap();
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    let mut offer = Offer::new(&packed(&path)).unwrap();
    fs::write(&path, content(100, 5)).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    file.set_modified(time).unwrap();
    for has_plan in [false, true] {
        let to = TempDir::new().unwrap();
        let plan = compared(&offer, to.path(), false).unwrap();
        let sent = bundle(&mut offer, &[&plan]);
        let plans: &[_] = if has_plan { &[&plan] } else { &[] };
        let (all, right) = (bytes(&sent), announced(&sent));
        let error = unpack(&mut &*all, right, to.path(), PLAIN, Some(plans)).unwrap_err();
        let why = "a changed at its sender since its list was made";
        assert_eq!(error.to_string(), why);
        assert!(!to.path().join("a").exists());
    }
}

#[test]
fn what_is_compared_for_nobody_ends() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let path = from.path().join("a");
    fs::write(&path, content(BLOCK, 6)).unwrap();
    let offer = Offer::new(&packed(&path)).unwrap();
    let offered = read(&offer).unwrap();
    let here = to.path().join("a");
    fs::write(&here, b"").unwrap();
    let names = || vec![vec![b"a".to_vec()]];
    offered.compare(to.path(), names(), &PLAIN, false).unwrap();
    offered.stop();
    let error = offered.compare(to.path(), names(), &PLAIN, false);
    assert!(error.unwrap_err().to_string().contains("given up"));
    // So does what would take hours.
    File::options()
        .write(true)
        .open(&here)
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let offered = huge(1 << 40);
    let wait = once_read(&here);
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            wait();
            offered.stop();
        });
        offered.compare(to.path(), names(), &PLAIN, false)
    });
    assert!(error.unwrap_err().to_string().contains("given up"));
}

/// An offer of one file whose hashes are those of no file.
fn huge(bytes: u64) -> wormcast_bundle::compare::Offered {
    use prost::Message;
    use wormcast_bundle::list::{Content, Entry, Kind, List};
    let block_bytes = bytes / 4;
    let content = Content {
        bytes,
        sparse: true,
        sha256: vec![0; 32],
        blocks: vec![0; 4 * 32],
        ..Content::default()
    };
    let list = List {
        entries: vec![Entry {
            name: b"a".to_vec(),
            kind: Some(Kind::File(content)),
            ..Entry::default()
        }],
        block_bytes,
    };
    let encoded = list.encode_to_vec();
    let list_bytes = encoded.len() as u64;
    let announced = wormcast_bundle::unpack::Announced {
        entries: 1,
        list_bytes,
        bytes: list_bytes,
    };
    wormcast_bundle::compare::Offered::read(&mut &*encoded, announced).unwrap()
}
