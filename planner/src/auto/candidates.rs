//! Schemes that a group may choose from, with their parameters.

use std::collections::VecDeque;

use crate::cost::{Costs, Message};
use wormcast_routing::group::{Guard, Order, Scheme, SwitchMode, SwitchParameters, Unicast};
use wormcast_routing::structure::{CircuitVariant, TreeVariant};
use wormcast_routing::topology::Topology;

/// How many parameters of a scheme are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breadth {
    /// Those that `auto` chooses from: of fan-outs a selection, and for long messages
    /// of λ.
    Auto,
    /// All up to a limit, for a comparison.
    All,
}

/// What a scheme must do, or may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// All members must get the messages of all sources in one order.
    pub total_order: bool,
    /// Switches may have entries in their tables for the group.
    pub tables: bool,
}

/// One scheme to try, and the order of its members (`None`: its own).
pub type Candidate = (Scheme, Option<Order>);

/// Largest λ, fan-out and chain length tried.
const TRIED_MAX: u32 = 16;
/// Most packets of a message for which every λ is tried.
const SHORT_PACKETS: u64 = 16;

/// Schemes for so many members and this message on these paths.
pub fn candidates(
    paths: Unicast<'_, '_>,
    costs: &Costs,
    members: usize,
    message: Message,
    needs: Needs,
    breadth: Breadth,
) -> Vec<Candidate> {
    let orders = orders(paths);
    let most = (members as u32).saturating_sub(1).max(1);
    let every: Vec<u32> = (1..=most.min(TRIED_MAX)).collect();
    let ladder = |steps: &[u32]| -> Vec<u32> {
        match breadth {
            Breadth::Auto => steps.iter().copied().filter(|&step| step <= most).collect(),
            Breadth::All => every.clone(),
        }
    };
    let fan_outs = ladder(&[1, 2, 3, 4, 6, 8, 12]);
    let mut all: Vec<Candidate> = Vec::new();
    if needs.total_order {
        all.push((Scheme::Circuit(CircuitVariant::Ordered), None));
        for fan_out in fan_outs {
            let variant = TreeVariant::Ordered;
            all.push((Scheme::Tree { variant, fan_out }, None));
        }
        if paths.routes().is_ok() {
            all.push(switch(SwitchMode::Tree, Guard::B));
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
    // The postal tree is made for messages of one packet; of long ones, those remain in
    // which a host has few children.
    let mut lambdas = match message.packets {
        0..=SHORT_PACKETS => every.clone(),
        _ => ladder(&[1, 2, 3, 4]),
    };
    let payload = u32::try_from(message.payload_bytes()).unwrap_or(u32::MAX);
    lambdas.push(
        costs
            .postal_lambda(payload, typical_switches(paths.topology()))
            .min(most),
    );
    lambdas.sort_unstable();
    lambdas.dedup();
    for &order in &orders {
        for k in 1..=doublings {
            all.push((Scheme::KBinomial { k: Some(k) }, Some(order)));
        }
        for &lambda in &lambdas {
            let lambda = Some(lambda);
            all.push((Scheme::Postal { lambda }, Some(order)));
        }
    }
    if paths.topology().grid().is_some() {
        all.extend([
            (Scheme::UTorus, None),
            (Scheme::STorus, None),
            (Scheme::MdTorus, None),
        ]);
        for &r in &every {
            all.push((Scheme::MuTorus { r: Some(r) }, None));
        }
    }
    if paths.routes().is_ok() {
        all.push(switch(SwitchMode::Tree, Guard::A));
        if needs.tables {
            all.push(switch(SwitchMode::Table, Guard::A));
        }
    }
    all
}

fn switch(mode: SwitchMode, guard: Guard) -> Candidate {
    (Scheme::Switch(SwitchParameters::new(mode, guard)), None)
}

/// Orders that suit the topology; by id first, then those that keep neighbours together.
fn orders(paths: Unicast<'_, '_>) -> Vec<Order> {
    match (paths.topology().grid().is_some(), paths.routes().is_ok()) {
        (true, true) => vec![Order::Id, Order::Dimension, Order::Hamiltonian, Order::Cco],
        (true, false) => vec![Order::Id, Order::Dimension, Order::Hamiltonian],
        (false, _) => vec![Order::Id, Order::Cco],
    }
}

/// Switches that a packet crosses, about: the mean of the shortest ways from the first host to the others, rounded up.
pub(crate) fn typical_switches(topology: &Topology) -> u32 {
    let hosts = topology.hosts().len() as u32;
    if hosts == 0 {
        return 1;
    }
    let first = topology.switch_of(0);
    let mut crossed = vec![0; topology.switch_count()];
    crossed[first as usize] = 1;
    let mut reached = VecDeque::from([first]);
    while let Some(at) = reached.pop_front() {
        for arc in topology.arcs_of(at) {
            let next = arc.to as usize;
            if crossed[next] == 0 {
                crossed[next] = crossed[at as usize] + 1;
                reached.push_back(arc.to);
            }
        }
    }
    let all = (1..hosts).map(|host| crossed[topology.switch_of(host) as usize]);
    let all: Vec<u32> = all.filter(|&crossed| crossed > 0).collect();
    let count = all.len().max(1) as u32;
    all.into_iter().sum::<u32>().div_ceil(count).max(1)
}
