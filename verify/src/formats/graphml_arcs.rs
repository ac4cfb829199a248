//! The links of a graph: what its edges and arcs stand for.
//!
//! A link leads both ways. An edge is a link. Tools that draw directed graphs, yEd and the Topology Zoo among them,
//! have one arc for a link; others have two, one each way. Where every arc has another one the other way, two
//! are a link; else each arc is one.

use std::collections::BTreeMap;

use super::graphml_parse::{Edge, Graph};

const PORTS: [(&str, &str); 2] = [
    ("source_port", "target_port"),
    ("target_port", "source_port"),
];

/// Leaves one edge for each link. Returns what was left out, with its place.
pub(super) fn to_links(graph: &mut Graph) -> Vec<(usize, String)> {
    let mut warnings = Vec::new();
    graph.edges.retain(|edge| {
        let is_loop = edge.source == edge.target;
        if is_loop {
            let reason = format!(
                "an edge leads from \"{0}\" to \"{0}\"; it is left out",
                edge.source
            );
            warnings.push((edge.offset, reason));
        }
        !is_loop
    });
    let (opposite, both_ways) = opposites(&graph.edges);
    if let Some(&first) = both_ways.first() {
        let (edge, arcs) = (&graph.edges[first], both_ways.len());
        let ends = format!("\"{}\" and \"{}\"", edge.source, edge.target);
        let reason = if opposite.is_some() {
            format!(
                "{arcs} arcs have another one the other way, as between {ends}; two are one link"
            )
        } else {
            format!(
                "{arcs} arcs have others the other way, as between {ends}, but not all have; each is a link of its own"
            )
        };
        warnings.push((edge.offset, reason));
    }
    for (arc, other) in opposite.unwrap_or_default() {
        let given = std::mem::take(&mut graph.edges[other].data);
        let edge = &mut graph.edges[arc];
        for (near, far) in PORTS {
            if let Some(port) = given.get(far) {
                edge.data
                    .entry(near.to_owned())
                    .or_insert_with(|| port.clone());
            }
        }
        graph.edges[other].source.clear();
    }
    graph.edges.retain(|edge| !edge.source.is_empty());
    warnings
}

/// Each arc with the one the other way, if all have one; and all arcs that have others the other way.
fn opposites(edges: &[Edge]) -> (Option<Vec<(usize, usize)>>, Vec<usize>) {
    let mut between: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    let arcs = edges.iter().enumerate().filter(|(_, edge)| edge.directed);
    for (number, edge) in arcs {
        let ends = (edge.source.as_str(), edge.target.as_str());
        between.entry(ends).or_default().push(number);
    }
    let (mut pairs, mut both_ways, mut all) = (Vec::new(), Vec::new(), true);
    for (&(source, target), there) in &between {
        let Some(back) = between.get(&(target, source)) else {
            all = false;
            continue;
        };
        both_ways.extend(there);
        all &= back.len() == there.len();
        if source < target {
            let mut left = back.clone();
            for &arc in there {
                match left
                    .iter()
                    .position(|&other| is_mirrored(&edges[arc], &edges[other]))
                {
                    Some(place) => pairs.push((arc, left.remove(place))),
                    None => all = false,
                }
            }
        }
    }
    both_ways.sort_unstable();
    (all.then_some(pairs), both_ways)
}

/// Whether the ports of two arcs, as far as both give them, are those of one link.
fn is_mirrored(arc: &Edge, other: &Edge) -> bool {
    PORTS.iter().all(|(near, far)| {
        let port =
            |edge: &Edge, name: &str| edge.data.get(name).map(|(port, _)| port.trim().to_owned());
        match (port(arc, near), port(other, far)) {
            (Some(one), Some(two)) => one == two,
            _ => true,
        }
    })
}
