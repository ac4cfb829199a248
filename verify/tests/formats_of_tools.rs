//! Files as other tools write them: ibnetdiscover with its options, GraphML of yEd and of networkx.

use wormcast_verify::formats::{Document, Format, Reading, read, write};
use wormcast_wire::{HostId, SwitchId};

fn detected(text: &str) -> Document {
    read(text, &Reading::default()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Two switches with two links, an adapter with two ports, one with one, a router; as ibnetdiscover prints it.
const PLAIN: &str = r#"#
# Topology file: generated on Fri Nov 27 17:01:39 2026
#
# Initiated from node 0000000000100000 port 0000000000100001

vendid=0x0
devid=0x0
sysimgguid=0x20000b
switchguid=0x20000b(20000b)
Switch	8 "S-000000000020000b"		# "Two" base port 0 lid 2 lmc 0
[1]	"H-0000000000100003"[1](100004) 		# "Twin" lid 4 4xSDR
[3]	"S-0000000000200009"[3]		# "One" lid 1 4xSDR
[5]	"S-0000000000200009"[5]		# "One" lid 1 4xSDR
[7]	"R-0000000000300001"[1](300002) 		# "Gate" lid 7 4xSDR

vendid=0x0
devid=0x0
sysimgguid=0x200009
switchguid=0x200009(200009)
Switch	8 "S-0000000000200009"		# "One" base port 0 lid 1 lmc 0
[1]	"H-0000000000100000"[1](100001) 		# "Lone" lid 3 4xSDR
[2]	"H-0000000000100003"[2](100005) 		# "Twin" lid 5 4xSDR
[3]	"S-000000000020000b"[3]		# "Two" lid 2 4xSDR
[5]	"S-000000000020000b"[5]		# "Two" lid 2 4xSDR

vendid=0x0
devid=0x0
sysimgguid=0x100003
caguid=0x100003
Ca	2 "H-0000000000100003"		# "Twin"
[1](100004) 	"S-000000000020000b"[1]		# lid 4 lmc 0 "Two" lid 2 4xSDR
[2](100005) 	"S-0000000000200009"[2]		# lid 5 lmc 0 "One" lid 1 4xSDR

vendid=0x0
devid=0x0
sysimgguid=0x100000
caguid=0x100000
Ca	1 "H-0000000000100000"		# "Lone"
[1](100001) 	"S-0000000000200009"[1]		# lid 3 lmc 0 "One" lid 1 4xSDR

vendid=0x0
devid=0x0
sysimgguid=0x300001
rtguid=0x300001
Rt	2 "R-0000000000300001"		# "Gate"
[1](300002) 	"S-000000000020000b"[7]		# lid 7 lmc 0 "Two" lid 2 4xSDR
"#;

/// The same with -p.
const PORTS: &str = "\
CA     4  1 0x0000000000100004 4x SDR - SW     2  1 0x000000000020000b ( 'Twin' - 'Two' )
CA     5  2 0x0000000000100005 4x SDR - SW     1  2 0x0000000000200009 ( 'Twin' - 'One' )
SW     2  8 0x000000000020000b 4x SDR                                    'Two'
SW     2  7 0x000000000020000b 4x SDR - RT     7  1 0x0000000000300002 ( 'Two' - 'Gate' )
SW     2  5 0x000000000020000b 4x SDR - SW     1  5 0x0000000000200009 ( 'Two' - 'One' )
SW     2  3 0x000000000020000b 4x SDR - SW     1  3 0x0000000000200009 ( 'Two' - 'One' )
SW     2  1 0x000000000020000b 4x SDR - CA     4  1 0x0000000000100004 ( 'Two' - 'Twin' )
SW     1  8 0x0000000000200009 4x SDR                                    'One'
SW     1  5 0x0000000000200009 4x SDR - SW     2  5 0x000000000020000b ( 'One' - 'Two' )
SW     1  3 0x0000000000200009 4x SDR - SW     2  3 0x000000000020000b ( 'One' - 'Two' )
SW     1  2 0x0000000000200009 4x SDR - CA     5  2 0x0000000000100005 ( 'One' - 'Twin' )
SW     1  1 0x0000000000200009 4x SDR - CA     3  1 0x0000000000100001 ( 'One' - 'Lone' )
CA     3  1 0x0000000000100001 4x SDR - SW     1  1 0x0000000000200009 ( 'Lone' - 'One' )
CA     0  2 0x0000000000100002 4x SDR                                    'Lone'
RT     7  1 0x0000000000300002 4x SDR - SW     2  7 0x000000000020000b ( 'Gate' - 'Two' )
RT     0  2 0x0000000000300003 4x SDR                                    'Gate'
";

#[test]
fn ibnetdiscover_says_the_same_with_all_its_options() {
    let plain = detected(PLAIN);
    assert_eq!(plain.names.hosts[&HostId(1)], "Twin/1");
    let gate = &plain.topology.hosts()[3];
    assert_eq!(
        (gate.id, gate.transit),
        (HostId(3), false),
        "a router re-injects nothing"
    );
    assert_eq!(plain.topology.links().len(), 2);
    let ports = detected(PORTS);
    assert_eq!(
        (&ports.topology, &ports.names),
        (&plain.topology, &plain.names)
    );
    // With -g there are headings, and what belongs to a chassis comes twice.
    let switch = PLAIN.find("vendid").unwrap()
        ..PLAIN
            .find("vendid=0x0\ndevid=0x0\nsysimgguid=0x200009")
            .unwrap();
    let spine = PLAIN[switch.clone()].replace("(20000b)\n", "(20000b)\t# ISR9024 Chip 1\n");
    let grouped = format!(
        "{}Chassis 1 (guid 0x20000b)\nHostname: box\n\n# Spine Nodes\n{spine}\n# Line Nodes\n# Chassis Switches\n{spine}\n\
         # Chassis CAs\nNon-Chassis Nodes\n\n{}",
        &PLAIN[..switch.start],
        &PLAIN[switch.end..]
    )
    .replace("[3]\t\"S-", "[3][ext 12]\t\"S-");
    let grouped = detected(&grouped);
    assert_eq!(
        (&grouped.topology, &grouped.names),
        (&plain.topology, &plain.names)
    );
    assert!(grouped.warnings.is_empty());
}

#[test]
fn what_comes_twice_must_say_the_same() {
    let second = "Switch 4 \"S1\"\n[1] \"S2\"[1]\n";
    let all = |second: &str| {
        let rest = "Switch 4 \"S2\"\n[1] \"S1\"[1]\n[2] \"S1\"[2]\n";
        read(
            &format!("Chassis 1\nSwitch 4 \"S1\"\n[1] \"S2\"[1]\n{second}{rest}"),
            &Reading::default(),
        )
    };
    all(second).unwrap();
    for (wrong, code) in [
        (second.replace('4', "5"), "duplicate-switch"),
        (second.replace("\"[1]", "\"[2]"), "port-used-twice"),
    ] {
        assert_eq!(all(&wrong).unwrap_err().code, code);
    }
}

#[test]
fn a_cable_back_to_its_own_node_is_left_out() {
    let looped = PLAIN.replace(
        "[7]\t\"R-",
        "[2]\t\"S-000000000020000b\"[8]\t\t# \"Two\" lid 2 4xSDR\n[8]\t\"S-000000000020000b\"[2]\n[7]\t\"R-",
    );
    let document = detected(&looped);
    assert_eq!(document.topology, detected(PLAIN).topology);
    let warning =
        "line 14, column 1: a cable leads from port 2 of \"Two\" to its own port 8; it is left out";
    assert_eq!(document.warnings, [warning]);
    let ports = PORTS.replace(
        "SW     2  8 0x000000000020000b 4x SDR                                    'Two'",
        "SW     2  8 0x000000000020000b 4x SDR - SW     2  8 0x000000000020000b ( 'Two' - 'Two' )",
    );
    let document = detected(&ports);
    assert_eq!(document.topology, detected(PLAIN).topology);
    assert!(document.warnings[0].contains("from port 8 of \"Two\" to its own port 8"));
}

fn graph(head: &str, edges: &[(&str, &str, &str)]) -> String {
    let node = |name| {
        format!(
            "<node id=\"{name}\"><data key=\"d1\"><y:ShapeNode><y:Fill/><y:NodeLabel>\n {name} <y:LabelModel/></y:NodeLabel>\
             <y:NodeLabel>second</y:NodeLabel></y:ShapeNode></data></node>"
        )
    };
    let mut names: Vec<&str> = edges.iter().flat_map(|(a, b, _)| [*a, *b]).collect();
    names.sort_unstable();
    names.dedup();
    let nodes: String = names.into_iter().map(node).collect();
    let arcs = edges.iter().map(|(a, b, more)| {
        format!("<edge source=\"{a}\" target=\"{b}\" {more}><data key=\"d1\"><y:EdgeLabel>10</y:EdgeLabel></data></edge>\n")
    });
    format!(
        "<graphml><key id=\"d1\" yfiles.type=\"nodegraphics\"/><graph {head}>\n{nodes}\n{}</graph></graphml>",
        arcs.collect::<String>()
    )
}

/// Links by the places of their ends and ports, in order.
fn links(document: &Document) -> Vec<(u16, u8, u16, u8)> {
    let links = document.topology.links().iter();
    links
        .map(|link| (link.a.0, link.a_port.get(), link.b.0, link.b_port.get()))
        .collect()
}

#[test]
fn arcs_are_links() {
    let directed = "edgedefault=\"directed\"";
    let ring = [("a", "b", ""), ("b", "c", ""), ("a", "c", "")];
    let one_way = detected(&graph(directed, &ring));
    assert_eq!(links(&one_way), links(&detected(&graph("", &ring))));
    assert_eq!(
        one_way.names.switches[&SwitchId(0)],
        "a",
        "the label that is drawn"
    );
    assert!(one_way.warnings.is_empty());
    // An arc each way: a link, with the ports that either gives.
    let both = [
        ("a", "b", "sourceport=\"3\""),
        ("b", "a", "sourceport=\"1\" targetport=\"3\""),
        ("b", "c", ""),
        ("c", "b", ""),
    ];
    let both_ways = detected(&graph(directed, &both));
    assert_eq!(links(&both_ways)[0], (0, 3, 1, 1));
    assert_eq!(links(&both_ways).len(), 2);
    assert!(
        both_ways.warnings[0].contains("two are one link"),
        "{:?}",
        both_ways.warnings
    );
    // Not all have one the other way, or not on the same ports: each is a link.
    for other in ["", "sourceport=\"2\" targetport=\"7\""] {
        let mixed = [
            ("a", "b", "sourceport=\"3\""),
            ("b", "a", other),
            ("b", "c", ""),
        ];
        let mixed = detected(&graph(
            directed,
            &mixed[..if other.is_empty() { 3 } else { 2 }],
        ));
        assert_eq!(links(&mixed).len(), if other.is_empty() { 3 } else { 2 });
        assert!(
            mixed.warnings[0].contains("each is a link of its own"),
            "{:?}",
            mixed.warnings
        );
    }
    let looped = [("a", "b", ""), ("b", "b", "")];
    let looped = detected(&graph(directed, &looped));
    assert_eq!(links(&looped).len(), 1);
    assert!(looped.warnings[0].contains("an edge leads from \"b\" to \"b\""));
}

#[test]
fn switches_get_hosts_where_a_file_of_others_has_none() {
    let give = |text: &str| {
        let reading = Reading {
            give_hosts: true,
            ..Reading::default()
        };
        read(text, &reading).unwrap()
    };
    let plain = graph("", &[("a", "b", ""), ("b", "c", "")]);
    let given = give(&plain);
    assert_eq!(given.topology.hosts().len(), 3);
    assert!(given.warnings[0].contains("every switch was given one"));
    assert!(detected(&plain).topology.hosts().is_empty());
    for (text, hosts) in [
        ("0 1\nhost 0 0\n", 1),
        (&*write(&detected(&plain), Format::Json).unwrap(), 0),
    ] {
        let read = give(text);
        assert_eq!(
            (read.topology.hosts().len(), read.warnings.len()),
            (hosts, 0)
        );
    }
}
