//! Costs from messages that were timed: those by which the estimates come closest to the times.
//!
//! Least squares of the relative differences, where no cost is below zero. A time that differs by
//! more than [`OUTLIER`] of its error counts less (Huber). Each cost is held, weakly, to what it was
//! before: its room says how weakly. So a cost that the times say nothing of stays as it was, and is
//! named as one that they leave open; the others are then found without it.

use super::{CostError, CostModel, Costs, Message, Traffic, estimate};
use wormcast_routing::group::{GroupRequest, Unicast, plan_group};

/// A message that was timed.
#[derive(Clone, Debug)]
pub struct Timed {
    /// Its scheme, source and members.
    pub request: GroupRequest,
    pub bytes: u64,
    /// The time it took, in ns: from the source until every member has confirmed it. Above 0.
    pub ns: f64,
    /// Standard error of this time, as a share of it; 0 or more.
    pub error: f64,
}

/// One thing that is found: a cost, or several that only their sum or their ratio is known of.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Names of the fields of [`Costs`].
    pub names: &'static [&'static str],
    /// What was found before, and now: the first of them, or the sum where it is a sum.
    pub before: f64,
    pub after: f64,
    /// Standard error of it.
    pub error: f64,
    /// Whether the times tell it. If not, it is as before.
    pub determined: bool,
}

#[derive(Clone, Debug)]
pub struct Fit {
    pub costs: Costs,
    pub found: Vec<Found>,
    /// For each time, in ns: what the costs before say, and what these say.
    pub estimates: Vec<(f64, f64)>,
}

/// The model itself is no closer than that, as a share.
const MODEL_ERROR: f64 = 0.05;
/// Errors beyond which a time counts less.
const OUTLIER: f64 = 2.0;
/// A cost is determined if its error is below such a share of it, or of its room.
const ERROR_OF_ITSELF_MAX: f64 = 0.5;
const ERROR_OF_ROOM_MAX: f64 = 0.03;
/// It is determined too if leaving it as it was costs so many times the scatter: what is far off need not be known well to
/// be known better.
const NEEDED: f64 = 9.0;
/// Steps of the search at most.
const STEPS_MAX: usize = 80;

/// What is looked for. Its number is a time in ns, bytes, or the logarithm of a rate.
struct Unknown {
    names: &'static [&'static str],
    get: fn(&Costs) -> f64,
    /// Puts it into costs; the first are those from before.
    set: fn(&Costs, &mut Costs, f64),
    /// How far from what it was it may well be: the larger of this, and three times what it was.
    room: f64,
    least: f64,
    is_rate: bool,
}

/// Both of two in the ratio they had, as one sum; without one, half each.
fn split(first: f64, second: f64, sum: f64) -> (f64, f64) {
    let share = match first + second {
        0.0 => 0.5,
        before => first / before,
    };
    (share * sum, (1.0 - share) * sum)
}

fn unknowns() -> Vec<Unknown> {
    let time = |names, room, get, set| Unknown {
        names,
        get,
        set,
        room,
        least: 0.0,
        is_rate: false,
    };
    vec![
        time(
            &["message_send_ns", "message_receive_ns"],
            1e6,
            |costs| costs.message_send_ns + costs.message_receive_ns,
            |before, costs, sum| {
                let (send, receive) = split(before.message_send_ns, before.message_receive_ns, sum);
                (costs.message_send_ns, costs.message_receive_ns) = (send, receive);
            },
        ),
        time(
            &["message_confirm_ns"],
            3e5,
            |costs| costs.message_confirm_ns,
            |_, costs, ns| costs.message_confirm_ns = ns,
        ),
        time(
            &["forward_packet_ns"],
            1e6,
            |costs| costs.forward_packet_ns,
            |_, costs, ns| costs.forward_packet_ns = ns,
        ),
        time(
            &["packet_send_ns", "packet_receive_ns", "acknowledgement_ns"],
            3e4,
            |costs| costs.packet_send_ns + costs.packet_receive_ns,
            |before, costs, sum| {
                let (send, receive) = split(before.packet_send_ns, before.packet_receive_ns, sum);
                (costs.packet_send_ns, costs.packet_receive_ns) = (send, receive);
                let was = before.packet_send_ns + before.packet_receive_ns;
                if was > 0.0 {
                    costs.acknowledgement_ns = before.acknowledgement_ns * sum / was;
                }
            },
        ),
        time(
            &["shared_crossing_ns"],
            3e4,
            |costs| costs.shared_crossing_ns,
            |_, costs, ns| costs.shared_crossing_ns = ns,
        ),
        time(
            &["link_burst_bytes"],
            1e5,
            |costs| costs.link_burst_bytes.into(),
            |_, costs, bytes| costs.link_burst_bytes = bytes.round() as u32,
        ),
        Unknown {
            names: &["link_bits_per_s", "host_link_bits_per_s"],
            get: |costs| (costs.link_bits_per_s as f64).ln(),
            set: |before, costs, log| {
                let ratio = before.host_link_bits_per_s as f64 / before.link_bits_per_s as f64;
                costs.link_bits_per_s = log.exp().round() as u64;
                costs.host_link_bits_per_s = (log.exp() * ratio).round() as u64;
            },
            room: 3.0,
            least: (1e4_f64).ln(),
            is_rate: true,
        },
    ]
}

impl Unknown {
    fn room(&self, before: &Costs) -> f64 {
        if self.is_rate {
            self.room
        } else {
            self.room.max(3.0 * (self.get)(before))
        }
    }

    fn found(&self, before: &Costs, after: &Costs, error: f64, determined: bool) -> Found {
        let shown = |costs: &Costs| {
            if self.is_rate {
                (self.get)(costs).exp()
            } else {
                (self.get)(costs)
            }
        };
        Found {
            names: self.names,
            before: shown(before),
            after: shown(after),
            error: if self.is_rate {
                error * shown(after)
            } else {
                error
            },
            determined,
        }
    }
}

/// Finds costs by which messages take the times that were measured.
///
/// # Errors
/// As [`plan_group`] for each request, and [`CostError::Value`] for no times at all, or a time or an
/// error that is none.
pub fn fit<'r, 't: 'r>(
    paths: impl Into<Unicast<'r, 't>>,
    before: &Costs,
    timed: &[Timed],
) -> Result<Fit, CostError> {
    let paths = paths.into();
    check(timed)?;
    let model = CostModel::new(paths, before.clone())?;
    let mut laid_out = Vec::with_capacity(timed.len());
    for one in timed {
        laid_out.push(Traffic::new(&model, &plan_group(paths, &one.request)?)?);
    }
    let search = Search {
        paths,
        before,
        timed,
        traffic: &laid_out,
    };
    let all = unknowns();
    let mut free: Vec<&Unknown> = all.iter().collect();
    let mut best = search.best(&free)?;
    let mut needed: Vec<&[&str]> = Vec::new();
    // One after the other, the vaguest first, as far as the times do as well without.
    while let Some(place) = search.vaguest(&free, &best, &needed) {
        let mut fewer = free.clone();
        let left_out = fewer.remove(place);
        let without = search.best(&fewer)?;
        if without.cost - best.cost > NEEDED * best.scatter {
            needed.push(left_out.names);
            continue;
        }
        (free, best) = (fewer, without);
    }
    let found = all.iter().map(|one| {
        let place = free.iter().position(|free| free.names == one.names);
        let error = place.map_or(0.0, |place| best.errors[place]);
        one.found(before, &best.costs, error, place.is_some())
    });
    let found = found.collect();
    let estimates = search.estimates(before)?.into_iter();
    Ok(Fit {
        found,
        estimates: estimates.zip(search.estimates(&best.costs)?).collect(),
        costs: best.costs,
    })
}

fn check(timed: &[Timed]) -> Result<(), CostError> {
    let wrong = |at: String, reason: String| Err(CostError::Value { at, reason });
    if timed.is_empty() {
        return wrong("timed".into(), "no message was timed; at least 1".into());
    }
    for (place, one) in timed.iter().enumerate() {
        if !(one.ns.is_finite() && one.ns > 0.0) {
            return wrong(
                format!("timed[{place}].ns"),
                format!("{} is not a number above 0", one.ns),
            );
        }
        if !(one.error.is_finite() && one.error >= 0.0) {
            return wrong(
                format!("timed[{place}].error"),
                format!("{} is not a number of 0 or more", one.error),
            );
        }
    }
    Ok(())
}

struct Search<'s, 'r, 't> {
    paths: Unicast<'r, 't>,
    before: &'s Costs,
    timed: &'s [Timed],
    traffic: &'s [Traffic],
}

/// A place of the search: how far each unknown is from what it was, in rooms, and what follows.
struct At {
    rooms: Vec<f64>,
    residuals: Vec<f64>,
    weights: Vec<f64>,
    cost: f64,
}

/// Where a search ends.
struct Best {
    costs: Costs,
    cost: f64,
    /// Of the residuals, squared; 1 where the times scatter as their errors say.
    scatter: f64,
    /// Standard error of each unknown.
    errors: Vec<f64>,
}

impl Search<'_, '_, '_> {
    /// The unknown that the times determine least, if they do not determine it; `needed` stay.
    fn vaguest(&self, free: &[&Unknown], best: &Best, needed: &[&[&str]]) -> Option<usize> {
        let vague = free.iter().zip(&best.errors).map(|(one, error)| {
            let bound = if one.is_rate {
                ERROR_OF_ITSELF_MAX
            } else {
                let value = (one.get)(&best.costs).abs();
                (ERROR_OF_ITSELF_MAX * value).max(ERROR_OF_ROOM_MAX * one.room(self.before))
            };
            if needed.contains(&one.names) {
                0.0
            } else {
                error / bound
            }
        });
        let (place, vague) = vague.enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
        (vague > 1.0).then_some(place)
    }

    fn estimates(&self, costs: &Costs) -> Result<Vec<f64>, CostError> {
        let model = CostModel::new(self.paths, costs.clone())?;
        let pairs = self.timed.iter().zip(self.traffic);
        Ok(pairs
            .map(|(timed, traffic)| {
                let message = Message {
                    bytes: timed.bytes,
                    packets: costs.packets(timed.bytes),
                };
                estimate(&model, traffic, message).completion_ns
            })
            .collect())
    }

    fn costs(&self, free: &[&Unknown], rooms: &[f64]) -> Costs {
        let mut costs = self.before.clone();
        for (one, &rooms) in free.iter().zip(rooms) {
            let value = (one.get)(self.before) + rooms * one.room(self.before);
            (one.set)(self.before, &mut costs, value.max(one.least));
        }
        costs
    }

    fn residuals(&self, free: &[&Unknown], rooms: &[f64]) -> Result<Vec<f64>, CostError> {
        let estimates = self.estimates(&self.costs(free, rooms))?;
        let pairs = self.timed.iter().zip(estimates);
        Ok(pairs
            .map(|(timed, ns)| (ns.max(1.0) / timed.ns).ln() / timed.error.hypot(MODEL_ERROR))
            .collect())
    }

    fn at(&self, free: &[&Unknown], rooms: Vec<f64>) -> Result<At, CostError> {
        let residuals = self.residuals(free, &rooms)?;
        let weights: Vec<f64> = residuals
            .iter()
            .map(|residual| (OUTLIER / residual.abs().max(1e-9)).min(1.0))
            .collect();
        let huber = residuals.iter().map(|residual| match residual.abs() {
            size if size <= OUTLIER => size * size,
            size => 2.0 * OUTLIER * size - OUTLIER * OUTLIER,
        });
        let held = rooms.iter().map(|rooms| rooms * rooms);
        let cost = huber.chain(held).sum();
        Ok(At {
            rooms,
            residuals,
            weights,
            cost,
        })
    }

    /// The costs that fit best.
    fn best(&self, free: &[&Unknown]) -> Result<Best, CostError> {
        let mut best: Option<At> = None;
        // Rate and burst hide behind each other, so the search begins at several places.
        for rate in [0.0, -1.0, 1.0, 2.0] {
            for burst in [0.0, 0.3] {
                let start = free.iter().map(|one| match one.names[0] {
                    "link_bits_per_s" => rate,
                    "link_burst_bytes" => burst,
                    _ => 0.0,
                });
                let found = self.descend(free, start.collect())?;
                if best.as_ref().is_none_or(|best| found.cost < best.cost) {
                    best = Some(found);
                }
            }
        }
        let best = best.expect("there is a place to begin at");
        let normal = self.normal(free, &best)?;
        let spare = (self.timed.len() as f64 - free.len() as f64).max(1.0);
        let scatter: f64 = best
            .residuals
            .iter()
            .zip(&best.weights)
            .map(|(residual, weight)| weight * residual * residual)
            .sum();
        let scatter = (scatter / spare).max(1.0);
        let errors = free.iter().enumerate().map(|(place, one)| {
            let mut unit = vec![0.0; free.len()];
            unit[place] = 1.0;
            let variance = solve(normal.0.clone(), unit)[place];
            (variance.max(0.0) * scatter).sqrt() * one.room(self.before)
        });
        Ok(Best {
            errors: errors.collect(),
            costs: self.costs(free, &best.rooms),
            cost: best.cost,
            scatter,
        })
    }

    /// Levenberg and Marquardt's way down.
    fn descend(&self, free: &[&Unknown], start: Vec<f64>) -> Result<At, CostError> {
        let mut at = self.at(free, self.inside(free, start))?;
        let mut damping = 1e-2;
        for _ in 0..STEPS_MAX {
            let (normal, downhill) = self.normal(free, &at)?;
            let mut moved = false;
            while damping < 1e8 {
                let mut damped = normal.clone();
                for (place, row) in damped.iter_mut().enumerate() {
                    row[place] *= 1.0 + damping;
                }
                let step = solve(damped, downhill.clone());
                let rooms = at.rooms.iter().zip(&step).map(|(at, step)| at + step);
                let next = self.at(free, self.inside(free, rooms.collect()))?;
                if next.cost < at.cost {
                    moved = at.cost - next.cost > 1e-9 * at.cost;
                    at = next;
                    damping = (damping / 4.0).max(1e-9);
                    break;
                }
                damping *= 4.0;
            }
            if !moved {
                break;
            }
        }
        Ok(at)
    }

    fn inside(&self, free: &[&Unknown], rooms: Vec<f64>) -> Vec<f64> {
        let bounded = free.iter().zip(rooms).map(|(one, rooms)| {
            let least = (one.least - (one.get)(self.before)) / one.room(self.before);
            rooms.clamp(least, least.max(0.0) + 1e4)
        });
        bounded.collect()
    }

    /// The normal equations, and the way down.
    fn normal(&self, free: &[&Unknown], at: &At) -> Result<(Vec<Vec<f64>>, Vec<f64>), CostError> {
        const STEP: f64 = 1e-3;
        let count = free.len();
        let mut slopes = Vec::with_capacity(count);
        for place in 0..count {
            let mut rooms = at.rooms.clone();
            rooms[place] += STEP;
            let moved = self.residuals(free, &rooms)?;
            let pairs = moved.into_iter().zip(&at.residuals);
            slopes.push(
                pairs
                    .map(|(moved, at)| (moved - at) / STEP)
                    .collect::<Vec<f64>>(),
            );
        }
        let weighted = |a: &[f64], b: &[f64]| -> f64 {
            let pairs = a.iter().zip(b).zip(&at.weights);
            pairs.map(|((a, b), weight)| a * b * weight).sum()
        };
        let mut normal = vec![vec![0.0; count]; count];
        let mut downhill = vec![0.0; count];
        for row in 0..count {
            for column in 0..count {
                normal[row][column] = weighted(&slopes[row], &slopes[column]);
            }
            normal[row][row] += 1.0;
            downhill[row] = -weighted(&slopes[row], &at.residuals) - at.rooms[row];
        }
        Ok((normal, downhill))
    }
}

/// Gauss; the matrix is positive definite.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    let count = right.len();
    for pivot in 0..count {
        for row in pivot + 1..count {
            let factor = matrix[row][pivot] / matrix[pivot][pivot];
            let (above, below) = matrix.split_at_mut(row);
            let pairs = below[0].iter_mut().zip(&above[pivot]);
            pairs.for_each(|(one, above)| *one -= factor * above);
            right[row] -= factor * right[pivot];
        }
    }
    for row in (0..count).rev() {
        let known: f64 = (row + 1..count).map(|at| matrix[row][at] * right[at]).sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    right
}
