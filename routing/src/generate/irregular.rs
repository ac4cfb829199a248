//! Irregular networks (ITB §IV, PACKET §5): switches wired at random.

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

use super::Wiring;
use crate::topology::{Topology, TopologyError};
use wormcast_wire::SWITCH_PORTS_MAX;

/// Gives up after this many tries; with three links a switch or more, nearly every
/// second one succeeds.
const TRIES_MAX: usize = 1000;

/// Parameters of an irregular network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Irregular {
    pub switches: usize,
    pub ports: usize,
    pub hosts: usize,
    /// Links of each to distinct neighbours. Fewer where there are not as many others,
    /// and one fewer at one switch where the sum is odd.
    pub links: usize,
    pub seed: u64,
}

impl Irregular {
    /// As in ITB: eight ports, four of them with hosts, four with links.
    pub const fn of_itb(switches: usize, seed: u64) -> Irregular {
        Irregular {
            switches,
            ports: 8,
            hosts: 4,
            links: 4,
            seed,
        }
    }
}

/// A connected network wired at random, one link for a pair of switches at most.
///
/// # Errors
/// [`TopologyError::Parameter`].
pub fn irregular(parameters: &Irregular) -> Result<Topology, TopologyError> {
    let Irregular {
        switches,
        ports,
        hosts,
        links,
        seed,
    } = *parameters;
    let wiring = Wiring::new("irregular", switches, hosts)?;
    let most = usize::from(SWITCH_PORTS_MAX);
    if hosts.saturating_add(links) > ports.min(most) {
        let ports = ports.min(most);
        return wiring.refuse(format!(
            "{hosts} hosts and {links} links are more than the {ports} ports of a switch"
        ));
    }
    let degree = links.min(switches - 1);
    if switches > 2 && degree < 2 {
        return wiring.refuse(format!(
            "{links} links a switch do not join {switches}; it needs 2 or more"
        ));
    }
    if switches == 2 && degree == 0 {
        return wiring.refuse("0 links do not join 2 switches; it needs 1 or more".into());
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    for _ in 0..TRIES_MAX {
        let Some(pairs) = draw_pairs(switches, degree, &mut rng) else {
            continue;
        };
        let mut wiring = Wiring::new("irregular", switches, hosts)?;
        for (a, b) in pairs {
            wiring.link(a, b)?;
        }
        match wiring.finish(ports, None) {
            Err(TopologyError::NotConnected { .. }) => continue,
            done => return done,
        }
    }
    wiring.refuse(format!(
        "no connected wiring found with seed {seed} in {TRIES_MAX} tries"
    ))
}

/// Joins free ports at random until none is left, never a switch to itself nor a pair
/// twice; `None` when it has got stuck.
fn draw_pairs(switches: usize, degree: usize, rng: &mut ChaCha8Rng) -> Option<Vec<(usize, usize)>> {
    let mut free: Vec<usize> = (0..switches * degree).map(|port| port % switches).collect();
    let mut neighbours = vec![Vec::with_capacity(degree); switches];
    let mut pairs = Vec::with_capacity(free.len() / 2);
    while free.len() > 1 {
        let fits =
            |neighbours: &[Vec<usize>], a: usize, b: usize| a != b && !neighbours[a].contains(&b);
        let mut chosen = None;
        // Near the end few pairs fit; then look at all of them.
        for _ in 0..32 {
            let (i, j) = (below(free.len(), rng), below(free.len(), rng));
            if i != j && fits(&neighbours, free[i], free[j]) {
                chosen = Some((i, j));
                break;
            }
        }
        let (i, j) = chosen.or_else(|| {
            let all: Vec<(usize, usize)> = (0..free.len())
                .flat_map(|i| (i + 1..free.len()).map(move |j| (i, j)))
                .filter(|&(i, j)| fits(&neighbours, free[i], free[j]))
                .collect();
            (!all.is_empty()).then(|| all[below(all.len(), rng)])
        })?;
        let (a, b) = (free[i], free[j]);
        free.swap_remove(i.max(j));
        free.swap_remove(i.min(j));
        neighbours[a].push(b);
        neighbours[b].push(a);
        pairs.push((a, b));
    }
    Some(pairs)
}

/// Uniform below `bound` (by rejection), which is more than 0.
fn below(bound: usize, rng: &mut ChaCha8Rng) -> usize {
    let bound = bound as u64;
    let unfair = u64::MAX - u64::MAX % bound;
    loop {
        let drawn = rng.next_u64();
        if drawn < unfair {
            return (drawn % bound) as usize;
        }
    }
}
