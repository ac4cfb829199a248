//! Clos networks of two and three tiers.
//!
//! Ids go up tier by tier: leaves, then spines, then cores, so that hosts hang on the
//! lowest switches.

use super::Wiring;
use crate::topology::{SWITCHES_MAX, Topology, TopologyError};

/// Ports of a switch where nothing says otherwise.
const PORTS_DEFAULT: usize = 8;

/// A Clos network of three tiers, as data centres have it: pods of leaves and spines, and
/// cores above them in as many planes as a pod has spines.
///
/// Every leaf of a pod is linked to every spine of it. Spine s of every pod is linked to
/// every core of plane s, so two leaves of different pods are joined by `cores` paths.
/// Elmo's fabric (Shahbaz et al., SIGCOMM '19, §5.1) is 12 pods of 48 leaves with 48 hosts
/// each; with the four spines a pod and 48 cores a plane of the fabric it takes after,
/// that is `clos3:12:48:4:192:48`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clos3 {
    pub pods: usize,
    /// Leaves of each pod.
    pub leaves: usize,
    /// Spines of each pod, which is the number of planes.
    pub spines: usize,
    /// Cores in all, as many in each plane: a multiple of `spines`.
    pub cores: usize,
    /// Hosts on each leaf.
    pub hosts: usize,
}

/// Leaves linked to every spine, each with `hosts` hosts. Ids: leaves, then spines. Of a
/// leaf with h hosts, port h+s leads to port l of spine s, l being the leaf's number.
///
/// # Errors
/// [`TopologyError::Parameter`].
pub fn clos2(leaves: usize, spines: usize, hosts: usize) -> Result<Topology, TopologyError> {
    let mut wiring = tiers("clos2", leaves, hosts, leaves.saturating_add(spines))?;
    if spines == 0 {
        return wiring.refuse("0 spines; it needs 1 or more".into());
    }
    for leaf in 0..leaves {
        for spine in 0..spines {
            wiring.link(leaf, leaves + spine)?;
        }
    }
    wiring.finish(PORTS_DEFAULT, None)
}

/// A Clos network of three tiers. Ids: leaves pod by pod, spines pod by pod, cores plane
/// by plane. Ports: a leaf has hosts, then spines; a spine has the leaves of its pod, then
/// the cores of its plane; a core has the pods.
///
/// # Errors
/// [`TopologyError::Parameter`].
pub fn clos3(shape: &Clos3) -> Result<Topology, TopologyError> {
    wire_clos3("clos3", shape, PORTS_DEFAULT)
}

/// A fat tree of switches of `k` ports, k even: k pods of k/2 edge and k/2 aggregation
/// switches, (k/2)² core switches, k/2 hosts on each edge switch. Ids: edge switches pod
/// by pod, then aggregation switches pod by pod, then core switches.
///
/// # Errors
/// [`TopologyError::Parameter`].
pub fn fat_tree(k: usize) -> Result<Topology, TopologyError> {
    let half = k / 2;
    let switches = half.saturating_mul(half).saturating_mul(5);
    if k == 0 || !k.is_multiple_of(2) || switches > SWITCHES_MAX {
        let reason = format!("k = {k}; it must be even, 2 or more, with 5k²/4 ≤ {SWITCHES_MAX}");
        return Err(TopologyError::Parameter {
            kind: "fat-tree".into(),
            reason,
        });
    }
    let shape = Clos3 {
        pods: k,
        leaves: half,
        spines: half,
        cores: half * half,
        hosts: half,
    };
    wire_clos3("fat-tree", &shape, k)
}

fn wire_clos3(kind: &str, shape: &Clos3, ports: usize) -> Result<Topology, TopologyError> {
    let &Clos3 {
        pods,
        leaves,
        spines,
        cores,
        hosts,
    } = shape;
    let all_leaves = pods.saturating_mul(leaves);
    let all_spines = pods.saturating_mul(spines);
    let switches = all_leaves.saturating_add(all_spines).saturating_add(cores);
    let mut wiring = tiers(kind, all_leaves, hosts, switches)?;
    if spines == 0 || cores == 0 || !cores.is_multiple_of(spines) {
        return wiring.refuse(format!(
            "{cores} cores over {spines} spines a pod; it needs 1 or more spines, and as cores \
             a multiple of them, 1 or more a plane"
        ));
    }
    for pod in 0..pods {
        for leaf in 0..leaves {
            for spine in 0..spines {
                wiring.link(pod * leaves + leaf, all_leaves + pod * spines + spine)?;
            }
        }
    }
    let plane = cores / spines;
    for pod in 0..pods {
        for spine in 0..spines {
            for core in 0..plane {
                wiring.link(
                    all_leaves + pod * spines + spine,
                    all_leaves + all_spines + spine * plane + core,
                )?;
            }
        }
    }
    wiring.finish(ports, None)
}

/// So many switches, hosts on the first `leaves` of them.
fn tiers(
    kind: &str,
    leaves: usize,
    hosts: usize,
    switches: usize,
) -> Result<Wiring, TopologyError> {
    let mut wiring = Wiring::new(kind, switches, 0)?;
    if leaves == 0 {
        return wiring.refuse("no leaves; it needs 1 or more".into());
    }
    wiring.check_hosts(leaves, hosts, "leaves")?;
    for leaf in 0..leaves {
        wiring.add_hosts(leaf, hosts)?;
    }
    Ok(wiring)
}
