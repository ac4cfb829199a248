//! Whether requests for buffers can form a cycle (WORM §4, Fig. 6).
//!
//! A host that holds a message in a buffer of one class requests buffers at the hosts
//! it passes the message on to. If buffers of a class are shared among messages, a
//! cycle of such requests can deadlock.

use std::collections::BTreeMap;

use super::Structure;
use crate::digraph::Digraph;
use wormcast_wire::{BufferClass, HostId};

/// The buffers of one class at one host.
pub type Buffer = (HostId, BufferClass);

/// A shortest cycle of buffers, each requesting the next and the last the first, that
/// messages in these structures can make; `None` if there is none. Structures of
/// several groups may be given together if they share buffers.
pub fn find_cycle<'s>(structures: impl IntoIterator<Item = &'s Structure>) -> Option<Vec<Buffer>> {
    let mut index: BTreeMap<Buffer, u32> = BTreeMap::new();
    let mut graph = Digraph::default();
    for structure in structures {
        for (held, requested) in requests(structure) {
            let mut node = |buffer| *index.entry(buffer).or_insert_with(|| graph.add_node());
            let (held, requested) = (node(held), node(requested));
            graph.add_arc(held, requested);
        }
    }
    let names: BTreeMap<u32, Buffer> = index
        .into_iter()
        .map(|(buffer, node)| (node, buffer))
        .collect();
    let cycle = graph.shortest_cycle()?;
    Some(cycle.into_iter().map(|node| names[&node]).collect())
}

/// (held, requested) for every send.
fn requests(structure: &Structure) -> Vec<(Buffer, Buffer)> {
    let sends = structure.sends();
    let name = |at: usize| structure.order[at];
    let mut held = vec![BufferClass::One; structure.order.len()];
    let mut requests = Vec::new();
    if let Some(send) = sends.submission {
        held[send.to] = send.class;
        requests.push((
            (name(send.from), BufferClass::One),
            (name(send.to), send.class),
        ));
    }
    for send in sends.sends {
        requests.push((
            (name(send.from), held[send.from]),
            (name(send.to), send.class),
        ));
        held[send.to] = send.class;
    }
    requests
}
