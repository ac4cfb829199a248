//! Separate addressing: the source sends to each member in turn.

use super::sends::{Place, Send, Sends};
use wormcast_wire::BufferClass;

/// The members after the source, then those before it; the latter are behind it in the
/// order, and so in class 2.
fn children(members: usize, source: usize) -> impl Iterator<Item = (usize, BufferClass)> {
    (source + 1..members)
        .chain(0..source)
        .map(move |to| (to, class(source, to)))
}

fn class(source: usize, at: usize) -> BufferClass {
    if at >= source {
        BufferClass::One
    } else {
        BufferClass::Two
    }
}

pub(super) fn place(members: usize, source: usize, at: usize) -> Place {
    Place {
        parent: (at != source).then_some(source),
        class: class(source, at),
        children: if at == source {
            children(members, source).collect()
        } else {
            Vec::new()
        },
        submit: None,
    }
}

pub(super) fn sends(members: usize, source: usize) -> Sends {
    Sends {
        submission: None,
        sends: children(members, source)
            .map(|(to, class)| Send {
                from: source,
                to,
                class,
            })
            .collect(),
    }
}
