//! Sends, and what one member does, in terms of places in the order.

use wormcast_wire::BufferClass;

/// A role in terms of places in the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) parent: Option<usize>,
    pub(super) class: BufferClass,
    pub(super) children: Vec<(usize, BufferClass)>,
    pub(super) submit: Option<(usize, BufferClass)>,
}

/// A send in terms of places in the order, parents before children, children of a
/// parent in the order of the sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Send {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) class: BufferClass,
}

/// Every send, and the one before them that brings the message to the root.
#[derive(Clone, Debug, Default)]
pub(super) struct Sends {
    pub(super) submission: Option<Send>,
    pub(super) sends: Vec<Send>,
}
