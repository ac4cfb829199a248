//! What is wrong with a topology file is named with its place and a code.

use wormcast_verify::formats::{Document, Format, FormatError, Reading, read};
use wormcast_wire::HostId;

fn detected(text: &str) -> Result<Document, FormatError> {
    read(text, &Reading::default())
}

fn refused(text: &str) -> (String, &'static str) {
    let error = detected(text).unwrap_err();
    (error.to_string(), error.code)
}

#[test]
fn mistakes_in_json_have_places() {
    let file = "{\"switches\":[{\"id\":0,\"ports\":8},\n  {\"id\":3,\"ports\":8}],\n \"hosts\":[{\"id\":0,\
                \"switch\":0,\"port\":0,\n  \"name\":\"a\"}],\n \"links\":[{\"a\":0,\"a_port\":4,\"b\":3,\"b_port\":5}]}";
    assert_eq!(detected(file).unwrap().names.hosts[&HostId(0)], "a");
    for (from, to, message, code) in [
        (
            "\"id\":3",
            "\"id\":0",
            "line 2, column 3: switch id 0 is given twice",
            "duplicate-switch",
        ),
        (
            "\"a_port\":4",
            "\"a_port\":0",
            "line 5, column 11: port 0 of switch 0 is used twice, by host 0 and by links[0]",
            "port-used-twice",
        ),
        (
            "\"b\":3",
            "\"b\":4",
            "line 5, column 11: links[0]: there is no switch 4; switches are 0, 3",
            "unknown-switch",
        ),
        (
            "\"switch\":0",
            "\"switch\":9",
            "line 3, column 11: host 0: there is no switch 9; switches are 0, 3",
            "unknown-switch",
        ),
        (
            "\"b_port\":5",
            "\"b_port\":254",
            "line 5, column 44: links[0].b_port: 254 is outside 0 to 253",
            "outside-bounds",
        ),
        (
            "\"b_port\":5",
            "\"b\":3",
            "line 5, column 11: links[0]: field \"b_port\" is missing",
            "missing-field",
        ),
        (
            "\"name\":\"a\"",
            "\"name\":7",
            "line 4, column 10: hosts[0].name: 7 is not a string",
            "wrong-type",
        ),
        (
            "]}",
            "]",
            "line 5, column 46: topology is not JSON: EOF while parsing an object",
            "syntax",
        ),
        (
            "{\"a\":0,\"a_port\":4,\"b\":3,\"b_port\":5}",
            "",
            "topology is not connected: switch 0 cannot reach switches 3",
            "not-connected",
        ),
    ] {
        let text = file.replacen(from, to, 1);
        assert_ne!(text, file);
        assert_eq!(refused(&text), (message.to_owned(), code));
    }
}

#[test]
fn mistakes_in_lists_and_graphs_have_places() {
    let net = "Switch 4 \"S1\"\n[1] \"S2\"[1]\n[2] \"H1\"[1]\nSwitch 4 \"S2\"\n[1] \"S1\"[1]\nCa 1 \"H1\"\n";
    let list = "switch 0 4\nswitch 1 4\nhost 0 0:0\n0:1 1:1\n";
    let graph = "<graphml><graph>\n<node id=\"s0\"/>\n<node id=\"s1\"/>\n<node id=\"h0\">\
                 <data key=\"kind\">host</data></node>\n<edge source=\"s0\" target=\"h0\"/>\n\
                 <edge source=\"s0\" target=\"s1\"/>\n</graph></graphml>";
    for text in [net, list, graph] {
        detected(text).unwrap();
    }
    for (text, from, to, message, code) in [
        (
            net,
            "[2] \"H1\"",
            "[1] \"H1\"",
            "line 3, column 1: port 1 of \"S1\" is used twice",
            "port-used-twice",
        ),
        (
            net,
            "\"S1\"[1]",
            "\"S1\"[2]",
            "line 2, column 1: port 1 of \"S1\" leads to port 1 of \"S2\", but that leads to port 2 of \"S1\"",
            "links-disagree",
        ),
        (
            net,
            "Switch 4 \"S2\"",
            "Switch 4 \"S1\"",
            "line 4, column 1: \"S1\" is given twice",
            "duplicate-switch",
        ),
        (
            net,
            "Ca 1 \"H1\"",
            "Ca 1 \"H1\"\nCa 1 \"H1\"",
            "line 7, column 1: \"H1\" is given twice",
            "duplicate-host",
        ),
        (
            net,
            "Ca 1 \"H1\"",
            "",
            "line 3, column 1: there is no adapter \"H1\"; there are S1, S2, …",
            "unknown-host",
        ),
        (
            net,
            "\"S2\"[1]",
            "\"S3\"[1]",
            "line 2, column 1: there is no switch \"S3\"; there are H1, S1, S2, …",
            "unknown-switch",
        ),
        (
            net,
            "\"S2\"[1]",
            "\"S2\"[5]",
            "line 2, column 1: port 5 is outside \"S2\", 1 to 4",
            "port-outside-switch",
        ),
        (
            net,
            "\"S2\"[1]",
            "\"S2\"[300]",
            "line 2, column 10: 300 is outside 0 to 255",
            "outside-bounds",
        ),
        (
            net,
            "[1] \"S2\"[1]",
            "[1] \"S2[1]",
            "line 2, column 5: \"\"S2[1]\" is not a name in quotes",
            "syntax",
        ),
        (
            net,
            "[2] \"H1\"[1]",
            "[2] \"H1\"[1]\n[3] \"S1\"[2]",
            "line 4, column 1: port 2 of \"S1\" is used twice",
            "port-used-twice",
        ),
        (
            net,
            "[2] \"H1\"[1]",
            "",
            "line 6, column 1: adapter \"H1\" hangs on no switch",
            "host-links",
        ),
        (
            net,
            "Ca 1",
            "Tca 1",
            "line 6, column 1: \"Tca\" begins no line of a net list; lines are Switch, Ca or Rt with ports and name, \
             and [port] \"name\"[port]",
            "syntax",
        ),
        (
            list,
            "host 0 0:0",
            "host 0 2:0",
            "line 3, column 1: there is no switch 2; there are 0, 1, …",
            "unknown-switch",
        ),
        (
            list,
            "host 0 0:0",
            "host 0 0:1",
            "line 4, column 1: port 1 of switch 0 is used twice, by host 0 and by links[0]",
            "port-used-twice",
        ),
        (
            list,
            "switch 1 4",
            "switch 0 4",
            "line 2, column 8: switch 0 is given twice",
            "duplicate-switch",
        ),
        (
            list,
            "host 0 0:0",
            "host 0 0:0\nhost 0 1:2",
            "line 4, column 6: host 0 is given twice",
            "duplicate-host",
        ),
        (
            list,
            "1:1",
            "1:4",
            "line 4, column 1: links[0]: port 4 is outside switch 1, which has 4 ports, 0 to 3",
            "port-outside-switch",
        ),
        (
            list,
            "1:1",
            "1:254",
            "line 4, column 7: 254 is outside 0 to 253",
            "outside-bounds",
        ),
        (
            list,
            "1:1",
            "1:x",
            "line 4, column 7: \"x\" is not a number from 0 to 253",
            "syntax",
        ),
        (
            list,
            "1:1",
            "0:2",
            "line 4, column 1: links[0] joins switch 0 to itself",
            "link-to-itself",
        ),
        (
            list,
            "0:1 1:1",
            "0:1 1:1 7",
            "line 4, column 1: \"0:1 1:1 7\" is not of the form NODE[:PORT] NODE[:PORT], a line of an edge list",
            "syntax",
        ),
        (
            list,
            "0:1 1:1",
            "",
            "topology is not connected: switch 0 cannot reach switches 1",
            "not-connected",
        ),
        (
            graph,
            "target=\"s1\"",
            "target=\"s7\"",
            "line 6, column 1: there is no node \"s7\"; there are h0, s0, s1, …",
            "unknown-switch",
        ),
        (
            graph,
            "id=\"s1\"",
            "id=\"s0\"",
            "line 3, column 1: node \"s0\" is given twice",
            "duplicate-switch",
        ),
        (
            graph,
            "</node>",
            "</node>\n<node id=\"h0\"/>",
            "line 5, column 1: node \"h0\" is given twice",
            "duplicate-host",
        ),
        (
            graph,
            "target=\"h0\"",
            "target=\"s1\"",
            "line 4, column 1: host \"h0\" has 0 edges; it needs 1, to a switch",
            "host-links",
        ),
        (
            graph,
            "host<",
            "router<",
            "line 4, column 15: \"router\" is no kind of node; kinds are switch, host",
            "wrong-type",
        ),
        (
            graph,
            "</graph></graphml>",
            "",
            "line 7, column 1: it ends before all elements are closed",
            "syntax",
        ),
    ] {
        let wrong = text.replacen(from, to, 1);
        assert_ne!(wrong, text, "{from}");
        assert_eq!(refused(&wrong), (message.to_owned(), code), "{wrong}");
    }
    let report = "SW 0 1 0x0000000000000001 4x SDR - SW 0 2 0x0000000000000002 ( 'a' - 'b' )\n";
    for (from, to, message, code) in [
        (
            "0 1 0x",
            "0 x 0x",
            "this is no line of a report of ports",
            "syntax",
        ),
        (" )", "", "this is no line of a report of ports", "syntax"),
        ("'a'", "'a' - 'c'", "cannot be told apart", "syntax"),
        ("0 1 0x", "0 0 0x", "port 0 is outside 1 to 254", "syntax"),
        (
            "2 0x",
            "2 x",
            "this is no line of a report of ports",
            "syntax",
        ),
        (
            "SDR - SW 0 2",
            "SDR - SW 0 3",
            "there is no switch \"0x0000000000000002\"",
            "unknown-switch",
        ),
    ] {
        // Behind a good line, so that the file is still taken for a report.
        let good = "SW 0 8 0x0000000000000001 4x SDR 'a'\n";
        let (refusal, found) = refused(&format!("{good}{}", report.replacen(from, to, 1)));
        assert!(
            refusal.starts_with("line 2, column 1: ") && refusal.contains(message),
            "{refusal}"
        );
        assert_eq!(found, code);
    }
    assert_eq!(refused("").1, "no-switches");
    assert_eq!(refused("Garbage").1, "syntax");
    assert_eq!(refused("<a><b></a>").1, "syntax");
    assert_eq!(
        "dot".parse::<Format>().unwrap_err().to_string(),
        "there is no format \"dot\"; formats are json, ibsim, ibnetdiscover, edges, graphml"
    );
}
