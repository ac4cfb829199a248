//! How good the choice of `auto` is: its pick against every scheme, each replayed link by
//! link. Shared by a test and by `bench/cost/run`.
#![allow(dead_code)] // each of the two uses a part

use std::time::Instant;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use wormcast_planner::auto::{AutoPlan, AutoRequest, Breadth, Needs, candidates, plan_auto};
use wormcast_planner::cost::{Channel, ChannelLoad, CostModel, Costs, Message, Traffic};
use wormcast_planner::replay::replay;
use wormcast_routing::generate::from_spec;
use wormcast_routing::group::DimensionOrder;
use wormcast_routing::group::{GroupRequest, Order, Scheme, Unicast, plan_group};
use wormcast_routing::routes::{Algorithm, Routes};
use wormcast_routing::topology::Topology;
use wormcast_wire::HostId;

/// What a study goes through.
pub struct Study {
    /// Kinds of topologies, each with a name for its kind.
    pub networks: Vec<(&'static str, String)>,
    pub sizes: Vec<usize>,
    pub bytes: Vec<u64>,
    pub costs: Vec<&'static str>,
    /// Groups of each size.
    pub groups: u64,
    /// Names of families of schemes: `all` or `hosts`.
    pub families: Vec<&'static str>,
    /// Whether close candidates are replayed before the choice.
    pub refine: bool,
}

/// One case and what was found.
#[derive(Clone, Debug)]
pub struct Found {
    pub kind: &'static str,
    pub network: String,
    pub costs: &'static str,
    pub family: &'static str,
    pub members: usize,
    pub group: u64,
    pub bytes: u64,
    pub picked: String,
    pub picked_ns: f64,
    pub estimate_ns: f64,
    pub best: String,
    pub best_ns: f64,
    /// Candidates of `auto`, those replayed, and the time it took to choose.
    pub candidates: usize,
    pub replayed: usize,
    pub planning_us: f64,
}

impl Found {
    /// Time of the pick by that of the best.
    pub fn ratio(&self) -> f64 {
        self.picked_ns / self.best_ns
    }
}

/// Schemes in which hosts forward.
pub const HOST_SCHEMES: [&str; 9] = [
    "repeat",
    "circuit",
    "tree",
    "k-binomial",
    "postal",
    "u-torus",
    "s-torus",
    "md-torus",
    "mu-torus",
];

/// The sets of costs that a study can use: those of [`Costs::named`] and made-up ones.
pub const COSTS: [&str; 8] = [
    "agents",
    "torus",
    "packet",
    "nic",
    "slow-hosts",
    "fast-hosts",
    "high-lambda",
    "loaded",
];

pub fn costs_named(name: &str, topology: &Topology) -> Costs {
    let ethernet = Costs {
        packet_header_bytes: 74,
        packet_payload_bytes: 1444,
        route_bytes_per_hop: 1,
        tree_bytes_per_branch: 2,
        wire_ns: 50.0,
        switch_copy_ns: 10.0,
        ..Costs::free(10_000_000_000)
    };
    match name {
        "slow-hosts" => Costs {
            message_send_ns: 50_000.0,
            message_receive_ns: 50_000.0,
            packet_send_ns: 15_000.0,
            packet_receive_ns: 12_000.0,
            forward_packet_ns: 10_000.0,
            forward_ns_per_byte: 1.0,
            acknowledgement_ns: 2_000.0,
            switch_hop_ns: 800.0,
            ..ethernet
        },
        "fast-hosts" => Costs {
            packet_send_ns: 150.0,
            packet_receive_ns: 150.0,
            forward_packet_ns: 300.0,
            switch_hop_ns: 400.0,
            cut_through: true,
            ..ethernet
        },
        "high-lambda" => Costs {
            packet_send_ns: 500.0,
            packet_receive_ns: 500.0,
            send_gap_ns: 1_500.0,
            forward_packet_ns: 12_000.0,
            switch_hop_ns: 2_000.0,
            ..ethernet
        },
        "loaded" => {
            // Every channel at 30 %, one in five of those between switches at 50 to 80 %.
            let mut rng = ChaCha8Rng::seed_from_u64(7);
            let ends = topology
                .links()
                .iter()
                .flat_map(|link| [(link.a, link.a_port), (link.b, link.b_port)]);
            let channels = ends
                .filter_map(|(switch, port)| {
                    let load = 0.5 + f64::from(rng.next_u32() % 31) / 100.0;
                    let busy = rng.next_u32() % 5 == 0;
                    busy.then_some(ChannelLoad {
                        channel: Channel::Port(switch, port),
                        utilisation: load,
                    })
                })
                .collect();
            Costs {
                packet_send_ns: 1_000.0,
                packet_receive_ns: 1_000.0,
                forward_packet_ns: 1_000.0,
                switch_hop_ns: 1_000.0,
                utilisation: 0.3,
                channels,
                ..ethernet
            }
        }
        name => Costs::named(name).expect("a set of costs"),
    }
}

/// Members of a group: `count` hosts, the first of them the source.
pub fn draw(topology: &Topology, count: usize, seed: u64) -> Vec<HostId> {
    let mut hosts: Vec<HostId> = topology.hosts().iter().map(|host| host.id).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    for place in 0..count.min(hosts.len()) {
        let other = place + rng.next_u64() as usize % (hosts.len() - place);
        hosts.swap(place, other);
    }
    hosts.truncate(count);
    hosts
}

pub fn describe(scheme: Scheme, order: Option<Order>) -> String {
    let order = order.map_or("", Order::name);
    match scheme {
        Scheme::Tree { fan_out, .. } => format!("tree fan_out={fan_out}"),
        Scheme::KBinomial { k } => format!("k-binomial k={} {order}", k.unwrap_or(0)),
        Scheme::Postal { lambda } => format!("postal lambda={} {order}", lambda.unwrap_or(0)),
        Scheme::MuTorus { r } => format!("mu-torus r={}", r.unwrap_or(0)),
        Scheme::Circuit(_) => format!("circuit {order}"),
        scheme => scheme.name().to_owned(),
    }
}

impl Study {
    pub fn cases(&self) -> usize {
        let sizes: usize = self
            .networks
            .iter()
            .map(|(_, spec)| {
                let hosts = from_spec(spec).expect("a topology").hosts().len();
                self.sizes.iter().filter(|size| **size <= hosts).count()
            })
            .sum();
        sizes * self.groups as usize * self.costs.len() * self.families.len() * self.bytes.len()
    }

    /// Goes through all cases; `report` gets each as it is found.
    pub fn run(&self, mut report: impl FnMut(Found, &AutoPlan)) {
        for (kind, spec) in &self.networks {
            let topology = from_spec(spec).expect("a topology");
            let one_way = topology.grid().is_some_and(|grid| grid.unidirectional);
            let routes =
                (!one_way).then(|| Routes::plan(&topology, Algorithm::Osud, None).unwrap());
            let paths: Unicast<'_, '_> = match &routes {
                Some(routes) => routes.into(),
                None => DimensionOrder::new(&topology).unwrap().into(),
            };
            for &costs in &self.costs {
                let of = costs_named(costs, &topology);
                for &members in self
                    .sizes
                    .iter()
                    .filter(|size| **size <= topology.hosts().len())
                {
                    for group in 0..self.groups {
                        let hosts = draw(&topology, members, group * 1_000 + members as u64);
                        let case = Case {
                            kind,
                            spec,
                            costs,
                            of: &of,
                            paths,
                            hosts: &hosts,
                            group,
                        };
                        self.one_group(&case, &mut report);
                    }
                }
            }
        }
    }

    fn one_group(&self, case: &Case<'_, '_, '_>, report: &mut impl FnMut(Found, &AutoPlan)) {
        let model = CostModel::new(case.paths, case.of.clone()).unwrap();
        let traffics = every_traffic(case, &model);
        for &bytes in &self.bytes {
            let packets = case.of.packets(bytes);
            let message = Message { bytes, packets };
            let times: Vec<f64> = traffics
                .iter()
                .map(|(.., traffic)| replay(&model, traffic, message).completion_ns)
                .collect();
            for &family in &self.families {
                let mut request = AutoRequest::new(case.request(), case.of.clone());
                request.group.bytes = Some(bytes);
                request.group.packets = packets as u32;
                request.group.payload_bytes = case.of.packet_payload_bytes;
                request.refine = self.refine;
                if family == "hosts" {
                    request.among = HOST_SCHEMES.map(str::to_owned).to_vec();
                }
                let start = Instant::now();
                let auto = plan_auto(case.paths, &request).unwrap();
                let planning_us = start.elapsed().as_secs_f64() * 1e6;
                let traffic = Traffic::new(&model, &auto.plan).unwrap();
                let picked_ns = replay(&model, &traffic, message).completion_ns;
                let best = (0..traffics.len())
                    .filter(|&at| family == "all" || traffics[at].0.name() != "switch")
                    .min_by(|&a, &b| times[a].total_cmp(&times[b]))
                    .unwrap();
                let chosen = &auto.estimates[auto.chosen];
                let found = Found {
                    kind: case.kind,
                    network: case.spec.to_owned(),
                    costs: case.costs,
                    family,
                    members: case.hosts.len(),
                    group: case.group,
                    bytes,
                    picked: describe(chosen.scheme, chosen.order),
                    picked_ns,
                    estimate_ns: chosen.estimate_ns,
                    best: describe(traffics[best].0, traffics[best].1),
                    best_ns: times[best].min(picked_ns),
                    candidates: auto.estimates.len(),
                    replayed: auto
                        .estimates
                        .iter()
                        .filter(|one| one.refined_ns.is_some())
                        .count(),
                    planning_us,
                };
                report(found, &auto);
            }
        }
    }
}

struct Case<'a, 'r, 't> {
    kind: &'static str,
    spec: &'a str,
    costs: &'static str,
    of: &'a Costs,
    paths: Unicast<'r, 't>,
    hosts: &'a [HostId],
    group: u64,
}

impl Case<'_, '_, '_> {
    fn request(&self) -> GroupRequest {
        GroupRequest::new(Scheme::Repeat, self.hosts[0], self.hosts.to_vec())
    }
}

fn every_traffic(
    case: &Case<'_, '_, '_>,
    model: &CostModel<'_, '_>,
) -> Vec<(Scheme, Option<Order>, Traffic)> {
    let one = Message {
        bytes: case.of.packet_payload_bytes.into(),
        packets: 1,
    };
    let all = candidates(
        case.paths,
        case.of,
        case.hosts.len(),
        one,
        Needs::default(),
        Breadth::All,
    );
    all.into_iter()
        .map(|(scheme, order)| {
            let mut request = case.request();
            (request.scheme, request.order) = (scheme, order);
            let plan = plan_group(case.paths, &request).unwrap();
            (
                scheme,
                plan.request.order,
                Traffic::new(model, &plan).unwrap(),
            )
        })
        .collect()
}
