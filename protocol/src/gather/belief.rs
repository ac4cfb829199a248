//! How far gathered ACKs are believed of a child.

use crate::time::Instant;

/// How far gathered ACKs are believed of a child.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// They said that it holds everything before.
    pub(crate) until: u64,
    /// It says that it holds less than that, and since when.
    pub(crate) denied: Option<(u64, Instant)>,
    /// What switches remember was said by a memory that it has lost. What it has confirmed counts still.
    pub(crate) lost: bool,
}

impl Gathered {
    /// The child has lost its memory: what it holds, it says itself.
    pub fn distrust(&mut self) {
        *self = Gathered {
            lost: true,
            ..Gathered::default()
        };
    }
}
