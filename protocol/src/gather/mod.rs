//! ACKs that switches gather (`wire/SPEC.md` §3.2). Nothing depends on them: they only make ACKs between hosts rarer.
//! What is known is in `belief`, `branches` and `words`; what a child, a session and the engine make of it, in files of their names.

pub(crate) mod belief;
pub mod branches;
mod child;
mod engine;
mod session;
pub(crate) mod words;
