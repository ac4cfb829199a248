//! `auto` of a group in the running fabric: for messages of every length the structure that takes the least
//! time, as a short list of which each message takes one by its length.

use super::{Breadth, Needs, candidates};
use crate::cost::{CostError, CostModel, Costs, Message, Traffic, estimate};
use wormcast_routing::group::{GroupRequest, Scheme, Unicast, plan_group, plan_recipe};
use wormcast_routing::structure::Recipe;
use wormcast_wire::HostId;

/// Packets of the messages that are compared. Each stands for messages up to twice as long, the last one
/// for all that are longer.
const LADDER: [u64; 7] = [1, 4, 16, 64, 256, 1024, 4096];

/// A structure, and the messages for which it takes the least time.
#[derive(Clone, Debug, PartialEq)]
pub struct Rung {
    /// The longest message that takes it, those of the rungs before aside; `u64::MAX` for any.
    pub bytes_most: u64,
    /// The scheme with its parameters.
    pub scheme: Scheme,
    /// Members in the order it works on.
    pub order: Vec<HostId>,
    /// Its shape.
    pub recipe: Recipe,
    /// Bytes of messages, and the time until the last member has one, in ns, by the closed form.
    pub expected: Vec<(u64, f64)>,
}

/// The rungs for these members, by ascending length of messages. They are found for the first of the members
/// as source; each other one takes the same.
///
/// # Errors
/// As [`super::plan_auto`].
pub fn plan_ladder<'r, 't: 'r>(
    paths: impl Into<Unicast<'r, 't>>,
    costs: &Costs,
    members: &[HostId],
) -> Result<Vec<Rung>, CostError> {
    let paths = paths.into();
    let model = CostModel::new(paths, costs.clone())?;
    let payload = u64::from(costs.packet_payload_bytes);
    let message = |packets: u64| Message {
        bytes: packets * payload,
        packets,
    };
    let mut all = Vec::new();
    for packets in [LADDER[0], LADDER[LADDER.len() - 1]] {
        let (count, needs) = (members.len(), Needs::default());
        let found = candidates(paths, costs, count, message(packets), needs, Breadth::Auto);
        all.extend(
            found
                .into_iter()
                .filter(|one| !all.contains(one))
                .collect::<Vec<_>>(),
        );
    }
    let mut best: Vec<Option<(f64, usize)>> = vec![None; LADDER.len()];
    let mut requests = Vec::new();
    for (scheme, order) in all {
        let request = GroupRequest {
            order,
            ..GroupRequest::new(scheme, members[0], members.to_vec())
        };
        let traffic = Traffic::new(&model, &plan_group(paths, &request)?)?;
        for (best, packets) in best.iter_mut().zip(LADDER) {
            let ns = estimate(&model, &traffic, message(packets)).completion_ns;
            // Of equals the one that comes first, where simpler schemes come first.
            if best.is_none_or(|(least, _)| ns < least) {
                *best = Some((ns, requests.len()));
            }
        }
        requests.push(request);
    }
    let mut rungs: Vec<(usize, Rung)> = Vec::new();
    for (best, packets) in best.into_iter().zip(LADDER) {
        let (ns, number) = best.expect("repeat is always a candidate");
        let bytes = packets * payload;
        let expected = (bytes, ns);
        if let Some((last, rung)) = rungs.last_mut()
            && *last == number
        {
            rung.bytes_most = 2 * bytes;
            rung.expected.push(expected);
            continue;
        }
        let request = &requests[number];
        let (recipe, order) = plan_recipe(paths, request)?;
        let rung = Rung {
            bytes_most: 2 * bytes,
            scheme: request.scheme,
            order,
            // Where switches copy, ACKs go up a tree that agents lay out.
            recipe: recipe.unwrap_or(Recipe::Copied { fan_in: 0 }),
            expected: vec![expected],
        };
        rungs.push((number, rung));
    }
    if let Some((_, last)) = rungs.last_mut() {
        last.bytes_most = u64::MAX;
    }
    Ok(rungs.into_iter().map(|(_, rung)| rung).collect())
}
