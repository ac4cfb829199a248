//! What is wired to what, and who sends where.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

/// A port of a switch.
type Place = (usize, u16);

/// Switches, cables, hosts and flows.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub switches: usize,
    pub links: Vec<(Place, Place)>,
    pub hosts: Vec<Place>,
    /// Host, route, class 2.
    pub flows: Vec<(usize, Vec<u8>, bool)>,
    /// Links with rates of their own: switch, port, rate.
    pub rates: Vec<(usize, u16, String)>,
    /// A host that pauses a priority for ever.
    pub storm: Option<(usize, u8)>,
    /// How long frames may take to arrive after the last was sent.
    pub patience: Duration,
}

impl Scenario {
    /// Seven senders at one switch, the receiver at the next.
    pub fn incast() -> Self {
        let mut hosts: Vec<Place> = (0..7).map(|port| (0, port)).collect();
        hosts.push((1, 0));
        Self {
            switches: 2,
            links: vec![((0, 15), (1, 15))],
            hosts,
            flows: (0..7).map(|host| (host, vec![15, 0], false)).collect(),
            rates: Vec::new(),
            storm: None,
            patience: Duration::from_secs(30),
        }
    }

    /// Four switches in a ring: port 1 leads to the next, 2 to the one before, 0 to a
    /// host; and where each host sends.
    fn ring(routes: [&[u8]; 4]) -> Self {
        let flow = |(host, route): (usize, &&[u8])| (host, route.to_vec(), false);
        Self {
            switches: 4,
            links: (0..4).map(|at| ((at, 1), ((at + 1) % 4, 2))).collect(),
            hosts: (0..4).map(|at| (at, 0)).collect(),
            flows: routes.iter().enumerate().map(flow).collect(),
            ..Self::incast()
        }
    }

    /// Everybody sends three hops clockwise: a ring of waiting.
    pub fn illegal_ring() -> Self {
        Self {
            patience: Duration::from_secs(3),
            ..Self::ring([&[1, 1, 1, 0]; 4])
        }
    }

    /// The same pairs of hosts without the link between the last switch and the first.
    pub fn legal_ring() -> Self {
        Self::ring([&[1, 1, 1, 0], &[2, 0], &[2, 2, 0], &[2, 2, 2, 0]])
    }

    /// The illegal routes, cut at the host of the first switch.
    pub fn in_transit_ring() -> Self {
        Self {
            // More comes to the host in transit than it can send on: half a minute of frames
            // may wait there in the end.
            patience: Duration::from_secs(120),
            ..Self::ring([
                &[1, 1, 1, 0],
                &[1, 1, 1, 0],
                &[1, 1, 0, 1, 0],
                &[1, 0, 1, 1, 0],
            ])
        }
    }

    /// Ports of a switch that are in use.
    pub fn ports(&self, switch: usize) -> Vec<u16> {
        let links = self.links.iter().flat_map(|(one, other)| [*one, *other]);
        let all = links.chain(self.hosts.iter().copied());
        let mut ports: Vec<u16> = all.filter(|at| at.0 == switch).map(|at| at.1).collect();
        ports.sort_unstable();
        ports
    }

    /// As the file of `--fabric`.
    pub fn fabric(&self, program: &Path) -> Value {
        let end = |at: &Place| format!("s{}:{}", at.0, at.1);
        let links = self
            .links
            .iter()
            .map(|(one, other)| json!({"ends": [end(one), end(other)]}));
        let edge = |(switch, port): &Place| json!({"port": end(&(*switch, *port)), "interface": format!("s{switch}-{port}")});
        json!({
            "program": program,
            "switches": (0..self.switches).map(|at| json!({"name": format!("s{at}")})).collect::<Vec<_>>(),
            "links": links.collect::<Vec<_>>(),
            "edges": self.hosts.iter().map(edge).collect::<Vec<_>>(),
        })
    }
}
