//! Tenants, their machines and groups, after Elmo §5.1: 3,000 tenants, their sizes exponential
//! within 10 and 5,000 with a mean of 178.77; at most so many machines of a tenant on a rack; the
//! sizes of groups after IBM's WebSphere trace, of which the paper gives the least (5), the mean
//! (60), that nearly 80 % have fewer than 61 members and 0.6 % more than 700.
//!
//! **choice**: sizes are lognormal with that mean and that 0.8 quantile, 5 to 5,000; 1 % then have
//! more than 700. A group's tenant is drawn by size among those with machines enough, so that the
//! sizes of groups stay those of the trace; the paper scales sizes by tenant, which makes groups
//! smaller.

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

use crate::clos::{Clos, Group};

const TENANTS: usize = 3_000;
const TENANT_MEAN: f64 = 178.77;
const TENANT_LEAST: usize = 10;
const TENANT_MOST: usize = 5_000;
const GROUP_LEAST: usize = 5;
/// exp(μ + σ²/2) = 60, and ln 61 is the 0.8 quantile, which is μ + 0.8416 σ.
const GROUP_SIGMA: f64 = 1.663;
const GROUP_MU: f64 = 2.711;

pub struct Workload {
    rng: ChaCha8Rng,
    /// Hosts of each tenant's machines, largest tenant first.
    tenants: Vec<Vec<u32>>,
    /// Machines of this tenant and those before it.
    running: Vec<u64>,
    drawn: Vec<u32>,
}

impl Workload {
    pub fn new(clos: Clos, placement: u32, seed: u64) -> Workload {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut sizes: Vec<usize> = (0..TENANTS)
            .map(|_| {
                let size = TENANT_LEAST as f64
                    - (TENANT_MEAN - TENANT_LEAST as f64) * (1.0 - uniform(&mut rng)).ln();
                (size as usize).clamp(TENANT_LEAST, TENANT_MOST)
            })
            .collect();
        // The paper's largest has 5,000.
        sizes[0] = TENANT_MOST;
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let tenants: Vec<Vec<u32>> = sizes
            .iter()
            .map(|size| place(clos, placement, *size, &mut rng))
            .collect();
        let mut sum = 0;
        let running = tenants
            .iter()
            .map(|hosts| {
                sum += hosts.len() as u64;
                sum
            })
            .collect();
        Workload {
            rng,
            tenants,
            running,
            drawn: Vec::new(),
        }
    }

    pub fn draw(&mut self) -> Group {
        let most = self.tenants[0].len();
        let size = (GROUP_MU + GROUP_SIGMA * normal(&mut self.rng)).exp() as usize;
        let size = size.clamp(GROUP_LEAST, most);
        let enough = self.tenants.partition_point(|hosts| hosts.len() >= size);
        let mark = below(&mut self.rng, self.running[enough - 1]);
        let tenant = &self.tenants[self.running.partition_point(|sum| *sum <= mark)];
        // The first `size` of a shuffle.
        self.drawn.clear();
        self.drawn.extend(tenant);
        for place in 0..size {
            let left = (self.drawn.len() - place) as u64;
            let other = place + below(&mut self.rng, left) as usize;
            self.drawn.swap(place, other);
        }
        let source = self.drawn[0];
        let mut members = self.drawn[1..size].to_vec();
        members.sort_unstable();
        Group { source, members }
    }
}

/// Machines on distinct hosts, `placement` of them on a rack before the next is taken; racks in a
/// random order, over again where a tenant is larger than that.
fn place(clos: Clos, placement: u32, size: usize, rng: &mut ChaCha8Rng) -> Vec<u32> {
    let mut racks: Vec<u32> = (0..clos.leaf_count()).collect();
    shuffle(&mut racks, rng);
    let slots: Vec<Vec<u32>> = racks
        .iter()
        .map(|rack| {
            let first = rack * clos.hosts;
            let mut hosts: Vec<u32> = (first..first + clos.hosts).collect();
            shuffle(&mut hosts, rng);
            hosts
        })
        .collect();
    let mut hosts = Vec::with_capacity(size);
    let mut taken = 0;
    while hosts.len() < size {
        for rack in &slots {
            let share = rack.iter().skip(taken).take(placement as usize);
            hosts.extend(share.take(size - hosts.len()));
        }
        taken += placement as usize;
    }
    hosts
}

fn shuffle(values: &mut [u32], rng: &mut ChaCha8Rng) {
    for place in (1..values.len()).rev() {
        values.swap(place, below(rng, place as u64 + 1) as usize);
    }
}

fn below(rng: &mut ChaCha8Rng, bound: u64) -> u64 {
    // Of 2^64 values, so that the unevenness is beyond notice.
    ((u128::from(rng.next_u64()) * u128::from(bound)) >> 64) as u64
}

/// Uniform in 0 to 1, 1 not included.
fn uniform(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Normal with mean 0 and deviation 1 (Box and Muller).
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - uniform(rng)).ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform(rng)).cos()
}
