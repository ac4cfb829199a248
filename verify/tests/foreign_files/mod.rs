//! Tables and paths as the files that others write.
#![allow(dead_code)] // not every test file uses all of it

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rand_chacha::ChaCha8Rng;
use rand_core::RngCore;
use wormcast_routing::routes::{Algorithm, Route, Routes};
use wormcast_routing::topology::Topology;
use wormcast_verify::formats::{Document, Format, write};
use wormcast_wire::SwitchId;

pub fn below(random: &mut ChaCha8Rng, bound: usize) -> usize {
    (random.next_u64() % bound as u64) as usize
}

/// Where a switch sends packets to a host; none drops them.
pub type Ports = BTreeMap<(u16, u16), u8>;

/// The topology as ibnetdiscover prints it, with LIDs: switch n has 1 + n, host n has
/// 1000 + 2n, and one more with LMC 1.
pub fn net_list(topology: &Topology) -> String {
    let text = write(&Document::new(topology.clone()), Format::Ibnetdiscover).unwrap();
    let mut at = "";
    let mut made = String::new();
    for line in text.lines() {
        let id = line
            .rsplit_once('"')
            .and_then(|(front, _)| front.rsplit_once(' '))
            .map(|(_, id)| id);
        let id: Option<u16> = id.and_then(|id| id.trim_end_matches('"').parse().ok());
        if line.starts_with("Switch") {
            let front = line.split(" base port").next().unwrap();
            let front = front
                .split(" port 0")
                .next()
                .unwrap()
                .trim_end_matches(" enhanced");
            let _ = writeln!(made, "{front} base port 0 lid {} lmc 0", 1 + id.unwrap());
            continue;
        }
        if let Some(host) = line.strip_prefix("Ca") {
            at = host.rsplit(' ').next().unwrap().trim_matches('"');
        }
        let lid = 1000 + 2 * at.parse::<u16>().unwrap_or(0);
        let _ = writeln!(
            made,
            "{}",
            line.replace("# lid 0 lmc 0", &format!("# lid {lid} lmc 1"))
        );
    }
    made
}

/// The tables as dump_lfts prints them.
pub fn dump(topology: &Topology, both: &[Ports; 2]) -> String {
    let mut text = String::new();
    for switch in topology.switches() {
        let guid = 0x5743_0001_0000_0000u64 + (u64::from(switch.id.0) << 8);
        let _ = writeln!(
            text,
            "Unicast lids [0x0-0x9999] of switch Lid 1 guid {guid:#018x} (x):"
        );
        for host in topology.hosts() {
            for (lid, ports) in (1000 + 2 * host.id.0..).zip(both) {
                if let Some(port) = ports.get(&(switch.id.0, host.id.0)) {
                    let _ = writeln!(text, "{lid:#06x} {:03} : (Channel Adapter)", port + 1);
                }
            }
        }
    }
    text
}

/// The same as a tables file, where host n is the key 16n to 16n + 15, one half for each
/// address. A shorter prefix, which does not count, names a port without a link.
pub fn tables_file(topology: &Topology, both: &[Ports; 2]) -> String {
    let switch = |id: SwitchId| {
        let mut rows = Vec::new();
        for host in topology.hosts() {
            let ports = both.each_ref().map(|ports| ports.get(&(id.0, host.id.0)));
            let key = u32::from(host.id.0) * 16;
            if ports.iter().all(Option::is_some) {
                rows.push(format!(r#"{{"key":"{key:#x}/12","ports":[251]}}"#));
            }
            for (key, port) in [key, key + 8].iter().zip(ports) {
                rows.extend(port.map(|port| format!(r#"{{"key":"{key}/13","ports":[{port}]}}"#)));
            }
        }
        format!(r#"{{"switch":"s{id}","entries":[{}]}}"#, rows.join(","))
    };
    let switches: Vec<String> = topology.switches().iter().map(|at| switch(at.id)).collect();
    format!(
        r#"{{"tables":[{{"name":"t","bits":16,"switches":[{}]}}]}}"#,
        switches.join(",")
    )
}

/// A port for most switches and hosts: of a shortest way, of any way, or of nothing.
pub fn random_tables(topology: &Topology, random: &mut ChaCha8Rng, wrong: usize) -> Ports {
    let routes = Routes::plan(topology, Algorithm::Osud, None).unwrap();
    let mut ports = BTreeMap::new();
    for switch in topology.switches() {
        for host in topology.hosts() {
            ports.insert((switch.id.0, host.id.0), below(random, 8) as u8);
            let speaker = topology
                .hosts()
                .iter()
                .find(|one| one.switch == switch.id && one.id != host.id);
            if let Some(from) = speaker.filter(|_| below(random, 100) >= wrong) {
                let route = routes.route(from.id, host.id).unwrap();
                ports.insert((switch.id.0, host.id.0), route.ports[0]);
            } else if below(random, 3) == 0 {
                ports.remove(&(switch.id.0, host.id.0));
            }
        }
    }
    ports
}

/// Routes as a CSV file.
pub fn csv(routes: &[Route], with_ports: bool) -> String {
    let mut text = "src,dst,path\r\n".to_owned();
    for route in routes {
        let hop = |(switch, port): (&SwitchId, &u8)| {
            if with_ports {
                format!("s{switch}:{port}")
            } else {
                format!("s{switch}")
            }
        };
        let path: Vec<String> = route.switches.iter().zip(&route.ports).map(hop).collect();
        let _ = write!(
            text,
            "h{},h{},{}\r\n",
            route.src,
            route.dst,
            path.join(" -> ")
        );
    }
    text
}
