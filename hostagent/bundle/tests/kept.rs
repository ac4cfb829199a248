//! What broken transfers leave: whose it is, how long it stays, and what is made of it.

use crate::changed::{BLOCK, bundle, compared, content, kept, left_of, place, received};
use crate::round::{PLAIN, announced, bytes, packed};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use wormcast_bundle::kept::{KEPT_AGE, KEPT_MAX, KEPT_PREFIX, KEPT_TRIES_MAX, trim_kept};
use wormcast_bundle::offer::Offer;
use wormcast_bundle::unpack::unpack;

const DAY: Duration = Duration::from_secs(86_400);

fn offer_of(from: &Path, name: &str, data: &[u8]) -> Offer {
    let path = from.join(name);
    fs::write(&path, data).unwrap();
    Offer::new(&packed(&path)).unwrap()
}

fn age(path: &Path, age: Duration) {
    let opened = fs::File::open(path).unwrap();
    opened.set_modified(SystemTime::now() - age).unwrap();
}

fn receive(offer: &mut Offer, to: &Path) -> u64 {
    let plan = compared(offer, to, false).unwrap();
    let sent = bundle(offer, &[&plan]);
    place(received(&sent, to, &plan).unwrap());
    sent.bytes() - sent.list_bytes()
}

#[test]
fn one_that_succeeds_leaves_alone_what_others_have_left() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let other = offer_of(from.path(), "big", &content(6 * BLOCK, 1));
    let left = left_of(&other, to.path(), 0);
    let mut data = content(6 * BLOCK, 1);
    fs::write(left.join("big"), &data).unwrap();
    // One block is the same: it is taken from there, and what is there stays.
    let old = data.clone();
    data[BLOCK..].copy_from_slice(&content(5 * BLOCK, 2));
    let mut offer = offer_of(from.path(), "big", &data);
    let own = left_of(&offer, to.path(), 1);
    fs::write(own.join("big"), &data[..3 * BLOCK]).unwrap();
    age(&own, DAY);
    assert_eq!(receive(&mut offer, to.path()), 3 * BLOCK as u64);
    assert_eq!(fs::read(to.path().join("big")).unwrap(), data);
    assert_eq!(kept(to.path()), std::slice::from_ref(&left));
    assert_eq!(fs::read(left.join("big")).unwrap(), old);
}

#[test]
fn what_another_list_has_left_is_copied_and_not_gone_on_with() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let mut data = content(6 * BLOCK, 1);
    let left = left_of(&offer_of(from.path(), "big", &data), to.path(), 0);
    fs::write(left.join("big"), &data).unwrap();
    let old = data.clone();
    data[BLOCK..].copy_from_slice(&content(5 * BLOCK, 2));
    let mut offer = offer_of(from.path(), "big", &data);
    assert_eq!(receive(&mut offer, to.path()), 5 * BLOCK as u64);
    assert_eq!(fs::read(to.path().join("big")).unwrap(), data);
    assert_eq!(fs::read(left.join("big")).unwrap(), old);
}

#[test]
fn what_is_left_is_bounded_by_lists_and_not_by_tries() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let now = SystemTime::now();
    let offers: Vec<Offer> = (0..KEPT_MAX + 3)
        .map(|number| offer_of(from.path(), &format!("f{number}"), b"content"))
        .collect();
    let lefts: Vec<PathBuf> = offers.iter().map(|it| left_of(it, to.path(), 0)).collect();
    for (days, left) in lefts.iter().enumerate() {
        age(left, DAY / 100 * days as u32);
    }
    let tries = KEPT_TRIES_MAX - 1;
    let many: Vec<PathBuf> = (1..=tries)
        .map(|number| left_of(&offers[0], to.path(), number))
        .collect();
    assert_eq!(trim_kept(to.path(), now).unwrap(), 3);
    assert!(lefts[..KEPT_MAX].iter().chain(&many).all(|it| it.exists()));
    for number in 0..5 {
        left_of(&offers[0], to.path(), 100 + number);
    }
    assert_eq!(trim_kept(to.path(), now).unwrap(), 5);
    let later = now + KEPT_AGE + Duration::from_secs(5);
    assert_eq!(trim_kept(to.path(), later).unwrap(), KEPT_MAX + tries);
}

#[test]
fn what_is_wanted_now_is_not_too_old_nor_too_much() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let data = content(4 * BLOCK, 3);
    let mut offer = offer_of(from.path(), "big", &data);
    let own = left_of(&offer, to.path(), 0);
    fs::write(own.join("big"), &data[..3 * BLOCK]).unwrap();
    age(&own, KEPT_AGE * 2);
    for number in 0..=KEPT_MAX {
        let other = offer_of(from.path(), &format!("f{number}"), b"content");
        left_of(&other, to.path(), 0);
    }
    // Others do not remove what somebody has found: not even when it is the oldest.
    let plan = compared(&offer, to.path(), false).unwrap();
    trim_kept(to.path(), SystemTime::now() + KEPT_AGE * 3).unwrap();
    assert_eq!(kept(to.path()), [own]);
    let sent = bundle(&mut offer, &[&plan]);
    assert_eq!(sent.bytes() - sent.list_bytes(), BLOCK as u64);
    place(received(&sent, to.path(), &plan).unwrap());
    assert_eq!(fs::read(to.path().join("big")).unwrap(), data);
    assert_eq!(kept(to.path()), Vec::<PathBuf>::new());
}

#[test]
fn what_two_have_found_neither_takes_from_the_other() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let data = content(4 * BLOCK, 4);
    let mut offer = offer_of(from.path(), "big", &data);
    let own = left_of(&offer, to.path(), 0);
    fs::write(own.join("big"), &data[..3 * BLOCK]).unwrap();
    let plans = [0, 1].map(|_| compared(&offer, to.path(), false).unwrap());
    let sent = bundle(&mut offer, &[&plans[0], &plans[1]]);
    for plan in &plans {
        place(received(&sent, to.path(), plan).unwrap());
        assert_eq!(fs::read(to.path().join("big")).unwrap(), data);
    }
}

#[test]
fn what_has_no_use_any_more_goes() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let data = content(4 * BLOCK, 5);
    let offer = offer_of(from.path(), "big", &data);
    let lefts = [0, 1, 2].map(|number| left_of(&offer, to.path(), number));
    fs::write(lefts[0].join("big"), &data[..3 * BLOCK]).unwrap();
    fs::write(lefts[1].join("big"), &data[..2 * BLOCK]).unwrap();
    age(&lefts[1], DAY);
    compared(&offer, to.path(), false).unwrap();
    assert_eq!(kept(to.path()), [lefts[0].clone()]);
}

#[test]
fn of_what_was_not_offered_nothing_is_kept() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let mut offer = offer_of(from.path(), "big", &content(4 * BLOCK, 6));
    let plan = compared(&offer, to.path(), false).unwrap();
    let sent = bundle(&mut offer, &[&plan]);
    let all = bytes(&sent);
    for (plans, count) in [(None, 0), (Some(&[][..]), 1), (Some(&[&plan][..]), 2)] {
        let mut cut = &all[..all.len() - 9];
        unpack(&mut cut, announced(&sent), to.path(), PLAIN, plans).unwrap_err();
        assert_eq!(kept(to.path()).len(), count);
    }
    for left in kept(to.path()) {
        assert_eq!(fs::metadata(left).unwrap().mode() & 0o7777, 0o700);
    }
}

#[test]
fn what_others_may_have_written_is_not_looked_at() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let data = content(4 * BLOCK, 7);
    let offer = offer_of(from.path(), "big", &data);
    let lacking = || {
        let plan = compared(&offer, to.path(), false).unwrap();
        let lacking = wormcast_bundle::offer::decode_answer(&plan.answer, &plan.identity, 4);
        lacking.unwrap().contains(&true)
    };
    let left = left_of(&offer, to.path(), 0);
    let file = left.join("big");
    fs::write(&file, &data).unwrap();
    assert!(!lacking());
    for mode in [0o755, 0o1700, 0o710] {
        fs::set_permissions(&left, Permissions::from_mode(mode)).unwrap();
        assert!(lacking(), "{mode:o}");
    }
    fs::set_permissions(&left, Permissions::from_mode(0o700)).unwrap();
    let elsewhere = to.path().join("elsewhere");
    fs::rename(&left, &elsewhere).unwrap();
    symlink(&elsewhere, &left).unwrap();
    assert!(lacking());
    fs::remove_file(&left).unwrap();
    fs::rename(&elsewhere, &left).unwrap();
    assert!(!lacking());
    if chown(&left, Some(4242), None).is_ok() {
        assert!(lacking());
        chown(&left, Some(0), None).unwrap();
        assert!(!lacking());
        chown(&file, Some(4242), None).unwrap();
        assert!(lacking());
    }
    // And is not removed.
    fs::create_dir(to.path().join(format!("{KEPT_PREFIX}x"))).unwrap();
    let later = SystemTime::now() + KEPT_AGE * 2;
    trim_kept(to.path(), later).unwrap();
    assert!(to.path().join(format!("{KEPT_PREFIX}x")).exists());
}

/// Permissions count for root too: of this thread.
fn without_privileges() {
    let header = [0x2008_0522_u32, 0];
    let none = [0_u32; 6];
    // SAFETY: both are as capset(2) asks for in version 3, which only reads them.
    let set = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) };
    assert_eq!(set, 0);
}

#[test]
fn what_cannot_be_moved_is_copied() {
    let (from, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (data, top) = (content(4 * BLOCK, 8), from.path().join("d"));
    fs::create_dir(&top).unwrap();
    fs::write(top.join("big"), &data).unwrap();
    let mut offer = Offer::new(&packed(&top)).unwrap();
    let left = left_of(&offer, to.path(), 0).join("d");
    fs::create_dir(&left).unwrap();
    fs::write(left.join("big"), &data[..3 * BLOCK]).unwrap();
    fs::set_permissions(&left, Permissions::from_mode(0o555)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            without_privileges();
            assert_eq!(receive(&mut offer, to.path()), BLOCK as u64);
        });
    });
    assert_eq!(fs::read(to.path().join("d/big")).unwrap(), data);
}
