//! What is packed is made anew as it was.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use wormcast_bundle::pack::{self, PackError, Packed, pack};
use wormcast_bundle::unpack::{Announced, Options, UnpackError, Unpacked, unpack};

const UMASK: u32 = 0o022;
pub const PLAIN: Options = Options {
    umask: UMASK,
    preserve: true,
    owners: false,
    attributes: false,
    sync: false,
};

pub fn packed(path: &Path) -> Packed {
    pack(&[path.to_owned()], &pack::Options::default()).unwrap()
}

pub fn bytes(packed: &Packed) -> Vec<u8> {
    let mut out = Vec::new();
    packed.write(&mut out).unwrap();
    assert_eq!(out.len() as u64, packed.bytes());
    out
}

fn unpacked(packed: &Packed, to: &Path, options: Options) -> Result<Unpacked, UnpackError> {
    unpack(
        &mut bytes(packed).as_slice(),
        announced(packed),
        to,
        options,
        None,
    )
}

pub fn announced(packed: &Packed) -> Announced {
    Announced {
        entries: packed.list().entries.len() as u64,
        list_bytes: packed.list_bytes(),
        bytes: packed.bytes(),
    }
}

fn placed(packed: &Packed, to: &Path, options: Options) {
    let unpacked = unpacked(packed, to, options).unwrap();
    let names: Vec<PathBuf> = unpacked
        .tops()
        .map(|name| OsStr::from_bytes(name).into())
        .collect();
    for (index, name) in names.iter().enumerate() {
        assert!(unpacked.place(index, name, false).unwrap());
    }
}

/// Every path below, with what it is.
pub fn tree(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(path) = open.pop() {
        let about = fs::symlink_metadata(&path).unwrap();
        let what = if about.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|it| it.unwrap().path()));
            String::new()
        } else if about.is_symlink() {
            fs::read_link(&path).unwrap().display().to_string()
        } else if !about.is_file() {
            "something else".to_owned()
        } else {
            let content = fs::read(&path).unwrap();
            format!(
                "{} {} {:?}",
                about.nlink(),
                content.len(),
                content.iter().fold(7_u64, |sum, it| {
                    sum.wrapping_mul(31).wrapping_add((*it).into())
                })
            )
        };
        let below = path.strip_prefix(root).unwrap().to_owned();
        let time = (about.mtime(), about.mtime_nsec());
        found.insert(below, format!("{:o} {time:?} {what}", about.mode()));
    }
    found
}

/// A directory with all that there may be, and modes that the umask leaves as they are.
pub fn example(root: &Path) -> PathBuf {
    let top = root.join("data");
    fs::create_dir_all(top.join("a/empty")).unwrap();
    fs::create_dir(top.join("b")).unwrap();
    fs::write(top.join("a/script"), b"#!/bin/sh\n").unwrap();
    fs::write(top.join("a/nothing"), b"").unwrap();
    let large: Vec<u8> = (0..1_000_003_u32)
        .map(|at| (at.wrapping_mul(at) >> 3) as u8)
        .collect();
    fs::write(top.join("b/large"), large).unwrap();
    fs::write(top.join(OsStr::from_bytes(b"\xff\xfe \n'$x")), b"any bytes").unwrap();
    fs::hard_link(top.join("a/script"), top.join("b/same")).unwrap();
    symlink("../a/script", top.join("b/link")).unwrap();
    symlink("/nowhere/at/all", top.join("dangling")).unwrap();
    for (name, mode) in [("a/script", 0o755), ("a/nothing", 0o400), ("b", 0o555)] {
        fs::set_permissions(top.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    top
}

#[test]
fn a_directory_arrives_as_it_was() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let top = example(from.path());
    let packed = packed(&top);
    assert_eq!(packed.list().entries.len(), 11);
    placed(&packed, to.path(), PLAIN);
    assert_eq!(tree(&to.path().join("data")), tree(&top));
    let left: Vec<_> = fs::read_dir(to.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing hidden is left");
}

#[test]
fn several_tops_keep_their_names_and_two_of_one_name_are_refused() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let top = example(from.path());
    let (one, two) = (top.join("b/large"), top.join("a"));
    let link = from.path().join("link");
    symlink(&one, &link).unwrap();
    let packed = pack(&[one.clone(), two, link], &pack::Options::default()).unwrap();
    placed(&packed, to.path(), PLAIN);
    let arrived = tree(&to.path().join("a"));
    assert!(arrived.keys().eq(tree(&top.join("a")).keys()));
    assert_eq!(
        fs::read(to.path().join("large")).unwrap(),
        fs::read(&one).unwrap()
    );
    let link = fs::symlink_metadata(to.path().join("link")).unwrap();
    assert!(link.is_file(), "a path given is followed");
    let other = from.path().join("large");
    fs::write(&other, b"").unwrap();
    let error = pack(&[one, other], &pack::Options::default()).unwrap_err();
    assert!(error.to_string().contains("have the same name"), "{error}");
}

#[test]
fn holes_stay_holes() {
    let (from, to) = (
        TempDir::new_in("/var/tmp").unwrap(),
        TempDir::new_in("/var/tmp").unwrap(),
    );
    let top = from.path().join("data");
    fs::create_dir(&top).unwrap();
    let file = fs::File::create(top.join("sparse")).unwrap();
    file.write_all_at(b"middle", 64 << 20).unwrap();
    file.set_len(256 << 20).unwrap();
    fs::File::create(top.join("all"))
        .unwrap()
        .set_len(1 << 30)
        .unwrap();
    file.sync_all().unwrap();
    let packed = packed(&top);
    assert!(packed.bytes() < 16 << 20, "{}", packed.bytes());
    placed(&packed, to.path(), PLAIN);
    for name in ["sparse", "all"] {
        let (was, is) = (top.join(name), to.path().join("data").join(name));
        let (was, is) = (fs::metadata(was).unwrap(), fs::metadata(is).unwrap());
        assert_eq!(is.len(), was.len());
        assert!(is.blocks() * 512 < 16 << 20);
    }
    let is = fs::File::open(to.path().join("data/sparse")).unwrap();
    let mut piece = [0; 8];
    is.read_exact_at(&mut piece, (64 << 20) - 1).unwrap();
    assert_eq!(&piece, b"\0middle\0");
}

#[test]
fn permissions_are_bounded_by_the_umask_and_never_give_rights() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let top = from.path().join("data");
    fs::create_dir(&top).unwrap();
    fs::write(top.join("tool"), b"x").unwrap();
    fs::set_permissions(top.join("tool"), fs::Permissions::from_mode(0o6777)).unwrap();
    fs::set_permissions(&top, fs::Permissions::from_mode(0o3777)).unwrap();
    let packed = packed(&top);
    // The kernel takes the process's off files, which tests share: 022 is what it has at least.
    placed(
        &packed,
        to.path(),
        Options {
            umask: 0o077,
            ..PLAIN
        },
    );
    let mode = |path: &str| fs::metadata(to.path().join(path)).unwrap().mode() & 0o7777;
    assert_eq!(mode("data"), 0o700);
    assert_eq!(mode("data/tool") & 0o7022, 0);
    let plain = TempDir::new().unwrap();
    placed(
        &packed,
        plain.path(),
        Options {
            preserve: false,
            ..PLAIN
        },
    );
    let about = fs::metadata(plain.path().join("data/tool")).unwrap();
    assert_eq!(about.mode() & 0o7777, 0o644);
    assert!(about.mtime() >= fs::metadata(top.join("tool")).unwrap().mtime());
}

#[test]
fn owners_and_attributes_go_along_when_asked() {
    let (from, to) = (
        TempDir::new_in("/var/tmp").unwrap(),
        TempDir::new_in("/var/tmp").unwrap(),
    );
    let top = from.path().join("data");
    fs::create_dir(&top).unwrap();
    let file = top.join("file");
    fs::write(&file, b"x").unwrap();
    let no_flags = rustix::fs::XattrFlags::empty();
    if let Err(error) = rustix::fs::setxattr(&file, "user.origin", b"h0\0", no_flags) {
        eprintln!("SKIPPED no extended attributes here: {error}");
        return;
    }
    let root = fs::metadata("/proc/self").unwrap().uid() == 0;
    if root {
        std::os::unix::fs::chown(&file, Some(1234), Some(2345)).unwrap();
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o440)).unwrap();
    let options = pack::Options {
        attributes: true,
        owners: root,
        ..pack::Options::default()
    };
    let with = pack(&[top], &options).unwrap();
    placed(
        &with,
        to.path(),
        Options {
            attributes: true,
            owners: root,
            ..PLAIN
        },
    );
    let file = to.path().join("data/file");
    let mut value = [0; 8];
    assert_eq!(
        rustix::fs::getxattr(&file, "user.origin", &mut value).unwrap(),
        3
    );
    let about = fs::metadata(&file).unwrap();
    assert_eq!(about.mode() & 0o7777, 0o440);
    if root {
        assert_eq!((about.uid(), about.gid()), (1234, 2345));
    }
}

#[test]
fn what_is_left_out_is_left_out() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let top = example(from.path());
    let _socket = std::os::unix::net::UnixListener::bind(top.join("socket")).unwrap();
    let patterns = ["b", "*.o", "data/a/nothing"].map(|it| CString::new(it).unwrap());
    fs::write(top.join("a/one.o"), b"").unwrap();
    let options = pack::Options {
        exclude: patterns.to_vec(),
        ..pack::Options::default()
    };
    let packed = pack(std::slice::from_ref(&top), &options).unwrap();
    assert_eq!(packed.left_out, [top.join("socket")]);
    placed(&packed, to.path(), PLAIN);
    let mut wanted = tree(&top);
    wanted.retain(|path, _| {
        let gone = ["b", "socket", "a/nothing", "a/one.o"];
        !gone.iter().any(|it| path.starts_with(it))
    });
    let found = tree(&to.path().join("data"));
    assert_eq!(
        found.keys().collect::<Vec<_>>(),
        wanted.keys().collect::<Vec<_>>()
    );
}

#[test]
fn a_name_that_is_taken_is_told_or_replaced() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let packed = packed(&example(from.path()));
    fs::create_dir(to.path().join("data")).unwrap();
    fs::write(to.path().join("data/mine"), b"mine").unwrap();
    let made = unpacked(&packed, to.path(), PLAIN).unwrap();
    let name = Path::new("data");
    assert!(!made.place(0, name, false).unwrap());
    assert_eq!(fs::read(to.path().join("data/mine")).unwrap(), b"mine");
    assert!(made.place(0, name, true).unwrap());
    drop(made);
    assert_eq!(
        tree(&to.path().join("data")),
        tree(&from.path().join("data"))
    );
    assert_eq!(fs::read_dir(to.path()).unwrap().count(), 1);
}

#[test]
fn a_file_that_changes_after_the_list_was_made_is_not_sent() {
    let from = TempDir::new().unwrap();
    let top = example(from.path());
    for change in [&b"longer than before"[..], b""] {
        let packed = packed(&top);
        fs::write(top.join("a/script"), change).unwrap();
        let error = packed.write(&mut Vec::new()).unwrap_err();
        assert!(matches!(error, PackError::Changed(_)), "{error}");
    }
    let packed = packed(&top);
    fs::remove_file(top.join("b/large")).unwrap();
    symlink("/etc/passwd", top.join("b/large")).unwrap();
    let error = packed.write(&mut Vec::new()).unwrap_err();
    assert!(matches!(error, PackError::Storage { .. }), "{error}");
}

/// Changes a file once the first of it is written.
struct Meddler<'a> {
    written: usize,
    change: &'a dyn Fn(),
}

impl std::io::Write for Meddler<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.written < 400_000 && self.written + bytes.len() >= 400_000 {
            (self.change)();
        }
        self.written += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_file_that_changes_while_it_is_read_is_not_sent() {
    let from = TempDir::new().unwrap();
    let large = example(from.path()).join("b/large");
    let packed = pack(std::slice::from_ref(&large), &pack::Options::default()).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&large).unwrap();
    let changes: [&dyn Fn(); 3] = [
        &|| file.set_len(1_000_004).unwrap(),
        &|| file.set_len(500_000).unwrap(),
        &|| file.write_all_at(b"other", 900_000).unwrap(),
    ];
    for change in changes {
        let before = packed.list().entries[0].clone();
        let mut meddler = Meddler { written: 0, change };
        let error = packed.write(&mut meddler).unwrap_err();
        assert!(matches!(error, PackError::Changed(_)), "{error}");
        let content: Vec<u8> = vec![1; 1_000_003];
        fs::write(&large, content).unwrap();
        let time = std::time::Duration::new(before.seconds as u64, before.nanoseconds);
        file.set_modified(std::time::UNIX_EPOCH + time).unwrap();
    }
}

#[test]
fn nothing_is_no_bundle() {
    let from = TempDir::new().unwrap();
    let top = example(from.path());
    let options = pack::Options {
        exclude: vec![CString::new("data").unwrap()],
        ..pack::Options::default()
    };
    let error = pack(&[top], &options).unwrap_err().to_string();
    assert!(error.contains("everything is excluded"), "{error}");
    let error = pack(&[PathBuf::from("/dev/null")], &pack::Options::default()).unwrap_err();
    assert!(
        error.to_string().contains("/dev/null is no file"),
        "{error}"
    );
}

#[test]
fn a_directory_does_not_take_the_place_of_a_file_nor_a_file_that_of_a_directory() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let top = example(from.path());
    let both = pack(
        &[top.join("b/large"), top.join("a")],
        &pack::Options::default(),
    )
    .unwrap();
    fs::create_dir(to.path().join("large")).unwrap();
    fs::write(to.path().join("large/mine"), b"mine").unwrap();
    fs::write(to.path().join("a"), b"mine").unwrap();
    let made = unpacked(&both, to.path(), PLAIN).unwrap();
    for (index, name) in ["large", "a"].iter().enumerate() {
        made.place(index, Path::new(name), true).unwrap_err();
    }
    drop(made);
    assert_eq!(fs::read(to.path().join("large/mine")).unwrap(), b"mine");
    assert_eq!(fs::read(to.path().join("a")).unwrap(), b"mine");
    assert_eq!(fs::read_dir(to.path()).unwrap().count(), 2);
}

#[test]
fn what_is_cut_short_leaves_nothing() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let packed = packed(&example(from.path()));
    let whole = bytes(&packed);
    let right = announced(&packed);
    let cuts = (0..whole.len()).step_by(whole.len() / 37);
    for length in cuts.chain([right.list_bytes as usize, whole.len() - 1]) {
        let error = unpack(&mut &whole[..length], right, to.path(), PLAIN, None).unwrap_err();
        assert!(matches!(error, UnpackError::Damaged(_)), "{error}");
    }
    let longer = [&whole[..], b"x"].concat();
    unpack(&mut longer.as_slice(), right, to.path(), PLAIN, None).unwrap_err();
    let (bytes, entries) = (right.bytes + 1, right.entries + 1);
    for wrong in [Announced { bytes, ..right }, Announced { entries, ..right }] {
        unpack(&mut whole.as_slice(), wrong, to.path(), PLAIN, None).unwrap_err();
    }
    assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0);
}

#[test]
fn what_there_is_no_room_for_is_refused_before_its_content() {
    let to = TempDir::new().unwrap();
    let from = TempDir::new().unwrap();
    let top = from.path().join("huge");
    fs::File::create(&top).unwrap().set_len(1 << 50).ok();
    let mut list = packed(&top).list().clone();
    let Some(wormcast_bundle::list::Kind::File(content)) = &mut list.entries[0].kind else {
        panic!("a file");
    };
    content.sparse = false;
    content.runs.clear();
    content.bytes = 1 << 60;
    let encoded = prost::Message::encode_to_vec(&list);
    let length = encoded.len() as u64;
    // There is nothing behind the list: whoever went on would find it cut short.
    let announced = Announced {
        entries: 1,
        list_bytes: length,
        bytes: length + (1 << 60),
    };
    let error = unpack(&mut encoded.as_slice(), announced, to.path(), PLAIN, None).unwrap_err();
    assert!(matches!(error, UnpackError::NoSpace(_)), "{error}");
    assert!(
        error
            .to_string()
            .contains("1152921504606846976 bytes are to come"),
        "{error}"
    );
}
