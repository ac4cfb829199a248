//! What is wrong with tables and paths of others is named with its place, and no input is a panic.

use crate::foreign_files;

use foreign_files::{below, csv, dump, net_list, random_tables, tables_file};
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use wormcast_routing::generate::from_spec;
use wormcast_routing::routes::{Algorithm, Route, Routes};
use wormcast_verify::foreign::{Ends, ForeignError, Network, Verdict, verify_paths, verify_tables};
use wormcast_verify::formats::Document;

fn refused(result: Result<Verdict, ForeignError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn mistakes_in_paths_have_places() {
    let mesh = Network::new(&Document::new(from_spec("mesh:2").unwrap()), None);
    let double = r#"{"switches":[{"id":0,"ports":4},{"id":1,"ports":4}],"hosts":[],
        "links":[{"a":0,"a_port":0,"b":1,"b_port":0},{"a":0,"a_port":1,"b":1,"b_port":1}]}"#;
    let double = Network::read(double).unwrap();
    for (text, network, message) in [
        (
            "",
            None,
            "line 1, column 1: the file is empty; its first row names the columns, as in src,dst,path",
        ),
        (
            "a,b\n1,2\n",
            None,
            "line 1, column 1: there is no column path; the first row has a, b, and names at least path, as in src,dst,path",
        ),
        (
            "path,Path\n",
            None,
            "line 1, column 6: column path is there twice",
        ),
        (
            "path\n",
            None,
            "line 2, column 1: no path follows the first row",
        ),
        (
            "src,path\na b\n",
            None,
            "line 2, column 1: this row has 1 fields, the first row has 2; a field with a comma needs quotes",
        ),
        (
            "path\na\n",
            None,
            "line 2, column 1: a path has at least two nodes",
        ),
        (
            "src,dst,path\nh1,h2,\n",
            None,
            "line 2, column 7: the path is empty; one without a node between its ends names both",
        ),
        (
            "path\n\na b\"c\n",
            None,
            "line 3, column 4: a quote stands in a field that does not begin with one",
        ),
        (
            "path\n\"a b\n",
            None,
            "line 2, column 1: a field in quotes does not end",
        ),
        (
            "path\n\"a b\"c\n",
            None,
            "line 2, column 6: after a field in quotes comes a comma or the end of the line",
        ),
        (
            "path\na ->-> b\n",
            None,
            "line 2, column 5: a node is missing between two signs",
        ),
        (
            "path\na: b\n",
            None,
            "line 2, column 1: \"a:\" has no port; it is written as node:port@channel, as in s1:3@0",
        ),
        (
            "path\na b:1\n",
            None,
            "line 2, column 3: the path ends at b, and so does not leave it by a port",
        ),
        (
            "path\nof:1 of:2 of\n",
            None,
            "line 2, column 1: the path goes from of to of; a colon stands before a port, so names with colons need --topology",
        ),
        (
            "src,dst,path\nh0,h1,s1-s2-s3\nh1,h0,s3-s2-s1\n",
            None,
            "line 2, column 7: \"s1-s2-s3\" may be one node or several: nodes stand between spaces, or between ->, →, >, ;, | or commas; if it is one, name the ends too, as in h0 s1-s2-s3 h1, or give --topology",
        ),
        (
            "path\ns1 s2 s3\ns1 s2-s3\n",
            None,
            "line 3, column 1: \"s2-s3\" may be one node, or s2 and s3, which are nodes elsewhere in this file; write spaces, -> or ; between nodes, or give --topology",
        ),
        (
            "path\ns1 s2 -> s3\ns1 -> s2\n",
            None,
            "line 2, column 1: \"s1 s2\" may be one node, or s1 and s2, which are nodes elsewhere in this file; write spaces, -> or ; between nodes, or give --topology",
        ),
        (
            "path\ns1-s2 s2-s3\n",
            None,
            "line 2, column 1: \"s1-s2\" and \"s2-s3\" look like links that meet at s2; a path names nodes: nodes stand between spaces, or between ->, →, >, ;, | or commas",
        ),
        (
            "path\n\"[s1, s2]\"\n",
            None,
            "line 2, column 1: \"[s1\" is not read as a node: nodes stand between spaces, or between ->, →, >, ;, | or commas; without --topology a name begins and ends with a letter, a digit or _",
        ),
        (
            "path\ns1 --> s2\n",
            None,
            "line 2, column 1: \"s1 -\" is not read as a node: nodes stand between spaces, or between ->, →, >, ;, | or commas; without --topology a name begins and ends with a letter, a digit or _",
        ),
        (
            "path\na:1 b\na:1 c\n",
            None,
            "line 3, column 1: port 1 of a leads to c here, and to b in line 2",
        ),
        (
            "path\na:1 b\na b\n",
            None,
            "line 3, column 1: from a to b no port is given here, and one in line 2; give it in all paths, or in none",
        ),
        (
            "src,path\nx,s0 s9\n",
            Some(&mesh),
            "line 2, column 3: there is no \"x\" in the topology; its switches are s0, s1, s2, s3, its hosts h0, h1, h2, h3",
        ),
        (
            "path\ns0 s3\n",
            Some(&mesh),
            "line 2, column 1: no link leads from s0 to s3",
        ),
        (
            "path\ns0:7 s1\n",
            Some(&mesh),
            "line 2, column 1: port 7 of s0 does not lead to s1; port 1 does",
        ),
        (
            "path\ns0 s1\n",
            Some(&double),
            "line 2, column 1: several links lead from s0 to s1; say by which port, as in s0:0: 0, 1",
        ),
    ] {
        assert_eq!(refused(verify_paths(text, network)), message, "{text:?}");
    }
}

#[test]
fn mistakes_in_tables_have_places() {
    let topology = from_spec("line:2").unwrap();
    let network = Network::read(&net_list(&topology)).unwrap();
    let head = "Unicast lids [0x0-0x9] of switch Lid 1 guid 0x5743000100000000 (x):\n";
    let tables = |text: &str| refused(verify_tables(&network, &[text], None, Ends::Hosts));
    for (text, message) in [
        (
            "\n",
            "there is no forwarding table in it; dump_lfts, ibroute and OpenSM's opensm-lfts.dump and opensm.fdbs have them, a tables file is JSON",
        ),
        (
            "0x0001 001\n",
            "line 1, column 1: an entry comes before the first switch; a table begins with a line such as Unicast lids … of switch Lid 4 guid 0x0002c90300000001 ('S0'):",
        ),
        (
            "Unicast lids of x\n",
            "line 1, column 1: the line of a switch has no GUID, as in guid 0x0002c90300000001",
        ),
        (
            "Unicast lids guid 0x7 x\n",
            "line 1, column 1: no switch of the topology has the GUID 0x0000000000000007; there are s0, s1",
        ),
        (
            "HEADHEAD",
            "line 2, column 1: the table of switch s0 is given twice",
        ),
        (
            "HEAD0x0001 256 :\n",
            "line 2, column 1: \"256\" is not a port; ports are 0 to 254, and 255 for none",
        ),
        (
            "HEAD 0xg001 1\n",
            "line 2, column 2: \"0xg001\" is not a LID, as in 0x0004",
        ),
        (
            "HEAD0xc000 1\n",
            "line 2, column 1: LID 0xc000 is outside 0x0001 to 0xbfff",
        ),
        (
            "HEAD0x0001 1\n0x0001 2\n",
            "line 3, column 1: LID 1 is given twice in one table",
        ),
        (
            "HEADMulticast mlids [0xc000]\n",
            "line 2, column 1: this is a multicast table; unicast tables are what dump_lfts prints",
        ),
        (
            "HEADLid 0x0001 1\n",
            "line 2, column 1: \"Lid\" begins no line of a forwarding table; lines are Unicast lids … guid 0x…, and a LID and a port, as in 0x0004 003",
        ),
        (
            "HEADibwarn: [1]\n",
            "line 2, column 1: \"ibwarn:\" begins no line of a forwarding table; lines are Unicast lids … guid 0x…, and a LID and a port, as in 0x0004 003",
        ),
        (
            "{\"tables\":3}",
            "line 1, column 11: invalid type: integer `3`, expected a sequence",
        ),
        (
            "{\"tables\":[",
            "line 1, column 11: EOF while parsing a list",
        ),
        (
            "{\"tables\":[{\"name\":\"t\",\"bits\":129,\"switches\":[]}]}",
            "tables[0].bits: 129 is outside 1 to 128",
        ),
    ] {
        assert_eq!(tables(&text.replace("HEAD", head)), message, "{text:?}");
    }
    for (entry, message) in [
        (
            r#"{"key":"x","ports":[]}"#,
            ".key: \"x\" is not a key; keys are 0x0a000100/24, 10.0.1.0/24 or a number",
        ),
        (
            r#"{"key":"1/33","ports":[]}"#,
            ".key: \"1/33\" has a length outside 0 to 32",
        ),
        (
            r#"{"key":"0x100000000","ports":[]}"#,
            ".key: \"0x100000000\" has more than 32 bits",
        ),
        (
            r#"{"key":"10.0.0.1/24","ports":[]}"#,
            ".key: \"10.0.0.1/24\" has bits behind its length 24",
        ),
        (
            r#"{"key":"1","ports":[256]}"#,
            ".ports: 256 is outside 0 to 255",
        ),
    ] {
        let text = format!(
            r#"{{"tables":[{{"name":"t","bits":32,"switches":[{{"switch":0,"entries":[{entry}]}}]}}]}}"#
        );
        assert_eq!(
            tables(&text),
            format!("tables[0].switches[0].entries[0]{message}")
        );
    }
    let strange = r#"{"tables":[{"name":"t","bits":1,"switches":[{"switch":"h0","entries":[]}]}]}"#;
    assert_eq!(
        tables(strange),
        "tables[0].switches[0]: there is no switch \"h0\"; there are s0, s1"
    );
    let plain = Network::new(&Document::new(topology), None);
    let without = verify_tables(&plain, &[head], None, Ends::Hosts).unwrap_err();
    assert_eq!((without.text, without.error.code), (None, "no-addresses"));
}

#[test]
fn mistakes_in_path_records_have_places() {
    let topology = from_spec("line:2").unwrap();
    let network = Network::read(&net_list(&topology)).unwrap();
    let head = "Unicast lids guid 0x5743000100000000 (x):\n";
    for (text, message) in [
        (
            "slid....1\n",
            "line 1, column 1: \"slid....1\" is no line of path records, as saquery PR prints them: PathRecord dump:, then lines such as dlid....2",
        ),
        (
            "PathRecord dump:\nPathRecord dump:\n",
            "line 1, column 1: this path record has no slid, dlid or sl",
        ),
        (
            "PathRecord dump:\n\tsl....0x10\n",
            "line 2, column 1: sl \"0x10\" is outside 0 to 15",
        ),
        (
            "PathRecord dump:\n\tdlid....x\n",
            "line 2, column 1: dlid \"x\" is outside 0 to 65535",
        ),
        ("", "there is no path record from h0 to LID 1002 (h1)"),
    ] {
        let error = verify_tables(&network, &[head], Some(text), Ends::Hosts).unwrap_err();
        assert_eq!(
            (error.text, error.to_string().as_str()),
            (Some(1), message),
            "{text:?}"
        );
    }
    let file = verify_tables(
        &network,
        &[head, "{\"tables\":[]}"],
        Some(
            "PathRecord dump:\nslid..1000\ndlid..1002\nsl..1\nPathRecord dump:\nslid..1000\ndlid..1003\nsl..0\nPathRecord dump:\nslid..1002\ndlid..1000\nsl..0\nPathRecord dump:\nslid..1003\ndlid..1001\nsl..0\n",
        ),
        Ends::Hosts,
    );
    assert_eq!(file.unwrap_err().error.code, "unsupported");
}

#[test]
fn where_nobody_sends_nothing_is_claimed() {
    let bare = Network::new(&Document::new(from_spec("ring:3:0").unwrap()), None);
    let table = r#"{"tables":[{"name":"t","bits":1,"switches":[{"switch":0,"entries":[{"key":"0","ports":[0]}]}]}]}"#;
    let error = verify_tables(&bare, &[table], None, Ends::Hosts).unwrap_err();
    assert_eq!((error.text, error.error.code), (None, "no-hosts"));
    assert!(
        verify_tables(&bare, &[table], None, Ends::All)
            .unwrap()
            .is_deadlock_free()
    );
}

#[test]
fn commas_stand_between_nodes() {
    let paths = |text: &str| verify_paths(text, None).unwrap();
    let ring = "src,dst,path\nh0,h1,\"s1,s2,s3\"\nh1,h2,\"s2, s3, s1\"\nh2,h0,\"s3,s1,s2\"\n";
    let verdict = paths(ring);
    assert_eq!(verdict.cycle.len(), 3, "{verdict:?}");
    assert_eq!(verdict.checked[..2], [("paths", 3), ("hops", 12)]);
    let named = paths("path\nh0 leaf-1 h1\nh1 leaf-1 spine-2 leaf-3 h2\n");
    assert!(named.is_deadlock_free());
}

#[test]
fn where_no_packet_goes_nothing_is_claimed() {
    let network = Network::new(&Document::new(from_spec("line:3").unwrap()), None);
    let table = |entries: &str| {
        format!(
            r#"{{"tables":[{{"name":"t","bits":1,"switches":[{{"switch":1,"entries":[{entries}]}}]}}]}}"#
        )
    };
    let drop = table(r#"{"key":"0","ports":[]}"#);
    for text in ["{\"tables\":[]}", &*table(""), &*drop] {
        let error = verify_tables(&network, &[text], None, Ends::Hosts).unwrap_err();
        assert_eq!(
            (error.text, error.error.code),
            (Some(0), "nothing-to-check")
        );
    }
    let checked = |text: &str| {
        verify_tables(&network, &[text], None, Ends::Hosts)
            .unwrap()
            .checked
    };
    let found = checked(&table(r#"{"key":"0","ports":[0]}"#));
    assert!(
        found.contains(&("hops", 1)) && found.contains(&("switches_without_table", 2)),
        "{found:?}"
    );
}

#[test]
fn addresses_that_are_given_twice_are_refused() {
    let net = net_list(&from_spec("line:2").unwrap());
    let twice = Network::read(&net.replace("# lid 1002 lmc 1", "# lid 1001 lmc 0")).unwrap_err();
    assert_eq!(twice.code, "address");
    assert!(
        twice.to_string().contains("lid 1001 is given twice"),
        "{twice}"
    );
}

/// A text with some of its bytes changed, cut or doubled.
fn spoilt(text: &str, seed: u64) -> String {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=below(&mut random, 6) {
        let at = below(&mut random, bytes.len().max(1)).min(bytes.len().saturating_sub(1));
        match below(&mut random, 5) {
            0 => bytes.truncate(at),
            1 => {
                let piece = bytes[at..bytes.len().min(at + 40)].to_vec();
                bytes.splice(at..at, piece);
            }
            2 if !bytes.is_empty() => drop(bytes.remove(at)),
            _ if !bytes.is_empty() => {
                bytes[at] = b"\"\n,:;@[]{}0x9 >-/\\\xff"[below(&mut random, 19)];
            }
            _ => {}
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_text_is_a_panic(text in "\\PC{0,200}", more in "[ -~\n]{0,200}") {
        let network = Network::new(&Document::new(from_spec("ring:4").unwrap()), None);
        for text in [text.as_str(), more.as_str(), &format!("path\n{text}"), &format!("path\n{more}")] {
            let _ = Network::read(text);
            let _ = verify_paths(text, None);
            let _ = verify_paths(text, Some(&network));
            let _ = verify_tables(&network, &[text], None, Ends::All);
            let _ = verify_tables(&network, &[], Some(text), Ends::All);
        }
    }

    #[test]
    fn no_spoilt_file_is_a_panic(seed in any::<u64>()) {
        let topology = from_spec("irregular:4:1:2:2").unwrap();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let ports = [(); 2].map(|()| random_tables(&topology, &mut random, 20));
        let net = net_list(&topology);
        let whole = Network::read(&net).unwrap();
        let routes: Vec<Route> = Routes::plan(&topology, Algorithm::Osud, None).unwrap().iter().collect();
        let spoilt_net = Network::read(&spoilt(&net, seed));
        let _ = verify_tables(&whole, &[&spoilt(&dump(&topology, &ports), seed)], None, Ends::All);
        let _ = verify_tables(&whole, &[&spoilt(&tables_file(&topology, &ports), seed)], None, Ends::Hosts);
        let _ = verify_paths(&spoilt(&csv(&routes, true), seed), None);
        let _ = verify_paths(&spoilt(&csv(&routes, true), seed), Some(&whole));
        if let Ok(network) = spoilt_net {
            let _ = verify_tables(&network, &[&dump(&topology, &ports)], None, Ends::Hosts);
        }
    }
}
