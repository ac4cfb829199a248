//! What paths select, and what is said of those that select nothing.

use proptest::prelude::*;
use tonic::{Code, Status};

use super::*;
use crate::schema::{Kind, Leaf};

/// `a/b[name=c]/d`, without escapes.
fn path(text: &str) -> Path {
    let element = |text: &str| {
        let (name, keys) = text.split_once('[').unwrap_or((text, ""));
        let keys = keys.split('[').filter(|key| !key.is_empty());
        let keys = keys.filter_map(|key| key.trim_end_matches(']').split_once('='));
        PathElem {
            name: name.to_owned(),
            key: keys
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
        }
    };
    let elements = text.split('/').filter(|text| !text.is_empty());
    Path {
        elem: elements.map(element).collect(),
        ..Path::default()
    }
}

fn select(text: &str) -> Selection {
    resolve(None, &path(text)).unwrap()
}

fn refuse(text: &str) -> (Code, String) {
    let status = Status::from(resolve(None, &path(text)).unwrap_err());
    (status.code(), status.message().to_owned())
}

fn only(leaf: Leaf) -> LeafSet {
    LeafSet::of(|other| other == leaf)
}

#[test]
fn a_leaf_of_one_interface_and_of_all() {
    let one = select("/interfaces/interface[name=eth0]/state/oper-status");
    assert_eq!(one.interface.as_deref(), Some("eth0"));
    assert_eq!(one.leaves, only(Leaf::OperStatus));
    assert_eq!(one.depth, Some(4));
    for all in [
        "/interfaces/interface/state/oper-status",
        "/interfaces/interface[name=*]/state/oper-status",
        // As ONOS writes it.
        "/interfaces/interface[name=...]/state/oper-status",
        "/interfaces/*/state/oper-status",
        "/*/*[name=*]/*/oper-status",
    ] {
        let all = select(all);
        assert_eq!((all.interface, all.leaves), (None, only(Leaf::OperStatus)));
    }
}

#[test]
fn a_container_has_all_that_is_below() {
    assert_eq!(select("/").leaves, LeafSet::all());
    assert_eq!(select("/").depth, Some(0));
    assert_eq!(select("/interfaces").leaves, LeafSet::all());
    let state = select("/interfaces/interface[name=a]/state").leaves;
    assert!(state.has(Leaf::Mtu) && state.has(Leaf::InPkts) && !state.has(Leaf::ConfigName));
    let counters = select("/interfaces/interface/state/counters").leaves;
    assert_eq!(counters, LeafSet::of_kind(Kind::Counter));
    let names = LeafSet::of(|leaf| matches!(leaf, Leaf::ConfigName | Leaf::Name));
    assert_eq!(select("/interfaces/interface/*/name").leaves, names);
}

#[test]
fn many_elements_are_any_number() {
    let found = |text: &str| select(text).leaves;
    assert_eq!(found("..."), LeafSet::all());
    assert_eq!(found("/interfaces/..."), LeafSet::all());
    assert_eq!(found("/.../oper-status"), only(Leaf::OperStatus));
    assert_eq!(found("/.../.../oper-status/..."), only(Leaf::OperStatus));
    assert_eq!(
        found("/interfaces/.../counters/in-pkts"),
        only(Leaf::InPkts)
    );
    let names = LeafSet::of(|leaf| matches!(leaf, Leaf::Key | Leaf::ConfigName | Leaf::Name));
    assert_eq!(found("/.../name"), names);
    let one = select("/.../*[name=eth1]/.../mtu");
    assert_eq!(
        (one.interface.as_deref(), one.leaves),
        (Some("eth1"), only(Leaf::Mtu))
    );
    assert_eq!(one.depth, None);
}

#[test]
fn a_prefix_is_the_first_part() {
    let prefix = path("interfaces/interface[name=eth0]");
    let whole = select("interfaces/interface[name=eth0]/state/mtu");
    assert_eq!(resolve(Some(&prefix), &path("state/mtu")), Ok(whole));
    let itself = resolve(Some(&prefix), &path("")).unwrap();
    assert_eq!((itself.leaves, itself.depth), (LeafSet::all(), Some(2)));
}

#[test]
fn origins_and_targets() {
    let with = |origin: &str, target: &str| Path {
        origin: origin.to_owned(),
        target: target.to_owned(),
        ..path("interfaces")
    };
    assert!(resolve(None, &with("openconfig", "")).is_ok());
    assert!(resolve(Some(&with("openconfig", "s1")), &path("interface")).is_ok());
    let refuse = |path: &Path| resolve(None, path).unwrap_err().to_string();
    assert_eq!(
        refuse(&with("cli", "")),
        "origin `cli` is not served: openconfig, or none"
    );
    assert_eq!(
        refuse(&with("", "s1")),
        "/interfaces: a target belongs to the prefix"
    );
    #[allow(deprecated)]
    let old = Path {
        element: vec!["interfaces".to_owned()],
        ..Path::default()
    };
    assert!(refuse(&old).contains("use `elem`"));
}

#[test]
fn what_is_not_there_is_named_with_what_is() {
    let cases = [
        (
            "/system/state",
            "there is no /system/state here; there are here: interfaces",
        ),
        (
            "/interfaces/interface[name=a]/ethernet",
            "there is no /interfaces/interface[name=a]/ethernet here; there are here: name, config, state",
        ),
        (
            "/interfaces/interface/state/counters/in-unicast-pkts",
            "there is no /interfaces/interface/state/counters/in-unicast-pkts here; there are here: \
             in-octets, in-pkts, in-discards, in-errors, out-octets, out-pkts, out-discards, out-errors",
        ),
        (
            "/interfaces/interface/name/x",
            "there is no /interfaces/interface/name/x here; nothing is below a leaf",
        ),
        (
            "/.../nonsense",
            "there is no /.../nonsense here; the paths there are begin with /interfaces/interface",
        ),
    ];
    for (path, message) in cases {
        assert_eq!(refuse(path), (Code::NotFound, message.to_owned()));
    }
}

#[test]
fn what_cannot_be_a_path_is_refused() {
    let cases = [
        (
            "/interfaces/interface[index=1]",
            "/interfaces/interface[index=1]: key `index`: interface has the key name",
        ),
        (
            "/interfaces[name=a]/interface",
            "/interfaces[name=a]/interface: only interface has a key, name",
        ),
        ("/...[name=a]", "/...[name=a]: `...` has no keys"),
        (
            "/*[name=a]/interface[name=a]",
            "/*[name=a]/interface[name=a]: there is one list, so one key",
        ),
        (
            "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a",
            "the path has 17 elements with its prefix: at most 16",
        ),
    ];
    for (path, message) in cases {
        assert_eq!(refuse(path), (Code::InvalidArgument, message.to_owned()));
    }
    let nameless = Path {
        elem: vec![PathElem::default()],
        ..Path::default()
    };
    let refused = resolve(None, &nameless).unwrap_err().to_string();
    assert_eq!(refused, "/: an element without a name");
    let long = "x".repeat(10_000);
    assert!(
        refuse(&long).1.len() < 1_000,
        "a message is not as long as what it is about"
    );
}

const NAMES: &[&str] = &[
    "interfaces",
    "interface",
    "state",
    "counters",
    "name",
    "in-pkts",
    "*",
    "...",
    "x",
];
const KEYS: &[&str] = &["", "", "", "[name=a]", "[name=*]", "[x=y]"];

fn any_element() -> impl Strategy<Value = String> {
    (prop::sample::select(NAMES), prop::sample::select(KEYS))
        .prop_map(|(name, key)| format!("{name}{key}"))
}

/// The same by another way: a pattern as a regular expression of elements.
fn matches_slowly(pattern: &[String], nodes: &[&str]) -> bool {
    let Some((first, rest)) = pattern.split_first() else {
        return true;
    };
    let name = first.split('[').next().unwrap();
    match (name, nodes.split_first()) {
        ("...", None) => matches_slowly(rest, nodes),
        ("...", Some((_, below))) => matches_slowly(rest, nodes) || matches_slowly(pattern, below),
        (_, None) => false,
        (_, Some((node, below))) => {
            let key_fits = !first.contains('[') || *node == "interface";
            (name == "*" || name == *node) && key_fits && matches_slowly(rest, below)
        }
    }
}

proptest! {
    #[test]
    fn leaves_are_those_that_match(elements in prop::collection::vec(any_element(), 0..8)) {
        if let Ok(selection) = resolve(None, &path(&elements.join("/"))) {
            let expected = LeafSet::of(|leaf| {
                matches_slowly(&elements, &leaf.elements().collect::<Vec<_>>())
            });
            prop_assert_eq!(selection.leaves, expected);
        }
    }
}
