use super::*;
use wormcast_switch_dataplane::Attachment;

const TWO: &str = r#"{
    "program": "a.json", "cpu_port": 510,
    "switches": [
        {"name": "s0"},
        {"name": "s1", "device_id": 7, "program": "b.json", "cpu_port": 255}
    ],
    "links": [{"ends": ["s0:1", "s1:2"], "faults": {"rate": "10mbit", "loss": "1%"}}],
    "edges": [{"port": "s1:0", "interface": "eth1"}]
}"#;

fn common() -> SwitchSettings {
    SwitchSettings::without_ports(0, 100)
}

#[test]
fn a_file_becomes_settings() {
    let fabric = FabricFile::parse(TWO, 511).unwrap();
    let (switches, links) = fabric.settings(&common());
    assert_eq!(switches.len(), 2);
    assert_eq!((switches[0].device_id, switches[1].device_id), (0, 7));
    assert_eq!(fabric.switches[0].program, Some("a.json".into()));
    assert_eq!(fabric.switches[1].program, Some("b.json".into()));
    assert_eq!(switches[0].cpu_port, Some(PortId(510)));
    assert_eq!(switches[1].cpu_port, Some(PortId(255)));
    assert_eq!(switches[1].ports[0].number, PortId(0));
    assert_eq!(
        switches[1].ports[0].attachment,
        Attachment::Interface("eth1".to_owned())
    );
    let end = |switch, port| LinkEnd {
        switch,
        port: PortId(port),
    };
    assert_eq!(links[0].ends, [end(0, 1), end(1, 2)]);
    let rate = switches[1].impairments.settings(2).rate;
    assert_eq!(rate.unwrap().bits_per_s(), 10_000_000);
    assert!(switches[1].impairments.settings(0).rate.is_none());
    let links: Vec<_> = fabric.links().collect();
    assert_eq!(links, [[(0, PortId(1)), (7, PortId(2))]]);
}

#[test]
fn what_cannot_be_is_named_with_what_can() {
    let names = |count: usize| -> String {
        let one = |number| format!(r#"{{"name": "s{number}"}}"#);
        Vec::from_iter((0..count).map(one)).join(",")
    };
    let with = |rest: &str| format!(r#"{{"switches": [{}]{rest}}}"#, names(10));
    let cases = [
        ("{".to_owned(), "EOF while parsing"),
        (
            with(r#", "link": []"#),
            "unknown field `link`, expected one of `program`",
        ),
        (
            with(r#", "links": [], "links": []"#),
            "duplicate field `links`",
        ),
        (
            r#"{"switches": []}"#.to_owned(),
            "0 switches: a fabric has 1 to 4096",
        ),
        (
            format!(r#"{{"switches": [{}]}}"#, names(4097)),
            "4097 switches",
        ),
        (
            r#"{"switches": [{"name": "a b"}]}"#.to_owned(),
            "`a b` is not a name",
        ),
        (
            r#"{"switches": [{"name": "a"}, {"name": "a"}]}"#.to_owned(),
            "two switches have the name `a`",
        ),
        (
            r#"{"switches": [{"name": "a"}, {"name": "b", "device_id": 0}]}"#.to_owned(),
            "switches `a` and `b` have the same device id 0",
        ),
        (
            with(r#", "links": [{"ends": ["s1:1", "s77:1"]}]"#),
            "`s77:1`: there is no such switch; there are s0, s1, s2, s3, s4, s5, s6, s7 \
             and 2 more",
        ),
        (
            with(r#", "links": [{"ends": ["s1", "s2:1"]}]"#),
            "`s1` is not a port of a switch: SWITCH:PORT (like s1:3)",
        ),
        (
            with(r#", "links": [{"ends": ["s1:512", "s2:1"]}]"#),
            "`s1:512`: ports are 0 to 511",
        ),
        (
            with(r#", "links": [{"ends": ["s1:99999999999", "s2:1"]}]"#),
            "`s1:99999999999`: ports are 0 to 511",
        ),
        (
            with(r#", "links": [{"ends": ["s1:511", "s2:1"]}]"#),
            "port 511 is the drop port",
        ),
        (
            with(r#", "cpu_port": 9, "links": [{"ends": ["s1:9", "s2:1"]}]"#),
            "`s1:9`: port 9 is the CPU port",
        ),
        (with(r#", "cpu_port": 511"#), "port 511 is the drop port"),
        (
            with(r#", "links": [{"ends": ["s1:1", "s1:1"]}]"#),
            "port `s1:1` is used twice: in links[0] and in links[0]",
        ),
        (
            with(
                r#", "links": [{"ends": ["s1:1", "s2:1"]}],
                "edges": [{"port": "s2:1", "interface": "e"}]"#,
            ),
            "port `s2:1` is used twice: in links[0] and in edges[0]",
        ),
        (
            with(
                r#", "edges": [{"port": "s2:1", "interface": "e"},
                {"port": "s2:2", "interface": "e"}]"#,
            ),
            "interface `e` is attached to two ports: in edges[0] and in edges[1]",
        ),
        (
            with(r#", "links": [{"ends": ["s1:1", "s2:1"], "faults": {"los": "1"}}]"#),
            "unknown field `los`, expected one of `loss`, `duplicate`",
        ),
        (
            with(r#", "links": [{"ends": ["s1:1", "s2:1"], "faults": {"loss": "2"}}]"#),
            "links[0]: `2` is not a probability",
        ),
    ];
    for (json, expected) in cases {
        let error = FabricFile::parse(&json, 511).unwrap_err().to_string();
        assert!(error.contains(expected), "{json}: {error}");
    }
}

#[test]
fn queues_and_timing_of_lossless_ports() {
    let text = r#"{
        "switches": [{"name": "s0", "queueing": ["--lossless", "--link-rate=1gbit"]}, {"name": "s1"}],
        "links": [{"ends": ["s0:1", "s1:2"], "rate": "100mbit"}],
        "edges": [{"port": "s0:0", "interface": "eth1", "delay": "3ms"}]
    }"#;
    let fabric = FabricFile::parse(text, 511).unwrap();
    let (switches, _) = fabric.settings(&common());
    let lossless = switches[0].queueing.lossless.as_ref().unwrap();
    assert_eq!(lossless.link_of(1).rate.bits_per_s(), 100_000_000);
    assert_eq!(lossless.link_of(0).delay_us, 3_000);
    assert_eq!(
        switches[1].queueing,
        common().queueing,
        "as the command line says"
    );
    let error = |from: &str, to: &str| {
        let text = text.replace(from, to);
        FabricFile::parse(&text, 511).unwrap_err().to_string()
    };
    let message = error("--link-rate=1gbit", "--link-rate=fast");
    assert!(
        message.starts_with("switches[0].queueing: --link-rate fast:"),
        "{message}"
    );
    assert!(error("100mbit", "7").starts_with("links[0]: `7` is not a rate"));
    assert!(error("3ms", "3").starts_with("edges[0]: `3` is not a time"));
}
