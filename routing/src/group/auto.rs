//! `auto`: the scheme, its parameters and the order that take the least time for a group
//! and a message.
//!
//! Every candidate is planned and estimated in closed form ([`crate::cost::estimate`]).
//! Those that come close to the best estimate are replayed, packet by packet, with the
//! first few packets of the message, and what follows is taken to keep their pace. The
//! least wins; of equals the one that comes first among the candidates, where simpler
//! schemes come before others.

use super::candidates::{Breadth, candidates};
use super::{GroupError, GroupPlan, GroupRequest, Order, Scheme, Unicast, plan_group};
use crate::cost::{Costs, Fabric, Message, Traffic, estimate, replay, replay_within};
use crate::structure::StructureError;

/// What to choose for.
#[derive(Clone, Debug, PartialEq)]
pub struct AutoRequest {
    /// Source, members, packets, bytes, routing; its scheme and order are not looked at.
    pub group: GroupRequest,
    /// What hosts, links and switches take.
    pub costs: Costs,
    /// Names of the schemes to choose from; empty for all.
    pub among: Vec<String>,
    /// Whether all members must get the messages of all sources in one order.
    pub total_order: bool,
    /// Whether candidates that come close are replayed.
    pub refine: bool,
}

impl AutoRequest {
    /// A choice among all schemes.
    pub fn new(group: GroupRequest, costs: Costs) -> AutoRequest {
        AutoRequest {
            group,
            costs,
            among: Vec::new(),
            total_order: false,
            refine: true,
        }
    }

    /// The message: bytes if given, else packets filled with payload.
    pub fn message(&self) -> Message {
        let packets = u64::from(self.group.packets.max(1));
        let full = packets * u64::from(self.group.payload_bytes);
        Message {
            bytes: self.group.bytes.unwrap_or(full),
            packets,
        }
    }
}

/// One candidate and the time it is thought to take.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimated {
    /// Scheme with its parameters.
    pub scheme: Scheme,
    /// Order its members are in.
    pub order: Option<Order>,
    /// By the closed form.
    pub estimate_ns: f64,
    /// By the replay of its first packets; exact if those are all there are. `None` if it
    /// was not replayed.
    pub refined_ns: Option<f64>,
}

impl Estimated {
    /// The better founded of the two times.
    pub fn ns(&self) -> f64 {
        self.refined_ns.unwrap_or(self.estimate_ns)
    }
}

/// What was chosen, and from what.
#[derive(Clone, Debug)]
pub struct AutoPlan {
    /// The plan of the chosen scheme.
    pub plan: GroupPlan,
    /// Place of the chosen one among the estimates.
    pub chosen: usize,
    /// All candidates.
    pub estimates: Vec<Estimated>,
}

/// Candidates are replayed if their estimate is at most so many times the best.
const REFINE_WITHIN: f64 = 1.5;
/// Most candidates replayed.
const REFINED_MAX: usize = 12;
/// Events of a replay after which it is broken off unless it has come to a recurrence.
const REFINE_EVENTS: u64 = 40_000;

/// Chooses and plans.
///
/// # Errors
/// As [`plan_group`]; costs on channels that are not there; names of schemes that are
/// none, or leave no candidate.
pub fn plan_auto<'r, 't: 'r>(
    paths: impl Into<Unicast<'r, 't>>,
    request: &AutoRequest,
) -> Result<AutoPlan, GroupError> {
    let paths = paths.into();
    let fabric = Fabric::new(paths, request.costs.clone())?;
    let message = request.message();
    let mut planned = Vec::new();
    for (scheme, order) in allowed(paths, request)? {
        let asked = GroupRequest {
            scheme,
            order,
            ..request.group.clone()
        };
        let plan = plan_group(paths, &asked)?;
        let traffic = Traffic::new(&fabric, &plan)?;
        let found = Estimated {
            scheme: plan.request.scheme,
            order: plan.request.order,
            estimate_ns: estimate(&fabric, &traffic, message).completion_ns,
            refined_ns: None,
        };
        planned.push((found, plan, traffic));
    }
    if request.refine {
        let mut close: Vec<usize> = (0..planned.len()).collect();
        close.sort_by(|&a, &b| {
            planned[a]
                .0
                .estimate_ns
                .total_cmp(&planned[b].0.estimate_ns)
        });
        let best = close
            .first()
            .map_or(0.0, |&first| planned[first].0.estimate_ns);
        for place in close.into_iter().take(REFINED_MAX) {
            let (found, _, traffic) = &mut planned[place];
            if found.estimate_ns <= best * REFINE_WITHIN {
                found.refined_ns = Some(replay_briefly(&fabric, traffic, message));
            }
        }
    }
    // Refined ones are compared with each other; an estimate alone was too far off.
    let chosen = (0..planned.len())
        .filter(|&place| !request.refine || planned[place].0.refined_ns.is_some())
        .min_by(|&a, &b| planned[a].0.ns().total_cmp(&planned[b].0.ns()))
        .expect("there is a candidate");
    let plan = planned[chosen].1.clone();
    Ok(AutoPlan {
        plan,
        chosen,
        estimates: planned.into_iter().map(|(found, ..)| found).collect(),
    })
}

/// Replays the message, exactly if few events do. Else its first packets; the others come
/// at the pace of the second half of these.
fn replay_briefly(fabric: &Fabric<'_, '_>, traffic: &Traffic, message: Message) -> f64 {
    if let Some(found) = replay_within(fabric, traffic, message, REFINE_EVENTS) {
        return found.completion_ns;
    }
    let packets = (REFINE_EVENTS / traffic.crossing_count().max(1) as u64).max(16);
    let packets = packets.min(message.packets);
    let part = |packets: u64| Message {
        bytes: message.payload_bytes() * packets,
        packets,
    };
    let all = replay(fabric, traffic, part(packets)).completion_ns;
    let half = replay(fabric, traffic, part(packets / 2)).completion_ns;
    let pace = (all - half) / (packets - packets / 2) as f64;
    all + pace * (message.packets - packets) as f64
}

fn allowed(
    paths: Unicast<'_, '_>,
    request: &AutoRequest,
) -> Result<Vec<super::candidates::Candidate>, GroupError> {
    for name in &request.among {
        Scheme::from_name(name)?;
    }
    let mut all = candidates(
        paths,
        &request.costs,
        request.group.members.len(),
        request.group.payload_bytes,
        request.total_order,
        Breadth::Auto,
    );
    all.retain(|(scheme, _)| {
        let named =
            |name: &String| Scheme::from_name(name).is_ok_and(|s| s.name() == scheme.name());
        request.among.is_empty() || request.among.iter().any(named)
    });
    if all.is_empty() {
        return Err(StructureError::UnknownName {
            what: match request.total_order {
                true => "scheme with a total order on this topology",
                false => "scheme for this topology",
            },
            name: request.among.join(","),
            choices: match request.total_order {
                true => &["circuit", "tree"],
                false => Scheme::NAMES,
            },
        }
        .into());
    }
    Ok(all)
}
