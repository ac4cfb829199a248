//! Schemes that a group may choose from, with their parameters.

use super::{Order, Scheme, SwitchMode, SwitchParameters, Unicast};
use crate::cost::Costs;
use crate::structure::{CircuitVariant, TreeVariant};

/// How many parameters of a scheme are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breadth {
    /// Those that `auto` chooses from.
    Auto,
    /// All that differ, for a comparison: every k, fan-out, λ and chain length, in every
    /// order.
    All,
}

/// One scheme to try, and the order of its members (`None`: its own).
pub type Candidate = (Scheme, Option<Order>);

/// Largest λ and fan-out tried.
const TRIED_MAX: u32 = 16;

/// Schemes for so many members on these paths. `total_order` leaves those in which all
/// members get the messages of all sources in one order.
pub fn candidates(
    paths: Unicast<'_, '_>,
    costs: &Costs,
    members: usize,
    payload_bytes: u32,
    total_order: bool,
    breadth: Breadth,
) -> Vec<Candidate> {
    let orders = orders(paths);
    let most = (members as u32).saturating_sub(1).max(1);
    let ladder = |steps: &[u32], limit: u32| -> Vec<u32> {
        let mut chosen: Vec<u32> = match breadth {
            Breadth::Auto => steps
                .iter()
                .copied()
                .filter(|&step| step <= limit)
                .collect(),
            Breadth::All => (1..=limit.min(TRIED_MAX)).collect(),
        };
        if chosen.is_empty() {
            chosen.push(1);
        }
        chosen
    };
    let fan_outs = ladder(&[1, 2, 3, 4, 6, 8], most);
    let mut all: Vec<Candidate> = Vec::new();
    if total_order {
        all.push((Scheme::Circuit(CircuitVariant::Ordered), None));
        for fan_out in fan_outs {
            let variant = TreeVariant::Ordered;
            all.push((Scheme::Tree { variant, fan_out }, None));
        }
        return all;
    }
    all.push((Scheme::Repeat, None));
    for &order in &orders {
        all.push((Scheme::Circuit(CircuitVariant::OmitLast), Some(order)));
    }
    for fan_out in fan_outs {
        let variant = TreeVariant::Unordered;
        all.push((Scheme::Tree { variant, fan_out }, None));
    }
    let doublings = (members.max(2) as u32).next_power_of_two().trailing_zeros();
    let near: &[Order] = match breadth {
        Breadth::Auto => &orders[1..],
        Breadth::All => &orders,
    };
    let lambda = costs.postal_lambda(payload_bytes, typical_switches(paths));
    let mut lambdas = ladder(&[1, 2, 3, 4, 6, 8, 12, 16], most.max(2));
    lambdas.push(lambda.min(most.max(1)));
    lambdas.sort_unstable();
    lambdas.dedup();
    for &order in near {
        for k in 1..=doublings {
            all.push((Scheme::KBinomial { k: Some(k) }, Some(order)));
        }
        for &lambda in &lambdas {
            all.push((Scheme::Postal { lambda }, Some(order)));
        }
    }
    if paths.topology().grid().is_some() {
        all.extend([
            (Scheme::UTorus, None),
            (Scheme::STorus, None),
            (Scheme::MdTorus, None),
        ]);
        for r in ladder(&[2, 3, 4, 6, 8, 12, 16], most) {
            all.push((Scheme::MuTorus { r: Some(r) }, None));
        }
    }
    if paths.routes().is_ok() {
        let parameters = SwitchParameters {
            mode: SwitchMode::Tree,
            ..SwitchParameters::default()
        };
        all.push((Scheme::Switch(parameters), None));
    }
    all
}

/// Orders that suit the topology; by id first, then those that keep neighbours together.
fn orders(paths: Unicast<'_, '_>) -> Vec<Order> {
    match (paths.topology().grid().is_some(), paths.routes().is_ok()) {
        (true, true) => vec![Order::Id, Order::Dimension, Order::Hamiltonian, Order::Cco],
        (true, false) => vec![Order::Id, Order::Dimension, Order::Hamiltonian],
        (false, _) => vec![Order::Id, Order::Cco],
    }
}

/// Switches that a path crosses, about: the mean between the first host and some others.
fn typical_switches(paths: Unicast<'_, '_>) -> u32 {
    let hosts = paths.topology().hosts();
    let Some(first) = hosts.first() else { return 1 };
    let step = hosts.len().div_ceil(16).max(1);
    let crossed: Vec<u32> = hosts
        .iter()
        .skip(1)
        .step_by(step)
        .filter_map(|host| paths.distance(first.id, host.id).ok().flatten())
        .collect();
    match crossed.len() as u32 {
        0 => 1,
        count => crossed.iter().sum::<u32>().div_ceil(count),
    }
}
