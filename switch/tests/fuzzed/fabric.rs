//! Files of `--fabric`. What is taken names each port once, within bounds, and becomes
//! settings without a doubt left; what is not has an error that says so.
//!
//! Input: the JSON.

use std::collections::BTreeSet;

use wormcast_switch::fabric::{FabricFile, PORT_MAX};
use wormcast_switch_dataplane::{SWITCHES_MAX, SwitchSettings};

const DROP_PORT: u16 = 511;

fn common() -> SwitchSettings {
    SwitchSettings::without_ports(0, 64)
}

pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let fabric = match FabricFile::parse(&text, DROP_PORT) {
        Ok(fabric) => fabric,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert!((1..=SWITCHES_MAX).contains(&fabric.switches.len()));
    let (switches, links) = fabric.settings(&common());
    assert_eq!(switches.len(), fabric.switches.len());
    let ids: BTreeSet<u64> = switches.iter().map(|switch| switch.device_id).collect();
    assert_eq!(ids.len(), switches.len(), "device ids tell switches apart");
    let names: BTreeSet<&str> = switches.iter().map(|switch| switch.name.as_str()).collect();
    assert_eq!(names.len(), switches.len(), "names tell switches apart");
    let mut used = BTreeSet::new();
    for link in &links {
        for end in link.ends {
            assert!(end.switch < switches.len());
            assert!(used.insert((end.switch, end.port)), "{end:?} is used twice");
        }
    }
    for (number, switch) in switches.iter().enumerate() {
        let ports: Vec<u16> = (0..4).collect();
        super::arguments::plan(&switch.queueing, &ports);
        for port in &switch.ports {
            assert!(used.insert((number, port.number)), "{port:?} is used twice");
        }
    }
    for (switch, port) in used {
        assert!(port.0 <= PORT_MAX && port.0 != DROP_PORT);
        assert_ne!(Some(port), switches[switch].cpu_port);
    }
    assert_eq!(fabric.links().count(), links.len());
    assert_eq!(FabricFile::parse(&text, DROP_PORT).as_ref(), Ok(&fabric));
}

pub fn seeds() -> Vec<Vec<u8>> {
    let whole = r#"{"program":"a.json","cpu_port":510,"switches":[{"name":"s1","device_id":7,
        "queueing":["--lossless=3,4","--scheduler","weighted:3=4,4=2","--ecn-threshold","9"]},
        {"name":"s2","program":"b.json","cpu_port":9},{"name":"s3"}],
        "links":[{"ends":["s1:1","s2:1"],"rate":"1gbit","delay":"5us","faults":{"loss":"0.01",
        "duplicate":"0.1","corrupt":"0.1","reorder":"0.1","delay":"2ms","rate":"100mbit"}},
        {"ends":["s2:2","s3:1"]}],
        "edges":[{"port":"s1:2","interface":"h1","rate":"10mbit","delay":"1ms","faults":{"loss":"1"}}]}"#;
    let least = r#"{"switches":[{"name":"a"}]}"#;
    vec![whole.as_bytes().to_vec(), least.as_bytes().to_vec()]
}

pub fn check_seeds() {
    for seed in seeds() {
        let text = String::from_utf8_lossy(&seed);
        if let Err(error) = FabricFile::parse(&text, DROP_PORT) {
            panic!("{error}");
        }
    }
}
