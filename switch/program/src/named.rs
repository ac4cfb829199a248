//! What primitives refer to by name.

use super::scope::Scope;

/// Names that primitives refer to, besides those of the scope.
pub(super) struct Objects<'o> {
    pub(super) scope: Scope<'o>,
    pub(super) counters: &'o [String],
    pub(super) meters: &'o [String],
    pub(super) calculations: &'o [String],
}
