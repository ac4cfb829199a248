//! `auto`: the scheme, its parameters and the order that take the least time for a group
//! and a message.
//!
//! Every candidate is planned and estimated in closed form ([`crate::cost::estimate`]).
//! Those that come close to the best estimate are replayed, packet by packet, until the
//! message is there, or the state of the network recurs, or there have been too many
//! events; then packets to come are taken to keep their pace. The least time wins; of
//! equals the one that comes first among the candidates, where simpler schemes come first.

mod candidates;
mod json;
mod ladder;

pub(crate) use candidates::typical_switches;
pub use candidates::{Breadth, Candidate, Needs, candidates};
pub use json::{AUTO, plan_file};
pub(crate) use ladder::SHORTEST;
pub use ladder::{Rung, plan_ladder};

use crate::cost::{CostError, CostModel, Costs, Message, Traffic, estimate};
use crate::replay::replay_briefly;
use wormcast_routing::group::{
    GroupError, GroupPlan, GroupRequest, Order, Scheme, Unicast, plan_group,
};
use wormcast_routing::structure::StructureError;

#[derive(Clone, Debug, PartialEq)]
pub struct AutoRequest {
    /// Source, members, packets, bytes, routing; its scheme and order are not looked at.
    pub group: GroupRequest,
    /// What hosts, links and switches take.
    pub costs: Costs,
    /// Names of the schemes to choose from; empty for all.
    pub among: Vec<String>,
    /// What they must do, or may use.
    pub needs: Needs,
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
            needs: Needs::default(),
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
    pub scheme: Scheme,
    /// Order its members are in.
    pub order: Option<Order>,
    /// By the closed form.
    pub estimate_ns: f64,
    /// By a brief replay; `None` if it was too far off to be replayed.
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
    pub estimates: Vec<Estimated>,
    /// What they were compared for.
    pub message: Message,
}

/// Candidates are replayed if their estimate is at most so many times the best.
const REFINE_WITHIN: f64 = 2.0;
/// Most schemes with parameters replayed, in the order with the best estimate.
const REFINED_MAX: usize = 12;
/// Events after which a replay is broken off unless it has come to a recurrence.
const REFINE_EVENTS: u64 = 1_000_000;
/// Of how many of them the other orders are replayed too.
const BEST_SHAPES: usize = 4;
/// The last few, those within so many times the best, and events for each of them.
const FINAL_WITHIN: f64 = 1.3;
const FINALS_MAX: usize = 8;
const FINAL_EVENTS: u64 = 2_000_000;

/// Chooses and plans.
///
/// # Errors
/// As [`plan_group`]; costs on channels that are not there; names of schemes that are
/// none, or leave no candidate.
pub fn plan_auto<'r, 't: 'r>(
    paths: impl Into<Unicast<'r, 't>>,
    request: &AutoRequest,
) -> Result<AutoPlan, CostError> {
    let paths = paths.into();
    let model = CostModel::new(paths, request.costs.clone())?;
    let message = request.message();
    let mut planned: Vec<Planned> = Vec::new();
    for (scheme, order) in allowed(paths, request)? {
        let asked = GroupRequest {
            scheme,
            order,
            ..request.group.clone()
        };
        let plan = plan_group(paths, &asked)?;
        let traffic = Traffic::new(&model, &plan)?;
        let found = Estimated {
            scheme: plan.request.scheme,
            order: plan.request.order,
            estimate_ns: estimate(&model, &traffic, message).completion_ns,
            refined_ns: None,
        };
        planned.push(Planned {
            found,
            plan,
            traffic,
            exact: false,
        });
    }
    if request.refine {
        refine(&model, &mut planned, message);
    }
    // Refined ones are compared with each other; an estimate alone was too far off.
    let chosen = (0..planned.len())
        .filter(|&place| !request.refine || planned[place].found.refined_ns.is_some())
        .min_by(|&a, &b| planned[a].found.ns().total_cmp(&planned[b].found.ns()))
        .expect("there is a candidate");
    Ok(AutoPlan {
        plan: planned[chosen].plan.clone(),
        chosen,
        message,
        estimates: planned.into_iter().map(|planned| planned.found).collect(),
    })
}

struct Planned {
    found: Estimated,
    plan: GroupPlan,
    traffic: Traffic,
    /// Whether the refined time is that of the whole message.
    exact: bool,
}

/// Replays those that are close by their estimates, of those that differ in the order of
/// the members alone the best one; then the other orders of those that came out best; and
/// then, for longer, those that are close by that.
fn refine(model: &CostModel<'_, '_>, planned: &mut [Planned], message: Message) {
    let by_estimate = |planned: &Planned| Some(planned.found.estimate_ns);
    let by_replay = |planned: &Planned| planned.found.refined_ns;
    let mut shapes: Vec<Scheme> = Vec::new();
    for place in nearest(planned, by_estimate, REFINE_WITHIN, planned.len()) {
        let scheme = planned[place].found.scheme;
        if shapes.len() < REFINED_MAX && !shapes.contains(&scheme) {
            shapes.push(scheme);
            planned[place].replay(model, message, REFINE_EVENTS);
        }
    }
    for place in nearest(planned, by_replay, FINAL_WITHIN, BEST_SHAPES) {
        let scheme = planned[place].found.scheme;
        for other in planned.iter_mut() {
            if other.found.scheme == scheme && other.found.refined_ns.is_none() {
                other.replay(model, message, REFINE_EVENTS);
            }
        }
    }
    let finals = nearest(planned, by_replay, FINAL_WITHIN, FINALS_MAX);
    if finals.len() > 1 {
        for place in finals {
            if !planned[place].exact {
                planned[place].replay(model, message, FINAL_EVENTS);
            }
        }
    }
}

/// Places of the best, and of those within so many times its time, at most so many.
fn nearest(
    planned: &[Planned],
    time: impl Fn(&Planned) -> Option<f64>,
    within: f64,
    most: usize,
) -> Vec<usize> {
    let mut times: Vec<(f64, usize)> = planned
        .iter()
        .enumerate()
        .filter_map(|(place, planned)| Some((time(planned)?, place)))
        .collect();
    times.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let limit = times.first().map_or(0.0, |best| best.0 * within);
    let close = times.into_iter().take_while(|(time, _)| *time <= limit);
    close.take(most).map(|(_, place)| place).collect()
}

impl Planned {
    fn replay(&mut self, model: &CostModel<'_, '_>, message: Message, events: u64) {
        let brief = replay_briefly(model, &self.traffic, message, events);
        let (ns, exact) = brief.unwrap_or((self.found.estimate_ns, false));
        self.found.refined_ns = Some(ns);
        self.exact = exact;
    }
}

fn allowed(paths: Unicast<'_, '_>, request: &AutoRequest) -> Result<Vec<Candidate>, CostError> {
    for name in &request.among {
        Scheme::from_name(name).map_err(GroupError::from)?;
    }
    let mut all = candidates(
        paths,
        &request.costs,
        request.group.members.len(),
        request.message(),
        request.needs,
        Breadth::Auto,
    );
    all.retain(|(scheme, _)| {
        let named =
            |name: &String| Scheme::from_name(name).is_ok_and(|s| s.name() == scheme.name());
        request.among.is_empty() || request.among.iter().any(named)
    });
    if all.is_empty() {
        return Err(GroupError::from(StructureError::UnknownName {
            what: if request.needs.total_order {
                "scheme with a total order on this topology"
            } else {
                "scheme for this topology"
            },
            name: request.among.join(","),
            choices: if request.needs.total_order {
                &["circuit", "tree", "switch"]
            } else {
                Scheme::NAMES
            },
        })
        .into());
    }
    Ok(all)
}
