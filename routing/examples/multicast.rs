//! Links that multicast in the switches crosses, by mode and guard, and how TREE routes
//! split: `cargo run --release -p wormcast-routing --example multicast [SPEC]...`
//!
//! For each topology and share of the hosts that are members, means over random groups:
//! links crossed in excess of the bound, and worms of a message.

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "it measures and prints"
)]

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use wormcast_routing::generate::from_spec;
use wormcast_routing::group::{
    Delivery, GroupRequest, Guard, Scheme, SwitchCost, SwitchMode, SwitchParameters, plan_group,
};
use wormcast_routing::routes::{Algorithm, Routes};
use wormcast_routing::topology::Topology;
use wormcast_wire::HostId;

const GROUPS: u32 = 20;
const KINDS: [&str; 6] = [
    "irregular:16:1",
    "irregular:64:1",
    "irregular:256:1",
    "torus:8:4",
    "fat-tree:8",
    "mesh:8:4",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let named: Vec<String> = std::env::args().skip(1).collect();
    let kinds: Vec<&str> = if named.is_empty() {
        KINDS.to_vec()
    } else {
        named.iter().map(String::as_str).collect()
    };
    println!(
        "{:16} {:>5} | {:>24} | {:>17} | {:>9} | worms a message, tree A B C",
        "excess over bound", "group", "tree A B C", "table A B C", "broadcast"
    );
    for kind in kinds {
        let topology = from_spec(kind)?;
        let routes = Routes::plan(&topology, Algorithm::Osud, None)?;
        for share in [4, 16, 64] {
            let size = (topology.hosts().len() / share).max(4);
            measure(kind, &topology, &routes, size)?;
        }
    }
    Ok(())
}

fn measure(
    kind: &str,
    topology: &Topology,
    routes: &Routes<'_>,
    size: usize,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut excess = [[0.0; 3]; 3];
    let mut worms = [0.0; 3];
    for _ in 0..GROUPS {
        let mut hosts: Vec<HostId> = topology.hosts().iter().map(|host| host.id).collect();
        for place in 0..size {
            let other = place + (rng.next_u64() % (hosts.len() - place) as u64) as usize;
            hosts.swap(place, other);
        }
        hosts.truncate(size);
        for mode in SwitchMode::ALL {
            for guard in Guard::ALL {
                let cost = cost_of(
                    routes,
                    &hosts,
                    SwitchParameters {
                        mode,
                        guard,
                        ..SwitchParameters::default()
                    },
                )?;
                excess[mode as usize][guard as usize] += 100.0 * cost.excess() / f64::from(GROUPS);
                if mode == SwitchMode::Tree {
                    worms[guard as usize] += f64::from(cost.worms) / f64::from(GROUPS);
                }
            }
        }
    }
    let [tree, table, broadcast] = excess;
    println!(
        "{kind:16} {size:6} | {:6.1}% {:6.1}% {:6.1}% | {:4.1}% {:4.1}% {:4.1}% | {:8.1}% | {:.1} {:.1} {:.1}",
        tree[0],
        tree[1],
        tree[2],
        table[0],
        table[1],
        table[2],
        broadcast[0],
        worms[0],
        worms[1],
        worms[2]
    );
    Ok(())
}

fn cost_of(
    routes: &Routes<'_>,
    members: &[HostId],
    parameters: SwitchParameters,
) -> Result<SwitchCost, Box<dyn std::error::Error>> {
    let request = GroupRequest::new(Scheme::Switch(parameters), members[0], members.to_vec());
    match plan_group(routes, &request)?.delivery {
        Delivery::Switches(delivery) => Ok(delivery.cost),
        Delivery::Hosts { .. } => Err("hosts forward".into()),
    }
}
