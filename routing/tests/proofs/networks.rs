//! Random networks to prove things on.

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use wormcast_routing::generate::{Irregular, irregular};
use wormcast_routing::topology::Topology;

/// Networks by seed: from 2 to 256 switches, small ones more often; from sparse to dense.
pub fn random_networks(seeds: std::ops::Range<u64>) -> impl Iterator<Item = (u64, Topology)> {
    seeds.map(|seed| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        // Sizes spread evenly by their logarithm, one in fifty of up to 256.
        let most = if seed % 50 == 0 { 8 } else { 5 };
        let scale = 1 + rng.next_u32() % most;
        let switches = (1 << scale) + (rng.next_u32() as usize % (1 << scale));
        let switches = switches.min(256);
        // A ring of more than 64 could not be crossed by a worm.
        let least = if switches > 64 { 3 } else { 2 };
        let links = least + rng.next_u32() as usize % 5;
        let hosts = 1 + rng.next_u32() as usize % 3;
        let parameters = Irregular {
            switches,
            ports: 16,
            hosts,
            links,
            seed,
        };
        (seed, irregular(&parameters).expect("within bounds"))
    })
}
