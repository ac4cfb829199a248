//! Hamiltonian circuit (WORM §5): from place to place in the order of the members.

use super::sends::{Place, Send, Sends};
use super::variants::CircuitVariant;
use wormcast_wire::BufferClass;

/// The place where the multicast starts, and whether the message was brought there.
fn start(source: usize, variant: CircuitVariant) -> (usize, bool) {
    match variant {
        CircuitVariant::Ordered => (0, source != 0),
        CircuitVariant::OmitLast | CircuitVariant::Return => (source, false),
    }
}

/// Class at the host that is `offset` hops after the start: class 2 once the order has
/// been reversed, by the wrap or on the way to the first host.
fn class_at(members: usize, start: usize, submitted: bool, offset: usize) -> BufferClass {
    if submitted || start + offset >= members {
        BufferClass::Two
    } else {
        BufferClass::One
    }
}

pub(super) fn place(members: usize, source: usize, variant: CircuitVariant, at: usize) -> Place {
    let (start, submitted) = start(source, variant);
    let offset = (at + members - start) % members;
    let previous = (at + members - 1) % members;
    let next = (at + 1) % members;
    let returns = variant == CircuitVariant::Return && members > 1;
    let mut children = Vec::new();
    if offset + 1 < members || returns {
        children.push((next, class_at(members, start, submitted, offset + 1)));
    }
    let parent = match offset {
        0 if returns => Some(previous),
        0 => submitted.then_some(source),
        _ => Some(previous),
    };
    Place {
        parent,
        class: class_at(members, start, submitted, offset),
        children,
        submit: (submitted && at == source).then_some((start, BufferClass::Two)),
    }
}

pub(super) fn sends(members: usize, source: usize, variant: CircuitVariant) -> Sends {
    let (start, submitted) = start(source, variant);
    let hops = match variant {
        CircuitVariant::Return if members > 1 => members,
        _ => members - 1,
    };
    let sends = (0..hops)
        .map(|offset| Send {
            from: (start + offset) % members,
            to: (start + offset + 1) % members,
            class: class_at(members, start, submitted, offset + 1),
        })
        .collect();
    let submission = submitted.then_some(Send {
        from: source,
        to: start,
        class: BufferClass::Two,
    });
    Sends { submission, sends }
}
