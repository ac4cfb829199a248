//! ACKs that switches gather (`wire/SPEC.md` §3.2). Nothing depends on them: they only make ACKs between hosts rarer.
//! What is known is here; `child`, `session` and `engine` each have a file `gather.rs` that acts on it.

pub(crate) mod belief;
pub mod branches;
pub(crate) mod words;
