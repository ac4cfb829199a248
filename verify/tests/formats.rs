//! File formats: what is written is read back, what is wrong is named with its place.

use std::collections::BTreeSet;

use proptest::prelude::*;
use wormcast_routing::generate::from_spec;
use wormcast_routing::topology::{Host, Link, Parts, Switch, Topology};
use wormcast_verify::formats::{Document, Format, FormatError, Names, Reading, read, write};
use wormcast_wire::{HostId, PortId, SwitchId};

/// What ibnetdiscover printed of ibsim running our `testbed`, switches and hosts in the
/// order in which it found them.
const DISCOVERED: &str = include_str!("data/testbed.ibnetdiscover");
/// The same of our `irregular:12:3`, with names.
const DISCOVERED_NAMED: &str = include_str!("data/irregular-named.ibnetdiscover");

fn detected(text: &str) -> Result<Document, FormatError> {
    read(text, &Reading::default())
}

fn split(text: &str, format: Option<Format>) -> Result<Document, FormatError> {
    let reading = Reading {
        format,
        allow_split: true,
        ..Reading::default()
    };
    read(text, &reading)
}

/// The same parts, links in order.
fn sorted(topology: &Topology) -> (Vec<Switch>, Vec<Host>, BTreeSet<Link>) {
    let links = topology.links().iter().map(|link| {
        let flipped = Link {
            a: link.b,
            a_port: link.b_port,
            b: link.a,
            b_port: link.a_port,
        };
        (*link).min(flipped)
    });
    (
        topology.switches().to_vec(),
        topology.hosts().to_vec(),
        links.collect(),
    )
}

/// Any topology, split ones too, ids with gaps, several links between two switches.
fn documents() -> impl Strategy<Value = Document> {
    let name = prop::option::of("[a-zA-Z<>&;'äß/ .:#()\\[\\]-]{0,12}[a-z]");
    (
        prop::collection::btree_map(0u16..=65534, (1u16..=254, name.clone()), 1..12),
        prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
        prop::collection::vec(any::<[(prop::sample::Index, u8); 2]>(), 0..30),
        prop::collection::btree_map(0u16..=65534, name, 0..20),
        prop::option::of("[a-z0-9:]{1,9}"),
        any::<[bool; 3]>(),
    )
        .prop_map(
            |(switches, places, links, hosts, kind, [has_grid, wraps, unidirectional])| {
                let all: Vec<Switch> = switches
                    .iter()
                    .map(|(&id, &(ports, _))| Switch {
                        id: SwitchId(id),
                        ports,
                    })
                    .collect();
                let mut used = BTreeSet::new();
                let mut take = |at: prop::sample::Index, port: u8| {
                    let switch = all[at.index(all.len())];
                    let port = PortId::new((u16::from(port) % switch.ports) as u8).unwrap();
                    used.insert((switch.id, port)).then_some((switch.id, port))
                };
                let mut parts = Parts::default();
                let mut names = Names::default();
                for ((id, name), (at, port)) in hosts.into_iter().zip(places) {
                    let Some((switch, port)) = take(at, port) else {
                        continue;
                    };
                    let id = HostId(id);
                    parts.hosts.push(Host {
                        id,
                        switch,
                        port,
                        transit: true,
                    });
                    names.hosts.extend(name.map(|name| (id, name)));
                }
                for [(a, a_port), (b, b_port)] in links {
                    let Some((a, a_port)) = take(a, a_port) else {
                        continue;
                    };
                    let Some((b, b_port)) = take(b, b_port) else {
                        continue;
                    };
                    if a != b {
                        parts.links.push(Link {
                            a,
                            a_port,
                            b,
                            b_port,
                        });
                    }
                }
                let largest = all.last().unwrap().id.0;
                parts.grid = has_grid.then(|| wormcast_routing::topology::Grid {
                    radix: vec![largest.max(1), 2],
                    wraps,
                    unidirectional,
                });
                parts.switches = all;
                for (id, (_, name)) in switches {
                    names.switches.extend(name.map(|name| (SwitchId(id), name)));
                }
                Document {
                    topology: Topology::new_split(parts).unwrap(),
                    names,
                    kind,
                    warnings: Vec::new(),
                }
            },
        )
}

/// Names that no other node of the kind has, which are those a net list keeps.
fn unique(names: &Names) -> bool {
    let count = |all: Vec<&String>| (all.len(), all.into_iter().collect::<BTreeSet<_>>().len());
    let (switches, apart) = count(names.switches.values().collect());
    let (hosts, hosts_apart) = count(names.hosts.values().collect());
    switches == apart && hosts == hosts_apart
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn what_is_written_is_read_back(document in documents()) {
        for format in [Format::Json, Format::Edges, Format::Graphml] {
            let text = write(&document, format).unwrap();
            prop_assert_eq!(&split(&text, Some(format)).unwrap(), &document, "{}", text);
            prop_assert_eq!(&split(&text, None).unwrap(), &document, "detected {}", format);
            prop_assert_eq!(write(&document, format).unwrap(), text);
        }
        prop_assume!(unique(&document.names));
        for format in [Format::Ibsim, Format::Ibnetdiscover] {
            let text = write(&document, format).unwrap();
            for format in [Some(format), None] {
                let back = split(&text, format).unwrap();
                prop_assert_eq!(sorted(&back.topology), sorted(&document.topology), "{}", &text);
                prop_assert_eq!(&back.names, &document.names);
            }
        }
    }

    #[test]
    fn garbled_files_are_refused_or_read_never_more(
        document in documents(),
        format in prop::sample::select(&Format::ALL[..]),
        cut in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        by in "[ -~\n\"\\[\\]<>&#:{}0-9é]{0,4}",
    ) {
        let text = write(&document, format).unwrap();
        let boundary = |mut at: usize| {
            while !text.is_char_boundary(at) { at -= 1 }
            at
        };
        let cut = &text[..boundary(cut.index(text.len()))];
        let at = boundary(at.index(text.len()));
        let next = text[at..].chars().next().map_or(0, char::len_utf8);
        let garbled = format!("{}{by}{}", &text[..at], &text[at + next..]);
        for text in [cut, garbled.as_str()] {
            for format in Format::ALL.map(Some).into_iter().chain([None]) {
                if let Err(error) = split(text, format) {
                    prop_assert!(!error.reason.is_empty());
                    if let Some(place) = error.place {
                        prop_assert!(place.line >= 1 && place.line <= text.lines().count() + 1);
                    }
                }
            }
        }
    }

    #[test]
    fn any_text_is_refused_or_read_never_more(text in "(\\PC|\n){0,200}") {
        for format in Format::ALL.map(Some).into_iter().chain([None]) {
            let _ = split(&text, format);
        }
    }
}

#[test]
fn reads_what_ibnetdiscover_found() {
    let found = detected(DISCOVERED).unwrap();
    let testbed = from_spec("testbed").unwrap();
    assert_eq!(sorted(&found.topology), sorted(&testbed));
    assert_eq!(found.names, Names::default());
    let found = detected(DISCOVERED_NAMED).unwrap();
    let wired = from_spec("irregular:12:3").unwrap();
    assert_eq!(sorted(&found.topology), sorted(&wired));
    assert_eq!(found.names.switches[&SwitchId(3)], "rack 3 (top)");
    assert_eq!(found.names.hosts[&HostId(47)], "node47 HCA-1");
    assert_eq!(
        (found.names.switches.len(), found.names.hosts.len()),
        (12, 48)
    );
}

/// Two switches with two links, adapters with one and two ports, nothing in order.
const NET: &str = r#"# by hand
Hca	2 "beta"
[1]	"Switch10"[1]   w=4
[2]	"Switch2"[3]

Switch	8 "Switch10"	# "spine"
[1](8f10400410015)	"beta"[1](8f1)	# "x" lid 3 4xQDR
[3] "Switch2"[ext 1]
"#;

#[test]
fn net_lists_by_hand() {
    let text = NET.replace("[3] \"Switch2\"[ext 1]", "[3][ext 5] \"Switch2\"[1]")
        + "\nSwitch 4 \"Switch2\"\n[1] \"Switch10\"[3]\n[2] \"alpha\"[1]\n\nCa 1 \"alpha\" # \"head node\"\n";
    let document = detected(&text).unwrap();
    let topology = &document.topology;
    let ids: Vec<u16> = topology
        .switches()
        .iter()
        .map(|switch| switch.id.0)
        .collect();
    assert_eq!(ids, [2, 10]);
    let hosts: Vec<_> = topology
        .hosts()
        .iter()
        .map(|host| (host.id.0, host.switch.0, host.port.get()))
        .collect();
    assert_eq!(hosts, [(0, 2, 1), (1, 10, 0), (2, 2, 2)]);
    let names: Vec<&str> = document.names.hosts.values().map(String::as_str).collect();
    assert_eq!(names, ["head node", "beta/1", "beta/2"]);
    assert_eq!(document.names.switches[&SwitchId(10)], "spine");
    assert_eq!(document.names.switches[&SwitchId(2)], "Switch2");
}

#[test]
fn ids_follow_from_names_not_from_their_order() {
    let ids = |text: &str| -> Vec<(u16, String)> {
        let names = detected(text).unwrap().names.switches;
        names.into_iter().map(|(id, name)| (id.0, name)).collect()
    };
    let wanted = |pairs: &[(u16, &str)]| -> Vec<(u16, String)> {
        pairs
            .iter()
            .map(|(id, name)| (*id, (*name).to_owned()))
            .collect()
    };
    let in_order = wanted(&[(0, "leaf2"), (1, "leaf10"), (2, "spine")]);
    assert_eq!(ids("leaf10 spine\nspine leaf2\n"), in_order);
    assert_eq!(ids("leaf2 spine\nspine leaf10\n"), in_order);
    assert_eq!(
        ids("leaf10 leaf2\n"),
        wanted(&[(2, "leaf2"), (10, "leaf10")])
    );
    assert_eq!(
        ids("leaf1 leaf01\n"),
        wanted(&[(0, "leaf01"), (1, "leaf1")])
    );
    assert_eq!(ids("65535 1\n"), wanted(&[(0, "1"), (1, "65535")]));
    assert_eq!(ids("7 1\n"), []);
    let foreign = "Switch 4 \"S-00000000000f0010\"\n[1] \"S-00000000000a0099\"[1]\n\
                   Switch 4 \"S-00000000000a0099\"\n";
    assert_eq!(
        ids(foreign),
        wanted(&[(0, "S-00000000000a0099"), (1, "S-00000000000f0010")])
    );
}

#[test]
fn ports_that_are_not_given_are_the_lowest_free() {
    let text = "host 0 a\nhost 1 a:1\na b:0\na:0 c\n";
    let document = detected(text).unwrap();
    let host = document.topology.host(HostId(0)).unwrap();
    assert_eq!((host.switch.0, host.port.get()), (0, 2));
    let link = document.topology.links()[0];
    assert_eq!((link.a_port.get(), link.b_port.get()), (3, 0));
    assert_eq!(document.topology.switches()[0].ports, 4);
    let graph = r#"<graphml><graph edgedefault="undirected"><node id="n0"/><node id="n1"/>
        <node id="n2"/><edge source="n0" target="n1"/><edge source="n1" target="n2"/></graph></graphml>"#;
    let with_hosts = Reading {
        hosts_per_switch: 2,
        ..Reading::default()
    };
    let document = read(graph, &with_hosts).unwrap();
    let places: Vec<_> = document
        .topology
        .hosts()
        .iter()
        .map(|host| (host.switch.0, host.port.get()))
        .collect();
    assert_eq!(places, [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]);
    assert_eq!(document.topology.links()[1].a_port.get(), 3);
    let switches: Vec<_> = document.names.switches.values().collect();
    assert_eq!(switches, ["n0", "n1", "n2"]);
}

#[test]
fn names_that_a_format_cannot_hold_are_refused() {
    let named = |name: &str| {
        let mut document = Document::new(from_spec("line:2").unwrap());
        document.names.hosts.insert(HostId(1), name.to_owned());
        document
    };
    for (name, format) in [
        ("say \"hi\"", Format::Ibsim),
        (&"x".repeat(64)[..], Format::Ibnetdiscover),
        ("two\nlines", Format::Edges),
        ("bell\u{7}", Format::Graphml),
    ] {
        let error = write(&named(name), format).unwrap_err();
        assert_eq!(error.code, "unsupported", "{error}");
        let json = write(&named(name), Format::Json).unwrap();
        assert_eq!(detected(&json).unwrap(), named(name));
    }
}

#[test]
fn net_lists_count_ports_from_1_and_hold_ids_in_guids() {
    let text = write(&Document::new(from_spec("testbed").unwrap()), Format::Ibsim).unwrap();
    for line in [
        "switchguid=0x5743000100000300(5743000100000300)",
        "Switch\t8 \"S-5743000100000300\"\t\t# \"switch 3\" base port 0 lid 0 lmc 0",
        "[5]\t\"S-5743000100000000\"[6]\t\t# \"switch 0\" lid 0 4xSDR",
        "[2]\t\"H-5743000200000700\"[1](5743000200000701) \t\t# \"host 7\" lid 0 4xSDR",
        "[1](5743000200000701) \t\"S-5743000100000300\"[2]\t\t# lid 0 lmc 0 \"switch 3\" lid 0 4xSDR",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}

/// Reading is linear in the size of the file: this ends in seconds, not in minutes.
#[test]
fn a_fabric_of_27648_hosts_comes_back() {
    let document = Document::new(from_spec("clos3:12:48:4:192:48").unwrap());
    for format in Format::ALL {
        let text = write(&document, format).unwrap();
        let back = detected(&text).unwrap();
        assert!(
            sorted(&back.topology) == sorted(&document.topology),
            "{format}"
        );
        assert_eq!(back.names, Names::default());
    }
}
