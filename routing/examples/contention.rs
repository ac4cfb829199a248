//! How often packets meet on links, by the order a scheme works on (PACKET §4.3, TORUS §4):
//! means over random groups of the share of steps in which two packets meet on a link, and
//! of the share of packets that meet another.
//!
//! `cargo run --release -p wormcast-routing --example contention [GROUPS]`

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "it measures and prints"
)]

use wormcast_routing::generate::from_spec;
use wormcast_routing::group::{GroupRequest, Metrics, Order, Routing, Scheme, plan_group_on};
use wormcast_routing::routes::Algorithm;
use wormcast_routing::structure::ordering;
use wormcast_routing::topology::Topology;
use wormcast_wire::HostId;

const SIZES: [usize; 3] = [8, 16, 64];

fn main() {
    let groups = std::env::args().nth(1).and_then(|count| count.parse().ok());
    let groups: u64 = groups.unwrap_or(40);
    println!("share of steps (of sends) with contention, {groups} random groups of 8, 16, 64");
    let osud = Routing::Algorithm(Algorithm::Osud);
    for (kind, routing, orders) in [
        ("irregular:64", osud, &["cco", "id", "random"][..]),
        (
            "torus:8",
            osud,
            &["dimension", "hamiltonian", "cco", "id", "random"][..],
        ),
        (
            "torus:8",
            Routing::DimensionOrder,
            &["dimension", "hamiltonian", "cco", "id", "random"][..],
        ),
        (
            "unidirectional-torus:8",
            Routing::DimensionOrder,
            &["dimension", "hamiltonian", "cco", "id", "random"][..],
        ),
    ] {
        println!("\n{kind}, {} paths", routing.name());
        for (scheme, packets) in [("u-torus", 1), ("k-binomial", 8)] {
            for order in orders {
                let shares = SIZES.map(|size| {
                    let (mut steps, mut sends) = (0.0, 0.0);
                    for seed in 1..=groups {
                        let metrics = measure(kind, routing, scheme, packets, order, size, seed);
                        steps += metrics.contention_share() / groups as f64;
                        sends += metrics.contended_sends_share() / groups as f64;
                    }
                    format!("{steps:.3} ({sends:.3})")
                });
                println!(
                    "  {scheme:10} {packets} packets  {order:12} {}",
                    shares.join("  ")
                );
            }
        }
    }
}

fn measure(
    kind: &str,
    routing: Routing,
    scheme: &str,
    packets: u32,
    order: &str,
    size: usize,
    seed: u64,
) -> Metrics {
    let topology = match kind {
        "irregular:64" => from_spec(&format!("{kind}:{}", 1 + seed % 5)),
        _ => from_spec(kind),
    };
    let topology = topology.expect("a known kind");
    let members = pick(&topology, size, seed);
    let scheme = Scheme::from_name(scheme).expect("a known scheme");
    let mut request = GroupRequest::new(scheme, members[0], members);
    request.packets = packets;
    request.routing = Some(routing);
    request.order = Some(match Order::from_name(order).expect("a known order") {
        Order::Random { .. } => Order::Random { seed },
        order => order,
    });
    let plan = plan_group_on(&topology, None, &request, true).expect("a plan");
    plan.metrics.expect("hosts forward")
}

/// Members at random, the source first.
fn pick(topology: &Topology, size: usize, seed: u64) -> Vec<HostId> {
    let all: Vec<HostId> = topology.hosts().iter().map(|host| host.id).collect();
    let mut members = ordering::random(&all, seed.wrapping_mul(0x9E37_79B9));
    members.truncate(size);
    members
}
