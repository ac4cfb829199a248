//! `auto` of a group in the running fabric: for messages of every length the structure that takes the least
//! time, as a short list of which each message takes one by its length.

use super::{Breadth, Needs, candidates};
use crate::cost::{CostError, CostModel, Costs, Message, Traffic, estimate};
use wormcast_routing::group::{GroupRequest, Scheme, Unicast, plan_group, plan_recipe};
use wormcast_routing::structure::Recipe;
use wormcast_wire::HostId;

/// Bytes of the shortest messages that are compared, where a packet holds more.
pub(crate) const SHORTEST: u32 = 64;
/// Packets of the others. Each length stands for messages up to the geometric mean with the next one, the
/// last one for all that are longer: with 1,444 bytes a packet it is 95 MB.
const LADDER: [u64; 9] = [1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536];
/// The model tells no times apart that differ by less. Of candidates so close to the best the one is taken
/// that loads links and hosts least: what else they do has room then, and what the model does not know of
/// weighs less.
const ALIKE: f64 = 1.03;

/// A structure, and the messages for which it takes the least time.
#[derive(Clone, Debug, PartialEq)]
pub struct Rung {
    /// The longest message that takes it, those of the rungs before aside; `u64::MAX` for any.
    pub bytes_most: u64,
    /// The scheme with its parameters.
    pub scheme: Scheme,
    /// Members in the order it works on.
    pub order: Vec<HostId>,
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
    let lengths = lengths(costs);
    let mut all = Vec::new();
    for message in [lengths[0], lengths[lengths.len() - 1]] {
        let (count, needs) = (members.len(), Needs::default());
        let found = candidates(paths, costs, count, message, needs, Breadth::Auto);
        all.extend(
            found
                .into_iter()
                .filter(|one| !all.contains(one))
                .collect::<Vec<_>>(),
        );
    }
    let mut estimated = Vec::with_capacity(all.len());
    for (scheme, order) in all {
        let request = GroupRequest {
            order,
            ..GroupRequest::new(scheme, members[0], members.to_vec())
        };
        let traffic = Traffic::new(&model, &plan_group(paths, &request)?)?;
        let time = |&message: &Message| estimate(&model, &traffic, message).completion_ns;
        let times: Vec<f64> = lengths.iter().map(time).collect();
        estimated.push((request, traffic.crossings.len(), times));
    }
    let mut rungs: Vec<(usize, Rung)> = Vec::new();
    for (place, message) in lengths.iter().enumerate() {
        let times = estimated.iter().map(|(.., times)| times[place]);
        let least = times.fold(f64::INFINITY, f64::min);
        let alike = (0..estimated.len()).filter(|&one| estimated[one].2[place] <= ALIKE * least);
        // Of equals the one that comes first, where simpler schemes come first.
        let number = alike
            .min_by_key(|&one| estimated[one].1)
            .expect("repeat is always a candidate");
        let (request, _, times) = &estimated[number];
        let bytes_most = match lengths.get(place + 1) {
            Some(next) => message.bytes.saturating_mul(next.bytes).isqrt(),
            None => u64::MAX,
        };
        let expected = (message.bytes, times[place]);
        if let Some((last, rung)) = rungs.last_mut()
            && *last == number
        {
            rung.bytes_most = bytes_most;
            rung.expected.push(expected);
            continue;
        }
        let (recipe, order) = plan_recipe(paths, request)?;
        let rung = Rung {
            bytes_most,
            scheme: request.scheme,
            order,
            // Where switches copy, ACKs come up a tree.
            recipe: recipe.unwrap_or(Recipe::Copied {
                fan_in: costs.ack_fan_in(members.len()),
            }),
            expected: vec![expected],
        };
        rungs.push((number, rung));
    }
    Ok(rungs.into_iter().map(|(_, rung)| rung).collect())
}

/// Messages that are compared, by ascending length.
fn lengths(costs: &Costs) -> Vec<Message> {
    let payload = u64::from(costs.packet_payload_bytes);
    let shortest = u64::from(SHORTEST);
    let short = (payload > 2 * shortest).then_some(Message {
        bytes: shortest,
        packets: 1,
    });
    let full = LADDER.map(|packets| Message {
        bytes: packets * payload,
        packets,
    });
    short.into_iter().chain(full).collect()
}
